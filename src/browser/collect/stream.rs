//! Responses that are read while they run: event streams, and those that are long in coming.
//!
//! Chromium hands over such a body piece by piece. One task a response turns the pieces into whole lines,
//! because a secret must not stand half in one event and half in the next, and records them as they come.
//! What is there at the end becomes the response's body like any other. A response that ends well is
//! fetched whole instead, decoded by Chromium as the page saw it.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use storage::event::catalog::{NetworkBody, NetworkChunk};
use storage::event::{Context, Draft, Symbol};
use storage::limits::TEXT_FIELD_BYTES_MAX;
use tokio::sync::mpsc;

use super::super::chromium::{SessionKey, envelope};
use super::body::{Direction, Means};
use super::outgoing::{artifact_kept, truncated};
use crate::deadline::Deadline;

/// Responses read while they run, of one session at one time.
pub(super) const STREAMS_MAX: usize = 64;
/// Pieces that may wait to be turned into lines; when there are more, the rest is not kept.
const PIECES_MAX: usize = 1024;
/// How long Chromium may take to begin.
const BEGIN_LIMIT: Duration = Duration::from_secs(10);
/// Lines that have come are recorded after so long even when they are few.
const FLUSH_AFTER: Duration = Duration::from_millis(500);
/// The next chunk is at least so much longer for each one before it, so that a long body is told in few.
const CHUNK_GROWTH_BYTES: usize = 16;

pub(super) enum Piece {
    Data(String),
    /// The response is over, and this is what there is of it.
    End,
}

/// One response, to be read while it runs.
pub(super) struct Source {
    pub context: Context,
    pub session: SessionKey,
    pub browser_id: String,
    pub media_type: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Begun {
    buffered_data: String,
}

struct Lines {
    means: Arc<Means>,
    source: Source,
    /// What has come and is not recorded.
    waiting: Vec<u8>,
    /// What was recorded.
    recorded: String,
    received_bytes: u64,
    chunks: usize,
    cut: bool,
}

/// Reads `source` until the sender of its pieces is gone.
pub(super) fn start(means: Arc<Means>, source: Source) -> mpsc::Sender<Piece> {
    let (sender, pieces) = mpsc::channel(PIECES_MAX);
    tokio::spawn(follow(means, source, pieces));
    sender
}

async fn follow(means: Arc<Means>, source: Source, mut pieces: mpsc::Receiver<Piece>) {
    let params = json!({ "requestId": source.browser_id });
    let limit = Deadline::after(BEGIN_LIMIT);
    let begun = means.connection.raw_text(Some(&source.session), "Network.streamResourceContent", params, limit).await;
    let begun: Begun = begun.ok().and_then(|text| envelope::parse(&text)).unwrap_or_default();
    let mut lines =
        Lines { means, source, waiting: Vec::new(), recorded: String::new(), received_bytes: 0, chunks: 0, cut: false };
    lines.take(&begun.buffered_data);
    let mut is_over = false;
    while !is_over {
        match tokio::time::timeout(FLUSH_AFTER, pieces.recv()).await {
            Ok(Some(Piece::Data(data))) => lines.take(&data),
            Ok(Some(Piece::End)) => is_over = true,
            // It ended well, and its body is fetched as others are.
            Ok(None) => return,
            Err(_) => lines.flush(),
        }
    }
    lines.end().await;
}

impl Lines {
    fn take(&mut self, data: &str) {
        let bytes = STANDARD.decode(data).unwrap_or_default();
        self.received_bytes += bytes.len() as u64;
        if self.cut {
            return;
        }
        if self.means.quota.refuses_more(self.received_bytes, bytes.len() as u64) {
            self.flush();
            self.cut = true;
            return;
        }
        self.waiting.extend(bytes);
        if self.waiting.len() >= self.chunks * CHUNK_GROWTH_BYTES {
            self.flush();
        }
    }

    /// Records the whole lines among what has come.
    fn flush(&mut self) {
        if let Some(end) = memchr::memrchr(b'\n', &self.waiting) {
            let rest = self.waiting.split_off(end + 1);
            let whole = std::mem::replace(&mut self.waiting, rest);
            self.record(&whole);
        }
    }

    fn record(&mut self, whole: &[u8]) {
        let text = String::from_utf8_lossy(whole);
        let shown: String = text.split_inclusive('\n').map(|line| self.line(line)).collect();
        let mut rest = shown.as_str();
        let mut drafts = Vec::new();
        while !rest.is_empty() {
            let part = crate::redact::cut(rest, TEXT_FIELD_BYTES_MAX);
            rest = &rest[part.len()..];
            let Some(clean) = self.means.redactor.short_body(part, TEXT_FIELD_BYTES_MAX) else { break };
            let chunk = NetworkChunk { text: clean, bytes: part.len() as u64 };
            drafts.push(Draft::new(&self.source.context, &chunk));
        }
        self.chunks += drafts.len();
        self.means.journal.record(drafts);
        self.recorded.push_str(&shown);
    }

    /// One line without secrets; what an event stream calls data is a body of its own.
    fn line(&self, line: &str) -> String {
        const DATA: &str = "data:";
        let content = line.trim_end_matches(['\r', '\n']);
        let (head, body) = content.strip_prefix(DATA).map_or(("", content), |body| (DATA, body));
        let (space, body) = body.strip_prefix(' ').map_or(("", body), |body| (" ", body));
        let body = self.means.redactor.body(body, "");
        [head, space, &*body, &line[content.len()..]].concat()
    }

    /// What has come is the body.
    async fn end(mut self) {
        let rest = std::mem::take(&mut self.waiting);
        self.record(&rest);
        let Self { means, source, recorded, received_bytes, .. } = self;
        let artifacts = means.artifacts.clone();
        let put = tokio::task::spawn_blocking(move || artifacts.put(recorded.as_bytes()));
        let kept = put.await.ok().and_then(Result::ok);
        let body = NetworkBody {
            direction: Symbol::fold(Direction::Response.word()),
            bytes: kept.as_ref().map_or(received_bytes, |kept| kept.bytes),
            text: None,
            artifact: kept.as_ref().map(|kept| kept.handle.clone()),
            omitted: kept.is_none().then(|| Symbol::fold("unavailable")),
            truncated_fields: truncated(&means.redactor, &[("body", true)]),
        };
        let mut drafts = Vec::new();
        if let Some(kept) = &kept {
            drafts.push(artifact_kept(&source.context, kept, "body", &source.media_type, &means.redactor));
        }
        drafts.push(Draft::new(&source.context, &body));
        means.journal.record(drafts);
        means.pending.send_modify(|pending| *pending -= 1);
    }
}

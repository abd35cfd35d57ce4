//! Bodies, fetched beside the stream of events.
//!
//! Every body ends as one `network.body` event: with its text, with an artifact, or with the reason
//! why it was not kept. A few are fetched at a time; the queue is bounded and refuses out loud.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::json;
use storage::artifact::ArtifactStore;
use storage::event::catalog::NetworkBody;
use storage::event::{Context, Draft, Symbol};
use storage::limits::TEXT_FIELD_BYTES_MAX;
use tokio::sync::{Semaphore, mpsc, watch};
use tokio::task::JoinHandle;

use super::super::chromium::{CdpError, Connection, SessionKey, envelope};
use super::super::state::IN_FLIGHT_MAX;
use super::outgoing::artifact_kept;
use super::{BodyPolicy, Setting};
use crate::deadline::Deadline;
use crate::journal::Journal;
use crate::redact::{Redactor, looks_like_json};

/// Bodies larger than this are not kept.
const BODY_BYTES_MAX: u64 = 1024 * 1024;
/// Bodies fetched at one time.
const FETCHES_MAX: usize = 8;
/// Bodies that may wait to be fetched.
const WAITING_MAX: usize = IN_FLIGHT_MAX;
/// How long Chromium may take to hand over one.
const FETCH_LIMIT: Duration = Duration::from_secs(10);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Request,
    Response,
}

impl Direction {
    fn word(self) -> &'static str {
        match self {
            Direction::Request => "request",
            Direction::Response => "response",
        }
    }

    fn method(self) -> &'static str {
        match self {
            Direction::Request => "Network.getRequestPostData",
            Direction::Response => "Network.getResponseBody",
        }
    }
}

/// One body to fetch.
pub(super) struct Job {
    pub context: Context,
    pub session: SessionKey,
    pub browser_id: String,
    pub direction: Direction,
    pub media_type: String,
    /// As far as the events told.
    pub decoded_bytes: u64,
}

/// Takes jobs and works them off.
pub(super) struct Fetcher {
    jobs: mpsc::Sender<Job>,
    pending: Arc<watch::Sender<u64>>,
    policy: BodyPolicy,
    task: JoinHandle<()>,
}

struct Means {
    connection: Connection,
    journal: Journal,
    artifacts: ArtifactStore,
    redactor: Arc<Redactor>,
}

impl Fetcher {
    pub(super) fn start(setting: &Setting) -> Self {
        let (jobs, queue) = mpsc::channel(WAITING_MAX);
        let pending = Arc::new(watch::channel(0).0);
        let means = Arc::new(Means {
            connection: setting.connection.clone(),
            journal: setting.journal.clone(),
            artifacts: setting.artifacts.clone(),
            redactor: setting.redactor.clone(),
        });
        let task = tokio::spawn(work(means, queue, pending.clone()));
        Self { jobs, pending, policy: setting.body_policy, task }
    }

    pub(super) fn pending(&self) -> watch::Receiver<u64> {
        self.pending.subscribe()
    }

    /// Queues a job; gives back the event to record when it will not be fetched.
    pub(super) fn submit(&self, job: Job) -> Option<(Context, NetworkBody)> {
        let omitted = match self.policy {
            BodyPolicy::None => Some("policy"),
            BodyPolicy::Text if job.direction == Direction::Response && !is_text(&job.media_type) => Some("policy"),
            _ if job.decoded_bytes > BODY_BYTES_MAX => Some("too_large"),
            _ => None,
        };
        if let Some(reason) = omitted {
            return Some((job.context, omit(job.direction, job.decoded_bytes, reason)));
        }
        self.pending.send_modify(|pending| *pending += 1);
        match self.jobs.try_send(job) {
            Ok(()) => None,
            Err(mpsc::error::TrySendError::Full(job) | mpsc::error::TrySendError::Closed(job)) => {
                self.pending.send_modify(|pending| *pending -= 1);
                Some((job.context, omit(job.direction, job.decoded_bytes, "unavailable")))
            }
        }
    }

    /// Runs other slow work beside the stream of events; it counts as pending like a body.
    pub(super) fn beside(&self, work: impl FnOnce() + Send + 'static) {
        let pending = self.pending.clone();
        pending.send_modify(|pending| *pending += 1);
        tokio::task::spawn_blocking(move || {
            work();
            pending.send_modify(|pending| *pending -= 1);
        });
    }

    /// Takes no more jobs and waits until everything pending is done.
    pub(super) async fn finish(self) {
        let mut pending = self.pending.subscribe();
        drop(self.jobs);
        // Errors mean that the work has ended otherwise; there is nothing to wait for then.
        let _ = self.task.await;
        let _ = pending.wait_for(|pending| *pending == 0).await;
    }
}

async fn work(means: Arc<Means>, mut queue: mpsc::Receiver<Job>, pending: Arc<watch::Sender<u64>>) {
    let places = Arc::new(Semaphore::new(FETCHES_MAX));
    while let Some(job) = queue.recv().await {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let (means, pending) = (means.clone(), pending.clone());
        tokio::spawn(async move {
            let drafts = means.body(job).await;
            means.journal.record(drafts);
            pending.send_modify(|pending| *pending -= 1);
            drop(place);
        });
    }
    // Whoever has all places has waited for everybody.
    let _ = places.acquire_many(FETCHES_MAX as u32).await;
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Fetched {
    body: String,
    post_data: String,
    base64_encoded: bool,
}

impl Means {
    async fn body(&self, job: Job) -> Vec<Draft> {
        let omitted = |bytes, reason| vec![Draft::new(&job.context, &omit(job.direction, bytes, reason))];
        let fetched = match self.fetch(&job).await {
            Ok(fetched) => fetched,
            Err(CdpError::TooLarge) => return omitted(job.decoded_bytes, "too_large"),
            Err(_) => return omitted(job.decoded_bytes, "unavailable"),
        };
        let text = if job.direction == Direction::Request { fetched.post_data } else { fetched.body };
        let content =
            if fetched.base64_encoded { STANDARD.decode(&text).unwrap_or_default() } else { text.into_bytes() };
        let bytes = content.len() as u64;
        if bytes > BODY_BYTES_MAX {
            return omitted(bytes, "too_large");
        }
        let form = is_multipart_form(&job.media_type);
        let promised = form || job.direction == Direction::Request || is_text(&job.media_type);
        let content = match String::from_utf8(content) {
            // Files in a form are left out, so nothing is lost of what is no text.
            Err(error) if form => String::from_utf8_lossy(error.as_bytes()).into_owned().into_bytes(),
            Err(error) => error.into_bytes(),
            Ok(text) => text.into_bytes(),
        };
        let (content, short) = match std::str::from_utf8(&content) {
            Ok(plain) if promised || looks_like_json(plain) => {
                let redacted = self.redactor.body(plain, &job.media_type).into_owned();
                let short = self.redactor.short_body(&redacted, TEXT_FIELD_BYTES_MAX);
                (redacted.into_bytes(), short)
            }
            _ => (content, None),
        };
        let direction = Symbol::fold(job.direction.word());
        if short.is_some() {
            let payload = NetworkBody { direction, bytes, text: short, artifact: None, omitted: None };
            return vec![Draft::new(&job.context, &payload)];
        }
        let artifacts = self.artifacts.clone();
        let Ok(Ok(kept)) = tokio::task::spawn_blocking(move || artifacts.put(&content)).await else {
            return omitted(bytes, "unavailable");
        };
        let artifact = Some(kept.handle.clone());
        let payload = NetworkBody { direction, bytes, text: None, artifact, omitted: None };
        let kept = artifact_kept(&job.context, &kept, "body", &job.media_type, &self.redactor);
        vec![kept, Draft::new(&job.context, &payload)]
    }

    async fn fetch(&self, job: &Job) -> Result<Fetched, CdpError> {
        let params = json!({ "requestId": job.browser_id });
        let limit = Deadline::after(FETCH_LIMIT);
        let text = self.connection.raw_text(Some(&job.session), job.direction.method(), params, limit).await?;
        envelope::parse(&text).ok_or(CdpError::Undecodable)
    }
}

fn omit(direction: Direction, bytes: u64, reason: &'static str) -> NetworkBody {
    NetworkBody {
        direction: Symbol::fold(direction.word()),
        bytes,
        text: None,
        artifact: None,
        omitted: Some(Symbol::fold(reason)),
    }
}

fn is_multipart_form(media_type: &str) -> bool {
    media_type.trim_start().to_ascii_lowercase().starts_with("multipart/form-data")
}

/// Whether a media type promises text.
fn is_text(media_type: &str) -> bool {
    let media_type = media_type.to_ascii_lowercase();
    let words = ["json", "javascript", "ecmascript", "xml", "x-www-form-urlencoded", "graphql", "yaml"];
    media_type.starts_with("text/") || words.iter().any(|word| media_type.contains(word))
}

//! A data directory as a server leaves it that has been in use: many small segments, some of them
//! written anew and one without some of its events, an index, artifacts, and a closed session.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::json;
use storage::event::catalog::LogRemoved;
use storage::event::codec::ContextField;
use storage::event::removed::{Portion, to_json};
use storage::event::{Context, Draft, EventView, Symbol};
use storage::log::{BlockHeader, Fate, Log, LogOptions, Reader};

use super::child::digest;
use super::payload::Origin;
use crate::support::{DataDir, Options, Server};

const SEGMENT_BYTES: u64 = 24 * 1024;
const COMMITS: u64 = 120;
const COMMIT_EVENTS: u64 = 6;
/// A session that lies in every segment.
pub const LISTED: &str = "w-0";
/// Whose events some are missing in one segment.
const THINNED: &str = "w-1";

pub struct Sample {
    pub data: DataDir,
    /// Digest of every event that is there.
    pub events: BTreeMap<u64, u64>,
    pub last_seq: u64,
    /// Those of the session [`LISTED`].
    pub listed: BTreeMap<u64, u64>,
    /// A session of the browser's.
    pub session_id: String,
    /// Handle and file of what is kept beside the log.
    pub artifact: (String, PathBuf),
}

impl Sample {
    pub async fn make() -> Self {
        let data = DataDir::fresh();
        write_log(&data.path().join("log")).await;
        let server = Server::start(Options::stdio().on(&data)).await;
        let session_id = server.launch().await;
        let lines = json!({"session_id": session_id, "expression": "for (let i = 0; i < 50; i++) console.log(i); 1"});
        server.ok("evaluate", lines).await;
        let shot = server.ok_reply("screenshot", json!({"session_id": session_id})).await;
        let handle = shot.structured["operation"]["artifacts"][0]["handle"].as_str().expect("a handle").to_owned();
        server.ok("close_session", json!({"session_id": session_id})).await;
        server.stop().await;
        let digits = handle.trim_start_matches("art-");
        let artifact = (handle.clone(), data.path().join("artifacts").join(&digits[..2]).join(digits));
        assert!(artifact.1.is_file(), "{artifact:?}");
        let reader = Reader::open(&data.path().join("log")).expect("the log is there");
        let (events, last_seq) = read(&reader);
        let listed = read_if(&reader, &|header| header.session_id.as_ref().is_some_and(|id| id.as_str() == LISTED));
        assert!(listed.len() > 100);
        Self { data, events, last_seq, listed, session_id, artifact }
    }

    /// The same directory once more, to be harmed.
    #[must_use]
    pub fn copy(&self) -> DataDir {
        let copy = DataDir::fresh();
        copy_into(self.data.path(), copy.path());
        copy
    }
}

/// Copies what lies in one directory into another.
pub fn copy_into(from: &Path, to: &Path) {
    let copied = std::process::Command::new("cp").arg("-a").arg(from.join(".")).arg(to).status();
    assert!(copied.is_ok_and(|status| status.success()), "the directory is copied");
}

/// The digest of every event that is there, and the last number.
pub fn read(reader: &Reader) -> (BTreeMap<u64, u64>, u64) {
    let events = read_if(reader, &|_| true);
    let last_seq = reader.durable().expect("the end is known").last_seq;
    assert!(events.len() as u64 <= last_seq);
    (events, last_seq)
}

fn read_if(reader: &Reader, wants: &dyn Fn(&BlockHeader) -> bool) -> BTreeMap<u64, u64> {
    let mut events = BTreeMap::new();
    let scanned = reader.scan(reader.first_seq(), wants, &mut |event| {
        events.insert(event.seq, digest(event));
        ControlFlow::Continue(())
    });
    scanned.expect("the log can be read");
    events
}

async fn write_log(directory: &Path) {
    let mut options = LogOptions::new(directory);
    options.segment_bytes = SEGMENT_BYTES;
    let log = Log::open(options).expect("the log opens");
    for commit in 0..COMMITS {
        let event = |n| Origin { run: 0, writer: n % 3, number: commit * COMMIT_EVENTS + n }.draft();
        log.commit((0..COMMIT_EVENTS).map(event).collect()).await.expect("the log records");
    }
    let segments = log.reader().segments().expect("the segments are known");
    assert!(segments.len() > 5, "{segments:?}");
    log.rewrite(segments[0].number, &mut |_| Fate::Keep)
        .and_then(|new| new.install(false))
        .expect("it is written anew");
    thin(&log, segments[1].number).await;
    log.close().await.expect("the log closes");
}

/// Takes some events of one session out of a segment, and says so.
async fn thin(log: &Log, segment: u32) {
    let mut portions: Vec<Portion> = Vec::new();
    let mut fate = |event: &EventView<'_>| {
        if event.context(ContextField::SessionId) != Some(THINNED) {
            return Fate::Keep;
        }
        let found = Portion::of(event);
        match portions.iter_mut().find(|other| (other.kind, other.level) == (found.kind, found.level)) {
            Some(portion) => portion.add(&found),
            None => portions.push(found),
        }
        Fate::Remove
    };
    let rewritten = log.rewrite(segment, &mut fate).expect("it is written anew");
    let context = Context { session_id: Some(THINNED.into()), owner: Some("local".into()), ..Context::default() };
    let removed = LogRemoved {
        reason: Symbol::fold("age"),
        segment: u64::from(segment),
        generation: u64::from(rewritten.facts().generation),
        first_seq: portions.iter().map(|portion| portion.first_seq).min().expect("some are removed"),
        last_seq: portions.iter().map(|portion| portion.last_seq).max().expect("some are removed"),
        count: rewritten.removed_count(),
        kinds: to_json(&portions),
        by: None,
        note: None,
        subject: None,
    };
    log.commit(vec![Draft::new(&context, &removed)]).await.expect("the log records");
    rewritten.install(false).expect("it takes its place");
}

/// Every file of a data directory with what it is: the first part of its path, and what part of it
/// is in use.
pub fn files(data: &DataDir) -> Vec<(String, PathBuf, u64)> {
    let mut found = Vec::new();
    for path in data.files() {
        let below = path.strip_prefix(data.path()).expect("it lies below");
        let mut kind = below.iter().next().map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
        if path.extension().is_some_and(|extension| extension == "seg") {
            kind = "segment".into();
        }
        let bytes = fs::read(&path).unwrap_or_default();
        let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last as u64 + 1);
        found.push((kind, path, used));
    }
    found
}

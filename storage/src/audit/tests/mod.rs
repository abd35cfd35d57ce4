//! Promises of the audit: one module each.

mod auditor;
mod kept;
mod keys;
mod strange_files;
mod verifying;

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::{AuditOptions, Auditor, CHECKPOINTS_FILE, Pace, RawLines, SignedLine};
use crate::StorageError;
use crate::event::catalog::{ConsoleMessage, LogRemoved};
use crate::event::removed::{Portion, to_json};
use crate::event::{Clean, Context, Draft, Level, Symbol};
use crate::log::{Log, LogOptions};

/// How long a fact may take to become true.
const LIMIT: Duration = Duration::from_secs(20);

/// A data directory with a log and its auditor.
struct World {
    directory: tempfile::TempDir,
}

impl World {
    fn new() -> Self {
        let in_memory = tempfile::tempdir_in("/dev/shm");
        Self { directory: in_memory.or_else(|_| tempfile::tempdir()).expect("a directory can be made") }
    }

    fn path(&self) -> &Path {
        self.directory.path()
    }

    fn audit(&self) -> PathBuf {
        self.path().join("audit")
    }

    fn open(&self) -> Log {
        let options = LogOptions { segment_bytes: 8 * 1024, ..LogOptions::new(self.path().join("log")) };
        Log::open(options).expect("the log opens")
    }

    /// Signs only when asked to, unless the pace says otherwise.
    fn audit_options(&self) -> AuditOptions {
        let long = Duration::from_secs(3600);
        let pace = Pace { events: u64::MAX, within: long, apart: Duration::from_millis(1), idle: long };
        AuditOptions { pace, ..AuditOptions::new(self.audit()) }
    }

    fn start(&self, log: &Log) -> Result<Auditor, StorageError> {
        Auditor::start(log.clone(), self.audit_options())
    }

    fn lines(&self) -> Vec<SignedLine> {
        let lines = RawLines::open(&self.audit().join(CHECKPOINTS_FILE)).expect("it opens").expect("it is there");
        lines.map(|line| line.expect("it is read").read().expect("it is sound")).collect()
    }
}

/// An orderly end.
async fn close(log: &Log, auditor: &Auditor) {
    log.seal().await.expect("the log is sealed");
    auditor.close().await;
    log.close().await.expect("the log closes");
}

fn message(text: &str) -> Draft {
    let context = Context { session_id: Some("s".into()), ..Context::default() };
    let message = ConsoleMessage {
        level: Level::Info,
        r#type: Symbol::fold("log"),
        text: Clean::redacted(text),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context, &message)
}

async fn append(log: &Log, count: usize) -> u64 {
    let drafts = (0..count).map(|n| message(&format!("message {n}"))).collect();
    log.commit(drafts).await.expect("it is recorded").last_seq
}

/// Waits until `fact` holds.
async fn until(what: &str, fact: impl Fn() -> bool) {
    let waiting = async {
        while !fact() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    assert!(tokio::time::timeout(LIMIT, waiting).await.is_ok(), "not in time: {what}");
}

/// What upkeep records before it removes events from a segment.
pub(crate) fn announcement(segment: u32, generation: u64, portions: &[Portion]) -> Draft {
    let removed = LogRemoved {
        reason: "age".into(),
        segment: u64::from(segment),
        generation,
        first_seq: portions.iter().map(|portion| portion.first_seq).min().unwrap_or(0),
        last_seq: portions.iter().map(|portion| portion.last_seq).max().unwrap_or(0),
        count: portions.iter().map(|portion| portion.count).sum(),
        kinds: to_json(portions),
        by: None,
        note: None,
        subject: None,
    };
    Draft::new(&Context::default(), &removed)
}

//! Logs of a stated size, built once and kept, with places in them to ask for.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::sync_channel;
use std::time::Duration;

use serde_json::{Value, json};
use storage::audit::{AuditOptions, Auditor};
use storage::event::EventView;
use storage::event::codec::{ContextField, put_record};
use storage::index::Index;
use storage::log::{Fate, Log, LogOptions};
use storage::query::{CursorKey, Ledger};
use storage::time::ManualClock;

use crate::table::{milliseconds, number, seconds};
use crate::workload::{OWNER, Workload};

/// Raised when the workload or what is done with it changes, so that kept logs are built again.
const WORKLOAD_VERSION: u64 = 4;
/// As many as the log's own window puts together.
const COMMIT_EVENTS: usize = 256;
/// Places remembered of each log.
const PLACES: u64 = 64;
/// Looks at an index that found it unchanged, after which it counts as at rest.
const QUIET_LOOKS: u32 = 20;
const STAMP: &str = "built.json";

/// A log that was built, closed.
pub struct Grown {
    pub directory: PathBuf,
    pub places: Vec<Place>,
}

/// What can be asked for at some place in the log.
#[derive(Debug, Clone)]
pub struct Place {
    pub seq: u64,
    pub micros: i64,
    pub session: String,
    pub page: String,
    pub operation: String,
    pub request: String,
}

/// A log in use, as the gateway has it.
pub struct Running {
    pub log: Log,
    /// How long it took to open.
    pub log_open_millis: f64,
    auditor: Auditor,
    pub index: Index,
    pub ledger: Ledger,
}

impl Grown {
    /// The log of `events` events below `place`, built when it is not there or of another format.
    pub fn of(place: &Path, events: u64) -> Self {
        let directory = place.join(format!("events-{events}"));
        if let Some(grown) = Self::kept(&directory, events) {
            return grown;
        }
        if directory.exists() {
            std::fs::remove_dir_all(&directory).unwrap();
        }
        std::fs::create_dir_all(&directory).unwrap();
        let (took, places) = seconds(|| build(&directory, events));
        eprintln!("built a log of {events} events in {} s", number(took));
        let places: Vec<Value> = places.iter().map(Place::to_json).collect();
        let stamp = json!({"workload": WORKLOAD_VERSION, "events": events, "places": places});
        std::fs::write(directory.join(STAMP), stamp.to_string()).unwrap();
        Self::kept(&directory, events).unwrap()
    }

    fn kept(directory: &Path, events: u64) -> Option<Self> {
        let stamp: Value = serde_json::from_slice(&std::fs::read(directory.join(STAMP)).ok()?).ok()?;
        if stamp["workload"] != WORKLOAD_VERSION || stamp["events"] != events {
            return None;
        }
        // Refused when the format has changed since.
        storage::log::Reader::open(&directory.join("log")).ok()?;
        let places = stamp["places"].as_array()?.iter().map(Place::from_json).collect();
        Some(Self { directory: directory.to_owned(), places })
    }

    pub fn log_directory(&self) -> PathBuf {
        self.directory.join("log")
    }

    pub fn index_directory(&self) -> PathBuf {
        self.directory.join("index")
    }

    pub fn open(&self) -> Running {
        Running::open(&self.directory)
    }
}

impl Running {
    pub fn open(directory: &Path) -> Self {
        let (log_open_millis, log) = milliseconds(|| Log::open(LogOptions::new(directory.join("log"))).unwrap());
        let auditor = Auditor::start(log.clone(), AuditOptions::new(directory.join("audit"))).unwrap();
        let index = Index::start(&directory.join("index"), log.reader(), log.watch());
        let key = CursorKey::load_or_create(&directory.join("cursor.key")).unwrap();
        let ledger = Ledger::new(log.reader(), index.clone(), key);
        Self { log, log_open_millis, auditor, index, ledger }
    }

    /// Waits until the index has seen everything.
    pub async fn caught_up(&self) {
        let last_seq = self.log.watch().borrow().last_seq;
        self.index.caught_up(last_seq).await;
    }

    /// Waits until the index has nothing left to write either.
    pub async fn settled(&self) {
        self.caught_up().await;
        let (mut tables, mut quiet) = (0, 0);
        while quiet < QUIET_LOOKS {
            tokio::time::sleep(Duration::from_millis(50)).await;
            let now = self.index.health().tables;
            quiet = if now == tables { quiet + 1 } else { 0 };
            tables = now;
        }
    }

    pub async fn close(self) {
        self.index.close();
        close(&self.log, &self.auditor).await;
    }
}

async fn close(log: &Log, auditor: &Auditor) {
    log.seal().await.unwrap();
    auditor.close().await;
    log.close().await.unwrap();
}

/// Fills a log; the workload's time is the log's.
fn build(directory: &Path, events: u64) -> Vec<Place> {
    let clock = Arc::new(ManualClock::default());
    let mut options = LogOptions::new(directory.join("log"));
    options.clock = clock.clone();
    let log = Log::open(options).unwrap();
    let auditor = Auditor::start(log.clone(), AuditOptions::new(directory.join("audit"))).unwrap();
    let (sender, batches) = sync_channel(4);
    let maker = std::thread::spawn(move || {
        let mut workload = Workload::new(1);
        let mut left = usize::try_from(events).unwrap();
        while left > 0 {
            let drafts = workload.take(left.min(COMMIT_EVENTS));
            left -= drafts.len();
            sender.send((workload.micros(), drafts)).unwrap();
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let mut places: Vec<Place> = Vec::new();
    for (micros, drafts) in batches {
        clock.set_micros(micros);
        let bodies: Vec<Vec<u8>> = drafts.iter().map(|draft| draft.body.clone()).collect();
        let appended = runtime.block_on(log.commit(drafts)).unwrap();
        if appended.last_seq * PLACES >= (places.len() as u64 + 1) * events {
            let mut found = (appended.first_seq..).zip(&bodies).filter_map(|(seq, body)| Place::of(seq, micros, body));
            places.extend(found.next());
        }
    }
    maker.join().unwrap();
    // So that logs of all sizes are in the same state: sealed and written anew.
    runtime.block_on(log.roll()).unwrap();
    write_anew(&log);
    runtime.block_on(close(&log, &auditor));
    places
}

/// As the gateway does with what is sealed.
fn write_anew(log: &Log) {
    let segments = log.reader().segments().unwrap();
    for segment in segments.iter().filter(|segment| segment.last_seq.is_some()) {
        log.rewrite(segment.number, &mut |_| Fate::Keep).unwrap().install(false).unwrap();
    }
}

impl Place {
    /// `None` when the event belongs to another owner, or to no request within a call.
    fn of(seq: u64, micros: i64, body: &[u8]) -> Option<Self> {
        let mut record = Vec::new();
        put_record(&mut record, seq, micros, body);
        let (view, _) = EventView::split_from(&record).unwrap();
        let text = |field| view.context(field).map(str::to_owned);
        if view.context(ContextField::Owner) != Some(OWNER) {
            return None;
        }
        Some(Self {
            seq,
            micros,
            session: text(ContextField::SessionId)?,
            page: text(ContextField::PageId)?,
            operation: text(ContextField::OperationId)?,
            request: text(ContextField::RequestId)?,
        })
    }

    fn to_json(&self) -> Value {
        json!([self.seq, self.micros, self.session, self.page, self.operation, self.request])
    }

    fn from_json(stored: &Value) -> Self {
        let text = |place: usize| stored[place].as_str().unwrap().to_owned();
        let (seq, micros) = (stored[0].as_u64().unwrap(), stored[1].as_i64().unwrap());
        Self { seq, micros, session: text(2), page: text(3), operation: text(4), request: text(5) }
    }
}

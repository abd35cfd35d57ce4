//! The program that is killed, frozen and traced: many writers of one log, and two that watch it.
//!
//! What was acknowledged, and what a subscriber was shown, it notes in files of its own, outside the
//! disk under test; a line of notes is one write, so that it is there as a whole or not at all.

use std::fs::{File, OpenOptions};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use storage::event::EventView;
use storage::log::{Durability, Log, LogOptions, Reader};
use storage::time::{Clock, now_micros};
use tokio::task::JoinSet;

use super::housekeeping;
use super::payload::Origin;
use crate::support::dice::mix;

/// Names the orders, as JSON.
pub const ORDERS: &str = "TORTURE_WRITER";
/// One request holds at most this many events.
const REQUEST_EVENTS_MAX: u64 = 8;
/// One request in this many is not waited for.
const UNAWAITED_EVERY: u64 = 5;
/// How often a reader from outside looks at the mark.
const LOOK: Duration = Duration::from_millis(3);

/// What the program is to do.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Orders {
    /// Directory of the log, or of sled's database.
    pub store: PathBuf,
    /// Directory for the notes.
    pub notes: PathBuf,
    pub run: u64,
    pub writers: u64,
    /// Requests of each writer, after which it closes in order; none: until it is killed.
    pub requests: Option<u64>,
    /// Each writer begins a request this often at the most.
    pub pause_micros: u64,
    pub segment_bytes: u64,
    pub subscribers: bool,
    /// How far its clock is behind.
    pub clock_behind_micros: i64,
    pub engine: Engine,
    /// Whether the log is signed, indexed, compressed and rid of old noise meanwhile, all in haste.
    pub housekeeping: bool,
    /// Syncs follow this long after an acknowledgement at the most; none: they come before it.
    pub sync_interval_millis: Option<u64>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Engine {
    Log,
    /// For comparison: sled, acknowledging after its flush.
    Sled,
}

/// A clock that is behind by the same time always.
struct Behind(i64);

impl Clock for Behind {
    fn now_micros(&self) -> i64 {
        now_micros() - self.0
    }
}

/// A file of notes, shared by those who write them.
#[derive(Clone)]
struct Notes {
    file: Arc<File>,
    began: Instant,
}

impl Notes {
    fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path).expect("notes can be taken");
        Self { file: Arc::new(file), began: Instant::now() }
    }

    fn write(&self, lines: &str) {
        (&*self.file).write_all(lines.as_bytes()).expect("notes can be taken");
    }
}

/// What tells whether an event is the one that was shown.
#[must_use]
pub fn digest(event: &EventView<'_>) -> u64 {
    let mut hasher = DefaultHasher::new();
    event.recorded_at_micros.hash(&mut hasher);
    event.body.hash(&mut hasher);
    hasher.finish()
}

#[test]
#[ignore = "no test: the program that this module's tests kill"]
fn writer() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).expect("the orders are understood");
    let acked = Notes::open(&orders.notes.join(format!("acked-{}", orders.run)));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.expect("a runtime").block_on(async {
        match orders.engine {
            Engine::Log => write_log(orders, acked).await,
            Engine::Sled => write_sled(&orders, &acked).await,
        }
    });
    // Past the test runner, whose report nobody reads.
    std::process::exit(0);
}

async fn write_log(orders: Orders, acked: Notes) {
    let mut options = LogOptions::new(&orders.store);
    options.segment_bytes = orders.segment_bytes;
    if let Some(millis) = orders.sync_interval_millis {
        options.durability = Durability::Interval { millis };
    }
    options.clock = Arc::new(Behind(orders.clock_behind_micros));
    let log = Log::open(options).unwrap_or_else(|error| panic!("the log opens: {error}"));
    let health = log.health();
    acked.write(&format!("o {} {}\n", health.epoch, health.last_seq));
    if orders.subscribers {
        let notes = |who: &str| Notes::open(&orders.notes.join(format!("seen-{who}-{}", orders.run)));
        let (inside, outside) = (notes("inside"), notes("outside"));
        let (reader, news) = (log.reader(), log.watch());
        tokio::task::spawn_blocking(move || watch_inside(&reader, news, &inside));
        let reader = Reader::open(&orders.store).expect("a log that is open can be read from outside");
        tokio::spawn(watch_outside(reader, outside));
    }
    let housekeeping = orders.housekeeping.then(|| housekeeping::start(&log, &orders.store));
    let mut writers = JoinSet::new();
    for writer in 0..orders.writers {
        writers.spawn(write(log.clone(), orders.clone(), writer, acked.clone()));
    }
    while let Some(ended) = writers.join_next().await {
        ended.expect("no writer panics");
    }
    if let Some(housekeeping) = housekeeping {
        housekeeping.close().await;
    }
    log.close().await.expect("the log closes");
    acked.write("c\n");
}

/// One writer: its requests go in one after another, most of them waited for.
async fn write(log: Log, orders: Orders, writer: u64, acked: Notes) {
    let mut pace = tokio::time::interval(Duration::from_micros(orders.pause_micros.max(1)));
    let (run, mut number) = (orders.run, 0);
    for request in 0..orders.requests.unwrap_or(u64::MAX) {
        pace.tick().await;
        let count = 1 + mix(mix(run) ^ mix(writer) ^ request) % REQUEST_EVENTS_MAX;
        let mut drafts: Vec<_> =
            (number..number + count).map(|number| Origin { run, writer, number }.draft()).collect();
        if request % UNAWAITED_EVERY == UNAWAITED_EVERY - 1 {
            match log.offer(drafts) {
                Ok(()) => {
                    number += count;
                    continue;
                }
                Err(refused) => drafts = refused.drafts,
            }
        }
        let appended = log.commit(drafts).await.expect("the log records");
        let elapsed = acked.began.elapsed().as_micros();
        acked.write(&format!("a {} {} {writer} {number} {elapsed}\n", appended.first_seq, appended.last_seq));
        number += count;
    }
}

/// Notes every event as the log's own process is shown it.
fn watch_inside(reader: &Reader, mut news: tokio::sync::watch::Receiver<storage::log::Durable>, notes: &Notes) {
    let runtime = tokio::runtime::Handle::current();
    let mut next_seq = news.borrow_and_update().last_seq + 1;
    while runtime.block_on(news.changed()).is_ok() {
        news.borrow_and_update();
        next_seq = note_from(reader, next_seq, notes);
    }
}

/// Notes every event as another process is shown it.
async fn watch_outside(reader: Reader, notes: Notes) {
    let mut next_seq = reader.durable().expect("the mark can be read").last_seq + 1;
    let mut look = tokio::time::interval(LOOK);
    loop {
        look.tick().await;
        let (reader, notes) = (reader.clone(), notes.clone());
        let noted = tokio::task::spawn_blocking(move || note_from(&reader, next_seq, &notes)).await;
        next_seq = noted.expect("no subscriber panics");
    }
}

fn note_from(reader: &Reader, from_seq: u64, notes: &Notes) -> u64 {
    let (mut next_seq, mut lines) = (from_seq, String::new());
    let scanned = reader.scan(from_seq, &|_| true, &mut |event| {
        assert_eq!(event.seq, next_seq, "a subscriber is shown every number");
        next_seq += 1;
        lines.push_str(&format!("s {} {}\n", event.seq, digest(event)));
        ControlFlow::Continue(())
    });
    scanned.expect("the log can be read");
    if !lines.is_empty() {
        notes.write(&lines);
    }
    next_seq
}

/// One writer of sled, which acknowledges when its flush has returned.
async fn write_sled(orders: &Orders, acked: &Notes) {
    let mut pace = tokio::time::interval(Duration::from_micros(orders.pause_micros.max(1)));
    let database = sled::open(&orders.store).expect("sled opens");
    acked.write("o 1 0\n");
    let mut seq = 0u64;
    for number in 0..orders.requests.unwrap_or(u64::MAX) {
        pace.tick().await;
        let first_seq = seq + 1;
        for _ in 0..REQUEST_EVENTS_MAX {
            seq += 1;
            let draft = Origin { run: orders.run, writer: 0, number: seq }.draft();
            database.insert(seq.to_be_bytes(), draft.body).expect("sled takes it");
        }
        database.flush().expect("sled flushes");
        acked.write(&format!("a {first_seq} {seq} 0 {number} {}\n", acked.began.elapsed().as_micros()));
    }
}

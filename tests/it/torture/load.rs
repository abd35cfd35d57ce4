//! R01: ten thousand events a second through the append path, with four readers: what was produced is
//! stored or declared to the last event, acknowledgements stay quick, readers keep up, memory stays small.

use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use pageledger::journal::Journal;
use serde::{Deserialize, Serialize};
use storage::event::catalog::{ConsoleMessage, Gap};
use storage::event::{Clean, Context, Draft, Kind, Level, Payload, Symbol};
use storage::ids::Owner;
use storage::index::Index;
use storage::limits::QUEUE_BYTES_MAX;
use storage::log::{Log, LogOptions, Reader};
use storage::query::{CursorKey, EventFilter, Ledger, Order, PageRequest};
use tokio::task::JoinSet;

use crate::support::check::{Check, is_long, short_or_long};
use crate::support::program;

/// Names the orders of the loaded program, as JSON.
const ORDERS: &str = "TORTURE_LOAD";
const EVENTS_PER_SECOND: u64 = 10_000;
const PRODUCERS: u64 = 10;
/// Of the producers, those who do not wait for what they say.
const UNAWAITED: u64 = 2;
const TICK: Duration = Duration::from_millis(10);
const TEXT_BYTES: usize = 300;
const ACKNOWLEDGED_P99_LIMIT: Duration = Duration::from_millis(50);
const LAG_LIMIT: Duration = Duration::from_secs(2);
const RESIDENT_BYTES_MAX: u64 = 300 << 20;
/// Less than the producers have to say in the time of one sync.
const QUEUE_BYTES_SMALL: usize = 16 * 1024;
/// In `make test` other tests and their browsers run on the same cores.
const BUSY_FACTOR: u32 = 20;

#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    data: PathBuf,
    seconds: u64,
    queue_bytes_max: usize,
    report: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    produced: u64,
    stored: u64,
    declared: u64,
    acknowledged: u64,
    p50_micros: u64,
    p99_micros: u64,
    lag_millis: u64,
    /// Events that each reader was given.
    read: Vec<u64>,
    resident_bytes: u64,
    seconds: f64,
}

#[test]
#[ignore = "no test: the program under load of this module's test"]
fn loaded() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).expect("the orders are understood");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let report = runtime.expect("a runtime").block_on(produce_and_read(&orders));
    fs::write(&orders.report, serde_json::to_string(&report).expect("it is JSON")).expect("it is written");
    std::process::exit(0);
}

pub fn draft(producer: u64, number: u64) -> Draft {
    let context = Context {
        session_id: Some(format!("load-{producer}").as_str().into()),
        owner: Some("local".into()),
        ..Context::default()
    };
    let mut text = format!("event {number} of producer {producer}: ");
    while text.len() < TEXT_BYTES {
        text.push_str("so it goes on and on, ");
    }
    let message = ConsoleMessage {
        level: Level::Info,
        r#type: Symbol::fold("log"),
        text: Clean::redacted(text),
        url: Some(Clean::fixed("http://127.0.0.1/page")),
        line: Some(number),
        column: Some(7),
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context, &message)
}

async fn produce_and_read(orders: &Orders) -> Report {
    let mut options = LogOptions::new(orders.data.join("log"));
    options.queue_bytes_max = orders.queue_bytes_max;
    let log = Log::open(options).expect("the log opens");
    let index = Index::start(&orders.data.join("index"), log.reader(), log.watch());
    let key = CursorKey::load_or_create(&orders.data.join("cursor.key")).expect("the key is made");
    let ledger = Ledger::new(log.reader(), index, key);
    let done = Arc::new(AtomicBool::new(false));
    let mut readers = JoinSet::new();
    for _ in 0..2 {
        readers.spawn(subscribe(log.clone(), done.clone()));
    }
    for producer in 0..2 {
        readers.spawn(page_through(ledger.clone(), producer, done.clone()));
    }
    let began = Instant::now();
    let journal = Journal::new(log.clone());
    let ticks = orders.seconds * 1_000 / TICK.as_millis() as u64;
    let mut producers = JoinSet::new();
    for producer in 0..PRODUCERS {
        producers.spawn(produce(journal.clone(), producer, ticks));
    }
    let mut waits = Vec::new();
    let mut report = Report::default();
    while let Some(ended) = producers.join_next().await {
        let (produced, waited) = ended.expect("no producer panics");
        report.produced += produced;
        waits.extend(waited);
    }
    report.seconds = began.elapsed().as_secs_f64();
    // What was shed last is declared with the next event that is not waited for.
    journal.record(Vec::new());
    log.commit(Vec::new()).await.expect("the log records");
    let stopped = Instant::now();
    done.store(true, Ordering::SeqCst);
    while let Some(read) = readers.join_next().await {
        report.read.push(read.expect("no reader panics"));
    }
    report.lag_millis = u64::try_from(stopped.elapsed().as_millis()).unwrap_or(u64::MAX);
    (report.stored, report.declared) = count(&log.reader());
    waits.sort_unstable();
    report.acknowledged = waits.len() as u64;
    let at = |hundredth: usize| waits.get(waits.len() * hundredth / 100).map_or(0, |wait| wait.as_micros() as u64);
    (report.p50_micros, report.p99_micros) = (at(50), at(99));
    report.resident_bytes = peak_resident_bytes();
    log.close().await.expect("the log closes");
    report
}

/// One producer at a steady rate, which makes up for ticks that it missed.
async fn produce(journal: Journal, producer: u64, ticks: u64) -> (u64, Vec<Duration>) {
    let per_tick = EVENTS_PER_SECOND * TICK.as_millis() as u64 / 1_000 / PRODUCERS;
    let mut pace = tokio::time::interval(TICK);
    let (mut number, mut waits) = (0, Vec::new());
    for _ in 0..ticks {
        pace.tick().await;
        let drafts: Vec<Draft> = (number..number + per_tick).map(|number| draft(producer, number)).collect();
        number += per_tick;
        if producer < UNAWAITED {
            journal.record(drafts);
            continue;
        }
        let asked = Instant::now();
        journal.commit(drafts).await.expect("the log records");
        waits.push(asked.elapsed());
    }
    (number, waits)
}

/// Follows everything as it becomes durable, until the end.
async fn subscribe(log: Log, done: Arc<AtomicBool>) -> u64 {
    let (mut news, reader) = (log.watch(), log.reader());
    let count = Arc::new(AtomicU64::new(0));
    let mut next_seq = 1;
    loop {
        let last_seq = news.borrow_and_update().last_seq;
        if next_seq <= last_seq {
            let (reader, count) = (reader.clone(), count.clone());
            let scanned = tokio::task::spawn_blocking(move || {
                reader.scan(next_seq, &|_| true, &mut |event| {
                    count.fetch_add(u64::from(event.kind() == Some(Kind::ConsoleMessage)), Ordering::Relaxed);
                    next_seq = event.seq + 1;
                    ControlFlow::Continue(())
                })?;
                Ok::<u64, storage::StorageError>(next_seq)
            });
            next_seq = scanned.await.expect("no subscriber panics").expect("the log can be read");
        } else if done.load(Ordering::SeqCst) {
            return count.load(Ordering::Relaxed);
        } else {
            // Looked at again when nothing comes, since the end is no event.
            let _ = tokio::time::timeout(TICK, news.changed()).await;
        }
    }
}

/// Reads one session page by page, again and again from where it had come to.
async fn page_through(ledger: Ledger, producer: u64, done: Arc<AtomicBool>) -> u64 {
    let filter = EventFilter { session_id: Some(format!("load-{producer}").as_str().into()), ..EventFilter::default() };
    let filter = filter.compile().expect("the filter is valid");
    let owner = Owner::from("local");
    let (mut after, mut count) = (None, 0);
    let mut pace = tokio::time::interval(TICK);
    loop {
        let last = done.load(Ordering::SeqCst);
        let request =
            PageRequest { filter: &filter, order: Order::Oldest, after: after.as_deref(), limit: 500, owner: &owner };
        let page = ledger.page(&request).await.expect("the page is read");
        let messages = page.items.iter().filter(|item| item.view().kind() == Some(Kind::ConsoleMessage));
        count += messages.count() as u64;
        after = Some(page.next_cursor);
        if !page.has_more {
            if last {
                return count;
            }
            pace.tick().await;
        }
    }
}

/// Messages that are stored, and those that gaps declare.
fn count(reader: &Reader) -> (u64, u64) {
    let (mut stored, mut declared) = (0, 0);
    let scanned = reader.scan(1, &|_| true, &mut |event| {
        stored += u64::from(event.kind() == Some(Kind::ConsoleMessage));
        declared += Gap::take(event).map_or(0, |gap| gap.count);
        ControlFlow::Continue(())
    });
    scanned.expect("the log can be read");
    (stored, declared)
}

pub fn peak_resident_bytes() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let peak =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.trim().strip_suffix("kB")?.trim().parse().ok());
    peak.map_or(0, |kibibytes: u64| kibibytes * 1024)
}

async fn under_load(directory: &Path, seconds: u64, queue_bytes_max: usize) -> Report {
    let report = directory.join("report");
    let orders = Orders { data: directory.to_owned(), seconds, queue_bytes_max, report: report.clone() };
    let orders = serde_json::to_string(&orders).expect("orders are JSON");
    program::this(&["--ignored", "--exact", "torture::load::loaded"], &[(ORDERS, &orders)]).await;
    serde_json::from_str(&fs::read_to_string(&report).expect("there is a report")).expect("it is one")
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_events_a_second_are_stored_or_declared() {
    let mut check = Check::begin("R01", "10,000 events/s with 4 readers");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let seconds = short_or_long(5, 60);
    let report = under_load(directory.path(), seconds, QUEUE_BYTES_MAX).await;
    assert_eq!(report.produced, EVENTS_PER_SECOND * seconds);
    assert_eq!(report.stored + report.declared, report.produced, "{report:?}");
    let per_producer = report.produced / PRODUCERS;
    let mut read = report.read.clone();
    read.sort_unstable();
    assert_eq!(read[2..], [report.stored, report.stored], "subscribers are given everything: {report:?}");
    // The sessions of the first two producers, who may have shed.
    assert!(
        read[..2].iter().all(|read| *read <= per_producer && per_producer - *read <= report.declared),
        "{report:?}"
    );
    let slower = if is_long() { 1 } else { BUSY_FACTOR };
    assert!(Duration::from_micros(report.p99_micros) <= ACKNOWLEDGED_P99_LIMIT * slower, "{report:?}");
    assert!(Duration::from_millis(report.lag_millis) <= LAG_LIMIT * slower, "{report:?}");
    assert!(report.resident_bytes <= RESIDENT_BYTES_MAX, "{report:?}");
    check.tried(1);
    check.figure("produced", report.produced);
    check.figure("stored", report.stored);
    check.figure("declared", report.declared);
    check.figure("p50 us", report.p50_micros);
    check.figure("p99 us", report.p99_micros);
    check.figure("lag ms", report.lag_millis);
    check.figure("resident MB", report.resident_bytes >> 20);
    check.figure("events/s", (report.produced as f64 / report.seconds) as u64);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_finds_no_room_in_the_queue_is_declared_to_the_last_event() {
    let mut check = Check::begin("R01", "10,000 events/s into a queue of 16 KiB");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let seconds = short_or_long(2, 10);
    let report = under_load(directory.path(), seconds, QUEUE_BYTES_SMALL).await;
    assert!(report.declared > 0, "nothing was shed: {report:?}");
    assert_eq!(report.stored + report.declared, report.produced, "{report:?}");
    check.tried(1);
    check.figure("produced", report.produced);
    check.figure("stored", report.stored);
    check.figure("declared", report.declared);
}

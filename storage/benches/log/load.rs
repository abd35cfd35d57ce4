//! A steady load with readers: how long an append waits for its acknowledgement.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::time::{Duration, Instant};

use storage::event::{Draft, Kind, Level};
use storage::ids::Owner;
use storage::query::{EventFilter, Ledger, Order, PageRequest};

use crate::grown::Running;
use crate::setting;
use crate::table::{head, number, quantile, resident_mebibytes, row};
use crate::workload::{OWNER, Workload};

const EVENTS_PER_SECOND: u64 = 10_000;
const WRITERS: u64 = 8;
const READERS: usize = 4;
/// What one writer commits at once.
const COMMIT_EVENTS: u64 = 10;

pub fn run(place: &Path) {
    let seconds = setting("BENCH_LOAD_SECONDS", 10);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    head(&["load, 10,000 events/s", "ack p50 ms", "p99 ms", "max ms", "pages/s", "page p99 ms", "lag s", "MiB"]);
    for (name, readers, pause_millis) in
        [("no readers", 0, 0), ("4 readers, 100 pages/s each", READERS, 10), ("4 readers, never resting", READERS, 0)]
    {
        let scratch = tempfile::tempdir_in(place).unwrap();
        let outcome = runtime.block_on(under_load(scratch.path(), seconds, readers, pause_millis));
        outcome.report(&format!("{seconds} s, {name}"));
    }
}

struct Outcome {
    acks: Vec<f64>,
    pages: Vec<f64>,
    seconds: f64,
    lag: f64,
}

impl Outcome {
    fn report(mut self, name: &str) {
        let pages_per_second = self.pages.len() as f64 / self.seconds;
        let page_p99 = if self.pages.is_empty() { 0.0 } else { quantile(&mut self.pages, 0.99) };
        row(&[
            name.to_owned(),
            number(quantile(&mut self.acks, 0.5)),
            number(quantile(&mut self.acks, 0.99)),
            number(quantile(&mut self.acks, 1.0)),
            number(pages_per_second),
            number(page_p99),
            number(self.lag),
            number(resident_mebibytes()),
        ]);
    }
}

async fn under_load(directory: &Path, seconds: u64, readers: usize, pause_millis: u64) -> Outcome {
    let running = Running::open(directory);
    let commits = seconds * EVENTS_PER_SECOND / WRITERS / COMMIT_EVENTS;
    let stop = Arc::new(AtomicBool::new(false));
    let mut reading = Vec::new();
    for reader in 0..readers {
        reading.push(tokio::spawn(read(running.ledger.clone(), reader, pause_millis, stop.clone())));
    }
    let mut writing = Vec::new();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let drafts: Vec<Vec<Vec<Draft>>> = (0..WRITERS).map(|writer| of_writer(writer, commits)).collect();
    let began = Instant::now();
    for drafts in drafts {
        writing.push(tokio::spawn(write(running.log.clone(), drafts, began, acknowledged.clone())));
    }
    let mut acks = Vec::new();
    for task in writing {
        acks.extend(task.await.unwrap());
    }
    let (seconds_taken, ended) = (began.elapsed().as_secs_f64(), Instant::now());
    running.caught_up().await;
    let lag = ended.elapsed().as_secs_f64();
    stop.store(true, Relaxed);
    let mut pages = Vec::new();
    for task in reading {
        pages.extend(task.await.unwrap());
    }
    assert_eq!(acknowledged.load(Relaxed), commits * COMMIT_EVENTS * WRITERS);
    running.close().await;
    Outcome { acks, pages, seconds: seconds_taken, lag }
}

fn of_writer(writer: u64, commits: u64) -> Vec<Vec<Draft>> {
    let mut workload = Workload::new(writer);
    (0..commits).map(|_| workload.take(COMMIT_EVENTS as usize)).collect()
}

/// Commits at fixed moments, so that a slow acknowledgement is not hidden by asking less.
async fn write(log: storage::log::Log, batches: Vec<Vec<Draft>>, began: Instant, done: Arc<AtomicU64>) -> Vec<f64> {
    let pace = Duration::from_micros(1_000_000 * WRITERS * COMMIT_EVENTS / EVENTS_PER_SECOND);
    let mut acks = Vec::with_capacity(batches.len());
    for (number, drafts) in (0u32..).zip(batches) {
        let due = began + pace * number;
        tokio::time::sleep_until(due.into()).await;
        let appended = log.commit(drafts).await.unwrap();
        acks.push(due.elapsed().as_secs_f64() * 1000.0);
        done.fetch_add(appended.last_seq + 1 - appended.first_seq, Relaxed);
    }
    acks
}

/// Two walk everything from the beginning, one follows errors, one the newest console lines.
async fn read(ledger: Ledger, reader: usize, pause_millis: u64, stop: Arc<AtomicBool>) -> Vec<f64> {
    let owner = Owner::from(OWNER);
    let filter = match reader {
        2 => EventFilter { level: Some(Level::Error), ..EventFilter::default() },
        3 => EventFilter { kinds: Some(vec![Kind::ConsoleMessage]), ..EventFilter::default() },
        _ => EventFilter::default(),
    };
    let filter = filter.compile().unwrap();
    let order = if reader == 3 { Order::Newest } else { Order::Oldest };
    let (mut after, mut pages) = (None::<String>, Vec::new());
    while !stop.load(Relaxed) {
        let request = PageRequest { filter: &filter, order, after: after.as_deref(), limit: 100, owner: &owner };
        let started = Instant::now();
        let page = ledger.page(&request).await.unwrap();
        pages.push(started.elapsed().as_secs_f64() * 1000.0);
        after = (order == Order::Oldest).then_some(page.next_cursor);
        if pause_millis > 0 {
            tokio::time::sleep(Duration::from_millis(pause_millis)).await;
        }
    }
    pages
}

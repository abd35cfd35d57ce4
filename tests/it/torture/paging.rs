//! R04: a long history is read by cursor, page after page, while more is appended to it: nothing is
//! skipped or repeated, a page costs the same at the end as at the beginning, and memory does not grow.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};
use storage::event::{Kind, ValueRef};
use storage::ids::Owner;
use storage::index::Index;
use storage::log::{Log, LogOptions};
use storage::query::{CursorKey, EventFilter, Ledger, Order, PageRequest};

use super::load::{draft, peak_resident_bytes};
use crate::support::check::{Check, is_long, short_or_long};
use crate::support::program;

/// Names the orders of the reading program, as JSON.
const ORDERS: &str = "TORTURE_PAGING";
const COMMIT_EVENTS: u64 = 1_000;
const PAGE_EVENTS: usize = 500;
/// Appended this often meanwhile, a hundred events at a time.
const APPENDED_EVERY: Duration = Duration::from_millis(50);
const APPENDED_EVENTS: u64 = 100;
const SEGMENT_BYTES: u64 = 16 << 20;
const GROWTH_BYTES_MAX: u64 = 32 << 20;
const PAGE_P95_LIMIT: Duration = Duration::from_millis(100);
const REOPENED_LIMIT: Duration = Duration::from_secs(5);
/// In `make test` other tests and their browsers run on the same cores.
const BUSY_FACTOR: u32 = 20;

#[derive(Debug, Serialize, Deserialize)]
struct Orders {
    data: PathBuf,
    events: u64,
    report: PathBuf,
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Report {
    read: u64,
    appended_meanwhile: u64,
    pages: u64,
    p50_micros: u64,
    p95_micros: u64,
    growth_bytes: u64,
    reopened_millis: u64,
}

struct Store {
    log: Log,
    ledger: Ledger,
}

impl Store {
    fn open(data: &Path) -> Self {
        let mut options = LogOptions::new(data.join("log"));
        options.segment_bytes = SEGMENT_BYTES;
        let log = Log::open(options).expect("the log opens");
        let index = Index::start(&data.join("index"), log.reader(), log.watch());
        let key = CursorKey::load_or_create(&data.join("cursor.key")).expect("the key is made");
        let ledger = Ledger::new(log.reader(), index, key);
        Self { log, ledger }
    }

    async fn close(self) {
        self.ledger.index().close();
        self.log.close().await.expect("the log closes");
    }
}

#[test]
#[ignore = "no test: the reading program of this module's test"]
fn paged() {
    let Ok(orders) = std::env::var(ORDERS) else { return };
    let orders: Orders = serde_json::from_str(&orders).expect("the orders are understood");
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    let report = runtime.expect("a runtime").block_on(fill_and_read(&orders));
    fs::write(&orders.report, serde_json::to_string(&report).expect("it is JSON")).expect("it is written");
    std::process::exit(0);
}

async fn fill_and_read(orders: &Orders) -> Report {
    let store = Store::open(&orders.data);
    for first in (0..orders.events).step_by(COMMIT_EVENTS as usize) {
        let last = (first + COMMIT_EVENTS).min(orders.events);
        store.log.commit((first..last).map(|number| draft(0, number)).collect()).await.expect("the log records");
    }
    let last_seq = store.log.watch().borrow().last_seq;
    store.ledger.index().caught_up(last_seq).await;
    store.close().await;

    let began = Instant::now();
    let store = Store::open(&orders.data);
    let mut walk = Walk::new(&store.ledger);
    walk.page().await;
    let mut report = Report { reopened_millis: began.elapsed().as_millis() as u64, ..Report::default() };
    let done = Arc::new(AtomicBool::new(false));
    let appending = tokio::spawn(append(store.log.clone(), orders.events, done.clone()));
    // The first pages fill caches that stay.
    while walk.times.len() < 20 {
        walk.page().await;
    }
    let before = peak_resident_bytes();
    while walk.count < orders.events {
        walk.page().await;
    }
    report.growth_bytes = peak_resident_bytes() - before;
    done.store(true, Ordering::SeqCst);
    report.appended_meanwhile = appending.await.expect("it appends");
    while walk.page().await {}
    (report.read, report.pages) = (walk.count, walk.times.len() as u64);
    walk.times.sort_unstable();
    let at = |hundredth: usize| walk.times[walk.times.len() * hundredth / 100].as_micros() as u64;
    (report.p50_micros, report.p95_micros) = (at(50), at(95));
    store.close().await;
    report
}

async fn append(log: Log, from: u64, done: Arc<AtomicBool>) -> u64 {
    let mut pace = tokio::time::interval(APPENDED_EVERY);
    let mut number = from;
    while !done.load(Ordering::SeqCst) {
        pace.tick().await;
        let drafts = (number..number + APPENDED_EVENTS).map(|number| draft(0, number)).collect();
        log.commit(drafts).await.expect("the log records");
        number += APPENDED_EVENTS;
    }
    number - from
}

/// A walk by cursor over everything that the producer said.
struct Walk<'a> {
    ledger: &'a Ledger,
    after: Option<String>,
    count: u64,
    times: Vec<Duration>,
}

impl<'a> Walk<'a> {
    fn new(ledger: &'a Ledger) -> Self {
        Self { ledger, after: None, count: 0, times: Vec::new() }
    }

    /// Reads the next page; true when there is more.
    async fn page(&mut self) -> bool {
        let filter = EventFilter { session_id: Some("load-0".into()), ..EventFilter::default() };
        let filter = filter.compile().expect("the filter is valid");
        let (owner, began) = (Owner::from("local"), Instant::now());
        let after = self.after.as_deref();
        let request = PageRequest { filter: &filter, order: Order::Oldest, after, limit: PAGE_EVENTS, owner: &owner };
        let page = self.ledger.page(&request).await.expect("the page is read");
        self.times.push(began.elapsed());
        for item in &page.items {
            assert_eq!(item.view().kind(), Some(Kind::ConsoleMessage));
            let number = item.view().get("line").and_then(ValueRef::as_u64);
            assert_eq!(number, Some(self.count), "none is skipped and none repeated");
            self.count += 1;
        }
        self.after = Some(page.next_cursor);
        page.has_more
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_long_history_is_read_by_cursor_while_it_grows() {
    let mut check = Check::begin("R04", "paging by cursor while appending");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let report = directory.path().join("report");
    let events = short_or_long(20_000, 1_000_000);
    let orders = Orders { data: directory.path().to_owned(), events, report: report.clone() };
    let orders = serde_json::to_string(&orders).expect("orders are JSON");
    program::this(&["--ignored", "--exact", "torture::paging::paged"], &[(ORDERS, &orders)]).await;
    let report: Report = serde_json::from_str(&fs::read_to_string(&report).expect("a report")).expect("it is one");
    assert_eq!(report.read, events + report.appended_meanwhile, "{report:?}");
    assert!(report.appended_meanwhile > 0, "{report:?}");
    let slower = if is_long() { 1 } else { BUSY_FACTOR };
    assert!(Duration::from_micros(report.p95_micros) <= PAGE_P95_LIMIT * slower, "{report:?}");
    assert!(Duration::from_millis(report.reopened_millis) <= REOPENED_LIMIT * slower, "{report:?}");
    assert!(report.growth_bytes <= GROWTH_BYTES_MAX, "{report:?}");
    check.tried(1);
    check.figure("events", report.read);
    check.figure("appended meanwhile", report.appended_meanwhile);
    check.figure("pages", report.pages);
    check.figure("p50 us", report.p50_micros);
    check.figure("p95 us", report.p95_micros);
    check.figure("growth MB", report.growth_bytes >> 20);
    check.figure("reopen to first page ms", report.reopened_millis);
}

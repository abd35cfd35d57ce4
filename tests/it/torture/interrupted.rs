//! D13: whatever is killed in the middle of recovery, of making the index anew, of compressing and
//! removing, of signing, of exporting, begins again and leaves no half state for anybody to see.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::process::Stdio;
use std::time::{Duration, Instant};

use storage::audit::verify::{Problem, Report, VerifyOptions, verify};
use storage::event::{EventView, Kind, Level, ValueRef};
use storage::ids::Owner;
use storage::index::Index;
use storage::log::{Log, LogOptions, Reader};
use storage::query::{CursorKey, EventFilter, Ledger, Order, PageRequest};

use super::child::{Orders, digest};
use super::notes::Notes;
use super::payload::Origin;
use super::program::Program;
use crate::support::check::{Check, short_or_long};
use crate::support::dice::Dice;
use crate::support::{LIMIT, program};

/// A start takes about this long: what is killed within it is killed in recovery.
const START_MILLIS: u64 = 90;
const RUN_MILLIS: u64 = 1_200;
/// Once in so many rounds the index is gone before the start.
const INDEX_GONE_EVERY: u64 = 3;

/// A data directory in use, and what its writers were told over all runs.
struct Torment {
    directory: tempfile::TempDir,
    orders: Orders,
    noted: Vec<Notes>,
    /// Numbers of events that no retention may touch, with which event each is.
    lasting: BTreeMap<u64, Origin>,
}

impl Torment {
    fn new() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let data = directory.path().join("data");
        let notes = directory.path().join("notes");
        fs::create_dir_all(&data).and_then(|()| fs::create_dir_all(&notes)).expect("directories are made");
        let orders = Orders {
            writers: 4,
            pause_micros: 4_000,
            segment_bytes: 96 * 1024,
            subscribers: false,
            housekeeping: true,
            ..Orders::new(&data.join("log"), &notes)
        };
        Self { directory, orders, noted: Vec::new(), lasting: BTreeMap::new() }
    }

    fn data(&self) -> &Path {
        self.orders.store.parent().expect("a log lies in a data directory")
    }

    /// One run, killed after that time.
    async fn run(&mut self, time: Duration) {
        Program::start(&self.orders).kill_after(time).await;
        let notes = Notes::read(&self.orders.notes, self.orders.run);
        for acked in &notes.acked {
            for seq in acked.first_seq..=acked.last_seq {
                let origin = Origin { number: acked.origin.number + seq - acked.first_seq, ..acked.origin };
                if origin.is_evidence() {
                    self.lasting.insert(seq, origin);
                }
            }
        }
        self.noted.push(notes);
        self.orders.run += 1;
    }

    /// Everything that may not be removed is there and as it was; what is read is in order.
    fn check_events(&self, reader: &Reader) -> u64 {
        let (mut missing, mut before, mut held) = (self.lasting.clone(), 0, 0);
        let scanned = reader.scan(reader.first_seq(), &|_| true, &mut |event| {
            assert!(event.seq > before, "{} comes after {before}", event.seq);
            before = event.seq;
            held += 1;
            let origin = Origin::of(event);
            if let Some(origin) = origin {
                assert_eq!(event.body, origin.draft().body, "event {} is as its writer made it", event.seq);
            }
            if let Some(told) = missing.remove(&event.seq) {
                assert_eq!(Some(told), origin, "event {} is the one that was acknowledged", event.seq);
            }
            ControlFlow::Continue(())
        });
        scanned.expect("the log can be read");
        assert_eq!(missing.first_key_value(), None, "{} acknowledged errors are missing", missing.len());
        held
    }
}

fn verified(data: &Path) -> Report {
    let report = verify(&VerifyOptions::new(data), &mut |_| {}).expect("there is a log to verify");
    // Killed between its seal and the checkpoint of its closing, a log looks as if that was taken away.
    let others: Vec<_> = report.findings.iter().filter(|finding| finding.problem != Problem::Unsigned).collect();
    assert!(others.is_empty(), "{others:?}");
    report
}

/// The history of one session as the index gives it, held against the log itself.
async fn check_index(data: &Path, log: &Log) {
    let index = Index::start(&data.join("index"), log.reader(), log.watch());
    let key = CursorKey::load_or_create(&data.join("cursor.key")).expect("the key is made");
    let ledger = Ledger::new(log.reader(), index, key);
    let filter = EventFilter { session_id: Some("w-1".into()), ..EventFilter::default() };
    let (filter, owner) = (filter.compile().expect("the filter is valid"), Owner::from("local"));
    let (mut after, mut listed) = (None, Vec::new());
    loop {
        let after_text = after.as_deref();
        let request =
            PageRequest { filter: &filter, order: Order::Oldest, after: after_text, limit: 500, owner: &owner };
        let page = ledger.page(&request).await.expect("the page is read");
        listed.extend(page.items.iter().map(|item| (item.seq(), digest(&item.view()))));
        if !page.has_more {
            break;
        }
        after = Some(page.next_cursor);
    }
    ledger.index().close();
    let (reader, mut held) = (log.reader(), Vec::new());
    let is_of_session =
        |event: &EventView<'_>| event.context(storage::event::codec::ContextField::SessionId) == Some("w-1");
    let scanned = reader.scan(reader.first_seq(), &|_| true, &mut |event| {
        held.extend(is_of_session(event).then(|| (event.seq, digest(event))));
        ControlFlow::Continue(())
    });
    scanned.expect("the log can be read");
    assert_eq!(listed, held, "the index tells what the log holds");
}

impl Origin {
    /// Whether it counts as more than noise: an error on a console.
    fn is_evidence(self) -> bool {
        let mut record = Vec::new();
        storage::event::codec::put_record(&mut record, 1, 0, &self.draft().body);
        let (event, _) = EventView::split_from(&record).expect("it is an event");
        let level = event.get("level").and_then(ValueRef::as_u64).and_then(Level::from_number);
        event.kind() == Some(Kind::ConsoleMessage) && level == Some(Level::Error)
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_killed_on_the_way_begins_again() {
    let mut check = Check::begin("D13", "kills in recovery, indexing, compression, retention, signing");
    let mut dice = Dice::cast();
    let mut torment = Torment::new();
    let rounds = short_or_long(6, 50);
    let (mut slowest, mut in_recovery) = (Duration::ZERO, 0);
    for round in 0..rounds {
        if round % INDEX_GONE_EVERY == 2 {
            let _ = fs::remove_dir_all(torment.data().join("index"));
        }
        let millis = match round % 2 {
            1 => dice.within(0..START_MILLIS),
            _ => dice.within(START_MILLIS..RUN_MILLIS),
        };
        torment.run(Duration::from_millis(millis)).await;
        in_recovery += u64::from(torment.noted.last().is_some_and(|notes| notes.opened.is_none()));
        if !torment.orders.store.join("mark").exists() {
            // Killed before there was a log at all.
            continue;
        }
        verified(torment.data());
        let began = Instant::now();
        let log = Log::open(LogOptions::new(&torment.orders.store)).expect("the next start succeeds");
        slowest = slowest.max(began.elapsed());
        torment.check_events(&log.reader());
        if round % 5 == 0 {
            check_index(torment.data(), &log).await;
        }
    }
    let log = Log::open(LogOptions::new(&torment.orders.store)).expect("the log opens");
    check_index(torment.data(), &log).await;
    let held = torment.check_events(&log.reader());
    log.close().await.expect("the log closes");
    let report = verified(torment.data());
    assert!(report.checkpoints > 0 && held > 0);
    let rewritten = fs::read_dir(&torment.orders.store).expect("the log's directory").flatten();
    let rewritten = rewritten.filter(|entry| entry.file_name().to_string_lossy().contains('-')).count();
    assert!(rewritten > 0, "segments were written anew");
    check.tried(torment.noted.len());
    check.figure("killed before the log was open", in_recovery);
    check.figure("acknowledged errors, all there", torment.lasting.len());
    check.figure("events removed by retention", report.removed);
    check.figure("checkpoints", report.checkpoints);
    check.figure("slowest open ms", slowest.as_millis());
    drop(check);
    check_exports(&torment, &mut dice).await;
}

/// Kills exports on their way: a file of the name asked for is whole or not there.
async fn check_exports(torment: &Torment, dice: &mut Dice) {
    let mut check = Check::begin("D13", "kills of an export");
    let data = torment.data().display().to_string();
    let name = |format: &str, n: u64| torment.directory.path().join(format!("export-{n}.{format}"));
    for format in ["ndjson", "parquet"] {
        let line = |n: u64| {
            let out = name(format, n).display().to_string();
            ["export", "--data-dir", &data, "--session", "w-1", "--format", format, "--out", &out].map(str::to_owned)
        };
        let began = Instant::now();
        let whole = program::run_with(&line(0), &[]).await;
        assert!(whole.status.success(), "{}", String::from_utf8_lossy(&whole.stderr));
        let took = u64::try_from(began.elapsed().as_micros()).expect("it was short");
        let expected = fs::metadata(name(format, 0)).expect("it is there").len();
        for n in 1..=short_or_long(3, 25) {
            let mut command = program::command(&program::path(), &line(n));
            let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
            let time = Duration::from_micros(dice.within(0..took));
            let _ = tokio::time::timeout(time, child.wait()).await;
            child.kill().await.expect("it can be killed");
            if let Ok(facts) = fs::metadata(name(format, n)) {
                assert_eq!(facts.len(), expected, "an export that is there is whole");
            }
            let again = tokio::time::timeout(LIMIT, program::run_with(&line(n), &[])).await.expect("in time");
            assert!(again.status.success(), "{}", String::from_utf8_lossy(&again.stderr));
            assert_eq!(fs::metadata(name(format, n)).expect("it is there").len(), expected);
            check.tried(1);
        }
    }
    check.figure("half files of the name asked for", 0);
}

//! Durability by interval: what is acknowledged survives the death of the process at once, and a power
//! cut from the next sync on; the mark, the chain's progress and readers outside never run ahead of one.

use std::sync::Arc;
use std::time::Duration;

use super::super::queue::Request;
use super::super::{Durability, Log, LogOptions, Reader};
use super::faulty_io::FaultyIo;
use super::full::noise;
use super::simulated_disk::{Call, Mishap, Plan, Process, SimulatedDisk};
use super::{assert_gap_free, message, open, options, read_all, temporary, texts};
use crate::StorageError;
use crate::event::Payload;
use crate::event::catalog::LogOpened;

const LIMIT: Duration = Duration::from_secs(20);
/// Longer than any test takes.
const NEVER: Durability = Durability::Interval { millis: 3_600_000 };

fn by_interval(directory: &std::path::Path, durability: Durability) -> LogOptions {
    LogOptions { durability, ..options(directory) }
}

async fn fact(what: &str, mut holds: impl FnMut() -> bool) {
    let became = async {
        while !holds() {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
    };
    tokio::time::timeout(LIMIT, became).await.unwrap_or_else(|_| panic!("not in time: {what}"));
}

struct Cut {
    disk: SimulatedDisk,
    process: Arc<Process>,
    log: Log,
    directory: tempfile::TempDir,
}

impl Cut {
    fn open(seed: u64, durability: Durability) -> Self {
        let (disk, directory) = (SimulatedDisk::new(seed), temporary());
        let process = disk.process();
        let log = Log::open_with(by_interval(directory.path(), durability), process.clone()).expect("the log opens");
        Self { disk, process, log, directory }
    }

    async fn commit(&self, count: u64) {
        for number in 0..count {
            self.log.commit(vec![message(Some("a"), &format!("line {number}"))]).await.expect("it is recorded");
        }
    }

    /// The process dies, the power goes with it, and the log is opened again; how many lines are left.
    fn cut_power(self) -> usize {
        let reader = self.log.reader();
        let shown = read_all(&reader);
        self.process.kill();
        drop((self.log, reader));
        self.disk.cut_power();
        let log = Log::open_with(options(self.directory.path()), self.disk.process()).expect("the log opens");
        let left = read_all(&log.reader());
        assert_gap_free(&left);
        // What this opening adds comes last.
        let kept = left.iter().rposition(|(_, text)| text == "log.opened").expect("it was opened");
        assert_eq!(left[..kept], shown[..kept], "a prefix of what was");
        texts(&left).iter().filter(|text| text.starts_with("line")).count()
    }
}

#[tokio::test]
async fn a_power_cut_costs_what_came_since_the_last_sync_and_no_more() {
    let mut lost = 0;
    for seed in 1..40 {
        let cut = Cut::open(seed, NEVER);
        cut.commit(20).await;
        cut.log.sync().await.expect("it is synced");
        cut.commit(20).await;
        let left = cut.cut_power();
        assert!(left >= 20, "seed {seed}: {left} of the 20 that were synced");
        lost += 40 - left;
    }
    assert!(lost > 0, "nothing was at stake");
    for seed in 1..10 {
        let cut = Cut::open(seed, Durability::Commit);
        cut.commit(20).await;
        assert_eq!(cut.cut_power(), 20, "with durability by commit nothing ever is");
    }
}

/// Laying out room syncs the file as well, and a full disk may show only then. The writer is served by
/// hand, so that nobody else syncs anything.
#[test]
fn a_sync_that_finds_no_room_is_never_over_what_was_acknowledged() {
    let mut met = 0;
    for passes in 0..8 {
        let (disk, directory) = (SimulatedDisk::new(passes + 1), temporary());
        let process = disk.process();
        let large = LogOptions { segment_bytes: 8 * 1024 * 1024, ..by_interval(directory.path(), NEVER) };
        let (log, mut writer) = Log::prepare(large, process.clone()).expect("the log opens");
        let (calls, mishap): (fn(Call) -> bool, _) = (|call| call == Call::Sync, Mishap::NoRoom);
        process.plan(Some(Plan { passes, calls, mishap, then: None }));
        let (mut acknowledged, mut ended) = (0, false);
        for number in 0..160 {
            let mut request = Request::new(vec![message(Some("a"), &format!("line {}", noise(number, 15_000)))], None);
            match writer.commit(std::slice::from_mut(&mut request)) {
                Ok(None) => acknowledged += 1,
                Ok(Some(_)) => {}
                Err(_) => {
                    ended = true;
                    break;
                }
            }
        }
        let synced = !ended && writer.sync_written().is_ok();
        met += usize::from(synced && !process.happened().is_empty());
        process.kill();
        drop((log, writer));
        disk.cut_power();
        let log = Log::open_with(options(directory.path()), disk.process()).expect("the log opens");
        let left = texts(&read_all(&log.reader())).iter().filter(|text| text.starts_with("line")).count();
        assert!(!synced || left == acknowledged, "passes {passes}: {left} of {acknowledged}");
    }
    assert!(met > 0, "no log outlived such a sync");
}

#[tokio::test]
async fn the_death_of_the_process_costs_nothing() {
    let cut = Cut::open(3, NEVER);
    cut.commit(20).await;
    cut.process.kill();
    let Cut { disk, log, directory, .. } = cut;
    drop(log);
    let log = Log::open_with(options(directory.path()), disk.process()).expect("the log opens");
    assert_eq!(texts(&read_all(&log.reader())).iter().filter(|text| text.starts_with("line")).count(), 20);
}

#[tokio::test]
async fn mark_chain_and_readers_outside_follow_the_sync() {
    let directory = temporary();
    let log = Log::open(by_interval(directory.path(), NEVER)).expect("the log opens");
    log.sync().await.expect("the opening is synced");
    let progress = log.take_chain().expect("the opening is in the chain");
    assert_eq!((progress.first_seq, progress.last_seq), (1, 1));
    let outside = Reader::open(&directory.path().join("log")).expect("it is there");
    for _ in 0..5 {
        log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    }
    assert_eq!(log.reader().durable().expect("it is known").last_seq, 6, "readers inside see what is acknowledged");
    assert_eq!(outside.durable().expect("it is known").last_seq, 1);
    assert_eq!(log.take_chain(), None);
    assert!(log.health().unsynced_micros.is_some());
    log.sync().await.expect("it is synced");
    assert_eq!(outside.durable().expect("it is known").last_seq, 6);
    let progress = log.take_chain().expect("five more are in the chain");
    assert_eq!((progress.first_seq, progress.last_seq, progress.trail.map(|trail| trail.len())), (2, 6, Some(10)));
    assert_eq!(log.health().unsynced_micros, None);
    assert_eq!(progress.chain, log.watch().borrow().chain);
}

#[tokio::test]
async fn syncs_come_by_themselves_when_idle_and_when_busy() {
    let directory = temporary();
    let log = Log::open(by_interval(directory.path(), Durability::Interval { millis: 20 })).expect("the log opens");
    let mut taken = 0;
    let appended = log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    fact("an idle log syncs", || {
        taken = log.take_chain().map_or(taken, |progress| progress.last_seq);
        taken == appended.last_seq
    })
    .await;
    let before = taken;
    // Somebody always waits, so the writer never rests.
    let busy = async {
        while taken < before + 50 {
            log.commit(vec![message(None, "x")]).await.expect("it is recorded");
            taken = log.take_chain().map_or(taken, |progress| progress.last_seq);
        }
    };
    tokio::time::timeout(LIMIT, busy).await.expect("a busy log syncs");
}

#[tokio::test]
async fn sealing_rolling_and_laying_out_room_sync_first() {
    let directory = temporary();
    let options = LogOptions { segment_bytes: 4096, ..by_interval(directory.path(), NEVER) };
    let log = Log::open(options).expect("the log opens");
    for number in 0..40 {
        log.commit(vec![message(Some("a"), &format!("{number} {}", "x".repeat(300)))]).await.expect("it is recorded");
    }
    let sealed: Vec<u64> =
        log.reader().segments().expect("they are known").iter().filter_map(|segment| segment.last_seq).collect();
    let synced = log.take_chain().expect("segments were sealed").last_seq;
    assert!(sealed.len() > 1 && sealed.last().is_some_and(|last| *last <= synced), "{sealed:?} and {synced}");
    log.roll().await.expect("it is sealed");
    assert_eq!(log.take_chain().expect("the rest").last_seq, log.health().last_seq);
    log.commit(vec![message(None, "last")]).await.expect("it is recorded");
    log.close().await.expect("it closes");
    assert_eq!(log.take_chain().expect("the end").last_seq, log.health().last_seq);
    let log = open(directory.path());
    assert!(log.was_clean());
    let mut openings = Vec::new();
    let scanned = log.reader().scan(0, &|_| true, &mut |event| {
        openings.extend(LogOpened::take(event).ok());
        std::ops::ControlFlow::Continue(())
    });
    scanned.expect("the log is whole");
    let said = |at: usize| {
        let opened: &LogOpened = &openings[at];
        (opened.durability.as_ref().map(|word| word.as_str().to_owned()), opened.sync_interval_ms)
    };
    assert_eq!(said(0), (Some("interval".into()), Some(3_600_000)));
    assert_eq!(said(1), (Some("commit".into()), None));
}

#[tokio::test]
async fn a_sync_that_fails_is_the_end_however_late_it_comes() {
    let mut ended = 0;
    for call in 1..60 {
        let directory = temporary();
        let io = Arc::new(FaultyIo::failing_at(call, false));
        let options = by_interval(directory.path(), Durability::Interval { millis: 1 });
        let Ok(log) = Log::open_with(options, io.clone()) else { continue };
        let mut acknowledged = 0;
        let failed = async {
            while !io.has_failed() || log.health().unavailable.is_none() {
                match log.commit(vec![message(None, "x")]).await {
                    Ok(appended) => acknowledged = appended.last_seq,
                    Err(error) => {
                        assert!(matches!(error, StorageError::Unavailable { .. }), "{error}");
                        return;
                    }
                }
            }
        };
        tokio::time::timeout(LIMIT, failed).await.expect("it fails in time");
        assert!(log.commit(vec![message(None, "x")]).await.is_err() && log.sync().await.is_err());
        assert!(log.close().await.is_err());
        drop(log);
        let events = read_all(&open(directory.path()).reader());
        assert_gap_free(&events);
        assert!(events.len() as u64 >= acknowledged, "the process did not die: call {call}");
        ended += 1;
    }
    assert!(ended > 30, "{ended}");
}

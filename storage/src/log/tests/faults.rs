//! Whatever call fails, and whenever the power goes: what was acknowledged is there afterwards, what
//! failed is refused from then on, and nothing is tried again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Log, LogOptions};
use super::simulated_disk::{Call, Mishap, Plan, SimulatedDisk};
use super::{Dice, assert_gap_free, message, options, read_all, temporary, texts};
use crate::StorageError;

fn small(directory: &Path) -> LogOptions {
    LogOptions { segment_bytes: 1024, ..options(directory) }
}

/// Appends until something fails or ten commits are done; returns what was acknowledged.
async fn append_some(log: &Log) -> Vec<String> {
    let mut acknowledged = Vec::new();
    for n in 0..10 {
        let text = format!("{n} {}", "x".repeat(60));
        match log.commit(vec![message(Some("a"), &text), message(None, &text)]).await {
            Ok(_) => acknowledged.push(text),
            Err(StorageError::Unavailable { reason }) => {
                assert!(reason.contains("Input/output error") || reason.contains("panicked"), "{reason}");
                break;
            }
            Err(error) => panic!("an unexpected failure: {error}"),
        }
    }
    acknowledged
}

fn assert_holds(directory: &Path, disk: &SimulatedDisk, acknowledged: &[String], what: &str) {
    let log = Log::open_with(options(directory), disk.process()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let events = read_all(&log.reader());
    assert_gap_free(&events);
    let found: Vec<&str> = texts(&events).into_iter().filter(|text| text.contains("xx")).collect();
    let expected: Vec<&str> = acknowledged.iter().flat_map(|text| [text.as_str(), text.as_str()]).collect();
    assert_eq!(found[..expected.len()], expected[..], "{what}");
    assert!(found.len() <= expected.len() + 2, "{what}: more than was asked for");
}

/// With the threads that a log really has, so that which call is the n-th may vary.
async fn fail_every_call(mishap: Mishap, step: usize) {
    let directory = temporary();
    for passes in (0..).step_by(step) {
        let disk = SimulatedDisk::new(passes);
        let process = disk.process();
        process.plan(Some(Plan { passes, calls: Call::changes, mishap, then: None }));
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Log::open_with(small(directory.path()), process.clone())
        }));
        let mut acknowledged = Vec::new();
        if let Ok(Ok(log)) = opened {
            acknowledged = append_some(&log).await;
            if acknowledged.len() < 10 {
                let again = log.commit(vec![message(None, "again")]).await;
                assert!(matches!(again, Err(StorageError::Unavailable { .. })), "call {passes}");
                assert!(log.offer(vec![message(None, "again")]).is_err(), "call {passes}");
                assert!(log.close().await.is_err(), "call {passes}");
                assert!(log.health().unavailable.is_some(), "call {passes}");
                log.room().await;
            }
        }
        assert_holds(directory.path(), &disk, &acknowledged, &format!("call {passes}"));
        if process.happened().is_empty() {
            assert_eq!(acknowledged.len(), 10);
            return;
        }
    }
}

#[tokio::test]
async fn the_first_failed_call_ends_recording_and_costs_nothing_acknowledged() {
    fail_every_call(Mishap::Refused, 1).await;
}

#[tokio::test]
async fn a_panic_of_the_writer_ends_recording_the_same_way() {
    fail_every_call(Mishap::Panic, 3).await;
}

/// The disk as a power cut at this moment would leave it, in another directory.
fn after_power_cut(disk: &SimulatedDisk, directory: &Path) -> SimulatedDisk {
    let copy = disk.copy();
    copy.cut_power();
    let after = SimulatedDisk::new(1);
    copy.files().into_iter().for_each(|(name, bytes)| after.plant(&directory.join(name), &bytes));
    after
}

#[tokio::test]
async fn a_power_cut_costs_nothing_acknowledged() {
    let directory = temporary();
    let disk = SimulatedDisk::new(1);
    let log = Log::open_with(LogOptions { segment_bytes: 8192, ..options(directory.path()) }, disk.process());
    let log = log.expect("the log opens");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let (appender, count) = (log.clone(), acknowledged.clone());
    let (stop, mut stopped) = tokio::sync::oneshot::channel::<()>();
    let appending = tokio::spawn(async move {
        let mut n = 0u64;
        while stopped.try_recv().is_err() {
            let drafts = (0..8).map(|_| message(Some("a"), &format!("{n} {}", "x".repeat(200)))).collect();
            let appended = appender.commit(drafts).await.expect("it is recorded");
            count.store(appended.last_seq, Ordering::SeqCst);
            n += 1;
            tokio::task::yield_now().await;
        }
    });
    let mut dice = Dice(0x5eed);
    for cut in 0..40u64 {
        let mut durable = log.watch();
        let further = durable.borrow().last_seq + 1 + dice.below(30);
        durable.wait_for(|durable| durable.last_seq >= further).await.expect("the writer lives");
        let at_least = acknowledged.load(Ordering::SeqCst);
        // Another directory, as the lock of this one is taken.
        let elsewhere = temporary();
        let after = after_power_cut(&disk, &options(elsewhere.path()).directory);
        let reopened = Log::open_with(options(elsewhere.path()), after.process()).expect("the log opens");
        let events = read_all(&reopened.reader());
        assert_gap_free(&events);
        assert!(events.len() as u64 > at_least, "cut {cut}: {} events of {at_least}", events.len());
    }
    stop.send(()).expect("it is appending");
    appending.await.expect("it ends");
}

//! Whatever call fails, and whenever the power goes: what was acknowledged is there afterwards, what
//! failed is refused from then on, and nothing is tried again.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Log, LogOptions};
use super::faulty_io::FaultyIo;
use super::{Dice, assert_gap_free, message, open, options, read_all, temporary, texts};
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
                assert!(reason.contains("injected") || reason.contains("panicked"), "{reason}");
                break;
            }
            Err(error) => panic!("an unexpected failure: {error}"),
        }
    }
    acknowledged
}

fn assert_holds(directory: &Path, acknowledged: &[String], what: &str) {
    let log = Log::open(options(directory)).unwrap_or_else(|error| panic!("{what}: {error}"));
    let events = read_all(&log.reader());
    assert_gap_free(&events);
    let found: Vec<&str> = texts(&events).into_iter().filter(|text| text.contains("xx")).collect();
    let expected: Vec<&str> = acknowledged.iter().flat_map(|text| [text.as_str(), text.as_str()]).collect();
    assert_eq!(found[..expected.len()], expected[..], "{what}");
    assert!(found.len() <= expected.len() + 2, "{what}: more than was asked for");
}

async fn fail_every_call(panics: bool, step: u64) {
    let mut call = 1;
    loop {
        let directory = temporary();
        let io = Arc::new(FaultyIo::failing_at(call, panics));
        let opened = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            Log::open_with(small(directory.path()), io.clone())
        }));
        let mut acknowledged = Vec::new();
        if let Ok(Ok(log)) = opened {
            acknowledged = append_some(&log).await;
            if acknowledged.len() < 10 {
                let again = log.commit(vec![message(None, "again")]).await;
                assert!(matches!(again, Err(StorageError::Unavailable { .. })), "call {call}");
                assert!(log.offer(vec![message(None, "again")]).is_err(), "call {call}");
                assert!(log.close().await.is_err(), "call {call}");
                assert!(log.health().unavailable.is_some(), "call {call}");
                log.room().await;
            }
        }
        let has_failed = io.has_failed();
        assert_holds(directory.path(), &acknowledged, &format!("call {call}"));
        if !has_failed {
            assert_eq!(acknowledged.len(), 10);
            return;
        }
        call += step;
    }
}

#[tokio::test]
async fn the_first_failed_call_ends_recording_and_costs_nothing_acknowledged() {
    fail_every_call(false, 1).await;
}

#[tokio::test]
async fn a_panic_of_the_writer_ends_recording_the_same_way() {
    fail_every_call(true, 3).await;
}

#[tokio::test]
async fn a_power_cut_costs_nothing_acknowledged() {
    let directory = temporary();
    let io = Arc::new(FaultyIo::default());
    let log = Log::open_with(LogOptions { segment_bytes: 8192, ..options(directory.path()) }, io.clone());
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
        let copy = temporary();
        let at_least = acknowledged.load(Ordering::SeqCst);
        io.power_cut(&directory.path().join("log"), &copy.path().join("log"), &mut dice);
        let events = read_all(&open(copy.path()).reader());
        assert_gap_free(&events);
        assert!(events.len() as u64 > at_least, "cut {cut}: {} events of {at_least}", events.len());
    }
    stop.send(()).expect("it is appending");
    appending.await.expect("it ends");
}

/// After a failed sync the kernel still shows what the disk may never get.
#[tokio::test]
async fn what_recovery_keeps_after_a_failed_sync_survives_a_power_cut() {
    let mut kept_more = 0;
    for call in 1.. {
        let directory = temporary();
        let io = Arc::new(FaultyIo::failing_at(call, false));
        let acknowledged = match Log::open_with(options(directory.path()), io.clone()) {
            Ok(log) => append_some(&log).await.len(),
            Err(_) => continue,
        };
        if !io.has_failed() {
            break;
        }
        let log = Log::open_with(options(directory.path()), io.clone()).expect("the log opens");
        let shown = read_all(&log.reader());
        kept_more += usize::from(shown.iter().filter(|(_, text)| text.contains("xx")).count() > 2 * acknowledged);
        let copy = temporary();
        io.power_cut(&directory.path().join("log"), &copy.path().join("log"), &mut Dice(call));
        let after = read_all(&open(copy.path()).reader());
        assert_eq!(after[..shown.len()], shown[..], "call {call}");
    }
    assert!(kept_more > 0, "some commit was whole without being acknowledged");
}

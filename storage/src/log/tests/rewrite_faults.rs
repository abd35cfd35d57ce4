//! Whatever call fails while segments are written anew and dropped: the log holds what it acknowledged,
//! before or after, and nothing between; recording goes on unless its own files failed.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;

use super::super::{Fate, Log};
use super::rewrite::{small, tell};
use super::simulated_disk::{Call, Mishap, Plan, Process, SimulatedDisk};
use super::{message, temporary};
use crate::StorageError;
use crate::event::EventView;

/// What a run was told.
#[derive(Default)]
struct Outcome {
    acknowledged: BTreeSet<u64>,
    /// Of segment 2, as far as it was to be removed.
    doomed: BTreeSet<u64>,
    /// Whether the removal was said to have taken place.
    removed: bool,
    /// The first number left, when segments were said to be dropped.
    dropped_before: Option<u64>,
    finished: bool,
}

async fn commit(log: &Log, outcome: &mut Outcome) -> Result<(), StorageError> {
    for n in 0..3 {
        let drafts = (0..4).map(|m| message([Some("a"), None][m % 2], &format!("{n} {}", "x".repeat(80)))).collect();
        let appended = log.commit(drafts).await?;
        outcome.acknowledged.extend(appended.first_seq..=appended.last_seq);
    }
    Ok(())
}

/// Writes a segment anew and installs it; a panic counts as a failure.
fn rewrite(log: &Log, number: u32, fate: &mut dyn FnMut(&EventView<'_>) -> Fate, shred: bool) -> bool {
    let attempt = || log.rewrite(number, fate).and_then(|rewritten| rewritten.install(shred));
    match catch_unwind(AssertUnwindSafe(attempt)) {
        Ok(Ok(())) => true,
        Ok(Err(StorageError::Damaged { what, .. })) => panic!("damage was invented: {what}"),
        Ok(Err(_)) | Err(_) => false,
    }
}

async fn run(directory: &Path, process: Arc<Process>) -> Outcome {
    let mut outcome = Outcome::default();
    let opened = catch_unwind(AssertUnwindSafe(|| Log::open_with(small(directory), process.clone())));
    let Ok(Ok(log)) = opened else { return outcome };
    let told = steps(&log, &mut outcome).await;
    if told.is_err() {
        assert!(log.health().unavailable.is_some() && !process.happened().is_empty());
        assert!(log.commit(vec![message(None, "again")]).await.is_err());
    }
    outcome.finished = told.is_ok();
    outcome
}

async fn steps(log: &Log, outcome: &mut Outcome) -> Result<(), StorageError> {
    for _ in 0..4 {
        commit(log, outcome).await?;
        log.roll().await?;
    }
    let mut fate = |event: &EventView<'_>| {
        let goes = !event.seq.is_multiple_of(3);
        outcome.doomed.extend(goes.then_some(event.seq));
        if goes { Fate::Remove } else { Fate::Keep }
    };
    let removed = rewrite(log, 2, &mut fate, true);
    outcome.removed = removed;
    commit(log, outcome).await?;
    rewrite(log, 3, &mut |_| Fate::Keep, false);
    // Once more: leftovers of the first attempt are no obstacle.
    rewrite(log, 3, &mut |_| Fate::Keep, false);
    let third = log.reader().segments()?[1].first_seq;
    match log.drop_before(2).await {
        Err(error @ StorageError::Unavailable { .. }) => return Err(error),
        // With another failure only files that no longer count are left.
        Ok(()) | Err(_) => outcome.dropped_before = Some(third),
    }
    assert_eq!(log.reader().first_seq(), third);
    commit(log, outcome).await?;
    log.close().await
}

fn assert_holds(directory: &Path, disk: &SimulatedDisk, outcome: &Outcome, what: &str) {
    let log = Log::open_with(small(directory), disk.process()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let told = tell(&log.reader()).unwrap_or_else(|error| panic!("{what}: {error}"));
    let first_seq = log.reader().first_seq();
    let kept: BTreeSet<u64> = told.kept.iter().map(|(seq, _)| *seq).collect();
    let due = outcome.acknowledged.range(first_seq..).copied();
    let missing: BTreeSet<u64> = due.filter(|seq| !kept.contains(seq)).collect();
    assert!(missing.is_subset(&told.removed), "{what}: {missing:?}");
    // Wholly removed or not at all.
    if !told.removed.is_empty() {
        assert_eq!(told.removed, outcome.doomed, "{what}");
    }
    assert!(!outcome.removed || !told.removed.is_empty(), "{what}: said to be removed");
    match outcome.dropped_before {
        Some(expected) => assert_eq!(first_seq, expected, "{what}"),
        None => assert!(first_seq == 1 || !outcome.finished, "{what}"),
    }
    let names: BTreeSet<String> = disk.files().into_iter().map(|(name, _)| name).collect();
    assert!(!names.iter().any(|name| name.ends_with(".new")), "{what}: {names:?}");
    let segments = log.reader().segments().expect("they are known");
    assert_eq!(names.iter().filter(|name| name.ends_with(".seg")).count(), segments.len(), "{what}: {names:?}");
}

async fn fail_every_call(mishap: Mishap, step: usize) {
    let directory = temporary();
    let mut finished = 0;
    for passes in (0..).step_by(step) {
        let disk = SimulatedDisk::new(passes);
        let process = disk.process();
        process.plan(Some(Plan { passes, calls: Call::changes, mishap, then: None }));
        let outcome = run(directory.path(), process.clone()).await;
        assert_holds(directory.path(), &disk, &outcome, &format!("call {passes}"));
        finished += u64::from(outcome.finished);
        if process.happened().is_empty() {
            assert!(outcome.finished && outcome.removed && outcome.dropped_before.is_some());
            assert!(finished > 5, "rewriting that fails does not end the log");
            return;
        }
    }
}

#[tokio::test]
async fn any_call_that_fails_leaves_the_log_before_or_after() {
    fail_every_call(Mishap::Refused, 1).await;
}

#[tokio::test]
async fn any_call_that_panics_leaves_the_log_before_or_after() {
    fail_every_call(Mishap::Panic, 3).await;
}

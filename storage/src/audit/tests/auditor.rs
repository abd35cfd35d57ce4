//! Checkpoints come when they should, cover what is durable, continue each other over restarts and
//! crashes, and are never signed over a history that contradicts them.

use std::ops::ControlFlow;
use std::time::Duration;

use super::super::{AuditOptions, Auditor, CHECKPOINTS_FILE, Pace, digest, hex};
use super::{World, append, close, message, until};
use crate::StorageError;
use crate::event::Payload;
use crate::event::catalog::{LogCheckpoint, LogRecovered};
use crate::log::{Link, Log, chain};

/// The trail and the last hash, recomputed from the events alone.
fn recomputed(log: &Log) -> (Vec<u8>, [u8; 32]) {
    let (mut hash, mut trail) = (chain::start(log.log_id()), Vec::new());
    let mut visit = |link: Link<'_>| {
        let Link::Event(event) = link else { panic!("nothing was removed") };
        hash = chain::next(&hash, event.record);
        trail.extend_from_slice(&hash[..2]);
        ControlFlow::Continue(())
    };
    log.reader().replay(0, &mut visit).expect("the log is whole");
    (trail, hash)
}

fn checkpoint_events(log: &Log) -> Vec<LogCheckpoint> {
    let mut found = Vec::new();
    log.reader()
        .scan(0, &|_| true, &mut |event| {
            found.extend(LogCheckpoint::take(event));
            ControlFlow::Continue(())
        })
        .expect("the log is whole");
    found
}

#[tokio::test]
async fn an_opened_log_is_signed_at_once_and_a_closed_one_to_its_last_event() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    assert_eq!((auditor.health().signed_seq, auditor.health().checkpoints), (1, 1));
    append(&log, 10).await;
    close(&log, &auditor).await;
    let (trail, hash) = recomputed(&log);
    let lines = world.lines();
    let [first, last] = &lines[..] else { panic!("{} lines", lines.len()) };
    let (first, last) = (first.checkpoint().expect("a checkpoint"), last.checkpoint().expect("a checkpoint"));
    assert_eq!((first.seq, first.since_seq, first.previous), (1, 0, None));
    assert_eq!((last.seq, last.chain, last.epoch), (log.health().last_seq, hash, 1));
    assert_eq!((last.since_seq, last.previous), (1, Some(lines[0].digest)));
    assert_eq!(last.trail, digest(&trail[2..]));
    assert_eq!(std::fs::read(world.audit().join("trail")).expect("the trail"), trail);
    let events = checkpoint_events(&log);
    assert_eq!(events.len(), 1, "what comes after the seal has no event");
    assert_eq!((events[0].through_seq, events[0].chain.as_str()), (1, hex(&first.chain).as_str()));
    assert_eq!(digest(events[0].jws.as_str().as_bytes()), lines[0].digest);
}

#[tokio::test]
async fn checkpoints_come_after_so_many_events_or_so_much_time_and_not_for_their_own_events() {
    let world = World::new();
    let log = world.open();
    let hour = Duration::from_secs(3600);
    let pace = Pace { events: 100, within: hour, apart: Duration::from_millis(1), idle: hour };
    let options = AuditOptions { pace, ..world.audit_options() };
    let auditor = Auditor::start(log.clone(), options.clone()).expect("it starts");
    append(&log, 99).await;
    assert_eq!(auditor.health().checkpoints, 1);
    let last = append(&log, 1).await;
    until("a hundred events are covered", || auditor.health().signed_seq >= last).await;
    drop(auditor);
    let pace = Pace { events: 1000, within: Duration::from_millis(50), ..pace };
    let auditor = Auditor::start(log.clone(), AuditOptions { pace, ..options }).expect("it starts again");
    let made = auditor.health().checkpoints;
    let last = append(&log, 1).await;
    until("one event is covered in time", || auditor.health().signed_seq >= last).await;
    // Its own event is durable well within ten times the time that any other would be covered in.
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert!(auditor.health().checkpoints <= made + 1, "its own events call for no checkpoint");
    assert!(world.lines().windows(2).all(|pair| pair[1].statement.previous() == Some(pair[0].digest)));
}

#[tokio::test]
async fn whoever_asks_waits_until_an_event_is_covered() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let last = append(&log, 5).await;
    auditor.cover(last).await.expect("it is covered");
    assert!(auditor.health().signed_seq >= last);
    auditor.cover(1).await.expect("it was covered all along");
    close(&log, &auditor).await;
    assert!(auditor.cover(last).await.is_err(), "it has stopped");
}

#[tokio::test]
async fn after_a_crash_the_next_start_continues_where_the_files_end() {
    let world = World::new();
    for round in 0..4 {
        let log = world.open();
        let auditor = world.start(&log).expect("it starts");
        append(&log, 50).await;
        if round == 2 {
            auditor.cover(log.health().last_seq).await.expect("it is covered");
        }
        // No seal, no last checkpoint; what the trail holds behind the last one was never promised.
        drop(auditor);
        let (trail, hash) = recomputed(&log);
        let newest = world.lines().pop().expect("a line");
        let newest = newest.checkpoint().expect("a checkpoint").clone();
        assert!(
            newest.seq <= log.health().last_seq
                && (round != 2 || newest.chain == hash || newest.seq < log.health().last_seq)
        );
        let held = std::fs::read(world.audit().join("trail")).expect("the trail");
        assert_eq!(held, trail[..held.len()], "round {round}");
        drop(log);
        if round == 1 {
            // A crash left half a line, and more of the trail than was bound.
            append_bytes(&world, CHECKPOINTS_FILE, b"eyJhbGciOi");
            append_bytes(&world, "trail", &[7; 99]);
        }
    }
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    close(&log, &auditor).await;
    let (trail, hash) = recomputed(&log);
    assert_eq!(std::fs::read(world.audit().join("trail")).expect("the trail"), trail);
    let lines = world.lines();
    assert!(lines.windows(2).all(|pair| pair[1].statement.previous() == Some(pair[0].digest)));
    assert_eq!(lines.last().and_then(|line| line.checkpoint()).map(|last| last.chain), Some(hash));
    let mut since = 0;
    for checkpoint in lines.iter().filter_map(|line| line.checkpoint()) {
        let part = &trail[2 * since as usize..2 * checkpoint.seq as usize];
        assert_eq!((checkpoint.since_seq, checkpoint.trail), (since, digest(part)));
        since = checkpoint.seq;
    }
    let mut torn = Vec::new();
    let mut visit = |event: &crate::event::EventView<'_>| {
        torn.extend(LogRecovered::take(event).ok().filter(|it| it.what.as_str() == "checkpoint_torn"));
        ControlFlow::Continue(())
    };
    log.reader().scan(0, &|_| true, &mut visit).expect("the log is whole");
    assert_eq!(torn.iter().map(|it| it.bytes_cut).collect::<Vec<_>>(), [Some(10)]);
}

fn append_bytes(world: &World, name: &str, bytes: &[u8]) {
    let path = world.audit().join(name);
    let mut held = std::fs::read(&path).expect("it is there");
    held.extend_from_slice(bytes);
    std::fs::write(&path, held).expect("it is written");
}

fn copy_directory(from: &std::path::Path, to: &std::path::Path) {
    let _ = std::fs::remove_dir_all(to);
    std::fs::create_dir_all(to).expect("it can be made");
    for entry in std::fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied");
    }
}

#[tokio::test]
async fn a_log_that_contradicts_its_newest_checkpoint_is_refused() {
    let (world, other) = (World::new(), World::new());
    let (older, newer) = (world.path().join("older"), world.path().join("newer"));
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    close(&log, &auditor).await;
    copy_directory(&world.path().join("log"), &older);
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    append(&log, 20).await;
    close(&log, &auditor).await;
    let signed = auditor.health().signed_seq;
    copy_directory(&world.path().join("log"), &newer);

    let refusal = |log: &Log| match world.start(log).map(|_| ()) {
        Err(StorageError::Damaged { first_seq, last_seq, .. }) => (first_seq, last_seq),
        other => panic!("{other:?}"),
    };
    copy_directory(&older, &world.path().join("log"));
    let log = world.open();
    let end = log.health().last_seq;
    assert_eq!(refusal(&log), (end + 1, signed), "rolled back");
    // Rolled back, and then more was recorded than the checkpoint covers.
    for more in [signed - end, 30] {
        log.commit((0..more).map(|n| message(&n.to_string())).collect()).await.expect("it is recorded");
        assert_eq!(refusal(&log).0, 1, "{more} more");
    }
    drop(log);
    let log = other.open();
    append(&log, 40).await;
    drop(log);
    copy_directory(&other.path().join("log"), &world.path().join("log"));
    let log = world.open();
    assert_eq!(refusal(&log), (1, signed), "another log");
    drop(log);
    copy_directory(&newer, &world.path().join("log"));
    let log = world.open();
    world.start(&log).expect("the true one is accepted");
}

#[tokio::test]
async fn a_directory_that_cannot_be_used_is_told_and_made_up_for() {
    let world = World::new();
    std::fs::write(world.audit(), b"in the way").expect("it is written");
    let log = world.open();
    let auditor = world.start(&log).expect("the log goes on");
    assert!(auditor.health().failing.is_some_and(|reason| reason.contains("audit")));
    let last = append(&log, 10).await;
    assert!(auditor.cover(last).await.is_err());
    assert_eq!(auditor.health().signed_seq, 0);
    std::fs::remove_file(world.audit()).expect("it goes");
    until("it is signed again", || auditor.health().failing.is_none()).await;
    auditor.cover(last).await.expect("it is covered");
    close(&log, &auditor).await;
    let (trail, _) = recomputed(&log);
    assert_eq!(std::fs::read(world.audit().join("trail")).expect("the trail"), trail, "nothing of it is missing");
}

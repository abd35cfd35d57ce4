//! A process that dies at any moment loses nothing it acknowledged, and leaves nothing that the next
//! one cannot mend; what is mended is on record.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::super::{Log, LogOptions};
use super::{Dice, assert_gap_free, message, open, options, read_all, recoveries, temporary, texts};

#[tokio::test]
async fn numbers_go_on_after_every_kind_of_end() {
    let directory = temporary();
    let mut last_seq = 0;
    for round in 0..12 {
        let log = open(directory.path());
        assert_eq!(log.health().epoch, round + 1);
        assert!(log.health().last_seq > last_seq, "the opening is an event of its own");
        let appended = log.commit(vec![message(Some("a"), "x")]).await.expect("it is recorded");
        assert!(appended.first_seq > last_seq);
        last_seq = appended.last_seq;
        if round % 3 == 0 {
            log.close().await.expect("it closes");
        }
    }
    assert_gap_free(&read_all(&open(directory.path()).reader()));
}

/// The files of a process killed at a random moment are those that a copy finds at that moment, as
/// the kernel keeps what was written: copied in the order in which the writer never writes.
#[tokio::test]
async fn a_kill_at_any_moment_costs_nothing_acknowledged() {
    let directory = temporary();
    let log = Log::open(LogOptions { segment_bytes: 16_384, ..options(directory.path()) }).expect("the log opens");
    let acknowledged = Arc::new(AtomicU64::new(0));
    let mut appenders = Vec::new();
    for session in ["a", "b", "c"] {
        let (log, acknowledged) = (log.clone(), acknowledged.clone());
        appenders.push(tokio::spawn(async move {
            while let Ok(appended) = log.commit(vec![message(Some(session), "y"), message(None, "z")]).await {
                acknowledged.fetch_max(appended.last_seq, Ordering::SeqCst);
                let _ = log.offer(vec![message(Some(session), "unawaited")]);
                tokio::task::yield_now().await;
            }
        }));
    }
    let mut dice = Dice(7);
    for _ in 0..15 {
        let mut durable = log.watch();
        let further = durable.borrow().last_seq + 1 + dice.below(100);
        durable.wait_for(|durable| durable.last_seq >= further).await.expect("the writer lives");
        let copy = temporary();
        let at_least = acknowledged.load(Ordering::SeqCst);
        copy_as_killed(&directory.path().join("log"), &copy.path().join("log"));
        let events = read_all(&open(copy.path()).reader());
        assert_gap_free(&events);
        assert!(events.len() as u64 > at_least, "{} events of {at_least}", events.len());
    }
    log.close().await.expect("it closes");
    for appender in appenders {
        appender.await.expect("it ends");
    }
}

/// The mark first: copied later it could promise more than the copies of the segments hold.
fn copy_as_killed(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("it can be made");
    std::fs::copy(from.join("mark"), to.join("mark")).expect("it can be copied");
    let names = std::fs::read_dir(from).expect("it can be read");
    let mut names: Vec<_> = names.map(|entry| entry.expect("it can be read").file_name()).collect();
    names.sort();
    for name in names.iter().filter(|name| name.to_string_lossy().ends_with(".seg")) {
        std::fs::copy(from.join(name), to.join(name)).expect("it can be copied");
    }
}

/// A log whose mark lies two commits behind its end: where the mark, the first and the second end.
async fn log_behind_its_mark(directory: &Path) -> [u64; 3] {
    let log = open(directory);
    let end = || u64::from(log.watch().borrow().end.offset);
    log.commit(vec![message(Some("a"), "marked")]).await.expect("it is recorded");
    let marked = end();
    let mark = std::fs::read(directory.join("log/mark")).expect("it can be read");
    log.commit(vec![message(Some("a"), "third"), message(None, "fourth")]).await.expect("it is recorded");
    let middle = end();
    log.commit(vec![message(Some("a"), "fifth")]).await.expect("it is recorded");
    let last = end();
    drop(log);
    std::fs::write(directory.join("log/mark"), mark).expect("it can be written");
    [marked, middle, last]
}

#[tokio::test]
async fn what_was_cut_once_is_gone_for_good() {
    let directory = temporary();
    let log = open(directory.path());
    let end = log.watch().borrow().end.offset as usize;
    drop(log);
    let path = directory.path().join("log/000001.seg");
    let mut bytes = std::fs::read(&path).expect("it can be read");
    bytes[end..end + 8000].fill(0xa5);
    std::fs::write(&path, bytes).expect("it can be written");
    for _ in 0..3 {
        let recovered = recoveries(&open(directory.path()).reader());
        assert_eq!(recovered.len(), 1);
        assert_eq!(recovered[0].bytes_cut, Some(8000));
    }
}

#[tokio::test]
async fn whole_commits_behind_the_mark_are_kept() {
    let directory = temporary();
    log_behind_its_mark(directory.path()).await;
    let log = open(directory.path());
    assert_eq!(texts(&read_all(&log.reader()))[1..5], ["marked", "third", "fourth", "fifth"]);
    assert!(recoveries(&log.reader()).is_empty());
}

#[tokio::test]
async fn leftovers_are_removed_and_strangers_left_alone() {
    let directory = temporary();
    drop(open(directory.path()));
    let log_directory = directory.path().join("log");
    std::fs::write(log_directory.join("000002.seg.new"), b"half").expect("it can be written");
    std::fs::write(log_directory.join("notes.txt"), b"mine").expect("it can be written");
    let log = open(directory.path());
    let recovered = recoveries(&log.reader());
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].what.as_str(), "leftover_removed");
    assert_eq!(recovered[0].detail.as_ref().map(|detail| detail.as_str()), Some("000002.seg.new"));
    assert!(!log_directory.join("000002.seg.new").exists());
    assert!(log_directory.join("notes.txt").exists());
}

#[tokio::test]
async fn a_creation_that_was_interrupted_is_begun_again() {
    let whole = temporary();
    drop(open(whole.path()));
    let header = std::fs::read(whole.path().join("log/000001.seg")).expect("it can be read")[..128].to_vec();
    let states: [&[(&str, &[u8])]; 4] = [
        &[("mark.new", b"half")],
        &[("mark.new", b"half"), ("000001.seg.new", b"half")],
        &[("mark.new", b"half"), ("000001.seg", &header)],
        &[("mark.new", b"half"), ("000001.seg", b"")],
    ];
    for files in states {
        let directory = temporary();
        std::fs::create_dir(directory.path().join("log")).expect("it can be made");
        for (name, bytes) in files {
            std::fs::write(directory.path().join("log").join(name), bytes).expect("it can be written");
        }
        let log = open(directory.path());
        assert_eq!(log.health().epoch, 1);
        assert_eq!(recoveries(&log.reader()).len(), files.len());
        log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    }
}

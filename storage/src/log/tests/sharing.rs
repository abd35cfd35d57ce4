//! One writer, many readers: a second writer is turned away, a reader from outside sees what is
//! durable and nothing else.

use std::time::{Duration, Instant};

use super::super::{Log, LogOptions, Reader};
use super::{message, open, options, read_all, temporary, texts};
use crate::StorageError;

#[tokio::test]
async fn a_second_opener_is_turned_away_at_once_and_the_first_is_unharmed() {
    let directory = temporary();
    let log = open(directory.path());
    let began = Instant::now();
    match Log::open(options(directory.path())) {
        Err(StorageError::Locked { holder, .. }) => assert_eq!(holder, Some(std::process::id())),
        Err(error) => panic!("another refusal: {error}"),
        Ok(_) => panic!("two writers of one log"),
    }
    assert!(began.elapsed() < Duration::from_secs(1));
    log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    log.close().await.expect("it closes");
    open(directory.path());
}

#[tokio::test]
async fn a_lock_file_that_was_removed_lets_nobody_in() {
    let directory = temporary();
    let log = open(directory.path());
    std::fs::remove_file(directory.path().join("log/lock")).expect("it goes");
    assert!(matches!(Log::open(options(directory.path())), Err(StorageError::Locked { .. })));
    log.commit(vec![message(None, "x")]).await.expect("it is recorded");
    drop(log);
    open(directory.path());
}

#[tokio::test]
async fn a_stale_lock_file_is_no_obstacle() {
    let directory = temporary();
    std::fs::create_dir(directory.path().join("log")).expect("it can be made");
    std::fs::write(directory.path().join("log/lock"), "1").expect("it can be written");
    open(directory.path());
}

#[tokio::test]
async fn a_reader_from_outside_follows_the_writer() {
    let directory = temporary();
    let log = Log::open(LogOptions { segment_bytes: 1024, ..options(directory.path()) }).expect("the log opens");
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    assert_eq!(outside.log_id(), log.log_id());
    assert_eq!(outside.log_id().len(), 12);
    for n in 0..40 {
        log.commit(vec![message(Some("a"), &n.to_string())]).await.expect("it is recorded");
        assert_eq!(outside.durable().expect("it is known"), *log.watch().borrow());
        assert_eq!(read_all(&outside).len(), n + 2);
    }
    drop(log);
    let after = Reader::open(&directory.path().join("log")).expect("there is a log");
    assert_eq!(read_all(&after), read_all(&outside));
}

#[tokio::test]
async fn bytes_behind_the_durable_end_are_not_read() {
    let directory = temporary();
    let log = open(directory.path());
    log.commit(vec![message(None, "first")]).await.expect("it is recorded");
    let mark = std::fs::read(directory.path().join("log/mark")).expect("it can be read");
    let inside = log.reader();
    log.commit(vec![message(None, "second")]).await.expect("it is recorded");
    drop(log);
    std::fs::write(directory.path().join("log/mark"), mark).expect("it can be written");
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    assert_eq!(texts(&read_all(&outside)), ["log.opened", "first"]);
    assert_eq!(texts(&read_all(&inside)), ["log.opened", "first", "second"]);
}

#[test]
fn where_there_is_no_log_there_is_nothing_to_read() {
    let directory = temporary();
    assert!(matches!(Reader::open(directory.path()), Err(StorageError::Io { .. })));
}

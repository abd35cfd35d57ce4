//! A full disk: what is waited for is refused as such and nothing of it is written, what is not waits
//! in its place, and everything goes on by itself once there is room. Ending on a full disk costs
//! nothing that was acknowledged, and counts what it cannot record.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

use super::super::storage_io::StorageIo;
use super::super::{Log, LogOptions, chain};
use super::simulated_disk::SimulatedDisk;
use super::{assert_gap_free, message, options, read_all, temporary, texts};
use crate::StorageError;
use crate::event::catalog::Gap;
use crate::event::{Draft, Payload};

/// How long a fact may take to become true.
const LIMIT: Duration = Duration::from_secs(20);

/// A line that does not compress, of `length` characters.
pub(super) fn noise(number: u64, length: usize) -> String {
    let mut state = number.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let letters = std::iter::repeat_with(move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        char::from(b'a' + (state % 26) as u8)
    });
    format!("{number} {}", letters.take(length).collect::<String>())
}

fn line(number: u64, length: usize) -> Draft {
    message(Some("a"), &noise(number, length))
}

struct FullLog {
    disk: SimulatedDisk,
    log: Log,
    directory: tempfile::TempDir,
}

impl FullLog {
    /// A log on a disk with no room left but what is laid out already; gives how much was acknowledged.
    async fn filled() -> (Self, u64) {
        let (disk, directory) = (SimulatedDisk::new(7), temporary());
        let log = open(&disk, directory.path()).expect("the log opens");
        disk.set_room(Some(0));
        let mut acknowledged = 0;
        for length in [700, 100, 1] {
            loop {
                match log.commit(vec![line(acknowledged, length)]).await {
                    Ok(_) => acknowledged += 1,
                    Err(StorageError::Full { .. }) => break,
                    Err(error) => panic!("an unexpected failure: {error}"),
                }
            }
        }
        (Self { disk, log, directory }, acknowledged)
    }

    fn reopened(self) -> Log {
        drop(self.log);
        open(&self.disk, self.directory.path()).expect("the log opens")
    }
}

fn open(disk: &SimulatedDisk, directory: &Path) -> Result<Log, StorageError> {
    let options = LogOptions { segment_bytes: 8192, queue_bytes_max: 64 * 1024, ..options(directory) };
    Log::open_with(options, disk.process())
}

fn lines(log: &Log) -> Vec<String> {
    let events = read_all(&log.reader());
    assert_gap_free(&events);
    let is_line = |text: &&&str| text.split(' ').count() == 2;
    texts(&events).iter().filter(is_line).map(|text| (*text).to_owned()).collect()
}

fn numbers(log: &Log) -> Vec<u64> {
    lines(log).iter().map(|line| line.split(' ').next().and_then(|number| number.parse().ok()).unwrap_or(0)).collect()
}

async fn reaches(log: &Log, last_seq: u64) {
    let mut durable = log.watch();
    let reached = durable.wait_for(|durable| durable.last_seq >= last_seq);
    tokio::time::timeout(LIMIT, reached).await.expect("in time").expect("the writer lives");
}

#[tokio::test]
async fn what_is_refused_leaves_no_trace_and_the_log_goes_on_by_itself() {
    let (full, acknowledged) = FullLog::filled().await;
    let log = &full.log;
    let health = log.health();
    assert!(acknowledged > 0 && health.full && health.unavailable.is_none());
    assert_eq!(lines(log).len() as u64, acknowledged, "what stands is readable");
    for _ in 0..3 {
        assert!(matches!(log.commit(vec![line(900, 700)]).await, Err(StorageError::Full { .. })));
    }
    let last_seq = health.last_seq;
    assert_eq!(log.health().last_seq, last_seq);
    log.offer(vec![line(acknowledged, 700), line(acknowledged + 1, 700)]).expect("it waits");
    log.offer(vec![line(acknowledged + 2, 700)]).expect("it waits");
    assert!(matches!(log.commit(Vec::new()).await, Err(StorageError::Full { .. })), "what was offered is not durable");
    assert!(matches!(log.sync().await, Err(StorageError::Full { .. })));

    full.disk.set_room(None);
    reaches(log, last_seq + 3).await;
    let appended = log.commit(vec![line(acknowledged + 3, 700)]).await.expect("there is room");
    assert!(!log.health().full);
    assert_eq!(appended.first_seq, last_seq + 4, "no number is spent on what was refused");
    log.close().await.expect("it closes");
    let mut hash = chain::start(log.log_id());
    let chained = log.reader().scan(0, &|_| true, &mut |event| {
        hash = chain::next(&hash, event.record);
        ControlFlow::Continue(())
    });
    chained.expect("the log is whole");
    assert_eq!(hash, log.watch().borrow().chain, "what was refused is not in the chain");
    let expected: Vec<u64> = (0..acknowledged + 4).collect();
    assert_eq!(numbers(log), expected);
    assert_eq!(numbers(&full.reopened()), expected);
}

#[tokio::test]
async fn room_is_found_again_when_nothing_waits() {
    let (full, _) = FullLog::filled().await;
    full.disk.set_room(None);
    let found = async {
        while full.log.health().full {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(LIMIT, found).await.expect("in time");
}

#[tokio::test]
async fn small_ones_find_the_room_that_large_ones_do_not_but_overtake_nobody() {
    let (full, acknowledged) = FullLog::filled().await;
    let log = &full.log;
    full.disk.set_room(Some(5000));
    let huge = || vec![line(900, 9000), line(901, 9000)];
    assert!(matches!(log.commit(huge()).await, Err(StorageError::Full { .. })), "a new segment may be begun");
    let other = full.disk.process().create(Path::new("/other")).expect("others have room");
    other.write_at(&[1; 500], 0).expect("the room that did not suffice is left to others");
    let both = tokio::join!(log.commit(huge()), log.commit(vec![line(acknowledged, 100)]));
    assert!(matches!(both, (Err(StorageError::Full { .. }), Ok(_))), "{both:?}");
    log.offer(huge()).expect("it waits");
    assert!(matches!(log.commit(vec![line(902, 100)]).await, Err(StorageError::Full { .. })), "it would overtake");
    full.disk.set_room(None);
    log.commit(vec![line(903, 100)]).await.expect("there is room");
    let mut expected: Vec<u64> = (0..=acknowledged).collect();
    expected.extend([900, 901, 903]);
    assert_eq!(numbers(log), expected);
}

#[tokio::test]
async fn a_full_queue_on_a_full_disk_keeps_nobody_waiting() {
    let (full, acknowledged) = FullLog::filled().await;
    let log = &full.log;
    let mut offered = 0;
    for length in [700, 1] {
        while log.offer(vec![line(acknowledged + offered, length)]).is_ok() {
            offered += 1;
        }
    }
    assert!(offered > 50, "{offered} fit into the queue");
    let refused = tokio::time::timeout(LIMIT, log.commit(vec![line(999, 10)])).await.expect("in time");
    assert!(matches!(refused, Err(StorageError::Full { .. })), "{refused:?}");
    tokio::time::timeout(LIMIT, log.room()).await.expect("producers are not held up");
    full.disk.set_room(None);
    log.commit(Vec::new()).await.expect("everything found room");
    assert_eq!(numbers(log), (0..acknowledged + offered).collect::<Vec<u64>>());
}

#[tokio::test]
async fn removing_makes_room_and_so_waits_for_none() {
    let (disk, directory) = (SimulatedDisk::new(9), temporary());
    let log = open(&disk, directory.path()).expect("the log opens");
    for number in 0..40 {
        log.commit(vec![line(number, 700)]).await.expect("it is recorded");
    }
    disk.set_room(Some(0));
    while log.commit(vec![line(40, 700)]).await.is_ok() {}
    log.offer(vec![line(41, 700)]).expect("it waits");
    assert!(matches!(log.roll().await, Err(StorageError::Full { .. })), "a new segment needs room");
    let segments = log.reader().segments().expect("they are known");
    log.drop_before(segments[segments.len() - 2].number).await.expect("nothing is in its way");
    assert!(log.reader().first_seq() > 1);
    disk.set_room(Some(100_000));
    log.commit(vec![line(42, 700)]).await.expect("there is room");
    let left = numbers_from(&log);
    assert_eq!(left[left.len() - 2..], [41, 42]);
}

fn numbers_from(log: &Log) -> Vec<u64> {
    let events = super::read_from(&log.reader(), log.reader().first_seq()).expect("the log is whole");
    events.iter().filter_map(|(_, text)| text.split(' ').next()?.parse().ok()).collect()
}

/// What gap events count, by reason.
fn counted(log: &Log) -> u64 {
    let mut count = 0;
    let scanned = log.reader().scan(0, &|_| true, &mut |event| {
        if let Ok(gap) = Gap::take(event) {
            assert_eq!((gap.what.as_str(), gap.reason.as_str()), ("console.message", "disk_full"));
            count += gap.count;
        }
        ControlFlow::Continue(())
    });
    scanned.expect("the log is whole");
    count
}

#[tokio::test]
async fn an_end_with_little_room_counts_what_it_cannot_record() {
    let (full, acknowledged) = FullLog::filled().await;
    for number in 0..20 {
        full.log.offer(vec![line(acknowledged + number, 700)]).expect("it waits");
    }
    full.disk.set_room(Some(4096));
    full.log.close().await.expect("it closes");
    let recorded = numbers(&full.log);
    assert_eq!(recorded, (0..recorded.len() as u64).collect::<Vec<_>>(), "in order, from the first on");
    assert!(recorded.len() as u64 >= acknowledged);
    assert_eq!(recorded.len() as u64 + counted(&full.log), acknowledged + 20, "produced is stored and declared");
    assert!(counted(&full.log) > 0);
    let events = read_all(&full.log.reader());
    assert_eq!(texts(&events).last(), Some(&"log.sealed"));
    full.disk.set_room(None);
    assert!(full.reopened().was_clean());
}

#[tokio::test]
async fn an_end_without_any_room_says_so_and_the_next_start_is_fine() {
    let (full, acknowledged) = FullLog::filled().await;
    full.log.offer(vec![line(999, 700)]).expect("it waits");
    let ended = tokio::time::timeout(LIMIT, full.log.close()).await.expect("in time");
    assert!(matches!(&ended, Err(StorageError::Unavailable { reason }) if reason.contains("room")), "{ended:?}");
    full.disk.set_room(None);
    let log = full.reopened();
    assert!(!log.was_clean());
    assert_eq!(numbers(&log), (0..acknowledged).collect::<Vec<_>>());
    log.commit(vec![line(acknowledged, 700)]).await.expect("it goes on");
}

#[tokio::test]
async fn a_log_opens_on_a_full_disk_and_its_opening_comes_first() {
    let (full, acknowledged) = FullLog::filled().await;
    let before = read_all(&full.log.reader()).len();
    let FullLog { disk, log, directory } = full;
    drop(log);
    let log = open(&disk, directory.path()).expect("the log opens");
    assert!(log.health().full && log.health().epoch == 2 && !log.was_clean());
    assert_eq!(numbers(&log), (0..acknowledged).collect::<Vec<_>>(), "what stands is readable");
    assert!(matches!(log.commit(vec![line(999, 10)]).await, Err(StorageError::Full { .. })));
    disk.set_room(None);
    let appended = log.commit(vec![line(acknowledged, 10)]).await.expect("there is room");
    let events = read_all(&log.reader());
    assert_eq!((events[before].1.as_str(), appended.first_seq), ("log.opened", before as u64 + 2));
}

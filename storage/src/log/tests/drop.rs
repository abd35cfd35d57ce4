//! Segments that are dropped are gone for everybody at once, and what a crash leaves of them goes when
//! the log is opened; a roll seals what was accepted before it.

use std::ops::ControlFlow;

use super::super::{Fate, Log, Reader};
use super::rewrite::{append, files, sample, small, tell};
use super::{copy_directory, message, read_from, temporary};
use crate::StorageError;

#[tokio::test]
async fn readers_begin_with_the_oldest_segment_that_is_left() {
    let directory = temporary();
    let log = sample(directory.path(), 60).await;
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    let texts = read_from(&log.reader(), 0).expect("it is whole");
    let (old_start, mut before) = (log.reader().start(), log.reader().segments().expect("they are known"));
    log.rewrite(2, &mut |_| Fate::Remove).expect("it is whole").install(false).expect("it takes its place");
    for (number, left) in [(2, 2), (2, 2), (1, 2), (0, 2), (4, 4)] {
        log.drop_before(number).await.expect("they are dropped");
        let facts = &before[left - 1];
        for reader in [&log.reader(), &outside] {
            assert_eq!((reader.start().segment, reader.first_seq()), (facts.number, facts.first_seq));
            let segments = reader.segments().expect("they are known");
            assert_eq!((segments[0].number, segments.len()), (facts.number, before.len() + 1 - left));
            tell(reader).expect("it is whole");
            assert!(matches!(reader.load(old_start), Err(StorageError::Moved)));
            assert_eq!(reader.position_before(1).expect("it is whole"), reader.start());
        }
        let names = files(directory.path());
        assert_eq!(names.iter().filter(|name| name.ends_with(".seg")).count(), before.len() + 1 - left, "{names:?}");
    }
    let read = read_from(&log.reader(), 0).expect("it is whole");
    let first_seq = before[3].first_seq;
    assert_eq!(read, texts[first_seq as usize - 1..]);
    // The one being written stays, whatever is asked for.
    log.drop_before(u32::MAX).await.expect("they are dropped");
    let last = before.pop().expect("there is one");
    assert_eq!(log.reader().segments().expect("they are known"), std::slice::from_ref(&last));
    append(&log, 2).await;
    drop(log);
    let log = Log::open(small(directory.path())).expect("the log opens");
    assert_eq!((log.reader().first_seq(), log.reader().start().segment), (last.first_seq, last.number));
    assert_eq!(tell(&log.reader()).expect("it is whole").kept.first().map(|(seq, _)| *seq), Some(last.first_seq));
    assert!(super::recoveries(&log.reader()).is_empty());
}

#[tokio::test]
async fn a_walk_on_its_way_passes_over_what_is_dropped() {
    let directory = temporary();
    let log = sample(directory.path(), 60).await;
    let segments = log.reader().segments().expect("they are known");
    let reader = log.reader();
    let mut seen = Vec::new();
    let mut walk = reader.blocks(reader.start()).expect("it begins");
    walk.next().expect("there is one").expect("it is whole");
    log.drop_before(4).await.expect("they are dropped");
    for block in walk {
        seen.push(block.expect("it is whole").position.segment);
    }
    seen.dedup();
    let left: Vec<u32> =
        segments.iter().map(|facts| facts.number).filter(|number| *number == 1 || *number > 3).collect();
    assert_eq!(seen, left);
    let mut first = None;
    let mut visit = |event: &crate::event::EventView<'_>| {
        first.get_or_insert(event.seq);
        ControlFlow::Continue(())
    };
    reader.scan(5, &|_| true, &mut visit).expect("it is whole");
    assert_eq!(first, Some(segments[3].first_seq));
}

#[tokio::test]
async fn what_a_crash_leaves_of_dropped_segments_is_removed_and_recorded() {
    let directory = temporary();
    let log = sample(directory.path(), 30).await;
    let copy = temporary();
    copy_directory(&directory.path().join("log"), &copy.path().join("log"));
    log.drop_before(3).await.expect("they are dropped");
    let expected = tell(&log.reader()).expect("it is whole");
    drop(log);
    std::fs::copy(directory.path().join("log/mark"), copy.path().join("log/mark")).expect("it can be copied");
    // Files went in any order before the process died.
    std::fs::remove_file(copy.path().join("log/000001.seg")).expect("it can be removed");
    let outside = Reader::open(&copy.path().join("log")).expect("there is a log");
    assert_eq!(tell(&outside).expect("it is whole"), expected);
    let log = Log::open(small(copy.path())).expect("the log opens");
    let names = files(copy.path());
    assert!(!names.contains("000002.seg") && names.contains("000003.seg"), "{names:?}");
    let recovered = super::recoveries(&log.reader());
    assert_eq!(recovered.len(), 1);
    assert_eq!(recovered[0].detail.as_ref().map(|detail| detail.as_str()), Some("000002.seg"));
    assert_eq!(tell(&log.reader()).expect("it is whole").kept[..expected.kept.len()], expected.kept[..]);
}

#[tokio::test]
async fn a_segment_dropped_while_it_is_written_anew_stays_dropped() {
    let directory = temporary();
    let log = sample(directory.path(), 30).await;
    let rewritten = log.rewrite(1, &mut |_| Fate::Keep).expect("it is whole");
    log.drop_before(2).await.expect("they are dropped");
    assert!(matches!(rewritten.install(false), Err(StorageError::Moved)));
    let names = files(directory.path());
    assert!(!names.iter().any(|name| name.starts_with("000001")), "{names:?}");
}

#[tokio::test]
async fn a_roll_seals_everything_accepted_before_it() {
    let directory = temporary();
    let log = Log::open(small(directory.path())).expect("the log opens");
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    for round in 0..5u32 {
        log.offer(vec![message(Some("a"), "unawaited")]).expect("there is room");
        log.roll().await.expect("it is sealed");
        let segments = log.reader().segments().expect("they are known");
        assert_eq!(segments.len() as u32, round + 2);
        assert_eq!(outside.segments().expect("they are known"), segments);
        let durable = *log.watch().borrow();
        assert_eq!(durable.end, segments[segments.len() - 1].start);
        assert_eq!(segments[segments.len() - 2].last_seq, Some(durable.last_seq));
        assert_eq!(durable.last_seq, u64::from(round) + 2, "what was offered is in it");
        // Nothing to seal: nothing happens.
        log.roll().await.expect("it is fine");
        assert_eq!(log.reader().segments().expect("they are known"), segments);
        log.rewrite(round + 1, &mut |_| Fate::Keep).expect("it is sealed").install(false).expect("it takes its place");
    }
    drop(log);
    let log = Log::open(small(directory.path())).expect("the log opens");
    assert_eq!(tell(&log.reader()).expect("it is whole").kept.len(), 7);
    log.close().await.expect("it closes");
    assert!(matches!(log.roll().await, Err(StorageError::Unavailable { .. })));
    assert!(matches!(log.drop_before(2).await, Err(StorageError::Unavailable { .. })));
}

//! Whoever reads while segments are written anew misses nothing, sees nothing twice, and takes nothing
//! that was overwritten on purpose for damage.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::super::format::SegmentHeader;
use super::super::segments::{Held, Sealed, SegmentSet};
use super::super::{BlockRef, Fate, Log, LogOptions, Reader};
use super::rewrite::{append, keep, sample};
use super::{Dice, message, options, read_from, temporary};
use crate::StorageError;
use crate::event::EventView;

#[tokio::test]
async fn readers_on_their_way_miss_nothing_and_see_nothing_twice() {
    let directory = temporary();
    let log = sample(directory.path(), 60).await;
    let outside = Reader::open(&directory.path().join("log")).expect("there is a log");
    let expected = read_from(&log.reader(), 0).expect("it is whole");
    let expected: Vec<u64> = expected.into_iter().map(|(seq, _)| seq).collect();
    for (round, reader) in [log.reader(), outside, log.reader()].into_iter().enumerate() {
        let mut walk = reader.blocks(reader.start()).expect("it begins");
        let first = walk.next().expect("there is one").expect("it is whole");
        let mut seen = Vec::new();
        let mut visit = |event: &EventView<'_>| {
            // Written anew while it is being read, and the next one as well.
            if event.seq.is_multiple_of(25) {
                let segments = log.reader().segments().expect("they are known");
                let number = segments.iter().rfind(|facts| facts.first_seq <= event.seq).expect("it is there").number;
                for number in [number, number + 1] {
                    if let Ok(rewritten) = log.rewrite(number, &mut keep) {
                        rewritten.install(true).expect("it takes its place");
                    }
                }
            }
            seen.push(event.seq);
            ControlFlow::Continue(())
        };
        reader.scan(0, &|_| true, &mut visit).unwrap_or_else(|error| panic!("round {round}: {error}"));
        assert_eq!(seen, expected, "round {round}");
        // Its file was overwritten with zeros meanwhile; that is no damage.
        match reader.load(first.position) {
            Err(StorageError::Moved) => {}
            other => panic!("round {round}: {other:?}"),
        }
        match walk.find_map(Result::err) {
            Some(StorageError::Moved) | None => {}
            other => panic!("round {round}: {other:?}"),
        }
    }
    append(&log, 3).await;
}

#[tokio::test]
async fn a_walk_goes_on_in_the_file_it_has_open() {
    let directory = temporary();
    let log = sample(directory.path(), 60).await;
    let reader = log.reader();
    let count = |from: u32| {
        reader
            .blocks(reader.start())
            .expect("it begins")
            .filter(|block| block.as_ref().is_ok_and(|block| block.position.segment >= from))
            .count()
    };
    let (all, behind) = (count(0), count(2));
    let mut walk = reader.blocks(reader.start()).expect("it begins");
    walk.next().expect("there is one").expect("it is whole");
    for number in [1, 2] {
        log.rewrite(number, &mut |_| Fate::Remove).expect("it is whole").install(false).expect("it takes its place");
    }
    let blocks: Vec<BlockRef> = walk.map(|block| block.expect("it is whole")).collect();
    let generations: BTreeSet<(u32, u16)> = blocks
        .iter()
        .map(|block| (block.position.segment, block.position.generation))
        .take_while(|at| at.0 < 4)
        .collect();
    assert_eq!(generations.into_iter().collect::<Vec<_>>(), [(1, 0), (2, 1), (3, 0)]);
    let first = blocks.iter().filter(|block| block.position.segment == 1).count();
    assert_eq!(first + 1, all - behind);
    let told: Vec<&BlockRef> = blocks.iter().filter(|block| block.position.segment == 2).collect();
    assert!(told.len() == 1 && told[0].header.removed && told[0].header.session_id.is_none());
}

/// Remembered beginnings of commits belong to the generation in which they were seen.
#[tokio::test]
async fn what_a_reader_remembers_of_a_segment_ends_with_its_generation() {
    let directory = temporary();
    let log = Log::open(LogOptions { segment_bytes: 16 << 20, ..options(directory.path()) }).expect("the log opens");
    let mut dice = Dice(5);
    for _ in 0..48 {
        let noise = |length: usize, dice: &mut Dice| -> String {
            (0..length).map(|_| char::from(b'!' + dice.below(90) as u8)).collect()
        };
        let drafts = (0..4).map(|_| message(Some("a"), &noise(12_000, &mut dice))).collect();
        log.commit(drafts).await.expect("it is recorded");
    }
    log.roll().await.expect("it is sealed");
    let last_seq = log.reader().durable().expect("it is known").last_seq;
    let (mut doomed, reader) = (BTreeSet::new(), log.reader());
    for round in 0..3u64 {
        // Fills what is remembered, and uses it.
        for _ in 0..2 {
            for from in (1..=last_seq).rev().step_by(7) {
                let read = read_from(&reader, from).expect("it is whole");
                let expected: Vec<u64> = (from..=last_seq).filter(|seq| !doomed.contains(seq)).collect();
                assert_eq!(
                    read.iter().map(|(seq, _)| *seq).collect::<Vec<_>>(),
                    expected,
                    "round {round}, from {from}"
                );
            }
        }
        let mut fate = |event: &EventView<'_>| {
            let goes = event.seq % 5 == round;
            doomed.extend(goes.then_some(event.seq));
            if goes { Fate::Remove } else { Fate::Keep }
        };
        log.rewrite(1, &mut fate).expect("it is whole").install(true).expect("it takes its place");
    }
}

/// The end that a scan was given lies in a file that is gone before the scan comes to it.
#[tokio::test]
async fn a_scan_to_an_end_that_was_written_anew_reads_up_to_it() {
    let directory = temporary();
    let log = sample(directory.path(), 2).await;
    let last_seq = log.reader().durable().expect("it is known").last_seq;
    let roll = |log: Log| {
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("there can be one");
        std::thread::spawn(move || runtime.block_on(log.roll())).join().expect("it ends").expect("it is sealed");
    };
    let mut seen = Vec::new();
    let mut visit = |event: &EventView<'_>| {
        if event.seq == 3 {
            roll(log.clone());
            // What tells of removed events may take more room than they did.
            let mut fate = |event: &EventView<'_>| if event.seq.is_multiple_of(2) { Fate::Remove } else { Fate::Keep };
            log.rewrite(1, &mut fate).expect("it is whole").install(true).expect("it takes its place");
        }
        seen.push(event.seq);
        ControlFlow::Continue(())
    };
    log.reader().scan(0, &|_| true, &mut visit).expect("it is whole");
    // The commit on its way was read in full, the next one from the new file.
    let (whole, rest): (Vec<u64>, Vec<u64>) = seen.iter().partition(|seq| **seq <= 8);
    assert_eq!(whole, (1..=8).collect::<Vec<_>>());
    assert_eq!(rest, (9..=last_seq).filter(|seq| seq % 2 == 1).collect::<Vec<_>>());
}

/// The segment may go between the look at it and the change.
#[test]
fn a_generation_does_not_take_the_place_of_a_segment_that_is_gone() {
    let held = |number: u32, generation: u16| {
        let (epoch, created_micros, previous_bytes) = (1, 0, 0);
        let (first_seq, last_seq) = (u64::from(number), u64::from(number));
        let (log_id, chain, own_bytes) = (*b"abcdefghijkl", [0; 32], 500);
        let header = SegmentHeader {
            number,
            log_id,
            epoch,
            first_seq,
            created_micros,
            previous_bytes,
            chain,
            generation,
            own_bytes,
            last_seq,
        };
        Held { header, sealed: Some(Sealed { end: own_bytes, last_seq }) }
    };
    let set = SegmentSet::new([held(1, 0), held(2, 0), held(3, 0)]);
    assert!(set.replace(held(2, 1)));
    assert_eq!(set.get(2).map(|held| held.generation()), Some(1));
    set.drop_before(3);
    let changes = *set.watch().borrow();
    assert!(!set.replace(held(2, 2)) && set.get(2).is_none());
    assert_eq!(*set.watch().borrow(), changes);
}

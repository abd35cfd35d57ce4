//! What is held against the abstract log: everything that readers show, block by block and in order.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use super::super::super::commit::{Item, in_order};
use super::super::super::format::segment_name;
use super::super::super::{Block, BlockHeader, Reader, page_bit};
use super::super::Dice;
use super::super::simulated_disk::SimulatedDisk;
use super::book::Book;
use crate::StorageError;
use crate::event::catalog::ConsoleMessage;
use crate::event::codec::ContextField;
use crate::event::{EventView, Payload};

/// Meets what is new.
pub fn absorb(book: &mut Book, reader: &Reader) {
    let from = book.last_seq() + 1;
    let mut meet = |event: &EventView<'_>| {
        book.meet(event);
        ControlFlow::Continue(())
    };
    reader.scan(from, &|_| true, &mut meet).expect("it is whole");
    book.check_met(reader.durable().expect("it is known").last_seq);
}

/// Meets everything that a reader shows, from its first block on; returns the removed numbers.
pub fn check_all(book: &mut Book, reader: &Reader) -> BTreeSet<u64> {
    let (mut expected_at, mut next_seq) = (reader.start(), reader.first_seq());
    let mut removed = BTreeSet::new();
    let mut commit: Vec<Block> = Vec::new();
    for block in reader.blocks(reader.start()).expect("it is whole") {
        let block = block.expect("it is whole");
        if expected_at.segment == block.position.segment {
            assert_eq!(block.position, expected_at, "blocks follow one another");
        }
        expected_at = block.next;
        let loaded = reader.load(block.position).expect("it is whole");
        assert_eq!(loaded.header, block.header);
        commit.push(loaded);
        if block.header.end_of_commit {
            next_seq = check_commit(book, &std::mem::take(&mut commit), next_seq, &mut removed);
        }
    }
    assert!(commit.is_empty(), "a commit has no end");
    let durable = reader.durable().expect("it is known");
    assert_eq!((durable.last_seq, durable.chain), (next_seq - 1, book.chain_after(next_seq - 1)));
    removed
}

/// Meets the events of one commit, which begins with `next_seq`; returns the number after it.
fn check_commit(book: &mut Book, commit: &[Block], next_seq: u64, removed: &mut BTreeSet<u64>) -> u64 {
    let mut seq = next_seq;
    for item in in_order(commit).expect("a commit has no hole") {
        match item {
            Item::Event(_, event) => {
                assert_eq!(event.seq, seq, "the numbers of a commit");
                book.meet(&event);
                seq += 1;
            }
            Item::Removed(run) => {
                assert_eq!(run.first_seq, seq, "the numbers of a commit");
                book.meet_removed(&run);
                removed.extend(seq..seq + run.count);
                seq += run.count;
            }
        }
    }
    for (position, block) in commit.iter().enumerate() {
        let ends = position + 1 == commit.len();
        assert_eq!(block.header.end_of_commit, ends);
        assert_eq!(block.header.chain, if ends { book.chain_after(seq - 1) } else { [0; 32] }, "before {seq}");
        check_header(block);
    }
    seq
}

/// What a header says is what is inside.
fn check_header(block: &Block) {
    let header = &block.header;
    let events: Vec<EventView<'_>> = block.events().map(|event| event.expect("it decodes")).collect();
    if header.removed {
        let runs = block.removed().expect("it decodes");
        assert!(events.is_empty() && header.session_id.is_none());
        assert_eq!(u64::from(header.count), runs.iter().map(|run| run.count).sum::<u64>());
        assert_eq!((header.kinds, header.levels, header.pages), (0, 0, 0));
        let last = runs.last().map(|run| run.first_seq + run.count - 1);
        assert_eq!((Some(header.first_seq), Some(header.last_seq)), (runs.first().map(|run| run.first_seq), last));
        return;
    }
    assert_eq!(header.count as usize, events.len());
    assert_eq!(Some(header.first_seq), events.first().map(|event| event.seq));
    assert_eq!(Some(header.last_seq), events.last().map(|event| event.seq));
    assert!(events.is_sorted_by(|one, next| one.seq < next.seq));
    let times = || events.iter().map(|event| event.recorded_at_micros);
    assert_eq!(Some(header.first_micros), times().min());
    assert_eq!(Some(header.last_micros), times().max());
    let sums = events.iter().fold((0, 0, 0), |sums, event| add(header, sums, event));
    assert_eq!((header.kinds, header.levels, header.pages), sums);
}

fn add(header: &BlockHeader, sums: (u128, u8, u64), event: &EventView<'_>) -> (u128, u8, u64) {
    assert_eq!(event.context(ContextField::SessionId), header.session_id.as_ref().map(|id| id.as_str()));
    let page = event.context(ContextField::PageId).map_or(0, page_bit);
    let level = ConsoleMessage::take(event).map_or(0, |message| 1 << message.level as u8);
    (sums.0 | 1 << event.kind_number, sums.1 | level, sums.2 | page)
}

/// Reads from anywhere, as somebody who pages does; reading may fail for reasons of its own. Who reads
/// from outside may still see what was removed while the file is open.
pub fn check_from_anywhere(book: &Book, reader: &Reader, dice: &mut Dice, outside: bool) -> Result<(), StorageError> {
    let last_seq = reader.durable()?.last_seq;
    let first_seq = reader.first_seq();
    assert_eq!(first_seq, book.first_seq, "where the log begins");
    let from = dice.below(last_seq + 3);
    let mut left = 1 + dice.below(30);
    let mut next_seq = from.max(first_seq);
    let all_removed = |mut seqs: std::ops::Range<u64>| seqs.all(|seq| book.removed.contains(&seq));
    reader.scan(from, &|_| true, &mut |event| {
        assert!(all_removed(next_seq..event.seq), "a scan from {from}: from {next_seq} to {}", event.seq);
        assert!(outside || !book.removed.contains(&event.seq), "event {} is back", event.seq);
        assert!(event.record == book.record(event.seq), "event {} is not what it was", event.seq);
        next_seq = event.seq + 1;
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    assert!(left == 0 || all_removed(next_seq..last_seq + 1), "a scan from {from} ended before {next_seq}");
    check_position(reader, from)?;
    check_segments(book, reader, last_seq)
}

/// The commit before a number does not begin behind it.
fn check_position(reader: &Reader, from: u64) -> Result<(), StorageError> {
    let mut begins = None;
    for block in reader.blocks(reader.position_before(from)?)? {
        let header = block?.header;
        begins = begins.min(Some(header.first_seq)).or(Some(header.first_seq));
        if header.end_of_commit {
            break;
        }
    }
    assert!(begins.is_none_or(|begins| begins <= from.max(reader.first_seq())), "{begins:?} is not before {from}");
    Ok(())
}

/// The segments tell where they begin and end, without a hole.
fn check_segments(book: &Book, reader: &Reader, last_seq: u64) -> Result<(), StorageError> {
    let segments = reader.segments()?;
    let mut next_seq = book.first_seq;
    for (position, facts) in segments.iter().enumerate() {
        assert_eq!((facts.number, facts.first_seq), (segments[0].number + position as u32, next_seq));
        assert_eq!(facts.last_seq.is_none(), position + 1 == segments.len(), "which segment is being written");
        next_seq = facts.last_seq.unwrap_or(last_seq) + 1;
    }
    assert_eq!(next_seq, last_seq + 1);
    Ok(())
}

/// Nothing lies about but what the log needs and what recovery put aside.
pub fn check_files(disk: &SimulatedDisk, reader: &Reader) {
    let segments = reader.segments().expect("they are known");
    let mut expected: Vec<String> =
        segments.iter().map(|facts| segment_name(facts.number, facts.generation)).chain(["mark".into()]).collect();
    let mut found: Vec<String> = disk.files().into_iter().map(|(name, _)| name).collect();
    found.retain(|name| !name.starts_with("torn-"));
    expected.sort_unstable();
    found.sort_unstable();
    assert_eq!(found, expected, "what lies in the directory");
}

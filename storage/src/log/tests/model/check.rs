//! What is held against the abstract log: everything that readers show, block by block and in order.

use std::ops::ControlFlow;

use super::super::super::{BlockHeader, Position, Reader, page_bit};
use super::super::Dice;
use super::super::simulated_disk::SimulatedDisk;
use super::book::Book;
use crate::event::catalog::ConsoleMessage;
use crate::event::codec::ContextField;
use crate::event::{EventView, Payload};

/// Meets what is new.
pub fn absorb(book: &mut Book, reader: &Reader) {
    let from = book.last_seq() + 1;
    scan(reader, from, &mut |event| book.meet(event));
    book.check_met(reader.durable().expect("it is known").last_seq);
}

/// Meets everything, from the first block on.
pub fn check_all(book: &mut Book, reader: &Reader) {
    let (mut expected_at, mut next_seq) = (Some(reader.start()), reader.first_seq());
    let mut commit: Vec<(BlockHeader, Position)> = Vec::new();
    for block in reader.blocks(reader.start()).expect("it is whole") {
        let block = block.expect("it is whole");
        if let Some(expected) = expected_at.filter(|expected| expected.segment == block.position.segment) {
            assert_eq!(block.position, expected, "blocks follow one another");
        }
        expected_at = Some(block.next);
        let ends = block.header.end_of_commit;
        commit.push((block.header, block.position));
        if ends {
            next_seq = check_commit(book, reader, &std::mem::take(&mut commit), next_seq);
        }
    }
    assert!(commit.is_empty(), "a commit has no end");
    book.check_met(next_seq - 1);
    assert_eq!(reader.durable().expect("it is known").last_seq, next_seq - 1);
}

/// Meets the events of one commit, which begins with `next_seq`; returns the number after it.
fn check_commit(book: &mut Book, reader: &Reader, commit: &[(BlockHeader, Position)], next_seq: u64) -> u64 {
    let mut loaded = Vec::new();
    for (header, position) in commit {
        let block = reader.load(*position).expect("it is whole");
        assert_eq!(block.header, *header);
        loaded.push(block);
    }
    let mut events = Vec::new();
    for block in &loaded {
        let inside: Vec<EventView<'_>> = block.events().map(|event| event.expect("it decodes")).collect();
        check_header(&block.header, &inside);
        events.extend(inside);
    }
    events.sort_by_key(|event| event.seq);
    for (event, seq) in events.iter().zip(next_seq..) {
        assert_eq!(event.seq, seq, "the numbers of a commit");
        book.meet(event);
    }
    next_seq + events.len() as u64
}

/// What a header says is what is inside.
fn check_header(header: &BlockHeader, events: &[EventView<'_>]) {
    assert_eq!(header.count as usize, events.len());
    assert_eq!(Some(header.first_seq), events.first().map(|event| event.seq));
    assert_eq!(Some(header.last_seq), events.last().map(|event| event.seq));
    assert!(events.is_sorted_by(|one, next| one.seq < next.seq));
    let times = || events.iter().map(|event| event.recorded_at_micros);
    assert_eq!(Some(header.first_micros), times().min());
    assert_eq!(Some(header.last_micros), times().max());
    let (mut kinds, mut levels, mut pages) = (0u128, 0u8, 0u64);
    for event in events {
        assert_eq!(event.context(ContextField::SessionId), header.session_id.as_ref().map(|id| id.as_str()));
        kinds |= 1 << event.kind_number;
        pages |= event.context(ContextField::PageId).map_or(0, page_bit);
        levels |= ConsoleMessage::take(event).map_or(0, |message| 1 << message.level as u8);
    }
    assert_eq!((header.kinds, header.levels, header.pages), (kinds, levels, pages));
}

/// Reads from anywhere, as somebody who pages does.
pub fn check_from_anywhere(book: &Book, reader: &Reader, dice: &mut Dice) {
    let last_seq = reader.durable().expect("it is known").last_seq;
    let from = dice.below(last_seq + 3);
    let most = 1 + dice.below(30) as usize;
    let mut expected = (from.max(reader.first_seq())..=last_seq).filter(|seq| !book.removed.contains(seq));
    let mut left = most;
    let outcome = reader.scan(from, &|_| true, &mut |event| {
        assert_eq!(Some(event.seq), expected.next(), "a scan from {from}");
        let mut record = Vec::new();
        crate::event::codec::put_record(&mut record, event.seq, event.recorded_at_micros, event.body);
        assert!(record == book.record(event.seq), "event {} is not what it was", event.seq);
        left -= 1;
        if left == 0 { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    });
    outcome.expect("it is whole");
    assert!(left == 0 || expected.next().is_none(), "a scan from {from} ended early");
    let position = reader.position_before(from).expect("it is whole");
    let first = reader.blocks(position).expect("it is whole").next().transpose().expect("it is whole");
    assert!(first.is_none_or(|block| block.header.first_seq <= from.max(reader.first_seq())));
}

fn scan(reader: &Reader, from: u64, visit: &mut dyn FnMut(&EventView<'_>)) {
    let mut visit = |event: &EventView<'_>| {
        visit(event);
        ControlFlow::Continue(())
    };
    reader.scan(from, &|_| true, &mut visit).expect("it is whole");
}

/// Nothing lies about but what the log needs and what recovery put aside.
pub fn check_files(disk: &SimulatedDisk, reader: &Reader) {
    let _ = reader;
    for (name, _) in disk.files() {
        let known = name == "mark" || name.ends_with(".seg") || name.starts_with("torn-");
        assert!(known, "{name} was left behind");
    }
}

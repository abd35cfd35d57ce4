//! Walks over blocks: headers only for those who skip, events in order for those who read.

use std::ops::ControlFlow;

use super::block::{Block, BlockHeader, BlockRef};
use super::format::SEGMENT_HEADER_BYTES;
use super::reader::{Reader, SegmentView};
use super::window::{Step, Window};
use super::{Durable, Position};
use crate::StorageError;
use crate::event::EventView;

/// Remembered beginnings of commits lie at least this far apart.
const HINTS_APART_BYTES: u32 = 256 * 1024;
const HINTS_MAX: usize = 4096;
/// Times that a walk begins again because a segment was written anew under it.
const LOOKS_MAX: u32 = 100;

/// Iterator over the blocks of a log in file order, up to the durable end when it was made. Ends
/// after the first error.
pub struct BlockWalk {
    reader: Reader,
    durable: Durable,
    at: Position,
    segment: Option<(SegmentView, Window)>,
    passed: Passed,
    ended: bool,
}

/// What a walk has seen of a segment.
#[derive(Default)]
struct Passed {
    /// Behind the last commit that ended.
    next_seq: u64,
    /// The highest number seen, which may belong to a commit that has not ended.
    last_seq: u64,
}

impl BlockWalk {
    pub(super) fn new(reader: Reader, from: Position, durable: Durable) -> Self {
        let at = Position { offset: from.offset.max(SEGMENT_HEADER_BYTES), ..from };
        let same = (at.segment, at.generation) == (durable.end.segment, durable.end.generation);
        let ended = at.segment > durable.end.segment || same && at.offset >= durable.end.offset;
        Self { reader, durable, at, segment: None, passed: Passed::default(), ended }
    }

    fn step(&mut self) -> Result<Option<BlockRef>, StorageError> {
        while !self.ended {
            if self.segment.is_none() && !self.enter(Some(self.at.generation))? {
                self.pass_on()?;
                continue;
            }
            let Some((view, window)) = &mut self.segment else { continue };
            let offset = u64::from(self.at.offset);
            let step = window.header(offset).map_err(StorageError::io("read", self.reader.path_of(&view.header)))?;
            let stored = match step {
                Step::Block(stored) => stored,
                Step::Damage(what) => return Err(self.reader.damaged(view, self.passed.next_seq, what)),
                Step::End if offset >= view.end => {
                    self.pass_on()?;
                    continue;
                }
                Step::End => {
                    let what = "zeros where a block should be";
                    return Err(self.reader.damaged(view, self.passed.next_seq, what));
                }
            };
            let position = self.at;
            let next = offset + stored.stored_bytes as u64;
            // The window ends at the segment's end, which a position can name.
            self.at.offset = u32::try_from(next).unwrap_or(u32::MAX);
            self.passed.last_seq = self.passed.last_seq.max(stored.header.last_seq);
            if stored.header.end_of_commit {
                self.passed.next_seq = self.passed.last_seq + 1;
            }
            return Ok(Some(BlockRef { position, next: self.at, header: stored.header }));
        }
        Ok(None)
    }

    /// Opens the segment at which the walk stands, in the generation given or whichever holds; false
    /// when it is gone.
    fn enter(&mut self, generation: Option<u16>) -> Result<bool, StorageError> {
        let Some(view) = self.reader.segment(self.at.segment, generation, &self.durable)? else { return Ok(false) };
        self.at.generation = view.header.generation;
        self.passed = Passed { next_seq: view.header.first_seq, last_seq: 0 };
        let window = Window::new(view.file.clone(), view.end);
        self.segment = Some((view, window));
        Ok(true)
    }

    /// Goes to the beginning of the next segment that is there; ends behind the durable one.
    fn pass_on(&mut self) -> Result<(), StorageError> {
        while self.at.segment < self.durable.end.segment {
            let behind = self.reader.set().after(self.at.segment);
            let Some(next) = behind.filter(|next| next.number() <= self.durable.end.segment) else { break };
            self.at = next.start();
            if self.enter(None)? {
                return Ok(());
            }
        }
        self.ended = true;
        Ok(())
    }
}

impl Iterator for BlockWalk {
    type Item = Result<BlockRef, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        self.ended |= step.is_err();
        step.transpose()
    }
}

impl Reader {
    /// The beginning of a commit at or before the one that holds `seq`; the durable end when `seq`
    /// lies behind it, the start when it lies before the oldest.
    ///
    /// # Errors
    /// When the log cannot be read or is damaged on the way.
    pub fn position_before(&self, seq: u64) -> Result<Position, StorageError> {
        for _ in 0..LOOKS_MAX {
            match self.look_before(seq) {
                Err(StorageError::Moved) => {}
                outcome => return outcome,
            }
        }
        Err(StorageError::Moved)
    }

    fn look_before(&self, seq: u64) -> Result<Position, StorageError> {
        let durable = self.durable()?;
        if seq > durable.last_seq {
            return Ok(durable.end);
        }
        let Some(held) = self.set().holding(seq) else { return Ok(self.start()) };
        let mut start = held.start();
        start = self.hints().between(start, seq).unwrap_or(start);
        let (mut commit_at, mut commit_first) = (start, None);
        for block in BlockWalk::new(self.clone(), start, durable) {
            let block = block?;
            if commit_first.is_none() {
                commit_first = Some(block.header.first_seq);
                commit_at = block.position;
                self.hints().remember(block.header.first_seq, commit_at, HINTS_APART_BYTES, HINTS_MAX);
            }
            if block.header.last_seq >= seq {
                break;
            }
            if block.header.end_of_commit {
                commit_first = None;
            }
        }
        Ok(commit_at)
    }

    /// Visits the events from `from_seq` on, strictly in order of `seq`, up to the durable end at
    /// this moment. Blocks that `wants` declines are passed over unread.
    ///
    /// # Errors
    /// When the log cannot be read or is damaged on the way. What was visited is right; of what was not,
    /// nothing lies before the numbers that `StorageError::Damaged` names, so that whoever goes on
    /// behind them has missed nothing else.
    pub fn scan(
        &self,
        from_seq: u64,
        wants: &dyn Fn(&BlockHeader) -> bool,
        visit: &mut dyn FnMut(&EventView<'_>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let mut scan = Scan { reader: self, next_seq: from_seq, until: self.durable()?, wants, visit };
        let mut looks = 0;
        loop {
            let began_at = scan.next_seq;
            match scan.go() {
                // What was visited is not visited again: the scan goes on behind it.
                Err(StorageError::Moved) if looks < LOOKS_MAX => {}
                outcome => return outcome,
            }
            looks = if scan.next_seq > began_at { 0 } else { looks + 1 };
        }
    }
}

/// A scan on its way.
struct Scan<'a> {
    reader: &'a Reader,
    /// Events before this one are done with.
    next_seq: u64,
    until: Durable,
    wants: &'a dyn Fn(&BlockHeader) -> bool,
    visit: &'a mut dyn FnMut(&EventView<'_>) -> ControlFlow<()>,
}

impl Scan<'_> {
    fn go(&mut self) -> Result<(), StorageError> {
        let from = self.reader.position_before(self.next_seq)?;
        let mut commit: Vec<Block> = Vec::new();
        let mut damaged: Option<(u64, StorageError)> = None;
        let mut last_seq = 0;
        for block in BlockWalk::new(self.reader.clone(), from, self.until) {
            let BlockRef { position, header, .. } = block?;
            last_seq = last_seq.max(header.last_seq);
            if header.last_seq >= self.next_seq && !header.removed && (self.wants)(&header) {
                match self.reader.load(position) {
                    Ok(block) => commit.push(block),
                    Err(error @ StorageError::Damaged { first_seq, .. }) => {
                        damaged = damaged.filter(|(first, _)| *first < first_seq).or(Some((first_seq, error)));
                    }
                    Err(error) => return Err(error),
                }
            }
            if header.end_of_commit {
                let until_seq = damaged.as_ref().map_or(u64::MAX, |(first_seq, _)| *first_seq);
                if self.visit_commit(&commit, until_seq)?.is_break() {
                    return Ok(());
                }
                if let Some((_, error)) = damaged {
                    return Err(error);
                }
                commit.clear();
                self.next_seq = self.next_seq.max(last_seq + 1);
            }
        }
        Ok(())
    }

    /// The events of one commit below `until_seq`, which its blocks hold session by session, in order.
    fn visit_commit(&mut self, blocks: &[Block], until_seq: u64) -> Result<ControlFlow<()>, StorageError> {
        let mut events = Vec::new();
        for block in blocks {
            for event in block.events() {
                events.push(event.map_err(|error| self.reader.undecodable(&block.header, error))?);
            }
        }
        events.sort_by_key(|event| event.seq);
        for event in events.iter().filter(|event| (self.next_seq..until_seq).contains(&event.seq)) {
            if (self.visit)(event).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }
}

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

/// Iterator over the blocks of a log in file order, up to the durable end when it was made. Ends
/// after the first error.
pub struct BlockWalk {
    reader: Reader,
    durable: Durable,
    at: Position,
    segment: Option<(SegmentView, Window)>,
}

impl BlockWalk {
    pub(super) fn new(reader: Reader, from: Position, durable: Durable) -> Self {
        let at = Position { offset: from.offset.max(SEGMENT_HEADER_BYTES), ..from };
        Self { reader, durable, at, segment: None }
    }

    fn step(&mut self) -> Result<Option<BlockRef>, StorageError> {
        while self.at < self.durable.end {
            let (view, window) = match &mut self.segment {
                Some(open) if open.0.header.number == self.at.segment => open,
                other => {
                    let view = self.reader.segment(self.at.segment, &self.durable)?;
                    let window = Window::new(view.file.clone(), view.end);
                    other.insert((view, window))
                }
            };
            let offset = u64::from(self.at.offset);
            let step = window.header(offset).map_err(StorageError::io("read", self.reader.path_of(self.at.segment)))?;
            let stored = match step {
                Step::Block(stored) => stored,
                Step::Damage(what) => return Err(self.reader.damaged(view, what)),
                Step::End if offset >= view.end => {
                    self.at = Position { segment: self.at.segment + 1, offset: SEGMENT_HEADER_BYTES };
                    continue;
                }
                Step::End => return Err(self.reader.damaged(view, "zeros where a block should be")),
            };
            let position = self.at;
            let next = offset + stored.stored_bytes as u64;
            // The window ends at the segment's end, which a position can name.
            self.at.offset = u32::try_from(next).unwrap_or(u32::MAX);
            return Ok(Some(BlockRef { position, next: self.at, header: stored.header }));
        }
        Ok(None)
    }
}

impl Iterator for BlockWalk {
    type Item = Result<BlockRef, StorageError>;

    fn next(&mut self) -> Option<Self::Item> {
        let step = self.step();
        if step.is_err() {
            self.at = self.durable.end;
        }
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
        let durable = self.durable()?;
        if seq > durable.last_seq {
            return Ok(durable.end);
        }
        if seq <= self.first_seq() {
            return Ok(self.start());
        }
        let mut start = self.segment_start(seq, durable.end.segment)?;
        start = start.max(self.hints().before(seq).unwrap_or(start));
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

    /// The first block of the newest segment that begins at or before `seq`.
    fn segment_start(&self, seq: u64, newest: u32) -> Result<Position, StorageError> {
        let (mut low, mut high) = (self.start().segment, newest);
        while low < high {
            let middle = high - (high - low) / 2;
            if self.segment_header(middle)?.first_seq <= seq {
                low = middle;
            } else {
                high = middle - 1;
            }
        }
        Ok(Position { segment: low, offset: SEGMENT_HEADER_BYTES })
    }

    /// Visits the events from `from_seq` on, strictly in order of `seq`, up to the durable end at
    /// this moment. Blocks that `wants` declines are passed over unread.
    ///
    /// # Errors
    /// When the log cannot be read or is damaged on the way; what was visited before is right.
    pub fn scan(
        &self,
        from_seq: u64,
        wants: &dyn Fn(&BlockHeader) -> bool,
        visit: &mut dyn FnMut(&EventView<'_>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let from = self.position_before(from_seq)?;
        let mut commit: Vec<Block> = Vec::new();
        for block in self.blocks(from)? {
            let block = block?;
            if block.header.last_seq >= from_seq && wants(&block.header) {
                commit.push(self.load(block.position)?);
            }
            if block.header.end_of_commit && visit_commit(self, &commit, from_seq, visit)?.is_break() {
                return Ok(());
            }
            if block.header.end_of_commit {
                commit.clear();
            }
        }
        Ok(())
    }
}

/// The events of one commit, which its blocks hold session by session, in order of `seq`.
fn visit_commit(
    reader: &Reader,
    blocks: &[Block],
    from_seq: u64,
    visit: &mut dyn FnMut(&EventView<'_>) -> ControlFlow<()>,
) -> Result<ControlFlow<()>, StorageError> {
    let mut events = Vec::new();
    for block in blocks {
        for event in block.events() {
            events.push(event.map_err(|error| reader.undecodable(&block.header, error))?);
        }
    }
    events.sort_by_key(|event| event.seq);
    for event in events.iter().filter(|event| event.seq >= from_seq) {
        if visit(event).is_break() {
            return Ok(ControlFlow::Break(()));
        }
    }
    Ok(ControlFlow::Continue(()))
}

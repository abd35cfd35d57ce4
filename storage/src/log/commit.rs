//! Whole commits, read from the beginning of a segment with every byte checked: what recovery and the
//! rewriter walk by.
//!
//! What must stay true: a commit is given only when all its blocks are whole and its numbers are the
//! next ones, without a hole; its chain is what the events say, not what a header says.

use std::io;
use std::sync::Arc;

use super::block::{Block, RemovedRun, StoredHeader};
use super::chain;
use super::format::SEGMENT_HEADER_BYTES;
use super::storage_io::StorageFile;
use super::window::{Step, Window};
use crate::event::EventView;
use crate::ids::SessionId;

pub(super) struct CommitWalk {
    window: Window,
    offset: u64,
    next_seq: u64,
}

pub(super) enum Walked {
    Commit(Commit),
    /// No block follows.
    End,
    /// Something follows that is no whole commit.
    Torn(&'static str),
}

pub(super) struct Commit {
    /// Where it ends.
    pub end: u64,
    pub last_seq: u64,
    /// The chain hash after its last event, as its last block has it.
    pub chain: [u8; 32],
    /// When it was recorded.
    pub recorded_micros: i64,
    blocks: Vec<(u64, StoredHeader)>,
}

impl Commit {
    /// Kinds of event in all its blocks, as [`BlockHeader::kinds`](super::BlockHeader::kinds) has them.
    pub fn kinds(&self) -> u128 {
        self.blocks.iter().fold(0, |kinds, (_, stored)| kinds | stored.header.kinds)
    }
}

/// What stands at one number or a run of them.
pub(super) enum Item<'a> {
    Event(Option<&'a SessionId>, EventView<'a>),
    Removed(RemovedRun),
}

impl Item<'_> {
    fn first_seq(&self) -> u64 {
        match self {
            Item::Event(_, event) => event.seq,
            Item::Removed(run) => run.first_seq,
        }
    }

    /// `None`: it was removed.
    pub fn event(&self) -> Option<&EventView<'_>> {
        if let Item::Event(_, event) = self { Some(event) } else { None }
    }

    fn count(&self) -> u64 {
        match self {
            Item::Event(..) => 1,
            Item::Removed(run) => run.count,
        }
    }

    /// The chain hash behind it.
    pub fn chain(&self, before: &[u8; 32]) -> [u8; 32] {
        match self {
            Item::Event(_, event) => chain::next(before, event.record),
            Item::Removed(run) => run.chain,
        }
    }
}

impl CommitWalk {
    /// `first_seq` is the segment's first number; nothing beyond `length` is looked at.
    pub fn new(file: Arc<dyn StorageFile>, first_seq: u64, length: u64) -> Self {
        let offset = u64::from(SEGMENT_HEADER_BYTES);
        Self { window: Window::new(file, length), offset, next_seq: first_seq }
    }

    /// The next commit, its bytes checked and its events unread.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn next_commit(&mut self) -> io::Result<Walked> {
        let (mut offset, mut blocks) = (self.offset, Vec::new());
        let (mut count, mut first_seq, mut last_seq) = (0u64, u64::MAX, 0);
        let mut recorded_micros = i64::MIN;
        let chain = loop {
            let stored = match self.window.header(offset)? {
                Step::Block(stored) => stored,
                Step::End if count == 0 => return Ok(Walked::End),
                Step::End => return Ok(Walked::Torn("a commit is not complete")),
                Step::Damage(what) => return Ok(Walked::Torn(what)),
            };
            if !self.window.content_is_whole(offset, &stored)? {
                return Ok(Walked::Torn("a block's content does not match its checksum"));
            }
            count += u64::from(stored.header.count);
            first_seq = first_seq.min(stored.header.first_seq);
            last_seq = last_seq.max(stored.header.last_seq);
            recorded_micros = recorded_micros.max(stored.header.last_micros);
            let (at, ends, chain) = (offset, stored.header.end_of_commit, stored.header.chain);
            offset += stored.stored_bytes as u64;
            blocks.push((at, stored));
            if ends {
                break chain;
            }
        };
        if first_seq != self.next_seq || last_seq.checked_sub(first_seq) != count.checked_sub(1) {
            return Ok(Walked::Torn("a commit does not continue the one before it"));
        }
        self.offset = offset;
        self.next_seq = last_seq + 1;
        Ok(Walked::Commit(Commit { end: offset, last_seq, chain, recorded_micros, blocks }))
    }

    /// The next commit, if its events lead from `before` to the chain hash that it states.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn next_chained(&mut self, before: [u8; 32]) -> io::Result<Walked> {
        let commit = match self.next_commit()? {
            Walked::Commit(commit) => commit,
            other => return Ok(other),
        };
        let checked = self.unpack(&commit)?.and_then(|blocks| {
            let items = in_order(&blocks)?;
            Ok(items.iter().fold(before, |chain, item| item.chain(&chain)))
        });
        Ok(match checked {
            Ok(chain) if chain == commit.chain => Walked::Commit(commit),
            Ok(_) => Walked::Torn("a commit does not continue the hash chain"),
            Err(what) => Walked::Torn(what),
        })
    }

    /// The blocks of a commit.
    ///
    /// # Errors
    /// When the operating system refuses; inside, when a block is not what was written.
    pub fn unpack(&mut self, commit: &Commit) -> io::Result<Result<Vec<Block>, &'static str>> {
        let mut blocks = Vec::with_capacity(commit.blocks.len());
        for (offset, stored) in &commit.blocks {
            let bytes = self.window.at(*offset, stored.stored_bytes)?;
            let content = bytes.get(stored.content_at..stored.stored_bytes).unwrap_or_default();
            match stored.clone().unpack(content) {
                Ok(block) => blocks.push(block),
                Err(what) => return Ok(Err(what)),
            }
        }
        Ok(Ok(blocks))
    }
}

/// What the blocks of one commit hold, in order of number.
///
/// # Errors
/// When something does not decode, or the numbers have a hole or a double.
pub(super) fn in_order(blocks: &[Block]) -> Result<Vec<Item<'_>>, &'static str> {
    let mut items = Vec::new();
    for block in blocks {
        for event in block.events() {
            let event = event.map_err(|_| "an event does not decode")?;
            items.push(Item::Event(block.header.session_id.as_ref(), event));
        }
        let runs = block.removed().map_err(|_| "what is told of removed events does not decode")?;
        items.extend(runs.into_iter().map(Item::Removed));
    }
    items.sort_by_key(Item::first_seq);
    let joined = |pair: &[Item<'_>]| pair[0].first_seq() + pair[0].count() == pair[1].first_seq();
    if items.windows(2).all(joined) { Ok(items) } else { Err("the numbers of a commit have a hole") }
}

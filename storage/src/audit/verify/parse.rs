//! Makes one commit ready to be followed: its blocks checked against their events, and everything in it
//! laid out in order of number.

use super::facts::{Describer, removed_block_is_bare};
use super::report::Problem;
use crate::event::catalog::{LOG_KINDS, LogCheckpoint, LogOpened, LogRemoved};
use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, Payload as _};
use crate::limits::SEQ_MAX;
use crate::log::inspect::RawCommit;
use crate::log::{Block, RemovedRun};
use crate::upkeep::{Handle, handle};

/// A commit, taken apart.
pub(super) struct Parsed {
    /// In order of number.
    pub items: Vec<Item>,
    pub runs: Vec<RemovedRun>,
    pub specials: Vec<(u64, Special)>,
    /// What events name as kept beside the log.
    pub handles: Vec<(u64, Handle)>,
    /// What is wrong with single blocks.
    pub problems: Vec<(Problem, u64, u64, &'static str)>,
    /// It holds events that are not about the log itself.
    pub others: bool,
    /// Some of its events could not be read.
    pub spoiled: bool,
    pub chain: [u8; 32],
    pub stored_bytes: u64,
    pub raw_bytes: u64,
    /// Where it ends in its segment.
    pub end: u64,
    blocks: Vec<Block>,
}

/// What an event calls a key is kept up to this length.
const KEY_CHARS_MAX: usize = 64;

/// An event, or a run of removed ones.
#[derive(Debug, Clone, Copy)]
pub(super) struct Item {
    pub seq: u64,
    /// Of a run, its place in `runs`.
    block: u32,
    start: u32,
    /// 0 for a run: no event is empty.
    length: u32,
    pub turn: Turn,
}

/// Whether an event begins or ends a run of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Turn {
    None,
    Opened,
    Sealed,
}

/// An event that speaks about the log itself.
pub(super) enum Special {
    Opened { epoch: u64 },
    Checkpoint { seq: u64, line: [u8; 32], key: String },
    Removed(Announcement),
}

/// A removal on record.
pub(super) struct Announcement {
    /// What makes several of them the same.
    pub name: [u8; 32],
    pub segment: u64,
    pub generation: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub count: u64,
}

/// What stands at a number.
pub(super) enum Content<'a> {
    Record(&'a [u8]),
    Run(&'a RemovedRun),
}

impl Parsed {
    pub fn content(&self, item: &Item) -> Content<'_> {
        if item.length == 0 {
            return Content::Run(&self.runs[item.block as usize]);
        }
        let (start, length) = (item.start as usize, item.length as usize);
        Content::Record(&self.blocks[item.block as usize].raw()[start..start + length])
    }
}

/// Takes a commit apart that ends at `end`.
pub(super) fn parse(commit: RawCommit, end: u64, describer: &Describer) -> Parsed {
    let spoiled = commit.spoiled.iter().map(|(first, last, what)| (Problem::Damaged, *first, *last, *what));
    let mut parsed = Parsed {
        items: Vec::new(),
        runs: Vec::new(),
        specials: Vec::new(),
        handles: Vec::new(),
        problems: spoiled.collect(),
        others: false,
        spoiled: !commit.spoiled.is_empty(),
        chain: commit.chain,
        stored_bytes: commit.stored_bytes,
        raw_bytes: commit.blocks.iter().map(|block| u64::from(block.header.raw_bytes)).sum(),
        end,
        blocks: Vec::new(),
    };
    for (number, block) in commit.blocks.iter().enumerate() {
        parsed.take(number as u32, block, describer);
    }
    parsed.blocks = commit.blocks;
    if !parsed.items.is_sorted_by_key(|item| item.seq) {
        parsed.items.sort_by_key(|item| item.seq);
    }
    parsed
}

impl Parsed {
    fn take(&mut self, number: u32, block: &Block, describer: &Describer) {
        let range = (block.header.first_seq, block.header.last_seq);
        let mut problem = |problem, what| self.problems.push((problem, range.0, range.1, what));
        if block.header.removed {
            match block.removed() {
                Ok(runs) => {
                    if !removed_block_is_bare(block) {
                        problem(Problem::Misdescribed, "a block of removed events describes some");
                    }
                    for run in runs.into_iter().filter(|run| run.first_seq.saturating_add(run.count) < SEQ_MAX) {
                        let at = self.runs.len() as u32;
                        self.items.push(Item { seq: run.first_seq, block: at, start: 0, length: 0, turn: Turn::None });
                        self.runs.push(run);
                    }
                }
                Err(_) => {
                    self.spoiled = true;
                    problem(Problem::Damaged, "what a block tells of removed events does not decode");
                }
            }
            return;
        }
        self.others |= block.header.kinds & !LOG_KINDS != 0;
        let (items, specials, handles) = (&mut self.items, &mut self.specials, &mut self.handles);
        let mut start = 0u32;
        let checked = describer.check(block, &mut |event| {
            let length = event.record.len() as u32;
            if event.seq < SEQ_MAX {
                let turn = match event.kind() {
                    Some(Kind::LogOpened) => Turn::Opened,
                    Some(Kind::LogSealed) => Turn::Sealed,
                    _ => Turn::None,
                };
                items.push(Item { seq: event.seq, block: number, start, length, turn });
            }
            start += length;
            handles.extend(event.handles().filter_map(handle).map(|handle| (event.seq, handle)));
            specials.extend(special(event).map(|special| (event.seq, special)));
        });
        match checked {
            Ok(None) => {}
            Ok(Some(what)) => problem(Problem::Misdescribed, what),
            Err(_) => {
                self.spoiled = true;
                problem(Problem::Damaged, "an event does not decode");
            }
        }
    }
}

fn special(event: &EventView<'_>) -> Option<Special> {
    match event.kind()? {
        Kind::LogOpened => LogOpened::take(event).ok().map(|opened| Special::Opened { epoch: opened.epoch }),
        Kind::LogCheckpoint => LogCheckpoint::take(event).ok().map(|it| Special::Checkpoint {
            seq: it.through_seq,
            line: super::super::digest(it.jws.as_str().as_bytes()),
            key: it.key_id.as_str().chars().take(KEY_CHARS_MAX).collect(),
        }),
        Kind::LogRemoved => LogRemoved::take(event).ok().map(|it| Special::Removed(announcement(event, &it))),
        _ => None,
    }
}

fn announcement(event: &EventView<'_>, removed: &LogRemoved) -> Announcement {
    let owner = event.context(ContextField::Owner).unwrap_or_default();
    let session = event.context(ContextField::SessionId).unwrap_or_default();
    let subject = removed.subject.as_ref().map_or("", |subject| subject.as_str());
    let mut name = Vec::new();
    for part in [owner, session, subject] {
        name.extend_from_slice(&(part.len() as u64).to_le_bytes());
        name.extend_from_slice(part.as_bytes());
    }
    Announcement {
        name: super::super::digest(&name),
        segment: removed.segment,
        generation: removed.generation,
        first_seq: sane(removed.first_seq),
        last_seq: sane(removed.last_seq),
        count: sane(removed.count),
    }
}

/// A number that somebody wrote, as far as a log can come.
fn sane(number: u64) -> u64 {
    number.min(SEQ_MAX)
}

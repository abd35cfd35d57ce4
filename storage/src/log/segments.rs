//! The segments as they are at this moment: one truth for the writer, the readers and the rewriter.
//!
//! In the process that writes, the set is changed only after the files were, and a file goes only
//! after the set no longer names it. What must stay true: whoever holds an entry finds its file, or
//! finds that the set has another entry by now. The files open for reading are kept here as well, so
//! that one that is gone from the set is not held open for longer than it is being read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader};
use super::storage_io::StorageFile;
use super::{Durable, Position};
use crate::StorageError;

/// Segment files kept open for reading.
const FILES_OPEN_MAX: usize = 32;

/// What is known of a segment without reading it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SegmentFacts {
    pub number: u32,
    /// How often it was written anew.
    pub generation: u16,
    pub first_seq: u64,
    /// `None`: it is still being written.
    pub last_seq: Option<u64>,
    /// Where what can be read of it ends, in bytes.
    pub end: u64,
    pub created_micros: i64,
    /// Its first block.
    pub start: Position,
}

/// A segment in the set.
#[derive(Debug, Clone)]
pub(super) struct Held {
    pub header: SegmentHeader,
    /// Length and last number of a sealed one.
    pub sealed: Option<Sealed>,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Sealed {
    pub end: u64,
    pub last_seq: u64,
}

pub(super) struct SegmentSet {
    state: Mutex<State>,
    changes: watch::Sender<u64>,
}

#[derive(Default)]
struct State {
    held: BTreeMap<u32, Held>,
    /// By number and generation.
    files: BTreeMap<(u32, u16), Arc<dyn StorageFile>>,
    /// Numbers of those that are being written anew.
    claimed: BTreeSet<u32>,
}

/// While it is kept, nobody else writes that segment anew.
pub(super) struct Claim {
    set: Arc<SegmentSet>,
    number: u32,
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.set.lock().claimed.remove(&self.number);
    }
}

impl Held {
    pub fn number(&self) -> u32 {
        self.header.number
    }

    pub fn generation(&self) -> u16 {
        self.header.generation
    }

    pub fn start(&self) -> Position {
        Position::start_of(self.number(), self.generation())
    }

    pub fn facts(&self, durable: &Durable) -> SegmentFacts {
        let end = match self.sealed {
            Some(sealed) => sealed.end,
            None if durable.end.segment == self.number() => u64::from(durable.end.offset),
            None => u64::from(SEGMENT_HEADER_BYTES),
        };
        SegmentFacts {
            number: self.number(),
            generation: self.generation(),
            first_seq: self.header.first_seq,
            last_seq: self.sealed.map(|sealed| sealed.last_seq),
            end,
            created_micros: self.header.created_micros,
            start: self.start(),
        }
    }
}

impl SegmentSet {
    pub fn new(held: impl IntoIterator<Item = Held>) -> Self {
        let set = Self { state: Mutex::default(), changes: watch::Sender::new(0) };
        set.reset(held);
        set
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts changes.
    pub fn watch(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    pub fn get(&self, number: u32) -> Option<Held> {
        self.lock().held.get(&number).cloned()
    }

    pub fn oldest(&self) -> Option<Held> {
        self.lock().held.values().next().cloned()
    }

    pub fn newest(&self) -> Option<Held> {
        self.lock().held.values().next_back().cloned()
    }

    /// The oldest of those behind `number`.
    pub fn after(&self, number: u32) -> Option<Held> {
        self.lock().held.range(number.saturating_add(1)..).next().map(|(_, held)| held.clone())
    }

    /// The newest one that begins at or before `seq`.
    pub fn holding(&self, seq: u64) -> Option<Held> {
        self.lock().held.values().rev().find(|held| held.header.first_seq <= seq).cloned()
    }

    /// `durable` was learned before the set is looked at, so that nothing sealed is taken for unsealed.
    pub fn facts(&self, durable: &Durable) -> Vec<SegmentFacts> {
        self.lock().held.values().map(|held| held.facts(durable)).collect()
    }

    /// The newest segment is sealed, and `next` begun behind it.
    pub fn roll(&self, sealed: Sealed, next: SegmentHeader) {
        let mut state = self.lock();
        if let Some(mut newest) = state.held.last_entry() {
            newest.get_mut().sealed = Some(sealed);
        }
        state.held.insert(next.number, Held { header: next, sealed: None });
        drop(state);
        self.changed();
    }

    /// # Errors
    /// `StorageError::Unavailable` when somebody writes that segment anew already.
    pub fn claim(self: &Arc<Self>, number: u32) -> Result<Claim, StorageError> {
        if self.lock().claimed.insert(number) {
            return Ok(Claim { set: self.clone(), number });
        }
        Err(StorageError::Unavailable { reason: format!("segment {number} is being written anew already") })
    }

    /// A new generation of a segment holds; false when the segment is gone.
    pub fn replace(&self, next: Held) -> bool {
        let mut state = self.lock();
        let Some(held) = state.held.get_mut(&next.number()) else { return false };
        let old = (held.number(), held.generation());
        *held = next;
        state.files.remove(&old);
        drop(state);
        self.changed();
        true
    }

    /// Forgets the segments before `number`.
    pub fn drop_before(&self, number: u32) {
        let mut state = self.lock();
        state.held = state.held.split_off(&number);
        state.files = state.files.split_off(&(number, 0));
        drop(state);
        self.changed();
    }

    /// Takes `held` in place of everything known before.
    pub fn reset(&self, held: impl IntoIterator<Item = Held>) {
        let mut state = self.lock();
        state.held = held.into_iter().map(|held| (held.number(), held)).collect();
        let State { held, files, .. } = &mut *state;
        files.retain(|(number, generation), _| held.get(number).is_some_and(|held| held.generation() == *generation));
        drop(state);
        self.changed();
    }

    fn changed(&self) {
        self.changes.send_modify(|changes| *changes += 1);
    }

    /// The file of a generation, when it is open.
    pub fn file(&self, number: u32, generation: u16) -> Option<Arc<dyn StorageFile>> {
        self.lock().files.get(&(number, generation)).cloned()
    }

    /// Keeps a file open, unless the set names another generation by now.
    pub fn keep_open(&self, number: u32, generation: u16, file: Arc<dyn StorageFile>) {
        let mut state = self.lock();
        if state.held.get(&number).is_none_or(|held| held.generation() != generation) {
            return;
        }
        if state.files.len() >= FILES_OPEN_MAX {
            state.files.pop_first();
        }
        state.files.insert((number, generation), file);
    }
}

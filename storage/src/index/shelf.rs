//! All layers there are: tables on disk, and in memory what is not in a table yet.
//!
//! What must stay true: layers of one generation of a segment do not overlap; whoever took layers
//! from here sees them unchanged until the end. A table whose file is gone in the meantime is a
//! reason to look again, never a wrong answer.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::index::layer::{self, Layer, Source};
use crate::index::table::{Cache, Origin, Table, UNFINISHED};
use crate::log::SegmentFacts;

/// Ending of the names of tables.
const TABLE: &str = ".idx";

pub struct Shelf {
    directory: PathBuf,
    log_id: String,
    cache: Arc<Cache>,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    /// By segment and generation, in order of their blocks.
    tables: BTreeMap<(u32, u16), Vec<Arc<Table>>>,
    /// By segment, of generation 0, in order.
    tail: BTreeMap<u32, Vec<Layer>>,
}

/// Blocks of a segment that no layer is made of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Hole {
    pub start: u32,
    pub end: u32,
    pub first_seq: u64,
}

impl Shelf {
    #[must_use]
    pub fn new(directory: &Path, log_id: &str) -> Self {
        let (directory, log_id) = (directory.to_owned(), log_id.to_owned());
        Self { directory, log_id, cache: Arc::default(), held: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in the tables that are there and belong to `segments`; the other ones are removed. Gives
    /// why one that should have been of use was not.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn open(&self, segments: &[SegmentFacts]) -> std::io::Result<Option<String>> {
        std::fs::create_dir_all(&self.directory)?;
        let mut fault = None;
        for name in std::fs::read_dir(&self.directory)? {
            let path = name?.path();
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            if name.ends_with(UNFINISHED) {
                std::fs::remove_file(&path)?;
            }
            if !name.ends_with(TABLE) {
                continue;
            }
            let opened = Table::open(&path, &self.cache).and_then(|table| match self.unfit(&table, segments) {
                None => Ok(table),
                Some(reason) => Err(reason.to_owned()),
            });
            match opened {
                Ok(table) => self.put(Arc::new(table)),
                Err(reason) => {
                    let of_the_past = reason == OF_THE_PAST;
                    tracing::debug!(path = %path.display(), reason, "a table of the index is of no use");
                    fault = if of_the_past { fault } else { Some(reason) };
                    std::fs::remove_file(&path)?;
                }
            }
        }
        Ok(fault)
    }

    fn unfit(&self, table: &Table, segments: &[SegmentFacts]) -> Option<&'static str> {
        let origin = &table.origin;
        let name = table.path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if origin.log_id != self.log_id {
            return Some("it belongs to another log");
        }
        if name != self.name(origin, true) && name != self.name(origin, false) {
            return Some("its name is not its own");
        }
        let facts = segments.iter().find(|facts| facts.number == origin.segment);
        let Some(facts) = facts.filter(|facts| facts.generation == origin.generation) else { return Some(OF_THE_PAST) };
        let last_seq = facts.last_seq.unwrap_or(u64::MAX);
        let ends_alike = (u64::from(origin.end) == facts.end) == (origin.last_seq == last_seq);
        let fits = facts.created_micros == origin.created_micros
            && (origin.start > facts.start.offset || origin.first_seq == facts.first_seq)
            && origin.start >= facts.start.offset
            && origin.first_seq >= facts.first_seq
            && origin.first_seq <= origin.last_seq
            && origin.last_seq <= last_seq
            && u64::from(origin.end) <= facts.end
            && origin.start < origin.end
            && (facts.last_seq.is_none() || ends_alike);
        if fits { None } else { Some("it does not fit its segment") }
    }

    fn name(&self, origin: &Origin, whole: bool) -> String {
        let stem = format!("{:06}-{}", origin.segment, origin.generation);
        if whole { stem + TABLE } else { format!("{stem}-{}-{}{TABLE}", origin.start, origin.end) }
    }

    /// Where a table of that origin belongs. `whole`: it is of all blocks of a sealed segment.
    #[must_use]
    pub fn path(&self, origin: &Origin, whole: bool) -> PathBuf {
        self.directory.join(self.name(origin, whole))
    }

    #[must_use]
    pub fn origin(&self, facts: &SegmentFacts, layer: &Layer) -> Origin {
        Origin {
            log_id: self.log_id.clone(),
            segment: layer.segment,
            generation: layer.generation,
            created_micros: facts.created_micros,
            start: layer.start,
            end: layer.end,
            first_seq: layer.first_seq,
            last_seq: layer.last_seq,
            tip: layer.tip,
        }
    }

    /// Opens a table that was just written and takes it in, in place of everything it covers.
    ///
    /// # Errors
    /// Says what is wrong with the file.
    pub fn take_in(&self, path: &Path) -> Result<(), String> {
        self.put(Arc::new(Table::open(path, &self.cache)?));
        Ok(())
    }

    /// Takes in a table that lies in another directory.
    pub fn move_in(&self, from: &Path) -> Result<(), String> {
        let path = self.directory.join(from.file_name().unwrap_or_default());
        std::fs::rename(from, &path).map_err(|error| error.to_string())?;
        self.take_in(&path)
    }

    fn put(&self, table: Arc<Table>) {
        let origin = &table.origin;
        let mut held = self.lock();
        if origin.generation == 0
            && let Some(tail) = held.tail.get_mut(&origin.segment)
        {
            tail.retain(|layer| layer.end <= origin.start || layer.start >= origin.end);
        }
        let tables = held.tables.entry((origin.segment, origin.generation)).or_default();
        // One that reaches further on either side stays, and the new one is not needed.
        let wider = |other: &Arc<Table>| other.origin.start <= origin.start && other.origin.end >= origin.end;
        if tables.iter().any(wider) && !tables.iter().any(|other| other.path == table.path) {
            drop(held);
            remove(&table);
            return;
        }
        let apart = |other: &Arc<Table>| other.origin.end <= origin.start || other.origin.start >= origin.end;
        let covered: Vec<Arc<Table>> = tables.iter().filter(|other| !apart(other)).cloned().collect();
        tables.retain(apart);
        tables.push(table.clone());
        tables.sort_by_key(|table| table.origin.start);
        drop(held);
        for other in covered {
            other.forget();
            if other.path != table.path {
                remove(&other);
            }
        }
    }

    /// Layers of one generation of a segment, in order.
    #[must_use]
    pub fn layers(&self, segment: u32, generation: u16) -> Vec<Layer> {
        let held = self.lock();
        let tables = held.tables.get(&(segment, generation));
        let mut layers: Vec<Layer> = tables.into_iter().flatten().map(Layer::of_table).collect();
        if generation == 0 {
            layers.extend(held.tail.get(&segment).into_iter().flatten().cloned());
            layers.sort_by_key(|layer| layer.start);
        }
        layers
    }

    /// Adds what was just folded, unless a table is made of it by now.
    pub fn push_tail(&self, layer: Layer) -> Result<(), String> {
        let segment = layer.segment;
        {
            let mut held = self.lock();
            let apart = |table: &Arc<Table>| table.origin.end <= layer.start || table.origin.start >= layer.end;
            if !held.tables.get(&(segment, 0)).is_none_or(|tables| tables.iter().all(apart)) {
                return Ok(());
            }
            held.tail.entry(segment).or_default().push(layer);
        }
        // Few layers of rising size, whatever the size of what is added.
        while let [.., before, last] = &self.tail(segment)[..]
            && layer::adjoin(before, last)
            && leaf_bytes(before) <= GROWTH * leaf_bytes(last)
        {
            let two = [before.clone(), last.clone()];
            let one = layer::united(&two)?;
            let mut held = self.lock();
            let tail = held.tail.entry(segment).or_default();
            let same = |pair: &[Layer]| pair[0].start == two[0].start && pair[1].end == two[1].end;
            // Meanwhile they may have become a table.
            match tail.windows(2).position(same) {
                Some(at) => drop(tail.splice(at..at + 2, [one])),
                None => break,
            }
        }
        Ok(())
    }

    pub fn forget_tail(&self) {
        self.lock().tail.clear();
    }

    #[must_use]
    pub fn tail(&self, segment: u32) -> Vec<Layer> {
        self.lock().tail.get(&segment).cloned().unwrap_or_default()
    }

    /// Memory that the layers in memory take.
    #[must_use]
    pub fn tail_bytes(&self) -> usize {
        self.lock().tail.values().flatten().map(leaf_bytes).sum()
    }

    /// Forgets a table that is not what it should be.
    pub fn discard(&self, table: &Arc<Table>) -> bool {
        let mut held = self.lock();
        let Some(tables) = held.tables.get_mut(&(table.origin.segment, table.origin.generation)) else { return false };
        let before = tables.len();
        tables.retain(|other| !Arc::ptr_eq(other, table));
        let found = tables.len() < before;
        drop(held);
        if found {
            remove(table);
        }
        found
    }

    /// Forgets all that is known of a segment.
    pub fn forget_segment(&self, segment: u32) {
        let mut held = self.lock();
        held.tail.remove(&segment);
        let keys: Vec<(u32, u16)> =
            held.tables.range((segment, 0)..=(segment, u16::MAX)).map(|(key, _)| *key).collect();
        let gone: Vec<Arc<Table>> = keys.iter().filter_map(|key| held.tables.remove(key)).flatten().collect();
        drop(held);
        gone.iter().for_each(remove);
    }

    /// Forgets what is of segments and generations that are gone.
    pub fn retain(&self, segments: &[SegmentFacts]) {
        let Some(oldest) = segments.first() else { return };
        let generations: BTreeMap<u32, u16> = segments.iter().map(|facts| (facts.number, facts.generation)).collect();
        let gone = |segment: u32, generation: u16| {
            segment < oldest.number || generations.get(&segment).is_some_and(|now| generation != *now)
        };
        let mut held = self.lock();
        held.tail.retain(|segment, _| !gone(*segment, 0));
        let keys: Vec<(u32, u16)> = held.tables.keys().filter(|key| gone(key.0, key.1)).copied().collect();
        let removed: Vec<Arc<Table>> = keys.iter().filter_map(|key| held.tables.remove(key)).flatten().collect();
        drop(held);
        removed.iter().for_each(remove);
    }

    /// Blocks of a segment that no layer is made of, up to where it ends for now.
    #[must_use]
    pub fn holes(&self, facts: &SegmentFacts) -> Vec<Hole> {
        holes(facts, &self.layers(facts.number, facts.generation))
    }

    /// Number of tables, and memory of their fences.
    #[must_use]
    pub fn extent(&self) -> (usize, usize) {
        let held = self.lock();
        let tables = || held.tables.values().flatten();
        (tables().count(), tables().map(|table| table.fences_bytes()).sum())
    }
}

const OF_THE_PAST: &str = "its segment is gone";
/// A layer in memory is united with the one before it unless that is this many times larger.
const GROWTH: usize = 4;

/// What `layers` leave out of a segment.
#[must_use]
pub fn holes(facts: &SegmentFacts, layers: &[Layer]) -> Vec<Hole> {
    let (mut holes, mut at, mut next_seq) = (Vec::new(), facts.start.offset, facts.first_seq);
    let segment_end = u32::try_from(facts.end).unwrap_or(u32::MAX);
    for layer in layers {
        if layer.start > at {
            holes.push(Hole { start: at, end: layer.start, first_seq: next_seq });
        }
        at = at.max(layer.end);
        next_seq = layer.last_seq + 1;
    }
    if segment_end > at {
        holes.push(Hole { start: at, end: segment_end, first_seq: next_seq });
    }
    holes
}

fn leaf_bytes(layer: &Layer) -> usize {
    match &layer.source {
        Source::Leaf(leaf) => leaf.bytes(),
        Source::Table(_) => 0,
    }
}

fn remove(table: &Arc<Table>) {
    table.forget();
    // Should it stay behind, the next start removes it.
    if let Err(error) = std::fs::remove_file(&table.path) {
        tracing::debug!(path = %table.path.display(), %error, "a table of the index could not be removed");
    }
}

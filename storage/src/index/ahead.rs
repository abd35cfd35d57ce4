//! Tables made in advance: of generations that are whole and do not hold yet.
//!
//! They wait in a directory of their own, for such a generation may be given up and another one be
//! made under its number. Only when one holds, and is block for block the one that the table was made
//! of, the table is taken up.

use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::StorageError;
use crate::index::Failure;
use crate::index::shelf::Shelf;
use crate::log::{Reader, SegmentFacts};

pub struct Ahead {
    pub shelf: Shelf,
    directory: PathBuf,
    /// By segment.
    waiting: Mutex<HashMap<u32, Waiting>>,
}

struct Waiting {
    generation: u16,
    digest: u64,
}

impl Ahead {
    #[must_use]
    pub fn new(index: &Path, log_id: &str) -> Self {
        let directory = index.join("ahead");
        Self { shelf: Shelf::new(&directory, log_id), directory, waiting: Mutex::default() }
    }

    fn waiting(&self) -> MutexGuard<'_, HashMap<u32, Waiting>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes what an earlier process left, before anything is made.
    pub fn clear(&self) {
        match std::fs::remove_dir_all(&self.directory) {
            // Should it stay, it takes room until the next start, and is written over.
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                tracing::debug!(path = %self.directory.display(), %error, "tables made in advance could not be removed");
            }
            _ => {}
        }
    }

    /// What was made of an earlier attempt on that segment is of no use any more.
    pub fn begin(&self, segment: u32) -> Result<(), Failure> {
        self.waiting().remove(&segment);
        self.shelf.forget_segment(segment);
        std::fs::create_dir_all(&self.directory).map_err(|error| Failure::Index(error.to_string()))
    }

    /// The table is made of all that `reader` has.
    pub fn done(&self, reader: &Reader, facts: &SegmentFacts) -> Result<(), Failure> {
        let digest = digest(reader, facts)?;
        self.waiting().insert(facts.number, Waiting { generation: facts.generation, digest });
        Ok(())
    }

    /// Whether a table waits for that generation.
    #[must_use]
    pub fn may_have(&self, facts: &SegmentFacts) -> bool {
        self.waiting().get(&facts.number).is_some_and(|waiting| waiting.generation == facts.generation)
    }

    /// Puts the table of a generation that holds now on `shelf`. False when there is none, or it is of
    /// one that was given up.
    pub fn adopt(&self, reader: &Reader, facts: &SegmentFacts, shelf: &Shelf) -> Result<bool, Failure> {
        if !self.may_have(facts) {
            return Ok(false);
        }
        let waiting = self.waiting().remove(&facts.number);
        let same = match digest(reader, facts) {
            Ok(digest) => waiting.is_some_and(|waiting| waiting.digest == digest),
            Err(Failure::Storage(StorageError::Moved)) => return Err(Failure::Storage(StorageError::Moved)),
            // What cannot be read is told to whoever comes to it.
            Err(_) => false,
        };
        let layers = self.shelf.layers(facts.number, facts.generation);
        let table = layers.first().and_then(|layer| layer.table()).filter(|_| same && layers.len() == 1);
        let adopted = table.is_some_and(|table| shelf.move_in(&table.path).is_ok());
        self.shelf.forget_segment(facts.number);
        Ok(adopted)
    }
}

/// Stands for where the blocks of a segment are, and for which events were removed: generations that
/// agree in both hold the same.
fn digest(reader: &Reader, facts: &SegmentFacts) -> Result<u64, Failure> {
    let (mut places, mut removed) = (0, 0);
    let mut blocks = reader.blocks(facts.start)?;
    let mut at = facts.start;
    while u64::from(at.offset) < facts.end
        && let Some(block) = blocks.next()
    {
        let block = block?;
        at = block.next;
        let header = &block.header;
        for word in [u64::from(block.position.offset), u64::from(block.next.offset), header.first_seq, header.last_seq]
        {
            places = crc32c::crc32c_append(places, &word.to_le_bytes());
        }
        if !header.removed {
            continue;
        }
        let runs = reader.load(block.position)?.removed();
        for run in runs.map_err(|error| Failure::Index(error.to_string()))? {
            removed = crc32c::crc32c_append(removed, &run.first_seq.to_le_bytes());
            removed = crc32c::crc32c_append(removed, &run.count.to_le_bytes());
        }
    }
    Ok(u64::from(removed) << 32 | u64::from(places))
}

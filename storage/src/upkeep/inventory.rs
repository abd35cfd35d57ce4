//! What every segment holds, remembered between passes and, for sealed ones, between runs.
//!
//! `<data>/upkeep/000003-1.held` tells of generation 1 of segment 3. The directory may be deleted at any
//! time: what it says can be read from the log again. What must stay true: an answer about a segment is
//! about exactly the generation asked for.

use std::collections::{BTreeMap, HashSet};
use std::path::{Path, PathBuf};

use crate::StorageError;
use crate::directory;
use crate::log::{Reader, SegmentFacts};
use crate::upkeep::contents::{Contents, Handle, each_event, handle};
use crate::upkeep::plan::{Holding, Kept};

pub struct Inventory {
    directory: PathBuf,
    /// By number and generation, of sealed segments.
    kept: BTreeMap<(u32, u16), [Kept; 3]>,
}

impl Inventory {
    /// `directory` is the inventory's own; it is made when absent.
    pub fn open(directory: &Path) -> Result<Self, StorageError> {
        directory::make_private(directory)?;
        Ok(Self { directory: directory.to_owned(), kept: BTreeMap::new() })
    }

    /// What each segment holds, oldest first. Of a segment as it was first written nothing is told: it
    /// is to be written anew in any case, and is read then.
    pub fn holdings(&mut self, reader: &Reader) -> Result<Vec<Holding>, StorageError> {
        let mut holdings = Vec::new();
        for facts in reader.segments()? {
            let sealed = facts.last_seq.is_some();
            let kept = if sealed && facts.generation > 0 { self.kept(reader, &facts)? } else { None };
            let (number, generation, bytes) = (facts.number, facts.generation, facts.end);
            holdings.push(Holding { number, generation, sealed, bytes, kept });
        }
        Ok(holdings)
    }

    fn kept(&mut self, reader: &Reader, facts: &SegmentFacts) -> Result<Option<[Kept; 3]>, StorageError> {
        if let Some(kept) = self.kept.get(&(facts.number, facts.generation)) {
            return Ok(Some(*kept));
        }
        match self.contents(reader, facts) {
            Ok(contents) => Ok(Some(contents.kept)),
            // Damage is told to whoever reads those events; here it only means that they stay.
            Err(StorageError::Damaged { what, .. }) => {
                tracing::warn!(segment = facts.number, what, "a damaged segment is left as it is");
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// What a sealed segment holds: as remembered, else as read and remembered from now on.
    pub fn contents(&mut self, reader: &Reader, facts: &SegmentFacts) -> Result<Contents, StorageError> {
        let bytes = std::fs::read(self.path(facts)).unwrap_or_default();
        if let Some(contents) = Contents::from_bytes(&bytes, reader.log_id(), facts) {
            self.kept.insert((facts.number, facts.generation), contents.kept);
            return Ok(contents);
        }
        let contents = Contents::read(reader, facts)?;
        self.put(reader.log_id(), facts, &contents);
        Ok(contents)
    }

    /// Remembers what a sealed segment holds. Where that cannot be written it is read again.
    pub fn put(&mut self, log_id: &str, facts: &SegmentFacts, contents: &Contents) {
        self.kept.insert((facts.number, facts.generation), contents.kept);
        if let Err(error) = std::fs::write(self.path(facts), contents.to_bytes(log_id, facts)) {
            tracing::warn!(segment = facts.number, %error, "what a segment holds could not be noted");
        }
    }

    /// Forgets generations that are gone.
    pub fn tidy(&mut self, reader: &Reader) -> Result<(), StorageError> {
        let segments = reader.segments()?;
        let there: HashSet<(u32, u16)> = segments.iter().map(|facts| (facts.number, facts.generation)).collect();
        self.kept.retain(|key, _| there.contains(key));
        let names: HashSet<PathBuf> = segments.iter().map(|facts| self.path(facts)).collect();
        let entries = std::fs::read_dir(&self.directory).map_err(StorageError::io("read", &self.directory))?;
        for entry in entries {
            let path = entry.map_err(StorageError::io("read", &self.directory))?.path();
            if path.extension().is_some_and(|extension| extension == EXTENSION) && !names.contains(&path) {
                std::fs::remove_file(&path).map_err(StorageError::io("remove", &path))?;
            }
        }
        Ok(())
    }

    /// Takes out of `candidates` what events of the log still name.
    pub fn strike_out_held(&mut self, reader: &Reader, candidates: &mut HashSet<Handle>) -> Result<(), StorageError> {
        for facts in reader.segments()? {
            if candidates.is_empty() {
                return Ok(());
            }
            if facts.last_seq.is_some() && facts.generation > 0 {
                let contents = self.contents(reader, &facts)?;
                candidates.retain(|candidate| !contents.handles.contains(candidate));
                continue;
            }
            each_event(reader, &facts, &|_| true, &mut |view| {
                for held in view.handles().filter_map(handle) {
                    candidates.remove(&held);
                }
            })?;
        }
        Ok(())
    }

    fn path(&self, facts: &SegmentFacts) -> PathBuf {
        self.directory.join(format!("{:06}-{}.{EXTENSION}", facts.number, facts.generation))
    }
}

const EXTENSION: &str = "held";

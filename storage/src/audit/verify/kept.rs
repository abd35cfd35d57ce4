//! Whether what events name as kept beside the log is there, and is what its name says.
//!
//! An artifact's name is the hash of its content, and events name it, so whoever changes or removes one
//! contradicts the chain. What an event that is there names is there: retention and erasure remove an
//! artifact only with the last event that names it, and what a quota or a full disk refused was never
//! named. What must stay true: memory does not grow with the log nor with the store, but for a shard's
//! listing and a bounded number of names.

use std::collections::{HashMap, HashSet};

use super::report::{Finding, Findings, Problem, Report};
use crate::StorageError;
use crate::artifact::ArtifactStore;
use crate::upkeep::{Handle, handle_text};

/// Artifacts of false content that are remembered until an event names them; more are only counted.
const ALTERED_MAX: usize = 1000;
/// Names that were just found to be there.
const SEEN_MAX: usize = 16 * 1024;

const MISSING: &str = "this event names it, and it is not there";
const ALTERED: &str = "this event names it, and its content is not what was kept";

pub(super) struct Kept {
    store: ArtifactStore,
    /// Whether there is a store at all.
    there: bool,
    /// Content that is not what its name says, and whether an event named it.
    altered: HashMap<Handle, bool>,
    altered_left_out: u64,
    seen: HashSet<Handle>,
    files: u64,
    bytes: u64,
    named: u64,
    /// Without a store: first and last event that names something.
    without: Option<(u64, u64)>,
}

impl Kept {
    /// Reads everything that lies in `store` and was not proven there before.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn read(store: &ArtifactStore) -> Result<Self, StorageError> {
        let mut kept = Self {
            store: store.clone(),
            there: true,
            altered: HashMap::new(),
            altered_left_out: 0,
            seen: HashSet::new(),
            files: 0,
            bytes: 0,
            named: 0,
            without: None,
        };
        let shards = match kept.store.shards() {
            Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                kept.there = false;
                return Ok(kept);
            }
            shards => shards?,
        };
        for shard in shards {
            for lying in kept.store.lying(&shard)? {
                match kept.store.path(&lying.handle) {
                    Ok(_) => (kept.files, kept.bytes) = (kept.files + 1, kept.bytes + lying.bytes),
                    // Removed meanwhile, by whoever may.
                    Err(StorageError::UnknownHandle) => {}
                    Err(StorageError::Altered { handle }) => kept.note_altered(handle.as_str()),
                    Err(error) => return Err(error),
                }
            }
        }
        Ok(kept)
    }

    fn note_altered(&mut self, text: &str) {
        match crate::upkeep::handle(text) {
            Some(handle) if self.altered.len() < ALTERED_MAX => {
                self.altered.insert(handle, false);
            }
            _ => self.altered_left_out += 1,
        }
    }

    /// Event `seq` names `handle`.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn named(&mut self, seq: u64, handle: Handle, findings: &mut Findings) -> Result<(), StorageError> {
        self.named += 1;
        if !self.there {
            let (first, _) = self.without.unwrap_or((seq, seq));
            self.without = Some((first, seq));
            return Ok(());
        }
        if let Some(named) = self.altered.get_mut(&handle) {
            if !std::mem::replace(named, true) {
                findings.put(finding(seq, handle, ALTERED));
            }
            return Ok(());
        }
        if self.seen.contains(&handle) {
            return Ok(());
        }
        match self.store.length(&handle_text(handle).into()) {
            Ok(_) => {
                if self.seen.len() >= SEEN_MAX {
                    self.seen.clear();
                }
                self.seen.insert(handle);
            }
            Err(StorageError::UnknownHandle) => findings.put(finding(seq, handle, MISSING)),
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Everything was named that is.
    pub fn end(self, report: &mut Report, findings: &mut Findings) {
        if let Some(range) = self.without {
            let what = format!("there is none, and {} names of what was kept in it are on record", self.named);
            findings.add(Problem::Artifact, range, "artifacts", what);
        }
        let unnamed = self.altered.iter().filter(|(_, named)| !**named).map(|(handle, _)| *handle);
        for handle in unnamed {
            findings.put(finding(0, handle, "its content is not what its name says; no event names it"));
        }
        if self.altered_left_out > 0 {
            let what = format!("{} more have another content than their names say", self.altered_left_out);
            findings.add(Problem::Artifact, (0, 0), "artifacts", what);
        }
        report.artifacts = Some((self.files, self.bytes));
        report.artifacts_named = self.named;
    }
}

fn finding(seq: u64, handle: Handle, detail: &str) -> Finding {
    Finding {
        problem: Problem::Artifact,
        first_seq: seq,
        last_seq: seq,
        exact: seq > 0,
        place: handle_text(handle),
        detail: detail.to_owned(),
    }
}

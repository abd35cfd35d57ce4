//! Whether what lies under a handle is still what was put there.
//!
//! A handle is the hash of its content, so a file that was altered on disk is found out by reading it
//! once. That is done before the first byte of it is given out; a file that was proven is not read
//! again until it changes.

use std::collections::BTreeMap;
use std::fs::File;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use super::{ArtifactStore, HANDLE_DIGITS, HANDLE_PREFIX, files, hex};
use crate::StorageError;
use crate::ids::ArtifactHandle;

/// Files remembered as proven; beyond it they are proven anew.
const PROVEN_MAX: usize = 4096;

/// What tells that a file is the one that was proven.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Seen {
    inode: u64,
    bytes: u64,
    changed: (i64, i64),
}

impl Seen {
    fn of(file: &File, path: &Path) -> Result<Self, StorageError> {
        let facts = file.metadata().map_err(StorageError::io("read", path))?;
        Ok(Self { inode: facts.ino(), bytes: facts.len(), changed: (facts.ctime(), facts.ctime_nsec()) })
    }
}

/// The files proven so far.
#[derive(Default)]
pub(super) struct Proven(Mutex<BTreeMap<ArtifactHandle, Seen>>);

impl Proven {
    fn is(&self, handle: &ArtifactHandle, seen: Seen) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(handle) == Some(&seen)
    }

    fn remember(&self, handle: &ArtifactHandle, seen: Seen) {
        let mut proven = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if proven.len() >= PROVEN_MAX {
            proven.clear();
        }
        proven.insert(handle.clone(), seen);
    }
}

impl ArtifactStore {
    /// # Errors
    /// `StorageError::Altered` when the file's content is not what its handle stands for, and
    /// `StorageError::UnknownHandle` when it was removed meanwhile, for then it is overwritten.
    pub(super) fn prove(&self, handle: &ArtifactHandle, file: &File, path: &Path) -> Result<(), StorageError> {
        let seen = Seen::of(file, path)?;
        if self.shared.proven.is(handle, seen) {
            return Ok(());
        }
        let (_, digest) = files::hash(file, path, seen.bytes)?;
        if handle.as_str().strip_prefix(HANDLE_PREFIX) != Some(&hex(&digest)[..HANDLE_DIGITS]) {
            let there = files::is_at(file, path);
            return Err(if there {
                StorageError::Altered { handle: handle.clone() }
            } else {
                StorageError::UnknownHandle
            });
        }
        self.shared.proven.remember(handle, seen);
        Ok(())
    }
}

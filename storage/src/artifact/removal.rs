//! The way out of the store: what lies there, and removing it.
//!
//! What must stay true: content that was put a moment ago is not removed, also when it had been there
//! before and nobody wanted it then. The time of last change of a file says when its content was last
//! put; putting and removing take turns.

use std::fs::File;
use std::path::Path;
use std::sync::{MutexGuard, PoisonError};
use std::time::SystemTime;

use super::{ArtifactStore, HANDLE_DIGITS, HANDLE_PREFIX, Shared, UNFINISHED, files, is_absent};
use crate::StorageError;
use crate::ids::ArtifactHandle;
use crate::shred::shred;

/// Something kept, as its file shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lying {
    pub handle: ArtifactHandle,
    pub bytes: u64,
    /// When its content was last put.
    pub put_at: SystemTime,
}

/// What became of a removal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    Removed {
        bytes: u64,
    },
    /// Its content was put since; somebody needs it.
    Wanted,
    /// Nothing is kept under the handle.
    Absent,
}

impl ArtifactStore {
    /// Removes what is kept under `handle`, when its content was last put before `put_before`, and
    /// overwrites its bytes.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn remove(&self, handle: &ArtifactHandle, put_before: SystemTime) -> Result<Removal, StorageError> {
        let path = match self.path_of(handle) {
            Err(StorageError::UnknownHandle) => return Ok(Removal::Absent),
            path => path?,
        };
        let turn = self.shared.wanting();
        let file = match files::open_regular(&path) {
            Err(StorageError::Io { source, .. }) if is_absent(&source) => return Ok(Removal::Absent),
            file => file?,
        };
        if files::modified(&file, &path)? >= put_before {
            return Ok(Removal::Wanted);
        }
        let bytes = files::length(&file, &path)?;
        // Without its name first: a reader that meets zeros finds that the name is gone.
        let unfinished = self.unfinished_path();
        std::fs::rename(&path, &unfinished).map_err(StorageError::io("rename", &path))?;
        drop(turn);
        shred(&unfinished)?;
        if let Some(used) = self.shared.used_bytes().as_mut() {
            *used = used.saturating_sub(bytes);
        }
        Ok(Removal::Removed { bytes })
    }

    /// The directories that what is kept lies in, for [`ArtifactStore::lying`].
    ///
    /// # Errors
    /// When the store cannot be read.
    pub fn shards(&self) -> Result<Vec<String>, StorageError> {
        let mut names = files::directories(&self.shared.directory)?;
        names.retain(|name| name != UNFINISHED);
        Ok(names)
    }

    /// Everything kept in one of [`ArtifactStore::shards`].
    ///
    /// # Errors
    /// When it cannot be read.
    pub fn lying(&self, shard: &str) -> Result<Vec<Lying>, StorageError> {
        let found = files::regular_files(&self.shared.directory.join(shard))?;
        let ours = found.into_iter().filter(|(name, _, _)| name.len() == HANDLE_DIGITS && name.starts_with(shard));
        let lying = |(name, bytes, put_at)| Lying { handle: format!("{HANDLE_PREFIX}{name}").into(), bytes, put_at };
        Ok(ours.map(lying).collect())
    }

    /// The file at `path`, from now on counted as put at this moment; `None` when there is none.
    pub(super) fn want(&self, path: &Path) -> Result<Option<File>, StorageError> {
        let _turn = self.shared.wanting();
        let file = match files::open_regular(path) {
            Ok(file) => file,
            Err(StorageError::Io { source, .. }) if is_absent(&source) => return Ok(None),
            Err(error) => return Err(error),
        };
        file.set_modified(SystemTime::now()).map_err(StorageError::io("mark", path))?;
        Ok(Some(file))
    }

    /// Gives `file` its final name, counted as put at this moment.
    pub(super) fn name(&self, file: &File, from: &Path, to: &Path) -> Result<(), StorageError> {
        let _turn = self.shared.wanting();
        file.set_modified(SystemTime::now()).map_err(StorageError::io("mark", from))?;
        std::fs::rename(from, to).map_err(StorageError::io("rename", from))
    }
}

impl Shared {
    fn wanting(&self) -> MutexGuard<'_, ()> {
        self.wanting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

//! The trail: the first two bytes of the chain hash after each event, at twice its number less two.
//!
//! Why it exists: a checkpoint says that something before it was changed; the trail, which checkpoints
//! bind, says where. It is written apart from the log, so whoever forges the log and recomputes its
//! chain contradicts it from the first event on that differs. Two zero bytes mean that the hash is not
//! known, as in the middle of a run of removed events.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::StorageError;
use crate::log::chain::TRAIL_STEP_BYTES;
use crate::regular;

pub const TRAIL_FILE: &str = "trail";
const STEP: u64 = TRAIL_STEP_BYTES as u64;

/// Where the entry of event `seq` stands.
fn offset(seq: u64) -> u64 {
    seq.saturating_sub(1) * STEP
}

/// The file as its one writer holds it.
pub(super) struct TrailWriter {
    file: File,
    path: PathBuf,
}

impl TrailWriter {
    /// Opens the file, making it when there is none, so that it ends with the entry of `last_seq`.
    /// What is missing before that is not known any more.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn open(path: &Path, last_seq: u64) -> Result<Self, StorageError> {
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600);
        let file = regular::open_itself(&mut options, path).map_err(StorageError::io("open", path))?;
        file.set_len(offset(last_seq + 1)).map_err(StorageError::io("shorten", path))?;
        Ok(Self { file, path: path.to_owned() })
    }

    /// # Errors
    /// When the operating system refuses.
    pub fn write(&self, first_seq: u64, entries: &[u8]) -> Result<(), StorageError> {
        self.file.write_all_at(entries, offset(first_seq)).map_err(StorageError::io("write", &self.path))
    }

    /// # Errors
    /// When the operating system refuses.
    pub fn sync(&self) -> Result<(), StorageError> {
        let synced = self.file.sync_all().and_then(|()| regular::expect_at(&self.file, &self.path));
        synced.map_err(StorageError::io("sync", &self.path))
    }
}

/// The file as somebody reads it who does not believe it.
pub(super) struct TrailReader {
    file: File,
}

impl TrailReader {
    /// `None` when there is no such file.
    ///
    /// # Errors
    /// When it cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, StorageError> {
        let file = regular::read_if_there(path).map_err(StorageError::io("open", path))?;
        Ok(file.map(|file| Self { file }))
    }

    /// Fills `entries` with those from `first_seq` on; returns how many bytes there were.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn read(&self, first_seq: u64, entries: &mut [u8]) -> io::Result<usize> {
        let mut filled = 0;
        while filled < entries.len() {
            match self.file.read_at(&mut entries[filled..], offset(first_seq) + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }
}

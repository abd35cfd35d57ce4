//! A file that only takes room, so that there is some to give back when the disk is full.
//!
//! What must stay true: the room is really taken, by bytes that were written, that do not shrink when a
//! file system compresses, and that are synced; a file that could not be made whole is not left behind.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::StorageError;

const FILE_NAME: &str = "ballast";
/// Written again and again; larger than what file systems compress at once.
const PATTERN_BYTES: usize = 256 * 1024;

pub(super) struct Ballast {
    path: PathBuf,
}

impl Ballast {
    pub fn new(data_directory: &Path) -> Self {
        Self { path: data_directory.join(FILE_NAME) }
    }

    /// Bytes it takes now; 0 when it is not there.
    pub fn held_bytes(&self) -> u64 {
        std::fs::symlink_metadata(&self.path).map_or(0, |facts| if facts.is_file() { facts.len() } else { 0 })
    }

    /// Takes `bytes` of the disk.
    ///
    /// # Errors
    /// When the operating system refuses, a full disk included; nothing is held then.
    pub fn hold(&self, bytes: u64) -> Result<(), StorageError> {
        self.release()?;
        let made = self.make(bytes);
        if made.is_err() {
            // The refusal is what matters; what cannot be removed now is replaced at the next attempt.
            let _ = std::fs::remove_file(&self.path);
        }
        made.map_err(StorageError::io("write", &self.path))
    }

    fn make(&self, bytes: u64) -> io::Result<()> {
        let mut pattern = vec![0; PATTERN_BYTES];
        getrandom::fill(&mut pattern).map_err(io::Error::other)?;
        let mut file: File = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&self.path)?;
        let mut left = bytes;
        while left > 0 {
            let count = usize::try_from(left).unwrap_or(PATTERN_BYTES).min(PATTERN_BYTES);
            file.write_all(&pattern[..count])?;
            left -= count as u64;
        }
        file.sync_all()
    }

    /// Gives the room back; fine when there is none.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn release(&self) -> Result<(), StorageError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StorageError::io("remove", &self.path)(error)),
            _ => Ok(()),
        }
    }
}

//! The segment that is being written: its file, its end, and the room laid out behind the end.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::storage_io::{StorageFile, StorageIo};
use crate::StorageError;

/// Room is laid out in steps of this, then of twice as much each time, up to the maximum and never by
/// more than a segment: a short log stays small, and a busy one seldom waits for room.
const ALLOCATE_BYTES_MIN: u64 = 1024 * 1024;
const ALLOCATE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// Written at once when a file is overwritten.
const OVERWRITE_BYTES: usize = 1024 * 1024;
/// Appended to the name of a file until it is complete.
pub(super) const UNFINISHED: &str = ".new";

pub(super) struct Segment {
    pub file: Arc<dyn StorageFile>,
    pub path: PathBuf,
    pub number: u32,
    /// Where the next block goes.
    pub end: u64,
    /// Zeros are laid out up to here.
    pub allocated: u64,
    /// A segment is sealed when it would grow beyond this.
    pub bytes_max: u64,
}

/// Overwrites a file with zeros, durably, a little at a time so that other writers of the disk wait
/// for little.
///
/// # Errors
/// When the operating system refuses.
pub(super) fn overwrite(io: &dyn StorageIo, path: &Path) -> Result<(), StorageError> {
    let file = io.open(path).map_err(StorageError::io("open", path))?;
    let length = file.length().map_err(StorageError::io("read", path))?;
    let zeros = vec![0; OVERWRITE_BYTES];
    let mut at = 0;
    while at < length {
        let step = usize::try_from(length - at).unwrap_or(OVERWRITE_BYTES).min(OVERWRITE_BYTES);
        file.write_at(&zeros[..step], at).map_err(StorageError::io("overwrite", path))?;
        file.sync_data().map_err(StorageError::io("sync", path))?;
        at += step as u64;
    }
    Ok(())
}

impl Segment {
    /// Makes a segment that is durable, under its final name, and holds no block.
    ///
    /// # Errors
    /// When the operating system refuses; then no segment of that number is left behind.
    pub fn create(
        io: &dyn StorageIo,
        directory: &Path,
        header: &SegmentHeader,
        bytes_max: u64,
    ) -> Result<Self, StorageError> {
        let name = segment_name(header.number, header.generation);
        let path = directory.join(&name);
        let unfinished = directory.join(name + UNFINISHED);
        let file = io.create(&unfinished).map_err(StorageError::io("create", &unfinished))?;
        let end = u64::from(SEGMENT_HEADER_BYTES);
        let mut segment = Self { file, path: unfinished, number: header.number, end, allocated: end, bytes_max };
        segment.write(&header.to_bytes(), 0)?;
        segment.make_room(1)?;
        io.rename(&segment.path, &path).map_err(StorageError::io("rename", &segment.path))?;
        io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
        segment.path = path;
        Ok(segment)
    }

    /// Whether `bytes` more belong into the next segment. An empty one takes whatever comes.
    pub fn is_full_for(&self, bytes: u64) -> bool {
        self.end + bytes > self.bytes_max && self.end > u64::from(SEGMENT_HEADER_BYTES)
    }

    /// Lays out room for `bytes` more, if it is not there yet, and makes that durable: no later sync
    /// of data has a new file length to write.
    ///
    /// # Errors
    /// When the operating system refuses, a full disk included.
    pub fn make_room(&mut self, bytes: u64) -> Result<(), StorageError> {
        if self.end + bytes <= self.allocated {
            return Ok(());
        }
        let step = self.allocated.clamp(ALLOCATE_BYTES_MIN, ALLOCATE_BYTES_MAX).min(self.bytes_max).max(1);
        let until = (self.end + bytes).next_multiple_of(step);
        self.file.allocate(self.allocated, until).map_err(StorageError::io("extend", &self.path))?;
        self.file.sync_all().map_err(StorageError::io("sync", &self.path))?;
        self.allocated = until;
        Ok(())
    }

    /// # Errors
    /// When the operating system refuses.
    pub fn write(&self, bytes: &[u8], offset: u64) -> Result<(), StorageError> {
        self.file.write_at(bytes, offset).map_err(StorageError::io("write", &self.path))
    }

    /// # Errors
    /// When the operating system refuses.
    pub fn sync(&self) -> Result<(), StorageError> {
        self.file.sync_data().map_err(StorageError::io("sync", &self.path))
    }

    /// Cuts off the room that is left and makes the length durable.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn cut_to_end(&mut self) -> Result<(), StorageError> {
        self.file.set_length(self.end).map_err(StorageError::io("shorten", &self.path))?;
        self.file.sync_all().map_err(StorageError::io("sync", &self.path))?;
        self.allocated = self.end;
        Ok(())
    }
}

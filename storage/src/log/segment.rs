//! The segment that is being written: its file, its end, and the room laid out behind the end.
//!
//! What must stay true: room is laid out before anything is written into it, so a full disk is met
//! while nothing is at stake; then everything is as it was before, and `StorageError::Full` says so.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::storage_io::{StorageFile, StorageIo};
use crate::StorageError;
use crate::disk;

/// Room is laid out in steps of this, then of twice as much each time, up to the maximum and never by
/// more than a segment: a short log stays small, and a busy one seldom waits for room.
const ALLOCATE_BYTES_MIN: u64 = 1024 * 1024;
const ALLOCATE_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// On a full disk smaller steps are tried, down to this.
const ALLOCATE_BYTES_LAST: u64 = 4 * 1024;
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
    /// When the operating system refuses; `StorageError::Full` when it is for lack of room, and then
    /// nothing of it is left.
    pub fn create(
        io: &dyn StorageIo,
        directory: &Path,
        header: &SegmentHeader,
        bytes_max: u64,
    ) -> Result<Self, StorageError> {
        let name = segment_name(header.number, header.generation);
        let path = directory.join(&name);
        let unfinished = directory.join(name + UNFINISHED);
        let file = match io.create(&unfinished) {
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // An attempt before this one could not even remove what it left.
                io.remove(&unfinished).map_err(StorageError::io("remove", &unfinished))?;
                io.create(&unfinished)
            }
            outcome => outcome,
        };
        let file = file.map_err(refused("create", &unfinished))?;
        let end = u64::from(SEGMENT_HEADER_BYTES);
        let mut segment = Self { file, path: unfinished, number: header.number, end, allocated: end, bytes_max };
        if let Err(error) = segment.begin(io, header, &path) {
            if error.is_full() {
                // A name that stays taken fails the next attempt, and for good.
                let _ = io.remove(&segment.path);
            }
            return Err(error);
        }
        io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
        segment.path = path;
        Ok(segment)
    }

    fn begin(&mut self, io: &dyn StorageIo, header: &SegmentHeader, path: &Path) -> Result<(), StorageError> {
        self.file.write_at(&header.to_bytes(), 0).map_err(refused("write", &self.path))?;
        self.make_room(1)?;
        io.rename(&self.path, path).map_err(refused("rename", &self.path))
    }

    /// Whether `bytes` more belong into the next segment. An empty one takes whatever comes.
    pub fn is_full_for(&self, bytes: u64) -> bool {
        self.end + bytes > self.bytes_max && self.end > u64::from(SEGMENT_HEADER_BYTES)
    }

    /// Whether there is room for `bytes` more.
    pub fn has_room(&self, bytes: u64) -> bool {
        self.end + bytes <= self.allocated
    }

    /// Lays out room for `bytes` more, if it is not there yet, and makes that durable: no later sync
    /// of data has a new file length to write. Nothing that was written may wait for a sync.
    ///
    /// # Errors
    /// `StorageError::Full` when the disk has no room even for just these bytes; what else the
    /// operating system refuses.
    pub fn make_room(&mut self, bytes: u64) -> Result<(), StorageError> {
        if self.has_room(bytes) {
            return Ok(());
        }
        let mut step = self.allocated.clamp(ALLOCATE_BYTES_MIN, ALLOCATE_BYTES_MAX).min(self.bytes_max).max(1);
        let until = loop {
            let until = (self.end + bytes).next_multiple_of(step);
            match self.file.allocate(self.allocated, until).map_err(refused("extend", &self.path)) {
                Err(StorageError::Full { .. }) if step > ALLOCATE_BYTES_LAST => {
                    self.take_back()?;
                    step /= 2;
                }
                laid => break laid.map(|()| until),
            }
        };
        // A sync that fails may have given up what was written before it, so it is not tried again.
        let laid = until.and_then(|until| {
            self.file.sync_all().map_err(refused("sync", &self.path))?;
            Ok(until)
        });
        match laid {
            Ok(until) => self.allocated = until,
            Err(error) => {
                if error.is_full() {
                    self.take_back()?;
                }
                return Err(error);
            }
        }
        Ok(())
    }

    /// Zeros that did find room would keep it from whoever needs less.
    fn take_back(&self) -> Result<(), StorageError> {
        self.file.set_length(self.allocated).map_err(StorageError::io("shorten", &self.path))
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

/// A lack of room is no failure of the log: nothing is written yet, and there may be room later.
fn refused<'a>(action: &'static str, path: &'a Path) -> impl FnOnce(std::io::Error) -> StorageError + use<'a> {
    move |error| match error {
        error if disk::is_full(&error) => StorageError::Full { path: path.to_owned() },
        error => StorageError::io(action, path)(error),
    }
}

//! The read side: beside the writer in its process, or read-only from another one.
//!
//! What must stay true: nothing behind the durable end is ever returned, since its numbers could
//! still come to mean other events; nothing that fails its checksum is ever returned.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::block::{Block, BlockHeader, FIXED_BYTES, Found, read_header};
use super::directory::Listing;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark::{self, Mark};
use super::storage_io::{StorageFile, StorageIo, SystemIo};
use super::walk::BlockWalk;
use super::{Durable, Position};
use crate::StorageError;
use crate::event::DecodeError;

/// Segment files kept open for reading.
const FILES_OPEN_MAX: usize = 32;
/// A block is first read by this much; most are shorter.
const FIRST_READ_BYTES: usize = 8 * 1024;
/// Times that a mark is read again when a writer was changing it under the reader.
const MARK_READS_MAX: u32 = 5;

/// Reads a log. Cheap to clone.
#[derive(Clone)]
pub struct Reader {
    shared: Arc<Shared>,
}

struct Shared {
    io: Arc<dyn StorageIo>,
    directory: PathBuf,
    log_id: String,
    source: Source,
    oldest: SegmentHeader,
    cache: Mutex<Cache>,
}

/// Where the durable end is known from.
enum Source {
    Writer(watch::Receiver<Durable>),
    Mark(Arc<dyn StorageFile>, PathBuf),
}

#[derive(Default)]
struct Cache {
    /// Headers of the segments seen; 128 bytes for each 64 MiB of log.
    headers: BTreeMap<u32, SegmentHeader>,
    files: BTreeMap<u32, Arc<dyn StorageFile>>,
    /// Beginnings of commits by first number, as walks came by; see `position_before`.
    hints: BTreeMap<u64, Position>,
}

/// A segment opened for reading.
pub(super) struct SegmentView {
    pub header: SegmentHeader,
    pub file: Arc<dyn StorageFile>,
    /// End of what may be read of it.
    pub end: u64,
    /// The last number that it may hold.
    pub last_seq: u64,
}

impl Reader {
    /// Opens the log in `directory` (`<data>/log`) for reading only, beside a running writer or
    /// after one: it ends at the high-water mark.
    ///
    /// # Errors
    /// When there is no log, or what is there is damaged.
    pub fn open(directory: &Path) -> Result<Reader, StorageError> {
        Self::open_with(directory, Arc::new(SystemIo))
    }

    pub(super) fn open_with(directory: &Path, io: Arc<dyn StorageIo>) -> Result<Reader, StorageError> {
        let path = directory.join(mark::FILE_NAME);
        let file = io.open_read_only(&path).map_err(StorageError::io("open", &path))?;
        let mark = read_mark(&*file, &path, directory)?;
        let log_id = String::from_utf8_lossy(&mark.log_id).into_owned();
        Self::new(io, directory, log_id, mark.oldest_segment, Source::Mark(file, path))
    }

    /// Beside the writer, told by it.
    pub(super) fn beside(
        io: Arc<dyn StorageIo>,
        directory: &Path,
        log_id: String,
        durable: watch::Receiver<Durable>,
    ) -> Result<Reader, StorageError> {
        let oldest = Listing::read(&*io, directory)?.segments.first().copied().unwrap_or(1);
        Self::new(io, directory, log_id, oldest, Source::Writer(durable))
    }

    fn new(
        io: Arc<dyn StorageIo>,
        directory: &Path,
        log_id: String,
        oldest: u32,
        source: Source,
    ) -> Result<Reader, StorageError> {
        let directory = directory.to_owned();
        let (oldest, file) = open_segment(&*io, &directory, oldest, &log_id)?;
        let mut cache = Cache::default();
        cache.headers.insert(oldest.number, oldest.clone());
        cache.files.insert(oldest.number, file);
        Ok(Self { shared: Arc::new(Shared { io, directory, log_id, source, oldest, cache: Mutex::new(cache) }) })
    }

    /// Identity of the log, 12 of `0-9a-z`, the same for its whole life.
    #[must_use]
    pub fn log_id(&self) -> &str {
        &self.shared.log_id
    }

    /// How far the log can be read at this moment.
    ///
    /// # Errors
    /// When the mark cannot be read.
    pub fn durable(&self) -> Result<Durable, StorageError> {
        match &self.shared.source {
            Source::Writer(durable) => Ok(*durable.borrow()),
            Source::Mark(file, path) => Ok(read_mark(&**file, path, &self.shared.directory)?.durable),
        }
    }

    /// The oldest number that is retained.
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.shared.oldest.first_seq
    }

    /// The first block of the oldest segment.
    #[must_use]
    pub fn start(&self) -> Position {
        Position { segment: self.shared.oldest.number, offset: SEGMENT_HEADER_BYTES }
    }

    /// The blocks from `from` to the durable end at this moment, in order, headers only.
    ///
    /// # Errors
    /// When the durable end cannot be read.
    pub fn blocks(&self, from: Position) -> Result<BlockWalk, StorageError> {
        Ok(BlockWalk::new(self.clone(), from, self.durable()?))
    }

    /// The block at `position`, checked and decompressed.
    ///
    /// # Errors
    /// `StorageError::Damaged` when it is not what was written, or no block is there;
    /// `StorageError::Cursor` when the position lies behind the durable end.
    pub fn load(&self, position: Position) -> Result<Block, StorageError> {
        let durable = self.durable()?;
        if position >= durable.end {
            return Err(StorageError::Cursor { what: "log" });
        }
        let segment = self.segment(position.segment, &durable)?;
        let offset = u64::from(position.offset);
        let path = || self.shared.directory.join(segment_name(position.segment));
        let readable = usize::try_from(segment.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; FIRST_READ_BYTES.min(readable)];
        let count = segment.file.read_at(&mut bytes, offset).map_err(StorageError::io("read", path()))?;
        bytes.truncate(count);
        let stored = match read_header(&bytes) {
            Found::Header(stored) if stored.stored_bytes <= readable => stored,
            Found::Damage(what) => return Err(self.damaged(&segment, what)),
            Found::Header(_) | Found::Needs(_) | Found::Nothing => {
                return Err(self.damaged(&segment, "no whole block is where one should be"));
            }
        };
        if stored.stored_bytes > bytes.len() {
            let held = bytes.len();
            bytes.resize(stored.stored_bytes, 0);
            let more = segment.file.read_at(&mut bytes[held..], offset + held as u64);
            let more = more.map_err(StorageError::io("read", path()))?;
            bytes.truncate(held + more);
        }
        let (first_seq, last_seq) = (stored.header.first_seq, stored.header.last_seq);
        let content = bytes.get(stored.content_at..stored.stored_bytes).unwrap_or_default();
        stored.unpack(content).map_err(|what| StorageError::Damaged {
            path: self.shared.directory.clone(),
            first_seq,
            last_seq,
            what: what.into(),
        })
    }

    pub(super) fn hints(&self) -> Hints<'_> {
        Hints(self.cache())
    }

    fn cache(&self) -> MutexGuard<'_, Cache> {
        self.shared.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A segment and how far it may be read when the log ends at `durable`.
    pub(super) fn segment(&self, number: u32, durable: &Durable) -> Result<SegmentView, StorageError> {
        let (header, file) = self.segment_file(number)?;
        if number >= durable.end.segment {
            let end = u64::from(durable.end.offset);
            return Ok(SegmentView { header, file, end, last_seq: durable.last_seq });
        }
        // Sealed: the next segment tells how long it is and which number came last.
        let next = self.segment_header(number + 1)?;
        let last_seq = next.first_seq.saturating_sub(1);
        Ok(SegmentView { header, file, end: next.previous_bytes, last_seq })
    }

    pub(super) fn segment_header(&self, number: u32) -> Result<SegmentHeader, StorageError> {
        if let Some(header) = self.cache().headers.get(&number) {
            return Ok(header.clone());
        }
        Ok(self.segment_file(number)?.0)
    }

    fn segment_file(&self, number: u32) -> Result<(SegmentHeader, Arc<dyn StorageFile>), StorageError> {
        let mut cache = self.cache();
        if let (Some(header), Some(file)) = (cache.headers.get(&number), cache.files.get(&number)) {
            return Ok((header.clone(), file.clone()));
        }
        let (header, file) = open_segment(&*self.shared.io, &self.shared.directory, number, &self.shared.log_id)?;
        if cache.files.len() >= FILES_OPEN_MAX {
            cache.files.pop_first();
        }
        cache.headers.insert(number, header.clone());
        cache.files.insert(number, file.clone());
        Ok((header, file))
    }

    /// Damage in a segment whose extent is not known better.
    pub(super) fn damaged(&self, segment: &SegmentView, what: &str) -> StorageError {
        let (first_seq, last_seq) = (segment.header.first_seq, segment.last_seq);
        let what = format!("{}: {what}", segment_name(segment.header.number));
        StorageError::Damaged { path: self.shared.directory.clone(), first_seq, last_seq, what }
    }

    /// A block whose checksum holds and whose events do not decode: written by something else.
    pub(super) fn undecodable(&self, header: &BlockHeader, error: DecodeError) -> StorageError {
        StorageError::Damaged {
            path: self.shared.directory.clone(),
            first_seq: header.first_seq,
            last_seq: header.last_seq,
            what: error.to_string(),
        }
    }

    pub(super) fn path_of(&self, number: u32) -> PathBuf {
        self.shared.directory.join(segment_name(number))
    }
}

/// The remembered beginnings of commits, locked.
pub(super) struct Hints<'a>(MutexGuard<'a, Cache>);

impl Hints<'_> {
    /// The last remembered beginning at or before `seq`.
    pub fn before(&self, seq: u64) -> Option<Position> {
        self.0.hints.range(..=seq).next_back().map(|(_, position)| *position)
    }

    /// Remembers the commit that begins with `seq`, unless one nearby is remembered already.
    pub fn remember(&mut self, seq: u64, position: Position, apart_bytes: u32, most: usize) {
        let near = |other: &Position| {
            other.segment == position.segment && position.offset.abs_diff(other.offset) < apart_bytes
        };
        let hints = &mut self.0.hints;
        let before = hints.range(..=seq).next_back().is_some_and(|(_, other)| near(other));
        let after = hints.range(seq..).next().is_some_and(|(_, other)| near(other));
        if before || after {
            return;
        }
        if hints.len() >= most {
            hints.clear();
        }
        hints.insert(seq, position);
    }
}

fn open_segment(
    io: &dyn StorageIo,
    directory: &Path,
    number: u32,
    log_id: &str,
) -> Result<(SegmentHeader, Arc<dyn StorageFile>), StorageError> {
    let path = directory.join(segment_name(number));
    let file = io.open_read_only(&path).map_err(StorageError::io("open", &path))?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    let count = file.read_at(&mut bytes, 0).map_err(StorageError::io("read", &path))?;
    let header = SegmentHeader::from_bytes(&bytes[..count], &path)?;
    let ours = |header: &SegmentHeader| header.number == number && header.log_id == *log_id.as_bytes();
    match header.filter(ours) {
        Some(header) => Ok((header, file)),
        None => {
            let what = format!("{} has no whole header of this log", segment_name(number));
            Err(StorageError::Damaged { path: directory.to_owned(), first_seq: 0, last_seq: 0, what })
        }
    }
}

fn read_mark(file: &dyn StorageFile, path: &Path, directory: &Path) -> Result<Mark, StorageError> {
    for _ in 0..MARK_READS_MAX {
        if let Some(mark) = Mark::read(file, path)? {
            return Ok(mark);
        }
    }
    let what = "the high-water mark is unreadable".into();
    Err(StorageError::Damaged { path: directory.to_owned(), first_seq: 0, last_seq: 0, what })
}

const _: () = assert!(FIRST_READ_BYTES > FIXED_BYTES + super::block::SESSION_ID_BYTES_MAX);

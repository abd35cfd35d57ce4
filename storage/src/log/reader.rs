//! The read side: beside the writer in its process, or read-only from another one.
//!
//! What must stay true: nothing behind the durable end is ever returned, since its numbers could
//! still come to mean other events; nothing that fails its checksum is ever returned; what was written
//! anew or removed under a reader is never taken for damage.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::block::{Block, BlockHeader, BlockRef, FIXED_BYTES, Found, StoredHeader, read_header};
use super::format::{SegmentHeader, segment_name};
use super::mark;
use super::outside::Outside;
use super::segments::{SegmentFacts, SegmentSet};
use super::storage_io::{StorageFile, StorageIo, SystemIo};
use super::walk::BlockWalk;
use super::{Durable, Position};
use crate::StorageError;
use crate::event::DecodeError;

/// A block is first read by this much; most are shorter.
const FIRST_READ_BYTES: usize = 8 * 1024;
/// Times that a file is looked for again after its segment was written anew just then.
const LOOKS_MAX: u32 = 8;

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
    segments: Arc<SegmentSet>,
    /// Beginnings of commits by first number, as walks came by; see `position_before`.
    hints: Mutex<BTreeMap<u64, Position>>,
}

/// Where the durable end and the segments are known from.
enum Source {
    /// The writer tells.
    Inside(watch::Receiver<Durable>),
    /// The mark and the directory tell.
    Outside(Outside),
}

/// A generation of a segment opened for reading.
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
        let mark_file = io.open_read_only(&path).map_err(StorageError::io("open", &path))?;
        let segments = Arc::new(SegmentSet::new([]));
        let outside = Outside::new(io.clone(), directory, mark_file, segments.clone());
        let mark = outside.look()?;
        let log_id = String::from_utf8_lossy(&mark.log_id).into_owned();
        Ok(Self::new(io, directory, log_id, Source::Outside(outside), segments))
    }

    /// Beside the writer, told by it.
    pub(super) fn beside(
        io: Arc<dyn StorageIo>,
        directory: &Path,
        log_id: String,
        durable: watch::Receiver<Durable>,
        segments: Arc<SegmentSet>,
    ) -> Reader {
        Self::new(io, directory, log_id, Source::Inside(durable), segments)
    }

    fn new(
        io: Arc<dyn StorageIo>,
        directory: &Path,
        log_id: String,
        source: Source,
        segments: Arc<SegmentSet>,
    ) -> Reader {
        let (directory, hints) = (directory.to_owned(), Mutex::default());
        Self { shared: Arc::new(Shared { io, directory, log_id, source, segments, hints }) }
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
            Source::Inside(durable) => Ok(*durable.borrow()),
            Source::Outside(outside) => outside.durable(),
        }
    }

    /// The oldest number that is retained.
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.shared.segments.oldest().map_or(1, |oldest| oldest.header.first_seq)
    }

    /// The first block of the oldest segment.
    #[must_use]
    pub fn start(&self) -> Position {
        // From outside: as of now, or as of the last look that succeeded.
        let _ = self.look_again();
        self.shared.segments.oldest().map_or(Position::start_of(1, 0), |oldest| oldest.start())
    }

    /// The segments at this moment, oldest first; the last one is still being written, unless the log
    /// was opened for reading after its writer had ended.
    ///
    /// # Errors
    /// When the log cannot be read.
    pub fn segments(&self) -> Result<Vec<SegmentFacts>, StorageError> {
        let durable = match &self.shared.source {
            Source::Inside(durable) => *durable.borrow(),
            Source::Outside(outside) => outside.look()?.durable,
        };
        Ok(self.shared.segments.facts(&durable))
    }

    /// Counts the changes of [`Reader::segments`]: one sealed, written anew or removed. `None` for a
    /// reader from outside, whom nobody tells.
    #[must_use]
    pub fn watch_segments(&self) -> Option<watch::Receiver<u64>> {
        match self.shared.source {
            Source::Inside(_) => Some(self.shared.segments.watch()),
            Source::Outside(_) => None,
        }
    }

    /// The blocks from `from` to the durable end at this moment, in order, headers only. Removed
    /// segments are passed over; the segment of `from` is read in the generation that `from` names,
    /// each later one in the generation that holds when the walk comes to it.
    ///
    /// # Errors
    /// When the durable end cannot be read.
    pub fn blocks(&self, from: Position) -> Result<BlockWalk, StorageError> {
        Ok(BlockWalk::new(self.clone(), from, self.durable()?))
    }

    /// The header of the block at `position`: for whoever knows where blocks are and goes on behind a
    /// damaged one.
    ///
    /// # Errors
    /// As [`Reader::load`].
    pub fn block_at(&self, position: Position) -> Result<BlockRef, StorageError> {
        let (_, stored, _) = self.find(position)?;
        let next = Position { offset: position.offset.saturating_add(stored.stored_bytes as u32), ..position };
        Ok(BlockRef { position, next, header: stored.header })
    }

    /// The block at `position`, checked and decompressed.
    ///
    /// # Errors
    /// `StorageError::Damaged` when it is not what was written, or no block is there;
    /// `StorageError::Moved` when the segment was written anew or removed meanwhile;
    /// `StorageError::Cursor` when the position lies behind the durable end.
    pub fn load(&self, position: Position) -> Result<Block, StorageError> {
        let (segment, stored, mut bytes) = self.find(position)?;
        if stored.stored_bytes > bytes.len() {
            let held = bytes.len();
            bytes.resize(stored.stored_bytes, 0);
            let more = segment.file.read_at(&mut bytes[held..], u64::from(position.offset) + held as u64);
            let more = more.map_err(StorageError::io("read", self.path_of(&segment.header)))?;
            bytes.truncate(held + more);
        }
        let (first_seq, last_seq) = (stored.header.first_seq, stored.header.last_seq);
        let content = bytes.get(stored.content_at..stored.stored_bytes).unwrap_or_default();
        stored.unpack(content).map_err(|what| self.damaged_range(&segment, first_seq, last_seq, what))
    }

    /// The block at `position`: its segment, its header, and its first bytes.
    fn find(&self, position: Position) -> Result<(SegmentView, StoredHeader, Vec<u8>), StorageError> {
        let durable = self.durable()?;
        if position >= durable.end {
            return Err(StorageError::Cursor { what: "log" });
        }
        let segment = self.segment(position.segment, Some(position.generation), &durable)?;
        let segment = segment.ok_or(StorageError::Moved)?;
        let offset = u64::from(position.offset);
        let readable = usize::try_from(segment.end.saturating_sub(offset)).unwrap_or(usize::MAX);
        let mut bytes = vec![0; FIRST_READ_BYTES.min(readable)];
        let count = segment.file.read_at(&mut bytes, offset);
        bytes.truncate(count.map_err(StorageError::io("read", self.path_of(&segment.header)))?);
        match read_header(&bytes) {
            Found::Header(stored) if stored.stored_bytes <= readable => Ok((segment, stored, bytes)),
            Found::Damage(what) => Err(self.damaged(&segment, segment.header.first_seq, what)),
            Found::Header(_) | Found::Needs(_) | Found::Nothing => {
                Err(self.damaged(&segment, segment.header.first_seq, "no whole block is where one should be"))
            }
        }
    }

    /// A segment and how far it may be read when the log ends at `durable`; `None` when it is gone.
    ///
    /// # Errors
    /// `StorageError::Moved` when another generation than the one asked for holds.
    pub(super) fn segment(
        &self,
        number: u32,
        generation: Option<u16>,
        durable: &Durable,
    ) -> Result<Option<SegmentView>, StorageError> {
        let mut missing = None;
        for _ in 0..LOOKS_MAX {
            let Some(held) = self.shared.segments.get(number) else {
                // Nobody asks for a segment that never was, so it was removed.
                return Ok(None);
            };
            if generation.is_some_and(|wanted| wanted != held.generation()) {
                return Err(StorageError::Moved);
            }
            let path = self.path_of(&held.header);
            let file = match self.shared.segments.file(number, held.generation()) {
                Some(file) => file,
                None => match self.shared.io.open_read_only(&path) {
                    Ok(file) => {
                        self.shared.segments.keep_open(number, held.generation(), file.clone());
                        file
                    }
                    Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
                        self.look_again()?;
                        missing = Some(StorageError::Io { action: "open", path, source: error });
                        continue;
                    }
                    Err(error) => return Err(StorageError::Io { action: "open", path, source: error }),
                },
            };
            let unsealed = (u64::from(durable.end.offset), durable.last_seq);
            let sealed = held.sealed.map(|sealed| (sealed.end, sealed.last_seq));
            let ends_here = durable.end.segment == number && durable.end.generation == held.generation();
            let (end, last_seq) = if ends_here { unsealed } else { sealed.unwrap_or(unsealed) };
            return Ok(Some(SegmentView { header: held.header, file, end, last_seq }));
        }
        Err(missing.unwrap_or(StorageError::Moved))
    }

    pub(super) fn set(&self) -> &SegmentSet {
        &self.shared.segments
    }

    fn look_again(&self) -> Result<(), StorageError> {
        match &self.shared.source {
            Source::Inside(_) => Ok(()),
            Source::Outside(outside) => outside.look().map(|_| ()),
        }
    }

    pub(super) fn hints(&self) -> Hints<'_> {
        Hints(self.shared.hints.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Damage somewhere in a segment from `first_seq` on.
    pub(super) fn damaged(&self, segment: &SegmentView, first_seq: u64, what: &str) -> StorageError {
        let name = segment_name(segment.header.number, segment.header.generation);
        self.damaged_range(segment, first_seq.min(segment.last_seq), segment.last_seq, &format!("{name}: {what}"))
    }

    /// What was found wrong in a segment: damage, unless the segment is no longer the one that holds,
    /// for then its bytes may have been overwritten on purpose.
    fn damaged_range(&self, segment: &SegmentView, first_seq: u64, last_seq: u64, what: &str) -> StorageError {
        // When the look itself fails, what was found is told all the same.
        let _ = self.look_again();
        let now = self.shared.segments.get(segment.header.number);
        if now.is_none_or(|held| held.generation() != segment.header.generation) {
            return StorageError::Moved;
        }
        StorageError::Damaged { path: self.shared.directory.clone(), first_seq, last_seq, what: what.into() }
    }

    /// A block whose checksum holds and whose events do not decode: written by something else.
    pub(crate) fn undecodable(&self, header: &BlockHeader, error: DecodeError) -> StorageError {
        StorageError::Damaged {
            path: self.shared.directory.clone(),
            first_seq: header.first_seq,
            last_seq: header.last_seq,
            what: error.to_string(),
        }
    }

    /// Blocks that are whole each and do not make a commit together.
    pub(super) fn contradictory(&self, blocks: &[Block], what: &str) -> StorageError {
        StorageError::Damaged {
            path: self.shared.directory.clone(),
            first_seq: blocks.iter().map(|block| block.header.first_seq).min().unwrap_or_default(),
            last_seq: blocks.iter().map(|block| block.header.last_seq).max().unwrap_or_default(),
            what: what.into(),
        }
    }

    pub(super) fn path_of(&self, header: &SegmentHeader) -> PathBuf {
        self.shared.directory.join(segment_name(header.number, header.generation))
    }
}

/// The remembered beginnings of commits, locked.
pub(super) struct Hints<'a>(MutexGuard<'a, BTreeMap<u64, Position>>);

impl Hints<'_> {
    /// The last remembered beginning at or before `seq`, if it lies behind `start` in the same
    /// generation of the same segment.
    pub fn between(&self, start: Position, seq: u64) -> Option<Position> {
        let (_, position) = self.0.range(..=seq).next_back()?;
        let same = (position.segment, position.generation) == (start.segment, start.generation);
        (same && *position > start).then_some(*position)
    }

    /// Remembers the commit that begins with `seq`, unless one nearby is remembered already.
    pub fn remember(&mut self, seq: u64, position: Position, apart_bytes: u32, most: usize) {
        let hints = &mut self.0;
        let stale = |other: &Position| other.segment == position.segment && other.generation != position.generation;
        let near = |other: &Position| {
            other.segment == position.segment && position.offset.abs_diff(other.offset) < apart_bytes
        };
        let around = [hints.range(..=seq).next_back(), hints.range(seq..).next()];
        let around: Vec<Position> = around.into_iter().flatten().map(|(_, other)| *other).collect();
        if around.iter().any(stale) {
            hints.retain(|_, other| !stale(other));
        } else if around.iter().any(near) {
            return;
        }
        if hints.len() >= most {
            hints.clear();
        }
        hints.insert(seq, position);
    }
}

const _: () = assert!(FIRST_READ_BYTES > FIXED_BYTES + super::block::SESSION_ID_BYTES_MAX);

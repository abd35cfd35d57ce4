//! A log directory as a stranger sees it: nothing that it says of itself is believed, nothing in it is
//! changed, and the bytes are given out as they are found.
//!
//! For the verifier. What must stay true: every byte of a segment up to its end is looked at, and what
//! does not make sense is said and not passed over.

use std::path::Path;
use std::sync::Arc;

use super::block::{Block, StoredHeader};
use super::directory::Listing;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark::{FILE_NAME, Mark};
use super::storage_io::{StorageFile, StorageIo as _, SystemIo};
use super::window::{Step, Window};
use crate::StorageError;
use crate::limits::{QUEUE_BYTES_MAX, SEQ_MAX};

/// No commit holds more before compression: one request may fill the queue, and requests that wait
/// share a commit.
const COMMIT_BYTES_MAX: u64 = 2 * QUEUE_BYTES_MAX as u64;
/// Times that a mark is read again when a writer was changing it meanwhile.
const MARK_READS_MAX: u32 = 5;

/// What the high-water mark says.
#[derive(Debug, Clone)]
pub(crate) struct MarkFacts {
    pub log_id: String,
    /// The log was closed in an orderly way, and ends here.
    pub clean: bool,
    pub last_seq: u64,
    pub chain: [u8; 32],
    /// Segment in which the log ends, and where.
    pub segment: u32,
    pub offset: u64,
    pub oldest_segment: u32,
    pub oldest_seq: u64,
}

/// What lies in the directory.
pub(crate) struct Look {
    /// `None`: missing or unreadable.
    pub mark: Option<MarkFacts>,
    /// Number and highest generation of each segment present, rising.
    pub segments: Vec<(u32, u16)>,
}

/// # Errors
/// When the directory cannot be read, or a build of another format wrote it.
pub(crate) fn look(directory: &Path) -> Result<Look, StorageError> {
    // The mark first: what it says is durable was there before, and stays or is replaced by its like.
    let mark = read_mark(directory)?;
    let listing = Listing::read(&SystemIo, directory)?;
    let mut segments: Vec<(u32, u16)> = Vec::new();
    for (number, generation) in listing.segments {
        match segments.last_mut() {
            Some(last) if last.0 == number => last.1 = generation,
            _ => segments.push((number, generation)),
        }
    }
    Ok(Look { mark, segments })
}

fn read_mark(directory: &Path) -> Result<Option<MarkFacts>, StorageError> {
    let path = directory.join(FILE_NAME);
    let file = match SystemIo.open_read_only(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(StorageError::io("open", &path)(error)),
    };
    for _ in 0..MARK_READS_MAX {
        let sane = |mark: &Mark| mark.durable.last_seq < SEQ_MAX && mark.oldest_seq < SEQ_MAX;
        if let Some(mark) = Mark::read(&*file, &path)?.filter(sane) {
            return Ok(Some(MarkFacts {
                log_id: String::from_utf8_lossy(&mark.log_id).into_owned(),
                clean: mark.clean,
                last_seq: mark.durable.last_seq,
                chain: mark.durable.chain,
                segment: mark.durable.end.segment,
                offset: u64::from(mark.durable.end.offset),
                oldest_segment: mark.oldest_segment,
                oldest_seq: mark.oldest_seq,
            }));
        }
    }
    Ok(None)
}

/// File name of a generation of a segment.
pub(crate) fn segment_file(number: u32, generation: u16) -> String {
    segment_name(number, generation)
}

/// What a segment's header says.
#[derive(Debug, Clone)]
pub(crate) struct SegmentClaims {
    pub log_id: String,
    pub first_seq: u64,
    /// Before its first event.
    pub chain: [u8; 32],
    /// Where its first block is.
    pub start: u64,
    /// Length of the segment before, as first written.
    pub previous_bytes: u64,
    /// Own length and last number, if it was written anew.
    pub own: Option<(u64, u64)>,
}

/// One segment, read from front to back.
pub(crate) struct SegmentWalk {
    pub name: String,
    pub claims: SegmentClaims,
    pub length: u64,
    /// How far it was read.
    pub offset: u64,
    file: Arc<dyn StorageFile>,
    window: Window,
}

/// What follows in a segment.
pub(crate) enum Piece {
    Commit(RawCommit),
    /// Zeros, or the end of the file.
    End,
    /// From here on nothing can be told apart.
    Damage(&'static str),
}

/// The blocks up to one that says that a commit ends.
pub(crate) struct RawCommit {
    pub blocks: Vec<Block>,
    /// First and last number of blocks whose content is spoiled, and how.
    pub spoiled: Vec<(u64, u64, &'static str)>,
    /// The hash in the last block's header.
    pub chain: [u8; 32],
    pub stored_bytes: u64,
}

impl SegmentWalk {
    /// Inside, why it is no segment; `None` when there is no such file.
    ///
    /// # Errors
    /// When the operating system refuses, or a build of another format wrote it.
    pub fn open(
        directory: &Path,
        number: u32,
        generation: u16,
    ) -> Result<Option<Result<Self, &'static str>>, StorageError> {
        let name = segment_name(number, generation);
        let path = directory.join(&name);
        let file = match SystemIo.open_read_only(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(StorageError::io("open", &path)(error)),
        };
        let header = SegmentHeader::read(&*file, number, generation, &path)?;
        let Some(header) = header.filter(|header| header.first_seq.max(header.last_seq) < SEQ_MAX) else {
            return Ok(Some(Err("it has no whole header of its own")));
        };
        let length = file.length().map_err(StorageError::io("read", &path))?;
        let claims = SegmentClaims {
            log_id: String::from_utf8_lossy(&header.log_id).into_owned(),
            first_seq: header.first_seq,
            chain: header.chain,
            start: u64::from(SEGMENT_HEADER_BYTES),
            previous_bytes: header.previous_bytes,
            own: (generation > 0).then_some((header.own_bytes, header.last_seq)),
        };
        let file = file as Arc<dyn StorageFile>;
        let window = Window::new(file.clone(), length);
        Ok(Some(Ok(Self { name, claims, length, offset: u64::from(SEGMENT_HEADER_BYTES), file, window })))
    }

    /// Goes on with what the file holds by now.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn look_again(&mut self) -> std::io::Result<()> {
        self.length = self.file.length()?;
        self.window = Window::new(self.file.clone(), self.length);
        Ok(())
    }

    /// # Errors
    /// When the operating system refuses.
    pub fn next_piece(&mut self) -> std::io::Result<Piece> {
        let mut commit = RawCommit { blocks: Vec::new(), spoiled: Vec::new(), chain: [0; 32], stored_bytes: 0 };
        let (mut offset, mut raw_bytes) = (self.offset, 0);
        loop {
            let stored = match self.window.header(offset)? {
                Step::Block(stored) => stored,
                Step::End if commit.stored_bytes == 0 => return Ok(Piece::End),
                Step::End => return Ok(Piece::Damage("a commit is not complete")),
                Step::Damage(what) => return Ok(Piece::Damage(what)),
            };
            raw_bytes += u64::from(stored.header.raw_bytes);
            if raw_bytes > COMMIT_BYTES_MAX || stored.header.last_seq >= SEQ_MAX {
                return Ok(Piece::Damage("a commit is longer than one can be"));
            }
            let (ends, chain, length) = (stored.header.end_of_commit, stored.header.chain, stored.stored_bytes as u64);
            self.unpack(offset, stored, &mut commit)?;
            offset += length;
            commit.stored_bytes += length;
            if ends {
                commit.chain = chain;
                self.offset = offset;
                return Ok(Piece::Commit(commit));
            }
        }
    }

    fn unpack(&mut self, offset: u64, stored: StoredHeader, commit: &mut RawCommit) -> std::io::Result<()> {
        let (first_seq, last_seq) = (stored.header.first_seq, stored.header.last_seq);
        let bytes = self.window.at(offset, stored.stored_bytes)?;
        let content = bytes.get(stored.content_at..stored.stored_bytes).unwrap_or_default();
        match stored.unpack(content) {
            Ok(block) => commit.blocks.push(block),
            Err(what) => commit.spoiled.push((first_seq, last_seq, what)),
        }
        Ok(())
    }
}

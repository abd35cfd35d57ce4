//! The bytes on disk, and what is allowed to follow from them.
//!
//! A log is one directory: `000001.seg`, `000002.seg`, ... hold events, or `000001-1.seg` where a
//! segment was written anew, with the number of its generation; `mark` says how far the log
//! is known to be durable; `lock` keeps a second writer out; `torn-<epoch>-<offset>.bin` holds bytes
//! that recovery cut off; `*.new` is a file whose creation was interrupted. Numbers are little-endian.
//! Every checksum is CRC-32C. Reserved bytes are written as zero and ignored when read.
//!
//! ```text
//! segment := segment header, block*, zeros
//!
//! segment header, 128 bytes
//!    0  8  magic "PLSEGMNT"
//!    8  4  format version, 2
//!   12  4  segment number
//!   16 12  log id, ASCII
//!   28  4  reserved
//!   32  8  epoch in which the segment was begun
//!   40  8  sequence number of its first event
//!   48  8  creation time, microseconds since 1970
//!   56  8  length of the segment before it, 0 when there is none
//!   64 32  chain hash before its first event
//!   96  4  generation: 0 as first written, then 1, 2, ... each time it was written anew
//!  100  8  generation above 0: length of this file
//!  108  8  generation above 0: sequence number of its last event
//!  116  8  reserved
//!  124  4  checksum of bytes 0..124
//!
//! block := block header, content                (see block.rs for the code)
//!    0  4  length of everything after byte 8; 0 means that no block follows
//!    4  4  checksum of bytes 0..4 and of the header from byte 8 on
//!    8  1  block version, 2
//!    9  1  codec of the content: 0 plain, 1 zstd
//!   10  1  flags: 1 = last block of its commit, 2 = it tells of removed events
//!   11  1  levels: bit n = an event of level n is inside
//!   12  4  length of the content before compression
//!   16  4  checksum of the content as stored
//!   20  4  number of events
//!   24  8  first sequence number
//!   32  8  last sequence number
//!   40  8  earliest recording time
//!   48  8  latest recording time
//!   56 16  kinds: bit n = an event of kind number n is inside, bit 0 = of one above 127
//!   72  8  pages: union of the bits of the page ids inside
//!   80 32  last block of its commit: chain hash after the commit's last event
//!  112  2  length of the session id, 65535 for events that belong to no session
//!  114  2  reserved
//!  116  n  session id, UTF-8
//!  then    content: records as event/codec.rs defines them, in rising order of sequence number;
//!          of removed events: per run of adjacent numbers what lies between it and the run before
//!          (varint, 0 for the first run), how many they are (varint), the chain hash after them (32)
//!
//! mark := two slots, at byte 0 and at byte 4096      (see mark.rs)
//! ```
//!
//! Chain: the hash before event 1 is SHA-256("pageledger chain 2\n", log id); the hash after an event is
//! SHA-256(hash before it, its record) (see chain.rs).
//!
//! A segment that is written anew keeps every number: events stay as they are, byte for byte, or are
//! told of as removed. They are regrouped into commits of about a mebibyte, so that they compress
//! better; the words for a commit hold for such a group as well. A new generation gets its name when it
//! is whole and durable, and holds from then on; the one before goes afterwards.
//!
//! A commit is one block per session that has events in it, so the numbers in one block rise but need
//! not be adjacent; those of a whole commit are. A commit lies in one segment. The header has its own
//! checksum, which covers the content's, so that a walk that reads headers only can trust them.
//!
//! The end of a segment that is being written is a zero length, because room is laid out as zeros in
//! advance: a commit then changes no metadata, and `fdatasync` has only its data to write. A segment
//! that is full is cut to its true length, and the next one records that length, so a missing,
//! shortened or swapped segment is noticed when the log is opened, without reading it.

use std::path::Path;

use super::segments::Sealed;
use super::storage_io::StorageFile;
use crate::StorageError;
use crate::limits::{GENERATION_MAX, SEGMENT_NUMBER_MAX};

/// The format this build writes and reads.
pub(super) const VERSION: u32 = 2;
pub(super) const SEGMENT_HEADER_BYTES: u32 = 128;
pub(super) const LOG_ID_BYTES: usize = 12;
const MAGIC: &[u8; 8] = b"PLSEGMNT";

/// What stands at the beginning of a segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct SegmentHeader {
    pub number: u32,
    pub log_id: [u8; LOG_ID_BYTES],
    pub epoch: u64,
    pub first_seq: u64,
    pub created_micros: i64,
    /// Length of the segment before this one as first written, 0 when there is none.
    pub previous_bytes: u64,
    /// Chain hash before its first event.
    pub chain: [u8; 32],
    /// How often it was written anew.
    pub generation: u16,
    /// Length of this file; 0 in generation 0.
    pub own_bytes: u64,
    /// Number of its last event; 0 in generation 0.
    pub last_seq: u64,
}

impl SegmentHeader {
    pub fn to_bytes(&self) -> [u8; SEGMENT_HEADER_BYTES as usize] {
        let mut out = [0; SEGMENT_HEADER_BYTES as usize];
        put(&mut out, 0, MAGIC);
        put(&mut out, 8, &VERSION.to_le_bytes());
        put(&mut out, 12, &self.number.to_le_bytes());
        put(&mut out, 16, &self.log_id);
        put(&mut out, 32, &self.epoch.to_le_bytes());
        put(&mut out, 40, &self.first_seq.to_le_bytes());
        put(&mut out, 48, &self.created_micros.to_le_bytes());
        put(&mut out, 56, &self.previous_bytes.to_le_bytes());
        put(&mut out, 64, &self.chain);
        put(&mut out, 96, &u32::from(self.generation).to_le_bytes());
        put(&mut out, 100, &self.own_bytes.to_le_bytes());
        put(&mut out, 108, &self.last_seq.to_le_bytes());
        let checksum = crc32c::crc32c(&out[..124]);
        put(&mut out, 124, &checksum.to_le_bytes());
        out
    }

    /// The header of the file of that number and generation; `None` when it is not whole.
    ///
    /// # Errors
    /// When the file cannot be read, or a build of another format wrote it.
    pub fn read(
        file: &dyn StorageFile,
        number: u32,
        generation: u16,
        path: &Path,
    ) -> Result<Option<Self>, StorageError> {
        let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
        let count = file.read_at(&mut bytes, 0).map_err(StorageError::io("read", path))?;
        let header = Self::from_bytes(&bytes[..count], path)?;
        Ok(header.filter(|header| (header.number, header.generation) == (number, generation)))
    }

    /// Where this segment ends, when `next` is the one behind it.
    pub fn sealed_by(&self, next: &Self) -> Sealed {
        if self.generation > 0 {
            return Sealed { end: self.own_bytes, last_seq: self.last_seq };
        }
        Sealed { end: next.previous_bytes, last_seq: next.first_seq.saturating_sub(1) }
    }

    /// `None` when the bytes are no whole segment header.
    ///
    /// # Errors
    /// `StorageError::Format` when a build of another format wrote it.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        if bytes.len() < SEGMENT_HEADER_BYTES as usize || &bytes[..8] != MAGIC {
            return Ok(None);
        }
        if u32_at(bytes, 124) != crc32c::crc32c(&bytes[..124]) {
            return Ok(None);
        }
        check_version(u32_at(bytes, 8), path)?;
        let generation = u16::try_from(u32_at(bytes, 96)).ok().filter(|generation| *generation <= GENERATION_MAX);
        let Some(generation) = generation else { return Ok(None) };
        Ok(Some(Self {
            number: u32_at(bytes, 12),
            log_id: array_at(bytes, 16),
            epoch: u64_at(bytes, 32),
            first_seq: u64_at(bytes, 40),
            created_micros: u64_at(bytes, 48) as i64,
            previous_bytes: u64_at(bytes, 56),
            chain: array_at(bytes, 64),
            generation,
            own_bytes: u64_at(bytes, 100),
            last_seq: u64_at(bytes, 108),
        }))
    }
}

/// File name of a generation of a segment.
pub(super) fn segment_name(number: u32, generation: u16) -> String {
    if generation == 0 { format!("{number:06}.seg") } else { format!("{number:06}-{generation}.seg") }
}

/// Number and generation of a segment by its file name.
pub(super) fn segment_number(name: &str) -> Option<(u32, u16)> {
    let stem = name.strip_suffix(".seg")?;
    let (number, generation) = stem.split_once('-').unwrap_or((stem, "0"));
    let (number, generation) = (number.parse().ok()?, generation.parse().ok()?);
    let bounded = (1..=SEGMENT_NUMBER_MAX).contains(&number) && generation <= GENERATION_MAX;
    (bounded && segment_name(number, generation) == name).then_some((number, generation))
}

pub(super) fn check_version(found: u32, path: &Path) -> Result<(), StorageError> {
    if found == VERSION {
        return Ok(());
    }
    Err(StorageError::Format { path: path.to_owned(), found, known: VERSION })
}

pub(super) fn put(out: &mut [u8], at: usize, bytes: &[u8]) {
    out[at..at + bytes.len()].copy_from_slice(bytes);
}

pub(super) fn array_at<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

pub(super) fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes(array_at(bytes, at))
}

pub(super) fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(array_at(bytes, at))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_numbers_of_segments_agree() {
        for number in [1, 999_999, 1_000_000, SEGMENT_NUMBER_MAX] {
            for generation in [0, 1, GENERATION_MAX] {
                assert_eq!(segment_number(&segment_name(number, generation)), Some((number, generation)));
            }
        }
        let strangers = ["000000.seg", "1.seg", "+00001.seg", "000001.seg.new", "torn.seg", ".seg", "1048576.seg"];
        for name in strangers.into_iter().chain(["000001-0.seg", "000001-01.seg", "000001-4095.seg", "000001-.seg"]) {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}

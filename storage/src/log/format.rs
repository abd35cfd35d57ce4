//! The bytes on disk, and what is allowed to follow from them.
//!
//! A log is one directory: `000001.seg`, `000002.seg`, ... hold events; `mark` says how far the log
//! is known to be durable; `lock` keeps a second writer out; `torn-<epoch>-<offset>.bin` holds bytes
//! that recovery cut off; `*.new` is a file whose creation was interrupted. Numbers are little-endian.
//! Every checksum is CRC-32C. Reserved bytes are written as zero and ignored when read.
//!
//! ```text
//! segment := segment header, block*, zeros
//!
//! segment header, 128 bytes
//!    0  8  magic "PLSEGMNT"
//!    8  4  format version, 1
//!   12  4  segment number
//!   16 12  log id, ASCII
//!   28  4  reserved
//!   32  8  epoch in which the segment was begun
//!   40  8  sequence number of its first event
//!   48  8  creation time, microseconds since 1970
//!   56  8  length of the segment before it, 0 when there is none
//!   64 32  reserved: chain hash before the first event
//!   96 28  reserved: checkpoint
//!  124  4  checksum of bytes 0..124
//!
//! block := block header, content                (see block.rs for the code)
//!    0  4  length of everything after byte 8; 0 means that no block follows
//!    4  4  checksum of bytes 0..4 and of the header from byte 8 on
//!    8  1  block version, 1
//!    9  1  codec of the content: 0 plain, 1 zstd
//!   10  1  flags: 1 = last block of its commit
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
//!   80 32  reserved: chain hash after the last event
//!  112  2  length of the session id, 65535 for events that belong to no session
//!  114  2  reserved
//!  116  n  session id, UTF-8
//!  then    content: records as event/codec.rs defines them, in rising order of sequence number
//!
//! mark := two slots, at byte 0 and at byte 4096      (see mark.rs)
//! ```
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

use crate::StorageError;

/// The format this build writes, and the newest it reads.
pub(super) const VERSION: u32 = 1;
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
    /// Length of the segment before this one, 0 when there is none.
    pub previous_bytes: u64,
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
        let checksum = crc32c::crc32c(&out[..124]);
        put(&mut out, 124, &checksum.to_le_bytes());
        out
    }

    /// `None` when the bytes are no whole segment header.
    ///
    /// # Errors
    /// `StorageError::Format` when a newer build wrote it.
    pub fn from_bytes(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        if bytes.len() < SEGMENT_HEADER_BYTES as usize || &bytes[..8] != MAGIC {
            return Ok(None);
        }
        if u32_at(bytes, 124) != crc32c::crc32c(&bytes[..124]) {
            return Ok(None);
        }
        check_version(u32_at(bytes, 8), path)?;
        Ok(Some(Self {
            number: u32_at(bytes, 12),
            log_id: array_at(bytes, 16),
            epoch: u64_at(bytes, 32),
            first_seq: u64_at(bytes, 40),
            created_micros: u64_at(bytes, 48) as i64,
            previous_bytes: u64_at(bytes, 56),
        }))
    }
}

/// File name of a segment.
pub(super) fn segment_name(number: u32) -> String {
    format!("{number:06}.seg")
}

/// Number of a segment by its file name.
pub(super) fn segment_number(name: &str) -> Option<u32> {
    let digits = name.strip_suffix(".seg")?;
    let number: u32 = digits.parse().ok()?;
    (number > 0 && segment_name(number) == name).then_some(number)
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
        for number in [1, 999_999, 1_000_000, u32::MAX] {
            assert_eq!(segment_number(&segment_name(number)), Some(number));
        }
        for name in ["000000.seg", "1.seg", "+00001.seg", "000001.seg.new", "torn.seg", ".seg"] {
            assert_eq!(segment_number(name), None, "{name}");
        }
    }
}

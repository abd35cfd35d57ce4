//! The high-water mark: how far the log is known to be durable, kept apart from the log itself.
//!
//! Why it exists: a log alone cannot tell "nothing was written" from "what was written is gone". With
//! the mark, an opener that finds less than was acknowledged refuses instead of opening short.
//!
//! ```text
//! slot, 128 bytes, at byte 0 and byte 4096 of `mark`; the valid one with the higher counter holds
//!    0  8  magic "PLEDGMRK"
//!    8  4  format version, 2
//!   12  4  flags: 1 = closed in an orderly way
//!   16  8  counter, one more than the slot before
//!   24  8  epoch
//!   32  8  last sequence number
//!   40  4  segment in which the log ends
//!   44  4  offset at which it ends
//!   48  4  oldest segment that must be there
//!   52  4  reserved
//!   56  8  first sequence number of that segment
//!   64 12  log id
//!   76  4  reserved
//!   80 32  chain hash after the last event
//!  112 12  reserved
//!  124  4  checksum of bytes 0..124
//! ```
//!
//! Order in a commit: write the blocks; `fdatasync` the segment; write the slot; acknowledge. The slot's
//! own sync follows within `MARK_SYNC_MILLIS`, on a small thread of its own that nobody waits for. So the
//! mark is never ahead of the durable log, since it is written only after the log's sync; it survives any
//! death of the process, since a written slot is the kernel's to keep; it lags a power cut by the commits
//! of that time, which recovery then finds behind it; and an acknowledgement waits for one sync, not for
//! two. The slots lie in different pages and alternate, so a slot torn by a power cut leaves the one
//! before it, and once a mark is synced no cut goes back behind it.

use std::io;
use std::path::Path;

use super::format::{LOG_ID_BYTES, VERSION, array_at, check_version, put, u32_at, u64_at};
use super::storage_io::StorageFile;
use super::{Durable, Position};
use crate::StorageError;

const MAGIC: &[u8; 8] = b"PLEDGMRK";
const SLOT_BYTES: usize = 128;
const SLOT_STRIDE_BYTES: usize = 4096;
pub(super) const FILE_BYTES: usize = 2 * SLOT_STRIDE_BYTES;
pub(super) const FILE_NAME: &str = "mark";
const FLAG_CLEAN: u32 = 1;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Mark {
    pub counter: u64,
    pub clean: bool,
    pub epoch: u64,
    pub durable: Durable,
    pub oldest_segment: u32,
    pub oldest_seq: u64,
    pub log_id: [u8; LOG_ID_BYTES],
}

impl Mark {
    fn to_bytes(&self) -> [u8; SLOT_BYTES] {
        let mut out = [0; SLOT_BYTES];
        put(&mut out, 0, MAGIC);
        put(&mut out, 8, &VERSION.to_le_bytes());
        put(&mut out, 12, &u32::from(self.clean).to_le_bytes());
        put(&mut out, 16, &self.counter.to_le_bytes());
        put(&mut out, 24, &self.epoch.to_le_bytes());
        put(&mut out, 32, &self.durable.last_seq.to_le_bytes());
        put(&mut out, 40, &self.durable.end.segment.to_le_bytes());
        put(&mut out, 44, &self.durable.end.offset.to_le_bytes());
        put(&mut out, 48, &self.oldest_segment.to_le_bytes());
        put(&mut out, 56, &self.oldest_seq.to_le_bytes());
        put(&mut out, 64, &self.log_id);
        put(&mut out, 80, &self.durable.chain);
        let checksum = crc32c::crc32c(&out[..124]);
        put(&mut out, 124, &checksum.to_le_bytes());
        out
    }

    fn from_slot(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        if bytes.len() < SLOT_BYTES || &bytes[..8] != MAGIC || u32_at(bytes, 124) != crc32c::crc32c(&bytes[..124]) {
            return Ok(None);
        }
        check_version(u32_at(bytes, 8), path)?;
        // The log ends in a segment that was never written anew.
        let end = Position { segment: u32_at(bytes, 40), generation: 0, offset: u32_at(bytes, 44) };
        Ok(Some(Self {
            counter: u64_at(bytes, 16),
            clean: u32_at(bytes, 12) & FLAG_CLEAN != 0,
            epoch: u64_at(bytes, 24),
            durable: Durable { last_seq: u64_at(bytes, 32), end, chain: array_at(bytes, 80) },
            oldest_segment: u32_at(bytes, 48),
            oldest_seq: u64_at(bytes, 56),
            log_id: array_at(bytes, 64),
        }))
    }

    /// The slot that holds, or `None` when neither is whole.
    ///
    /// # Errors
    /// `StorageError::Format` when a build of another format wrote it.
    pub fn from_file_bytes(bytes: &[u8], path: &Path) -> Result<Option<Self>, StorageError> {
        let slot = |index: usize| Self::from_slot(bytes.get(index * SLOT_STRIDE_BYTES..).unwrap_or_default(), path);
        let newest = [slot(0)?, slot(1)?].into_iter().flatten().max_by_key(|mark| mark.counter);
        Ok(newest)
    }

    /// # Errors
    /// When the operating system refuses, or the file is longer than a mark can be.
    pub fn read(file: &dyn StorageFile, path: &Path) -> Result<Option<Self>, StorageError> {
        let mut bytes = [0; FILE_BYTES];
        let length = file.read_at(&mut bytes, 0).map_err(StorageError::io("read", path))?;
        Self::from_file_bytes(&bytes[..length], path)
    }

    /// Writes the slot that this mark's counter chooses; the other one stays as it is.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn write(&self, file: &dyn StorageFile) -> io::Result<()> {
        file.write_at(&self.to_bytes(), (self.counter % 2) * SLOT_STRIDE_BYTES as u64)
    }
}

//! The bytes of a table, a file of sorted entries that is written once.
//!
//! ```text
//! table  := leaf*, section*, fences, footer        numbers are little-endian, checksums CRC-32C
//!
//! leaf   := entry*, checksum of the entries
//! entry  := varint bytes shared with the key before, varint bytes of the rest, varint bytes of the
//!           value, rest of the key, value           (the first of a leaf shares nothing)
//! section := 4096 bytes of a filter, checksum       (see filter.rs)
//! fences := for each leaf: varint stored bytes, varint length, key above all before the leaf and at
//!           most its first
//!
//! footer, 128 bytes
//!    0  8  magic "PLINDEX2"
//!    8  4  format of keys and values
//!   12  4  segment
//!   16  4  generation
//!   20 12  log id
//!   32  8  creation time of the segment
//!   40  4  where the blocks begin that it is made of, in the segment
//!   44  4  where they end
//!   48  8  first sequence number of what they hold or tell of as removed
//!   56  8  last sequence number
//!   64  4  leaves
//!   68  4  sections
//!   72  8  offset of the sections, which begin where the leaves end
//!   80  4  length of the fences
//!   84  4  checksum of the fences
//!   88 32  chain hash that the last of the blocks bears
//!  120  4  where that block begins
//!  124  4  checksum of bytes 0..124
//! ```
//!
//! Nothing in it is trusted: whatever does not fit, the table is made again from the log.

use crate::index::wire::FORMAT;

pub const FOOTER_BYTES: usize = 128;
pub const SECTION_BYTES: usize = 4096;
pub const CHECKSUM_BYTES: usize = 4;
/// A leaf takes no further entry once it has this many bytes.
pub const LEAF_BYTES_TARGET: usize = 4096;
const MAGIC: &[u8; 8] = b"PLINDEX2";
const LOG_ID_BYTES: usize = 12;

/// Which blocks of the log a table is made of.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Origin {
    pub log_id: String,
    pub segment: u32,
    pub generation: u16,
    pub created_micros: i64,
    pub start: u32,
    pub end: u32,
    pub first_seq: u64,
    pub last_seq: u64,
    pub tip: Tip,
}

/// The last block that something is made of. The chain hash stands for all that was ever recorded up
/// to there, so a log that was cut and went on otherwise is told apart by it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Tip {
    /// 0 when the blocks could not be read to their end.
    pub block: u32,
    pub chain: [u8; 32],
}

/// Where things are in the file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub leaves: u32,
    pub sections: u32,
    pub sections_at: u64,
    pub fences_bytes: u32,
    pub fences_checksum: u32,
}

impl Layout {
    pub fn fences_at(&self) -> u64 {
        self.sections_at + u64::from(self.sections) * (SECTION_BYTES + CHECKSUM_BYTES) as u64
    }

    fn file_bytes(&self) -> u64 {
        self.fences_at() + u64::from(self.fences_bytes) + FOOTER_BYTES as u64
    }
}

#[must_use]
pub fn write_footer(origin: &Origin, layout: &Layout) -> [u8; FOOTER_BYTES] {
    let mut out = [0; FOOTER_BYTES];
    let mut put = |at: usize, bytes: &[u8]| out[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, MAGIC);
    put(8, &FORMAT.to_le_bytes());
    put(12, &origin.segment.to_le_bytes());
    put(16, &u32::from(origin.generation).to_le_bytes());
    put(20, &log_id_bytes(&origin.log_id));
    put(32, &origin.created_micros.to_le_bytes());
    put(40, &origin.start.to_le_bytes());
    put(44, &origin.end.to_le_bytes());
    put(48, &origin.first_seq.to_le_bytes());
    put(56, &origin.last_seq.to_le_bytes());
    put(64, &layout.leaves.to_le_bytes());
    put(68, &layout.sections.to_le_bytes());
    put(72, &layout.sections_at.to_le_bytes());
    put(80, &layout.fences_bytes.to_le_bytes());
    put(84, &layout.fences_checksum.to_le_bytes());
    put(88, &origin.tip.chain);
    put(120, &origin.tip.block.to_le_bytes());
    let checksum = crc32c::crc32c(&out[..124]);
    out[124..].copy_from_slice(&checksum.to_le_bytes());
    out
}

/// What the footer of a file of that length says.
pub fn read_footer(bytes: &[u8; FOOTER_BYTES], file_bytes: u64) -> Result<(Origin, Layout), &'static str> {
    let u32_at = |at: usize| u32::from_le_bytes(array(bytes, at));
    let u64_at = |at: usize| u64::from_le_bytes(array(bytes, at));
    if &bytes[..8] != MAGIC || u32_at(124) != crc32c::crc32c(&bytes[..124]) {
        return Err("its footer is not whole");
    }
    if u32_at(8) != FORMAT {
        return Err("it is of another format");
    }
    let log_id = std::str::from_utf8(&bytes[20..32]).map_err(|_| "its footer is not whole")?;
    let origin = Origin {
        log_id: log_id.to_owned(),
        segment: u32_at(12),
        generation: u16::try_from(u32_at(16)).map_err(|_| "its footer is not whole")?,
        created_micros: u64_at(32) as i64,
        start: u32_at(40),
        end: u32_at(44),
        first_seq: u64_at(48),
        last_seq: u64_at(56),
        tip: Tip { chain: array(bytes, 88), block: u32_at(120) },
    };
    let layout = Layout {
        leaves: u32_at(64),
        sections: u32_at(68),
        sections_at: u64_at(72),
        fences_bytes: u32_at(80),
        fences_checksum: u32_at(84),
    };
    let plausible = layout.sections_at < file_bytes && layout.file_bytes() == file_bytes && layout.sections > 0;
    if plausible { Ok((origin, layout)) } else { Err("it is not as long as its footer says") }
}

fn log_id_bytes(log_id: &str) -> [u8; LOG_ID_BYTES] {
    let mut out = [0; LOG_ID_BYTES];
    for (place, byte) in out.iter_mut().zip(log_id.bytes()) {
        *place = byte;
    }
    out
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut out = [0; N];
    out.copy_from_slice(&bytes[at..at + N]);
    out
}

//! Blocks: the events that one commit holds of one session, under a header that filters can skip by.
//!
//! Byte layout: see format.rs. What must stay true: a header or a content that differs from what was
//! written by even one bit is never returned as events.

use super::Position;
use super::format::{array_at, put, u32_at, u64_at};
use crate::event::codec::{put_varint, take_varint};
use crate::event::{DecodeError, EventView};
use crate::ids::SessionId;
use crate::limits::BLOCK_BYTES_MAX;

/// A longer session id is not stored; its events become gaps.
pub(super) const SESSION_ID_BYTES_MAX: usize = 1024;
/// Length and header checksum.
pub(super) const PREFIX_BYTES: usize = 8;
/// Prefix and header without the session id.
pub(super) const FIXED_BYTES: usize = 116;
/// No block's stored length is more: events that do not shrink, and the longest header.
pub(super) const STORED_BYTES_MAX: usize = BLOCK_BYTES_MAX + FIXED_BYTES + SESSION_ID_BYTES_MAX;
const BLOCK_VERSION: u8 = 2;
const CODEC_PLAIN: u8 = 0;
const CODEC_ZSTD: u8 = 1;
const FLAG_END_OF_COMMIT: u8 = 1;
const FLAG_REMOVED: u8 = 2;
const NO_SESSION: u16 = u16::MAX;

const _: () = assert!(SESSION_ID_BYTES_MAX < NO_SESSION as usize);

/// What a block says about its events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockHeader {
    /// Whose events these are; `None` for those that belong to no session.
    pub session_id: Option<SessionId>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub count: u32,
    /// Earliest recording time inside.
    pub first_micros: i64,
    /// Latest recording time inside.
    pub last_micros: i64,
    /// Bit n: an event of kind number n is inside; bit 0: one of a number above 127.
    pub kinds: u128,
    /// Bit n: an event of `Level` n is inside.
    pub levels: u8,
    /// Union of [`page_bit`] of the page ids inside.
    pub pages: u64,
    /// Length of the events before compression.
    pub raw_bytes: u32,
    /// Whether this is the last block of its commit.
    pub end_of_commit: bool,
    /// Whether it tells of events that were removed, and holds none.
    pub removed: bool,
    /// Chain hash after the last event of its commit, when this is the commit's last block; else zeros.
    pub chain: [u8; 32],
}

/// Events of adjacent numbers that were removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemovedRun {
    pub first_seq: u64,
    pub count: u64,
    /// Chain hash after the last of them.
    pub chain: [u8; 32],
}

/// The bit that stands for a page id in [`BlockHeader::pages`]: FNV-1a, folded to 0..64. On disk, so
/// it never changes.
#[must_use]
pub fn page_bit(page_id: &str) -> u64 {
    let hash = page_id
        .bytes()
        .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3));
    1 << ((hash ^ (hash >> 32)) & 63)
}

/// Where a block is, where the next one is, and what its header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRef {
    pub position: Position,
    pub next: Position,
    pub header: BlockHeader,
}

/// A block's events, checked and decompressed.
#[derive(Debug)]
pub struct Block {
    pub header: BlockHeader,
    raw: Vec<u8>,
}

impl Block {
    /// The events in rising order of `seq`; none when it tells of removed ones.
    #[must_use]
    pub fn events(&self) -> BlockEvents<'_> {
        BlockEvents { rest: if self.header.removed { &[] } else { &self.raw } }
    }

    /// The events' canonical bytes, one after the other.
    pub(crate) fn raw(&self) -> &[u8] {
        &self.raw
    }

    /// The removed events it tells of, in rising order; none when it holds events.
    ///
    /// # Errors
    /// When the content does not say what the header says.
    pub fn removed(&self) -> Result<Vec<RemovedRun>, DecodeError> {
        let mut runs = Vec::new();
        if !self.header.removed {
            return Ok(runs);
        }
        let (mut input, mut next_seq, mut total) = (&self.raw[..], self.header.first_seq, 0u64);
        while !input.is_empty() {
            let first_seq = next_seq.checked_add(take_varint(&mut input)?).ok_or(DecodeError::Runs)?;
            let count = take_varint(&mut input)?;
            let (chain, rest) = input.split_first_chunk::<32>().ok_or(DecodeError::Truncated)?;
            input = rest;
            next_seq = first_seq.checked_add(count).filter(|_| count > 0).ok_or(DecodeError::Runs)?;
            total = total.saturating_add(count);
            runs.push(RemovedRun { first_seq, count, chain: *chain });
        }
        let first_seq = runs.first().map(|run| run.first_seq);
        let whole = total == u64::from(self.header.count) && next_seq.checked_sub(1) == Some(self.header.last_seq);
        if whole && first_seq == Some(self.header.first_seq) { Ok(runs) } else { Err(DecodeError::Runs) }
    }
}

/// The content of a block that tells of `runs`.
pub(super) fn put_runs(out: &mut Vec<u8>, runs: &[RemovedRun]) {
    let mut next_seq = runs.first().map_or(0, |run| run.first_seq);
    for run in runs {
        put_varint(out, run.first_seq - next_seq);
        put_varint(out, run.count);
        out.extend_from_slice(&run.chain);
        next_seq = run.first_seq + run.count;
    }
}

/// Iterator over a block's events; ends after the first that does not decode.
#[derive(Debug, Clone)]
pub struct BlockEvents<'a> {
    rest: &'a [u8],
}

impl<'a> Iterator for BlockEvents<'a> {
    type Item = Result<EventView<'a>, DecodeError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        match EventView::split_from(self.rest) {
            Ok((view, rest)) => {
                self.rest = rest;
                Some(Ok(view))
            }
            Err(error) => {
                self.rest = &[];
                Some(Err(error))
            }
        }
    }
}

/// A header as stored, with what is needed to read the content.
#[derive(Debug, Clone)]
pub(super) struct StoredHeader {
    pub header: BlockHeader,
    /// Bytes from the block's beginning to its content.
    pub content_at: usize,
    /// Bytes from the block's beginning to its end.
    pub stored_bytes: usize,
    codec: u8,
    content_checksum: u32,
}

/// What the bytes at the place of a block are.
pub(super) enum Found {
    Header(StoredHeader),
    /// More bytes are needed to know: this many from the block's beginning.
    Needs(usize),
    /// A zero length: no block follows.
    Nothing,
    Damage(&'static str),
}

/// Reads the header at the beginning of `bytes`, which may end early.
pub(super) fn read_header(bytes: &[u8]) -> Found {
    if bytes.len() < 4 {
        return Found::Needs(FIXED_BYTES);
    }
    let length = u32_at(bytes, 0) as usize;
    if length == 0 {
        return Found::Nothing;
    }
    if !(FIXED_BYTES - PREFIX_BYTES..=STORED_BYTES_MAX).contains(&length) {
        return Found::Damage("a block's length is out of bounds");
    }
    if bytes.len() < FIXED_BYTES {
        return Found::Needs(FIXED_BYTES);
    }
    let session_length = u16::from_le_bytes([bytes[112], bytes[113]]);
    let session_bytes = if session_length == NO_SESSION { 0 } else { usize::from(session_length) };
    let content_at = FIXED_BYTES + session_bytes;
    if content_at > PREFIX_BYTES + length {
        return Found::Damage("a block's header is longer than the block");
    }
    if bytes.len() < content_at {
        return Found::Needs(content_at);
    }
    if u32_at(bytes, 4) != header_checksum(&bytes[..content_at]) {
        return Found::Damage("a block's header does not match its checksum");
    }
    if bytes[8] != BLOCK_VERSION || bytes[9] > CODEC_ZSTD {
        return Found::Damage("a block is of a version or codec that this build does not know");
    }
    let Ok(session) = std::str::from_utf8(&bytes[FIXED_BYTES..content_at]) else {
        return Found::Damage("a block's session id is not UTF-8");
    };
    Found::Header(StoredHeader {
        header: BlockHeader {
            session_id: (session_length != NO_SESSION).then(|| SessionId::from(session)),
            first_seq: u64_at(bytes, 24),
            last_seq: u64_at(bytes, 32),
            count: u32_at(bytes, 20),
            first_micros: u64_at(bytes, 40) as i64,
            last_micros: u64_at(bytes, 48) as i64,
            kinds: u128::from(u64_at(bytes, 56)) | u128::from(u64_at(bytes, 64)) << 64,
            levels: bytes[11],
            pages: u64_at(bytes, 72),
            raw_bytes: u32_at(bytes, 12),
            end_of_commit: bytes[10] & FLAG_END_OF_COMMIT != 0,
            removed: bytes[10] & FLAG_REMOVED != 0,
            chain: array_at(bytes, 80),
        },
        content_at,
        stored_bytes: PREFIX_BYTES + length,
        codec: bytes[9],
        content_checksum: u32_at(bytes, 16),
    })
}

fn header_checksum(block: &[u8]) -> u32 {
    crc32c::crc32c_append(crc32c::crc32c(&block[..4]), &block[PREFIX_BYTES..])
}

impl StoredHeader {
    /// Whether the content, as stored, is what was written.
    pub fn content_is_whole(&self, content: &[u8]) -> bool {
        content.len() == self.stored_bytes - self.content_at && crc32c::crc32c(content) == self.content_checksum
    }

    /// Checks and decompresses the content.
    pub fn unpack(self, content: &[u8]) -> Result<Block, &'static str> {
        if !self.content_is_whole(content) {
            return Err("a block's content does not match its checksum");
        }
        let raw_bytes = self.header.raw_bytes as usize;
        if raw_bytes > BLOCK_BYTES_MAX {
            return Err("a block's events are longer than a block may be");
        }
        let raw = match self.codec {
            CODEC_PLAIN => content.to_vec(),
            _ => zstd::bulk::decompress(content, raw_bytes).map_err(|_| "a block's content does not decompress")?,
        };
        if raw.len() != raw_bytes {
            return Err("a block's events are not as long as its header says");
        }
        Ok(Block { header: self.header, raw })
    }
}

/// Appends the block of `header` and `raw` to `out`; `packed` is `raw` compressed, where that paid.
/// The session id is at most `SESSION_ID_BYTES_MAX` long.
pub(super) fn put_block(out: &mut Vec<u8>, header: &BlockHeader, raw: &[u8], packed: Option<&[u8]>) {
    let session = header.session_id.as_ref().map(SessionId::as_str);
    let content = packed.unwrap_or(raw);
    let content_at = FIXED_BYTES + session.map_or(0, str::len);
    let start = out.len();
    out.resize(start + content_at, 0);
    let block = &mut out[start..];
    put(block, 0, &((content_at - PREFIX_BYTES + content.len()) as u32).to_le_bytes());
    block[8] = BLOCK_VERSION;
    block[9] = if packed.is_some() { CODEC_ZSTD } else { CODEC_PLAIN };
    block[10] |= if header.end_of_commit { FLAG_END_OF_COMMIT } else { 0 };
    block[10] |= if header.removed { FLAG_REMOVED } else { 0 };
    block[11] = header.levels;
    put(block, 12, &header.raw_bytes.to_le_bytes());
    put(block, 16, &crc32c::crc32c(content).to_le_bytes());
    put(block, 20, &header.count.to_le_bytes());
    put(block, 24, &header.first_seq.to_le_bytes());
    put(block, 32, &header.last_seq.to_le_bytes());
    put(block, 40, &header.first_micros.to_le_bytes());
    put(block, 48, &header.last_micros.to_le_bytes());
    put(block, 56, &header.kinds.to_le_bytes());
    put(block, 72, &header.pages.to_le_bytes());
    put(block, 80, &header.chain);
    let session_length = session.map_or(NO_SESSION, |session| session.len() as u16);
    put(block, 112, &session_length.to_le_bytes());
    put(block, FIXED_BYTES, session.unwrap_or_default().as_bytes());
    let checksum = header_checksum(block);
    put(block, 4, &checksum.to_le_bytes());
    out.extend_from_slice(content);
}

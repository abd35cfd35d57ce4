//! What one generation of one segment holds, as far as upkeep cares: how much of each class, and the
//! handles of artifacts that its events name. Found by reading the segment once, then remembered in a
//! small file.
//!
//! ```text
//! contents := magic "PLHOLDS1", log id 12, segment u32, generation u16, 3 times (count u64, latest i64),
//!             number of handles u32, handles 16 bytes each, CRC-32C of all before u32
//! ```
//!
//! Numbers are little-endian. The file is never trusted further than its checksum and the identity in
//! it reach: whatever is wrong with it, the segment is read again.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use crate::StorageError;
use crate::event::{Class, EventView};
use crate::log::{BlockHeader, BlockRef, Reader, SegmentFacts};
use crate::upkeep::class::Troubles;
use crate::upkeep::plan::Kept;

const MAGIC: &[u8; 8] = b"PLHOLDS1";
const HANDLE_PREFIX: &str = "art-";

/// What is left of a handle without its prefix, in 16 bytes.
pub type Handle = u128;

/// `None` for text that is no handle of the store's, under which nothing can lie there.
pub fn handle(text: &str) -> Option<Handle> {
    let digits = text.strip_prefix(HANDLE_PREFIX)?;
    let fits = digits.len() == 32 && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
    if fits { u128::from_str_radix(digits, 16).ok() } else { None }
}

pub fn handle_text(handle: Handle) -> String {
    format!("{HANDLE_PREFIX}{handle:032x}")
}

/// What a segment holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    pub kept: [Kept; 3],
    pub handles: BTreeSet<Handle>,
}

impl Contents {
    pub const NOTHING: Contents = Contents { kept: [Kept::NOTHING; 3], handles: BTreeSet::new() };

    pub fn add(&mut self, class: Class, view: &EventView<'_>) {
        self.kept[class as usize].add(view.recorded_at_micros);
        self.handles.extend(view.handles().filter_map(handle));
    }

    /// Reads the segment.
    pub fn read(reader: &Reader, facts: &SegmentFacts) -> Result<Self, StorageError> {
        let troubles = troubles(reader, facts)?;
        let mut contents = Self::NOTHING;
        each_event(reader, facts, &|_| true, &mut |view| contents.add(troubles.class(view), view))?;
        Ok(contents)
    }

    pub fn to_bytes(&self, log_id: &str, facts: &SegmentFacts) -> Vec<u8> {
        let mut out = identity(log_id, facts);
        for kept in &self.kept {
            out.extend_from_slice(&kept.count.to_le_bytes());
            out.extend_from_slice(&kept.last_micros.to_le_bytes());
        }
        out.extend_from_slice(&(self.handles.len() as u32).to_le_bytes());
        for handle in &self.handles {
            out.extend_from_slice(&handle.to_le_bytes());
        }
        let checksum = crc32c::crc32c(&out);
        out.extend_from_slice(&checksum.to_le_bytes());
        out
    }

    /// `None` when these are not whole or tell of something else.
    pub fn from_bytes(bytes: &[u8], log_id: &str, facts: &SegmentFacts) -> Option<Self> {
        let (content, checksum) = bytes.split_last_chunk::<4>()?;
        if crc32c::crc32c(content) != u32::from_le_bytes(*checksum) {
            return None;
        }
        let mut input = content.strip_prefix(&identity(log_id, facts)[..])?;
        let mut contents = Self::NOTHING;
        for kept in &mut contents.kept {
            *kept = Kept {
                count: u64::from_le_bytes(take(&mut input)?),
                last_micros: i64::from_le_bytes(take(&mut input)?),
            };
        }
        for _ in 0..u32::from_le_bytes(take(&mut input)?) {
            contents.handles.insert(u128::from_le_bytes(take(&mut input)?));
        }
        input.is_empty().then_some(contents)
    }
}

fn identity(log_id: &str, facts: &SegmentFacts) -> Vec<u8> {
    let mut out = MAGIC.to_vec();
    out.extend_from_slice(log_id.as_bytes());
    out.extend_from_slice(&facts.number.to_le_bytes());
    out.extend_from_slice(&facts.generation.to_le_bytes());
    out
}

fn take<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (bytes, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*bytes)
}

/// The requests that went wrong in a segment.
pub fn troubles(reader: &Reader, facts: &SegmentFacts) -> Result<Troubles, StorageError> {
    let mut troubles = Troubles::default();
    each_event(reader, facts, &|header| header.kinds & Troubles::KINDS != 0, &mut |view| troubles.note(view))?;
    Ok(troubles)
}

/// Visits the events of a segment's blocks that `wants` their header, block by block.
pub fn each_event(
    reader: &Reader,
    facts: &SegmentFacts,
    wants: &dyn Fn(&BlockHeader) -> bool,
    visit: &mut dyn FnMut(&EventView<'_>),
) -> Result<(), StorageError> {
    each_block(reader, facts, &mut |block| {
        if wants(&block.header) {
            for view in reader.load(block.position)?.events() {
                visit(&view.map_err(|error| reader.undecodable(&block.header, error))?);
            }
        }
        Ok(ControlFlow::Continue(()))
    })
}

type EachBlock<'a> = dyn FnMut(&BlockRef) -> Result<ControlFlow<()>, StorageError> + 'a;

/// Visits the blocks of a segment, headers only. What was written anew meanwhile is told as moved.
pub fn each_block(reader: &Reader, facts: &SegmentFacts, visit: &mut EachBlock<'_>) -> Result<(), StorageError> {
    for block in reader.blocks(facts.start)? {
        let block = block?;
        if block.position.segment != facts.number {
            break;
        }
        if block.position.generation != facts.generation {
            return Err(StorageError::Moved);
        }
        if visit(&block)?.is_break() {
            break;
        }
    }
    Ok(())
}

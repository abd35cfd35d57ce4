//! Reads a segment from front to back through one buffer, so that small blocks cost no call each.

use std::io;
use std::sync::Arc;

use super::block::{FIXED_BYTES, Found, StoredHeader, read_header};
use super::storage_io::StorageFile;

/// Read at a time, unless one block needs more.
const WINDOW_BYTES: usize = 64 * 1024;

pub(super) struct Window {
    file: Arc<dyn StorageFile>,
    /// Nothing at or after this offset is looked at.
    end: u64,
    start: u64,
    bytes: Vec<u8>,
}

/// What stands at an offset.
pub(super) enum Step {
    Block(StoredHeader),
    /// A zero length, or the end of what may be looked at.
    End,
    Damage(&'static str),
}

impl Window {
    pub fn new(file: Arc<dyn StorageFile>, end: u64) -> Self {
        Self { file, end, start: 0, bytes: Vec::new() }
    }

    /// The bytes from `offset` on: at least `wanted`, unless the file or the end comes first.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn at(&mut self, offset: u64, wanted: usize) -> io::Result<&[u8]> {
        let until = (offset + wanted as u64).min(self.end);
        let held = self.start..self.start + self.bytes.len() as u64;
        if offset < held.start || until > held.end {
            let readable = usize::try_from(self.end.saturating_sub(offset)).unwrap_or(usize::MAX);
            self.bytes.resize(wanted.max(WINDOW_BYTES).min(readable), 0);
            self.start = offset;
            let count = self.file.read_at(&mut self.bytes, offset)?;
            self.bytes.truncate(count);
        }
        let from = usize::try_from(offset - self.start).unwrap_or(usize::MAX).min(self.bytes.len());
        Ok(&self.bytes[from..])
    }

    /// The header of the block at `offset`. The content may lie beyond what was read.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn header(&mut self, offset: u64) -> io::Result<Step> {
        if offset >= self.end {
            return Ok(Step::End);
        }
        let mut wanted = FIXED_BYTES;
        loop {
            let bytes = self.at(offset, wanted)?;
            match read_header(bytes) {
                Found::Nothing => return Ok(Step::End),
                Found::Damage(what) => return Ok(Step::Damage(what)),
                Found::Needs(more) if wanted >= more => {
                    return Ok(Step::Damage("the segment ends inside a block's header"));
                }
                Found::Needs(more) => wanted = more,
                Found::Header(stored) if offset + stored.stored_bytes as u64 > self.end => {
                    return Ok(Step::Damage("the segment ends inside a block"));
                }
                Found::Header(stored) => return Ok(Step::Block(stored)),
            }
        }
    }

    /// Whether the content of the block at `offset` is what was written.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn content_is_whole(&mut self, offset: u64, stored: &StoredHeader) -> io::Result<bool> {
        let bytes = self.at(offset, stored.stored_bytes)?;
        Ok(bytes.get(stored.content_at..stored.stored_bytes).is_some_and(|content| stored.content_is_whole(content)))
    }
}

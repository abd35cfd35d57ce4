//! Writes a table: entries in, a file under its final name out, or nothing.

use std::fs::{File, OpenOptions};
use std::io::{BufWriter, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use crate::event::codec::put_varint;
use crate::index::leaf::{put_entry, shared};
use crate::index::table::filter;
use crate::index::table::format::{LEAF_BYTES_TARGET, Layout, Origin, SECTION_BYTES, write_footer};
use crate::index::wire::identity;

/// Appended to the name of a table until it is complete.
pub const UNFINISHED: &str = ".new";

pub struct TableWriter {
    out: BufWriter<File>,
    path: PathBuf,
    unfinished: PathBuf,
    leaf: Vec<u8>,
    last_key: Vec<u8>,
    fences: Vec<u8>,
    /// Fence of the leaf being filled.
    fence: Vec<u8>,
    leaves: u32,
    written: u64,
    ids: Vec<u64>,
    last_id: Vec<u8>,
    finished: bool,
}

impl TableWriter {
    pub fn create(path: &Path) -> std::io::Result<Self> {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(UNFINISHED);
        let unfinished = path.with_file_name(name);
        let file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&unfinished)?;
        Ok(Self {
            out: BufWriter::with_capacity(64 * 1024, file),
            path: path.to_owned(),
            unfinished,
            leaf: Vec::new(),
            last_key: Vec::new(),
            fences: Vec::new(),
            fence: Vec::new(),
            leaves: 0,
            written: 0,
            ids: Vec::new(),
            last_id: Vec::new(),
            finished: false,
        })
    }

    /// Keys come in rising order.
    pub fn push(&mut self, key: &[u8], value: &[u8]) -> std::io::Result<()> {
        if self.leaf.len() >= LEAF_BYTES_TARGET {
            self.end_leaf()?;
        }
        if self.leaf.is_empty() {
            // One byte more than is shared with the last key of the leaf before tells them apart.
            let telling = if self.leaves == 0 { 0 } else { shared(&self.last_key, key) + 1 };
            self.fence = key[..telling.min(key.len())].to_vec();
            self.last_key.clear();
        }
        put_entry(&mut self.leaf, &self.last_key, key, value);
        self.last_key.clear();
        self.last_key.extend_from_slice(key);
        if let Some(id) = identity(key)
            && id != self.last_id
        {
            self.ids.push(filter::hash(id));
            self.last_id.clear();
            self.last_id.extend_from_slice(id);
        }
        Ok(())
    }

    fn end_leaf(&mut self) -> std::io::Result<()> {
        if self.leaf.is_empty() {
            return Ok(());
        }
        let stored = self.put_checked_leaf()?;
        put_varint(&mut self.fences, stored);
        put_varint(&mut self.fences, self.fence.len() as u64);
        self.fences.extend_from_slice(&self.fence);
        self.leaves += 1;
        self.leaf.clear();
        Ok(())
    }

    fn put_checked_leaf(&mut self) -> std::io::Result<u64> {
        let checksum = crc32c::crc32c(&self.leaf).to_le_bytes();
        self.out.write_all(&self.leaf)?;
        self.out.write_all(&checksum)?;
        let stored = (self.leaf.len() + checksum.len()) as u64;
        self.written += stored;
        Ok(stored)
    }

    /// Ends the table, makes it durable and gives it its name. A crash may still lose the name, which
    /// costs making the table again.
    pub fn finish(mut self, origin: &Origin) -> std::io::Result<()> {
        self.end_leaf()?;
        let sections_at = self.written;
        let sections = filter::sections_for(self.ids.len());
        self.ids.sort_unstable_by_key(|hash| filter::section_of(*hash, sections));
        let mut rest = &self.ids[..];
        for number in 0..sections {
            let mut section = vec![0; SECTION_BYTES];
            let count = rest.partition_point(|hash| filter::section_of(*hash, sections) <= number);
            for hash in &rest[..count] {
                filter::insert(&mut section, *hash);
            }
            rest = &rest[count..];
            self.out.write_all(&section)?;
            self.out.write_all(&crc32c::crc32c(&section).to_le_bytes())?;
        }
        let layout = Layout {
            leaves: self.leaves,
            sections,
            sections_at,
            fences_bytes: u32::try_from(self.fences.len()).map_err(|_| std::io::ErrorKind::FileTooLarge)?,
            fences_checksum: crc32c::crc32c(&self.fences),
        };
        self.out.write_all(&self.fences)?;
        self.out.write_all(&write_footer(origin, &layout))?;
        self.out.flush()?;
        self.out.get_ref().sync_data()?;
        std::fs::rename(&self.unfinished, &self.path)?;
        self.finished = true;
        Ok(())
    }
}

impl Drop for TableWriter {
    fn drop(&mut self) {
        if !self.finished {
            // Should it stay behind, the next start removes it.
            let _ = std::fs::remove_file(&self.unfinished);
        }
    }
}

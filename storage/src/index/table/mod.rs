//! Tables: what the index knows of a part of one segment, as a file that never changes.
//!
//! Only the footer is read when a table is opened; the fences, which tell what is in which leaf, when
//! it is first asked something, and they stay in memory. Everything else is read when it is needed
//! and checked each time.

mod cache;
mod filter;
mod format;
#[cfg(test)]
mod tests;
mod write;

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

pub use cache::Cache;
use cache::Piece;
use format::{CHECKSUM_BYTES, FOOTER_BYTES, Layout, SECTION_BYTES, read_footer};
pub use format::{Origin, Tip};
pub use write::{TableWriter, UNFINISHED};

use crate::index::leaf::{Entry, Leaf};
use crate::index::merge::Entries;
use crate::index::wire::Taken;

/// Pieces of a table are numbered: leaves from 0, sections of its filter from here.
const SECTIONS_FROM: u32 = 1 << 31;

pub struct Table {
    pub origin: Origin,
    pub path: PathBuf,
    layout: Layout,
    fences: OnceLock<Fences>,
    cache: Arc<Cache>,
    number: u64,
}

/// What is in which leaf.
#[derive(Debug, Default)]
struct Fences {
    keys: Vec<u8>,
    /// End of each leaf's key in `keys`.
    key_ends: Vec<u32>,
    /// Where each leaf ends in the file.
    leaf_ends: Vec<u64>,
}

impl Table {
    /// # Errors
    /// Says what is wrong with the file.
    pub fn open(path: &Path, cache: &Arc<Cache>) -> Result<Self, String> {
        static OPENED: AtomicU64 = AtomicU64::new(0);
        let number = OPENED.fetch_add(1, Ordering::Relaxed);
        let file = File::open(path).map_err(|error| error.to_string())?;
        let bytes = file.metadata().map_err(|error| error.to_string())?.len();
        let footer_at = bytes.checked_sub(FOOTER_BYTES as u64).ok_or("it is too short")?;
        let mut footer = [0; FOOTER_BYTES];
        file.read_exact_at(&mut footer, footer_at).map_err(|error| error.to_string())?;
        let (origin, layout) = read_footer(&footer, bytes)?;
        let (path, cache) = (path.to_owned(), cache.clone());
        Ok(Self { origin, path, layout, fences: OnceLock::new(), cache, number })
    }

    /// Whether anything may be known of `id`. False is certain, true is not.
    pub fn may_hold(&self, id: &[u8]) -> bool {
        let hash = filter::hash(id);
        let number = filter::section_of(hash, self.layout.sections);
        // What cannot be read is found out by who looks closer.
        self.section(number).is_none_or(|section| filter::may_hold(&section, hash))
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Entry>, String> {
        let Some(number) = self.fences()?.holding(key) else { return Ok(None) };
        let leaf = self.leaf(number, true)?;
        let at = leaf.seek(key);
        Ok((at < leaf.len() && leaf.key(at) == key).then(|| Entry::of(&leaf, at)))
    }

    /// Entries from `from` up to and without `to`. `keep`: others may ask for the same soon.
    pub fn range<'a>(&'a self, from: &[u8], to: &[u8], backwards: bool, keep: bool) -> Entries<'a> {
        let fences = match self.fences() {
            Ok(fences) => fences,
            Err(error) => return Box::new(std::iter::once(Err(error))),
        };
        let first = fences.holding(from).unwrap_or(0);
        let last = fences.holding(to);
        let Some(last) = last.filter(|_| from < to) else { return Box::new(std::iter::empty()) };
        let (from, to) = (from.to_vec(), to.to_vec());
        let entries = move |number: u32| -> Entries<'a> {
            match self.leaf(number, keep) {
                Ok(leaf) => Box::new(within(&leaf, &from, &to, backwards).map(Ok)),
                Err(error) => Box::new(std::iter::once(Err(error))),
            }
        };
        if backwards {
            Box::new((first..=last).rev().flat_map(entries))
        } else {
            Box::new((first..=last).flat_map(entries))
        }
    }

    /// Nothing more will be asked; what is remembered of it can go.
    pub fn forget(&self) {
        self.cache.forget(self.number);
    }

    /// What its entries take on disk.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.layout.sections_at
    }

    /// Memory that the fences take, once they are read.
    #[must_use]
    pub fn fences_bytes(&self) -> usize {
        self.fences.get().map_or(0, |fences| {
            fences.keys.capacity() + fences.key_ends.capacity() * 4 + fences.leaf_ends.capacity() * 8
        })
    }

    fn fences(&self) -> Result<&Fences, String> {
        if let Some(fences) = self.fences.get() {
            return Ok(fences);
        }
        let mut bytes = vec![0; self.layout.fences_bytes as usize];
        self.read(&mut bytes, self.layout.fences_at())?;
        if crc32c::crc32c(&bytes) != self.layout.fences_checksum {
            return Err("its fences do not match their checksum".into());
        }
        let fences = Fences::decode(&bytes, &self.layout).ok_or("its fences do not decode")?;
        Ok(self.fences.get_or_init(|| fences))
    }

    fn leaf(&self, number: u32, keep: bool) -> Result<Arc<Leaf>, String> {
        let place = (self.number, number);
        if let Some(Piece::Leaf(leaf)) = self.cache.get(place) {
            return Ok(leaf);
        }
        let (start, end) = self.fences()?.extent(number).ok_or("it has no such leaf")?;
        let length = usize::try_from(end - start).map_err(|_| "a leaf is too long")?;
        let mut bytes = vec![0; length];
        self.read(&mut bytes, start)?;
        let content = checked(&bytes).ok_or("a leaf does not match its checksum")?;
        let leaf = Arc::new(Leaf::decode(content).ok_or("a leaf does not decode")?);
        if keep {
            self.cache.put(place, &Piece::Leaf(leaf.clone()));
        }
        Ok(leaf)
    }

    fn section(&self, number: u32) -> Option<Arc<Vec<u8>>> {
        let place = (self.number, SECTIONS_FROM + number);
        if let Some(Piece::Section(section)) = self.cache.get(place) {
            return Some(section);
        }
        let stored = SECTION_BYTES + CHECKSUM_BYTES;
        let mut bytes = vec![0; stored];
        self.read(&mut bytes, self.layout.sections_at + u64::from(number) * stored as u64).ok()?;
        let section = Arc::new(checked(&bytes)?.to_vec());
        self.cache.put(place, &Piece::Section(section.clone()));
        Some(section)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> Result<(), String> {
        let file = self.cache.file(self.number, &self.path).map_err(|error| error.to_string())?;
        file.read_exact_at(bytes, at).map_err(|error| error.to_string())
    }
}

/// Entries of a leaf from `from` up to and without `to`.
pub fn within(leaf: &Arc<Leaf>, from: &[u8], to: &[u8], backwards: bool) -> impl Iterator<Item = Entry> + use<> {
    let (mut next, mut end) = (leaf.seek(from), leaf.seek(to));
    let leaf = leaf.clone();
    std::iter::from_fn(move || {
        if next >= end {
            return None;
        }
        let at = if backwards {
            end -= 1;
            end
        } else {
            next += 1;
            next - 1
        };
        Some(Entry::of(&leaf, at))
    })
}

impl Fences {
    fn decode(bytes: &[u8], layout: &Layout) -> Option<Self> {
        let (mut fences, mut input, mut end) = (Self::default(), Taken(bytes), 0u64);
        while !input.is_empty() {
            end = end.checked_add(input.number().ok()?)?;
            let length = input.small::<usize>().ok()?;
            let (key, rest) = input.0.split_at_checked(length)?;
            input.0 = rest;
            fences.keys.extend_from_slice(key);
            fences.key_ends.push(u32::try_from(fences.keys.len()).ok()?);
            fences.leaf_ends.push(end);
        }
        let whole = fences.key_ends.len() == layout.leaves as usize && end == layout.sections_at;
        fences.keys.shrink_to_fit();
        fences.key_ends.shrink_to_fit();
        fences.leaf_ends.shrink_to_fit();
        whole.then_some(fences)
    }

    fn key(&self, leaf: usize) -> &[u8] {
        let start = leaf.checked_sub(1).map_or(0, |before| self.key_ends[before]);
        &self.keys[start as usize..self.key_ends[leaf] as usize]
    }

    /// The leaf in which `key` is, if it is anywhere; `None` when it lies before the first.
    fn holding(&self, key: &[u8]) -> Option<u32> {
        let (mut low, mut high) = (0, self.key_ends.len());
        while low < high {
            let middle = low + (high - low) / 2;
            if self.key(middle) <= key {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        u32::try_from(low.checked_sub(1)?).ok()
    }

    fn extent(&self, leaf: u32) -> Option<(u64, u64)> {
        let leaf = leaf as usize;
        let start = match leaf.checked_sub(1) {
            Some(before) => *self.leaf_ends.get(before)?,
            None => 0,
        };
        Some((start, *self.leaf_ends.get(leaf)?))
    }
}

/// What stands before a checksum that matches it.
fn checked(bytes: &[u8]) -> Option<&[u8]> {
    let (content, checksum) = bytes.split_last_chunk::<CHECKSUM_BYTES>()?;
    (crc32c::crc32c(content).to_le_bytes() == *checksum).then_some(content)
}

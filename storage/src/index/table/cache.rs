//! What all tables share: pieces of files read lately, and a few open files.
//!
//! Both are bounded whatever the number of tables, so memory and descriptors stay the same while the
//! log grows.

use std::collections::{HashMap, VecDeque};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use crate::index::leaf::Leaf;

/// Memory for pieces of tables, in bytes.
const PIECES_BYTES_MAX: usize = 8 * 1024 * 1024;
const FILES_OPEN_MAX: usize = 64;
/// Room that is needed to remember a piece at all.
const PIECE_OVERHEAD_BYTES: usize = 128;

/// A checked piece of a table.
#[derive(Debug, Clone)]
pub enum Piece {
    Leaf(Arc<Leaf>),
    Section(Arc<Vec<u8>>),
}

/// Number of a table in this process, and of the piece in it.
pub type Place = (u64, u32);

#[derive(Default)]
pub struct Cache {
    pieces: Mutex<Pieces>,
    files: Mutex<Files>,
}

#[derive(Default)]
struct Pieces {
    held: HashMap<Place, Held>,
    /// Next to go in front; those used meanwhile get a second turn.
    order: VecDeque<Place>,
    bytes: usize,
}

struct Held {
    piece: Piece,
    bytes: usize,
    used: bool,
}

#[derive(Default)]
struct Files {
    open: HashMap<u64, Arc<File>>,
    order: VecDeque<u64>,
}

impl Piece {
    fn bytes(&self) -> usize {
        let content = match self {
            Piece::Leaf(leaf) => leaf.bytes(),
            Piece::Section(bits) => bits.len(),
        };
        content + PIECE_OVERHEAD_BYTES
    }
}

impl Cache {
    pub fn get(&self, place: Place) -> Option<Piece> {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let held = pieces.held.get_mut(&place)?;
        held.used = true;
        Some(held.piece.clone())
    }

    pub fn put(&self, place: Place, piece: &Piece) {
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes = piece.bytes();
        if pieces.held.insert(place, Held { piece: piece.clone(), bytes, used: false }).is_none() {
            pieces.order.push_back(place);
            pieces.bytes += bytes;
        }
        while pieces.bytes > PIECES_BYTES_MAX && pieces.evict() {}
    }

    /// The file of a table, opened again when it was closed for another.
    pub fn file(&self, table: u64, path: &Path) -> std::io::Result<Arc<File>> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(file) = files.open.get(&table) {
            return Ok(file.clone());
        }
        let file = Arc::new(File::open(path)?);
        if files.open.len() >= FILES_OPEN_MAX
            && let Some(oldest) = files.order.pop_front()
        {
            files.open.remove(&oldest);
        }
        files.open.insert(table, file.clone());
        files.order.push_back(table);
        Ok(file)
    }

    /// Nothing more is asked of that table.
    pub fn forget(&self, table: u64) {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.open.remove(&table);
        files.order.retain(|other| *other != table);
        drop(files);
        let mut pieces = self.pieces.lock().unwrap_or_else(PoisonError::into_inner);
        let Pieces { held, order, bytes } = &mut *pieces;
        order.retain(|place| place.0 != table);
        held.retain(|place, held| {
            let other = place.0 != table;
            *bytes -= if other { 0 } else { held.bytes };
            other
        });
    }
}

impl Pieces {
    /// Lets go of one piece; false when there is none.
    fn evict(&mut self) -> bool {
        while let Some(place) = self.order.pop_front() {
            let Some(held) = self.held.get_mut(&place) else { continue };
            if std::mem::take(&mut held.used) {
                self.order.push_back(place);
                continue;
            }
            self.bytes -= held.bytes;
            self.held.remove(&place);
            return true;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_stays_within_its_bound_and_keeps_what_is_used() {
        let cache = Cache::default();
        let section = Piece::Section(Arc::new(vec![0; 4096]));
        cache.put((0, 0), &section);
        for number in 1..4000 {
            cache.put((1, number), &section);
            assert!(cache.get((0, 0)).is_some(), "at {number}");
        }
        assert!(cache.pieces.lock().expect("not poisoned").bytes <= PIECES_BYTES_MAX);
        assert!(cache.get((1, 1)).is_none() && cache.get((1, 3999)).is_some());
        cache.forget(1);
        assert_eq!(cache.pieces.lock().expect("not poisoned").bytes, 4096 + PIECE_OVERHEAD_BYTES);
    }
}

//! What lies in a log directory, by the names of the files.

use std::path::Path;

use super::format::segment_number;
use super::mark;
use super::segment::UNFINISHED;
use super::storage_io::StorageIo;
use crate::StorageError;

#[derive(Debug, Default)]
pub(super) struct Listing {
    /// Numbers and generations of the segments present, rising.
    pub segments: Vec<(u32, u16)>,
    pub has_mark: bool,
    /// Names of files whose creation was interrupted.
    pub unfinished: Vec<String>,
}

impl Listing {
    /// The highest generation of a segment.
    pub fn generation_of(&self, number: u32) -> Option<u16> {
        let behind = self.segments.partition_point(|(other, _)| *other <= number);
        let (found, generation) = *self.segments.get(behind.checked_sub(1)?)?;
        (found == number).then_some(generation)
    }

    /// Files of other names are nobody's business here and stay where they are.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn read(io: &dyn StorageIo, directory: &Path) -> Result<Self, StorageError> {
        let mut listing = Self::default();
        for name in io.list(directory).map_err(StorageError::io("read", directory))? {
            listing.segments.extend(segment_number(&name));
            listing.has_mark |= name == mark::FILE_NAME;
            let ours = |stem: &str| stem == mark::FILE_NAME || segment_number(stem).is_some();
            if name.strip_suffix(UNFINISHED).is_some_and(ours) {
                listing.unfinished.push(name);
            }
        }
        listing.segments.sort_unstable();
        listing.unfinished.sort_unstable();
        Ok(listing)
    }
}

//! What a reader in another process knows: the mark says how far the log goes, the directory which
//! generation of each segment holds.
//!
//! What must stay true: a writer may roll, write anew and remove segments at any moment, so what was
//! read in two steps is believed only when it fits together; when it does not after several looks it
//! is damage.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::Durable;
use super::directory::Listing;
use super::format::{SegmentHeader, segment_name};
use super::mark::{self, Mark};
use super::segments::{Held, SegmentSet};
use super::storage_io::{StorageFile, StorageIo};
use crate::StorageError;

/// Times that a mark is read again when a writer was changing it under the reader.
const MARK_READS_MAX: u32 = 5;
/// Times that the directory is looked at again when a writer was changing it under the reader.
const LOOKS_MAX: u32 = 5;

pub(super) struct Outside {
    io: Arc<dyn StorageIo>,
    directory: PathBuf,
    mark_path: PathBuf,
    mark_file: Arc<dyn StorageFile>,
    segments: Arc<SegmentSet>,
}

impl Outside {
    pub fn new(
        io: Arc<dyn StorageIo>,
        directory: &Path,
        mark_file: Arc<dyn StorageFile>,
        segments: Arc<SegmentSet>,
    ) -> Self {
        let mark_path = directory.join(mark::FILE_NAME);
        Self { io, directory: directory.to_owned(), mark_path, mark_file, segments }
    }

    /// # Errors
    /// When the mark cannot be read, or what it names is not there.
    pub fn durable(&self) -> Result<Durable, StorageError> {
        let mark = self.mark()?;
        let number = |held: Option<Held>| held.map(|held| held.number());
        let known = (number(self.segments.oldest()), number(self.segments.newest()));
        if known == (Some(mark.oldest_segment), Some(mark.durable.end.segment)) {
            return Ok(mark.durable);
        }
        Ok(self.look()?.durable)
    }

    fn mark(&self) -> Result<Mark, StorageError> {
        for _ in 0..MARK_READS_MAX {
            if let Some(mark) = Mark::read(&*self.mark_file, &self.mark_path)? {
                return Ok(mark);
            }
        }
        Err(self.damaged((0, 0), "the high-water mark is unreadable".into()))
    }

    /// Takes a new look at the directory; gives the mark that fits it.
    ///
    /// # Errors
    /// When something cannot be read, or what the mark names is not there.
    pub fn look(&self) -> Result<Mark, StorageError> {
        let (mut range, mut wrong) = ((0, 0), String::new());
        for _ in 0..LOOKS_MAX {
            let mark = self.mark()?;
            match self.survey(&mark)? {
                Ok(held) => {
                    self.segments.reset(held);
                    return Ok(mark);
                }
                Err(what) => (range, wrong) = ((mark.oldest_seq, mark.durable.last_seq), what),
            }
        }
        Err(self.damaged(range, wrong))
    }

    /// The segments from the mark's oldest to its newest; inside, why what is there does not fit it.
    fn survey(&self, mark: &Mark) -> Result<Result<Vec<Held>, String>, StorageError> {
        let listing = Listing::read(&*self.io, &self.directory)?;
        let newest = mark.durable.end.segment;
        let mut held: Vec<Held> = Vec::new();
        for number in mark.oldest_segment..=newest {
            let Some(generation) = listing.generation_of(number) else {
                return Ok(Err(format!("{} is missing", segment_name(number, 0))));
            };
            let name = segment_name(number, generation);
            let header = match self.header(number, generation) {
                Ok(Some(header)) if header.log_id == mark.log_id => header,
                Ok(_) => return Ok(Err(format!("{name} has no whole header of this log"))),
                Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                    return Ok(Err(format!("{name} is missing")));
                }
                Err(error) => return Err(error),
            };
            if let Some(before) = held.last_mut() {
                before.sealed = Some(before.header.sealed_by(&header));
            }
            held.push(Held { header, sealed: None });
        }
        match held.last() {
            None => Ok(Err("the high-water mark contradicts itself".into())),
            Some(last) if last.generation() > 0 => {
                Ok(Err(format!("{} was written anew before it was sealed", segment_name(last.number(), 0))))
            }
            Some(_) => Ok(Ok(held)),
        }
    }

    fn header(&self, number: u32, generation: u16) -> Result<Option<SegmentHeader>, StorageError> {
        if let Some(held) = self.segments.get(number).filter(|held| held.generation() == generation) {
            return Ok(Some(held.header));
        }
        let path = self.directory.join(segment_name(number, generation));
        let file = self.io.open_read_only(&path).map_err(StorageError::io("open", &path))?;
        SegmentHeader::read(&*file, number, generation, &path)
    }

    fn damaged(&self, (first_seq, last_seq): (u64, u64), what: String) -> StorageError {
        StorageError::Damaged { path: self.directory.clone(), first_seq, last_seq, what }
    }
}

//! Opening: proves that everything up to the mark is there, keeps what is whole behind it, and mends
//! the rest.
//!
//! What must stay true: a log that holds less than its mark is refused by sequence range; a missing
//! log is never taken for a new one; only bytes behind the mark are ever cut, and only after they
//! were copied aside; a crash during recovery leaves something that recovery can begin again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::create;
use super::directory::Listing;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark::{self, Mark};
use super::segment::Segment;
use super::storage_io::{StorageFile, StorageIo};
use super::tail::{CommitWalk, Walked, cut_tail};
use super::{Durable, Position};
use crate::StorageError;

/// A log that is ready to be appended to.
pub(super) struct Recovered {
    pub mark: Mark,
    pub mark_file: Arc<dyn StorageFile>,
    pub mark_path: PathBuf,
    pub segment: Segment,
    pub durable: Durable,
    pub epoch: u64,
    pub mended: Vec<Mended>,
}

/// Something that was not as an orderly close leaves it.
pub(super) enum Mended {
    TornTail { bytes_cut: u64, kept_as: String },
    LeftoverRemoved { name: String },
}

/// Where a walk over segments stands.
struct Reached {
    last_seq: u64,
    /// End of the last whole commit in the last segment walked.
    end: u64,
}

type SegmentFile = (SegmentHeader, Arc<dyn StorageFile>);

struct Recovery<'a> {
    io: &'a dyn StorageIo,
    directory: &'a Path,
    segment_bytes: u64,
    mark: Mark,
    files: Vec<SegmentFile>,
}

/// Opens the log in `directory`, which exists and is locked; makes a new one when there is none.
pub(super) fn recover(
    io: &dyn StorageIo,
    directory: &Path,
    segment_bytes: u64,
    now_micros: i64,
) -> Result<Recovered, StorageError> {
    let mut mended = Vec::new();
    let mut listing = Listing::read(io, directory)?;
    if create::was_interrupted(io, directory, &listing)? {
        create::undo(io, directory, &mut listing, &mut mended)?;
    }
    for name in std::mem::take(&mut listing.unfinished) {
        create::remove_leftover(io, directory, name, &mut mended)?;
    }
    if listing.segments.is_empty() && !listing.has_mark {
        create::create(io, directory, segment_bytes, now_micros)?;
        listing = Listing::read(io, directory)?;
    }
    let mark_path = directory.join(mark::FILE_NAME);
    let mark_file = if listing.has_mark {
        io.open(&mark_path).map_err(StorageError::io("open", &mark_path))?
    } else {
        return Err(without_mark(io, directory, &listing, "the high-water mark is missing"));
    };
    let Some(mark) = Mark::read(&*mark_file, &mark_path)? else {
        return Err(without_mark(io, directory, &listing, "the high-water mark is unreadable"));
    };
    let mut recovery = Recovery { io, directory, segment_bytes, mark, files: Vec::new() };
    recovery.check_segments(&listing)?;
    let epoch = recovery.files.iter().map(|(header, _)| header.epoch).fold(recovery.mark.epoch, u64::max) + 1;
    let (segment, last_seq) = recovery.check_contents(epoch, &mut mended)?;
    let end = Position { segment: segment.number, offset: segment.end as u32 };
    let Recovery { mark, .. } = recovery;
    Ok(Recovered { mark, mark_file, mark_path, segment, durable: Durable { last_seq, end }, epoch, mended })
}

/// The refusal of segments whose mark is gone; names what can still be read in them.
fn without_mark(io: &dyn StorageIo, directory: &Path, listing: &Listing, what: &str) -> StorageError {
    let header = |number: u32| open_segment(io, directory, number).ok().flatten();
    let first_seq = listing.segments.first().and_then(|first| header(*first)).map_or(0, |(h, _)| h.first_seq);
    let last = listing.segments.last().and_then(|last| header(*last));
    let last_seq = last.map_or(first_seq, |(header, file)| walk_all(&header, file).last_seq);
    StorageError::Damaged { path: directory.to_owned(), first_seq, last_seq, what: what.into() }
}

/// A segment's header and file; `None` when its header is not whole.
fn open_segment(io: &dyn StorageIo, directory: &Path, number: u32) -> Result<Option<SegmentFile>, StorageError> {
    let path = directory.join(segment_name(number));
    let file = io.open(&path).map_err(StorageError::io("open", &path))?;
    let mut bytes = [0; SEGMENT_HEADER_BYTES as usize];
    let count = file.read_at(&mut bytes, 0).map_err(StorageError::io("read", &path))?;
    let header = SegmentHeader::from_bytes(&bytes[..count], &path)?;
    Ok(header.filter(|header| header.number == number).map(|header| (header, file)))
}

/// As far as the segment is whole.
fn walk_all(header: &SegmentHeader, file: Arc<dyn StorageFile>) -> Reached {
    let mut reached = Reached { last_seq: header.first_seq.saturating_sub(1), end: u64::from(SEGMENT_HEADER_BYTES) };
    let Ok(length) = file.length() else { return reached };
    let mut walk = CommitWalk::new(file, header.first_seq, length);
    while let Ok(Walked::Commit { end, last_seq }) = walk.next_commit() {
        reached = Reached { last_seq, end };
    }
    reached
}

impl Recovery<'_> {
    fn damaged(&self, first_seq: u64, last_seq: u64, what: impl Into<String>) -> StorageError {
        // A range is named the right way round even when what was found contradicts itself.
        let last_seq = last_seq.max(first_seq);
        StorageError::Damaged { path: self.directory.to_owned(), first_seq, last_seq, what: what.into() }
    }

    /// Presence, headers, order and lengths of all segments: enough to notice one that is missing,
    /// shortened or of another log, without reading their events.
    fn check_segments(&mut self, listing: &Listing) -> Result<(), StorageError> {
        let (oldest, marked) = (self.mark.oldest_segment, self.mark.durable.end.segment);
        if oldest == 0 || oldest > marked {
            return Err(self.damaged(
                self.mark.oldest_seq,
                self.mark.durable.last_seq,
                "the high-water mark contradicts itself",
            ));
        }
        let newest = listing.segments.last().copied().unwrap_or(0).max(marked);
        for number in oldest..=newest {
            let found = if listing.segments.binary_search(&number).is_ok() {
                open_segment(self.io, self.directory, number)?
            } else {
                return Err(self.gone(listing, number, "is missing"));
            };
            let Some((header, file)) = found else {
                return Err(self.gone(listing, number, "has no whole header"));
            };
            if header.log_id != self.mark.log_id {
                return Err(self.gone(listing, number, "belongs to another log"));
            }
            self.check_joint(&header)?;
            self.files.push((header, file));
        }
        Ok(())
    }

    /// Whether `header` continues the last segment checked.
    fn check_joint(&self, header: &SegmentHeader) -> Result<(), StorageError> {
        let Some((before, file)) = self.files.last() else {
            if header.first_seq == self.mark.oldest_seq {
                return Ok(());
            }
            let last = header.first_seq.saturating_sub(1);
            return Err(self.damaged(self.mark.oldest_seq, last, "the oldest segment begins too late"));
        };
        let path = self.directory.join(segment_name(before.number));
        let length = file.length().map_err(StorageError::io("read", &path))?;
        if length != header.previous_bytes || header.first_seq < before.first_seq {
            let from = walk_all(before, file.clone()).last_seq + 1;
            let what = format!(
                "{} is {length} bytes long and was {} when it was sealed",
                segment_name(before.number),
                header.previous_bytes
            );
            return Err(self.damaged(from.min(header.first_seq), header.first_seq.saturating_sub(1), what));
        }
        Ok(())
    }

    /// The refusal of a segment that is not there, with the numbers that were in it.
    fn gone(&self, listing: &Listing, number: u32, how: &str) -> StorageError {
        let before = self.files.last().map(|(header, file)| walk_all(header, file.clone()).last_seq + 1);
        let after = listing.segments.iter().filter(|other| **other > number);
        let after = after.filter_map(|other| open_segment(self.io, self.directory, *other).ok().flatten());
        let after = after.map(|(header, _)| header.first_seq.saturating_sub(1)).next();
        let first_seq = before.unwrap_or(self.mark.oldest_seq);
        let last_seq = after.unwrap_or(self.mark.durable.last_seq);
        self.damaged(first_seq, last_seq, format!("{} {how}", segment_name(number)))
    }

    /// Reads the segment of the mark, and those after it, in full.
    fn check_contents(&self, epoch: u64, mended: &mut Vec<Mended>) -> Result<(Segment, u64), StorageError> {
        let marked = self.mark.durable.end;
        let last_index = self.files.len() - 1;
        let mut last_seq = 0;
        let first_index = (marked.segment - self.mark.oldest_segment) as usize;
        for (index, (header, file)) in self.files.iter().enumerate().skip(first_index) {
            let path = self.directory.join(segment_name(header.number));
            let length = file.length().map_err(StorageError::io("read", &path))?;
            let mut walk = CommitWalk::new(file.clone(), header.first_seq, length);
            let mut reached =
                Reached { last_seq: header.first_seq.saturating_sub(1), end: u64::from(SEGMENT_HEADER_BYTES) };
            if index == first_index {
                reached = self.walk_to_mark(&mut walk, &path, reached)?;
            } else if header.first_seq != last_seq + 1 {
                return Err(self.damaged(
                    last_seq + 1,
                    header.first_seq.saturating_sub(1),
                    "events between two segments are missing",
                ));
            }
            let kept_from = reached.end;
            reached = walk_tail(&mut walk, &path, reached)?;
            last_seq = reached.last_seq;
            if index < last_index {
                // The next segment was begun only after this one was complete and durable.
                if reached.end != length {
                    let next_seq = self.files[index + 1].0.first_seq;
                    return Err(self.damaged(
                        last_seq + 1,
                        next_seq.saturating_sub(1),
                        "a sealed segment is not whole",
                    ));
                }
                continue;
            }
            let mut segment = Segment {
                file: file.clone(),
                path,
                number: header.number,
                end: reached.end,
                allocated: length,
                bytes_max: self.segment_bytes,
            };
            settle_kept(&segment, kept_from)?;
            if let Some(cut) = cut_tail(self.io, self.directory, &mut segment, epoch)? {
                mended.push(cut);
            }
            return Ok((segment, last_seq));
        }
        Err(self.damaged(self.mark.oldest_seq, self.mark.durable.last_seq, "the segment of the mark is missing"))
    }

    /// Everything the mark promises must be whole, and must end exactly where the mark says.
    fn walk_to_mark(&self, walk: &mut CommitWalk, path: &Path, from: Reached) -> Result<Reached, StorageError> {
        let marked = &self.mark.durable;
        let mut reached = from;
        while reached.end < u64::from(marked.end.offset) {
            let what = match walk.next_commit().map_err(StorageError::io("read", path))? {
                Walked::Commit { end, last_seq } => {
                    reached = Reached { last_seq, end };
                    continue;
                }
                Walked::End => "the log ends before its high-water mark",
                Walked::Torn(what) => what,
            };
            return Err(self.damaged(reached.last_seq + 1, marked.last_seq, what));
        }
        if reached.end != u64::from(marked.end.offset) || reached.last_seq != marked.last_seq {
            return Err(self.damaged(reached.last_seq, marked.last_seq, "the log and its high-water mark disagree"));
        }
        Ok(reached)
    }
}

/// Whole commits behind the mark are kept: they may have been acknowledged.
fn walk_tail(walk: &mut CommitWalk, path: &Path, from: Reached) -> Result<Reached, StorageError> {
    let mut reached = from;
    while let Walked::Commit { end, last_seq } = walk.next_commit().map_err(StorageError::io("read", path))? {
        reached = Reached { last_seq, end };
    }
    Ok(reached)
}

/// Writes the commits kept behind the mark once more and syncs them. After a sync that failed, the
/// kernel may show bytes that the disk never got, and would not write them by itself any more.
fn settle_kept(segment: &Segment, from: u64) -> Result<(), StorageError> {
    if from == segment.end {
        return Ok(());
    }
    let mut bytes = vec![0; usize::try_from(segment.end - from).unwrap_or(usize::MAX)];
    let count = segment.file.read_at(&mut bytes, from).map_err(StorageError::io("read", &segment.path))?;
    segment.write(&bytes[..count], from)?;
    segment.sync()
}

//! Opening: proves that everything up to the mark is there, keeps what is whole behind it, and mends
//! the rest.
//!
//! What must stay true: a log that holds less than its mark is refused by sequence range; a missing
//! log is never taken for a new one; only bytes behind the mark are ever cut, and only after they
//! were copied aside; a crash during recovery leaves something that recovery can begin again.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::commit::{Commit, CommitWalk, Walked};
use super::create;
use super::directory::Listing;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark::{self, Mark};
use super::segment::Segment;
use super::segments::Held;
use super::storage_io::{StorageFile, StorageIo};
use super::tail::{self, cut_tail};
use super::{Durable, Position};
use crate::StorageError;

/// A log that is ready to be appended to.
pub(super) struct Recovered {
    pub mark: Mark,
    pub mark_file: Arc<dyn StorageFile>,
    pub mark_path: PathBuf,
    pub segment: Segment,
    pub segments: Vec<Held>,
    pub durable: Durable,
    /// The last event is a `log.sealed`.
    pub sealed: bool,
    /// When the last event was recorded; the segment was begun, where it holds none.
    pub recorded_micros: i64,
    pub epoch: u64,
    pub mended: Vec<Mended>,
}

impl Recovered {
    /// Whether the epoch before ended by an orderly close.
    pub fn was_clean(&self) -> bool {
        let ended = self.mark.clean || self.sealed || self.durable.last_seq == 0;
        ended && self.durable.last_seq == self.mark.durable.last_seq
    }
}

/// Something that was not as an orderly close leaves it.
pub(super) enum Mended {
    TornTail { bytes_cut: u64, kept_as: String },
    LeftoverRemoved { name: String },
}

/// Where a walk over segments stands.
#[derive(Clone, Copy)]
pub(super) struct Reached {
    last_seq: u64,
    /// End of the last whole commit in the last segment walked.
    end: u64,
    /// Chain hash there.
    pub chain: [u8; 32],
    /// When that commit was recorded.
    recorded_micros: i64,
    /// The event there is a `log.sealed`, as far as that was looked at.
    pub sealed: bool,
}

impl Reached {
    fn beginning(header: &SegmentHeader) -> Self {
        let last_seq = header.first_seq.saturating_sub(1);
        let end = u64::from(SEGMENT_HEADER_BYTES);
        Self { last_seq, end, chain: header.chain, recorded_micros: header.created_micros, sealed: false }
    }

    pub fn behind(commit: &Commit) -> Self {
        let (last_seq, end, chain) = (commit.last_seq, commit.end, commit.chain);
        Self { last_seq, end, chain, recorded_micros: commit.recorded_micros, sealed: false }
    }
}

/// A segment whose header is whole.
struct Found {
    header: SegmentHeader,
    file: Arc<dyn StorageFile>,
    length: u64,
}

struct Recovery<'a> {
    io: &'a dyn StorageIo,
    directory: &'a Path,
    segment_bytes: u64,
    mark: Mark,
    /// All segments that hold, oldest first.
    segments: Vec<Held>,
    /// Those from the segment of the mark on.
    unproven: Vec<Found>,
    /// Generations that no longer hold.
    leftovers: Vec<String>,
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
    let (segments, unproven, leftovers) = (Vec::new(), Vec::new(), Vec::new());
    let mut recovery = Recovery { io, directory, segment_bytes, mark, segments, unproven, leftovers };
    recovery.check_segments(&listing)?;
    let (segment, reached, epoch) = recovery.check_contents(&mut mended)?;
    // The process before may have died between a change of names and its sync: what it left is built
    // on from here, and so must not be undone by a power cut.
    io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
    recovery.remove_leftovers(&*mark_file, &mark_path, &mut mended)?;
    let end = Position { segment: segment.number, generation: 0, offset: segment.end as u32 };
    let durable = Durable { last_seq: reached.last_seq, end, chain: reached.chain };
    let (recorded_micros, sealed) = (reached.recorded_micros, reached.sealed);
    let Recovery { mark, segments, .. } = recovery;
    Ok(Recovered { mark, mark_file, mark_path, segment, segments, durable, sealed, recorded_micros, epoch, mended })
}

/// The refusal of segments whose mark is gone; names what can still be read in them.
fn without_mark(io: &dyn StorageIo, directory: &Path, listing: &Listing, what: &str) -> StorageError {
    let found = |name: Option<&(u32, u16)>| name.and_then(|name| open_segment(io, directory, *name).ok().flatten());
    let first_seq = found(listing.segments.first()).map_or(0, |first| first.header.first_seq);
    let last_seq = found(listing.segments.last()).map_or(first_seq, |last| walk_all(&last).last_seq);
    StorageError::Damaged { path: directory.to_owned(), first_seq, last_seq, what: what.into() }
}

/// `None` when the segment's header is not whole.
fn open_segment(
    io: &dyn StorageIo,
    directory: &Path,
    (number, generation): (u32, u16),
) -> Result<Option<Found>, StorageError> {
    let path = directory.join(segment_name(number, generation));
    let file = io.open(&path).map_err(StorageError::io("open", &path))?;
    let Some(header) = SegmentHeader::read(&*file, number, generation, &path)? else { return Ok(None) };
    let length = file.length().map_err(StorageError::io("read", &path))?;
    Ok(Some(Found { header, file, length }))
}

/// As far as the segment is whole.
fn walk_all(found: &Found) -> Reached {
    let mut reached = Reached::beginning(&found.header);
    let mut walk = CommitWalk::new(found.file.clone(), found.header.first_seq, found.length);
    while let Ok(Walked::Commit(commit)) = walk.next_commit() {
        reached = Reached::behind(&commit);
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
        let removed = listing.segments.iter().filter(|(number, _)| *number < self.mark.oldest_segment);
        self.leftovers = removed.map(|(number, generation)| segment_name(*number, *generation)).collect();
        let (oldest, marked) = (self.mark.oldest_segment, self.mark.durable.end.segment);
        if oldest == 0 || oldest > marked {
            return Err(self.damaged(
                self.mark.oldest_seq,
                self.mark.durable.last_seq,
                "the high-water mark contradicts itself",
            ));
        }
        let newest = listing.segments.last().map_or(marked, |(number, _)| marked.max(*number));
        let mut before: Option<Found> = None;
        for number in oldest..=newest {
            let found = match self.choose(listing, number)? {
                Ok(found) => found,
                Err(how) => return Err(self.gone(listing, before.as_ref(), number, how)),
            };
            self.check_joint(before.as_ref(), &found)?;
            if let Some(last) = self.segments.last_mut() {
                last.sealed = Some(last.header.sealed_by(&found.header));
            }
            self.segments.push(Held { header: found.header.clone(), sealed: None });
            if let Some(passed) = before.replace(found)
                && passed.header.number >= marked
            {
                self.unproven.push(passed);
            }
        }
        self.unproven.extend(before);
        Ok(())
    }

    /// The generation of a segment that holds: the highest that is whole. Inside, what is wrong with
    /// the highest when none is.
    fn choose(&mut self, listing: &Listing, number: u32) -> Result<Result<Found, &'static str>, StorageError> {
        let (mut wrong, mut chosen, mut others) = (None, None, Vec::new());
        for (_, generation) in listing.segments.iter().rev().filter(|(other, _)| *other == number) {
            if chosen.is_some() {
                others.push(*generation);
                continue;
            }
            let how = match open_segment(self.io, self.directory, (number, *generation))? {
                None => "has no whole header",
                Some(found) if found.header.log_id != self.mark.log_id => "belongs to another log",
                Some(found) if *generation > 0 && found.length != found.header.own_bytes => {
                    "is not as long as it was made"
                }
                Some(found) => {
                    chosen = Some(found);
                    continue;
                }
            };
            wrong = wrong.or(Some(how));
            others.push(*generation);
        }
        if chosen.is_some() {
            self.leftovers.extend(others.into_iter().map(|generation| segment_name(number, generation)));
        }
        Ok(chosen.ok_or(wrong.unwrap_or("is missing")))
    }

    /// Whether `next` continues the segment before it.
    fn check_joint(&self, before: Option<&Found>, next: &Found) -> Result<(), StorageError> {
        let header = &next.header;
        let Some(before) = before else {
            if header.first_seq == self.mark.oldest_seq {
                return Ok(());
            }
            let last = header.first_seq.saturating_sub(1);
            return Err(self.damaged(self.mark.oldest_seq, last, "the oldest segment begins too late"));
        };
        let sealed = before.header.sealed_by(header);
        if before.length == sealed.end
            && before.header.first_seq <= header.first_seq
            && sealed.last_seq.checked_add(1) == Some(header.first_seq)
        {
            return Ok(());
        }
        let from = walk_all(before).last_seq + 1;
        let what = format!(
            "{} is {} bytes long and was {} when it was sealed",
            segment_name(before.header.number, before.header.generation),
            before.length,
            sealed.end
        );
        Err(self.damaged(from.min(header.first_seq), header.first_seq.saturating_sub(1), what))
    }

    /// The refusal of a segment that is not there, with the numbers that were in it.
    fn gone(&self, listing: &Listing, before: Option<&Found>, number: u32, how: &str) -> StorageError {
        let behind = listing.segments.iter().filter(|(other, _)| *other > number);
        let mut behind = behind.filter_map(|name| open_segment(self.io, self.directory, *name).ok().flatten());
        let last_seq = behind.next().map_or(self.mark.durable.last_seq, |next| next.header.first_seq.saturating_sub(1));
        let first_seq = before.map_or(self.mark.oldest_seq, |before| walk_all(before).last_seq + 1);
        let generation = listing.generation_of(number).unwrap_or(0);
        self.damaged(first_seq, last_seq, format!("{} {how}", segment_name(number, generation)))
    }

    /// Reads the segment of the mark, and those after it, in full; gives the epoch that begins as well.
    fn check_contents(&self, mended: &mut Vec<Mended>) -> Result<(Segment, Reached, u64), StorageError> {
        let mut before: Option<Reached> = None;
        let mut epoch = self.segments.iter().map(|held| held.header.epoch).fold(self.mark.epoch, u64::max);
        let mut unproven = self.unproven.iter().peekable();
        while let Some(Found { header, file, length }) = unproven.next() {
            let path = self.directory.join(segment_name(header.number, header.generation));
            if header.generation > 0 {
                // One that is still being written, or that the mark lies in, is never written anew.
                let what = "a segment behind the high-water mark was written anew";
                return Err(self.damaged(header.first_seq, header.last_seq, what));
            }
            let mut walk = CommitWalk::new(file.clone(), header.first_seq, *length);
            let mut reached = Reached::beginning(header);
            match &before {
                None => reached = self.walk_to_mark(&mut walk, &path, reached)?,
                Some(before) if (before.last_seq, before.chain) == (reached.last_seq, reached.chain) => {
                    reached.sealed = before.sealed;
                }
                Some(before) => {
                    let last_seq = header.first_seq.saturating_sub(1);
                    return Err(self.damaged(before.last_seq + 1, last_seq, "events between two segments are missing"));
                }
            }
            let kept_from = reached.end;
            reached = tail::walk(&mut walk, &path, reached, &mut epoch)?;
            if let Some(next) = unproven.peek() {
                // The next segment was begun only after this one was complete and durable.
                if reached.end != *length {
                    let last_seq = next.header.first_seq.saturating_sub(1);
                    return Err(self.damaged(reached.last_seq + 1, last_seq, "a sealed segment is not whole"));
                }
                before = Some(reached);
                continue;
            }
            let (number, end, allocated, bytes_max) = (header.number, reached.end, *length, self.segment_bytes);
            let mut segment = Segment { file: file.clone(), path, number, end, allocated, bytes_max };
            settle_kept(&segment, kept_from)?;
            epoch += 1;
            if let Some(cut) = cut_tail(self.io, self.directory, &mut segment, epoch)? {
                mended.push(cut);
            }
            return Ok((segment, reached, epoch));
        }
        Err(self.damaged(self.mark.oldest_seq, self.mark.durable.last_seq, "the segment of the mark is missing"))
    }

    /// Everything the mark promises must be whole, and must end exactly where the mark says.
    fn walk_to_mark(&self, walk: &mut CommitWalk, path: &Path, from: Reached) -> Result<Reached, StorageError> {
        let marked = &self.mark.durable;
        let (mut reached, mut last) = (from, None);
        while reached.end < u64::from(marked.end.offset) {
            let what = match walk.next_commit().map_err(StorageError::io("read", path))? {
                Walked::Commit(commit) => {
                    reached = Reached::behind(&commit);
                    last = Some(commit);
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
        if reached.chain != marked.chain {
            let what = "the hash chain of the log and its high-water mark disagree";
            return Err(self.damaged(from.last_seq + 1, marked.last_seq, what));
        }
        if let Some(last) = last {
            reached.sealed = tail::ends(walk, &last).map_err(StorageError::io("read", path))?.sealed;
        }
        reached.sealed |= self.mark.clean;
        Ok(reached)
    }

    /// What no longer holds goes, once everything that does is proven and the mark that says so, which
    /// may have been read from memory only, is on stable storage. It is overwritten first, since it may
    /// hold events that were erased.
    fn remove_leftovers(
        &mut self,
        mark_file: &dyn StorageFile,
        mark_path: &Path,
        mended: &mut Vec<Mended>,
    ) -> Result<(), StorageError> {
        if self.leftovers.is_empty() {
            return Ok(());
        }
        self.mark.counter += 1;
        self.mark.write(mark_file).map_err(StorageError::io("write", mark_path))?;
        mark_file.sync_data().map_err(StorageError::io("sync", mark_path))?;
        for name in &self.leftovers {
            create::remove_leftover(self.io, self.directory, name.clone(), mended)?;
        }
        Ok(())
    }
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

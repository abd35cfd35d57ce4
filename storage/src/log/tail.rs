//! The end of a log as recovery finds it: whole commits behind the mark, which are kept, and behind the
//! last one perhaps a torn one, which is copied aside and cut off.
//!
//! What must stay true: what may have been acknowledged is kept; what follows an orderly end without an
//! opening was written by nobody who had the log, and is not.

use std::io;
use std::path::Path;

use super::commit::{Commit, CommitWalk, Item, Walked, in_order};
use super::recovery::{Mended, Reached};
use super::segment::Segment;
use super::storage_io::StorageIo;
use crate::StorageError;
use crate::event::catalog::LogOpened;
use crate::event::{EventView, Kind, Payload};

const COPY_BYTES: usize = 256 * 1024;

/// What a commit begins and ends with, and the last opening in it.
#[derive(Default)]
pub(super) struct Ends {
    opens: bool,
    pub sealed: bool,
    epoch: u64,
}

/// Looks into a commit whose kinds say that there is something to see.
pub(super) fn ends(walk: &mut CommitWalk, commit: &Commit) -> io::Result<Ends> {
    let of_interest = 1 << Kind::LogOpened.number() | 1 << Kind::LogSealed.number();
    if commit.kinds() & of_interest == 0 {
        return Ok(Ends::default());
    }
    let blocks = walk.unpack(commit)?.unwrap_or_default();
    let items = in_order(&blocks).unwrap_or_default();
    let is = |item: Option<&Item<'_>>, kind| item.and_then(Item::event).and_then(EventView::kind) == Some(kind);
    let opened = items.iter().filter_map(Item::event).filter_map(|event| LogOpened::take(event).ok());
    Ok(Ends {
        opens: is(items.first(), Kind::LogOpened),
        sealed: is(items.last(), Kind::LogSealed),
        epoch: opened.map(|opened| opened.epoch).fold(0, u64::max),
    })
}

/// Whole commits behind the mark are kept, as long as they continue the hash chain: they may have been
/// acknowledged. Raises `epoch` to the last one that was begun in them. Behind a seal there is an opening
/// or nothing of ours; with an opening it is what a mark put back from a copy does not know.
pub(super) fn walk(
    walk: &mut CommitWalk,
    path: &Path,
    from: Reached,
    epoch: &mut u64,
) -> Result<Reached, StorageError> {
    let mut reached = from;
    while let Walked::Commit(commit) = walk.next_chained(reached.chain).map_err(StorageError::io("read", path))? {
        let ends = ends(walk, &commit).map_err(StorageError::io("read", path))?;
        if reached.sealed && !ends.opens {
            break;
        }
        *epoch = ends.epoch.max(*epoch);
        reached = Reached::behind(&commit);
        reached.sealed = ends.sealed;
    }
    Ok(reached)
}

/// Cuts off what follows the segment's end, if anything but zeros does, after copying it aside.
pub(super) fn cut_tail(
    io: &dyn StorageIo,
    directory: &Path,
    segment: &mut Segment,
    epoch: u64,
) -> Result<Option<Mended>, StorageError> {
    let torn_until = last_used(segment)?;
    if torn_until <= segment.end {
        return Ok(None);
    }
    let name = copy_aside(io, directory, segment, torn_until, epoch)?;
    let bytes_cut = torn_until - segment.end;
    segment.cut_to_end()?;
    Ok(Some(Mended::TornTail { bytes_cut, kept_as: name }))
}

/// End of the last byte behind the segment's end that is not zero; the end itself when none is.
fn last_used(segment: &Segment) -> Result<u64, StorageError> {
    let (zeros, mut buffer) = (vec![0; COPY_BYTES], vec![0; COPY_BYTES]);
    let (mut offset, mut used) = (segment.end, segment.end);
    loop {
        let count = segment.file.read_at(&mut buffer, offset).map_err(StorageError::io("read", &segment.path))?;
        if count == 0 {
            return Ok(used);
        }
        // Nearly always all of it is zero, which one comparison tells.
        if buffer[..count] != zeros[..count]
            && let Some(position) = buffer[..count].iter().rposition(|byte| *byte != 0)
        {
            used = offset + position as u64 + 1;
        }
        offset += count as u64;
    }
}

fn copy_aside(
    io: &dyn StorageIo,
    directory: &Path,
    segment: &Segment,
    until: u64,
    epoch: u64,
) -> Result<String, StorageError> {
    let stem = format!("torn-{epoch}-{}", segment.end);
    let mut name = format!("{stem}.bin");
    let mut attempt = 1;
    // A recovery that was itself cut short has left its copy; both are kept.
    let file = loop {
        match io.create(&directory.join(&name)) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                attempt += 1;
                name = format!("{stem}-{attempt}.bin");
            }
            outcome => break outcome.map_err(StorageError::io("create", directory.join(&name)))?,
        }
    };
    let path = directory.join(&name);
    let mut buffer = vec![0; COPY_BYTES];
    let mut offset = segment.end;
    while offset < until {
        let wanted = usize::try_from(until - offset).unwrap_or(COPY_BYTES).min(COPY_BYTES);
        let count = segment.file.read_at(&mut buffer[..wanted], offset);
        let count = count.map_err(StorageError::io("read", &segment.path))?;
        if count == 0 {
            break;
        }
        file.write_at(&buffer[..count], offset - segment.end).map_err(StorageError::io("write", &path))?;
        offset += count as u64;
    }
    file.sync_all().map_err(StorageError::io("sync", &path))?;
    io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
    Ok(name)
}

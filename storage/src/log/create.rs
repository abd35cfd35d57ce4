//! Making a new log, and starting over when that was interrupted.
//!
//! What must stay true: the mark gets its name last. So segments without a mark mean either a
//! creation that never ended, which holds no event and has left the unfinished mark behind, or
//! damage; and a mark without segments always means damage.

use std::path::Path;

use super::directory::Listing;
use super::format::{LOG_ID_BYTES, SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark::{self, Mark};
use super::recovery::Mended;
use super::segment::{Segment, UNFINISHED, overwrite};
use super::storage_io::StorageIo;
use super::{Durable, Position, chain};
use crate::StorageError;
use crate::ids::random_suffix;

const FIRST_SEGMENT: u32 = 1;
const FIRST_SEQ: u64 = 1;

/// Makes an empty log in `directory`.
pub(super) fn create(
    io: &dyn StorageIo,
    directory: &Path,
    segment_bytes: u64,
    now_micros: i64,
) -> Result<(), StorageError> {
    let mut log_id = [0; LOG_ID_BYTES];
    log_id.copy_from_slice(random_suffix(LOG_ID_BYTES).as_bytes());
    let end = Position::start_of(FIRST_SEGMENT, 0);
    let chain = chain::start(log_id);
    let mark = Mark {
        counter: 1,
        clean: true,
        epoch: 0,
        durable: Durable { last_seq: FIRST_SEQ - 1, end, chain },
        oldest_segment: FIRST_SEGMENT,
        oldest_seq: FIRST_SEQ,
        log_id,
    };
    let path = directory.join(mark::FILE_NAME);
    let unfinished = directory.join(mark::FILE_NAME.to_owned() + UNFINISHED);
    let file = io.create(&unfinished).map_err(StorageError::io("create", &unfinished))?;
    file.allocate(0, mark::FILE_BYTES as u64).map_err(StorageError::io("write", &unfinished))?;
    mark.write(&*file).map_err(StorageError::io("write", &unfinished))?;
    file.sync_all().map_err(StorageError::io("sync", &unfinished))?;
    io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
    let header = SegmentHeader {
        number: FIRST_SEGMENT,
        log_id,
        epoch: 0,
        first_seq: FIRST_SEQ,
        created_micros: now_micros,
        previous_bytes: 0,
        chain,
        generation: 0,
        own_bytes: 0,
        last_seq: 0,
    };
    Segment::create(io, directory, &header, segment_bytes)?;
    io.rename(&unfinished, &path).map_err(StorageError::io("rename", &unfinished))?;
    io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
    if let Some(parent) = directory.parent().filter(|parent| !parent.as_os_str().is_empty()) {
        io.sync_directory(parent).map_err(StorageError::io("sync", parent))?;
    }
    Ok(())
}

/// Whether what lies here is a creation that never ended, and holds no event.
pub(super) fn was_interrupted(io: &dyn StorageIo, directory: &Path, listing: &Listing) -> Result<bool, StorageError> {
    let unfinished_mark = mark::FILE_NAME.to_owned() + UNFINISHED;
    if listing.has_mark || !listing.unfinished.contains(&unfinished_mark) {
        return Ok(false);
    }
    match listing.segments[..] {
        [] => Ok(true),
        [(FIRST_SEGMENT, 0)] => {
            let path = directory.join(segment_name(FIRST_SEGMENT, 0));
            let file = io.open(&path).map_err(StorageError::io("open", &path))?;
            let mut first_block = [0; 4];
            let count = file.read_at(&mut first_block, u64::from(SEGMENT_HEADER_BYTES));
            Ok(first_block[..count.map_err(StorageError::io("read", &path))?].iter().all(|byte| *byte == 0))
        }
        _ => Ok(false),
    }
}

/// Removes what an interrupted creation left.
pub(super) fn undo(
    io: &dyn StorageIo,
    directory: &Path,
    listing: &mut Listing,
    mended: &mut Vec<Mended>,
) -> Result<(), StorageError> {
    for (number, generation) in std::mem::take(&mut listing.segments) {
        remove_leftover(io, directory, segment_name(number, generation), mended)?;
    }
    // The unfinished mark, which tells what this is, goes after them, also when the power does.
    io.sync_directory(directory).map_err(StorageError::io("sync", directory))
}

pub(super) fn remove_leftover(
    io: &dyn StorageIo,
    directory: &Path,
    name: String,
    mended: &mut Vec<Mended>,
) -> Result<(), StorageError> {
    let path = directory.join(&name);
    // It may hold a copy of events that were erased since.
    overwrite(io, &path)?;
    io.remove(&path).map_err(StorageError::io("remove", &path))?;
    mended.push(Mended::LeftoverRemoved { name });
    Ok(())
}

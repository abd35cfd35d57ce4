//! Directories of ours: for this user alone, and durable once they are said to be.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::Path;

use crate::StorageError;

/// Makes `directory`, and what is missing above it, for this user alone; one that is there stays as it is.
///
/// # Errors
/// When the operating system refuses.
pub fn make_private(directory: &Path) -> Result<(), StorageError> {
    let made = DirBuilder::new().recursive(true).mode(0o700).create(directory);
    made.map_err(StorageError::io("create", directory))
}

/// Makes durable which names `directory` holds: those made, given or removed before this.
///
/// # Errors
/// When the operating system refuses.
pub fn sync(directory: &Path) -> Result<(), StorageError> {
    File::open(directory).and_then(|file| file.sync_all()).map_err(StorageError::io("sync", directory))
}

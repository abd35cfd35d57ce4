//! One process owns a log directory.
//!
//! The lock is the kernel's (it ends with the process, however that ends), so a stale file is no
//! obstacle; the process id inside is only for the message that a second opener gets.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::StorageError;
use crate::regular;

const FILE_NAME: &str = "lock";

/// Takes the lock of `directory`, to be held for as long as the file is kept.
///
/// # Errors
/// `StorageError::Locked` at once when another has it.
pub(super) fn take(directory: &Path) -> Result<File, StorageError> {
    let path = directory.join(FILE_NAME);
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = regular::open(&mut options, &path).map_err(StorageError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let mut text = String::new();
            // A holder that has not written its id yet is still a holder.
            let _ = file.take(32).read_to_string(&mut text);
            return Err(StorageError::Locked { path: directory.to_owned(), holder: text.trim().parse().ok() });
        }
        Err(TryLockError::Error(source)) => return Err(StorageError::Io { action: "lock", path, source }),
    }
    // A full disk may have no room for the id, which only serves a message.
    let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
    Ok(file)
}

//! One process owns a log directory.
//!
//! The lock is the kernel's (it ends with the process, however that ends), so a stale file is no
//! obstacle. The directory itself is locked: whoever removes that has removed the log, while a file of
//! ours can be removed by itself and made again, and a second opener would lock the new one. The file is
//! locked too, for file systems that lock no directories; the process id inside is only for the message
//! that a second opener gets.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use crate::StorageError;
use crate::regular;

const FILE_NAME: &str = "lock";

/// Held for as long as it is kept.
pub(super) struct Lock {
    _directory: Option<File>,
    _file: File,
}

/// Takes the lock of `directory`.
///
/// # Errors
/// `StorageError::Locked` at once when another has it.
pub(super) fn take(directory: &Path) -> Result<Lock, StorageError> {
    let path = directory.join(FILE_NAME);
    let itself = File::open(directory).map_err(StorageError::io("open", directory))?;
    let itself = match itself.try_lock() {
        Ok(()) => Some(itself),
        Err(TryLockError::WouldBlock) => return Err(locked(directory, regular::read(&path).ok())),
        // The file has to do.
        Err(TryLockError::Error(_)) => None,
    };
    let mut options = OpenOptions::new();
    options.read(true).write(true).create(true).truncate(false).mode(0o600);
    let mut file = regular::open(&mut options, &path).map_err(StorageError::io("open", &path))?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(locked(directory, Some(file))),
        Err(TryLockError::Error(source)) => return Err(StorageError::Io { action: "lock", path, source }),
    }
    // A full disk may have no room for the id, which only serves a message.
    let _ = file.set_len(0).and_then(|()| file.write_all(std::process::id().to_string().as_bytes()));
    Ok(Lock { _directory: itself, _file: file })
}

fn locked(directory: &Path, file: Option<File>) -> StorageError {
    let mut text = String::new();
    // A holder that has not written its id yet is still a holder.
    let _ = file.map(|file| file.take(32).read_to_string(&mut text));
    StorageError::Locked { path: directory.to_owned(), holder: text.trim().parse().ok() }
}

//! Overwriting what must not be found again.
//!
//! On a file system that writes in place the zeros land where the bytes were. One that copies on
//! write, and a flash disk below any of them, keeps older copies for a while: no program can reach those.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use crate::StorageError;

/// Written at once; a sync follows each, so that other writers of the disk wait for little.
const STEP_BYTES: usize = 1024 * 1024;

/// Overwrites the file at `path` with zeros, durably, and removes it. What is no regular file, or has
/// another name too, is only removed; what is not there is fine.
///
/// # Errors
/// What the operating system refuses; the file may then still be there, in part zeros.
pub(crate) fn shred(path: &Path) -> Result<(), StorageError> {
    let mut options = OpenOptions::new();
    options.write(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    match options.open(path) {
        Ok(file) => overwrite(&file).map_err(StorageError::io("overwrite", path))?,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        // A link or a pipe: nothing of ours lies behind it.
        Err(error) if matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO)) => {}
        Err(error) => return Err(StorageError::io("open", path)(error)),
    }
    std::fs::remove_file(path).map_err(StorageError::io("remove", path))
}

fn overwrite(file: &File) -> io::Result<()> {
    let facts = file.metadata()?;
    if !facts.is_file() || facts.nlink() != 1 {
        return Ok(());
    }
    let zeros = vec![0; STEP_BYTES];
    let mut at = 0;
    while at < facts.len() {
        let step = zeros.len().min(usize::try_from(facts.len() - at).unwrap_or(usize::MAX));
        file.write_all_at(&zeros[..step], at)?;
        file.sync_data()?;
        at += step as u64;
    }
    Ok(())
}

/// Shreds every file in `directory` and below, and removes the directories; not there is fine.
///
/// # Errors
/// As [`shred`].
pub(crate) fn shred_directory(directory: &Path) -> Result<(), StorageError> {
    let entries = match std::fs::read_dir(directory) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        entries => entries.map_err(StorageError::io("read", directory))?,
    };
    for entry in entries {
        let entry = entry.map_err(StorageError::io("read", directory))?;
        let kind = entry.file_type().map_err(StorageError::io("read", entry.path()))?;
        if kind.is_dir() { shred_directory(&entry.path())? } else { shred(&entry.path())? }
    }
    std::fs::remove_dir(directory).map_err(StorageError::io("remove", directory))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bytes_themselves_are_overwritten() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = directory.path().join("a");
        std::fs::write(&path, vec![7; STEP_BYTES + 5]).expect("it is written");
        // What is open stays readable after its name is gone: these are the bytes on the disk.
        let open = File::open(&path).expect("it is there");
        shred(&path).expect("it goes");
        assert!(!path.exists());
        let mut bytes = vec![1; STEP_BYTES + 5];
        open.read_exact_at(&mut bytes, 0).expect("its length is as before");
        assert!(bytes.iter().all(|byte| *byte == 0));
        shred(&path).expect("what is not there is fine");
    }

    #[test]
    fn what_lies_behind_links_is_left_alone() {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let (ours, other) = (directory.path().join("ours"), directory.path().join("other"));
        std::fs::create_dir(&ours).expect("a directory");
        std::fs::write(&other, b"other").expect("it is written");
        std::os::unix::fs::symlink(&other, ours.join("soft")).expect("it is linked");
        std::fs::hard_link(&other, ours.join("hard")).expect("it is linked");
        std::os::unix::fs::symlink(directory.path(), ours.join("up")).expect("it is linked");
        shred_directory(&ours).expect("all goes");
        assert!(!ours.exists());
        assert_eq!(std::fs::read(&other).expect("it is there"), b"other");
    }
}

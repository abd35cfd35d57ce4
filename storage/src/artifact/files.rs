//! The few things the artifact store does with files, with care for links, kinds and durability.

use std::fs::{File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::time::SystemTime;

use sha2::{Digest, Sha256};

use crate::StorageError;
use crate::directory;
pub(super) use crate::regular::is_at;
use crate::shred::shred;

const CHUNK_BYTES: usize = 256 * 1024;

/// Makes `directory` for its owner alone, durably, unless it is there. A link is no directory.
pub(super) fn make_directory(directory: &Path) -> Result<(), StorageError> {
    match std::fs::symlink_metadata(directory) {
        Ok(found) if found.is_dir() => return Ok(()),
        Ok(_) => return Err(not_ours("open", directory)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(StorageError::io("open", directory)(error)),
    }
    directory::make_private(directory)?;
    directory::sync(parent(directory))
}

pub(super) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Overwrites and removes the files in `directory`; what is no file stays.
pub(super) fn shred_files(directory: &Path) -> Result<(), StorageError> {
    for entry in std::fs::read_dir(directory).map_err(StorageError::io("read", directory))? {
        let entry = entry.map_err(StorageError::io("read", directory))?;
        if entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
            shred(&entry.path())?;
        }
    }
    Ok(())
}

/// Sizes of all files one level below `directory`, leaving out the directory called `except`.
pub(super) fn bytes_below(directory: &Path, except: &str) -> Result<u64, StorageError> {
    let mut bytes = 0;
    for shard in std::fs::read_dir(directory).map_err(StorageError::io("read", directory))? {
        let shard = shard.map_err(StorageError::io("read", directory))?;
        if shard.file_name() == except || !shard.file_type().is_ok_and(|kind| kind.is_dir()) {
            continue;
        }
        for file in std::fs::read_dir(shard.path()).map_err(StorageError::io("read", shard.path()))? {
            let file = file.map_err(StorageError::io("read", shard.path()))?;
            bytes += file.metadata().map(|found| if found.is_file() { found.len() } else { 0 }).unwrap_or(0);
        }
    }
    Ok(bytes)
}

/// Names of the directories in `directory`.
pub(super) fn directories(directory: &Path) -> Result<Vec<String>, StorageError> {
    let mut names = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(StorageError::io("read", directory))? {
        let entry = entry.map_err(StorageError::io("read", directory))?;
        if let (true, Ok(name)) = (entry.file_type().is_ok_and(|kind| kind.is_dir()), entry.file_name().into_string()) {
            names.push(name);
        }
    }
    names.sort_unstable();
    Ok(names)
}

/// Name, length and time of last change of each regular file in `directory`.
pub(super) fn regular_files(directory: &Path) -> Result<Vec<(String, u64, SystemTime)>, StorageError> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(StorageError::io("read", directory))? {
        let entry = entry.map_err(StorageError::io("read", directory))?;
        // Gone since it was listed, or of a name that is none of ours.
        let (Ok(facts), Ok(name)) = (entry.metadata(), entry.file_name().into_string()) else { continue };
        if facts.is_file() {
            found.push((name, facts.len(), facts.modified().map_err(StorageError::io("read", entry.path()))?));
        }
    }
    Ok(found)
}

pub(super) fn modified(file: &File, path: &Path) -> Result<SystemTime, StorageError> {
    file.metadata().and_then(|facts| facts.modified()).map_err(StorageError::io("read", path))
}

pub(super) fn create(path: &Path) -> Result<File, StorageError> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(0o600);
    options.open(path).map_err(StorageError::io("create", path))
}

/// Opens a regular file for reading: no link in the last two places of its path, no pipe, no device.
pub(super) fn open_regular(path: &Path) -> Result<File, StorageError> {
    if std::fs::symlink_metadata(parent(path)).map_err(StorageError::io("open", path))?.is_symlink() {
        return Err(not_ours("open", path));
    }
    let mut options = OpenOptions::new();
    // Without waiting: a pipe in a file's place must not hold up whoever opens it.
    options.read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK);
    let file = options.open(path).map_err(StorageError::io("open", path))?;
    if file.metadata().map_err(StorageError::io("open", path))?.is_file() {
        return Ok(file);
    }
    Err(not_ours("open", path))
}

fn not_ours(action: &'static str, path: &Path) -> StorageError {
    let source = io::Error::new(io::ErrorKind::InvalidInput, "a link, or not what should be there");
    StorageError::Io { action, path: path.to_owned(), source }
}

pub(super) fn length(file: &File, path: &Path) -> Result<u64, StorageError> {
    Ok(file.metadata().map_err(StorageError::io("read", path))?.len())
}

/// Whether nobody can reach the file's bytes by another name.
pub(super) fn has_one_name(file: &File, path: &Path) -> Result<bool, StorageError> {
    Ok(file.metadata().map_err(StorageError::io("read", path))?.nlink() == 1)
}

pub(super) fn make_private(file: &File, path: &Path) -> Result<(), StorageError> {
    file.set_permissions(Permissions::from_mode(0o600)).map_err(StorageError::io("protect", path))
}

/// Moves `from` to `to`; `false` when they lie on different file systems.
pub(super) fn moved(from: &Path, to: &Path) -> Result<bool, StorageError> {
    match std::fs::rename(from, to) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::CrossesDevices => Ok(false),
        Err(error) => Err(StorageError::io("move", from)(error)),
    }
}

/// Length and SHA-256 of a file that is `bytes_max` long at most.
pub(super) fn hash(file: &File, path: &Path, bytes_max: u64) -> Result<(u64, Vec<u8>), StorageError> {
    read_through(file, path, bytes_max, &mut |_, _| Ok(()))
}

/// Copies all of `from` and hashes it on the way.
pub(super) fn copy(
    from: &File,
    from_path: &Path,
    to: &File,
    to_path: &Path,
    bytes_max: u64,
) -> Result<(u64, Vec<u8>), StorageError> {
    let mut write = |chunk: &[u8], at: u64| to.write_all_at(chunk, at).map_err(StorageError::io("write", to_path));
    read_through(from, from_path, bytes_max, &mut write)
}

/// Is given each chunk and where it begins.
type EachChunk<'a> = dyn FnMut(&[u8], u64) -> Result<(), StorageError> + 'a;

fn read_through(
    file: &File,
    path: &Path,
    bytes_max: u64,
    each: &mut EachChunk<'_>,
) -> Result<(u64, Vec<u8>), StorageError> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; CHUNK_BYTES];
    let mut at = 0;
    loop {
        let count = match file.read_at(&mut buffer, at) {
            Ok(0) => return Ok((at, hasher.finalize().to_vec())),
            Ok(count) => count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(StorageError::io("read", path)(error)),
        };
        // It grew since its length was taken, past the room reserved for it.
        if at + count as u64 > bytes_max {
            return Err(StorageError::Limit { name: "bytes of a file while it is kept", limit: bytes_max });
        }
        each(&buffer[..count], at)?;
        hasher.update(&buffer[..count]);
        at += count as u64;
    }
}

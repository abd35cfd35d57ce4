//! A file that exists whole or not at all.
//!
//! What must stay true: bytes go to a hidden temporary name in the same directory, are synced, and
//! only then get the final name, followed by a sync of the directory. So a file and its manifest are
//! both whole before the first of them can be seen, and a full disk is met while nothing is at stake. The temporary file is locked
//! while its writer lives, so that the next export to the same name can tell a leftover of a killed
//! process from the work of a living one, and removes only the leftover. Nothing but a regular file is
//! ever replaced.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use storage::ids::random_suffix;

use super::Destination;
use crate::export::ExportError;
use crate::manifest;

/// Bytes gathered before they are given to the operating system.
const BUFFER_BYTES: usize = 256 * 1024;
/// End of every temporary name.
const TEMPORARY_SUFFIX: &str = ".part";
/// Characters that make a temporary name unique.
const TEMPORARY_RANDOM_LENGTH: usize = 12;

/// Longest name of a file on Linux's file systems (`NAME_MAX` of limits.h), in bytes.
const NAME_BYTES_MAX: usize = 255;
/// Longest name of an export: its manifest under way has two points and more around it.
const EXPORT_NAME_BYTES_MAX: usize =
    NAME_BYTES_MAX - manifest::SUFFIX.len() - 2 - TEMPORARY_RANDOM_LENGTH - TEMPORARY_SUFFIX.len();

/// A file under way; dropped before `publish`, it is removed.
pub(super) struct FilePlace {
    out: BufWriter<File>,
    overwrite: bool,
    target: PathBuf,
    temporary: PathBuf,
    published: bool,
}

impl FilePlace {
    pub(super) fn create(target: &Path, overwrite: bool) -> Result<Self, ExportError> {
        let name = target
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| ExportError::Target { path: target.to_owned() })?;
        is_free(target, overwrite)?;
        let directory = directory_of(target);
        remove_leftovers(directory, name);
        loop {
            let random = random_suffix(TEMPORARY_RANDOM_LENGTH);
            let temporary = directory.join(format!(".{name}.{random}{TEMPORARY_SUFFIX}"));
            let file = OpenOptions::new()
                .write(true)
                .create_new(true)
                .mode(0o600)
                .open(&temporary)
                .map_err(io_error("create", &temporary))?;
            let locked = match file.try_lock() {
                Err(TryLockError::Error(error)) => return Err(io_error("lock", &temporary)(error)),
                locked => locked.is_ok(),
            };
            // Before it was locked another export may have taken it for a leftover.
            if locked && file.metadata().map_err(io_error("look at", &temporary))?.nlink() > 0 {
                let out = BufWriter::with_capacity(BUFFER_BYTES, file);
                return Ok(Self { out, overwrite, target: target.to_owned(), temporary, published: false });
            }
        }
    }

    /// Syncs the bytes under the temporary name: from here on the disk has room for all of them.
    pub(super) fn prepare(&mut self) -> Result<(), ExportError> {
        self.out.flush().map_err(|error| self.error("write", error))?;
        self.out.get_ref().sync_all().map_err(|error| self.error("sync", error))
    }

    /// Gives the synced bytes the final name, syncs the directory.
    pub(super) fn publish(&mut self) -> Result<(), ExportError> {
        self.take_name()?;
        self.published = true;
        let directory = directory_of(&self.target);
        let synced = File::open(directory).and_then(|opened| opened.sync_all());
        if let Err(error) = synced {
            // The name may not survive a power cut, so the export has not happened.
            let _ = fs::remove_file(&self.target);
            return Err(io_error("sync", directory)(error));
        }
        Ok(())
    }

    pub(super) fn error(&self, action: &'static str, source: io::Error) -> ExportError {
        io_error(action, &self.temporary)(source)
    }

    fn take_name(&self) -> Result<(), ExportError> {
        if !self.overwrite {
            // A hard link fails when the name is taken, which a rename would not.
            match fs::hard_link(&self.temporary, &self.target) {
                Ok(()) => {
                    // Should the second name stay, the next export to this target removes it.
                    let _ = fs::remove_file(&self.temporary);
                    return Ok(());
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    return Err(ExportError::Exists { path: self.target.clone() });
                }
                // Some filesystems have no hard links; there the check and the rename are two steps.
                Err(_) if fs::symlink_metadata(&self.target).is_ok() => {
                    return Err(ExportError::Exists { path: self.target.clone() });
                }
                Err(_) => {}
            }
        }
        is_free(&self.target, self.overwrite)?;
        // A manifest that is there belongs to the file that goes now.
        let manifest = Destination::File(self.target.clone()).with_suffix(manifest::SUFFIX);
        if let (true, Destination::File(manifest)) = (self.overwrite, manifest) {
            match fs::remove_file(&manifest) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(io_error("remove", &manifest)(error));
                }
                _ => {}
            }
        }
        fs::rename(&self.temporary, &self.target).map_err(io_error("rename", &self.temporary))
    }
}

/// Refuses at once what would fail with the work done.
pub(super) fn is_nameable(path: &Path) -> Result<(), ExportError> {
    match path.file_name() {
        Some(name) if name.len() > EXPORT_NAME_BYTES_MAX => {
            Err(ExportError::NameTooLong { path: path.to_owned(), bytes_max: EXPORT_NAME_BYTES_MAX })
        }
        _ => Ok(()),
    }
}

/// Whether the name may be taken: it is free, or a regular file that may be replaced.
pub(super) fn is_free(path: &Path, overwrite: bool) -> Result<(), ExportError> {
    match fs::symlink_metadata(path) {
        Ok(_) if !overwrite => Err(ExportError::Exists { path: path.to_owned() }),
        Ok(found) if !found.is_file() => Err(ExportError::NotReplaceable { path: path.to_owned() }),
        // What is wrong with the name shows when it is taken.
        _ => Ok(()),
    }
}

/// Waits until nobody else takes names in the directory; until the lock is dropped it stays so.
pub(super) fn take_turn(path: &Path) -> Result<File, ExportError> {
    let directory = directory_of(path);
    let opened = File::open(directory).map_err(io_error("open", directory))?;
    opened.lock().map_err(io_error("lock", directory))?;
    Ok(opened)
}

impl Write for FilePlace {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.out.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl Drop for FilePlace {
    fn drop(&mut self) {
        if !self.published {
            // Best effort: the next export to this name removes what stays.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

fn directory_of(target: &Path) -> &Path {
    target.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes temporary files of this name whose writer is gone. Failing here harms nothing.
fn remove_leftovers(directory: &Path, name: &str) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    let prefix = format!(".{name}.");
    for entry in entries.flatten() {
        let found = entry.file_name();
        let ours = found.to_str().and_then(|text| text.strip_prefix(&prefix)).is_some_and(|rest| {
            rest.strip_suffix(TEMPORARY_SUFFIX).is_some_and(|random| {
                random.len() == TEMPORARY_RANDOM_LENGTH && random.bytes().all(|b| b.is_ascii_alphanumeric())
            })
        });
        let Some(file) = ours.then(|| File::open(entry.path()).ok()).flatten() else { continue };
        // The lock is held until the name is gone, so that its writer notices.
        if file.try_lock().is_ok() {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn io_error(action: &'static str, path: &Path) -> impl FnOnce(io::Error) -> ExportError {
    let path = path.to_owned();
    move |source| ExportError::Io { action, path, source }
}

//! The seam between the log and the operating system: the calls that the log makes, and no others.
//!
//! It is this small so that a test can make the n-th write or sync fail, for every n, or put a file
//! system in memory in its place. What goes through it must not be done past it, or those tests prove
//! nothing. Only the lock and the making of the directory itself stay outside.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;

use crate::regular;

/// Zeros are laid out by this much at a time.
const ZEROS_BYTES: usize = 256 * 1024;

pub(super) trait StorageIo: Send + Sync {
    /// A new file, readable and writable by its owner alone; refused when the name is taken.
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;
    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;
    fn open_read_only(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>>;
    /// The names in a directory, in no particular order; those that are not UTF-8 are left out.
    fn list(&self, directory: &Path) -> io::Result<Vec<String>>;
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;
    fn remove(&self, path: &Path) -> io::Result<()>;
    /// Makes names created, renamed or removed in the directory durable.
    fn sync_directory(&self, directory: &Path) -> io::Result<()>;
}

pub(super) trait StorageFile: Send + Sync {
    /// Writes all of it.
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()>;
    /// Reads until the buffer is full or the file ends; returns how much.
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize>;
    fn length(&self) -> io::Result<u64>;
    fn set_length(&self, length: u64) -> io::Result<()>;
    /// Lays out zeros from `from` to `to`. Real ones: a hole, or room merely promised by the file
    /// system, would cost metadata at each later sync and could still meet a full disk.
    fn allocate(&self, from: u64, to: u64) -> io::Result<()>;
    fn sync_data(&self) -> io::Result<()>;
    fn sync_all(&self) -> io::Result<()>;
}

/// The operating system.
pub(super) struct SystemIo;

impl StorageIo for SystemIo {
    fn create(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create_new(true).mode(0o600);
        Ok(Arc::new(options.open(path)?))
    }

    fn open(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(Arc::new(regular::open(OpenOptions::new().read(true).write(true), path)?))
    }

    fn open_read_only(&self, path: &Path) -> io::Result<Arc<dyn StorageFile>> {
        Ok(Arc::new(regular::read(path)?))
    }

    fn list(&self, directory: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        std::fs::rename(from, to)
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        std::fs::remove_file(path)
    }

    fn sync_directory(&self, directory: &Path) -> io::Result<()> {
        File::open(directory)?.sync_all()
    }
}

impl StorageFile for File {
    fn write_at(&self, bytes: &[u8], offset: u64) -> io::Result<()> {
        self.write_all_at(bytes, offset)
    }

    fn read_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<usize> {
        let mut filled = 0;
        while filled < buffer.len() {
            match FileExt::read_at(self, &mut buffer[filled..], offset + filled as u64) {
                Ok(0) => break,
                Ok(count) => filled += count,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(filled)
    }

    fn length(&self) -> io::Result<u64> {
        Ok(self.metadata()?.len())
    }

    fn set_length(&self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn allocate(&self, from: u64, to: u64) -> io::Result<()> {
        let zeros = vec![0; ZEROS_BYTES];
        let mut at = from;
        while at < to {
            let count = usize::try_from(to - at).unwrap_or(ZEROS_BYTES).min(ZEROS_BYTES);
            self.write_all_at(&zeros[..count], at)?;
            at += count as u64;
        }
        Ok(())
    }

    fn sync_data(&self) -> io::Result<()> {
        File::sync_data(self)
    }

    fn sync_all(&self) -> io::Result<()> {
        File::sync_all(self)
    }
}

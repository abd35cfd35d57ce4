//! Opening files that must be regular ones. A pipe, a device or a directory in such a file's place is
//! refused at once: opening or reading it could wait for ever, and whoever put it there would have
//! stopped the log, or the proof of it, without touching either.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

/// Opens with `options`, following links.
///
/// # Errors
/// What the operating system refuses, and what is no regular file.
pub fn open(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_flagged(options, 0, path)
}

/// As [`open`]; a link in the file's place is refused too.
///
/// # Errors
/// What the operating system refuses, and what is no regular file.
pub fn open_itself(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    open_flagged(options, libc::O_NOFOLLOW, path)
}

fn open_flagged(options: &mut OpenOptions, flags: i32, path: &Path) -> io::Result<File> {
    let file = options.custom_flags(flags | libc::O_NONBLOCK).open(path)?;
    if file.metadata()?.is_file() {
        return Ok(file);
    }
    Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"))
}

/// For reading only.
///
/// # Errors
/// As [`open`].
pub fn read(path: &Path) -> io::Result<File> {
    open(OpenOptions::new().read(true), path)
}

/// As [`read`]; `None` when there is no such file.
///
/// # Errors
/// As [`open`].
pub fn read_if_there(path: &Path) -> io::Result<Option<File>> {
    match read(path) {
        Err(error) if is_absent(&error) => Ok(None),
        opened => opened.map(Some),
    }
}

/// Whether nothing lies at the path that was refused with `error`; a file in a directory's place leaves
/// no room for one below it.
pub fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// Refuses a file that no longer lies at `path`: what is written to it is lost.
///
/// # Errors
/// `NotFound`.
pub fn expect_at(file: &File, path: &Path) -> io::Result<()> {
    if is_at(file, path) {
        return Ok(());
    }
    Err(io::Error::new(io::ErrorKind::NotFound, "it was removed or replaced"))
}

/// Whether the file still is what lies at `path`.
pub fn is_at(file: &File, path: &Path) -> bool {
    let there = std::fs::symlink_metadata(path).map(|facts| (facts.dev(), facts.ino()));
    let own = file.metadata().map(|facts| (facts.dev(), facts.ino()));
    matches!((there, own), (Ok(there), Ok(own)) if there == own)
}

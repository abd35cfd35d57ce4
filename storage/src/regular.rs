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

/// Whether the file still is what lies at `path`.
pub fn is_at(file: &File, path: &Path) -> bool {
    let there = std::fs::symlink_metadata(path).map(|facts| (facts.dev(), facts.ino()));
    let own = file.metadata().map(|facts| (facts.dev(), facts.ino()));
    matches!((there, own), (Ok(there), Ok(own)) if there == own)
}

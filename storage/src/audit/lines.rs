//! `checkpoints.jws`: one signed text a line, only ever appended to.
//!
//! What must stay true: a line counts when its newline is there; what a crash left behind the last
//! newline is cut off before the next line is written. Readers take nothing for granted: a line may be
//! of any length and any bytes.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead as _, BufReader};
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use super::checkpoint::{Checkpoint, Digest, SignedLine, Statement, digest};
use super::jws::JWS_BYTES_MAX;
use super::key::PublicKey;
use crate::StorageError;
use crate::limits::CHECKPOINT_LINE_BYTES_MAX;
use crate::regular;

pub const CHECKPOINTS_FILE: &str = "checkpoints.jws";
/// The end of the file that is searched for the newest checkpoint.
const TAIL_BYTES: u64 = 256 * 1024;

/// One line as it stands in a file.
pub struct RawLine {
    /// From 1.
    pub number: u64,
    /// Without the newline. Of a line that is too long only the beginning.
    pub bytes: Vec<u8>,
    /// Whether a newline ends it.
    pub ended: bool,
    /// It is so long that nothing behind its beginning was read.
    pub given_up: bool,
}

impl RawLine {
    /// The statement, if this is one.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(&self) -> Result<SignedLine, &'static str> {
        SignedLine::read(std::str::from_utf8(&self.bytes).map_err(|_| "it is not text")?)
    }

    /// What the next line calls this one.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest(&self.bytes)
    }
}

/// Iterates over the lines of a file without ever holding more than one.
pub struct RawLines {
    file: BufReader<File>,
    number: u64,
    given_up: bool,
}

impl RawLines {
    /// `None` when there is no such file.
    ///
    /// # Errors
    /// When the file cannot be opened.
    pub fn open(path: &Path) -> Result<Option<Self>, StorageError> {
        let file = regular::read_if_there(path).map_err(StorageError::io("open", path))?;
        Ok(file.map(Self::of))
    }

    /// Whatever can be read: somebody who names a file may mean a pipe.
    #[must_use]
    pub fn of(file: File) -> Self {
        Self { file: BufReader::new(file), number: 0, given_up: false }
    }

    fn step(&mut self) -> io::Result<Option<RawLine>> {
        let (mut bytes, mut ended, mut length) = (Vec::new(), false, 0);
        while !ended && !self.given_up {
            let held = self.file.fill_buf()?;
            if held.is_empty() {
                break;
            }
            let end = held.iter().position(|byte| *byte == b'\n');
            ended = end.is_some();
            let part = &held[..end.unwrap_or(held.len())];
            // One byte more than allowed says that it is too long.
            let room = (JWS_BYTES_MAX + 1).saturating_sub(bytes.len());
            bytes.extend_from_slice(&part[..part.len().min(room)]);
            let used = part.len() + usize::from(ended);
            self.file.consume(used);
            length += used;
            self.given_up = !ended && length > CHECKPOINT_LINE_BYTES_MAX;
        }
        self.number += 1;
        Ok((length > 0).then_some(RawLine { number: self.number, bytes, ended, given_up: self.given_up }))
    }
}

impl Iterator for RawLines {
    type Item = io::Result<RawLine>;

    fn next(&mut self) -> Option<Self::Item> {
        self.step().transpose()
    }
}

/// The file as its one writer holds it.
pub(super) struct CheckpointFile {
    file: File,
    path: PathBuf,
    /// Behind the last newline.
    end: u64,
}

/// What the end of the file says.
pub(super) struct Tail {
    pub checkpoint: Option<Checkpoint>,
    /// The key that signs the next line.
    pub in_force: Option<PublicKey>,
    pub last_line: Option<Digest>,
    /// Behind the last newline there was this much, now cut off.
    pub torn_bytes: u64,
}

impl CheckpointFile {
    /// Opens the file, making it when there is none, and cuts off a line that was never ended.
    ///
    /// # Errors
    /// When the operating system refuses, or the file's end holds no checkpoint.
    pub fn open(path: &Path) -> Result<(Self, Tail), StorageError> {
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let file = regular::open_itself(&mut options, path).map_err(StorageError::io("open", path))?;
        let (bytes, length) = read_end(&file).map_err(StorageError::io("read", path))?;
        let whole = whole_lines(&bytes);
        let torn_bytes = (bytes.len() - whole.len()) as u64;
        let end = length - torn_bytes;
        if torn_bytes > 0 {
            let cut = file.set_len(end).and_then(|()| file.sync_all());
            cut.map_err(StorageError::io("shorten", path))?;
        }
        let tail = Tail { torn_bytes, ..read_tail(whole) };
        if end > 0 && tail.checkpoint.is_none() {
            let wrong = io::Error::new(io::ErrorKind::InvalidData, "its last lines hold no checkpoint");
            return Err(StorageError::io("read", path)(wrong));
        }
        Ok((Self { file, path: path.to_owned(), end }, tail))
    }

    /// Appends a line and makes it durable.
    ///
    /// # Errors
    /// When the operating system refuses. What became of the line is then not known: the file is to be
    /// opened again.
    pub fn append(&mut self, line: &str) -> io::Result<()> {
        let mut bytes = line.as_bytes().to_vec();
        bytes.push(b'\n');
        self.file.write_all_at(&bytes, self.end)?;
        self.file.sync_all()?;
        regular::expect_at(&self.file, &self.path)?;
        self.end += bytes.len() as u64;
        Ok(())
    }
}

/// The end of the file, and how long it is.
fn read_end(file: &File) -> io::Result<(Vec<u8>, u64)> {
    let length = file.metadata()?.len();
    let mut bytes = vec![0; usize::try_from(length.min(TAIL_BYTES)).unwrap_or_default()];
    file.read_exact_at(&mut bytes, length.saturating_sub(TAIL_BYTES))?;
    Ok((bytes, length))
}

fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..bytes.iter().rposition(|byte| *byte == b'\n').map_or(0, |position| position + 1)]
}

/// Reads whole lines from the last one back to the newest checkpoint. The first may be half a line.
fn read_tail(bytes: &[u8]) -> Tail {
    let mut tail = Tail { checkpoint: None, in_force: None, last_line: None, torn_bytes: 0 };
    let Some(lines) = bytes.strip_suffix(b"\n") else { return tail };
    for line in lines.rsplit(|byte| *byte == b'\n') {
        tail.last_line.get_or_insert_with(|| digest(line));
        let Some(signed) = std::str::from_utf8(line).ok().and_then(|text| SignedLine::read(text).ok()) else {
            continue;
        };
        match signed.statement {
            Statement::Checkpoint(checkpoint) => {
                tail.in_force.get_or_insert(signed.key);
                tail.checkpoint = Some(checkpoint);
                break;
            }
            Statement::KeyChange(change) => {
                tail.in_force.get_or_insert(change.next_key);
            }
        }
    }
    tail
}

/// The newest checkpoint in a file, if there is one; the file stays as it is.
///
/// # Errors
/// When the file cannot be read.
pub fn newest_checkpoint(path: &Path) -> Result<Option<Checkpoint>, StorageError> {
    let opened = regular::read_if_there(path).map_err(StorageError::io("open", path))?;
    let Some(file) = opened else { return Ok(None) };
    let (bytes, _) = read_end(&file).map_err(StorageError::io("read", path))?;
    Ok(read_tail(whole_lines(&bytes)).checkpoint)
}

/// The line of the newest checkpoint in a file, if there is one, with what it says.
///
/// # Errors
/// When the file cannot be read.
pub fn newest_line(path: &Path) -> Result<Option<(String, SignedLine)>, StorageError> {
    let opened = regular::read_if_there(path).map_err(StorageError::io("open", path))?;
    let Some(file) = opened else { return Ok(None) };
    let (bytes, _) = read_end(&file).map_err(StorageError::io("read", path))?;
    let lines = whole_lines(&bytes).rsplit(|byte| *byte == b'\n').filter_map(|line| std::str::from_utf8(line).ok());
    let mut signed = lines.filter_map(|line| Some((line.to_owned(), SignedLine::read(line).ok()?)));
    Ok(signed.find(|(_, signed)| signed.checkpoint().is_some()))
}

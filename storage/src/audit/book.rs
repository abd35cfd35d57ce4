//! The audit directory as its one writer keeps it: key, trail, checkpoints.
//!
//! What must stay true: the trail is durable before the checkpoint that binds it; only what the log has
//! on stable storage is signed, and only when the log's chain leads there from the checkpoint before.
//! After any error a book is thrown away and opened again: opening cuts both files back to the newest
//! whole checkpoint, and what the log holds behind it is read once more.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};

use super::checkpoint::{Checkpoint, Digest, KeyChange, Statement, digest};
use super::key::{AuditKey, KeyFiles, PublicKey};
use super::lines::{CHECKPOINTS_FILE, CheckpointFile};
use super::trail::{TRAIL_FILE, TrailWriter};
use crate::StorageError;
use crate::directory;
use crate::limits::CHECKPOINT_EVENTS;
use crate::log::chain::{self, ChainProgress, TRAIL_STEP_BYTES};
use crate::log::{Durable, Link, Reader};

/// Trail entries are written this many bytes at a time while the log is read.
const REPLAY_WRITE_BYTES: usize = 64 * 1024;

const CONTRADICTS: &str = "the log's chain does not continue the newest checkpoint; pageledger verify says where";

pub(super) struct Book {
    directory: PathBuf,
    log_id: String,
    files: KeyFiles,
    key: AuditKey,
    checkpoints: CheckpointFile,
    last_line: Option<Digest>,
    trail: TrailWriter,
    /// What the newest checkpoint covers.
    signed: Reached,
    /// How far the trail is written.
    at: Reached,
    /// Over the trail from `signed` to `at`.
    trail_digest: Sha256,
    /// Whether the log's chain was seen to lead on from the newest checkpoint.
    proven: bool,
    /// Bytes of a half-written line that opening cut off.
    pub torn_bytes: u64,
}

/// A place in the chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Reached {
    pub seq: u64,
    pub chain: Digest,
}

/// Why a book cannot be used.
#[derive(Debug)]
pub(super) enum BookError {
    /// The log is not the one that was signed.
    Contradicted(StorageError),
    /// It may be better another time.
    Unusable(StorageError),
}

impl BookError {
    pub fn into_inner(self) -> StorageError {
        let (Self::Contradicted(error) | Self::Unusable(error)) = self;
        error
    }
}

impl From<StorageError> for BookError {
    fn from(error: StorageError) -> Self {
        Self::Unusable(error)
    }
}

/// The state that a checkpoint adds to the chain's.
pub(super) struct Moment {
    pub epoch: u64,
    pub at_micros: i64,
    pub oldest_seq: u64,
}

impl Book {
    /// Opens the audit directory of the log that `reader` reads, making what is missing.
    ///
    /// # Errors
    /// When the log is not the one, or not as long as, the newest checkpoint says; else what the
    /// operating system or the key refuses.
    pub fn open(directory: &Path, reader: &Reader, durable: &Durable) -> Result<Self, BookError> {
        directory::make_private(directory)?;
        directory.parent().map_or(Ok(()), directory::sync)?;
        let path = directory.join(CHECKPOINTS_FILE);
        let (checkpoints, tail) = CheckpointFile::open(&path)?;
        let signed = match &tail.checkpoint {
            Some(checkpoint) => {
                compare(checkpoint, reader.log_id(), durable, directory)?;
                Reached { seq: checkpoint.seq, chain: checkpoint.chain }
            }
            None => {
                let (seq, chain) = reader.base();
                Reached { seq, chain }
            }
        };
        let files = KeyFiles::new(directory);
        let key = files.load(tail.in_force)?;
        let trail = TrailWriter::open(&directory.join(TRAIL_FILE), signed.seq)?;
        directory::sync(directory)?;
        Ok(Self {
            directory: directory.to_owned(),
            log_id: reader.log_id().to_owned(),
            files,
            key,
            checkpoints,
            last_line: tail.last_line,
            trail,
            signed,
            at: signed,
            trail_digest: Sha256::new(),
            proven: false,
            torn_bytes: tail.torn_bytes,
        })
    }

    pub fn signed(&self) -> Reached {
        self.signed
    }

    pub fn at(&self) -> Reached {
        self.at
    }

    pub fn public_key(&self) -> PublicKey {
        self.key.public()
    }

    /// Whether there is a checkpoint already.
    pub fn has_lines(&self) -> bool {
        self.last_line.is_some()
    }

    /// Takes in what became durable.
    ///
    /// # Errors
    /// When the trail cannot be written, or the log has to be read for it and cannot.
    pub fn follow(&mut self, progress: &ChainProgress, reader: &Reader) -> Result<(), BookError> {
        if progress.last_seq <= self.at.seq {
            return Ok(());
        }
        let known = self.proven && progress.first_seq <= self.at.seq + 1;
        match &progress.trail {
            Some(trail) if known => {
                let passed = usize::try_from(self.at.seq + 1 - progress.first_seq).unwrap_or(usize::MAX);
                let entries = trail.get(passed.saturating_mul(TRAIL_STEP_BYTES)..).unwrap_or_default();
                self.put(self.at.seq + 1, entries)?;
                self.at = Reached { seq: progress.last_seq, chain: progress.chain };
                Ok(())
            }
            _ if self.has_lines() => self.replay(progress, reader),
            _ => self.begin(progress, reader),
        }
    }

    /// Without a checkpoint there is nothing to continue. A short log gets its whole trail; one that is
    /// long, or damaged somewhere, is signed from its end on.
    fn begin(&mut self, progress: &ChainProgress, reader: &Reader) -> Result<(), BookError> {
        let is_short = progress.last_seq - self.at.seq <= CHECKPOINT_EVENTS;
        match is_short.then(|| self.replay(progress, reader)) {
            None | Some(Err(BookError::Unusable(StorageError::Damaged { .. }))) => {
                self.start_over(Reached { seq: progress.last_seq, chain: progress.chain })?;
                self.proven = true;
                Ok(())
            }
            Some(outcome) => outcome,
        }
    }

    /// The trail up to `at` is not known.
    fn start_over(&mut self, at: Reached) -> Result<(), StorageError> {
        self.trail = TrailWriter::open(&self.directory.join(TRAIL_FILE), at.seq)?;
        (self.at, self.signed) = (at, at);
        self.trail_digest = Sha256::new();
        Ok(())
    }

    /// Reads the log from where the trail ends to where the chain is known to be, and holds the two
    /// against each other: a history that was changed meanwhile is never signed.
    fn replay(&mut self, progress: &ChainProgress, reader: &Reader) -> Result<(), BookError> {
        let (base_seq, base_chain) = reader.base();
        if base_seq > self.at.seq {
            // What lay between is removed with its whole segments; its trail is not known.
            self.start_over(Reached { seq: base_seq, chain: base_chain })?;
        }
        let (mut at, mut entries, mut written) = (self.at, Vec::new(), Ok(()));
        reader.replay(self.at.seq, &mut |link| {
            let (last_seq, chain) = match link {
                Link::Event(event) => (event.seq, chain::next(&at.chain, event.record)),
                Link::Removed(run) => (run.first_seq + run.count - 1, run.chain),
            };
            if last_seq > progress.last_seq {
                return ControlFlow::Break(());
            }
            let unknown = usize::try_from(last_seq - at.seq - 1).unwrap_or_default();
            entries.resize(entries.len() + unknown * TRAIL_STEP_BYTES, 0);
            entries.extend_from_slice(&chain[..TRAIL_STEP_BYTES]);
            at = Reached { seq: last_seq, chain };
            if entries.len() >= REPLAY_WRITE_BYTES {
                written = self.put(at.seq + 1 - (entries.len() / TRAIL_STEP_BYTES) as u64, &entries);
                entries.clear();
            }
            if written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
        })?;
        written?;
        self.put(at.seq + 1 - (entries.len() / TRAIL_STEP_BYTES) as u64, &entries)?;
        if at != (Reached { seq: progress.last_seq, chain: progress.chain }) {
            return Err(BookError::Contradicted(StorageError::Damaged {
                path: self.directory.clone(),
                first_seq: base_seq + 1,
                last_seq: progress.last_seq,
                what: CONTRADICTS.into(),
            }));
        }
        self.at = at;
        self.proven = true;
        Ok(())
    }

    fn put(&mut self, first_seq: u64, entries: &[u8]) -> Result<(), StorageError> {
        self.trail.write(first_seq, entries)?;
        self.trail_digest.update(entries);
        Ok(())
    }

    /// Signs the chain as far as the trail is written and makes both durable; returns the statement
    /// and the line that holds it.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn sign(&mut self, moment: &Moment) -> Result<(Checkpoint, String), StorageError> {
        self.trail.sync()?;
        let checkpoint = Checkpoint {
            log_id: self.log_id.clone(),
            seq: self.at.seq,
            chain: self.at.chain,
            epoch: moment.epoch,
            at_micros: moment.at_micros,
            since_seq: self.signed.seq,
            trail: self.trail_digest.clone().finalize().into(),
            oldest_seq: moment.oldest_seq,
            previous: self.last_line,
        };
        let line = self.append(&Statement::Checkpoint(checkpoint.clone()))?;
        self.signed = self.at;
        self.trail_digest = Sha256::new();
        Ok((checkpoint, line))
    }

    /// Makes a new key, has the old one name it, and destroys the old one; returns both and the line.
    ///
    /// # Errors
    /// When the operating system refuses; the statement alone decides which key is then in force.
    pub fn change_key(&mut self, at_micros: i64) -> Result<(PublicKey, PublicKey, String), StorageError> {
        let next = AuditKey::generate()?;
        let (old_key, next_key) = (self.key.public(), next.public());
        self.files.prepare(&next)?;
        let change = KeyChange {
            log_id: self.log_id.clone(),
            seq: self.signed.seq,
            at_micros,
            next_key,
            previous: self.last_line,
        };
        let line = self.append(&Statement::KeyChange(change))?;
        self.files.replace_with_next(next_key)?;
        self.key = next;
        Ok((old_key, next_key, line))
    }

    fn append(&mut self, statement: &Statement) -> Result<String, StorageError> {
        let line = statement.sign(&self.key);
        let path = self.directory.join(CHECKPOINTS_FILE);
        self.checkpoints.append(&line).map_err(StorageError::io("write", path))?;
        self.last_line = Some(digest(line.as_bytes()));
        Ok(line)
    }
}

/// Whether the log is as long as `checkpoint` says, and the same log.
fn compare(checkpoint: &Checkpoint, log_id: &str, durable: &Durable, directory: &Path) -> Result<(), BookError> {
    let damaged = |first_seq, what| {
        let (path, last_seq) = (directory.to_owned(), checkpoint.seq);
        Err(BookError::Contradicted(StorageError::Damaged { path, first_seq, last_seq, what }))
    };
    if checkpoint.log_id != log_id {
        return damaged(1, format!("the checkpoints are of log {}, the log is {log_id}", checkpoint.log_id));
    }
    if checkpoint.seq > durable.last_seq {
        return damaged(durable.last_seq + 1, "the log ends before its newest checkpoint".into());
    }
    if checkpoint.seq == durable.last_seq && checkpoint.chain != durable.chain {
        return damaged(1, CONTRADICTS.into());
    }
    Ok(())
}

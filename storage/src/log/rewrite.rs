//! Writes a sealed segment anew: smaller, or without some of its events.
//!
//! Order: the whole new generation under an unfinished name, checked against the hash chain while it
//! is read and synced when it is written; then, when asked to install it, the mark on stable storage
//! beyond the segment, the name, the directory; from then on it holds; then the generation before it
//! goes. What must stay true: every number of the segment is in the new generation, kept or told of as
//! removed, and the chain leads through it to the same hash; a segment that does not verify is never
//! replaced; memory does not grow with the segment.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::watch;

use super::block::RemovedRun;
use super::commit::{Commit, CommitWalk, Item, Walked, in_order};
use super::encode::Encoder;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::lock::Lock;
use super::mark_keeper::MarkSync;
use super::reader::Reader;
use super::segment::{UNFINISHED, overwrite};
use super::segments::{Claim, Held, Sealed, SegmentFacts, SegmentSet};
use super::storage_io::{StorageFile, StorageIo};
use super::{Durable, Position};
use crate::StorageError;
use crate::event::EventView;
use crate::limits::{BLOCK_BYTES_TARGET, GENERATION_MAX, SEALED_COMPRESSION_LEVEL};

/// What becomes of an event when its segment is written anew.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    Keep,
    Remove,
}

/// What rewriting needs of a log.
#[derive(Clone)]
pub(super) struct Rewriter {
    pub io: Arc<dyn StorageIo>,
    pub directory: PathBuf,
    pub segments: Arc<SegmentSet>,
    pub marks: MarkSync,
    /// A group holds about this much before compression.
    pub group_bytes: usize,
}

/// A new generation of a segment, whole and durable, that does not hold yet. Dropping it removes it.
pub struct Rewritten {
    // The order in which these go when it is dropped: first the file, last the lock.
    unfinished: Unfinished,
    _claim: Claim,
    /// The log stays locked for as long as something of it may still be changed.
    _lock: Arc<Lock>,
    rewriter: Rewriter,
    file: Arc<dyn StorageFile>,
    header: SegmentHeader,
    chain: [u8; 32],
    removed_count: u64,
}

/// A file that goes unless it gets its name.
struct Unfinished {
    io: Arc<dyn StorageIo>,
    path: PathBuf,
    stage: Stage,
}

/// How far a new generation has come.
#[derive(PartialEq, Eq)]
enum Stage {
    /// Nothing needs it.
    Spare,
    /// It has its name, which a power cut may keep or not.
    Named,
    Holding,
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        let removed = match self.stage {
            Stage::Holding => return,
            Stage::Spare => overwrite(&*self.io, &self.path),
            // If the power goes, its name may outlive its removal: then it must be whole. It holds
            // nothing that the generation before it does not.
            Stage::Named => Ok(()),
        };
        // What cannot be removed now is removed when the log is opened.
        let _ = removed.and_then(|()| self.io.remove(&self.path).map_err(StorageError::io("remove", &self.path)));
    }
}

/// The new generation while it is being made.
struct Making<'a> {
    directory: &'a Path,
    fate: &'a mut dyn FnMut(&EventView<'_>) -> Fate,
    encoder: Encoder,
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    group_bytes: usize,
    end: u64,
    /// Behind the last event read.
    chain: [u8; 32],
    next_seq: u64,
    buffer: Vec<u8>,
    removed_count: u64,
}

impl Rewriter {
    /// See [`super::Log::rewrite`].
    pub fn rewrite(
        &self,
        lock: Arc<Lock>,
        number: u32,
        fate: &mut dyn FnMut(&EventView<'_>) -> Fate,
    ) -> Result<Rewritten, StorageError> {
        let claim = self.segments.claim(number)?;
        let (Some(held), Some(next)) = (self.segments.get(number), self.segments.get(number + 1)) else {
            return Err(StorageError::Moved);
        };
        let Some(sealed) = held.sealed else { return Err(StorageError::Moved) };
        let generation = held.generation() + 1;
        if generation > GENERATION_MAX {
            return Err(StorageError::Limit { name: "generations of a segment", limit: u64::from(GENERATION_MAX) });
        }
        let old_path = self.path_of(number, held.generation());
        let old = self.io.open_read_only(&old_path).map_err(StorageError::io("open", &old_path))?;
        let (file, unfinished) = self.begin(number, generation)?;
        let encoder = Encoder::new(SEALED_COMPRESSION_LEVEL);
        let mut making = Making {
            directory: &self.directory,
            fate,
            encoder: encoder.map_err(StorageError::io("prepare compression for", &unfinished.path))?,
            file: file.clone(),
            path: unfinished.path.clone(),
            group_bytes: self.group_bytes,
            end: u64::from(SEGMENT_HEADER_BYTES),
            chain: held.header.chain,
            next_seq: held.header.first_seq,
            buffer: Vec::new(),
            removed_count: 0,
        };
        making.read_all(old, &old_path, &sealed, &next.header.chain)?;
        let (own_bytes, removed_count, chain) = (making.end, making.removed_count, making.chain);
        let header = SegmentHeader { generation, own_bytes, last_seq: sealed.last_seq, ..held.header };
        file.write_at(&header.to_bytes(), 0).map_err(StorageError::io("write", &unfinished.path))?;
        file.sync_all().map_err(StorageError::io("sync", &unfinished.path))?;
        let (rewriter, _lock, _claim) = (self.clone(), lock, claim);
        Ok(Rewritten { rewriter, _lock, _claim, unfinished, file, header, chain, removed_count })
    }

    fn path_of(&self, number: u32, generation: u16) -> PathBuf {
        self.directory.join(segment_name(number, generation))
    }

    /// The file to write to; what an attempt before it left behind is removed.
    fn begin(&self, number: u32, generation: u16) -> Result<(Arc<dyn StorageFile>, Unfinished), StorageError> {
        let path = self.directory.join(segment_name(number, generation) + UNFINISHED);
        let file = match self.io.create(&path) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
                self.io.remove(&path).map_err(StorageError::io("remove", &path))?;
                self.io.create(&path)
            }
            outcome => outcome,
        };
        let file = file.map_err(StorageError::io("create", &path))?;
        Ok((file, Unfinished { io: self.io.clone(), path, stage: Stage::Spare }))
    }
}

impl Making<'_> {
    fn read_all(
        &mut self,
        old: Arc<dyn StorageFile>,
        old_path: &Path,
        sealed: &Sealed,
        chain_behind: &[u8; 32],
    ) -> Result<(), StorageError> {
        let mut walk = CommitWalk::new(old, self.next_seq, sealed.end);
        while self.next_seq <= sealed.last_seq {
            match walk.next_commit().map_err(StorageError::io("read", old_path))? {
                Walked::Commit(commit) => {
                    let blocks = walk.unpack(&commit).map_err(StorageError::io("read", old_path))?;
                    let blocks = blocks.map_err(|what| self.damaged(commit.last_seq, what))?;
                    let items = in_order(&blocks).map_err(|what| self.damaged(commit.last_seq, what))?;
                    self.take(&commit, &items)?;
                }
                Walked::End => return Err(self.damaged(sealed.last_seq, "the segment ends too early")),
                Walked::Torn(what) => return Err(self.damaged(sealed.last_seq, what)),
            }
        }
        if self.chain != *chain_behind || self.next_seq != sealed.last_seq + 1 {
            return Err(self.damaged(sealed.last_seq, "the next segment does not continue the hash chain"));
        }
        self.end_group()
    }

    fn damaged(&self, last_seq: u64, what: &str) -> StorageError {
        let first_seq = self.next_seq.min(last_seq);
        StorageError::Damaged { path: self.directory.to_owned(), first_seq, last_seq, what: what.into() }
    }

    fn take(&mut self, commit: &Commit, items: &[Item<'_>]) -> Result<(), StorageError> {
        let mut chain = self.chain;
        for item in items {
            // A group may end anywhere: its end is the hash behind its last event.
            if self.encoder.raw_bytes() >= self.group_bytes || self.encoder.removed_bytes() >= BLOCK_BYTES_TARGET {
                self.chain = chain;
                self.end_group()?;
            }
            chain = item.chain(&chain);
            match item {
                Item::Event(session_id, event) => match (self.fate)(event) {
                    Fate::Keep => self.encoder.add_stored(*session_id, event),
                    Fate::Remove => {
                        self.removed_count += 1;
                        self.encoder.add_removed(&RemovedRun { first_seq: event.seq, count: 1, chain });
                    }
                },
                Item::Removed(run) => self.encoder.add_removed(run),
            }
        }
        if chain != commit.chain {
            return Err(self.damaged(commit.last_seq, "a commit does not continue the hash chain"));
        }
        self.chain = chain;
        self.next_seq = commit.last_seq + 1;
        Ok(())
    }

    fn end_group(&mut self) -> Result<(), StorageError> {
        self.buffer.clear();
        self.encoder.end_commit(self.chain, &mut self.buffer);
        self.file.write_at(&self.buffer, self.end).map_err(StorageError::io("write", &self.path))?;
        self.end += self.buffer.len() as u64;
        if u32::try_from(self.end).is_err() {
            return Err(StorageError::Limit { name: "bytes of a segment", limit: u64::from(u32::MAX) });
        }
        Ok(())
    }
}

impl Rewritten {
    fn held(&self) -> Held {
        let sealed = Sealed { end: self.header.own_bytes, last_seq: self.header.last_seq };
        Held { header: self.header.clone(), sealed: Some(sealed) }
    }

    /// The segment as it will be.
    #[must_use]
    pub fn facts(&self) -> SegmentFacts {
        self.held().facts(&self.end())
    }

    /// How many events it leaves out that the generation before it still has.
    #[must_use]
    pub fn removed_count(&self) -> u64 {
        self.removed_count
    }

    /// Length of its file.
    #[must_use]
    pub fn stored_bytes(&self) -> u64 {
        self.header.own_bytes
    }

    /// Reads this segment alone, at the positions that it will have.
    #[must_use]
    pub fn reader(&self) -> Reader {
        let segments = Arc::new(SegmentSet::new([self.held()]));
        segments.keep_open(self.header.number, self.header.generation, self.file.clone());
        let log_id = String::from_utf8_lossy(&self.header.log_id).into_owned();
        let (_, durable) = watch::channel(self.end());
        Reader::beside(self.rewriter.io.clone(), &self.rewriter.directory, log_id, durable, segments)
    }

    fn end(&self) -> Durable {
        let (segment, generation) = (self.header.number, self.header.generation);
        let end = Position { segment, generation, offset: self.header.own_bytes as u32 };
        Durable { last_seq: self.header.last_seq, end, chain: self.chain }
    }

    /// Gives it its name: it holds from then on, and the generation before it is removed, with
    /// `shred_old` only after it was overwritten. Blocks while files are synced.
    ///
    /// # Errors
    /// `StorageError::Moved` when the segment was removed meanwhile; `StorageError::Unavailable` when
    /// the log failed; else what the operating system refuses. Unless [`Reader::segments`] shows the new
    /// generation, everything is as before. If it does, only the file before it could not be removed; it
    /// is overwritten and removed when the log is opened next.
    pub fn install(mut self, shred_old: bool) -> Result<(), StorageError> {
        let Rewriter { io, directory, segments, marks, .. } = &self.rewriter;
        let number = self.header.number;
        let Some(old) = segments.get(number) else { return Err(StorageError::Moved) };
        let (old_path, path) = (self.rewriter.path_of(number, old.generation()), self.named_path());
        marks.settle()?;
        io.rename(&self.unfinished.path, &path).map_err(StorageError::io("rename", &self.unfinished.path))?;
        self.unfinished.path = path;
        self.unfinished.stage = Stage::Named;
        // Until here and now the old generation holds, and the new one goes if it cannot take its place.
        io.sync_directory(directory).map_err(StorageError::io("sync", directory))?;
        if !segments.replace(self.held()) {
            self.unfinished.stage = Stage::Spare;
            return Err(StorageError::Moved);
        }
        self.unfinished.stage = Stage::Holding;
        if shred_old {
            overwrite(&**io, &old_path)?;
        }
        io.remove(&old_path).map_err(StorageError::io("remove", &old_path))?;
        io.sync_directory(directory).map_err(StorageError::io("sync", directory))
    }

    fn named_path(&self) -> PathBuf {
        self.rewriter.path_of(self.header.number, self.header.generation)
    }
}

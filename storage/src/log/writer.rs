//! The one writer: numbers events, writes them, makes them durable, and only then lets anybody know.
//!
//! What must stay true, per commit and in this order: room laid out, blocks written, segment synced, mark
//! written, readers told, waiters answered. The first step that fails is the last thing this log does: a
//! sync that failed says nothing about what a second one would mean. Only a lack of room, met before
//! anything is written, is for whoever waits to know and for a later attempt to overcome. With
//! durability by interval the sync and the mark follow later, for several commits at once.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Instant;

use tokio::sync::watch;

use super::chain::{Chain, Unclaimed};
use super::directory::Listing;
use super::durability::Unsynced;
use super::encode::Encoder;
use super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name};
use super::mark_keeper::MarkKeeper;
use super::queue::{CLOSED, Order, Queue, Request, Work};
use super::segment::Segment;
use super::segments::{Sealed, SegmentSet};
use super::storage_io::StorageIo;
use super::{Appended, Durability, Durable, Position};
use crate::StorageError;
use crate::disk::DiskWatch;
use crate::event::catalog::LogSealed;
use crate::event::{Context, Draft, Symbol};
use crate::limits::SEGMENT_NUMBER_MAX;
use crate::time::Clock;

/// What the writer has done, for health and metrics.
#[derive(Debug, Clone, Default)]
pub(super) struct Progress {
    pub commits: u64,
    pub synced_bytes: u64,
    pub fsync_seconds: f64,
    pub last_fsync_micros: u64,
    /// Since when something is written and not synced.
    pub unsynced_since: Option<Instant>,
}

pub(super) struct Writer {
    pub io: Arc<dyn StorageIo>,
    pub directory: PathBuf,
    pub clock: Arc<dyn Clock>,
    pub log_id: [u8; super::format::LOG_ID_BYTES],
    pub epoch: u64,
    pub segment: Segment,
    pub segments: Arc<SegmentSet>,
    pub marks: MarkKeeper,
    pub encoder: Encoder,
    /// Behind the last event written.
    pub chain: Chain,
    pub unclaimed: Arc<Unclaimed>,
    pub durable: watch::Sender<Durable>,
    pub progress: Arc<Mutex<Progress>>,
    pub next_seq: u64,
    pub epoch_events: u64,
    /// Bytes of the commit being made; kept to be used again.
    pub buffer: Vec<u8>,
    pub disk: Option<DiskWatch>,
    /// What last found no room on the disk, as long as nothing has since.
    pub refused_bytes: Option<u64>,
    pub durability: Durability,
    pub unsynced: Unsynced,
}

impl Writer {
    /// Serves the queue until nobody is left, the log is sealed, or something fails or panics.
    pub fn run(mut self, queue: &Queue) {
        while self.serve(queue, queue.take()) {}
    }

    /// Does one piece of work; whether there can be more.
    pub fn serve(&mut self, queue: &Queue, mut work: Work) -> bool {
        // Outlives the attempt: whoever waits learns of a failure only when the reason is there.
        let attempt = std::panic::AssertUnwindSafe(|| self.attempt(queue, &mut work));
        let outcome = match std::panic::catch_unwind(attempt) {
            Ok(Ok(outcome)) => outcome,
            Ok(Err(error)) => {
                queue.fail(&error.to_string());
                return false;
            }
            Err(_) => {
                queue.fail("its writer panicked");
                return false;
            }
        };
        queue.sync_at(self.sync_due());
        match work {
            Work::Commit(requests) => {
                let (settled, left): (Vec<_>, Vec<_>) =
                    requests.into_iter().partition(|request| request.outcome.is_some());
                after_commit(queue, left, outcome);
                settled.into_iter().for_each(Request::answer);
                true
            }
            Work::Probe => {
                after_commit(queue, Vec::new(), outcome);
                true
            }
            Work::Order(_, reply) => {
                // Whoever asked may have stopped waiting; it is done all the same.
                let _ = reply.send(outcome);
                true
            }
            Work::Sync => true,
            Work::Seal(reply) => {
                queue.fail(CLOSED);
                // Nobody may be waiting any more; the log is sealed all the same.
                let _ = reply.send(());
                false
            }
            Work::Stop => {
                queue.fail(CLOSED);
                false
            }
        }
    }

    /// What fails ends the log; inside, what went wrong beside it, a lack of room above all.
    fn attempt(&mut self, queue: &Queue, work: &mut Work) -> Result<Result<(), StorageError>, StorageError> {
        let short = match work {
            Work::Commit(requests) if queue.is_ending() => return self.commit_last(requests).map(Ok),
            Work::Commit(requests) => self.commit(requests)?,
            Work::Probe => self.probe()?,
            Work::Order(Order::Roll, _) => return beside(self.roll_used()),
            Work::Order(Order::DropBefore(number), _) => return self.drop_before(*number),
            Work::Order(Order::Sync, _) | Work::Sync => return self.sync_written().map(Ok),
            Work::Seal(_) => return self.seal().map(Ok),
            Work::Stop => {
                self.sync_written()?;
                return self.marks.settle().map(Ok);
            }
        };
        Ok(short.map_or(Ok(()), |path| Err(StorageError::Full { path })))
    }

    /// Appends `drafts` as one commit and makes it durable; no drafts are no commit.
    pub fn append(&mut self, drafts: &mut dyn Iterator<Item = &Draft>) -> Result<Appended, StorageError> {
        let first_seq = self.next_seq;
        let mut buffer = std::mem::take(&mut self.buffer);
        buffer.clear();
        let (now_micros, mut after) = (self.clock.now_micros(), first_seq);
        let before = self.chain.hash;
        self.chain.trail.clear();
        for draft in drafts {
            self.chain.add(self.encoder.add(draft.session_id.as_ref(), after, now_micros, &draft.body));
            after += 1;
        }
        let appended = Appended { first_seq, last_seq: after - 1 };
        if after == first_seq {
            return Ok(appended);
        }
        self.encoder.end_commit(self.chain.hash, &mut buffer);
        let written = self.write(&buffer, first_seq, before);
        self.buffer = buffer;
        if let Err(error) = written {
            // What found no room is made again, perhaps of other events.
            self.chain.hash = before;
            return Err(error);
        }
        self.next_seq = after;
        self.epoch_events += after - first_seq;
        self.publish(first_seq, after - 1)?;
        Ok(appended)
    }

    /// Writes a commit that begins with `first_seq` behind the chain hash `before`.
    fn write(&mut self, bytes: &[u8], first_seq: u64, before: [u8; 32]) -> Result<(), StorageError> {
        let length = bytes.len() as u64;
        self.make_room(length, first_seq, before)?;
        self.segment.write(bytes, self.segment.end)?;
        self.segment.end += length;
        self.written(length)
    }

    /// Sees to it that the next commit, which begins with `first_seq` behind the chain hash `before`,
    /// finds room for `bytes`.
    fn make_room(&mut self, bytes: u64, first_seq: u64, before: [u8; 32]) -> Result<(), StorageError> {
        if self.segment.is_full_for(bytes) {
            self.roll(first_seq, before)?;
        }
        if !self.segment.has_room(bytes) {
            // Laying out room syncs the file; when that fails, it may not be over somebody's events.
            self.sync_written()?;
            self.segment.make_room(bytes)?;
        }
        Ok(())
    }

    /// Whether there is room again for what was last refused.
    fn probe(&mut self) -> Result<Option<PathBuf>, StorageError> {
        let bytes = self.refused_bytes.unwrap_or(1);
        match self.make_room(bytes, self.next_seq, self.chain.hash) {
            Ok(()) => {
                self.found_room();
                Ok(None)
            }
            Err(StorageError::Full { path }) => {
                self.found_no_room(bytes);
                Ok(Some(path))
            }
            Err(error) => Err(error),
        }
    }

    /// Seals the segment at its true length and begins the next one with `first_seq`, behind the chain
    /// hash `before`. The mark moves into the new segment before anybody learns that the old one is
    /// sealed, so no mark ever points into a segment that may be written anew.
    fn roll(&mut self, first_seq: u64, before: [u8; 32]) -> Result<(), StorageError> {
        if self.segment.number >= SEGMENT_NUMBER_MAX {
            return Err(StorageError::Limit { name: "segments of one log", limit: u64::from(SEGMENT_NUMBER_MAX) });
        }
        self.sync_written()?;
        self.segment.cut_to_end()?;
        let sealed = Sealed { end: self.segment.end, last_seq: first_seq - 1 };
        let header = SegmentHeader {
            number: self.segment.number + 1,
            log_id: self.log_id,
            epoch: self.epoch,
            first_seq,
            created_micros: self.clock.now_micros(),
            previous_bytes: self.segment.end,
            chain: before,
            generation: 0,
            own_bytes: 0,
            last_seq: 0,
        };
        self.segment = Segment::create(&*self.io, &self.directory, &header, self.segment.bytes_max)?;
        let durable = Durable { last_seq: sealed.last_seq, end: self.end()?, chain: before };
        self.marks.advance(durable, false)?;
        self.segments.roll(sealed, header);
        self.durable.send_replace(durable);
        Ok(())
    }

    /// Seals the segment now, unless it holds nothing.
    fn roll_used(&mut self) -> Result<(), StorageError> {
        if self.segment.end > u64::from(SEGMENT_HEADER_BYTES) {
            self.roll(self.next_seq, self.chain.hash)
        } else {
            Ok(())
        }
    }

    /// Removes the segments before `number`. First the mark says on stable storage that they need not
    /// be there, then readers no longer look for them, then the files go; what is left of them after a
    /// crash goes when the log is opened.
    fn drop_before(&mut self, number: u32) -> Result<Result<(), StorageError>, StorageError> {
        let number = number.min(self.segment.number);
        let Some(oldest) = self.segments.get(number) else { return Ok(Ok(())) };
        if self.segments.oldest().is_some_and(|first| first.number() == number) {
            return Ok(Ok(()));
        }
        // Among what is written may be the events that tell of this removal.
        self.sync_written()?;
        self.marks.retain_from(number, oldest.header.first_seq)?;
        self.marks.settle()?;
        self.segments.drop_before(number);
        Ok(self.remove_before(number))
    }

    fn remove_before(&self, number: u32) -> Result<(), StorageError> {
        let listing = Listing::read(&*self.io, &self.directory)?;
        for (number, generation) in listing.segments.into_iter().filter(|(other, _)| *other < number) {
            let path = self.directory.join(segment_name(number, generation));
            self.io.remove(&path).map_err(StorageError::io("remove", &path))?;
        }
        self.io.sync_directory(&self.directory).map_err(StorageError::io("sync", &self.directory))
    }

    /// Where the log ends.
    pub fn end(&self) -> Result<Position, StorageError> {
        let offset = u32::try_from(self.segment.end).map_err(|_| StorageError::Io {
            action: "extend",
            path: self.segment.path.clone(),
            source: io::ErrorKind::FileTooLarge.into(),
        })?;
        Ok(Position { segment: self.segment.number, generation: 0, offset })
    }

    /// The orderly end: a last event, and a mark that says so.
    fn seal(&mut self) -> Result<(), StorageError> {
        let sealed = LogSealed { reason: Symbol::fold("shutdown"), events: self.epoch_events + 1 };
        let draft = Draft::new(&Context::default(), &sealed);
        let mut request = Request::new(vec![draft], None);
        if let Some(path) = self.commit(std::slice::from_mut(&mut request))? {
            return Err(StorageError::Full { path });
        }
        self.sync_written()?;
        let durable = *self.durable.borrow();
        self.marks.advance(durable, true)?;
        self.marks.settle()
    }
}

/// Tells the queue how the requests last taken fared.
fn after_commit(queue: &Queue, left: Vec<Request>, outcome: Result<(), StorageError>) {
    match outcome {
        Err(StorageError::Full { path }) => queue.put_back(left, path),
        _ => queue.written(),
    }
}

/// A lack of room is for whoever asked to know, and no end of the log.
fn beside(outcome: Result<(), StorageError>) -> Result<Result<(), StorageError>, StorageError> {
    match outcome {
        Err(error @ StorageError::Full { .. }) => Ok(Err(error)),
        outcome => outcome.map(Ok),
    }
}

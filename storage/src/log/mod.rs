//! The append-only truth: segments of checksummed blocks, one writer, group commit, a high-water mark.
//!
//! Read in this order: [`format`] (the bytes), [`block`], [`chain`] (what binds events together),
//! [`mark`] (how far the log is known to be durable), [`queue`], [`requests`] and [`writer`] (how events
//! get in), [`recovery`] (how a log is opened), [`segments`] (which files hold), [`reader`] and [`walk`]
//! (how events come out), [`rewrite`] (how a segment becomes smaller).
//!
//! What must stay true: an acknowledged event is on stable storage; numbers are never reused and have
//! no holes; readers see only what is durable; damage is named or refused, never passed over; the
//! first failed write or sync ends recording for good, and a full disk does not.

mod admit;
mod block;
pub mod chain;
mod commit;
mod create;
mod directory;
mod durability;
mod encode;
mod format;
pub(crate) mod inspect;
mod lock;
mod mark;
mod mark_keeper;
mod opening;
mod outside;
mod queue;
mod reader;
mod recovery;
mod replay;
mod requests;
mod rewrite;
mod schedule;
mod segment;
mod segments;
mod storage_io;
mod tail;
#[cfg(test)]
pub(crate) mod tests;
mod walk;
mod window;
mod writer;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{oneshot, watch};

use crate::StorageError;
use crate::disk::DiskWatch;
use crate::event::{Draft, EventView, Symbol};
use crate::limits::{QUEUE_BYTES_MAX, SEGMENT_BYTES};
use crate::time::{Clock, SystemClock};

pub use block::{Block, BlockEvents, BlockHeader, BlockRef, RemovedRun, page_bit};
pub use chain::ChainProgress;
pub use reader::Reader;
pub(crate) use replay::Link;
pub use rewrite::{Fate, Rewritten};
pub use segments::SegmentFacts;
pub use walk::BlockWalk;

use chain::Unclaimed;
use format::SEGMENT_HEADER_BYTES;
use lock::Lock;
use queue::{NotAdmitted, Order, Queue, Request};
use rewrite::Rewriter;
use writer::Progress;

/// A place in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// Number of the segment, below 2^20.
    pub segment: u32,
    /// How often that was written anew, below 2^12.
    pub generation: u16,
    pub offset: u32,
}

impl Position {
    /// The first block of a segment.
    pub(crate) fn start_of(segment: u32, generation: u16) -> Self {
        Self { segment, generation, offset: SEGMENT_HEADER_BYTES }
    }

    /// Keeps the order of positions.
    #[must_use]
    pub fn to_u64(self) -> u64 {
        u64::from(self.segment) << 44 | u64::from(self.generation) << 32 | u64::from(self.offset)
    }

    #[must_use]
    pub fn from_u64(number: u64) -> Self {
        let generation = (number >> 32) as u16 & 0xfff;
        Self { segment: (number >> 44) as u32, generation, offset: number as u32 }
    }
}

/// How far the log is on stable storage; with durability by interval, how far it is acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Durable {
    pub last_seq: u64,
    /// Behind the last block.
    pub end: Position,
    /// Chain hash after `last_seq`.
    pub chain: [u8; 32],
}

/// Numbers given to a request's events; `last_seq` is below `first_seq` when it had none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Appended {
    pub first_seq: u64,
    pub last_seq: u64,
}

/// Nothing of the request was taken; the drafts come back.
#[derive(Debug)]
pub struct Refused {
    pub drafts: Vec<Draft>,
}

/// When an acknowledgement leaves.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// After the events behind it are on stable storage.
    Commit,
    /// When the events behind it are written; they are brought to stable storage this often.
    Interval { millis: u64 },
}

#[derive(Clone)]
pub struct LogOptions {
    /// The log's own directory, `<data>/log`; made when absent.
    pub directory: PathBuf,
    pub segment_bytes: u64,
    pub queue_bytes_max: usize,
    pub durability: Durability,
    /// Is told when the disk has no room, and may give some back.
    pub disk: Option<DiskWatch>,
    /// Version of the program, for the record.
    pub version: Symbol,
    pub clock: Arc<dyn Clock>,
}

impl LogOptions {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        Self {
            directory: directory.into(),
            segment_bytes: SEGMENT_BYTES,
            queue_bytes_max: QUEUE_BYTES_MAX,
            durability: Durability::Commit,
            disk: None,
            version: Symbol::fold(env!("CARGO_PKG_VERSION")),
            clock: Arc::new(SystemClock),
        }
    }
}

/// State of the log for readiness and metrics.
#[derive(Debug, Clone)]
pub struct LogHealth {
    /// Why the log no longer records; `None` while it does.
    pub unavailable: Option<String>,
    /// The disk had no room at the last attempt: what is waited for is refused, the rest waits.
    pub full: bool,
    pub durability: Durability,
    /// How long the oldest event has been acknowledged without being synced.
    pub unsynced_micros: Option<u64>,
    pub last_seq: u64,
    pub epoch: u64,
    pub queue_bytes: u64,
    pub commits: u64,
    pub synced_bytes: u64,
    pub fsync_seconds: f64,
    pub last_fsync_micros: u64,
}

/// A log open for appending. Cheap to clone; when the last clone goes, what was accepted is still
/// written and the writer ends, without the log being sealed.
#[derive(Clone)]
pub struct Log {
    inner: Arc<Inner>,
}

struct Inner {
    queue: Arc<Queue>,
    durable: watch::Receiver<Durable>,
    unclaimed: Arc<Unclaimed>,
    progress: Arc<Mutex<Progress>>,
    reader: Reader,
    epoch: u64,
    was_clean: bool,
    before_seq: u64,
    durability: Durability,
    writer: Mutex<Option<JoinHandle<()>>>,
    rewriter: Rewriter,
    lock: Mutex<Option<Arc<Lock>>>,
}

impl Log {
    /// Identity of the log, 12 of `0-9a-z`, the same for its whole life.
    #[must_use]
    pub fn log_id(&self) -> &str {
        self.inner.reader.log_id()
    }

    /// Whether the epoch before this one ended by an orderly close.
    #[must_use]
    pub fn was_clean(&self) -> bool {
        self.inner.was_clean
    }

    /// The last event that was recorded before this epoch, 0 when there was none.
    #[must_use]
    pub fn before_seq(&self) -> u64 {
        self.inner.before_seq
    }

    /// Appends `drafts`, together and in order, and waits until they are durable; with none, until
    /// everything accepted before is. Waits for room when the queue is full. The events are recorded
    /// even when the caller stops waiting, once they are in the queue.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log records no more; whether these events are durable is
    /// then not known. `StorageError::Full` when the disk has no room: nothing of them was written, and
    /// the log goes on once there is some. `StorageError::Limit` when they are more than the queue could ever hold.
    pub async fn commit(&self, drafts: Vec<Draft>) -> Result<Appended, StorageError> {
        let queue = &self.inner.queue;
        let (reply, appended) = oneshot::channel();
        let request = Request::new(drafts, Some(reply));
        queue.check_size(&request)?;
        queue.push_when_room(request).await?;
        appended.await.map_err(|_| queue.error())?
    }

    /// Appends `drafts` without waiting: they are durable a little later, unless the process or the
    /// log fails before.
    ///
    /// # Errors
    /// Gives the drafts back when the queue has no room for them or the log records no more.
    pub fn offer(&self, drafts: Vec<Draft>) -> Result<(), Refused> {
        let request = Request::new(drafts, None);
        if self.inner.queue.check_size(&request).is_err() {
            return Err(Refused { drafts: request.drafts });
        }
        let back = |refused: Box<NotAdmitted>| Refused { drafts: refused.request.drafts };
        self.inner.queue.push(request).map_err(back)
    }

    /// Waits until the queue is at most half full, or waiting would be of no use.
    pub async fn room(&self) {
        self.inner.queue.room().await;
    }

    /// Follows how far the log is durable. Closed when the writer has ended.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<Durable> {
        self.inner.durable.clone()
    }

    /// Seals the segment being written, with everything accepted before, and begins the next one.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log records no more.
    pub async fn roll(&self) -> Result<(), StorageError> {
        self.inner.queue.order(Order::Roll).await
    }

    /// Writes a sealed segment anew, compressed better and without the events whose fate that is; `fate`
    /// is asked for each event in order. Nothing changes until the outcome is installed. Blocks.
    ///
    /// # Errors
    /// `StorageError::Damaged` when the segment does not verify; it then stays as it is.
    /// `StorageError::Moved` when there is no sealed segment of that number;
    /// `StorageError::Unavailable` when the log records no more, or somebody else is at it already.
    pub fn rewrite(
        &self,
        number: u32,
        fate: &mut dyn FnMut(&EventView<'_>) -> Fate,
    ) -> Result<Rewritten, StorageError> {
        let lock = self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match lock {
            Some(lock) if self.inner.queue.unavailable().is_none() => self.inner.rewriter.rewrite(lock, number, fate),
            _ => Err(self.inner.queue.error()),
        }
    }

    /// Removes the segments before `number` for good; the one being written stays in any case.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log records no more; else a file that no longer counts could
    /// not be removed, and goes when the log is opened next.
    pub async fn drop_before(&self, number: u32) -> Result<(), StorageError> {
        self.inner.queue.order(Order::DropBefore(number)).await
    }

    /// Has what is written synced now; without durability by interval it is.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log records no more, `StorageError::Full` when something
    /// accepted before found no room on the disk.
    pub async fn sync(&self) -> Result<(), StorageError> {
        self.inner.queue.order(Order::Sync).await
    }

    /// What became durable of the hash chain since this was last asked; the first time, since the log
    /// was opened.
    #[must_use]
    pub fn take_chain(&self) -> Option<ChainProgress> {
        self.inner.unclaimed.take()
    }

    #[must_use]
    pub fn health(&self) -> LogHealth {
        let progress = self.inner.progress.lock().unwrap_or_else(PoisonError::into_inner).clone();
        LogHealth {
            unavailable: self.inner.queue.unavailable(),
            full: self.inner.queue.is_full(),
            durability: self.inner.durability,
            unsynced_micros: progress.unsynced_since.map(|since| micros(since.elapsed())),
            last_seq: self.inner.durable.borrow().last_seq,
            epoch: self.inner.epoch,
            queue_bytes: self.inner.queue.held_bytes() as u64,
            commits: progress.commits,
            synced_bytes: progress.synced_bytes,
            fsync_seconds: progress.fsync_seconds,
            last_fsync_micros: progress.last_fsync_micros,
        }
    }

    #[must_use]
    pub fn reader(&self) -> Reader {
        self.inner.reader.clone()
    }

    /// Writes what was accepted, records `log.sealed` and marks the log as closed in an orderly way;
    /// the lock is kept. Nothing can be appended afterwards; reading goes on. Sealing twice is fine.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log had failed or fails now; it is then not sealed.
    pub async fn seal(&self) -> Result<(), StorageError> {
        self.inner.queue.seal().await
    }

    /// Seals the log, unless that is done, and gives up the lock once nothing is being written anew.
    /// Closing twice is fine.
    ///
    /// # Errors
    /// As [`Log::seal`].
    pub async fn close(&self) -> Result<(), StorageError> {
        self.seal().await?;
        self.inner.lock.lock().unwrap_or_else(PoisonError::into_inner).take();
        Ok(())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.queue.abandon();
        let thread = self.writer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // It turns its own panics into a reason, so there is nothing to learn here.
            let _ = thread.join();
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

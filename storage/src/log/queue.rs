//! The way to the writer: bounded by bytes, in order of arrival.
//!
//! What must stay true: whoever is refused keeps the drafts and knows it; whoever waits is answered,
//! or learns why not; once the log is unavailable nothing is admitted any more.

use std::path::PathBuf;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use tokio::sync::{Notify, oneshot};

use super::Appended;
use super::admit::{admitted_bytes, replace_oversized};
use super::schedule::{Next, Schedule, Waiting};
use crate::StorageError;
use crate::event::Draft;

/// Orders that may wait; whoever gives one waits for it, so there are never many.
const ORDERS_MAX: usize = 16;

/// The reason given once the log was closed in an orderly way.
pub(super) const CLOSED: &str = "it is closed";

/// Drafts that belong together, and who waits for them.
pub(super) struct Request {
    pub drafts: Vec<Draft>,
    pub reply: Option<oneshot::Sender<Result<Appended, StorageError>>>,
    pub bytes: usize,
    pub arrived: Instant,
    /// What became of it, once that is settled.
    pub outcome: Option<Result<Appended, StorageError>>,
}

impl Request {
    pub fn new(drafts: Vec<Draft>, reply: Option<oneshot::Sender<Result<Appended, StorageError>>>) -> Self {
        let bytes = admitted_bytes(&drafts);
        Self { drafts, reply, bytes, arrived: Instant::now(), outcome: None }
    }

    /// Tells whoever waits what became of it.
    pub fn answer(self) {
        if let (Some(reply), Some(outcome)) = (self.reply, self.outcome) {
            // Whoever asked may have stopped waiting; what is written is durable all the same.
            let _ = reply.send(outcome);
        }
    }
}

/// Something to be done to the log besides appending.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// Seal the segment being written.
    Roll,
    /// Remove the segments before that number.
    DropBefore(u32),
    /// Sync what is written.
    Sync,
}

impl Order {
    /// Whether it is done only after everything before it found room on the disk.
    pub fn needs_room(self) -> bool {
        !matches!(self, Self::DropBefore(_))
    }
}

/// What the writer is to do next.
pub(super) enum Work {
    Commit(Vec<Request>),
    Order(Order, oneshot::Sender<Result<(), StorageError>>),
    /// It is time to sync what is written.
    Sync,
    /// The disk was full: see whether it has room again.
    Probe,
    /// Everything queued is written: seal the log and say so.
    Seal(oneshot::Sender<()>),
    /// Everything queued is written and nobody is left to ask for more.
    Stop,
}

/// A request that was not admitted comes back as it was.
pub(super) struct NotAdmitted {
    pub request: Request,
    pub why: Why,
}

pub(super) enum Why {
    /// No room at the moment.
    Full,
    /// No room in the queue, and none on the disk to empty it into.
    DiskFull(StorageError),
    Unavailable,
}

pub(super) struct Queue {
    state: Mutex<Schedule>,
    /// The writer waits here.
    work: Condvar,
    /// Producers wait here.
    room: Notify,
    bytes_max: usize,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Self {
        Self { state: Mutex::default(), work: Condvar::new(), room: Notify::new(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, Schedule> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits the request when there is room. One that is alone always finds room.
    pub fn push(&self, mut request: Request) -> Result<(), Box<NotAdmitted>> {
        let mut state = self.lock();
        if state.unavailable.is_some() {
            return Err(Box::new(NotAdmitted { request, why: Why::Unavailable }));
        }
        let held = state.held_bytes();
        if held > 0 && held + request.bytes > self.bytes_max {
            let why = state.full_error().map_or(Why::Full, Why::DiskFull);
            return Err(Box::new(NotAdmitted { request, why }));
        }
        replace_oversized(&mut request.drafts);
        request.arrived = Instant::now();
        let was_empty = state.is_empty();
        let was_ready = state.is_ready();
        state.push(request);
        // The writer is woken to set its alarm, and again when it is to act before it rings.
        let wake = was_empty || (state.is_ready() && !was_ready);
        drop(state);
        if wake {
            self.work.notify_one();
        }
        Ok(())
    }

    /// Admits the request as soon as there is room.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log records no more, `StorageError::Full` when there will be
    /// no room before there is some on the disk.
    pub async fn push_when_room(&self, mut request: Request) -> Result<(), StorageError> {
        loop {
            let freed = self.room.notified();
            tokio::pin!(freed);
            // From here on a notification counts, so none falls between the attempt and the wait.
            freed.as_mut().enable();
            match self.push(request) {
                Ok(()) => return Ok(()),
                Err(refused) => match refused.why {
                    Why::Unavailable => return Err(self.error()),
                    Why::DiskFull(error) => return Err(error),
                    Why::Full => request = refused.request,
                },
            }
            freed.await;
        }
    }

    /// Waits until the queue is below half its bound, or waiting would be of no use.
    pub async fn room(&self) {
        loop {
            let freed = self.room.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.has_room() {
                return;
            }
            freed.await;
        }
    }

    fn has_room(&self) -> bool {
        let state = self.lock();
        state.unavailable.is_some() || state.is_full() || state.held_bytes() <= self.bytes_max / 2
    }

    /// Blocks until there is something to do.
    pub fn take(&self) -> Work {
        let mut state = self.lock();
        loop {
            state = match state.next(Instant::now()) {
                Next::Commit => return Work::Commit(state.take_requests()),
                Next::Order(next) => return Work::Order(next.order, next.reply),
                Next::Sync => return Work::Sync,
                Next::Probe => return Work::Probe,
                Next::Seal(reply) => return Work::Seal(reply),
                Next::Stop => return Work::Stop,
                Next::Wait(Some(wait)) => self.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0,
                Next::Wait(None) => self.work.wait(state).unwrap_or_else(PoisonError::into_inner),
            };
        }
    }

    /// The requests last taken are written.
    pub fn written(&self) {
        self.lock().written();
        self.room.notify_waiters();
    }

    /// The disk at `path` had no room for all of the requests last taken: `left` are tried again.
    pub fn put_back(&self, left: Vec<Request>, path: PathBuf) {
        let mut state = self.lock();
        let refused: Vec<Waiting> = state.put_back(left, path);
        let error = |state: &Schedule| state.full_error().map_or(Ok(()), Err);
        let refused: Vec<_> = refused.into_iter().map(|waiting| (waiting.reply, error(&state))).collect();
        drop(state);
        for (reply, outcome) in refused {
            // Whoever gave the order may have stopped waiting.
            let _ = reply.send(outcome);
        }
        self.room.notify_waiters();
    }

    /// When what is written is to be synced.
    pub fn sync_at(&self, due: Option<Instant>) {
        self.lock().sync_due = due;
    }

    /// Nobody will append any more.
    pub fn is_ending(&self) -> bool {
        self.lock().is_ending()
    }

    /// Whether the last attempt to write found no room on the disk.
    pub fn is_full(&self) -> bool {
        self.lock().is_full()
    }

    /// Nothing is admitted from here on, and what waits is given up.
    pub fn fail(&self, reason: &str) {
        let mut state = self.lock();
        let given_up = std::mem::take(&mut *state);
        state.unavailable = Some(reason.to_owned());
        drop(state);
        // Whoever waited sees the reply vanish and reads the reason, which is already there.
        drop(given_up);
        self.room.notify_waiters();
    }

    /// Nothing is admitted from here on; what waits is still written, then the log is sealed.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log fails or has failed.
    pub async fn seal(&self) -> Result<(), StorageError> {
        let (reply, sealed) = oneshot::channel();
        {
            let mut state = self.lock();
            match &state.unavailable {
                // A second closing waits for nothing: the first one answers for the outcome.
                Some(reason) if reason == CLOSED => return Ok(()),
                Some(_) => drop(reply),
                None => {
                    state.unavailable = Some(CLOSED.into());
                    state.sealing = Some(reply);
                }
            }
        }
        self.work.notify_one();
        self.room.notify_waiters();
        sealed.await.map_err(|_| self.error())
    }

    /// Has the writer do something once everything queued by now is written, and waits for it.
    ///
    /// # Errors
    /// `StorageError::Unavailable` when the log fails or records no more, else what the order met.
    pub async fn order(&self, order: Order) -> Result<(), StorageError> {
        let (reply, done) = oneshot::channel();
        {
            let mut state = self.lock();
            if let Some(reason) = &state.unavailable {
                return Err(StorageError::Unavailable { reason: reason.clone() });
            }
            if state.orders() >= ORDERS_MAX {
                return Err(StorageError::Limit { name: "orders to the log's writer", limit: ORDERS_MAX as u64 });
            }
            state.push_order(order, reply);
        }
        self.work.notify_one();
        done.await.unwrap_or_else(|_| Err(self.error()))
    }

    /// A request that could never be admitted is refused at once.
    ///
    /// # Errors
    /// `StorageError::Limit` when it is larger than the whole queue.
    pub fn check_size(&self, request: &Request) -> Result<(), StorageError> {
        if request.bytes <= self.bytes_max {
            return Ok(());
        }
        Err(StorageError::Limit { name: "bytes of one append", limit: self.bytes_max as u64 })
    }

    /// Nobody is left to append: what waits is written, then the writer stops.
    pub fn abandon(&self) {
        self.lock().abandoned = true;
        self.work.notify_one();
    }

    pub fn unavailable(&self) -> Option<String> {
        self.lock().unavailable.clone()
    }

    pub fn error(&self) -> StorageError {
        let reason = self.unavailable().unwrap_or_else(|| "its writer stopped".into());
        StorageError::Unavailable { reason }
    }

    pub fn held_bytes(&self) -> usize {
        self.lock().held_bytes()
    }
}

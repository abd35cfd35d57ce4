//! What waits for the writer: bounded by bytes, in order of arrival.
//!
//! What must stay true: whoever is refused keeps the drafts and knows it; whoever waits is answered,
//! or learns why not; once the log is unavailable nothing is admitted any more.

use std::collections::VecDeque;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::{Notify, oneshot};

use super::Appended;
use super::admit::{admitted_bytes, replace_oversized};
use crate::StorageError;
use crate::event::Draft;
use crate::limits::{COMMIT_WINDOW_BYTES, COMMIT_WINDOW_EVENTS, COMMIT_WINDOW_MILLIS};

/// Requests beyond this many bytes wait for the next commit, so that one commit stays short. A
/// single request may be larger; it is never split.
const COMMIT_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Orders that may wait; whoever gives one waits for it, so there are never many.
const ORDERS_MAX: usize = 16;

/// The reason given once the log was closed in an orderly way.
pub(super) const CLOSED: &str = "it is closed";

/// Drafts that belong together, and who waits for them.
pub(super) struct Request {
    pub drafts: Vec<Draft>,
    pub reply: Option<oneshot::Sender<Appended>>,
    bytes: usize,
    arrived: Instant,
}

impl Request {
    pub fn new(drafts: Vec<Draft>, reply: Option<oneshot::Sender<Appended>>) -> Self {
        let bytes = admitted_bytes(&drafts);
        Self { drafts, reply, bytes, arrived: Instant::now() }
    }
}

/// Something to be done to the log besides appending.
#[derive(Debug, Clone, Copy)]
pub(super) enum Order {
    /// Seal the segment being written.
    Roll,
    /// Remove the segments before that number.
    DropBefore(u32),
}

/// What the writer is to do next.
pub(super) enum Work {
    Commit(Vec<Request>),
    Order(Order, oneshot::Sender<Result<(), StorageError>>),
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
    Unavailable,
}

pub(super) struct Queue {
    state: Mutex<State>,
    /// The writer waits here.
    work: Condvar,
    /// Producers wait here.
    room: Notify,
    bytes_max: usize,
}

#[derive(Default)]
struct State {
    requests: VecDeque<Request>,
    /// Of the requests that wait.
    waiting_bytes: usize,
    waiting_events: usize,
    awaited: usize,
    /// Of the requests being written.
    writing_bytes: usize,
    orders: VecDeque<Waiting>,
    sealing: Option<oneshot::Sender<()>>,
    abandoned: bool,
    /// Why nothing is admitted any more.
    unavailable: Option<String>,
}

/// An order in the queue.
struct Waiting {
    order: Order,
    reply: oneshot::Sender<Result<(), StorageError>>,
    /// Requests that came before it and are not taken yet.
    ahead: usize,
}

impl Queue {
    pub fn new(bytes_max: usize) -> Self {
        Self { state: Mutex::default(), work: Condvar::new(), room: Notify::new(), bytes_max }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Admits the request when there is room. One that is alone always finds room.
    pub fn push(&self, mut request: Request) -> Result<(), NotAdmitted> {
        let mut state = self.lock();
        if state.unavailable.is_some() {
            return Err(NotAdmitted { request, why: Why::Unavailable });
        }
        let held = state.held_bytes();
        if held > 0 && held + request.bytes > self.bytes_max {
            return Err(NotAdmitted { request, why: Why::Full });
        }
        replace_oversized(&mut request.drafts);
        request.arrived = Instant::now();
        let was_empty = state.requests.is_empty();
        let was_ready = state.is_ready();
        state.waiting_bytes += request.bytes;
        state.waiting_events += request.drafts.len();
        state.awaited += usize::from(request.reply.is_some());
        state.requests.push_back(request);
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
    /// `StorageError::Unavailable` when the log records no more.
    pub async fn push_when_room(&self, mut request: Request) -> Result<(), StorageError> {
        loop {
            let freed = self.room.notified();
            tokio::pin!(freed);
            // From here on a notification counts, so none falls between the attempt and the wait.
            freed.as_mut().enable();
            match self.push(request) {
                Ok(()) => return Ok(()),
                Err(NotAdmitted { why: Why::Unavailable, .. }) => return Err(self.error()),
                Err(refused) => request = refused.request,
            }
            freed.await;
        }
    }

    /// Waits until the queue is below half its bound, or the log records no more.
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
        state.unavailable.is_some() || state.held_bytes() <= self.bytes_max / 2
    }

    /// Blocks until there is something to do.
    pub fn take(&self) -> Work {
        let mut state = self.lock();
        loop {
            if state.orders.front().is_some_and(|next| next.ahead == 0)
                && let Some(next) = state.orders.pop_front()
            {
                return Work::Order(next.order, next.reply);
            }
            match state.wait_for_company() {
                Some(wait) if wait.is_zero() => return Work::Commit(state.take_requests()),
                Some(wait) => {
                    state = self.work.wait_timeout(state, wait).unwrap_or_else(PoisonError::into_inner).0;
                }
                None => {
                    if let Some(reply) = state.sealing.take() {
                        return Work::Seal(reply);
                    }
                    if state.abandoned {
                        return Work::Stop;
                    }
                    state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
                }
            }
        }
    }

    /// The requests last taken are written.
    pub fn written(&self) {
        self.lock().writing_bytes = 0;
        self.room.notify_waiters();
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
            if state.orders.len() >= ORDERS_MAX {
                return Err(StorageError::Limit { name: "orders to the log's writer", limit: ORDERS_MAX as u64 });
            }
            let ahead = state.requests.len();
            state.orders.push_back(Waiting { order, reply, ahead });
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

impl State {
    fn held_bytes(&self) -> usize {
        self.waiting_bytes + self.writing_bytes
    }

    /// Whether what waits is to be written now, without waiting for company.
    fn is_ready(&self) -> bool {
        !self.requests.is_empty()
            && (self.awaited > 0
                || self.waiting_events >= COMMIT_WINDOW_EVENTS
                || self.waiting_bytes >= COMMIT_WINDOW_BYTES
                || !self.orders.is_empty()
                || self.sealing.is_some()
                || self.abandoned)
    }

    /// How long what waits may still wait for company; `None` when nothing waits.
    fn wait_for_company(&self) -> Option<Duration> {
        let first = self.requests.front()?;
        if self.is_ready() {
            return Some(Duration::ZERO);
        }
        Some(Duration::from_millis(COMMIT_WINDOW_MILLIS).saturating_sub(first.arrived.elapsed()))
    }

    fn take_requests(&mut self) -> Vec<Request> {
        let mut taken = Vec::new();
        while let Some(next) = self.requests.front() {
            if !taken.is_empty() && self.writing_bytes + next.bytes > COMMIT_BYTES_MAX {
                break;
            }
            self.waiting_bytes -= next.bytes;
            self.writing_bytes += next.bytes;
            self.waiting_events -= next.drafts.len();
            self.awaited -= usize::from(next.reply.is_some());
            taken.extend(self.requests.pop_front());
        }
        for waiting in &mut self.orders {
            waiting.ahead -= taken.len().min(waiting.ahead);
        }
        taken
    }
}

//! What waits for the writer, and what it does next.
//!
//! What must stay true: requests keep their order; nothing ready waits for the clock; after a commit
//! that found no room on the disk nothing is tried again without a reason or a pause, so a full disk
//! does not keep the writer busy.

use std::collections::VecDeque;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tokio::sync::oneshot;

use super::queue::{Order, Request};
use crate::StorageError;
use crate::limits::{COMMIT_WINDOW_BYTES, COMMIT_WINDOW_EVENTS, COMMIT_WINDOW_MILLIS, FULL_RETRY_MILLIS};

/// Requests beyond this many bytes wait for the next commit, so that one commit stays short. A
/// single request may be larger; it is never split.
const COMMIT_BYTES_MAX: usize = 8 * 1024 * 1024;

#[derive(Default)]
pub(super) struct Schedule {
    requests: VecDeque<Request>,
    /// Of the requests that wait.
    waiting_bytes: usize,
    waiting_events: usize,
    awaited: usize,
    /// Of the requests being written.
    writing_bytes: usize,
    orders: VecDeque<Waiting>,
    pub sealing: Option<oneshot::Sender<()>>,
    pub abandoned: bool,
    /// Why nothing is admitted any more.
    pub unavailable: Option<String>,
    /// The last commit found no room on the disk.
    full: Option<Full>,
    /// When what was written is to be synced, where that does not come with each commit.
    pub sync_due: Option<Instant>,
}

/// A full disk, as the last attempt met it.
struct Full {
    path: PathBuf,
    try_again: Instant,
}

/// An order in the queue.
pub(super) struct Waiting {
    pub order: Order,
    pub reply: oneshot::Sender<Result<(), StorageError>>,
    /// Requests that came before it and are not taken yet.
    ahead: usize,
}

/// What the writer does next.
pub(super) enum Next {
    Commit,
    Order(Waiting),
    Sync,
    /// Nothing waits: see whether there is room on the disk by now.
    Probe,
    Seal(oneshot::Sender<()>),
    Stop,
    /// Nothing before so long, unless something comes.
    Wait(Option<Duration>),
}

impl Schedule {
    pub fn held_bytes(&self) -> usize {
        self.waiting_bytes + self.writing_bytes
    }

    pub fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Nobody will append any more.
    pub fn is_ending(&self) -> bool {
        self.sealing.is_some() || self.abandoned
    }

    pub fn is_full(&self) -> bool {
        self.full.is_some()
    }

    pub fn full_error(&self) -> Option<StorageError> {
        self.full.as_ref().map(|full| StorageError::Full { path: full.path.clone() })
    }

    pub fn push(&mut self, request: Request) {
        self.count(&request);
        self.requests.push_back(request);
    }

    fn count(&mut self, request: &Request) {
        self.waiting_bytes += request.bytes;
        self.waiting_events += request.drafts.len();
        self.awaited += usize::from(request.reply.is_some());
    }

    pub fn push_order(&mut self, order: Order, reply: oneshot::Sender<Result<(), StorageError>>) {
        self.orders.push_back(Waiting { order, reply, ahead: self.requests.len() });
    }

    pub fn orders(&self) -> usize {
        self.orders.len()
    }

    /// Whether what waits is to be written now, without waiting for company.
    pub fn is_ready(&self) -> bool {
        !self.requests.is_empty()
            && (self.awaited > 0
                || self.waiting_events >= COMMIT_WINDOW_EVENTS
                || self.waiting_bytes >= COMMIT_WINDOW_BYTES
                || !self.orders.is_empty()
                || self.is_ending())
    }

    pub fn next(&mut self, now: Instant) -> Next {
        if self.sync_due.is_some_and(|due| due <= now) {
            return Next::Sync;
        }
        if self.orders.front().is_some_and(|next| next.ahead == 0)
            && let Some(next) = self.orders.pop_front()
        {
            return Next::Order(next);
        }
        if self.requests.is_empty() {
            if let Some(reply) = self.sealing.take() {
                return Next::Seal(reply);
            }
            if self.abandoned {
                return Next::Stop;
            }
        }
        let after = |due: Instant| due.saturating_duration_since(now);
        let due = match (&self.full, self.requests.front()) {
            (Some(full), first) if self.awaited == 0 && self.orders.is_empty() && !self.is_ending() => {
                let due = after(full.try_again);
                if due.is_zero() {
                    return if first.is_some() { Next::Commit } else { Next::Probe };
                }
                Some(due)
            }
            (_, None) => None,
            (_, Some(_)) if self.is_ready() => return Next::Commit,
            (_, Some(first)) => {
                let due = after(first.arrived + Duration::from_millis(COMMIT_WINDOW_MILLIS));
                if due.is_zero() {
                    return Next::Commit;
                }
                Some(due)
            }
        };
        let sync = self.sync_due.map(after);
        Next::Wait(due.into_iter().chain(sync).min())
    }

    pub fn take_requests(&mut self) -> Vec<Request> {
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

    /// The requests last taken are written.
    pub fn written(&mut self) {
        self.writing_bytes = 0;
        self.full = None;
    }

    /// Of the requests last taken, `left` found no room on the disk; they go first next time.
    pub fn put_back(&mut self, left: Vec<Request>, path: PathBuf) -> Vec<Waiting> {
        self.writing_bytes = 0;
        for waiting in &mut self.orders {
            waiting.ahead += left.len();
        }
        for request in left.into_iter().rev() {
            self.count(&request);
            self.requests.push_front(request);
        }
        self.full = Some(Full { path, try_again: Instant::now() + Duration::from_millis(FULL_RETRY_MILLIS) });
        let orders = std::mem::take(&mut self.orders);
        let (needing, others) = orders.into_iter().partition(|waiting| waiting.order.needs_room());
        self.orders = others;
        // Making room must not wait for room.
        self.orders.iter_mut().for_each(|waiting| waiting.ahead = 0);
        Vec::from(needing)
    }
}

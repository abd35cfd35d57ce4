//! The thread that follows the log and signs how far its chain has come.
//!
//! What must stay true: the log never waits for it; a directory that cannot be written is told to
//! whoever asks and made up for as soon as it can be; what contradicts the newest checkpoint is never
//! signed. A checkpoint comes at the latest after so many events or so much time, never in quick
//! succession, now and then when nothing happens, and at the end behind the last event.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};

use super::book::BookError;
use super::key::PublicKey;
use super::scribe::Scribe;
use crate::StorageError;
use crate::limits::{CHECKPOINT_APART_MILLIS, CHECKPOINT_EVENTS, CHECKPOINT_IDLE_SECONDS, CHECKPOINT_SECONDS};
use crate::log::Log;
use crate::time::{Clock, SystemClock};

/// Orders that may wait; whoever gives one waits for its answer.
const ORDERS_MAX: usize = 16;

#[derive(Clone)]
pub struct AuditOptions {
    /// `<data>/audit`; made when absent.
    pub directory: PathBuf,
    pub pace: Pace,
    pub clock: Arc<dyn Clock>,
}

/// When checkpoints are made.
#[derive(Debug, Clone, Copy)]
pub struct Pace {
    /// After this many events that are not the auditor's own.
    pub events: u64,
    /// When there was any such event since this long.
    pub within: Duration,
    /// Never sooner after one another than this.
    pub apart: Duration,
    /// When nothing happened for this long.
    pub idle: Duration,
}

impl AuditOptions {
    #[must_use]
    pub fn new(directory: impl Into<PathBuf>) -> Self {
        let pace = Pace {
            events: CHECKPOINT_EVENTS,
            within: Duration::from_secs(CHECKPOINT_SECONDS),
            apart: Duration::from_millis(CHECKPOINT_APART_MILLIS),
            idle: Duration::from_secs(CHECKPOINT_IDLE_SECONDS),
        };
        Self { directory: directory.into(), pace, clock: Arc::new(SystemClock) }
    }
}

/// How the auditor does.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AuditHealth {
    /// Who signs; `None` when the key could not be read yet.
    pub key: Option<PublicKey>,
    /// The last event that a checkpoint covers, 0 when there is none.
    pub signed_seq: u64,
    pub signed_at_micros: Option<i64>,
    /// Checkpoints made since the start.
    pub checkpoints: u64,
    /// What was signed before is gone, in words; it is signed anew.
    pub lost: Option<String>,
    /// Why nothing can be signed at the moment.
    pub failing: Option<String>,
}

/// Signs the log's chain. Cheap to clone; the thread ends when the last clone goes.
#[derive(Clone)]
pub struct Auditor {
    inner: Arc<Inner>,
}

struct Inner {
    orders: Option<mpsc::Sender<Order>>,
    health: Arc<Mutex<AuditHealth>>,
    thread: Option<JoinHandle<()>>,
}

pub(super) enum Order {
    Cover(u64, oneshot::Sender<Result<(), StorageError>>),
    ChangeKey(oneshot::Sender<Result<PublicKey, StorageError>>),
    Close(oneshot::Sender<()>),
}

impl Auditor {
    /// Compares the log with its newest checkpoint, signs what came since, and goes on doing so.
    ///
    /// # Errors
    /// `StorageError::Damaged` when the log contradicts its newest checkpoint. A directory that cannot
    /// be used is no error: [`Auditor::health`] tells.
    pub fn start(log: Log, options: AuditOptions) -> Result<Auditor, StorageError> {
        let health = Arc::new(Mutex::default());
        let directory = options.directory.clone();
        let mut scribe = Scribe::new(log, options, health.clone());
        match scribe.pass(true) {
            Err(BookError::Contradicted(error)) => return Err(error),
            outcome => scribe.settle(outcome),
        }
        let (orders, received) = mpsc::channel(ORDERS_MAX);
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_time()
            .build()
            .map_err(StorageError::io("wait for", &directory))?;
        let thread = std::thread::Builder::new()
            .name("log-audit".into())
            .spawn(move || runtime.block_on(scribe.run(received)))
            .map_err(StorageError::io("start a thread for", &directory))?;
        Ok(Self { inner: Arc::new(Inner { orders: Some(orders), health, thread: Some(thread) }) })
    }

    #[must_use]
    pub fn health(&self) -> AuditHealth {
        lock(&self.inner.health).clone()
    }

    /// Waits until a checkpoint covers event `seq`.
    ///
    /// # Errors
    /// When none can be made now.
    pub async fn cover(&self, seq: u64) -> Result<(), StorageError> {
        self.ask(|reply| Order::Cover(seq, reply)).await?
    }

    /// Puts a new key in force and destroys the old one; returns the new one's public half.
    ///
    /// # Errors
    /// When the key cannot be changed now.
    pub async fn change_key(&self) -> Result<PublicKey, StorageError> {
        self.ask(Order::ChangeKey).await?
    }

    /// Signs what the log holds at its end and stops. To be called when the log is sealed and its lock
    /// still held. Closing twice is fine.
    pub async fn close(&self) {
        // One that has stopped already has nothing left to sign.
        let _ = self.ask(Order::Close).await;
    }

    async fn ask<T>(&self, order: impl FnOnce(oneshot::Sender<T>) -> Order) -> Result<T, StorageError> {
        let stopped = || StorageError::Unavailable { reason: "the auditor has stopped".into() };
        let (reply, answer) = oneshot::channel();
        let orders = self.inner.orders.as_ref().ok_or_else(stopped)?;
        orders.send(order(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // Its own panic has already been told by health that stopped changing.
            let _ = thread.join();
        }
    }
}

pub(super) fn lock(health: &Mutex<AuditHealth>) -> MutexGuard<'_, AuditHealth> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

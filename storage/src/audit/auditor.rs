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
use tokio::time::Instant;

use super::book::{Book, BookError, Moment};
use super::checkpoint::hex;
use super::key::PublicKey;
use crate::StorageError;
use crate::event::catalog::{LogCheckpoint, LogKeyChanged, LogRecovered};
use crate::event::{Clean, Context, Draft, Symbol};
use crate::limits::{
    CHECKPOINT_APART_MILLIS, CHECKPOINT_EVENTS, CHECKPOINT_IDLE_SECONDS, CHECKPOINT_RETRY_SECONDS_MAX,
    CHECKPOINT_SECONDS,
};
use crate::log::Log;
use crate::log::chain::ChainProgress;
use crate::time::{Clock, SystemClock};

/// Orders that may wait; whoever gives one waits for its answer.
const ORDERS_MAX: usize = 16;
/// What is not on stable storage yet is looked for again this soon.
const COVER_LOOK: Duration = Duration::from_millis(20);

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

enum Order {
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

fn lock(health: &Mutex<AuditHealth>) -> MutexGuard<'_, AuditHealth> {
    health.lock().unwrap_or_else(PoisonError::into_inner)
}

struct Scribe {
    log: Log,
    options: AuditOptions,
    health: Arc<Mutex<AuditHealth>>,
    book: Option<Book>,
    /// What became durable and is not in the book yet.
    news: Option<ChainProgress>,
    /// Events of its own behind the newest checkpoint.
    own_events: u64,
    signed_at: Instant,
    /// Failures in a row, and when to try again.
    failures: u32,
    retry_at: Instant,
    covering: Vec<(u64, oneshot::Sender<Result<(), StorageError>>)>,
}

impl Scribe {
    fn new(log: Log, options: AuditOptions, health: Arc<Mutex<AuditHealth>>) -> Self {
        let now = Instant::now();
        Self {
            log,
            options,
            health,
            book: None,
            news: None,
            own_events: 0,
            signed_at: now,
            failures: 0,
            retry_at: now,
            covering: Vec::new(),
        }
    }

    async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
        let mut durable = self.log.watch();
        let mut passed_at = Instant::now();
        let mut growing = true;
        loop {
            let rested = Instant::now() >= passed_at + self.options.pace.apart;
            let until = match self.covering.is_empty() {
                false => Instant::now() + COVER_LOOK,
                true if rested => self.due_at(),
                true => passed_at + self.options.pace.apart,
            };
            tokio::select! {
                order = orders.recv() => match order {
                    None => return,
                    Some(Order::Close(reply)) => {
                        let outcome = self.pass(true);
                        self.settle(outcome);
                        // Whoever closes may have stopped waiting.
                        let _ = reply.send(());
                        return;
                    }
                    Some(Order::Cover(seq, reply)) => self.covering.push((seq, reply)),
                    Some(Order::ChangeKey(reply)) => {
                        let _ = reply.send(self.change_key().await);
                    }
                },
                changed = durable.changed(), if rested && growing => growing = changed.is_ok(),
                () = tokio::time::sleep_until(until) => {}
            }
            if self.covering.is_empty() && Instant::now() < passed_at + self.options.pace.apart {
                continue;
            }
            passed_at = Instant::now();
            if passed_at >= self.retry_at || !self.covering.is_empty() {
                let outcome = self.pass(!self.covering.is_empty());
                self.settle(outcome);
            }
        }
    }

    /// When there is something to do even if nothing happens.
    fn due_at(&self) -> Instant {
        let pace = &self.options.pace;
        if self.failures > 0 {
            return self.retry_at;
        }
        self.signed_at + if self.uncovered() > 0 { pace.within } else { pace.idle }
    }

    /// Events that no checkpoint covers and that are not the auditor's own.
    fn uncovered(&self) -> u64 {
        let signed = self.book.as_ref().map_or(0, |book| book.signed().seq);
        self.log.watch().borrow().last_seq.saturating_sub(signed).saturating_sub(self.own_events)
    }

    /// Takes in what became durable, and signs it when it is time to or `at_once`.
    fn pass(&mut self, at_once: bool) -> Result<(), BookError> {
        let reader = self.log.reader();
        if let Some(claimed) = self.log.take_chain() {
            // What was not taken in before is read from the log again.
            let trail = claimed.trail.filter(|_| self.news.is_none());
            self.news = Some(ChainProgress { trail, ..claimed });
        }
        if self.book.is_none() {
            let durable = *self.log.watch().borrow();
            let book = Book::open(&self.options.directory, &reader, &durable)?;
            self.tell_torn(book.torn_bytes);
            self.book = Some(book);
        }
        let Some(book) = &mut self.book else { return Ok(()) };
        if let Some(news) = &self.news {
            book.follow(news, &reader)?;
            self.news = None;
        }
        let (grown, begun) = (book.at().seq > book.signed().seq, book.has_lines());
        if !grown && begun {
            return Ok(());
        }
        let since = self.signed_at.elapsed();
        let pace = self.options.pace;
        let uncovered = self.uncovered();
        let due = uncovered >= pace.events || (uncovered > 0 && since >= pace.within) || since >= pace.idle;
        if due || at_once {
            self.sign()?;
        }
        Ok(())
    }

    fn sign(&mut self) -> Result<(), StorageError> {
        let (reader, health) = (self.log.reader(), self.log.health());
        let at_micros = self.options.clock.now_micros();
        let Some(book) = &mut self.book else { return Ok(()) };
        let moment = Moment { epoch: health.epoch, at_micros, oldest_seq: reader.first_seq() };
        let (checkpoint, line) = book.sign(&moment)?;
        let event = LogCheckpoint {
            through_seq: checkpoint.seq,
            chain: Clean::redacted(hex(&checkpoint.chain)),
            key_id: Clean::redacted(book.public_key().to_string()),
            jws: Clean::redacted(line),
        };
        self.signed_at = Instant::now();
        self.own_events = 0;
        {
            let mut health = lock(&self.health);
            health.signed_seq = checkpoint.seq;
            health.signed_at_micros = Some(at_micros);
            health.checkpoints += 1;
        }
        self.record(Draft::new(&Context::default(), &event));
        Ok(())
    }

    /// The line beside the log is what counts: when the queue is full or the log is sealed, it stands
    /// without its event, and the next line binds it.
    fn record(&mut self, draft: Draft) {
        if self.log.offer(vec![draft]).is_ok() {
            self.own_events += 1;
        }
    }

    fn tell_torn(&mut self, torn_bytes: u64) {
        if torn_bytes > 0 {
            let recovered = LogRecovered {
                what: Symbol::fold("checkpoint_torn"),
                bytes_cut: Some(torn_bytes),
                kept_as: None,
                detail: None,
            };
            self.record(Draft::new(&Context::default(), &recovered));
        }
    }

    async fn change_key(&mut self) -> Result<PublicKey, StorageError> {
        self.pass(true).map_err(BookError::into_inner)?;
        let unavailable = || StorageError::Unavailable { reason: "the audit directory cannot be used".into() };
        let book = self.book.as_mut().ok_or_else(unavailable)?;
        let changed = book.change_key(self.options.clock.now_micros());
        let (old, next, line) = changed.inspect_err(|_| self.book = None)?;
        let event = LogKeyChanged {
            old_key_id: Clean::redacted(old.to_string()),
            new_key_id: Clean::redacted(next.to_string()),
            new_public_key: Clean::redacted(next.to_string()),
            jws: Clean::redacted(line),
        };
        self.log.commit(vec![Draft::new(&Context::default(), &event)]).await?;
        let outcome = self.pass(true);
        self.settle(outcome);
        Ok(next)
    }

    /// Notes how it went, and answers those who wait for it.
    fn settle(&mut self, outcome: Result<(), BookError>) {
        let failing = outcome.err().map(|error| error.into_inner().to_string());
        if let Some(reason) = &failing {
            // Whatever was half done is found out when the book is opened again.
            self.book = None;
            if let Some(news) = &mut self.news {
                news.trail = None;
            }
            if self.failures == 0 {
                tracing::warn!(reason, "no checkpoint can be signed; it is tried again");
            }
            let wait = 1u64.checked_shl(self.failures).unwrap_or(u64::MAX).min(CHECKPOINT_RETRY_SECONDS_MAX);
            self.failures = self.failures.saturating_add(1);
            self.retry_at = Instant::now() + Duration::from_secs(wait);
        } else {
            if self.failures > 0 {
                tracing::info!("checkpoints are signed again");
            }
            self.failures = 0;
        }
        let reached = self.book.as_ref().map(|book| book.signed().seq);
        for (seq, reply) in std::mem::take(&mut self.covering) {
            let ended = self.log.health().unavailable.filter(|_| self.log.watch().borrow().last_seq < seq);
            let answer = match (reached, failing.clone().or(ended)) {
                (Some(reached), _) if reached >= seq => Ok(()),
                (_, Some(reason)) => Err(StorageError::Unavailable { reason }),
                _ => {
                    self.covering.push((seq, reply));
                    continue;
                }
            };
            // Whoever asked may have stopped waiting.
            let _ = reply.send(answer);
        }
        let mut health = lock(&self.health);
        if let Some(book) = &self.book {
            health.key = Some(book.public_key());
            health.signed_seq = book.signed().seq;
        }
        health.failing = failing;
    }
}

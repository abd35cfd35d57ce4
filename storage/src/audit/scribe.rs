//! The auditor's work: when to sign, what to record of it, and what to do when it fails.
//!
//! What must stay true: an event of its own is never a reason to sign again; after a failure the files
//! are opened anew, and what became durable meanwhile is read from the log; what an earlier run left
//! unsigned is on record as that before it is signed.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::arrears::Arrears;
use super::auditor::{AuditHealth, AuditOptions, Order, lock};
use super::book::{Book, BookError, Moment};
use super::checkpoint::hex;
use super::key::PublicKey;
use super::lines::{CHECKPOINTS_FILE, newest_checkpoint};
use crate::StorageError;
use crate::event::catalog::{LogCheckpoint, LogKeyChanged, LogRecovered};
use crate::event::{Clean, Context, Draft, Symbol};
use crate::limits::CHECKPOINT_RETRY_SECONDS_MAX;
use crate::log::Log;
use crate::log::chain::ChainProgress;

/// What is not on stable storage yet is looked for again this soon.
const COVER_LOOK: Duration = Duration::from_millis(20);

pub(super) struct Scribe {
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
    arrears_told: bool,
    covering: Vec<(u64, oneshot::Sender<Result<(), StorageError>>)>,
}

impl Scribe {
    pub fn new(log: Log, options: AuditOptions, health: Arc<Mutex<AuditHealth>>) -> Self {
        let now = Instant::now();
        // What was signed before is told also where nothing can be signed now.
        let before = newest_checkpoint(&options.directory.join(CHECKPOINTS_FILE)).ok().flatten();
        if let Some(before) = before.filter(|before| before.log_id == log.log_id()) {
            let mut health = lock(&health);
            (health.signed_seq, health.signed_at_micros) = (before.seq, Some(before.at_micros));
        }
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
            arrears_told: false,
            covering: Vec::new(),
        }
    }

    /// Until the last order, or until nobody is left to give one.
    pub async fn run(mut self, mut orders: mpsc::Receiver<Order>) {
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
    pub fn pass(&mut self, at_once: bool) -> Result<(), BookError> {
        let reader = self.log.reader();
        if self.book.is_none() {
            let durable = *self.log.watch().borrow();
            let book = Book::open(&self.options.directory, &reader, &durable)?;
            self.tell_torn(book.torn_bytes);
            self.tell_arrears(&book)?;
            self.book = Some(book);
        }
        if let Some(claimed) = self.log.take_chain() {
            // What was not taken in before is read from the log again.
            let trail = claimed.trail.filter(|_| self.news.is_none());
            self.news = Some(ChainProgress { trail, ..claimed });
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
        if due || at_once || !begun {
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

    /// Puts on record, durably, what nobody signed when it was recorded.
    fn tell_arrears(&mut self, book: &Book) -> Result<(), StorageError> {
        let signed_seq = book.has_lines().then_some(book.signed().seq);
        if self.arrears_told && signed_seq.is_some() {
            return Ok(());
        }
        if let Some(arrears) = Arrears::of(&self.log, signed_seq)? {
            commit_now(&self.log, arrears.draft())?;
            arrears.tell();
            if matches!(arrears, Arrears::Lost { .. }) {
                lock(&self.health).lost = Some(arrears.in_words());
            }
        }
        self.arrears_told = true;
        Ok(())
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
    pub fn settle(&mut self, outcome: Result<(), BookError>) {
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

/// Waits until `draft` is on stable storage, on a thread of its own: whoever starts the auditor may be
/// in the middle of something asynchronous.
fn commit_now(log: &Log, draft: Draft) -> Result<(), StorageError> {
    let wait = || {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let runtime = runtime.map_err(|error| StorageError::Unavailable { reason: error.to_string() })?;
        runtime.block_on(async {
            log.commit(vec![draft]).await?;
            log.sync().await
        })
    };
    let waited = std::thread::scope(|scope| scope.spawn(wait).join());
    waited.unwrap_or_else(|_| Err(StorageError::Unavailable { reason: "waiting for the log panicked".into() }))
}

//! Events between the reader and the collector: one ordered queue, bounded in bytes.
//!
//! A full queue first slows the reader, and through the kernel's pipe Chromium itself; when that
//! does not help in time, noise is shed and counted, so that replies keep flowing. What the state of
//! pages depends on may use twice the room.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::Notify;

use super::connection::SessionKey;

/// Bytes of events that may wait for the collector.
const QUEUE_BYTES_MAX: usize = 64 * 1024 * 1024;
/// How long the reader waits for room before it sheds.
const ROOM_WAIT: Duration = Duration::from_millis(500);
/// What an event costs beside its parameters.
const EVENT_OVERHEAD_BYTES: usize = 128;
/// Methods whose losses are counted apart; further ones count together.
const LOSS_KEYS_MAX: usize = 256;
/// What the state of pages is made from.
const STATE_METHODS: [&str; 5] = ["Target.", "Page.", "Inspector.", "Browser.", "Runtime.executionContext"];

/// One event as it arrived.
#[derive(Debug)]
pub struct Incoming {
    /// Counts arrivals of this connection, from 1.
    pub arrival: u64,
    pub session: Option<SessionKey>,
    pub method: Arc<str>,
    pub params: Box<RawValue>,
}

impl Incoming {
    fn bytes(&self) -> usize {
        self.params.get().len() + EVENT_OVERHEAD_BYTES
    }
}

/// Events lost and not yet declared: method and reason, how many.
pub type Losses = BTreeMap<(String, &'static str), u64>;

/// The queue. One producer, one consumer.
#[derive(Default)]
pub struct EventQueue {
    inner: Mutex<Inner>,
    filled: Notify,
    emptied: Notify,
}

#[derive(Default)]
struct Inner {
    events: VecDeque<Incoming>,
    bytes: usize,
    arrived: u64,
    shedding: bool,
    closed: bool,
    losses: Losses,
}

impl EventQueue {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts an event in, waiting a bounded time for room and shedding it after that.
    pub async fn send(&self, session: Option<SessionKey>, method: Arc<str>, params: Box<RawValue>) {
        let essential = STATE_METHODS.iter().any(|prefix| method.starts_with(prefix));
        let bytes_max = if essential { QUEUE_BYTES_MAX * 2 } else { QUEUE_BYTES_MAX };
        if self.full(bytes_max) {
            let room = async {
                while self.full(bytes_max) {
                    self.emptied.notified().await;
                }
            };
            let patient = !self.lock().shedding;
            if !patient || tokio::time::timeout(ROOM_WAIT, room).await.is_err() {
                self.lock().shedding = true;
                self.lose(&method, "queue_full");
                return;
            }
        }
        let mut inner = self.lock();
        inner.arrived += 1;
        let event = Incoming { arrival: inner.arrived, session, method, params };
        inner.bytes += event.bytes();
        inner.events.push_back(event);
        drop(inner);
        self.filled.notify_one();
    }

    fn full(&self, bytes_max: usize) -> bool {
        self.lock().bytes >= bytes_max
    }

    /// Counts something that arrived and cannot be passed on.
    pub fn lose(&self, method: &str, reason: &'static str) {
        let mut inner = self.lock();
        let known = inner.losses.len() < LOSS_KEYS_MAX || inner.losses.contains_key(&(method.to_owned(), reason));
        let method = if known { method } else { "other" };
        *inner.losses.entry((method.to_owned(), reason)).or_default() += 1;
        drop(inner);
        self.filled.notify_one();
    }

    /// Waits for events or losses and moves up to `events_max` events out; false when the
    /// connection has ended and nothing is left.
    pub async fn receive(&self, events: &mut Vec<Incoming>, losses: &mut Losses, events_max: usize) -> bool {
        loop {
            {
                let mut inner = self.lock();
                let lost = !inner.losses.is_empty();
                for (key, count) in std::mem::take(&mut inner.losses) {
                    *losses.entry(key).or_default() += count;
                }
                let count = inner.events.len().min(events_max);
                events.extend(inner.events.drain(..count));
                inner.bytes -= events[events.len() - count..].iter().map(Incoming::bytes).sum::<usize>();
                if inner.bytes < QUEUE_BYTES_MAX / 2 {
                    inner.shedding = false;
                }
                if count > 0 || lost {
                    self.emptied.notify_one();
                    return true;
                }
                if inner.closed {
                    return false;
                }
            }
            self.filled.notified().await;
        }
    }

    /// Number of the last event that was put in.
    #[must_use]
    pub fn arrived(&self) -> u64 {
        self.lock().arrived
    }

    /// No more events will come.
    pub fn close(&self) {
        self.lock().closed = true;
        self.filled.notify_one();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(bytes: usize) -> Box<RawValue> {
        RawValue::from_string(format!("\"{}\"", "x".repeat(bytes))).expect("a string of letters is JSON")
    }

    #[tokio::test]
    async fn a_full_queue_sheds_noise_and_says_so() {
        let queue = EventQueue::default();
        queue.send(None, "Runtime.consoleAPICalled".into(), raw(QUEUE_BYTES_MAX)).await;
        queue.send(None, "Runtime.consoleAPICalled".into(), raw(10)).await;
        queue.send(None, "Target.detachedFromTarget".into(), raw(10)).await;
        queue.close();
        let (mut events, mut losses) = (Vec::new(), Losses::new());
        while queue.receive(&mut events, &mut losses, 1).await {}
        let methods: Vec<_> = events.iter().map(|event| (event.arrival, &*event.method)).collect();
        assert_eq!(methods, [(1, "Runtime.consoleAPICalled"), (2, "Target.detachedFromTarget")]);
        assert_eq!(losses, Losses::from([(("Runtime.consoleAPICalled".to_owned(), "queue_full"), 1)]));
    }
}

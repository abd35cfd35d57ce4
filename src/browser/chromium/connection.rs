//! Commands and replies: one connection per browser, shared by all its sessions.
//!
//! Replies are completed by the reader before the events behind them are queued, so a full event
//! queue cannot hold up a command. No message ends the connection: what cannot be read is counted
//! and passed over. Every command ends: by its reply, its deadline, or the end of its target.

use std::collections::HashMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use chromiumoxide_types::Command;
use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::{Semaphore, mpsc, oneshot, watch};

use super::queue::EventQueue;
use super::reader;
use crate::deadline::Deadline;

/// Commands that may wait for their reply at one time; further ones queue for a place.
const PENDING_MAX: usize = 1024;
/// Bytes that may wait for Chromium to read them; beyond it the browser counts as lost.
const OUTBOUND_BYTES_MAX: usize = 128 * 1024 * 1024;
/// One command; Chromium closes the pipe over messages of 100 MB.
const COMMAND_BYTES_MAX: usize = 64 * 1024 * 1024;
/// Messages written to the pipe in one go.
const WRITE_BATCH: usize = 64;

/// Chromium's name for one attached target.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct SessionKey(Arc<str>);

impl SessionKey {
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for SessionKey {
    fn from(text: &str) -> Self {
        Self(Arc::from(text))
    }
}

impl fmt::Debug for SessionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why a command has no result.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CdpError {
    /// Chromium refused.
    #[error("{message} ({code})")]
    Protocol { code: i64, message: String },
    /// The deadline came first.
    #[error("Chromium did not answer in time")]
    Timeout,
    /// The connection or the target is gone.
    #[error("the browser or its page is gone")]
    Closed,
    /// The command or its reply is over the bound of one message.
    #[error("the message is too large")]
    TooLarge,
    /// The reply is no JSON that can be represented, for example nested too deeply.
    #[error("the reply cannot be decoded")]
    Undecodable,
}

type Reply = Result<Box<RawValue>, CdpError>;

struct Waiter {
    session: Option<SessionKey>,
    reply: oneshot::Sender<Reply>,
}

/// The way to one browser. Cheap to clone.
#[derive(Clone)]
pub struct Connection {
    inner: Arc<Inner>,
}

struct Inner {
    // Unbounded in count, bounded in bytes by `outbound_bytes`: posting must not wait.
    outbound: mpsc::UnboundedSender<Vec<u8>>,
    outbound_bytes: AtomicUsize,
    next_id: AtomicU64,
    places: Semaphore,
    pending: Mutex<HashMap<u64, Waiter>>,
    closed: watch::Sender<Option<String>>,
}

#[derive(Serialize)]
struct Outgoing<'a> {
    id: u64,
    method: &'a str,
    #[serde(rename = "sessionId", skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    params: &'a Value,
}

impl Connection {
    /// Starts reading and writing. Events go to `queue`, in order of arrival.
    #[must_use]
    pub fn start(
        input: Box<dyn AsyncRead + Send + Unpin>,
        output: Box<dyn AsyncWrite + Send + Unpin>,
        queue: Arc<EventQueue>,
        message_bytes_max: usize,
    ) -> Self {
        let (outbound, messages) = mpsc::unbounded_channel();
        let (closed, _) = watch::channel(None);
        let inner = Inner {
            outbound,
            outbound_bytes: AtomicUsize::new(0),
            next_id: AtomicU64::new(1),
            places: Semaphore::new(PENDING_MAX),
            pending: Mutex::default(),
            closed,
        };
        let connection = Self { inner: Arc::new(inner) };
        tokio::spawn(write(connection.clone(), output, messages));
        tokio::spawn(reader::run(connection.clone(), input, queue, message_bytes_max));
        connection
    }

    /// Runs a typed command and gives its result as JSON.
    ///
    /// # Errors
    /// See [`CdpError`].
    pub async fn execute<C: Command>(
        &self,
        session: Option<&SessionKey>,
        command: &C,
        deadline: Deadline,
    ) -> Result<Value, CdpError> {
        let params = serde_json::to_value(command).map_err(|_| CdpError::Undecodable)?;
        self.raw(session, &command.identifier(), params, deadline).await
    }

    /// Runs a command by name and gives its result as JSON.
    ///
    /// # Errors
    /// See [`CdpError`].
    pub async fn raw(
        &self,
        session: Option<&SessionKey>,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Value, CdpError> {
        let result = self.raw_text(session, method, params, deadline).await?;
        super::envelope::parse(&result).ok_or(CdpError::Undecodable)
    }

    /// Runs a command by name and gives its result as unparsed JSON text: for large results.
    ///
    /// # Errors
    /// See [`CdpError`].
    pub async fn raw_text(
        &self,
        session: Option<&SessionKey>,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Box<RawValue>, CdpError> {
        deadline.bound(self.call(session, method, &params)).await.unwrap_or(Err(CdpError::Timeout))
    }

    /// Sends a command whose answer nobody needs. Commands of one session are run in order, so it
    /// comes before whatever is sent after it.
    pub fn post(&self, session: Option<&SessionKey>, method: &str, params: Value) {
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        // A closed connection says so to whoever waits for something; here nobody does.
        let _ = self.send(id, session, method, &params);
    }

    /// Becomes `Some(reason)` when the connection has ended.
    #[must_use]
    pub fn closed(&self) -> watch::Receiver<Option<String>> {
        self.inner.closed.subscribe()
    }

    async fn call(&self, session: Option<&SessionKey>, method: &str, params: &Value) -> Reply {
        let _place = self.inner.places.acquire().await.map_err(|_| CdpError::Closed)?;
        let id = self.inner.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, answer) = oneshot::channel();
        self.pending().insert(id, Waiter { session: session.cloned(), reply });
        let _forget = Forget { connection: self, id };
        self.send(id, session, method, params)?;
        answer.await.unwrap_or(Err(CdpError::Closed))
    }

    fn send(&self, id: u64, session: Option<&SessionKey>, method: &str, params: &Value) -> Result<(), CdpError> {
        let outgoing = Outgoing { id, method, session: session.map(SessionKey::as_str), params };
        let mut message = serde_json::to_vec(&outgoing).map_err(|_| CdpError::Undecodable)?;
        message.push(0);
        if message.len() > COMMAND_BYTES_MAX {
            return Err(CdpError::TooLarge);
        }
        if self.inner.closed.borrow().is_some() {
            return Err(CdpError::Closed);
        }
        let waiting = self.inner.outbound_bytes.fetch_add(message.len(), Ordering::Relaxed);
        if waiting > OUTBOUND_BYTES_MAX {
            self.end("Chromium stopped reading commands");
            return Err(CdpError::Closed);
        }
        self.inner.outbound.send(message).map_err(|_| CdpError::Closed)
    }

    fn pending(&self) -> MutexGuard<'_, HashMap<u64, Waiter>> {
        self.inner.pending.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn complete(&self, id: u64, reply: Reply) {
        let waiter = self.pending().remove(&id);
        if let Some(waiter) = waiter {
            // Whoever asked may have given up meanwhile.
            let _ = waiter.reply.send(reply);
        }
    }

    /// Ends every command that waits for `session`: its target is gone and will not answer.
    pub(crate) fn end_session(&self, session: &SessionKey) {
        let mut pending = self.pending();
        let lost: Vec<u64> =
            pending.iter().filter(|(_, waiter)| waiter.session.as_ref() == Some(session)).map(|(id, _)| *id).collect();
        for id in lost {
            if let Some(waiter) = pending.remove(&id) {
                let _ = waiter.reply.send(Err(CdpError::Closed));
            }
        }
    }

    /// Ends the connection for everybody; the first reason stays.
    pub(crate) fn end(&self, reason: &str) {
        self.inner.closed.send_if_modified(|closed| {
            let first = closed.is_none();
            if first {
                *closed = Some(reason.to_owned());
            }
            first
        });
        let lost = std::mem::take(&mut *self.pending());
        for waiter in lost.into_values() {
            let _ = waiter.reply.send(Err(CdpError::Closed));
        }
    }
}

/// Takes a command off the list when its caller stops waiting.
struct Forget<'a> {
    connection: &'a Connection,
    id: u64,
}

impl Drop for Forget<'_> {
    fn drop(&mut self) {
        self.connection.pending().remove(&self.id);
    }
}

async fn write(
    connection: Connection,
    mut output: Box<dyn AsyncWrite + Send + Unpin>,
    mut messages: mpsc::UnboundedReceiver<Vec<u8>>,
) {
    let mut closed = connection.closed();
    let mut batch = Vec::with_capacity(WRITE_BATCH);
    let mut buffer = Vec::new();
    loop {
        tokio::select! {
            count = messages.recv_many(&mut batch, WRITE_BATCH) => if count == 0 { return },
            _ = closed.wait_for(Option::is_some) => return,
        }
        buffer.clear();
        for message in batch.drain(..) {
            buffer.extend_from_slice(&message);
        }
        connection.inner.outbound_bytes.fetch_sub(buffer.len(), Ordering::Relaxed);
        let written = tokio::select! {
            written = output.write_all(&buffer) => written,
            _ = closed.wait_for(Option::is_some) => return,
        };
        if written.is_err() {
            connection.end("the pipe to Chromium is closed");
            return;
        }
        buffer.shrink_to(COMMAND_BYTES_MAX / 64);
    }
}

//! Bytes from Chromium to messages: replies to their callers, events to the queue.
//!
//! Messages end with a zero byte. One that is over the bound is skipped to its end without being
//! held; one that cannot be read is counted. Only the end of the pipe ends the reader.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::value::RawValue;
use tokio::io::{AsyncRead, AsyncReadExt};

use super::connection::{CdpError, Connection, SessionKey};
use super::envelope::{self, Envelope};
use super::queue::EventQueue;
use crate::surrogates;

/// One message; larger ones are skipped.
pub const MESSAGE_BYTES_MAX: usize = 256 * 1024 * 1024;
/// Bytes asked for in one read.
const READ_BYTES: usize = 256 * 1024;
/// Memory kept for the next messages after a large one.
const BUFFER_BYTES_KEPT: usize = 4 * 1024 * 1024;
/// Bytes of a skipped message from which it is told what it was.
const HEAD_BYTES: usize = 4096;
/// Method names kept as shared text.
const METHODS_MAX: usize = 1024;

pub(super) async fn run(
    connection: Connection,
    mut input: Box<dyn AsyncRead + Send + Unpin>,
    queue: Arc<EventQueue>,
    message_bytes_max: usize,
) {
    let mut reader =
        Reader { connection: &connection, queue: &queue, methods: HashMap::new(), sessions: HashMap::new() };
    let mut buffer = Vec::with_capacity(READ_BYTES);
    let mut searched = 0;
    let mut skipping = false;
    let reason = loop {
        buffer.reserve(READ_BYTES);
        match input.read_buf(&mut buffer).await {
            Ok(0) => break "Chromium closed the pipe".to_owned(),
            Ok(_) => {}
            Err(error) => break format!("reading from Chromium: {error}"),
        }
        let mut start = 0;
        while let Some(length) = memchr::memchr(0, &buffer[searched..]) {
            let end = searched + length;
            let message = &buffer[start..end];
            match std::mem::take(&mut skipping) {
                true => {}
                false if message.len() > message_bytes_max => reader.too_large(message),
                false => reader.message(message).await,
            }
            start = end + 1;
            searched = start;
        }
        buffer.drain(..start);
        if !skipping && buffer.len() > message_bytes_max {
            reader.too_large(&buffer);
            skipping = true;
        }
        if skipping {
            buffer.clear();
        }
        searched = buffer.len();
        if buffer.len() < BUFFER_BYTES_KEPT {
            buffer.shrink_to(BUFFER_BYTES_KEPT);
        }
    };
    connection.end(&reason);
    queue.close();
}

struct Reader<'a> {
    connection: &'a Connection,
    queue: &'a EventQueue,
    methods: HashMap<Box<str>, Arc<str>>,
    sessions: HashMap<Box<str>, SessionKey>,
}

impl Reader<'_> {
    async fn message(&mut self, bytes: &[u8]) {
        let lossy;
        let text = match std::str::from_utf8(bytes) {
            Ok(text) => text,
            Err(_) => {
                lossy = String::from_utf8_lossy(bytes);
                &lossy
            }
        };
        let mended;
        let envelope = match serde_json::from_str::<Envelope<'_>>(text) {
            Ok(envelope) => envelope,
            Err(_) => {
                mended = surrogates::mend(text).unwrap_or_default();
                match serde_json::from_str::<Envelope<'_>>(&mended) {
                    Ok(envelope) => envelope,
                    Err(_) => return self.undecodable(bytes),
                }
            }
        };
        if let Some(id) = envelope.id {
            return self.reply(id, envelope);
        }
        let (Some(method), params) = (envelope.method, envelope.params) else {
            return self.undecodable(bytes);
        };
        let method = self.method(&method);
        let session = envelope.session.map(|session| self.session(&session));
        let params = params.map_or_else(empty, ToOwned::to_owned);
        let ended = if &*method == "Target.detachedFromTarget" { ended_session(&params) } else { None };
        self.queue.send(session, method, params).await;
        // After the event: whoever learns from a failed command that the session has ended finds the
        // event among those that have arrived.
        if let Some(ended) = ended {
            self.connection.end_session(&SessionKey::from(ended.as_str()));
            self.sessions.remove(ended.as_str());
        }
    }

    fn reply(&self, id: u64, envelope: Envelope<'_>) {
        let reply = match envelope.error {
            // Chromium's code for a session that is not there any more.
            Some(refusal) if refusal.code == -32001 => Err(CdpError::Closed),
            Some(refusal) => Err(CdpError::Protocol { code: refusal.code, message: refusal.message }),
            None => Ok(envelope.result.map_or_else(empty, ToOwned::to_owned)),
        };
        self.connection.complete(id, reply);
    }

    fn undecodable(&self, bytes: &[u8]) {
        match envelope::reply_id(bytes) {
            Some(id) => self.connection.complete(id, Err(CdpError::Undecodable)),
            None => self.queue.lose(&envelope::method_name(bytes), "undecodable"),
        }
    }

    fn too_large(&self, message: &[u8]) {
        let head = &message[..message.len().min(HEAD_BYTES)];
        match envelope::reply_id(head) {
            Some(id) => {
                self.connection.complete(id, Err(CdpError::TooLarge));
                self.queue.lose("reply", "too_large");
            }
            None => self.queue.lose(&envelope::method_name(head), "too_large"),
        }
    }

    fn method(&mut self, name: &str) -> Arc<str> {
        if let Some(method) = self.methods.get(name) {
            return method.clone();
        }
        let method: Arc<str> = Arc::from(name);
        if self.methods.len() < METHODS_MAX {
            self.methods.insert(name.into(), method.clone());
        }
        method
    }

    fn session(&mut self, name: &str) -> SessionKey {
        if let Some(session) = self.sessions.get(name) {
            return session.clone();
        }
        let session = SessionKey::from(name);
        if self.sessions.len() < METHODS_MAX {
            self.sessions.insert(name.into(), session.clone());
        }
        session
    }
}

/// The session that `Target.detachedFromTarget` says has ended.
fn ended_session(params: &RawValue) -> Option<String> {
    #[derive(serde::Deserialize)]
    struct Detached {
        #[serde(rename = "sessionId")]
        session: String,
    }
    Some(envelope::parse::<Detached>(params)?.session)
}

fn empty() -> Box<RawValue> {
    RawValue::from_string("{}".to_owned()).expect("an empty object is JSON")
}

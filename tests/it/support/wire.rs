//! Measures what really crosses the pipe: the length of every message, by its request id.

use std::collections::HashMap;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, ReadBuf};

/// How much of a message is looked at for its id; ids stand at the beginning.
const HEAD_BYTES: usize = 96;

/// Lengths of messages in bytes, newline included, by request id as JSON.
#[derive(Clone, Default)]
pub struct Wire(Arc<Mutex<HashMap<String, usize>>>);

impl Wire {
    /// Length of the answer to a request, 0 when none was seen.
    pub fn length(&self, id: &str) -> usize {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(id).copied().unwrap_or(0)
    }
}

/// A reader that passes everything on and measures it.
pub struct Tap<R> {
    inner: R,
    wire: Wire,
    head: Vec<u8>,
    length: usize,
}

impl<R> Tap<R> {
    pub fn new(inner: R, wire: Wire) -> Self {
        Self { inner, wire, head: Vec::new(), length: 0 }
    }

    fn see(&mut self, bytes: &[u8]) {
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            self.length += piece.len();
            let room = HEAD_BYTES.saturating_sub(self.head.len()).min(piece.len());
            self.head.extend(&piece[..room]);
            if piece.ends_with(b"\n") {
                if let Some(id) = id(&self.head) {
                    self.wire.0.lock().unwrap_or_else(PoisonError::into_inner).insert(id, self.length);
                }
                self.head.clear();
                self.length = 0;
            }
        }
    }
}

fn id(head: &[u8]) -> Option<String> {
    let head = String::from_utf8_lossy(head);
    let (_, rest) = head.split_once("\"id\":")?;
    Some(rest.split([',', '}']).next()?.to_owned())
}

impl<R: AsyncRead + Unpin> AsyncRead for Tap<R> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.inner).poll_read(context, buffer);
        if read.is_ready() {
            self.see(&buffer.filled()[before..]);
        }
        read
    }
}

//! Messages as lines, one each, between a client and rmcp.
//!
//! Every line that could be a request gets an answer: one that cannot be read is answered with an
//! error here, where rmcp would pass over it and leave its sender waiting. The output is locked for a
//! whole line, rmcp's or ours, so that lines never mix.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;

use rmcp::RoleServer;
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};
use tokio::sync::Mutex;

use super::salvage::IdSearch;
use crate::limits::{LINE_BYTES_KEPT, LINE_BYTES_MAX};
use crate::surrogates;

/// JSON-RPC's codes for a line that is no JSON and for one that is no message.
const PARSE_ERROR: i64 = -32700;
const INVALID_REQUEST: i64 = -32600;

type Message = RxJsonRpcMessage<RoleServer>;
type Sending = Pin<Box<dyn Future<Output = io::Result<()>> + Send>>;

/// A client that reads and writes lines.
pub struct Lines<R, W> {
    input: Input<R>,
    output: Arc<Mutex<Option<W>>>,
    /// An error on its way. It stays here until it is out: `receive` may be dropped at any wait.
    answer: Option<Sending>,
}

impl<R: AsyncRead, W> Lines<R, W> {
    pub fn new(reader: R, writer: W) -> Self {
        Self { input: Input::new(reader), output: Arc::new(Mutex::new(Some(writer))), answer: None }
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send + 'static,
{
    type Error = io::Error;

    fn send(&mut self, message: TxJsonRpcMessage<RoleServer>) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let line = serde_json::to_vec(&message).map_err(io::Error::from);
        let output = Arc::clone(&self.output);
        async move { write(&output, line?).await }
    }

    async fn receive(&mut self) -> Option<Message> {
        loop {
            if let Some(answer) = &mut self.answer {
                let written = answer.await;
                self.answer = None;
                written.ok()?;
            }
            let read = match self.input.next().await {
                Ok(Piece::Line) => read(&self.input.line),
                Ok(Piece::TooLong(id)) => {
                    let reason = format!("a line may be at most {LINE_BYTES_MAX} bytes long");
                    Read::Unfit(refusal(INVALID_REQUEST, &reason, id))
                }
                Ok(Piece::End) => return None,
                Err(error) => {
                    tracing::warn!(%error, "standard input cannot be read");
                    return None;
                }
            };
            self.input.clear();
            match read {
                Read::Message(message) => return Some(*message),
                Read::Nothing => {}
                Read::Unfit(answer) => {
                    tracing::debug!(%answer, "a line was refused");
                    let output = Arc::clone(&self.output);
                    let line = answer.to_string().into_bytes();
                    self.answer = Some(Box::pin(async move { write(&output, line).await }));
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        self.output.lock().await.take();
        Ok(())
    }
}

async fn write<W: AsyncWrite + Unpin>(output: &Mutex<Option<W>>, mut line: Vec<u8>) -> io::Result<()> {
    line.push(b'\n');
    let mut output = output.lock().await;
    let output = output.as_mut().ok_or(io::ErrorKind::NotConnected)?;
    output.write_all(&line).await?;
    output.flush().await
}

/// What a line comes to.
enum Read {
    Message(Box<Message>),
    /// Nothing that wants an answer.
    Nothing,
    /// The error to answer with.
    Unfit(Value),
}

fn read(line: &[u8]) -> Read {
    let line = line.strip_prefix(b"\xef\xbb\xbf").unwrap_or(line).trim_ascii();
    if line.is_empty() {
        return Read::Nothing;
    }
    match serde_json::from_slice(line) {
        Ok(message) => Read::Message(Box::new(message)),
        Err(_) => read_again(line),
    }
}

/// What can be made of a line that is no message as it stands.
fn read_again(line: &[u8]) -> Read {
    let unreadable = |reason: &str| Read::Unfit(refusal(PARSE_ERROR, reason, IdSearch::through(line)));
    let Ok(text) = std::str::from_utf8(line) else { return unreadable("the line is not UTF-8") };
    let mended = surrogates::mend(text);
    if let Some(message) = mended.as_deref().and_then(|mended| serde_json::from_str(mended).ok()) {
        return Read::Message(Box::new(message));
    }
    let value: Value = match serde_json::from_str(mended.as_deref().unwrap_or(text)) {
        Ok(value) => value,
        Err(error) => return unreadable(&format!("the line is not JSON: {error}")),
    };
    let names_method = value.get("method").is_some_and(Value::is_string);
    match value.get("id") {
        // Notifications are never answered, whatever is wrong with them.
        None if names_method => Read::Nothing,
        Some(id) if names_method && (id.is_i64() || id.is_string()) => {
            Read::Unfit(refusal(INVALID_REQUEST, "the request is not one of JSON-RPC 2.0", Some(id.clone())))
        }
        _ => Read::Unfit(refusal(INVALID_REQUEST, "the line is not a message of JSON-RPC 2.0", None)),
    }
}

fn refusal(code: i64, reason: &str, id: Option<Value>) -> Value {
    json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": reason}})
}

/// How the search for a line's end came out.
enum Piece {
    /// The line is in `Input::line`.
    Line,
    /// The line was passed over; its id, when it has one.
    TooLong(Option<Value>),
    /// There are no more whole lines.
    End,
}

/// The incoming lines. `next` may be dropped while it waits, and loses nothing.
struct Input<R> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// Follows a line that is too long to its end.
    skipping: Option<IdSearch>,
}

impl<R: AsyncRead> Input<R> {
    fn new(reader: R) -> Self {
        let reader = BufReader::with_capacity(LINE_BYTES_KEPT, reader);
        Self { reader, line: Vec::new(), skipping: None }
    }

    fn clear(&mut self) {
        self.line.clear();
        self.line.shrink_to(LINE_BYTES_KEPT);
    }
}

impl<R: AsyncRead + Unpin> Input<R> {
    async fn next(&mut self) -> io::Result<Piece> {
        loop {
            let available = self.reader.fill_buf().await?;
            if available.is_empty() {
                return Ok(Piece::End);
            }
            let newline = memchr::memchr(b'\n', available);
            let piece = &available[..newline.unwrap_or(available.len())];
            if self.skipping.is_none() && self.line.len() + piece.len() > LINE_BYTES_MAX {
                let mut search = IdSearch::default();
                search.feed(&self.line);
                self.skipping = Some(search);
                self.line.clear();
            }
            match &mut self.skipping {
                Some(search) => search.feed(piece),
                None => self.line.extend_from_slice(piece),
            }
            let taken = piece.len() + usize::from(newline.is_some());
            self.reader.consume(taken);
            if newline.is_some() {
                return Ok(self.skipping.take().map_or(Piece::Line, |search| Piece::TooLong(search.found())));
            }
        }
    }
}

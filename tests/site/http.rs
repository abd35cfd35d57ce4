//! As much of HTTP/1.1 as a browser needs from the test site.

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// A request as it came in.
#[derive(Debug, Clone)]
pub struct Received {
    pub method: String,
    /// With its query.
    pub path: String,
    pub(super) headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Received {
    /// The value of a header, by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(have, _)| have == name).map(|(_, value)| value.as_str())
    }

    /// A number of the query.
    pub fn number(&self, name: &str) -> Option<usize> {
        let query = self.path.split_once('?')?.1;
        query.split('&').find_map(|pair| pair.strip_prefix(name)?.strip_prefix('=')?.parse().ok())
    }

    /// The path without its query.
    pub fn plain_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }
}

/// An answer, whole.
#[derive(Debug, Clone)]
pub struct Answer {
    pub status: u16,
    pub(super) headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
    sends_body: bool,
}

impl Answer {
    pub fn new(status: u16, media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status, headers: vec![("Content-Type", media_type.to_owned())], body: body.into(), sends_body: true }
    }

    pub fn with(mut self, name: &'static str, value: impl Into<String>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    pub fn with_status(mut self, status: u16) -> Self {
        self.status = status;
        self
    }

    /// As a `HEAD` is answered.
    pub fn head_alone(mut self) -> Self {
        self.sends_body = false;
        self
    }

    pub async fn write(&self, stream: &mut TcpStream) -> std::io::Result<()> {
        let mut out = format!("HTTP/1.1 {} Said\r\n", self.status);
        for (name, value) in &self.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        // By the rules of HTTP these have no body, and no length of one.
        let bodiless = matches!(self.status, 204 | 304);
        if !bodiless {
            out.push_str(&format!("Content-Length: {}\r\n", self.body.len()));
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        if !bodiless && self.sends_body {
            out.extend(&self.body);
        }
        stream.write_all(&out).await
    }
}

/// The next request of a connection; `None` at its end.
pub async fn read(stream: &mut TcpStream) -> std::io::Result<Option<Received>> {
    let mut bytes = Vec::new();
    let end = loop {
        if let Some(end) = bytes.windows(4).position(|window| window == b"\r\n\r\n") {
            break end;
        }
        if stream.read_buf(&mut bytes).await? == 0 {
            return Ok(None);
        }
    };
    let head = String::from_utf8_lossy(&bytes[..end]).into_owned();
    let mut lines = head.split("\r\n");
    let mut words = lines.next().unwrap_or_default().split(' ').map(str::to_owned);
    let mut request = Received {
        method: words.next().unwrap_or_default(),
        path: words.next().unwrap_or_default(),
        headers: lines
            .filter_map(|line| line.split_once(':'))
            .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
            .collect(),
        body: bytes.split_off(end + 4),
    };
    let length: usize = request.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    while request.body.len() < length {
        if stream.read_buf(&mut request.body).await? == 0 {
            return Ok(None);
        }
    }
    Ok(Some(request))
}

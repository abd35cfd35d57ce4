//! A small web site on loopback for tests: fixed answers by path, connections kept open.

use std::collections::HashMap;
use std::sync::Arc;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinHandle;

/// What a path answers.
#[derive(Clone)]
pub(crate) struct Answer {
    pub status: u16,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

impl Answer {
    pub(crate) fn new(media_type: &str, body: impl Into<Vec<u8>>) -> Self {
        Self { status: 200, headers: vec![("Content-Type", media_type.to_owned())], body: body.into() }
    }

    pub(crate) fn html(body: &str) -> Self {
        Self::new("text/html; charset=utf-8", format!("<!doctype html>{body}"))
    }

    pub(crate) fn script(body: &str) -> Self {
        Self::new("text/javascript", body)
    }

    pub(crate) fn redirect(to: &str) -> Self {
        Self { status: 302, headers: vec![("Location", to.to_owned())], body: Vec::new() }
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.push((name, value.to_owned()));
        self
    }
}

/// A running site; it ends with the value.
pub(crate) struct Site {
    port: u16,
    task: JoinHandle<()>,
}

impl Drop for Site {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Site {
    /// Answers `pages` by path, without the query; anything else is 404.
    pub(crate) async fn start(pages: Vec<(&'static str, Answer)>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
        let port = listener.local_addr().expect("a bound socket has an address").port();
        let pages: Arc<HashMap<_, _>> = Arc::new(pages.into_iter().collect());
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, pages.clone()));
            }
        });
        Self { port, task }
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same site under another name: another origin and another site to the browser.
    pub(crate) fn other_url(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }
}

async fn serve(mut stream: TcpStream, pages: Arc<HashMap<&'static str, Answer>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    loop {
        let end = loop {
            if let Some(at) = buffer.windows(4).position(|window| window == b"\r\n\r\n") {
                break at + 4;
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
        let length =
            head.lines().find_map(|line| line.to_ascii_lowercase().strip_prefix("content-length: ")?.parse().ok());
        while buffer.len() < end + length.unwrap_or(0) {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        buffer.drain(..end + length.unwrap_or(0));
        let target = head.split(' ').nth(1).unwrap_or("/");
        let path = target.split('?').next().unwrap_or(target);
        let missing = Answer { status: 404, ..Answer::html("not here") };
        let answer = pages.get(path).unwrap_or(&missing);
        let mut out = format!("HTTP/1.1 {} X\r\nContent-Length: {}\r\n", answer.status, answer.body.len());
        for (name, value) in &answer.headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str("\r\n");
        let mut out = out.into_bytes();
        out.extend_from_slice(&answer.body);
        stream.write_all(&out).await?;
    }
}

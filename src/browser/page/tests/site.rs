//! A small web site on loopback: bodies registered by the test, and a few fixed addresses.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

type Pages = Arc<Mutex<HashMap<String, String>>>;

pub(super) struct Site {
    port: u16,
    pages: Pages,
}

impl Site {
    pub(super) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let pages = Pages::default();
        let served = Arc::clone(&pages);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(answer(stream, Arc::clone(&served)));
            }
        });
        Self { port, pages }
    }

    pub(super) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The same server under another site's name.
    pub(super) fn other(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.port)
    }

    /// Registers a document with this body and gives its path.
    pub(super) fn path(&self, body: &str) -> String {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        let path = format!("/page/{}", pages.len());
        pages.insert(path.clone(), format!("<!doctype html><title>test</title><body>{body}"));
        path
    }

    pub(super) fn page(&self, body: &str) -> String {
        self.url(&self.path(body))
    }
}

async fn answer(mut stream: TcpStream, pages: Pages) {
    let mut request = Vec::new();
    let mut buffer = [0u8; 4096];
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        match stream.read(&mut buffer).await {
            Ok(count) if count > 0 => request.extend_from_slice(&buffer[..count]),
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&request);
    let path = text.split(' ').nth(1).unwrap_or("/").to_owned();
    let page = pages.lock().unwrap_or_else(PoisonError::into_inner).get(&path).cloned();
    let html = "Content-Type: text/html; charset=utf-8\r\n";
    let (status, headers, body) = match (page, path.as_str()) {
        (Some(body), _) => ("200 OK", html.to_owned(), body),
        (None, "/status/500") => ("500 Internal Server Error", html.to_owned(), "<p>broken".into()),
        (None, "/redirect") => ("302 Found", "Location: /landed\r\n".into(), String::new()),
        (None, "/landed") => ("200 OK", html.to_owned(), "<p>landed".into()),
        (None, "/file") => (
            "200 OK",
            "Content-Type: application/octet-stream\r\nContent-Disposition: attachment; filename=a.bin\r\n".into(),
            "bytes".into(),
        ),
        // Never answers: the connection stays open until the browser gives up.
        (None, "/hang") => std::future::pending().await,
        (None, _) => ("404 Not Found", html.to_owned(), "<p>nothing here".into()),
    };
    let head = format!("HTTP/1.1 {status}\r\n{headers}Content-Length: {}\r\nConnection: close\r\n\r\n", body.len());
    // The browser may have gone; the test sees what it sees.
    let _ = stream.write_all(head.as_bytes()).await;
    let _ = stream.write_all(body.as_bytes()).await;
}

//! A bare HTTP/1.1 request, with whatever headers a test wants to try.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::LIMIT;

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Sends one request on a connection of its own; `headers` are sent as they are.
///
/// # Panics
/// When there is no answer in time.
pub async fn request(address: SocketAddr, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
    let asked = async {
        let mut stream = TcpStream::connect(address).await?;
        let mut out = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
        for (name, value) in headers {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
        out.push_str(&format!("Content-Length: {}\r\n\r\n{body}", body.len()));
        stream.write_all(out.as_bytes()).await?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).await?;
        std::io::Result::Ok(answer)
    };
    let answer = tokio::time::timeout(LIMIT, asked).await.expect("an answer in time").expect("an answer");
    let answer = String::from_utf8_lossy(&answer).into_owned();
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status line");
    Answer { status, head: head.to_owned(), body: body.to_owned() }
}

/// A plain GET from this machine.
pub async fn get(address: SocketAddr, path: &str) -> Answer {
    request(address, "GET", path, &[("Host", &address.to_string())], "").await
}

/// The value of a series in a text exposition: the name with its labels as they are printed.
#[must_use]
pub fn series(exposition: &str, name: &str) -> Option<f64> {
    exposition.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok())
}

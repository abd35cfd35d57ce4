//! What a server may do to a browser that reads its answers: encodings, caches, redirects without end,
//! heads too long, lengths that are lies, and answers that go on and on.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Shared;
use super::http::{Answer, Received};

/// `gz ` five thousand times, compressed.
const GZIP: &str = "H4sIAAAAAAACA+3CAQ0AAAwCoCpvZ4enN4IFYOQvqqqqqqqqqqqqqqqqqqq6Fp17rJGYOgAA";
/// `br ` five thousand times, compressed.
const BROTLI: &str = "G5c6+CVBxOTisyDgSQagAQ==";
/// The length of the header of `/head`, in bytes.
const HEADER_BYTES: usize = 200_000;

/// The answer to `path`, when it is one of these.
pub(super) fn answer(path: &str, request: &Received) -> Option<Answer> {
    let text = |body: &[u8]| Answer::new(200, "text/plain", body);
    let unpacked = |packed: &str| STANDARD.decode(packed).expect("base64");
    let from_other = |answer: Answer| answer.with("Access-Control-Allow-Origin", "*");
    Some(match path {
        "/gzip" => text(&unpacked(GZIP)).with("Content-Encoding", "gzip"),
        "/brotli" => text(&unpacked(BROTLI)).with("Content-Encoding", "br"),
        "/charset/latin1" => Answer::new(200, "text/plain; charset=latin1", b"caf\xe9".as_slice()),
        "/charset/utf-16" => {
            let bytes: Vec<u8> = "caf\u{e9}".encode_utf16().flat_map(u16::to_le_bytes).collect();
            Answer::new(200, "text/plain; charset=utf-16le", bytes)
        }
        "/charset/shift_jis" => Answer::new(200, "text/plain; charset=shift_jis", b"\x83\x65".as_slice()),
        "/tagged" if request.header("if-none-match").is_some() => Answer::new(304, "text/plain", ""),
        "/tagged" => text(b"tagged").with("ETag", "\"one\""),
        "/cached" => text(b"cached").with("Cache-Control", "max-age=1000"),
        "/shared" => from_other(text(b"shared"))
            .with("Access-Control-Allow-Methods", "PUT")
            .with("Access-Control-Allow-Headers", "x-asked"),
        "/round" => text(b"").with("Location", "/round").with_status(302),
        "/head" => text(b"head").with("X-Long", "h".repeat(HEADER_BYTES)),
        "/baked" => text(b"baked")
            .with("Set-Cookie", "one=canary-cookie-one; Path=/; HttpOnly")
            .with("Set-Cookie", "two=canary-cookie-two; Path=/"),
        "/refused-cookie" => text(b"refused")
            .with("Set-Cookie", "good=canary-refused-one; Path=/")
            .with("Set-Cookie", "lax=canary-refused-two; SameSite=None"),
        _ => return None,
    })
}

/// Fewer bytes than were promised, and the end of the connection.
pub(super) async fn lie(stream: &mut TcpStream) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 Said\r\nContent-Type: text/plain\r\nContent-Length: 1000\r\n\r\nshort").await
}

/// An event stream of three messages, one with a secret, that then says nothing more.
pub(super) async fn events(stream: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    stream.write_all(b"HTTP/1.1 200 Said\r\nContent-Type: text/event-stream\r\n\r\n").await?;
    for data in ["one", r#"{"password":"canary-stream"}"#, "three"] {
        stream.write_all(format!("data: {data}\n\n").as_bytes()).await?;
    }
    shared.until_released().await;
    Ok(())
}

/// One line for each request that comes in elsewhere.
pub(super) async fn trickle(stream: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    let head = b"HTTP/1.1 200 Said\r\nContent-Type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head).await?;
    let mut arrivals = shared.arrivals.subscribe();
    for number in 0.. {
        let line = format!("drop {number}\n");
        stream.write_all(format!("{:x}\r\n{line}\r\n", line.len()).as_bytes()).await?;
        if arrivals.changed().await.is_err() {
            break;
        }
    }
    Ok(())
}

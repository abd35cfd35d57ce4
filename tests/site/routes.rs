//! What each path of the test site answers.

use std::path::Path;

use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;

use super::Shared;
use super::http::{Answer, Received};

/// The smallest image there is: one transparent pixel.
const PIXEL: &[u8] = &[
    0x89, b'P', b'N', b'G', 13, 10, 26, 10, 0, 0, 0, 13, b'I', b'H', b'D', b'R', 0, 0, 0, 1, 0, 0, 0, 1, 8, 6, 0, 0, 0,
    0x1f, 0x15, 0xc4, 0x89, 0, 0, 0, 13, b'I', b'D', b'A', b'T', 0x78, 0x9c, 0x63, 0, 1, 0, 0, 5, 0, 1, 0x0d, 0x0a,
    0x2d, 0xb4, 0, 0, 0, 0, b'I', b'E', b'N', b'D', 0xae, 0x42, 0x60, 0x82,
];
/// What `/binary`, `/text` and `/download/` send when the query names no size, in bytes.
const BYTES_DEFAULT: usize = 4_096;

pub(super) fn answer(request: &Received, shared: &Shared) -> Answer {
    let path = request.plain_path();
    let bytes = request.number("bytes").unwrap_or(BYTES_DEFAULT);
    if let Some(status) = path.strip_prefix("/status/") {
        return Answer::new(status.parse().unwrap_or(500), "text/plain", format!("status {status}\n"));
    }
    if let Some(left) = path.strip_prefix("/redirect/") {
        return match left.parse::<usize>() {
            Ok(left @ 1..) => {
                Answer::new(302, "text/plain", "on\n").with("Location", format!("/redirect/{}", left - 1))
            }
            _ => Answer::new(200, "application/json", r#"{"arrived":true}"#),
        };
    }
    if let Some(name) = path.strip_prefix("/download/") {
        let disposition = format!("attachment; filename=\"{name}\"");
        return Answer::new(200, "application/octet-stream", pattern(bytes)).with("Content-Disposition", disposition);
    }
    if let Some(rest) = path.strip_prefix("/conformance/") {
        return super::conformance::answer(rest, shared);
    }
    if path == "/named" {
        // What stands after the question mark is the header's value as it is.
        let asked = request.path.split_once('?').map_or("", |(_, asked)| asked);
        let disposition = format!("attachment; {}", asked.replace("%20", " ").replace("%22", "\""));
        return Answer::new(200, "application/octet-stream", "named").with("Content-Disposition", disposition);
    }
    if path == "/onward" {
        // To what stands after the question mark, as it is.
        let asked = request.path.split_once('?').map_or("", |(_, asked)| asked);
        return Answer::new(302, "text/plain", "on\n").with("Location", asked.to_owned());
    }
    if let Some(answer) = super::odd::answer(path, request) {
        return answer;
    }
    match path {
        "/login" if request.header("authorization").is_none() => {
            Answer::new(401, "text/html", "<title>Locked</title>").with("WWW-Authenticate", "Basic realm=\"site\"")
        }
        "/login" => Answer::new(200, "text/html", "<title>Open</title>"),
        "/json" => Answer::new(200, "application/json", r#"{"ok":true,"items":[1,2,3]}"#),
        "/echo" => {
            let media_type = request.header("content-type").unwrap_or("text/plain").to_owned();
            Answer::new(200, &media_type, request.body.clone())
        }
        "/binary" => Answer::new(200, "application/octet-stream", pattern(bytes)),
        "/text" => Answer::new(200, "text/plain", text(bytes)),
        "/hold" => Answer::new(200, "text/plain", "released\n"),
        "/pixel.png" => Answer::new(200, "image/png", PIXEL),
        "/cookie" => Answer::new(200, "text/plain", "baked\n").with("Set-Cookie", "session=canary-cookie-7431; Path=/"),
        "/big" => Answer::new(200, "text/html", format!("<!doctype html><title>Big</title><pre>{}</pre>", big_lines())),
        path => file(path, shared),
    }
}

/// A body that has begun and does not end before the site is told to let go.
pub(super) async fn endless(stream: &mut TcpStream, shared: &Shared) -> std::io::Result<()> {
    let head = b"HTTP/1.1 200 Said\r\nContent-Type: text/html\r\nTransfer-Encoding: chunked\r\n\r\n";
    stream.write_all(head).await?;
    stream.write_all(b"1b\r\n<title>Endless</title><p>on\r\n").await?;
    shared.until_released().await;
    stream.write_all(b"0\r\n\r\n").await
}

/// Downloads that do not end by themselves: half and the rest once the site lets go, half and the end
/// of the connection, or one chunk after the other for as long as somebody reads.
pub(super) async fn pour(stream: &mut TcpStream, request: &Received, shared: &Shared) -> std::io::Result<()> {
    let bytes = request.number("bytes").unwrap_or(BYTES_DEFAULT);
    let path = request.plain_path();
    let length =
        if path == "/flood" { "Transfer-Encoding: chunked".into() } else { format!("Content-Length: {bytes}") };
    let name = path.trim_start_matches('/');
    let head = format!(
        "HTTP/1.1 200 Said\r\nContent-Type: application/octet-stream\r\n\
         Content-Disposition: attachment; filename=\"{name}.bin\"\r\n{length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    if path == "/flood" {
        let chunk = [b"10000\r\n".as_slice(), &pattern(0x10000), b"\r\n"].concat();
        loop {
            stream.write_all(&chunk).await?;
        }
    }
    let content = pattern(bytes);
    stream.write_all(&content[..bytes / 2]).await?;
    if path == "/held" {
        shared.until_released().await;
        stream.write_all(&content[bytes / 2..]).await?;
    }
    Ok(())
}

/// Bytes that no text encoding takes, the same at every run.
pub fn pattern(bytes: usize) -> Vec<u8> {
    (0..bytes).map(|at| (at * 31 + at / 251) as u8 | 0x80).collect()
}

fn text(bytes: usize) -> String {
    let mut text = String::with_capacity(bytes + 32);
    for line in 0.. {
        if text.len() >= bytes {
            break;
        }
        text.push_str(&format!("line {line} with \"quotes\" and \\ slashes\n"));
    }
    text.truncate(bytes);
    text
}

/// Sixteen lines of 64 KiB.
fn big_lines() -> String {
    (0..16).map(|line| format!("{line:x}").repeat(65_536) + "\n").collect()
}

fn file(path: &str, shared: &Shared) -> Answer {
    let name = if path == "/" { "plain.html" } else { path.trim_start_matches('/') };
    let media_type = match name.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "js")) => "text/javascript",
        _ => return Answer::new(404, "text/plain", "nothing here\n"),
    };
    let pages = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/site/pages");
    // Names come from our own tests alone; a slash in one would only miss.
    match std::fs::read_to_string(pages.join(name.replace('/', "_"))) {
        Ok(page) => {
            let page = page.replace("{{origin}}", &shared.origin).replace("{{other}}", &shared.other);
            Answer::new(200, media_type, page)
        }
        Err(_) => Answer::new(404, "text/plain", "nothing here\n"),
    }
}

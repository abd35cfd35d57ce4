//! The WebSocket of the test site (RFC 6455): shakes hands and sends every message back.

use base64::Engine;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use super::http::Received;
use super::sha1;

const GUID: &str = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
const OPCODE_CLOSE: u8 = 8;

/// Serves one connection until either side closes it.
pub async fn serve(stream: &mut TcpStream, request: &Received) -> std::io::Result<()> {
    let key = request.header("sec-websocket-key").unwrap_or_default();
    let accept = base64::engine::general_purpose::STANDARD.encode(sha1::digest(format!("{key}{GUID}").as_bytes()));
    let head = format!(
        "HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Accept: {accept}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    loop {
        let (first, payload) = frame(stream).await?;
        let mut answer = vec![first];
        match payload.len() {
            length @ 0..126 => answer.push(length as u8),
            length @ 126..65_536 => {
                answer.push(126);
                answer.extend((length as u16).to_be_bytes());
            }
            length => {
                answer.push(127);
                answer.extend((length as u64).to_be_bytes());
            }
        }
        answer.extend(&payload);
        stream.write_all(&answer).await?;
        if first & 0x0f == OPCODE_CLOSE {
            return Ok(());
        }
    }
}

/// One frame of the browser's: its first byte and its payload, unmasked.
async fn frame(stream: &mut TcpStream) -> std::io::Result<(u8, Vec<u8>)> {
    let first = stream.read_u8().await?;
    let length = match stream.read_u8().await? & 0x7f {
        126 => u64::from(stream.read_u16().await?),
        127 => stream.read_u64().await?,
        length => u64::from(length),
    };
    let mut mask = [0; 4];
    stream.read_exact(&mut mask).await?;
    let mut payload = vec![0; usize::try_from(length).map_err(std::io::Error::other)?];
    stream.read_exact(&mut payload).await?;
    for (byte, mask) in payload.iter_mut().zip(mask.iter().cycle()) {
        *byte ^= mask;
    }
    Ok((first, payload))
}

//! Nothing a page or a newer Chromium says ends the connection or costs other messages.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt, DuplexStream};

use super::{Bench, limit};
use crate::browser::chromium::queue::{EventQueue, Losses};
use crate::browser::{CdpError, Connection};

#[tokio::test(flavor = "multi_thread")]
async fn odd_text_arrives() {
    let bench = Bench::start().await;
    bench.evaluate("console.log('lone \\ud800 surrogate')").await;
    bench
        .evaluate(
            "console.log('x'.repeat(1 << 20)); const o = {}; o.self = o; console.log(o, NaN, -0, 10n, Symbol('s'))",
        )
        .await;
    let big = bench.evaluate("'y'.repeat(100 << 20)").await;
    assert_eq!(big.as_str().map(str::len), Some(100 << 20));
    let half = bench.evaluate("'a\\udc00b'").await;
    assert_eq!(half, "a\u{fffd}b");
    let lines = bench.of_kind("console.message").await;
    assert_eq!(lines[0]["data"]["text"], "lone \u{fffd} surrogate");
    assert_eq!(lines[1]["data"]["text_bytes"], 1 << 20);
    assert_eq!(lines[1]["data"]["truncated_fields"], "text");
    let handle =
        storage::ids::ArtifactHandle::from(lines[1]["data"]["text_artifact"].as_str().expect("the whole is kept"));
    assert_eq!(bench.artifacts.length(&handle).expect("it is there"), 1 << 20);
    assert_eq!(lines[2]["data"]["text"], "{self: Object} NaN -0 10n Symbol(s)");
    bench.close().await;
}

/// A connection whose other end the test plays.
fn played(message_bytes_max: usize) -> (Connection, Arc<EventQueue>, DuplexStream, DuplexStream) {
    let (replies, input) = tokio::io::duplex(1 << 16);
    let (output, commands) = tokio::io::duplex(1 << 16);
    let queue = Arc::new(EventQueue::default());
    let connection = Connection::start(Box::new(input), Box::new(output), queue.clone(), message_bytes_max);
    (connection, queue, replies, commands)
}

async fn next_command(commands: &mut DuplexStream) -> Value {
    let mut bytes = Vec::new();
    loop {
        match commands.read_u8().await.expect("the connection lives") {
            0 => return serde_json::from_slice(&bytes).expect("commands are JSON"),
            byte => bytes.push(byte),
        }
    }
}

async fn drained(queue: &EventQueue) -> (Vec<String>, Losses) {
    let (mut events, mut losses) = (Vec::new(), Losses::new());
    while queue.receive(&mut events, &mut losses, 100).await {}
    (events.iter().map(|event| format!("{} {}", event.method, event.params.get())).collect(), losses)
}

#[tokio::test]
async fn unreadable_messages_are_counted_and_passed_over() {
    let (connection, queue, mut replies, _commands) = played(1000);
    let deep = format!("{{\"method\":\"A.deep\",\"params\":{}1{}}}", "[".repeat(300), "]".repeat(300));
    let large = format!("{{\"method\":\"A.large\",\"params\":{{\"x\":\"{}\"}}}}", "x".repeat(5000));
    let messages: [&[u8]; 8] = [
        b"{\"method\":\"A.first\",\"params\":{}}",
        b"{\"method\":\"A.broken\",\"params\":{",
        b"not JSON at all",
        b"{\"method\":\"A.odd\",\"params\":\"\\ud800\",\"new\":[1,{}]}",
        b"{\"method\":\"A.bytes\",\"params\":\"\xff\"}",
        deep.as_bytes(),
        large.as_bytes(),
        b"{\"method\":\"A.last\"}",
    ];
    for message in messages {
        replies.write_all(message).await.expect("the connection reads on");
        replies.write_all(&[0]).await.expect("the connection reads on");
    }
    drop(replies);
    let (events, losses) = drained(&queue).await;
    let methods: Vec<_> = events.iter().map(|event| event.split(' ').next().unwrap_or_default()).collect();
    assert_eq!(methods, ["A.first", "A.odd", "A.bytes", "A.deep", "A.last"]);
    let expected = [("A.broken", "undecodable"), ("A.large", "too_large"), ("unknown", "undecodable")];
    assert_eq!(losses, expected.map(|(what, reason)| ((what.to_owned(), reason), 1)).into_iter().collect());
    assert!(connection.closed().borrow().is_some());
}

#[tokio::test]
async fn every_command_ends() {
    let (connection, _queue, mut replies, mut commands) = played(1000);
    let (first, second) = (connection.clone(), connection.clone());
    let too_large = tokio::spawn(async move { first.raw(None, "A.b", json!({}), limit()).await });
    let sent = next_command(&mut commands).await;
    let reply = format!("{{\"id\":{},\"result\":{{\"x\":\"{}\"}}}}\0", sent["id"], "x".repeat(5000));
    replies.write_all(reply.as_bytes()).await.expect("the connection reads on");
    assert_eq!(too_large.await.expect("no panic"), Err(CdpError::TooLarge));
    let session = crate::browser::SessionKey::from("S");
    let gone = tokio::spawn(async move { second.raw(Some(&session), "A.b", json!({}), limit()).await });
    assert_eq!(next_command(&mut commands).await["sessionId"], "S");
    let detached = b"{\"method\":\"Target.detachedFromTarget\",\"params\":{\"sessionId\":\"S\"}}\0";
    replies.write_all(detached).await.expect("the connection reads on");
    assert_eq!(gone.await.expect("no panic"), Err(CdpError::Closed));
    let soon = crate::deadline::Deadline::after(std::time::Duration::from_millis(1));
    assert_eq!(connection.raw(None, "A.b", json!({}), soon).await, Err(CdpError::Timeout));
    drop(replies);
    assert_eq!(connection.raw(None, "A.b", json!({}), limit()).await, Err(CdpError::Closed));
}

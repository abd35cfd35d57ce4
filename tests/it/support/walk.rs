//! Walking through lists to their end.

use serde_json::{Value, json};

use super::Server;

/// Every row of a list, page by page; `limit` rows at a time.
///
/// # Panics
/// When a page promises more and brings nothing on.
pub async fn all(server: &Server, tool: &str, key: &str, arguments: Value, limit: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut after = Value::Null;
    loop {
        let mut arguments = arguments.clone();
        arguments["limit"] = limit.into();
        arguments["after"] = after.clone();
        let mut page = server.ok(tool, arguments).await;
        let more = page["has_more"] == true;
        let Value::Array(found) = page[key].take() else { panic!("{tool} gives {key}: {page}") };
        assert!(!more || page["next_cursor"] != after, "{tool} does not get on: {page}");
        rows.extend(found);
        after = page["next_cursor"].take();
        if !more {
            return rows;
        }
    }
}

pub async fn events(server: &Server, session_id: &str) -> Vec<Value> {
    all(server, "list_events", "events", json!({"session_id": session_id}), 500).await
}

pub async fn console(server: &Server, session_id: &str) -> Vec<Value> {
    all(server, "list_console_messages", "messages", json!({"session_id": session_id}), 500).await
}

pub async fn requests(server: &Server, session_id: &str) -> Vec<Value> {
    all(server, "list_network_requests", "requests", json!({"session_id": session_id}), 500).await
}

/// The texts of console messages.
#[must_use]
pub fn texts(messages: &[Value]) -> Vec<&str> {
    messages.iter().filter_map(|message| message["text"].as_str()).collect()
}

/// Returns once the console holds `text`, with every message up to then.
pub async fn console_with(server: &Server, session_id: &str, text: &str) -> Vec<Value> {
    super::wait_for(text, || async {
        let messages = console(server, session_id).await;
        texts(&messages).iter().any(|have| have.contains(text)).then_some(messages)
    })
    .await
}

/// The whole of an artifact, read in parts of `length` bytes.
pub async fn artifact(server: &Server, handle: &str, length: usize) -> Vec<u8> {
    use base64::Engine;
    let mut bytes = Vec::new();
    loop {
        let asked = json!({"handle": handle, "offset": bytes.len(), "length": length});
        let part = server.ok("read_artifact", asked).await;
        let content = part["content"].as_str().expect("content");
        match part["encoding"].as_str() {
            Some("text") => bytes.extend(content.as_bytes()),
            _ => bytes.extend(base64::engine::general_purpose::STANDARD.decode(content).expect("base64")),
        }
        assert_eq!(part["next_offset"], bytes.len(), "offsets count bytes");
        if part["has_more"] != true {
            return bytes;
        }
    }
}

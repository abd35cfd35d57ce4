//! No reply exceeds its bound, whatever the input, and what did not fit can be read to its last byte.

mod every_tool;
mod filling;

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

const BYTES_MAX: usize = 4_096;

async fn bounded(server: &Server, tool: &str, arguments: Value) -> Value {
    let reply = server.call(tool, arguments.clone()).await;
    assert!(reply.wire_bytes > 0 && reply.wire_bytes <= BYTES_MAX, "{tool} {arguments}: {} bytes", reply.wire_bytes);
    reply.structured
}

#[tokio::test(flavor = "multi_thread")]
async fn every_reply_keeps_the_smallest_bound() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--max-result-bytes", BYTES_MAX)).await;
    let launched = bounded(&server, "launch_session", json!({"slug": "small"})).await;
    let id = launched["data"]["session_id"].as_str().expect("a session id").to_owned();
    let on = |more: Value| {
        let mut arguments = json!({"session_id": id});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    let big = format!("'<\"\\u0001\\\\' + '{}'", "quote \\\" and \\u00e9 ".repeat(20_000));
    bounded(&server, "navigate", on(json!({"url": site.url("/big")}))).await;
    for (tool, more) in [
        ("evaluate", json!({"expression": big})),
        (
            "evaluate",
            json!({"expression": "console.log('x'.repeat(300000)); Array.from({length: 5000}, (_, n) => ({n}))"}),
        ),
        ("evaluate", json!({"expression": "throw new Error('y'.repeat(100000))"})),
        ("evaluate", json!({"expression": "document.title = 'z'.repeat(50000)"})),
        (
            "evaluate",
            json!({"expression": "for (let n = 0; n < 300; n++) document.body.append(Object.assign(document.createElement('button'), {textContent: 'b' + n}))"}),
        ),
        ("snapshot", json!({})),
        ("get_content", json!({})),
        ("screenshot", json!({})),
        ("list_tabs", json!({})),
        ("session_info", json!({})),
        ("list_sessions", json!({})),
        ("server_status", json!({})),
        ("browser_health", json!({})),
        ("browser_list_instances", json!({})),
        ("click", json!({"selector": "s".repeat(8_000)})),
        ("click", json!({"selector": "button", "timeout": 100})),
        ("navigate", json!({"url": format!("{}?{}", site.url("/status/404"), "q".repeat(100_000))})),
        ("reload", json!({})),
        ("go_back", json!({})),
        ("list_console_messages", json!({"limit": 500})),
        ("list_network_requests", json!({"limit": 500})),
        ("list_events", json!({"limit": 500})),
        ("list_downloads", json!({"limit": 500})),
        ("export_events", json!({})),
        ("wait_for_selector", json!({"selector": "#never", "timeout": 100})),
    ] {
        let takes_session =
            !["list_sessions", "server_status", "browser_health", "browser_list_instances"].contains(&tool);
        bounded(&server, tool, if takes_session { on(more) } else { more }).await;
    }
    let requests = walk::requests(&server, &id).await;
    for part in ["summary", "request_headers", "response_headers", "response_body", "timing", "redirects", "frames"] {
        let asked = on(json!({"request_id": requests[0]["request_id"], "part": part}));
        bounded(&server, "get_network_request", asked).await;
    }
    let unknown: serde_json::Map<String, Value> =
        (0..500).map(|n| (format!("argument{n}"), json!("v".repeat(500)))).collect();
    bounded(&server, "click", Value::Object(unknown)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_did_not_fit_is_read_to_its_last_byte() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--max-result-bytes", BYTES_MAX)).await;
    let id = server.launch_at(&site.url("/text?bytes=60000")).await;
    let text = "Array.from({length: 3000}, (_, n) => 'item \\u00e9 \"' + n + '\"').join(',')";
    let reply = server.call("evaluate", json!({"session_id": id, "expression": text})).await;
    let wanted: Vec<String> = (0..3_000).map(|n| format!("item \u{e9} \"{n}\"")).collect();
    let handle = handle(&reply.structured, "result");
    let whole = String::from_utf8(walk::artifact(&server, &handle, 100_000).await).expect("UTF-8");
    let value: Value = serde_json::from_str(&whole).unwrap_or(Value::String(whole));
    assert_eq!(value.as_str(), Some(wanted.join(",").as_str()));

    let content = server.call("get_content", json!({"session_id": id})).await;
    let html = walk::artifact(&server, &self::handle(&content.structured, "html"), 100_000).await;
    assert!(String::from_utf8_lossy(&html).contains("line 1000 "), "the end of the page is in it");

    let requests = walk::requests(&server, &id).await;
    let mut body = String::new();
    loop {
        let asked = json!({"session_id": id, "request_id": requests[0]["request_id"], "part": "response_body", "offset": body.len()});
        let part = server.ok("get_network_request", asked).await;
        body.push_str(part["content"].as_str().expect("text"));
        if part["has_more"] != true {
            break;
        }
    }
    assert_eq!(body.len(), 60_000);

    let say = "for (let n = 0; n < 300; n++) console.log('line ' + n + ' ' + 'w'.repeat(n))";
    server.ok("evaluate", json!({"session_id": id, "expression": say})).await;
    walk::console_with(&server, &id, "line 299").await;
    let messages = walk::console(&server, &id).await;
    let lengths: Vec<usize> = walk::texts(&messages).iter().map(|text| text.matches('w').count()).collect();
    assert_eq!(lengths, (0..300).collect::<Vec<_>>(), "a list that ends early goes on at its cursor");
}

/// The handle under which a value that did not fit was kept.
fn handle(envelope: &Value, key: &str) -> String {
    assert_eq!(envelope["data"]["truncated"], true, "{envelope}");
    let handle = &envelope["data"][format!("{key}_artifact")];
    handle.as_str().unwrap_or_else(|| panic!("an artifact: {envelope}")).to_owned()
}

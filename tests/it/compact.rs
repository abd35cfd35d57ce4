//! The compact text: the same facts on few lines, nothing beside it, asked for by the server or a client.

use rmcp::model::{CallToolRequestParams, CallToolResult, ContentBlock};
use serde_json::{Value, json};

use crate::site::Site;
use crate::support::client::Client;
use crate::support::{Options, Server, walk};

async fn ask(client: &Client, tool: &str, arguments: Value) -> CallToolResult {
    let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
    let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
    client.peer().call_tool(params).await.expect("the call is answered")
}

/// The text of a reply that is text alone.
async fn compact(client: &Client, tool: &str, arguments: Value) -> String {
    let result = ask(client, tool, arguments).await;
    assert!(result.structured_content.is_none(), "{tool}: nothing beside the text");
    let texts: Vec<&str> = result.content.iter().filter_map(ContentBlock::as_text).map(|text| &*text.text).collect();
    let [text] = texts[..] else { panic!("{tool}: one text: {texts:?}") };
    text.to_owned()
}

/// The value of a line `key: value`.
fn line<'a>(text: &'a str, key: &str) -> &'a str {
    let found = text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "));
    found.unwrap_or_else(|| panic!("no {key} in {text}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_client_asks_for_it_in_its_address() {
    let site = Site::start().await;
    let server = Server::start(Options::http()).await;
    let reader = server.client_that_asks("?text=compact").await;
    assert!(reader.tools().await.iter().all(|tool| tool.output_schema.is_none()));
    assert!(server.client().tools().await.iter().all(|tool| tool.output_schema.is_some()));
    let id = server.launch_at(&site.url("/console.html")).await;
    walk::console_with(&server, &id, "thrown later").await;
    // Then nothing comes between two readings.
    server.ok("close_session", json!({"session_id": id})).await;
    let messages = walk::console(&server, &id).await;
    let text = compact(&reader, "list_console_messages", json!({"session_id": id, "limit": 500})).await;
    let rows: Vec<&str> = text.lines().filter(|line| line.starts_with(|c: char| c.is_ascii_digit())).skip(1).collect();
    assert_eq!(rows.len(), messages.len(), "{text}");
    for (row, message) in rows.iter().zip(&messages) {
        let seq = message["seq"].as_u64().expect("a number").to_string();
        let rest = row.strip_prefix(&seq).unwrap_or_else(|| panic!("{row}: {message}"));
        assert!(!rest.starts_with(|c: char| c.is_ascii_digit()), "{row}: {message}");
        let wanted = message["text"].as_str().expect("a text");
        let first = wanted.lines().next().unwrap_or_default();
        assert!(row.contains(&format!(" {first}")), "{row}: {message}");
    }
    let page = server.ok("list_console_messages", json!({"session_id": id, "limit": 500})).await;
    assert_eq!(line(&text, "next_cursor"), page["next_cursor"], "the cursor of one form is that of the other");

    let requests = walk::requests(&server, &id).await;
    let text = compact(&reader, "list_network_requests", json!({"session_id": id})).await;
    let begin = text.split_once("ids begin with ").map(|(_, rest)| rest.split(['\n', ';']).next().unwrap_or_default());
    for request in &requests {
        let id = request["request_id"].as_str().expect("an id");
        let short = id.strip_prefix(begin.unwrap_or_default()).expect("the beginning that was said");
        let ends = |rest: &str| !rest.starts_with(|c: char| c.is_ascii_digit());
        assert!(text.lines().any(|line| line.strip_prefix(short).is_some_and(ends)), "{id}: {text}");
    }
    reader.close().await;
    let wrong = server.client_that_asks("?text=short").await;
    let error = wrong.peer().list_all_tools().await.expect_err("there is no such form").to_string();
    assert!(error.contains("json or compact"), "{error}");
    wrong.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_an_agent_needs_next_is_there() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--text", "compact")).await;
    let client = server.client();
    let launched = compact(client, "launch_session", json!({"slug": "reader"})).await;
    let id = line(&launched, "session_id").to_owned();
    let on = |more: Value| {
        let mut arguments = json!({"session_id": id});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        arguments
    };
    compact(client, "navigate", on(json!({"url": site.url("/form.html")}))).await;
    let snapshot = compact(client, "snapshot", on(json!({}))).await;
    let (head, tree) = snapshot.split_once(" bytes to the end:\n").expect("the tree comes last");
    assert!(head.ends_with(&format!("tree, {}", tree.len())), "{head}");
    assert!(tree.contains("[ref=e") || tree.contains("e1"), "{tree}");
    let clicked = compact(client, "click", on(json!({"selector": "body", "include_snapshot": true}))).await;
    let operation = line(&clicked, "operation");
    assert!(clicked.contains("snapshot.tree, "), "{clicked}");
    let events = compact(client, "list_events", on(json!({"operation_id": operation}))).await;
    assert!(events.contains("call.settled tool=click outcome=completed"), "{events}");
    let missing = compact(client, "click", on(json!({"selector": "#nowhere", "timeout": 500}))).await;
    assert!(missing.starts_with("ELEMENT_NOT_FOUND: ") && !line(&missing, "next_step").is_empty(), "{missing}");
    assert_eq!((line(&missing, "outcome"), line(&missing, "selector")), ("unknown", "#nowhere"));
    let large = compact(client, "evaluate", on(json!({"expression": "'line\\n'.repeat(400000)"}))).await;
    let handle = line(&large, "result_artifact").to_owned();
    assert_eq!(line(&large, "result_bytes"), "2000000");
    let part =
        compact(client, "read_artifact", json!({"handle": handle, "offset": 1_999_990, "encoding": "text"})).await;
    assert!(part.contains("line"), "{part}");
}

#[tokio::test(flavor = "multi_thread")]
async fn it_keeps_the_bound() {
    const BYTES_MAX: usize = 4_096;
    let site = Site::start().await;
    let options = Options::stdio().argument("--text", "compact").argument("--max-result-bytes", BYTES_MAX);
    let server = Server::start(options).await;
    let client = server.client();
    let launched = compact(client, "launch_session", json!({"slug": "small"})).await;
    let id = line(&launched, "session_id").to_owned();
    let noise = "document.title = '\\u200b'.repeat(3000); for (let n = 0; n < 300; n++) console.log('\\u202e\\u0001'.repeat(n))";
    compact(client, "navigate", json!({"session_id": id, "url": site.url("/big")})).await;
    compact(client, "evaluate", json!({"session_id": id, "expression": noise})).await;
    for (tool, more) in [
        ("list_console_messages", json!({"limit": 500})),
        ("list_events", json!({"limit": 500})),
        ("list_network_requests", json!({})),
        ("snapshot", json!({})),
        ("list_tabs", json!({})),
        ("get_content", json!({})),
        ("evaluate", json!({"expression": "'\\u200b'.repeat(100000)"})),
        ("evaluate", json!({"expression": "throw new Error('\\u202e'.repeat(100000))"})),
        ("click", json!({"selector": "\u{200b}".repeat(4000)})),
    ] {
        let mut arguments = more;
        arguments["session_id"] = id.as_str().into();
        let result = ask(client, tool, arguments).await;
        let bytes = serde_json::to_string(&result).expect("a result is JSON").len();
        assert!(bytes <= BYTES_MAX, "{tool}: {bytes} bytes");
    }
}

//! Nothing is missed at the beginning of a page, a popup, a frame or a worker, and what a call caused
//! carries the call's id.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, wait_for, walk};

/// Requests by the end of their address, once all of them have ended.
async fn finished(server: &Server, id: &str, wanted: &[&str]) -> Vec<Value> {
    wait_for("the requests end", || async {
        let requests = walk::requests(server, id).await;
        let is_there = |end: &&str| {
            requests.iter().any(|request| {
                request["state"] == "finished" && request["url"].as_str().is_some_and(|url| url.ends_with(end))
            })
        };
        wanted.iter().all(is_there).then_some(requests)
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_is_heard_from_its_first_line() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let arrived = server.ok_reply("navigate", json!({"session_id": id, "url": site.url("/console.html")})).await;
    walk::console_with(&server, &id, "thrown later").await;
    let messages = walk::console_with(&server, &id, "rejected promise").await;
    let texts = walk::texts(&messages);
    assert!(texts[0].starts_with("first line text 7"), "{texts:?}");
    assert_eq!(texts.iter().filter(|text| **text == "again").count(), 3);
    let with = |key: &str, value: &str| messages.iter().filter(|message| message[key] == value).count();
    for (level, at_least) in [("debug", 1), ("info", 5), ("warning", 1), ("error", 3)] {
        assert!(with("level", level) >= at_least, "{level}: {messages:?}");
    }
    for kind in ["table", "assert", "exception"] {
        assert!(with("type", kind) >= 1, "{kind}: {messages:?}");
    }
    assert_eq!(messages[0]["operation_id"], arrived.operation_id());
    assert_eq!(messages[0]["location"]["url"], site.url("/console.html"));

    let errors = server.ok("list_console_messages", json!({"session_id": id, "level": "error"})).await;
    assert!(errors["messages"].as_array().is_some_and(|rows| rows.iter().all(|row| row["level"] == "error")));
    let found =
        server.ok("list_console_messages", json!({"session_id": id, "text_filter": "^an? (info|warning) line$"})).await;
    assert_eq!(found["messages"].as_array().map(Vec::len), Some(2), "{found}");
    let folded = server
        .ok("list_console_messages", json!({"session_id": id, "repeats": "fold", "text_filter": "^again$"}))
        .await;
    assert_eq!((folded["messages"].as_array().map(Vec::len), &folded["messages"][0]["repeats"]), (Some(1), &json!(3)));
    server.fault("list_console_messages", json!({"session_id": id, "text_filter": "("}), "INVALID_ARGUMENTS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn popups_are_heard_from_their_first_line() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/popup.html")).await;
    let before = server.ok("list_tabs", json!({"session_id": id})).await;
    for selector in ["#open", "#blank"] {
        let clicked = server.ok_reply("click", json!({"session_id": id, "selector": selector})).await;
        let heard = wait_for("the popup speaks", || async {
            let asked = json!({"session_id": id, "operation_id": clicked.operation_id()});
            let messages = walk::all(&server, "list_console_messages", "messages", asked, 500).await;
            // A popup may speak after the click has settled; it is known by its tab then.
            let all = walk::console(&server, &id).await;
            let lines = all.iter().filter(|message| message["text"] == "popup first line").count();
            (lines == if selector == "#open" { 1 } else { 2 }).then_some(messages)
        })
        .await;
        assert!(heard.len() <= 1);
    }
    let tabs = server.ok("list_tabs", json!({"session_id": id})).await;
    assert_eq!(tabs.as_array().map(Vec::len), Some(3), "{tabs}");
    assert_eq!(
        (&tabs[0]["tab_id"], &tabs[0]["active"]),
        (&before[0]["tab_id"], &json!(true)),
        "the active tab is not stolen"
    );
    let requests = finished(&server, &id, &["/opened.html", "/json?from=popup"]).await;
    let first = requests.iter().filter(|request| request["url"] == site.url("/opened.html")).count();
    assert_eq!(first, 2, "the popups' own documents are on record: {requests:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_and_workers_are_heard_from_their_first_line() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/frames.html")).await;
    walk::console_with(&server, &id, "frame first line 127.0.0.1").await;
    walk::console_with(&server, &id, "frame first line localhost").await;
    finished(&server, &id, &["/frame.html", "/json?from=frame"]).await;
    let from_frames = walk::requests(&server, &id).await;
    let count = from_frames
        .iter()
        .filter(|request| request["url"].as_str().is_some_and(|url| url.ends_with("from=frame")))
        .count();
    assert_eq!(count, 2, "{from_frames:?}");

    server.ok("navigate", json!({"session_id": id, "url": site.url("/workers.html")})).await;
    for line in ["worker first line", "shared worker first line", "service worker first line"] {
        // The line itself: each of these ends like the one before it.
        let heard = |messages: &[Value]| walk::texts(messages).iter().filter(|text| **text == line).count();
        let messages = wait_for(line, || async {
            let messages = walk::console(&server, &id).await;
            (heard(&messages) > 0).then_some(messages)
        })
        .await;
        assert_eq!(heard(&messages), 1, "{line}: {messages:?}");
    }
    let requests = finished(&server, &id, &["from=worker", "from=shared", "from=service"]).await;
    for end in ["from=worker", "from=shared", "from=service"] {
        let seen =
            requests.iter().filter(|request| request["url"].as_str().is_some_and(|url| url.ends_with(end))).count();
        assert_eq!(seen, 1, "{end}: {requests:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_operation_gathers_what_it_caused() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    let clicked = server.ok_reply("click", json!({"session_id": id, "selector": "#save"})).await;
    finished(&server, &id, &["/json?from=save"]).await;
    let asked = json!({"session_id": id, "operation_id": clicked.operation_id()});
    let events = walk::all(&server, "list_events", "events", asked, 500).await;
    let kinds: Vec<&str> = events.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds[..2], ["call.accepted", "call.entered"], "{kinds:?}");
    let end = kinds.iter().position(|kind| *kind == "call.settled").expect("an end");
    for kind in ["console.message", "network.request"] {
        assert!(kinds[..end].contains(&kind), "{kind} precedes the call's end: {kinds:?}");
    }
    let late = ["network.response", "network.headers", "network.finished", "network.body"];
    assert!(kinds[end + 1..].iter().all(|kind| late.contains(kind)), "only ends of its requests follow: {kinds:?}");
    assert!(events.windows(2).all(|pair| pair[0]["seq"].as_u64() < pair[1]["seq"].as_u64()), "in order");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_click_caused_is_one_call_and_what_came_later_one_cursor() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let page =
        "document.body.innerHTML = '<button id=all>All</button>'; document.querySelector('#all').onclick = () => {
        console.log('clicked'); fetch('/hold'); fetch('/redirect/1'); open('/opened.html');
        console.error('went wrong'); setInterval(() => console.log('tick'), 100);
    }; 1";
    server.ok("evaluate", json!({"session_id": id, "expression": page})).await;
    let clicked = server.ok_reply("click", json!({"session_id": id, "selector": "#all"})).await;
    let asked = json!({"session_id": id, "operation_id": clicked.operation_id(), "limit": 500});
    let caused = server.ok("list_events", asked).await;
    let events = caused["events"].as_array().expect("events");
    let with = |kind: &str, field: &str, value: &str| {
        events.iter().any(|event| {
            event["kind"] == kind && event["data"][field].as_str().is_some_and(|text| text.ends_with(value))
        })
    };
    for (kind, field, value) in [
        ("call.accepted", "tool", "click"),
        ("console.message", "text", "clicked"),
        ("console.message", "text", "went wrong"),
        ("network.request", "url", "/redirect/1"),
    ] {
        assert!(with(kind, field, value), "{kind} {value}: {caused:#}");
    }
    for kind in ["page.opened", "call.settled"] {
        assert!(events.iter().any(|event| event["kind"] == kind), "{kind}: {caused:#}");
    }
    // What is answered long after the call was is of the call that asked.
    server.ok("evaluate", json!({"session_id": id, "expression": "1"})).await;
    site.release();
    let held = wait_for("the held request is told to its end", || async {
        let asked = json!({"session_id": id, "operation_id": clicked.operation_id(), "limit": 500});
        let page = server.ok("list_events", asked).await;
        let is_held = |event: &&Value| event["data"]["url"].as_str().is_some_and(|url| url.ends_with("/hold"));
        let events = page["events"].as_array()?;
        let request_id = events.iter().find(is_held)?["request_id"].clone();
        let of_it: Vec<Value> = events.iter().filter(|event| event["request_id"] == request_id).cloned().collect();
        of_it.iter().any(|event| event["kind"] == "network.body").then_some(of_it)
    })
    .await;
    let kinds: Vec<&str> = held.iter().filter_map(|event| event["kind"].as_str()).collect();
    for kind in ["network.request", "network.headers", "network.response", "network.finished"] {
        assert!(kinds.contains(&kind), "{kind}: {kinds:?}");
    }
    let complete = |event: &Value| event["seq"].is_u64() && event["recorded_at"].is_string();
    assert!(events.iter().all(complete), "each row says when and where in the log: {caused:#}");

    // Timers go on; what they do after the answer belongs to no call, and is found by going on.
    let start = server.ok("list_events", json!({"session_id": id, "limit": 1})).await;
    let ticks = wait_for("a tick of no call", || async {
        let after = json!({"session_id": id, "after": start["next_cursor"], "limit": 500});
        let page = server.ok("list_events", after).await;
        let of_none = |event: &&Value| event["data"]["text"] == "tick" && event["operation_id"].is_null();
        page["events"].as_array().map(|events| events.iter().filter(of_none).count()).filter(|count| *count > 0)
    })
    .await;
    assert!(ticks > 0);
}

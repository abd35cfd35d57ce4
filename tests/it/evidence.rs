//! The evidence is complete, paged without skip or repeat, and outlives page, session and server.

use base64::Engine;
use serde_json::{Value, json};

use crate::site::{self, Site};
use crate::support::{LIMIT, Options, Server, processes, wait_for, walk};

/// A session that has gone through the network page to its end.
async fn networked(server: &Server, site: &Site) -> (String, Vec<Value>) {
    let id = server.launch_at(&site.url("/network.html")).await;
    walk::console_with(server, &id, "network done").await;
    let requests = wait_for("every request ends and has its body", || async {
        let requests = walk::requests(server, &id).await;
        let ended = requests.iter().all(|request| request["state"] != "pending");
        let posted = requests.iter().find(|request| request["method"] == "POST")?;
        let body = part(server, &id, posted, "response_body").await;
        (ended && body["content"].is_string()).then_some(requests)
    })
    .await;
    (id, requests)
}

async fn part(server: &Server, id: &str, request: &Value, part: &str) -> Value {
    server.ok("get_network_request", json!({"session_id": id, "request_id": request["request_id"], "part": part})).await
}

fn find<'a>(requests: &'a [Value], what: &str) -> &'a Value {
    let fits = |request: &&Value| request["url"].as_str().is_some_and(|url| url.contains(what));
    requests.iter().find(fits).unwrap_or_else(|| panic!("no request for {what}: {requests:?}"))
}

#[tokio::test(flavor = "multi_thread")]
async fn every_request_is_there_with_its_parts() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let (id, requests) = networked(&server, &site).await;
    assert_eq!(requests.len(), 12, "one row each, redirects in one: {requests:?}");
    let seqs: Vec<u64> = requests.iter().filter_map(|request| request["seq"].as_u64()).collect();
    assert!(seqs.is_sorted(), "in order of start");

    let posted = find(&requests, "/echo");
    assert_eq!(part(&server, &id, posted, "request_body").await["content"], r#"{"posted":"body text"}"#);
    assert_eq!(part(&server, &id, posted, "response_body").await["content"], r#"{"posted":"body text"}"#);
    let headers = part(&server, &id, posted, "request_headers").await;
    assert!(headers.to_string().contains("application/json"), "{headers}");
    let redirected = find(&requests, "/redirect/");
    let redirects = part(&server, &id, redirected, "redirects").await;
    assert_eq!(redirects["redirects"].as_array().map(Vec::len), Some(3), "{redirects}");
    assert_eq!(part(&server, &id, redirected, "response_body").await["content"], r#"{"arrived":true}"#);
    let summary = part(&server, &id, redirected, "summary").await;
    assert_eq!((&summary["status"], &summary["state"]), (&json!(200), &json!("finished")));
    assert!(part(&server, &id, posted, "timing").await["duration_ms"].is_number());
    let binary = part(&server, &id, find(&requests, "/binary"), "response_body").await;
    assert_eq!(
        (&binary["kept"], binary["omitted"].is_string()),
        (&json!(false), true),
        "policy text keeps no bytes: {binary}"
    );
    let text = find(&requests, "/text");
    let asked = json!({"session_id": id, "request_id": text["request_id"], "part": "response_body", "offset": 10_000, "length": 100});
    let slice = server.ok("get_network_request", asked).await;
    assert_eq!(
        (&slice["total_bytes"], &slice["length"], &slice["next_offset"]),
        (&json!(20_000), &json!(100), &json!(10_100))
    );
    let missing = json!({"session_id": id, "request_id": "r-none"});
    server.fault("get_network_request", missing, "INVALID_ARGUMENTS").await;

    let count = async |filter: Value| {
        let mut arguments = filter;
        arguments["session_id"] = json!(id);
        walk::all(&server, "list_network_requests", "requests", arguments, 2).await.len()
    };
    assert_eq!(count(json!({"status": "4xx"})).await, 1);
    assert_eq!(count(json!({"status": "404"})).await, 1);
    assert_eq!(count(json!({"failed": true})).await, 2, "one aborted by each side");
    assert_eq!(count(json!({"method": "POST"})).await, 1);
    assert_eq!(count(json!({"resource_types": ["image"]})).await, 1);
    assert_eq!(count(json!({"static": false})).await, 11);
    assert_eq!(count(json!({"url_filter": "/(json|text)"})).await, 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn binary_bodies_are_kept_when_asked_for() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--capture-bodies", "all")).await;
    let (id, requests) = networked(&server, &site).await;
    let binary = find(&requests, "/binary");
    let body = wait_for("the body", || async {
        let body = part(&server, &id, binary, "response_body").await;
        body["content"].is_string().then_some(body)
    })
    .await;
    assert_eq!(body["encoding"], "base64");
    let bytes =
        base64::engine::general_purpose::STANDARD.decode(body["content"].as_str().expect("text")).expect("base64");
    assert_eq!(bytes, site::pattern(2_000));
}

#[tokio::test(flavor = "multi_thread")]
async fn evidence_outlives_page_session_and_server() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let (id, requests) = networked(&server, &site).await;
    let console = walk::console(&server, &id).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    server.ok("close_session", json!({"session_id": id})).await;
    let after_close = walk::requests(&server, &id).await;
    assert_eq!(after_close[..requests.len()], requests, "the page's end changes nothing");
    assert_eq!(walk::console(&server, &id).await[..console.len()], console);
    let posted = find(&requests, "/echo").clone();
    let body = part(&server, &id, &posted, "response_body").await;
    let events = walk::events(&server, &id).await;
    let half = server.ok("list_events", json!({"session_id": id, "limit": 7})).await;
    let data = server.stop().await.data;

    let server = Server::start(Options::stdio().on(&data)).await;
    assert_eq!(walk::requests(&server, &id).await, after_close, "nor does the server's");
    assert_eq!(part(&server, &id, &posted, "response_body").await, body);
    assert_eq!(walk::events(&server, &id).await, events);
    let rest = json!({"session_id": id, "after": half["next_cursor"], "limit": 500});
    let rest = server.ok("list_events", rest).await;
    assert_eq!(rest["events"].as_array().expect("events")[..], events[7..], "a cursor holds across a restart");
    server.fault("snapshot", json!({"session_id": id}), "SESSION_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_walk_neither_skips_nor_repeats() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let (id, _) = networked(&server, &site).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/console.html")})).await;
    walk::console_with(&server, &id, "thrown later").await;
    server.ok("close_session", json!({"session_id": id})).await;
    let lists =
        [("list_events", "events"), ("list_console_messages", "messages"), ("list_network_requests", "requests")];
    for (tool, key) in lists {
        let whole = walk::all(&server, tool, key, json!({"session_id": id}), 500).await;
        assert!(whole.len() > 7, "{tool}");
        for limit in [1, 2, 7] {
            assert_eq!(
                walk::all(&server, tool, key, json!({"session_id": id}), limit).await,
                whole,
                "{tool} by {limit}"
            );
        }
        let mut newest = walk::all(&server, tool, key, json!({"session_id": id, "order": "desc"}), 3).await;
        newest.reverse();
        assert_eq!(newest, whole, "{tool} from the end");
        let page = server.ok(tool, json!({"session_id": id, "limit": 500})).await;
        assert_eq!(page["retained_count"], whole.len(), "{tool}");
        assert_eq!((&page["dropped_count"], &page["retention_lost"]), (&json!(0), &json!(false)));
        let rest = json!({"session_id": id, "after": page["next_cursor"]});
        let (first, second) = (server.ok(tool, rest.clone()).await, server.ok(tool, rest).await);
        assert_eq!((&first, first[key].as_array().map(Vec::len)), (&second, Some(0)), "{tool} at rest");
        assert_eq!(first["next_cursor"], page["next_cursor"], "{tool} at rest");
        cursors_are_refused(&server, tool, &id, page["next_cursor"].as_str().expect("a cursor")).await;
    }
}

/// What is no cursor of this list and filter is refused.
async fn cursors_are_refused(server: &Server, tool: &str, id: &str, cursor: &str) {
    let mut tampered = cursor.to_owned().into_bytes();
    let middle = tampered.len() / 2;
    tampered[middle] = if tampered[middle] == b'A' { b'B' } else { b'A' };
    let tampered = String::from_utf8(tampered).expect("ASCII");
    for after in [&tampered, "x", "AQAAAA", &format!("{cursor}A")] {
        server.fault(tool, json!({"session_id": id, "after": after}), "INVALID_CURSOR").await;
    }
    let other_filter = json!({"session_id": id, "after": cursor, "since": "2020-01-01T00:00:00Z"});
    server.fault(tool, other_filter, "INVALID_CURSOR").await;
    let other_tool = if tool == "list_events" { "list_console_messages" } else { "list_events" };
    server.fault(other_tool, json!({"session_id": id, "after": cursor}), "INVALID_CURSOR").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn polling_while_the_page_talks_finds_every_line() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let talk = "new Promise(done => { let n = 0; const say = () => { console.log('line ' + n); ++n < 400 ? setTimeout(say) : done(); }; say(); })";
    let talking = server.begin("evaluate", json!({"session_id": id, "expression": talk})).await;
    let mut after = Value::Null;
    let mut lines: Vec<String> = Vec::new();
    let polling = async {
        while lines.len() < 400 {
            let mut page =
                server.ok("list_console_messages", json!({"session_id": id, "after": after, "limit": 50})).await;
            lines.extend(walk::texts(page["messages"].as_array().expect("messages")).into_iter().map(str::to_owned));
            after = page["next_cursor"].take();
        }
    };
    tokio::time::timeout(LIMIT, polling).await.expect("every line in time");
    let wanted: Vec<String> = (0..400).map(|n| format!("line {n}")).collect();
    assert_eq!(lines, wanted);
    assert!(!talking.reply().await.is_error);
}

#[tokio::test(flavor = "multi_thread")]
async fn walks_go_on_over_the_death_of_a_browser_and_of_its_server() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let talk = "let n = 0; setInterval(() => { console.log('line ' + n++); fetch('/json?n=' + n); }); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": talk})).await;
    let lists =
        [("list_events", "events"), ("list_console_messages", "messages"), ("list_network_requests", "requests")];
    let mut begun = Vec::new();
    for (tool, key) in lists {
        let mut page = server.ok(tool, json!({"session_id": id, "limit": 7})).await;
        begun.push((page[key].as_array().cloned().expect("rows"), page["next_cursor"].take()));
    }
    processes::signal(processes::browser(server.pid(), &[]).pid, "KILL").await;
    // These read while the death is taken in, until nothing more can come.
    for ((tool, key), (rows, after)) in lists.into_iter().zip(&mut begun) {
        let whole = async {
            loop {
                let closed = json!({"session_id": id, "kinds": ["session.closed"]});
                let closed = server.ok("list_events", closed).await["events"].as_array().is_some_and(|e| !e.is_empty());
                let mut page = server.ok(tool, json!({"session_id": id, "after": *after, "limit": 30})).await;
                rows.extend(page[key].as_array().cloned().expect("rows"));
                *after = page["next_cursor"].take();
                if closed && page["has_more"] == false {
                    return;
                }
            }
        };
        tokio::time::timeout(LIMIT, whole).await.expect("the walk comes to rest");
    }
    let data = server.kill().await.data;
    let server = Server::start(Options::stdio().on(&data)).await;
    for ((tool, key), (rows, after)) in lists.into_iter().zip(begun) {
        let page = server.ok(tool, json!({"session_id": id, "after": after})).await;
        assert_eq!((page[key].as_array().map(Vec::len), &page["next_cursor"]), (Some(0), &after), "{tool} at rest");
        let whole = walk::all(&server, tool, key, json!({"session_id": id}), 500).await;
        let numbers = |rows: &[Value]| rows.iter().map(|row| row["seq"].clone()).collect::<Vec<_>>();
        assert_eq!(numbers(&rows), numbers(&whole), "{tool}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn downloads_are_whole() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    for selector in ["#header", "#link", "#blob"] {
        server.ok("click", json!({"session_id": id, "selector": selector})).await;
    }
    let downloads = wait_for("three downloads", || async {
        let downloads = walk::all(&server, "list_downloads", "downloads", json!({"session_id": id}), 2).await;
        let finished = downloads.iter().filter(|download| download["state"] == "finished").count();
        (finished == 3).then_some(downloads)
    })
    .await;
    let named = |name: &str| {
        let found = downloads.iter().find(|download| download["suggested_name"] == name);
        found.unwrap_or_else(|| panic!("no {name}: {downloads:?}")).clone()
    };
    assert_eq!(named("header.bin")["total_bytes"], 300_000);
    assert_eq!(named("header.bin")["url"], site.url("/download/header.bin?bytes=300000"));
    server.ok("close_session", json!({"session_id": id})).await;
    for (name, wanted) in [("header.bin", site::pattern(300_000)), ("blob.txt", b"blob content".to_vec())] {
        let download = named(name);
        let bytes = walk::artifact(&server, download["artifact"].as_str().expect("a handle"), 100_000).await;
        assert_eq!(bytes, wanted, "{name}");
        assert_eq!(download["sha256"].as_str().map(str::len), Some(64));
    }
    server.fault("read_artifact", json!({"handle": "art-00000000000000000000000000000000"}), "UNKNOWN_HANDLE").await;
    server.fault("read_artifact", json!({"handle": "../../etc/passwd"}), "UNKNOWN_HANDLE").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_are_followed() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/socket.html")).await;
    walk::console_with(&server, &id, "echoed hello socket").await;
    walk::console_with(&server, &id, "socket closed").await;
    let requests = walk::requests(&server, &id).await;
    let socket = requests.iter().find(|request| request["resource_type"] == "websocket").expect("a row for the socket");
    let frames = part(&server, &id, socket, "frames").await;
    let frames: Vec<(&Value, &Value)> = frames["frames"]
        .as_array()
        .expect("frames")
        .iter()
        .map(|frame| (&frame["direction"], &frame["payload"]))
        .collect();
    let (sent, received, hello) = (json!("sent"), json!("received"), json!("hello socket"));
    assert_eq!(frames[..2], [(&sent, &hello), (&received, &hello)]);
}

#[tokio::test(flavor = "multi_thread")]
async fn each_life_of_a_name_keeps_its_requests() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    for life in ["first", "second"] {
        server.ok("browser_create_instance", json!({"name": "shop"})).await;
        let url = site.url(&format!("/json?life={life}"));
        server.ok("navigate", json!({"session_id": "shop", "url": url})).await;
        wait_for("the body is kept", || async {
            let requests = walk::requests(&server, "shop").await;
            let request = requests.iter().find(|request| request["url"] == url.as_str())?.clone();
            part(&server, "shop", &request, "response_body").await["content"].is_string().then_some(())
        })
        .await;
        server.ok("browser_destroy_instance", json!({"name": "shop"})).await;
    }
    let requests = walk::requests(&server, "shop").await;
    for life in ["life=first", "life=second"] {
        let request = find(&requests, life);
        let summary = part(&server, "shop", request, "summary").await;
        assert_eq!((&summary["url"], &summary["state"]), (&request["url"], &json!("finished")));
        assert!(part(&server, "shop", request, "response_body").await["content"].is_string(), "{life}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_that_failed_stays_failed() {
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let url = "http://127.0.0.1:9/";
    let refused = server.call("navigate", json!({"session_id": id, "url": url})).await;
    assert!(refused.is_error, "{}", refused.structured);
    // Chromium's own page for it comes later, and is told of under the same id.
    wait_for("the error page is there", || async {
        let asked = json!({"session_id": id, "expression": "location.protocol + document.readyState"});
        (server.ok("evaluate", asked).await["result"] == "chrome-error:complete").then_some(())
    })
    .await;
    server.ok("navigate", json!({"session_id": id, "url": "about:blank"})).await;
    let failed = json!({"session_id": id, "failed": true});
    let failed = walk::all(&server, "list_network_requests", "requests", failed, 50).await;
    let request = find(&failed, url);
    assert_eq!((failed.len(), &request["state"], &request["status"]), (1, &json!("failed"), &Value::Null));
    let of_it = json!({"session_id": id, "request_id": request["request_id"]});
    let story = walk::all(&server, "list_events", "events", of_it, 50).await;
    let kinds: Vec<&str> = story.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["network.request", "network.failed"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_has_closed_is_heard_once() {
    const TALK: &str = "new Promise(heard => { new Worker(URL.createObjectURL(new Blob([
        \"setInterval(() => { console.log('tick'); postMessage(1); }, 1)\"]))).onmessage = () => heard(1); })";
    const ROUNDS: usize = 6;
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let of = async |kind: &str| {
        walk::all(&server, "list_events", "events", json!({"session_id": id, "kinds": [kind]}), 500).await
    };
    for round in 1..=ROUNDS {
        server.ok("evaluate", json!({"session_id": id, "expression": TALK})).await;
        server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
        wait_for("it has ended", || async { (of("worker.stopped").await.len() == round).then_some(()) }).await;
    }
    server.ok("evaluate", json!({"session_id": id, "expression": "console.log('after')"})).await;
    walk::console_with(&server, &id, "after").await;
    let again = of("log.entry").await;
    assert!(!again.iter().any(|entry| entry["data"]["text"].to_string().contains("tick")), "{again:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_ends_with_its_tab() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let tab = server.ok("new_tab", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let ask = "setTimeout(() => confirm('sure?'), 0); 1";
    server.call("evaluate", json!({"session_id": id, "expression": ask})).await;
    let of = async |kind: &str| {
        walk::all(&server, "list_events", "events", json!({"session_id": id, "kinds": [kind]}), 50).await
    };
    let opened = wait_for("the dialog", || async { of("dialog.opened").await.pop() }).await;
    assert!(of("dialog.closed").await.is_empty());
    server.ok("close_tab", json!({"session_id": id, "tab_id": tab["tab_id"]})).await;
    let closed = wait_for("its end", || async { of("dialog.closed").await.pop() }).await;
    assert_eq!((&closed["tab_id"], &closed["data"]["accepted"]), (&opened["tab_id"], &json!(false)));
    assert_eq!(of("dialog.closed").await.len(), 1);
}

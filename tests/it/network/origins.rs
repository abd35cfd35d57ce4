//! Requests that do not come from the page's own document, and rows by what they belong to.

use serde_json::{Value, json};

use super::{body, ended, part, request, run};
use crate::site::Site;
use crate::support::{Options, Server, walk};

#[tokio::test(flavor = "multi_thread")]
async fn what_a_service_worker_answers_says_so() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "const ruled = new Promise(done => navigator.serviceWorker.oncontrollerchange = done); \
        await navigator.serviceWorker.register('/answering-worker.js'); await ruled; \
        for (const end of ['answered', 'passed']) await (await fetch('/json?' + end)).text();";
    run(&server, &id, script).await;
    let answered = ended(&server, &id, "?answered").await;
    assert_eq!((&answered["served_from"], &answered["status"]), (&json!("service_worker"), &json!(200)), "{answered}");
    assert_eq!(body(&server, &id, &answered, "response_body").await["content"], "made by the worker");
    assert!(site.received().iter().all(|request| !request.path.ends_with("?answered")), "the server was not asked");
    // The page's request and the one the worker made for it.
    ended(&server, &id, "?passed").await;
    let rows = walk::requests(&server, &id).await;
    let passed: Vec<&Value> = rows.iter().filter(|row| row["url"] == site.url("/json?passed")).collect();
    let (pages, workers): (Vec<&Value>, Vec<&Value>) = passed.iter().partition(|row| row["tab_id"].is_string());
    assert_eq!((pages.len(), workers.len()), (1, 1), "{passed:?}");
    assert_eq!((&pages[0]["served_from"], &workers[0]["served_from"]), (&json!("service_worker"), &Value::Null));
    let content = body(&server, &id, pages[0], "response_body").await;
    assert!(content["content"].as_str().is_some_and(|text| text.starts_with("{\"ok\"")), "{content}");
    assert_eq!(body(&server, &id, workers[0], "response_body").await["omitted"], "passed_on");
}

#[tokio::test(flavor = "multi_thread")]
async fn workers_and_frames_of_other_sites_have_their_bodies() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = format!(
        "const code = `fetch('${{location.origin}}/echo?worker', {{method: 'POST', body: 'sent by a worker'}})\
         .then(answer => answer.text())`; \
         globalThis.worker = new Worker(URL.createObjectURL(new Blob([code]))); \
         const frame = document.createElement('iframe'); frame.src = '{}'; document.body.append(frame);",
        site.other_url("/posting.html")
    );
    run(&server, &id, &script).await;
    let document = ended(&server, &id, "/plain.html").await;
    for (end, sent) in [("?worker", "sent by a worker"), ("?framed", "sent by a frame")] {
        let row = ended(&server, &id, end).await;
        assert_eq!((&row["method"], &row["tab_id"]), (&json!("POST"), &document["tab_id"]), "{row}");
        for direction in ["request_body", "response_body"] {
            assert_eq!(body(&server, &id, &row, direction).await["content"], sent, "{end}: {direction}");
        }
    }
    let sent = json!({"session_id": id, "kinds": ["network.request"]});
    let sent = walk::all(&server, "list_events", "events", sent, 500).await;
    let frame = |end: &str| {
        let fits = |event: &&Value| event["data"]["url"].as_str().is_some_and(|url| url.ends_with(end));
        sent.iter().find(fits).expect("the event")["frame_id"].clone()
    };
    assert!(frame("?framed").is_string() && frame("?framed") == frame("/posting.html"), "{sent:?}");
    assert!(frame("?framed") != frame("/plain.html") && frame("?worker") != frame("?framed"), "{sent:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_sent_as_a_page_goes_has_its_body_and_its_answer() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "addEventListener('pagehide', () => \
        fetch('/hold?last', {method: 'POST', keepalive: true, body: 'a last word'}));";
    run(&server, &id, script).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html?next")})).await;
    site.arrived("/hold").await;
    let row = ended(&server, &id, "?last").await;
    let sent = body(&server, &id, &row, "request_body").await;
    assert_eq!((&sent["content"], &sent["total_bytes"]), (&json!("a last word"), &json!(11)), "{sent}");
    // For the page it is over; the server's answer is on record all the same.
    assert_eq!((&row["state"], &row["failure"]), (&json!("failed"), &json!("net::ERR_ABORTED")), "{row}");
    site.release();
    let row = request(&server, &id, "?last", |row| row["wire_status"] == 200).await;
    assert_eq!((&row["state"], &row["status"]), (&json!("failed"), &Value::Null), "{row}");
    let headers = part(&server, &id, &row, "response_headers").await;
    assert_eq!(headers["headers"]["Content-Type"], "text/plain", "{headers}");
}

#[tokio::test(flavor = "multi_thread")]
async fn rows_are_found_by_tab_call_and_time() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let first = server.ok("list_tabs", json!({"session_id": id})).await[0]["tab_id"].clone();
    let script = "(async () => { for (const path of ['/tagged?seed', '/tagged', '/tagged']) \
        await (await fetch(path, {cache: 'no-cache'})).text(); })()";
    let called = server.ok_reply("evaluate", json!({"session_id": id, "expression": script})).await;
    let second = server.ok("new_tab", json!({"session_id": id, "url": site.url("/json?second")})).await;
    ended(&server, &id, "?second").await;
    let rows = walk::requests(&server, &id).await;
    let found = async |filter: Value| -> Vec<Value> {
        let mut arguments = filter;
        arguments["session_id"] = id.clone().into();
        let rows = walk::all(&server, "list_network_requests", "requests", arguments, 2).await;
        rows.into_iter().map(|row| row["request_id"].clone()).collect()
    };
    let those = |fits: &dyn Fn(&Value) -> bool| -> Vec<Value> {
        let rows = rows.iter().filter(|row| fits(row)).map(|row| row["request_id"].clone()).collect::<Vec<_>>();
        assert!(!rows.is_empty());
        rows
    };
    let of_tab = |tab: &Value| those(&|row| row["tab_id"] == *tab);
    assert_eq!(found(json!({"tab_id": first})).await, of_tab(&first));
    assert_eq!(found(json!({"tab_id": second["tab_id"]})).await, of_tab(&second["tab_id"]));
    let tagged = those(&|row| row["url"].as_str().is_some_and(|url| url.contains("/tagged")));
    assert_eq!(tagged.len(), 3);
    assert_eq!(found(json!({"operation_id": called.operation("id")})).await, tagged);
    // A status is what the page saw: of a copy that was confirmed, the copy's.
    assert!(found(json!({"status": "304"})).await.is_empty());
    assert!(found(json!({"status": "200", "url_filter": "/tagged"})).await == tagged);
    let middle = &rows[rows.len() / 2]["timestamp"];
    let (since, until) = (found(json!({"since": middle})).await, found(json!({"until": middle})).await);
    let from = those(&|row| row["timestamp"].as_str() >= middle.as_str());
    assert_eq!(since, from);
    let before = those(&|row| row["timestamp"].as_str() <= middle.as_str());
    assert_eq!(until, before);
    assert!(found(json!({"tab_id": "no-such-tab"})).await.is_empty());
}

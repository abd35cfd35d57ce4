//! Every request ends in the record, also when nobody tells of its end.

use serde_json::json;

use super::{ended, part, request, run};
use crate::site::Site;
use crate::support::{Options, Server, walk};

/// Requests that only the end of what sent them ends.
const HELD: &str = "fetch('/hold?fetch').catch(() => 0); new EventSource('/events?source'); \
    new WebSocket(location.href.replace('http', 'ws').replace('plain.html', 'ws?socket'));";
const ENDS: [&str; 3] = ["?fetch", "?source", "?socket"];

/// Runs on every page to the point where all of them are under way.
async fn under_way(server: &Server, site: &Site, id: &str) {
    run(server, id, HELD).await;
    site.arrived("/hold").await;
    for end in ENDS {
        request(server, id, end, |_| true).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_document_in_another_process_ends_those_of_the_one_before() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    under_way(&server, &site, &id).await;
    server.ok("navigate", json!({"session_id": id, "url": site.other_url("/plain.html?other")})).await;
    for end in ["?fetch", "?source"] {
        let row = ended(&server, &id, end).await;
        assert_eq!(row["state"], "failed", "{row}");
    }
    assert_eq!(ended(&server, &id, "?other").await["state"], "finished", "the new one goes on");
    run(&server, &id, "await (await fetch('/json?after')).text();").await;
    assert_eq!(ended(&server, &id, "?after").await["state"], "finished");
}

#[tokio::test(flavor = "multi_thread")]
async fn the_ends_of_pages_and_sessions_end_theirs() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let first = server.ok("list_tabs", json!({"session_id": id})).await[0]["tab_id"].clone();
    server.ok("new_tab", json!({"session_id": id, "url": site.url("/text?second")})).await;
    server.ok("switch_tab", json!({"session_id": id, "tab_id": first})).await;
    under_way(&server, &site, &id).await;
    server.ok("close_tab", json!({"session_id": id, "tab_id": first})).await;
    for end in ENDS {
        let row = ended(&server, &id, end).await;
        assert!(row["failure"].is_string() || row["resource_type"] == "websocket", "{row}");
    }
    run(&server, &id, "fetch('/hold?last').catch(() => 0);").await;
    request(&server, &id, "?last", |_| true).await;
    server.ok("close_session", json!({"session_id": id})).await;
    let row = ended(&server, &id, "?last").await;
    assert_eq!(row["state"], "failed", "{row}");
    let told = part(&server, &id, &row, "response_body").await;
    assert_eq!(told["omitted"], "request_failed");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_killed_server_saw_under_way_is_unfinished() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    run(&server, &id, "new EventSource('/events?source');").await;
    let row = request(&server, &id, "?source", |row| row["status"] == 200).await;
    super::wait_for("a message", || async {
        part(&server, &id, &row, "response_body").await["content"].is_string().then_some(())
    })
    .await;
    let server = Server::start(Options::stdio().on(&server.kill().await.data)).await;
    let after = request(&server, &id, "?source", |_| true).await;
    assert_eq!(after["state"], "unfinished", "{after}");
    let told = part(&server, &id, &row, "response_body").await;
    assert!(told["content"].as_str().is_some_and(|text| text.starts_with("data: one\n")), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn popups_and_workers_that_end_at_once_leave_nothing_open() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "for (const n of [1, 2, 3]) { const popup = open('/text?popup' + n); popup && popup.close(); } \
        const code = `fetch('${location.origin}/hold?worker')`; \
        const worker = new Worker(URL.createObjectURL(new Blob([code]))); globalThis.worker = worker;";
    run(&server, &id, script).await;
    request(&server, &id, "?worker", |_| true).await;
    run(&server, &id, "worker.terminate();").await;
    let row = ended(&server, &id, "?worker").await;
    assert_eq!(row["state"], "failed", "{row}");
    super::wait_for("everything ends", || async {
        let rows = walk::requests(&server, &id).await;
        rows.iter().all(|row| row["state"] != "pending").then_some(())
    })
    .await;
}

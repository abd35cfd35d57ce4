//! Going places and keeping tabs.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

#[tokio::test(flavor = "multi_thread")]
async fn there_and_back_again() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let arrived = server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    assert_eq!((&arrived["status"], &arrived["url"]), (&json!(200), &json!(site.url("/plain.html"))));
    let missing = server.ok("navigate", json!({"session_id": id, "url": site.url("/status/404")})).await;
    assert_eq!(missing["status"], 404, "an answer is an arrival, whatever its status");
    let redirected = server.ok("navigate", json!({"session_id": id, "url": site.url("/redirect/2")})).await;
    assert_eq!(redirected["url"], site.url("/redirect/0"));

    let back = server.ok("go_back", json!({"session_id": id})).await;
    assert_eq!(back["url"], site.url("/status/404"));
    let forward = server.ok("go_forward", json!({"session_id": id})).await;
    assert_eq!(forward["url"], site.url("/redirect/0"));
    let nowhere = server.ok("go_forward", json!({"session_id": id})).await;
    assert_eq!(nowhere["url"], site.url("/redirect/0"), "without an entry to go to, it stays");
    let before = site.received_for("/redirect/0").len();
    server.ok("reload", json!({"session_id": id})).await;
    assert_eq!(site.received_for("/redirect/0").len(), before + 1);
    server.ok("navigate", json!({"session_id": id, "url": "about:blank"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_reached_is_said() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let refused =
        server.fault("navigate", json!({"session_id": id, "url": "http://127.0.0.1:1/"}), "NAVIGATION_FAILED").await;
    assert!(refused["details"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{refused}");
    for url in
        ["file:///etc/passwd", "javascript:alert(1)", "chrome://version", "data:text/html,x", "FILE:///etc/passwd"]
    {
        server.fault("navigate", json!({"session_id": id, "url": url}), "SCHEME_NOT_ALLOWED").await;
        server.fault("new_tab", json!({"session_id": id, "url": url}), "SCHEME_NOT_ALLOWED").await;
    }
    for url in ["", "not a url", "http://", "ja\tvascript:alert(1)"] {
        server.fault("navigate", json!({"session_id": id, "url": url}), "NAVIGATION_FAILED").await;
    }
    let late = json!({"session_id": id, "url": site.url("/hold"), "timeout": 300});
    let late = server.fault("navigate", late, "NAVIGATION_TIMEOUT").await;
    assert_eq!(late["details"]["timeout_ms"], 300);
    let refusals = json!({"session_id": id, "kinds": ["policy.refused"]});
    let refusals = walk::all(&server, "list_events", "events", refusals, 500).await;
    assert_eq!(refusals.len(), 10, "each refusal is on record: {refusals:?}");
    // Nothing of it is in the way of what comes next.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn waiting_for_addresses_and_load_states() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/history.html")).await;
    server.ok("click", json!({"session_id": id, "selector": "#push"})).await;
    let step = server.ok("wait_for_url", json!({"session_id": id, "url": "**/history.html?step=*"})).await;
    assert!(step["url"].as_str().is_some_and(|url| url.contains("step=")), "{step}");
    server.ok("click", json!({"session_id": id, "selector": "#hash"})).await;
    let pattern = json!({"pattern": "#PART$", "flags": "i"});
    server.ok("wait_for_url", json!({"session_id": id, "url": pattern})).await;
    let never = json!({"session_id": id, "url": "**/never", "timeout": 200});
    server.fault("wait_for_url", never, "WAIT_TIMEOUT").await;
    server.fault("wait_for_url", json!({"session_id": id, "url": {"pattern": "("}}), "INVALID_ARGUMENTS").await;

    for state in ["domcontentloaded", "load", "networkidle"] {
        let waited = server.ok("wait_for_load_state", json!({"session_id": id, "state": state})).await;
        assert_eq!(waited["state"], state);
    }
    let endless = json!({"session_id": id, "url": site.url("/endless"), "wait_until": "commit"});
    server.ok("navigate", endless).await;
    server.fault("wait_for_load_state", json!({"session_id": id, "timeout": 200}), "WAIT_TIMEOUT").await;
    site.release();
    server.ok("wait_for_load_state", json!({"session_id": id})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_are_opened_switched_and_closed() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let opened = server.ok("new_tab", json!({"session_id": id, "url": site.url("/form.html")})).await;
    let active = |tabs: &Value| {
        let active: Vec<Value> =
            tabs.as_array().expect("tabs").iter().filter(|tab| tab["active"] == true).cloned().collect();
        assert_eq!(active.len(), 1, "{tabs}");
        active[0].clone()
    };
    let tabs = server.ok("list_tabs", json!({"session_id": id})).await;
    assert_eq!(active(&tabs)["title"], "Form");
    assert_eq!(tabs.as_array().map(Vec::len), Some(2), "{tabs}");
    assert_eq!(active(&tabs)["tab_id"], opened["tab_id"]);
    let first = tabs[0]["tab_id"].clone();
    server.ok("switch_tab", json!({"session_id": id, "tab_id": first})).await;
    let snapshot = server.ok("snapshot", json!({"session_id": id})).await;
    assert_eq!(snapshot["url"], site.url("/plain.html"));
    // A tab that is not active is worked on all the same.
    let filled = json!({"session_id": id, "selector": "#name", "value": "x", "tab_id": opened["tab_id"]});
    server.ok("fill", filled).await;
    server.ok("close_tab", json!({"session_id": id, "tab_id": first})).await;
    let tabs = server.ok("list_tabs", json!({"session_id": id})).await;
    assert_eq!(active(&tabs)["tab_id"], opened["tab_id"], "the newest other one becomes active");
    for tool in ["switch_tab", "close_tab", "snapshot"] {
        let fault = server.fault(tool, json!({"session_id": id, "tab_id": first}), "TAB_NOT_FOUND").await;
        assert_eq!(fault["details"]["tab_id"], first);
    }
    server.ok("close_tab", json!({"session_id": id, "tab_id": opened["tab_id"]})).await;
    server.fault("snapshot", json!({"session_id": id}), "TAB_NOT_FOUND").await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_keeps_the_next_page_waiting_is_named_as_the_reason() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let leave = format!("location.href = '{}'", site.url("/hold"));
    server.ok("evaluate", json!({"session_id": id, "expression": leave})).await;
    site.arrived("/hold").await;
    let late = json!({"session_id": id, "selector": "body", "timeout": 1500});
    let late = server.fault("click", late, "OPERATION_TIMEOUT").await;
    assert_eq!(late["details"]["phase"], "navigating");
    // What its next step says.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    server.ok("click", json!({"session_id": id, "selector": "body"})).await;
}

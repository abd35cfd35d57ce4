//! Acting on elements: real input, on what is really there.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, wait_for, walk};

async fn value(server: &Server, id: &str, expression: &str) -> Value {
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await["result"].take()
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_are_real_input() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    let snapshot = server.ok("snapshot", json!({"session_id": id})).await;
    let tree = snapshot["tree"].as_str().expect("a tree");
    let line = tree.lines().find(|line| line.contains("button \"Save\"")).expect("the button");
    let reference = line.split("[ref=").nth(1).and_then(|rest| rest.split(']').next()).expect("a reference");
    for selector in [reference, "#save", "role=button[name=\"Save\"]", "text=\"Save\"", "xpath=//button[@id='save']"] {
        let clicked = server.ok("click", json!({"session_id": id, "selector": selector})).await;
        assert_eq!((&clicked["ok"], &clicked["selector"]), (&json!(true), &json!(selector)));
    }
    walk::console_with(&server, &id, "trusted=true").await;
    server.ok("click", json!({"session_id": id, "selector": "#save", "click_count": 2})).await;
    walk::console_with(&server, &id, "double").await;
    server.ok("click", json!({"session_id": id, "selector": "#save", "button": "right"})).await;
    walk::console_with(&server, &id, "right").await;
    server.ok("hover", json!({"session_id": id, "selector": "#save"})).await;
    assert_eq!(value(&server, &id, "document.title").await, "Hovered");
    let navigated = server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    assert_eq!(navigated["status"], 200);
    server.fault("click", json!({"session_id": id, "selector": reference}), "STALE_REF").await;
    let followed = server.ok("click", json!({"session_id": id, "selector": "#to-form"})).await;
    assert_eq!(followed["ok"], true);
    server.ok("wait_for_url", json!({"session_id": id, "url": site.url("/form.html")})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn text_goes_where_it_should() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    server.ok("fill", json!({"session_id": id, "selector": "label=Name", "value": "Ada \u{e9}\u{1f600}"})).await;
    assert_eq!(value(&server, &id, "document.querySelector('#name').value").await, "Ada \u{e9}\u{1f600}");
    server.ok("fill", json!({"session_id": id, "selector": "#note", "value": "two\nlines"})).await;
    assert_eq!(value(&server, &id, "document.querySelector('#note').value").await, "two\nlines");
    server.ok("fill", json!({"session_id": id, "selector": "#editable", "value": "new text"})).await;
    assert_eq!(value(&server, &id, "document.querySelector('#editable').textContent").await, "new text");
    server.ok("fill", json!({"session_id": id, "selector": "#name", "value": ""})).await;
    server.ok("type_text", json!({"session_id": id, "selector": "placeholder=Your name", "text": "typed"})).await;
    assert_eq!(value(&server, &id, "document.querySelector('#name').value").await, "typed");
    walk::console_with(&server, &id, "key d ctrl=false").await;
    server.ok("press_key", json!({"session_id": id, "key": "Control+A"})).await;
    server.ok("press_key", json!({"session_id": id, "key": "Backspace", "selector": "#name"})).await;
    assert_eq!(value(&server, &id, "document.querySelector('#name').value").await, "");
    walk::console_with(&server, &id, "ctrl=true").await;
    let bad = server.fault("press_key", json!({"session_id": id, "key": "Nonsense+"}), "INVALID_ARGUMENTS").await;
    assert_eq!(bad["details"]["problems"][0]["field"], "key");
    for selector in ["#locked", "#save", "h1"] {
        let reply =
            server.call("fill", json!({"session_id": id, "selector": selector, "value": "x", "timeout": 300})).await;
        assert!(reply.is_error, "nothing can be filled into {selector}: {}", reply.structured);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn obstacles_have_names() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/obstacles.html")).await;
    for selector in ["#covered", "#hidden", "#disabled"] {
        let arguments = json!({"session_id": id, "selector": selector, "timeout": 5000});
        let fault = server.fault("click", arguments, "ELEMENT_NOT_ACTIONABLE").await;
        assert!(fault["details"]["reason"].as_str().is_some_and(|reason| !reason.is_empty()), "{fault}");
        assert_eq!(fault["details"]["selector"], selector);
    }
    server.ok("click", json!({"session_id": id, "selector": "#moving"})).await;
    server.ok("click", json!({"session_id": id, "selector": "#far"})).await;
    let messages = walk::console_with(&server, &id, "far clicked").await;
    assert_eq!(walk::texts(&messages), ["moving clicked", "far clicked"], "and nothing was clicked through a cover");
    server.fault("click", json!({"session_id": id, "selector": "#none", "timeout": 5000}), "ELEMENT_NOT_FOUND").await;
    server.fault("click", json!({"session_id": id, "selector": "##", "timeout": 5000}), "INVALID_SELECTOR").await;
    let several = server
        .fault("click", json!({"session_id": id, "selector": "button", "timeout": 5000}), "LOCATOR_AMBIGUOUS")
        .await;
    assert_eq!(several["details"]["count"], 7);
    server.fault("hover", json!({"session_id": id, "selector": "#none", "timeout": 5000}), "ELEMENT_NOT_FOUND").await;

    server
        .fault("wait_for_selector", json!({"session_id": id, "selector": "#late", "timeout": 200}), "WAIT_TIMEOUT")
        .await;
    let waiting =
        server.begin("wait_for_selector", json!({"session_id": id, "selector": "#hidden", "state": "hidden"})).await;
    assert_eq!(waiting.reply().await.data()["state"], "hidden");
    server.ok("click", json!({"session_id": id, "selector": "#show-late"})).await;
    server.ok("wait_for_selector", json!({"session_id": id, "selector": "#late"})).await;
    server.ok("wait_for_selector", json!({"session_id": id, "selector": "#none", "state": "detached"})).await;
    server.ok("wait_for_selector", json!({"session_id": id, "selector": "#hidden", "state": "attached"})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scrolling_says_where_it_got() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/obstacles.html")).await;
    let by = server.ok("scroll", json!({"session_id": id, "mode": "by", "dy": 500})).await;
    assert_eq!(by["y"].as_f64(), Some(500.0));
    let to = server.ok("scroll", json!({"session_id": id, "mode": "to", "x": 0, "y": 100})).await;
    assert_eq!(to["y"].as_f64(), Some(100.0));
    server.ok("scroll", json!({"session_id": id, "mode": "to", "x": 0, "y": 300, "behavior": "smooth"})).await;
    wait_for("a smooth scroll arrives", || async { (value(&server, &id, "scrollY").await == 300).then_some(()) }).await;
    let far = server.ok("scroll", json!({"session_id": id, "mode": "selector", "selector": "#far"})).await;
    assert!(far["y"].as_f64().is_some_and(|y| y > 2_000.0), "{far}");
    server.fault("scroll", json!({"session_id": id, "mode": "to", "x": 0}), "INVALID_ARGUMENTS").await;
    server.fault("scroll", json!({"session_id": id, "mode": "selector"}), "INVALID_ARGUMENTS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_block_and_are_answered() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/dialogs.html")).await;
    let clicked = server.ok("click", json!({"session_id": id, "selector": "#alert"})).await;
    assert_eq!(clicked["dialog"]["message"], "an alert", "the reply names the dialog it opened");
    let blocked = server.fault("click", json!({"session_id": id, "selector": "#confirm"}), "MODAL_STATE_BLOCKED").await;
    assert!(blocked["details"]["clear_with"].as_str().is_some_and(|tools| tools.contains("accept_next_dialog")));
    let answered = server.ok("accept_next_dialog", json!({"session_id": id})).await;
    assert_eq!(answered["answered"]["type"], "alert");
    walk::console_with(&server, &id, "alert gone").await;
    server.ok("accept_next_dialog", json!({"session_id": id})).await;
    server.ok("click", json!({"session_id": id, "selector": "#confirm"})).await;
    walk::console_with(&server, &id, "confirmed true").await;
    server.ok("dismiss_next_dialog", json!({"session_id": id})).await;
    server.ok("click", json!({"session_id": id, "selector": "#confirm"})).await;
    walk::console_with(&server, &id, "confirmed false").await;
    server.ok("accept_next_dialog", json!({"session_id": id, "prompt_text": "Grace"})).await;
    server.ok("click", json!({"session_id": id, "selector": "#prompt"})).await;
    walk::console_with(&server, &id, "prompted Grace").await;
    let dialogs = json!({"session_id": id, "kinds": ["dialog.*"]});
    let dialogs = walk::all(&server, "list_events", "events", dialogs, 500).await;
    assert_eq!(dialogs.len(), 8, "four dialogs, each opened and closed: {dialogs:?}");
}

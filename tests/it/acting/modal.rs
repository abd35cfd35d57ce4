//! What stops a page until somebody answers, and what only seems to.

use serde_json::{Value, json};

use super::Bench;
use crate::support::walk;

#[tokio::test(flavor = "multi_thread")]
async fn dialogs_are_handled_one_by_one() {
    let bench = Bench::at("/acting-modal.html").await;
    let none = bench.fault("handle_dialog", json!({"accept": true}), "MODAL_STATE_BLOCKED").await;
    assert_eq!(none["details"], json!({}), "there is none to answer");
    let asked = bench.click("#twice").await;
    assert_eq!(asked["dialog"]["message"], "first?");
    for (tool, arguments) in [
        ("click", json!({"selector": "#twice"})),
        ("fill", json!({"selector": "#field", "value": "x"})),
        ("press_key", json!({"key": "a"})),
        ("evaluate", json!({"expression": "1"})),
        ("snapshot", json!({})),
        ("mouse_click", json!({"x": 1, "y": 1})),
        ("drag_and_drop", json!({"source_selector": "#a", "target_selector": "#b"})),
        ("select_option", json!({"selector": "#a", "values": ["a"]})),
        ("fill_form", json!({"fields": [{"selector": "#field", "value": "x"}]})),
    ] {
        let began = std::time::Instant::now();
        let blocked = bench.fault(tool, arguments, "MODAL_STATE_BLOCKED").await;
        assert_eq!(blocked["details"]["dialog_type"], "confirm", "{tool}");
        let tools = blocked["details"]["clear_with"].as_str().unwrap_or_default();
        assert!(tools.contains("handle_dialog") && tools.contains("accept_next_dialog"), "{tool}: {tools}");
        assert!(began.elapsed().as_secs() < 5, "{tool} does not wait for it");
    }
    let first = bench.ok("handle_dialog", json!({"accept": true})).await;
    assert_eq!((&first["action"], &first["answered"]["message"]), (&json!("accepted"), &json!("first?")));
    assert_eq!(first["dialog"]["default_prompt"], "nobody", "the next one is told of: {first}");
    let second = bench.ok("handle_dialog", json!({"accept": true, "prompt_text": "Ada \u{1f600}"})).await;
    assert_eq!(second["dialog"], Value::Null);
    assert_eq!(bench.log().await, ["true Ada \u{1f600}"]);
    let events = json!({"session_id": bench.id, "kinds": ["call.accepted"]});
    let events = walk::all(&bench.server, "list_events", "events", events, 500).await;
    let told = serde_json::to_string(&events).expect("JSON");
    assert!(!told.contains("Ada") && told.contains("[5 characters]"), "what is typed is told by its length: {told}");
    let asked = bench.ok("fill_form", json!({"fields": [{"selector": "#asking", "value": "x"}]})).await;
    assert_eq!(asked["dialog"]["type"], "alert");
    bench.ok("dismiss_next_dialog", json!({})).await;
    assert_eq!(bench.value("1").await, 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn leaving_is_asked_about() {
    let bench = Bench::at("/acting-modal.html").await;
    bench.click("#guard").await;
    let there = json!({"url": bench.site.url("/plain.html")});
    let blocked = bench.fault("navigate", there.clone(), "MODAL_STATE_BLOCKED").await;
    assert_eq!(blocked["details"]["dialog_type"], "beforeunload");
    let stayed = bench.ok("handle_dialog", json!({"accept": false})).await;
    assert_eq!(stayed["navigated"], Value::Null, "{stayed}");
    assert_eq!(bench.value("location.pathname").await, "/acting-modal.html");
    bench.fault("reload", json!({}), "MODAL_STATE_BLOCKED").await;
    bench.ok("handle_dialog", json!({"accept": false})).await;
    let asked = bench.click("#leave").await;
    assert_eq!(asked["dialog"]["type"], "beforeunload");
    let left = bench.ok("handle_dialog", json!({"accept": true})).await;
    assert_eq!((&left["navigated"], &left["url"]), (&json!(true), &json!(bench.site.url("/plain.html"))));
    // Answered beforehand, the way is free.
    bench.ok("navigate", json!({"url": bench.site.url("/acting-modal.html")})).await;
    bench.click("#guard").await;
    bench.ok("accept_next_dialog", json!({})).await;
    let gone = bench.ok("navigate", there).await;
    assert_eq!(gone["url"], bench.site.url("/plain.html"));
}

#[tokio::test(flavor = "multi_thread")]
async fn choosers_prints_logins_and_permissions_hold_nothing_up() {
    let bench = Bench::at("/acting-modal.html").await;
    for (selector, multiple) in [("#file", false), ("#behind", true), ("#picker", false)] {
        let opened = bench.click(selector).await;
        assert_eq!(opened["file_chooser"]["multiple"], multiple, "{selector}: {opened}");
        let next_step = opened["file_chooser"]["next_step"].as_str().unwrap_or_default();
        assert!(next_step.contains("upload_file"), "{opened}");
        assert_eq!(bench.value("1").await, 1, "an open chooser holds nothing up");
        if selector != "#picker" {
            let held = bench.fault("handle_dialog", json!({"accept": true}), "MODAL_STATE_BLOCKED").await;
            assert_eq!(held["details"]["clear_with"], "upload_file");
            let closed = bench.ok("handle_dialog", json!({"accept": false})).await;
            assert_eq!(closed["action"], "dismissed");
            bench.fault("handle_dialog", json!({"accept": false}), "MODAL_STATE_BLOCKED").await;
        }
    }
    bench.log().await;
    bench.click("#print").await;
    assert_eq!(bench.log().await, ["printed"]);
    let permissions = "Promise.race([Promise.all([\
        new Promise(r => navigator.geolocation.getCurrentPosition(() => r('granted'), e => r(e.code))),\
        Notification.requestPermission(),\
        navigator.clipboard.readText().then(() => 'granted', e => e.name),\
        navigator.mediaDevices.getUserMedia({audio: true}).then(() => 'granted', () => 'refused'),\
        ]), new Promise(r => setTimeout(r, 10000, 'pending'))])";
    let settled = bench.value(permissions).await;
    assert!(settled.is_array() && !settled.to_string().contains("granted"), "asked for and settled at once: {settled}");
    let locked = bench.ok("navigate", json!({"url": bench.site.url("/login")})).await;
    assert_eq!(locked["status"], 401, "a login that nobody gives is the site's own refusal");
}

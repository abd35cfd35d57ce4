//! What an action is to bring about: watched for from before it, waited for after it, and told when it
//! does not come, with the action done exactly once.

use serde_json::{Value, json};

use super::Bench;
use crate::support::walk;

async fn click(bench: &Bench, selector: &str, wait_for: Value) -> Value {
    let clicked = bench.ok("click", json!({"selector": selector, "wait_for": wait_for})).await;
    assert_eq!((&clicked["ok"], &clicked["action_completed"]), (&json!(true), &json!(true)), "{clicked}");
    assert_eq!(clicked["observation"]["matched"], true, "{clicked}");
    clicked["observation"].clone()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_waited_for() {
    let bench = Bench::at("/acting-waits.html").await;
    let seen =
        click(&bench, "#ask", json!({"kind": "response", "pattern": "**/json?from=ask", "method": "post"})).await;
    assert_eq!((&seen["status"], &seen["method"]), (&json!(200), &json!("POST")));
    assert_eq!(seen["url"], bench.site.url("/json?from=ask"));
    let request = json!({"session_id": bench.id, "request_id": seen["request_id"]});
    let detail = bench.server.ok("get_network_request", request).await;
    assert_eq!(detail["request"]["method"].as_str().or_else(|| detail["method"].as_str()), Some("POST"), "{detail}");
    let seen = click(&bench, "#ask-late", json!({"kind": "response", "status": 200})).await;
    assert_eq!(seen["url"], bench.site.url("/json?from=late"));
    let seen = click(&bench, "#push", json!({"kind": "url", "pattern": "**pushed=1"})).await;
    assert_eq!(seen["url"], bench.site.url("/acting-waits.html?pushed=1"), "an address that was passed through counts");
    let seen = click(&bench, "#show", json!({"kind": "element", "selector": "#late"})).await;
    assert_eq!(seen, json!({"kind": "element", "matched": true, "selector": "#late", "state": "visible"}));
    click(&bench, "#hide", json!({"kind": "text", "text": "late words", "state": "hidden"})).await;
    click(&bench, "#show", json!({"kind": "text", "text": "Late words"})).await;
    let seen = click(&bench, "#open", json!({"kind": "popup"})).await;
    let tabs = bench.ok("list_tabs", json!({})).await;
    let tab = tabs.as_array().expect("tabs").iter().find(|tab| tab["tab_id"] == seen["tab_id"]);
    assert!(tab.is_some_and(|tab| tab["active"] == false), "the popup is a tab and not the active one: {tabs}");
    let clicked = json!({"selector": "#download", "wait_for": {"kind": "download"}});
    let clicked = bench.ok("click", clicked).await;
    assert!(clicked["observation"]["download_id"].as_str().is_some_and(|id| !id.is_empty()), "{clicked}");
    assert_eq!(bench.value("total").await, 7, "each action ran once");
    let left = click(&bench, "#leave", json!({"kind": "url", "pattern": "**/plain.html"})).await;
    assert_eq!(left["url"], bench.site.url("/plain.html"));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_acting_tool_waits_and_shows() {
    let bench = Bench::at("/acting-waits.html").await;
    let arguments = [
        ("fill", json!({"selector": "#field", "value": "a"}), "?q=a"),
        ("type_text", json!({"selector": "#field", "text": "b"}), "?q=ab"),
        ("press_key", json!({"selector": "#field", "key": "c"}), "?q=abc"),
        ("select_option", json!({"selector": "#select", "values": ["two"]}), "?s=two"),
        ("hover", json!({"selector": "#hover"}), "?h=1"),
        ("drag_and_drop", json!({"source_selector": "#source", "target_selector": "#target"}), "?d=1"),
        ("fill_form", json!({"fields": [{"selector": "#field", "value": "d"}]}), "?q=d"),
    ];
    for (tool, mut arguments, query) in arguments {
        arguments["wait_for"] = json!({"kind": "response", "pattern": format!("**/json{query}")});
        arguments["include_snapshot"] = true.into();
        let done = bench.ok(tool, arguments).await;
        assert_eq!(done["observation"]["url"], bench.site.url(&format!("/json{query}")), "{tool}");
        assert!(
            done["snapshot"]["tree"].as_str().is_some_and(|tree| tree.contains("button \"Count\"")),
            "{tool}: {done}"
        );
    }
    let navigate = json!({
        "url": bench.site.url("/acting-waits.html"), "wait_for": {"kind": "element", "selector": "#count"}, "include_snapshot": true,
    });
    let arrived = bench.ok("navigate", navigate).await;
    assert_eq!(arrived["observation"]["kind"], "element");
    assert!(arrived["snapshot"]["tree"].as_str().is_some_and(|tree| tree.contains("Count")), "{arrived}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_selector_that_the_browser_refuses_is_refused_before_the_action() {
    let bench = Bench::at("/acting-waits.html").await;
    for (selector, refused) in [("#late:nth-child(", true), ("p:no-such-pseudo", true), ("#never >> p:wrong(", false)] {
        let wish = json!({"kind": "element", "selector": selector, "timeout": 100});
        let asked = json!({"selector": "#count", "wait_for": wish});
        let code = if refused { "INVALID_ARGUMENTS" } else { "OBSERVATION_TIMEOUT" };
        let before = bench.value("window.clicks || 0").await.as_u64().expect("a number");
        let fault = bench.fault("click", asked, code).await;
        assert_eq!(bench.value("window.clicks || 0").await, before + u64::from(!refused), "{selector}");
        assert!(!refused || fault["details"]["problems"][0]["field"] == "wait_for.selector", "{fault}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_come_is_said_with_the_action_done() {
    let bench = Bench::at("/acting-waits.html").await;
    let click = |selector: &str, wait_for: Value| json!({"selector": selector, "wait_for": wait_for});
    for wish in [
        json!({"kind": "response", "pattern": "**/never", "timeout": 200}),
        json!({"kind": "url", "pattern": "**/never", "timeout": 200}),
        json!({"kind": "element", "selector": "#never", "timeout": 200}),
        json!({"kind": "text", "text": "never", "timeout": 200}),
        json!({"kind": "popup", "timeout": 200}),
        json!({"kind": "download", "timeout": 200}),
    ] {
        let reply = bench.fault("click", click("#count", wish.clone()), "OBSERVATION_TIMEOUT").await;
        let wanted = json!({"kind": wish["kind"], "timeout_ms": 200, "action_completed": true});
        assert_eq!(reply["details"], wanted);
        assert_eq!(
            (&reply["operation"]["outcome"], &reply["operation"]["retry"]),
            (&json!("unknown"), &json!("inspect_state"))
        );
    }
    assert_eq!(bench.value("clicks").await, 6, "each action ran once");
    // Requests that began before do not count.
    bench.click("#hold").await;
    bench.site.arrived("/hold").await;
    let before = click("#count", json!({"kind": "response", "pattern": "**/hold", "timeout": 1500}));
    let before = bench.server.begin("click", bench.with_session(before)).await;
    walk::console_with(&bench.server, &bench.id, "counted 7").await;
    bench.site.release();
    assert_eq!(before.reply().await.code(), "OBSERVATION_TIMEOUT");
    let missing = click("#nothing", json!({"kind": "popup"}));
    let missing = bench.fault("click", missing, "ELEMENT_NOT_FOUND").await;
    assert_eq!(missing["details"]["action_completed"], Value::Null);

    for (wish, field) in [
        (json!({"kind": "url"}), "wait_for.pattern"),
        (json!({"kind": "element"}), "wait_for.selector"),
        (json!({"kind": "element", "selector": "role=button["}), "wait_for.selector"),
        (json!({"kind": "text"}), "wait_for.text"),
        (json!({"kind": "text", "text": "a", "state": "attached"}), "wait_for.state"),
        (json!({"kind": "popup", "pattern": "a"}), "wait_for.pattern"),
        (json!({"kind": "nothing"}), "wait_for.kind"),
        (json!({"kind": "popup", "timeout": 0}), "wait_for.timeout"),
    ] {
        let before = bench.value("clicks").await;
        let reply = bench.fault("click", click("#count", wish), "INVALID_ARGUMENTS").await;
        assert_eq!(reply["details"]["problems"][0]["field"], field);
        assert_eq!(bench.value("clicks").await, before, "nothing was done");
    }

    let blocked = click("#alert", json!({"kind": "element", "selector": "#late"}));
    let blocked = bench.fault("click", blocked, "MODAL_STATE_BLOCKED").await;
    assert_eq!(blocked["details"]["action_completed"], true);
    assert_eq!(blocked["details"]["dialog_type"], "alert");
    bench.ok("handle_dialog", json!({"accept": true})).await;
    let opened = self::click(&bench, "#open-own", json!({"kind": "popup"})).await;
    let mut closed = click("#close", json!({"kind": "element", "selector": "#late"}));
    closed["tab_id"] = opened["tab_id"].clone();
    let closed = bench.fault("click", closed, "PAGE_CLOSED").await;
    assert_eq!(closed["details"]["action_completed"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_follows_has_a_time_of_its_own() {
    let bench = Bench::at("/acting-waits.html").await;
    let held = json!({
        "selector": "#hold", "timeout": 1000, "wait_for": {"kind": "response", "pattern": "**/hold", "timeout": 60_000},
    });
    let held = bench.server.begin("click", bench.with_session(held)).await;
    bench.site.arrived("/hold").await;
    // Longer than the action may take, with the grace after it.
    walk::console_with(&bench.server, &bench.id, "long after").await;
    bench.site.release();
    assert_eq!(held.reply().await.data()["observation"]["status"], 200);
}

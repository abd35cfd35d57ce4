//! What the browser has against a page is told where its log does not tell of it, once, with its place;
//! and what nobody caught is told of every kind of worker.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// The messages that begin so.
fn starting<'a>(messages: &'a [Value], start: &str) -> Vec<&'a Value> {
    messages.iter().filter(|message| message["text"].as_str().is_some_and(|text| text.starts_with(start))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn deprecated_features_are_told_once_with_their_place() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/deprecated.html")).await;
    walk::console_with(&server, &id, "IntlV8BreakIterator").await;
    let messages = walk::console_with(&server, &id, "XSLT").await;
    for (types, is_among) in [(json!(["deprecation"]), true), (json!(["security", "exception"]), false)] {
        let asked = json!({"session_id": id, "types": types, "text_filter": "^Deprecated"});
        let found = server.ok("list_console_messages", asked).await;
        assert_eq!(found["messages"].as_array().map(|rows| !rows.is_empty()), Some(is_among), "{types}: {found}");
    }
    let wanted = [
        ("UnloadHandler", site.url("/deprecated.html"), 5),
        ("XMLHttpRequestSynchronousInNonWorkerOutsideBeforeUnload", site.url("/deprecated.html"), 8),
        ("IntlV8BreakIterator", site.other_url("/deprecated.html"), 12),
    ];
    for (feature, url, line) in wanted {
        let told = starting(&messages, &format!("Deprecated feature: {feature}"));
        let [message] = told[..] else { panic!("{feature}, once: {messages:?}") };
        let facts = (&message["type"], &message["source"], &message["level"]);
        assert_eq!(facts, (&json!("browser"), &json!("deprecation"), &json!("warning")), "{message}");
        assert_eq!(message["location"], json!({"url": url, "line": line}), "{message}");
        assert!(message["tab_id"].is_string(), "{message}");
    }
    // The log has words of its own for this one.
    let xslt = |message: &&Value| message["text"].as_str().is_some_and(|text| text.contains("XSLT"));
    let told: Vec<&Value> = messages.iter().filter(xslt).collect();
    assert!(!told.is_empty() && told.iter().all(|message| message["source"] == "deprecation"), "{told:?}");
    assert!(starting(&messages, "Deprecated feature: XSLT").is_empty(), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cookie_that_was_not_set_is_told_of_with_its_reason_and_request() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "(async () => { await (await fetch('/refused-cookie')).text(); })()";
    server.ok("evaluate", json!({"session_id": id, "expression": script})).await;
    let messages = walk::console_with(&server, &id, "\"lax\"").await;
    let requests = walk::requests(&server, &id).await;
    let request = requests.iter().find(|row| row["url"] == site.url("/refused-cookie")).expect("the request");
    let told = starting(&messages, "Cookie ");
    let [message] = told[..] else { panic!("once: {messages:?}") };
    assert_eq!(message["text"], "Cookie \"lax\" was not set: ExcludeSameSiteNoneInsecure");
    assert_eq!((&message["source"], &message["level"]), (&json!("cookie"), &json!("warning")), "{message}");
    assert_eq!(message["location"]["url"], request["url"], "{message}");
    let asked = json!({"session_id": id, "kinds": ["log.entry"]});
    let entries = walk::all(&server, "list_events", "events", asked, 500).await;
    let of_it = entries.iter().filter(|entry| entry["request_id"] == request["request_id"]).count();
    assert_eq!(of_it, 1, "{entries:?}");
    assert!(!Value::from(walk::events(&server, &id).await).to_string().contains("canary-refused"), "no value came in");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_nobody_caught_is_told_of_every_kind_of_worker() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "globalThis.kept = [new Worker('/failing-worker.js'), new SharedWorker('/failing-worker.js')]; \
        navigator.serviceWorker.register('/failing-worker.js'); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": script})).await;
    let address = site.url("/failing-worker.js");
    for scope in ["DedicatedWorkerGlobalScope", "SharedWorkerGlobalScope", "ServiceWorkerGlobalScope"] {
        let thrown = format!("Uncaught RangeError: thrown in {scope}\n    at fail ({address}:3:9)");
        let rejected = format!("Uncaught (in promise) Error: rejected in {scope}\n    at {address}:7:");
        for (text, function, line) in [(&thrown, "fail", 3), (&rejected, "", 7)] {
            let messages = walk::console_with(&server, &id, text).await;
            let told = starting(&messages, text);
            let [message] = told[..] else { panic!("{text}, once: {messages:?}") };
            assert_eq!((&message["type"], &message["level"]), (&json!("exception"), &json!("error")), "{message}");
            assert_eq!((&message["location"]["url"], &message["location"]["line"]), (&json!(address), &json!(line)));
            let top = &message["stack"][0];
            assert_eq!(
                (&top["function"], &top["url"], &top["line"]),
                (&json!(function), &json!(address), &json!(line))
            );
            // Only a dedicated worker belongs to a page.
            assert_eq!(message["tab_id"].is_string(), scope.starts_with("Dedicated"), "{message}");
        }
    }
    let asked = json!({"session_id": id, "types": ["exception"]});
    let found = walk::all(&server, "list_console_messages", "messages", asked, 2).await;
    assert_eq!(found.len(), 6, "exceptions can be asked for alone: {found:?}");
    let deprecated = crate::support::wait_for("all three workers' issues", || async {
        let messages = walk::console(&server, &id).await;
        let told: Vec<Value> =
            starting(&messages, "Deprecated feature: IntlV8BreakIterator").into_iter().cloned().collect();
        (told.len() >= 3).then_some(told)
    })
    .await;
    assert_eq!(deprecated.len(), 3, "{deprecated:?}");
    assert!(deprecated.iter().all(|told| told["location"] == json!({"url": address, "line": 5})), "{deprecated:?}");
}

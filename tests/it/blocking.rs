//! What the operator's blocklist names is reached by nobody: not by a call, not by anything a page does.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// A server that refuses the site's second origin as a whole, and one path of its first.
async fn guarded(site: &Site) -> Server {
    let (other, path) = (site.other_url(""), site.url("/json"));
    let rules = format!("*.ads.example, {}; {path}", other.trim_start_matches("http://"));
    Server::start(Options::stdio().argument("--blocked-origins", rules)).await
}

async fn refusals(server: &Server, id: &str) -> Vec<Value> {
    walk::all(server, "list_events", "events", json!({"session_id": id, "kinds": ["policy.refused"]}), 500).await
}

/// What came in for the site's second origin, by whatever name.
fn strays(site: &Site) -> Vec<String> {
    let port = site.other_url("").rsplit_once(':').expect("a port").1.to_owned();
    let astray = |host: Option<&str>| host.is_some_and(|host| host.ends_with(&port));
    site.received()
        .iter()
        .filter(|request| astray(request.header("host")))
        .map(|request| request.path.clone())
        .collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_are_refused_before_anything_is_done() {
    let site = Site::start().await;
    let server = guarded(&site).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let rule = site.other_url("").trim_start_matches("http://").to_owned();
    let spelled = format!("HTTP:\\\\u:p@LOCALHOST.:{}/x", rule.rsplit_once(':').expect("a port").1);
    for (url, rule) in [
        (site.other_url("/plain.html"), rule.as_str()),
        (rule.clone(), rule.as_str()),
        (spelled, rule.as_str()),
        ("https://www.ads.example/".to_owned(), "*.ads.example"),
        (site.url("/%6Ason?x"), &site.url("/json")),
    ] {
        for tool in ["navigate", "new_tab"] {
            let refused = server.fault(tool, json!({"session_id": id, "url": url}), "URL_BLOCKED").await;
            assert_eq!(refused["details"]["rule"], rule, "{url}");
        }
    }
    assert_eq!(server.ok("list_tabs", json!({"session_id": id})).await.as_array().map(Vec::len), Some(1));
    assert_eq!(refusals(&server, &id).await.len(), 10, "each refusal is on record");
    // Led there by the site itself.
    let onward = site.url(&format!("/onward?{}", site.other_url("/plain.html")));
    let refused = server.fault("navigate", json!({"session_id": id, "url": onward}), "URL_BLOCKED").await;
    assert_eq!(refused["details"]["rule"], rule);
    assert_eq!(refusals(&server, &id).await.len(), 11);
    assert_eq!(strays(&site), [""; 0]);
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let status = server.ok("server_status", json!({})).await;
    assert_eq!(status["blocked_origins"]["rules"], 3);
    let around = json!({"slug": "around", "launch_options": {"args": ["--host-resolver-rules=EXCLUDE localhost"]}});
    server.fault("launch_session", around, "UNSAFE_LAUNCH_ARG").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_reach_nothing_that_is_refused() {
    let site = Site::start().await;
    let server = guarded(&site).await;
    // Restoring a login holds requests of its own; the rules hold afterwards all the same.
    let items = json!([{"origin": site.url(""), "localStorage": [{"name": "a", "value": "b"}]}]);
    let saved = json!({"storageState": {"cookies": [], "origins": items}});
    let launched = server.ok("launch_session", json!({"slug": "test", "context_options": saved})).await;
    let id = launched["session_id"].as_str().expect("an id").to_owned();
    server.ok("navigate", json!({"session_id": id, "url": site.url("/reaching.html")})).await;
    for (what, wanted) in [
        ("fetch", "refused"),
        ("redirected", "refused"),
        ("keepalive", "refused"),
        ("path", "refused"),
        ("spelled", "refused"),
        ("allowed", "reached"),
        ("image", "refused"),
        ("events", "refused"),
        ("socket", "refused"),
        ("dotted", "refused"),
        ("worker", "refused refused"),
        ("shared", "refused refused"),
        ("service", "ready"),
        ("frame", "null"),
        ("beacon", "true"),
    ] {
        let asked = json!({"session_id": id, "expression": format!("reaching.{what}()")});
        assert_eq!(server.ok("evaluate", asked).await["result"], wanted, "{what}");
    }
    for selector in ["#blank", "#onward", "#open", "#form"] {
        let opened = json!({"session_id": id, "selector": selector, "wait_for": {"kind": "popup"}});
        server.ok("click", opened).await;
    }
    for selector in ["#download", "#link"] {
        server.ok("click", json!({"session_id": id, "selector": selector})).await;
        // The browser's own page says that it was refused.
        server.ok("navigate", json!({"session_id": id, "url": site.url("/reaching.html")})).await;
    }
    let blocked = |request: &Value| request["blocked_reason"] == "inspector";
    let all = walk::requests(&server, &id).await;
    let refused = all.iter().filter(|request| blocked(request)).count();
    assert!(refused >= 16, "{refused} are told as blocked: {all:?}");
    let on_record = refusals(&server, &id).await;
    assert!(on_record.iter().all(|event| event["data"]["rule"] == "blocklist"), "{on_record:?}");
    let rules = [site.other_url("").trim_start_matches("http://").to_owned(), site.url("/json")];
    let by_rule = |event: &Value| rules.iter().any(|rule| event["data"]["matched"] == rule.as_str());
    assert!(on_record.iter().all(by_rule), "each names the rule that matched: {on_record:?}");
    assert!(on_record.iter().any(|event| event["data"]["what"].as_str().is_some_and(|what| what.starts_with("ws:"))));
    assert_eq!(strays(&site), [""; 0]);
    assert!(site.received_for("/text").len() == 1 && site.received_for("/json").is_empty());
    server.stop().await;
}

//! What is known of requests over TLS and HTTP/2, and of a certificate that nobody vouches for.

use serde_json::{Value, json};

use super::{ended, part, run};
use crate::site::{Secure, Site};
use crate::support::{Options, Server, walk};

/// A session that accepts the site's certificate, gone to `path` there.
async fn launch_at(server: &Server, secure: &Secure, path: &str) -> String {
    let arguments = json!({"slug": "test", "launch_options": {"args": secure.arguments()}});
    let launched = server.ok("launch_session", arguments).await;
    let id = launched["session_id"].as_str().expect("a session id").to_owned();
    server.ok("navigate", json!({"session_id": id, "url": secure.url(path)})).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_over_tls_has_its_phases_its_protocol_and_its_peer() {
    let site = Site::start().await;
    let secure = site.secure().await;
    let server = Server::start(Options::stdio()).await;
    let id = launch_at(&server, &secure, "/plain.html").await;
    run(
        &server,
        &id,
        "await (await fetch('/echo?posted&token=' + 'canary-' + 'path', {method: 'POST', body: 'over h2'})).text();",
    )
    .await;
    let document = ended(&server, &id, "/plain.html").await;
    let summary = part(&server, &id, &document, "summary").await;
    assert_eq!((&summary["protocol"], &summary["status"]), (&json!("h2"), &json!(200)), "{summary}");
    assert_eq!(summary["remote_address"], secure.address(), "{summary}");
    let timing = part(&server, &id, &document, "timing").await;
    let mark = |name: &str| timing["marks_ms"][name].as_f64().unwrap_or_else(|| panic!("{name}: {timing}"));
    assert!(mark("connect_start") <= mark("ssl_start") && mark("ssl_end") <= mark("connect_end"), "{timing}");
    assert!(timing["phases"]["tls_ms"].as_f64() > Some(0.0) && timing["phases"]["connect_ms"].is_number(), "{timing}");
    let sum: f64 = timing["phases"].as_object().expect("phases").values().filter_map(Value::as_f64).sum();
    assert!((sum - timing["duration_ms"].as_f64().expect("a duration")).abs() < 0.1, "the phases add up: {timing}");

    let posted = ended(&server, &id, "=[redacted:query]").await;
    let timing = part(&server, &id, &posted, "timing").await;
    for phase in ["dns_ms", "connect_ms", "tls_ms"] {
        assert_eq!(timing["phases"][phase], Value::Null, "the connection is used again: {timing}");
    }
    for direction in ["request_body", "response_body"] {
        assert_eq!(super::body(&server, &id, &posted, direction).await["content"], "over h2");
    }
    let headers = part(&server, &id, &posted, "request_headers").await;
    assert_eq!(headers["headers"][":path"], "/echo?posted&token=[redacted:query]", "{headers}");
    archived(&server, &id, &secure).await;
}

/// The same requests in a HAR archive.
async fn archived(server: &Server, id: &str, secure: &Secure) {
    let exported = server.ok("export_events", json!({"session_id": id, "format": "har"})).await;
    let handle = exported["artifact"].as_str().unwrap_or_else(|| panic!("an artifact: {exported}"));
    let archive: Value = serde_json::from_slice(&walk::artifact(server, handle, 1 << 20).await).expect("JSON");
    let entries = archive["log"]["entries"].as_array().expect("entries");
    let of = |start: &str| {
        let fits = |entry: &&Value| entry["request"]["url"].as_str().is_some_and(|url| url.starts_with(start));
        entries.iter().find(fits).unwrap_or_else(|| panic!("{start}: {entries:#?}"))
    };
    for (start, is_first) in [(secure.url("/plain.html"), true), (secure.url("/echo"), false)] {
        let entry = of(&start);
        for side in ["request", "response"] {
            assert_eq!(entry[side]["httpVersion"], "HTTP/2", "{entry:#}");
        }
        let timing = |name: &str| entry["timings"][name].as_f64().expect("a phase");
        let sum: f64 =
            ["blocked", "dns", "connect", "send", "wait", "receive"].iter().map(|name| timing(name).max(0.0)).sum();
        assert!((sum - entry["time"].as_f64().expect("a time")).abs() < 0.01, "{entry:#}");
        match is_first {
            true => assert!(timing("ssl") > 0.0 && timing("ssl") <= timing("connect"), "{entry:#}"),
            false => assert_eq!((timing("ssl"), timing("connect")), (-1.0, -1.0), "{entry:#}"),
        }
        assert_eq!(
            format!(
                "{}:{}",
                entry["serverIPAddress"].as_str().unwrap_or_default(),
                entry["connection"].as_str().unwrap_or_default()
            ),
            secure.address(),
            "{entry:#}"
        );
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_certificate_that_nobody_vouches_for_is_a_named_fault() {
    const ERROR: &str = "net::ERR_CERT_AUTHORITY_INVALID";
    let site = Site::start().await;
    let secure = site.secure().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let going = json!({"session_id": id, "url": secure.url("/json?direct")});
    let fault = server.fault("navigate", going, "NAVIGATION_FAILED").await;
    assert_eq!(fault["details"]["reason"], ERROR, "{fault}");
    let script = format!("await fetch('{}').catch(() => 0);", secure.url("/json?fetched"));
    run(&server, &id, &script).await;
    for end in ["?direct", "?fetched"] {
        let row = ended(&server, &id, end).await;
        assert_eq!((&row["state"], &row["failure"]), (&json!("failed"), &json!(ERROR)), "{row}");
        assert_eq!((&row["status"], &row["wire_status"]), (&Value::Null, &Value::Null), "{row}");
    }
    let asked = json!({"session_id": id, "kinds": ["network.failed"]});
    let failed = walk::all(&server, "list_events", "events", asked, 500).await;
    assert_eq!(failed.iter().filter(|event| event["data"]["error"] == ERROR).count(), 2, "{failed:?}");
    assert!(site.received().iter().all(|request| !request.path.contains('?')), "nothing was sent");
}

#[tokio::test(flavor = "multi_thread")]
async fn mixed_content_is_refused_by_name_and_told_of() {
    let site = Site::start().await;
    let secure = site.secure().await;
    let server = Server::start(Options::stdio()).await;
    let id = launch_at(&server, &secure, "/mixed.html").await;
    for end in ["/script.js", "/fetched"] {
        let row = ended(&server, &id, end).await;
        let told = (&row["state"], &row["blocked_reason"], &row["failure"]);
        assert_eq!(told, (&json!("failed"), &json!("mixed-content"), &json!("blocked:mixed-content")), "{row}");
    }
    // Images are asked for over HTTPS instead.
    let image = ended(&server, &id, "/image.png").await;
    assert_eq!(
        (&image["url"], &image["failure"]),
        (&json!("https://mixed.invalid/image.png"), &json!("net::ERR_NAME_NOT_RESOLVED"))
    );
    for end in ["script.js", "fetched", "image.png"] {
        walk::console_with(&server, &id, &format!("'http://mixed.invalid/{end}'")).await;
    }
    let messages = walk::console(&server, &id).await;
    for (end, level) in [("script.js", "error"), ("fetched", "error"), ("image.png", "warning")] {
        let address = format!("'http://mixed.invalid/{end}'");
        let fits = |message: &&Value| message["text"].as_str().is_some_and(|text| text.contains(&address));
        let found: Vec<&Value> = messages.iter().filter(fits).collect();
        // An image is told of twice: as it is looked for ahead of the parser, and as it is met.
        let wanted = if level == "error" { 1..=1 } else { 1..=2 };
        assert!(wanted.contains(&found.len()), "{end}: {messages:?}");
        let told = found[0];
        assert!(told["text"].as_str().is_some_and(|text| text.starts_with("Mixed Content: ")), "{told}");
        let facts = (&told["type"], &told["source"], &told["level"]);
        assert_eq!(facts, (&json!("browser"), &json!("security"), &json!(level)), "{told}");
        assert_eq!(told["location"]["url"], secure.url("/mixed.html"), "{told}");
    }
}

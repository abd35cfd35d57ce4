//! What is known of a request beside its bodies.

use serde_json::{Value, json};

use super::{ended, part, request, run};
use crate::site::Site;
use crate::support::{Options, Server, walk};

#[tokio::test(flavor = "multi_thread")]
async fn phases_sizes_caches_and_callers_are_told() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "function outer() { return fetch('/gzip'); } await (await outer()).text(); \
        await (await fetch('/brotli')).text(); \
        for (const path of ['/tagged?1', '/tagged', '/tagged']) await (await fetch(path, {cache: 'no-cache'})).text(); \
        for (const path of ['/cached', '/cached']) await (await fetch(path)).text();";
    run(&server, &id, script).await;
    for end in ["/gzip", "/brotli"] {
        let row = ended(&server, &id, end).await;
        let summary = part(&server, &id, &row, "summary").await;
        assert_eq!(summary["decoded_bytes"], 15_000, "{summary}");
        assert!(summary["encoded_bytes"].as_u64().is_some_and(|bytes| bytes < 400), "{summary}");
        assert_eq!((&summary["protocol"], &summary["priority"]), (&json!("http/1.1"), &json!("high")));
        let address = site.url("").replace("http://", "");
        assert_eq!(summary["remote_address"], address);
    }
    let row = ended(&server, &id, "/gzip").await;
    let summary = part(&server, &id, &row, "summary").await;
    let stack = summary["initiator"]["stack"].as_array().expect("a stack");
    assert_eq!(stack[0]["function"], "outer", "{summary}");
    assert!(stack.iter().all(|frame| frame["line"].is_u64() && frame["column"].is_u64()), "{summary}");

    let timing = part(&server, &id, &row, "timing").await;
    let phases = timing["phases"].as_object().expect("phases");
    let sum: f64 = phases.values().filter_map(Value::as_f64).sum();
    let whole = timing["duration_ms"].as_f64().expect("a duration");
    assert!((sum - whole).abs() < 0.1 && whole > 0.0, "the phases add up: {timing}");
    for phase in ["queued_ms", "send_ms", "wait_ms", "receive_ms"] {
        assert!(phases.contains_key(phase), "{phase}: {timing}");
    }
    let document = ended(&server, &id, "/plain.html").await;
    let timing = part(&server, &id, &document, "timing").await;
    for phase in ["dns_ms", "connect_ms"] {
        assert!(timing["phases"][phase].is_number(), "{phase}: {timing}");
    }

    let rows = walk::requests(&server, &id).await;
    let last = |end: &str| rows.iter().rfind(|row| row["url"] == site.url(end)).expect("a row");
    assert_eq!(
        (&last("/tagged")["served_from"], &last("/tagged")["wire_status"]),
        (&json!("revalidated"), &json!(304))
    );
    assert_eq!((&last("/cached")["served_from"], &last("/cached")["encoded_bytes"]), (&json!("disk"), &json!(0)));
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_preflights_and_failures_have_names() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let (shared, unshared) = (site.other_url("/shared"), site.other_url("/json?unshared"));
    let script = format!(
        "await (await fetch('{shared}', {{method: 'PUT', headers: {{'x-asked': '1'}}}})).text(); \
         for (const url of ['{unshared}', '/round', '/lie', 'http://127.0.0.1:1/unsafe', '/abort']) \
         await fetch(url).then(answer => answer.text()).catch(() => 0);"
    );
    run(&server, &id, &script).await;
    let failures = [
        ("/json?unshared", "net::ERR_FAILED"),
        ("/round", "net::ERR_TOO_MANY_REDIRECTS"),
        ("/lie", "net::ERR_CONTENT_LENGTH_MISMATCH"),
        ("/unsafe", "net::ERR_UNSAFE_PORT"),
        ("/abort", "net::ERR_EMPTY_RESPONSE"),
    ];
    for (end, failure) in failures {
        let row = ended(&server, &id, end).await;
        assert_eq!((&row["state"], &row["failure"]), (&json!("failed"), &json!(failure)), "{row}");
        let body = super::body(&server, &id, &row, "response_body").await;
        assert_eq!((&body["kept"], &body["omitted"]), (&json!(false), &json!("request_failed")), "{end}: {body}");
    }
    let refused = request(&server, &id, "?unshared", |row| row["wire_status"] == 200).await;
    assert_eq!((&refused["cors_error"], &refused["status"]), (&json!("missingalloworiginheader"), &Value::Null));
    assert_eq!(ended(&server, &id, "/unsafe").await["wire_status"], Value::Null);
    let round = ended(&server, &id, "/round").await;
    assert_eq!(round["redirects"], 20, "{round}");
    let chain = part(&server, &id, &round, "redirects").await;
    assert_eq!(chain["redirects"].as_array().map(Vec::len), Some(20), "{chain}");

    let rows = walk::requests(&server, &id).await;
    let of = |method: &str| rows.iter().find(|row| row["url"] == *shared && row["method"] == method).expect("a row");
    assert_eq!(of("OPTIONS")["preflight_for"], of("PUT")["request_id"]);
    let answer = super::body(&server, &id, of("OPTIONS"), "response_body").await;
    assert_eq!(answer["omitted"], "no_content");
}

#[tokio::test(flavor = "multi_thread")]
async fn long_heads_and_addresses_are_cut_and_say_so() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "await (await fetch('/head')).text(); await fetch('/json?' + 'u'.repeat(2000000)).catch(() => 0); \
        await (await fetch('data:text/plain,' + 'd'.repeat(10000))).text(); \
        await (await fetch(URL.createObjectURL(new Blob(['blob text'])))).text();";
    run(&server, &id, script).await;
    let head = ended(&server, &id, "/head").await;
    let headers = part(&server, &id, &head, "response_headers").await;
    assert_eq!(headers["cut"], true);
    let long = headers["headers"]["X-Long"].as_str().expect("the header").len();
    assert!((1000..200_000).contains(&long), "{long}");
    let rows = walk::requests(&server, &id).await;
    let starting = |with: &str| {
        let fits = |row: &&Value| row["url"].as_str().is_some_and(|url| url.starts_with(with));
        rows.iter().find(fits).unwrap_or_else(|| panic!("no row of {with}"))
    };
    let long = starting(&site.url("/json?uu"));
    assert_eq!(long["url"].as_str().map(str::len), Some(1024), "a row's address is short");
    assert!(long["url_bytes"].as_u64().is_some_and(|bytes| bytes > 10_000), "{long}");
    assert_eq!(starting("data:")["url"], "data:text/plain,[10016 bytes]");
    let inline = super::body(&server, &id, starting("data:"), "response_body").await;
    assert_eq!(inline["omitted"], "in_url");
    assert_eq!(super::body(&server, &id, starting("blob:"), "response_body").await["content"], "blob text");
}

#[tokio::test(flavor = "multi_thread")]
async fn credentials_stay_out_of_the_log() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "await (await fetch('/baked')).text(); \
        await (await fetch('/json?token=' + 'canary-' + 'query', {headers: {authorization: 'Bearer ' + 'canary-' + 'bearer'}})).text(); \
        const form = new URLSearchParams({user: 'ann', password: 'canary-' + 'form'}); \
        await (await fetch('/echo?form', {method: 'POST', body: form})).text(); \
        const json = JSON.stringify({user: 'ann', password: 'canary-' + 'json'}); \
        await (await fetch('/echo?json', {method: 'POST', body: json})).text(); \
        const image = new Image(); image.src = location.href.replace('://', '://ann:canary-' + 'basic@').replace('plain.html', 'pixel.png');";
    run(&server, &id, script).await;
    let echoed = ended(&server, &id, "/echo?json").await;
    let sent = super::body(&server, &id, &echoed, "request_body").await;
    assert_eq!(sent["content"], r#"{"user":"ann","password":"[redacted:member]"}"#);
    super::body(&server, &id, &echoed, "response_body").await;
    request(&server, &id, "/pixel.png", |row| row["url"].as_str().is_some_and(|url| url.contains("redacted"))).await;
    let baked = ended(&server, &id, "/baked").await;
    let headers = part(&server, &id, &baked, "response_headers").await.to_string();
    assert!(
        headers.contains("one=[redacted:cookie]; Path=/; HttpOnly") && headers.contains("two=[redacted"),
        "{headers}"
    );
    server.ok("close_session", json!({"session_id": id})).await;
    // The script itself is among the call's arguments, which is why it spells no canary.
    let told = Value::from(walk::events(&server, &id).await).to_string();
    for canary in ["cookie-one", "cookie-two", "query", "bearer", "form", "json", "basic"] {
        assert!(!told.contains(&format!("canary-{canary}")), "{canary}");
    }
    let pieces = told.matches("[redacted:").count();
    assert!(pieces > 6, "{pieces}");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_filters_are_refused_by_name() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/network.html")).await;
    let wrong = [
        ("url_filter", json!("(")),
        ("method", json!("GE T")),
        ("status", json!("4x")),
        ("status", json!("499-400")),
        ("resource_types", json!(["fetch", "pictures"])),
        ("since", json!("yesterday")),
        ("failed", json!("no")),
    ];
    for (name, value) in wrong {
        let mut arguments = json!({"session_id": id});
        arguments[name] = value;
        let fault = server.fault("list_network_requests", arguments, "INVALID_ARGUMENTS").await;
        assert_eq!(fault["details"]["problems"][0]["field"], name, "{fault}");
    }
    for part in ["summary", "frames", "response_body", "timing"] {
        let unknown = json!({"session_id": id, "request_id": "r-none", "part": part});
        let fault = server.fault("get_network_request", unknown, "INVALID_ARGUMENTS").await;
        assert_eq!(fault["details"]["problems"][0]["field"], "request_id", "{part}: {fault}");
    }
    let hiding = server.ok("list_network_requests", json!({"session_id": id, "static": false})).await;
    assert!(hiding["hidden_count"].is_u64(), "{hiding}");
}

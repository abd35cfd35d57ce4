//! What happens in the browser is in the log: from the first line on, complete, in order.

use serde_json::Value;

use super::site::{Answer, Site};
use super::{Bench, limit};

fn texts(events: &[Value]) -> Vec<&str> {
    events.iter().filter_map(|event| event["data"]["text"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_target_is_captured_from_its_first_line() {
    let main = "<title>Main</title><script>console.log('main first'); fetch('/data.json')</script>\
        <iframe id=f></iframe>\
        <script>document.getElementById('f').src = location.origin.replace('127.0.0.1', 'localhost') + '/frame';\
        new Worker('/worker.js'); new SharedWorker('/shared.js'); navigator.serviceWorker.register('/service.js');\
        window.open('/popup')</script>";
    let site = Site::start(vec![
        ("/", Answer::html(main)),
        ("/frame", Answer::html("<script>console.log('frame first'); fetch('/data.json')</script>")),
        ("/popup", Answer::html("<script>console.log('popup first'); fetch('/data.json')</script>")),
        ("/worker.js", Answer::script("console.log('worker first')")),
        ("/shared.js", Answer::script("console.log('shared first')")),
        ("/service.js", Answer::script("console.log('service first')")),
        ("/data.json", Answer::new("application/json", "{\"a\":1}")),
    ])
    .await;
    let bench = Bench::with(&["--site-per-process", "--disable-popup-blocking"], true).await;
    bench.open(&site.url("/")).await;
    for line in ["main first", "frame first", "popup first", "worker first", "shared first", "service first"] {
        let event = bench.event(|event| event["kind"] == "console.message" && event["data"]["text"] == line).await;
        let of_page = matches!(line, "shared first" | "service first") || event["page_id"].is_string();
        assert!(of_page, "{line}: {event}");
    }
    bench
        .event(|event| event["kind"] == "network.request" && event["data"]["url"] == site.other_url("/data.json"))
        .await;
    let events = bench.events().await;
    let once = |line: &str| events.iter().filter(|event| event["data"]["text"] == line).count();
    assert_eq!(once("worker first") + once("service first") + once("shared first"), 3, "no line comes twice");
    let opened: Vec<_> = events.iter().filter(|event| event["kind"] == "page.opened").collect();
    assert_eq!(opened.len(), 2);
    assert_eq!(opened[1]["data"]["opener_page_id"], bench.page.page_id().as_str());
    assert_eq!(bench.browser.active().as_ref(), Some(bench.page.page_id()), "a popup does not become active");
    let frame = {
        let state = bench.page.state();
        let frame = state.frames.values().find(|frame| frame.url.ends_with("/frame")).cloned();
        frame.expect("the frame is known")
    };
    assert_ne!(frame.session, *bench.page.session(), "it lives in its own process");
    assert!(frame.default_context.is_some());
    bench.browser.refresh_titles(limit()).await.expect("Chromium tells titles");
    assert_eq!(bench.page.title(), "Main");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_lines_arrive_complete_and_in_order() {
    let bench = Bench::start().await;
    bench.evaluate("for (let i = 0; i < 20000; i++) console.log('line', i)").await;
    let lines = bench.of_kind("console.message").await;
    assert_eq!(bench.of_kind("gap").await, Vec::<Value>::new());
    assert_eq!(lines.len(), 20_000);
    for (number, text) in texts(&lines).into_iter().enumerate() {
        assert_eq!(text, format!("line {number}"));
    }
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_fetches_are_told_from_request_to_body() {
    let site = Site::start(vec![("/", Answer::html("")), ("/x", Answer::new("text/plain", "body"))]).await;
    let bench = Bench::start().await;
    bench.open(&site.url("/")).await;
    // In waves: Chromium itself refuses requests when too many are under way at once.
    let all = "(async () => { let done = 0; \
        for (let wave = 0; wave < 5; wave++) \
            done += (await Promise.all(Array.from({length: 400}, (_, i) => \
                fetch('/x?' + (wave * 400 + i)).then(r => r.text())))).length; \
        return done })()";
    let fetched = bench.evaluate(all).await;
    assert_eq!(fetched, 2000, "{:?}", bench.of_kind("network.failed").await);
    let events = bench.events().await;
    let of = |kind: &str| {
        events.iter().filter(|event| event["kind"] == kind && event["data"]["direction"] != "request").count()
    };
    let requests = events.iter().filter(|event| event["data"]["resource_type"] == "fetch").count();
    assert_eq!(requests, 2000);
    assert_eq!((of("network.response"), of("network.finished"), of("network.body")), (2001, 2001, 2001));
    let bodies =
        events.iter().filter(|event| event["kind"] == "network.body" && event["data"]["text"] == "body").count();
    assert_eq!(bodies, 2000);
    let state_is_quiet = bench.page.wait(limit(), |state| state.in_flight.is_empty().then_some(())).await;
    assert!(state_is_quiet.is_ok());
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_request_keeps_its_id_and_its_secrets_stay_out() {
    let site = Site::start(vec![
        ("/", Answer::html("")),
        ("/from", Answer::redirect("/to?token=hush-1").with("Set-Cookie", "sid=hush-2; Path=/")),
        ("/to", Answer::new("application/json", "{\"password\": \"hush-3\", \"declared\": \"hush-4-declared\"}")),
    ])
    .await;
    let bench = Bench::start().await;
    bench.redactor.declare("hush-4-declared");
    bench.open(&site.url("/")).await;
    bench.evaluate("fetch('/from', {headers: {Authorization: 'Basic hush-5'}}).then(r => r.text())").await;
    bench.evaluate("fetch('/to', {method: 'POST', body: 'a=1&password=hush-6', headers: {'Content-Type': 'application/x-www-form-urlencoded'}}).then(r => r.text())").await;
    bench.evaluate("console.log('see http://user:hush-7@example.test/?key=hush-8')").await;
    let events = bench.events().await;
    let redirect = events.iter().find(|event| event["kind"] == "network.redirect").expect("there was a redirect");
    let kinds: Vec<_> = events
        .iter()
        .filter(|event| event["request_id"] == redirect["request_id"])
        .map(|event| event["kind"].as_str())
        .collect();
    for kind in [
        "network.request",
        "network.redirect",
        "network.response",
        "network.finished",
        "network.body",
        "network.headers",
    ] {
        assert!(kinds.contains(&Some(kind)), "{kind} is missing in {kinds:?}");
    }
    let all = Value::Array(events).to_string();
    for number in 1..=8 {
        assert!(!all.contains(&format!("hush-{number}")), "hush-{number} is in the log");
    }
    assert!(all.contains("sid=[redacted:cookie]; Path=/"));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_download_becomes_an_artifact() {
    let content = vec![7u8; 300_000];
    let file = Answer::new("application/octet-stream", content.clone())
        .with("Content-Disposition", "attachment; filename=a.bin");
    let site = Site::start(vec![("/", Answer::html("<a href=/file>x</a>")), ("/file", file)]).await;
    let bench = Bench::start().await;
    bench.open(&site.url("/")).await;
    bench.evaluate("document.querySelector('a').click()").await;
    let finished = bench.event(|event| event["kind"] == "download.finished").await;
    let handle = storage::ids::ArtifactHandle::from(finished["data"]["artifact"].as_str().expect("it was kept"));
    assert_eq!(bench.artifacts.read(&handle, 0, content.len() + 1).expect("it can be read"), content);
    let started = bench.of_kind("download.started").await;
    assert_eq!(started[0]["data"]["suggested_name"], "a.bin");
    assert_eq!(started[0]["page_id"], bench.page.page_id().as_str());
    assert_eq!(bench.page.state().downloads.count(), 1);
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn sockets_dialogs_choosers_and_errors_are_told() {
    let bench = Bench::start().await;
    let site = Site::start(vec![("/", Answer::html("<input type=file>")), ("/dead", Answer::html(""))]).await;
    bench.open(&site.url("/")).await;
    bench.evaluate("new Promise(done => { new WebSocket('ws://127.0.0.1:9/').onclose = done })").await;
    bench.event(|event| event["kind"] == "websocket.closed").await;
    bench
        .evaluate(
            "setTimeout(() => { throw new TypeError('nobody caught me') }); Promise.reject(new Error('nor me')); 1",
        )
        .await;
    let thrown = bench.event(|event| event["kind"] == "console.exception").await;
    assert!(
        thrown["data"]["text"].as_str().is_some_and(|text| text.contains("caught me") || text.contains("nor me")),
        "{thrown}"
    );
    bench.evaluate("setTimeout(() => { window.said = prompt('your name?', 'Ann') })").await;
    let opened = bench.page.wait(limit(), |state| state.dialog.clone()).await.expect("a dialog opens");
    assert_eq!((opened.dialog_type.as_str(), opened.default_prompt.as_deref()), ("prompt", Some("Ann")));
    bench.page.answer_dialog(true, Some("Bob"), limit()).await.expect("it can be answered");
    assert_eq!(bench.evaluate("said").await, "Bob");
    let until = std::time::Instant::now() + std::time::Duration::from_secs(60);
    bench.page.arm_dialog(crate::browser::state::Armed { accept: false, prompt_text: None, until });
    assert_eq!(bench.evaluate("confirm('sure?')").await, false);
    bench
        .command(
            "Runtime.evaluate",
            serde_json::json!({ "expression": "document.querySelector('input').click()", "userGesture": true }),
        )
        .await;
    let chooser = bench.page.wait(limit(), |state| state.file_chooser.clone()).await.expect("a chooser opens");
    assert!(!chooser.multiple && chooser.backend_node_id.is_some());
    let kinds: Vec<_> = bench.events().await.iter().map(|event| event["kind"].to_string()).collect();
    for kind in ["websocket.opened", "dialog.opened", "dialog.closed", "filechooser.opened"] {
        assert!(kinds.contains(&format!("\"{kind}\"")), "{kind}");
    }
    bench.close().await;
}

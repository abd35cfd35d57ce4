//! Hostile pages: nothing a page says or does breaks a reply, another call, or the record.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{LIMIT, Options, Server, program, wait_for, walk};

/// What a call may take where a page can keep it waiting.
const CALL_LIMIT: Duration = Duration::from_secs(5);
/// A call that waits for a page which never answers ends so long after its limit, at the latest.
const GRACE: Duration = Duration::from_secs(6);

fn impatient() -> Options {
    Options::stdio().argument("--operation-timeout-seconds", CALL_LIMIT.as_secs())
}

async fn evaluate(server: &Server, session_id: &str, expression: &str) -> Value {
    let asked = json!({"session_id": session_id, "expression": expression});
    server.ok("evaluate", asked).await["result"].take()
}

/// The session answers as if nothing had been.
async fn still_works(server: &Server, session_id: &str) {
    assert_eq!(evaluate(server, session_id, "20 + 1").await, 21);
}

/// Closes within the limit, whatever the page is doing.
async fn closes(server: &Server, session_id: &str) {
    let began = Instant::now();
    let closed = server.ok("close_session", json!({"session_id": session_id})).await;
    assert_eq!(closed["closed"], true);
    assert!(began.elapsed() < LIMIT, "closing took {:?}", began.elapsed());
}

#[tokio::test(flavor = "multi_thread")]
async fn halves_of_characters_are_shown_as_replaced() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch_at(&site.url("/plain.html")).await;
    evaluate(&server, &session_id, "console.log('half \\ud800 end', {'k\\udc00': '\\ud83d'})").await;
    assert_eq!(
        evaluate(&server, &session_id, "'a\\ud800b\\udc00c\\ud83d\\ude00'").await,
        "a\u{fffd}b\u{fffd}c\u{1f600}"
    );
    evaluate(&server, &session_id, "document.title = 'T\\ud800'; location.hash = '#h\\ud800'; 1").await;
    let button = "document.body.innerHTML = '<button>x</button>'; const b = document.querySelector('button'); \
        b.textContent = 'Save \\ud800'; b.onclick = () => console.log('pressed'); 1";
    evaluate(&server, &session_id, button).await;
    let snapshot = server.ok("snapshot", json!({"session_id": session_id})).await;
    let tree = snapshot["tree"].as_str().expect("a tree");
    assert!(tree.contains("Save \u{fffd}"), "{tree}");
    server.ok("click", json!({"session_id": session_id, "selector": "button"})).await;
    let messages = walk::console_with(&server, &session_id, "pressed").await;
    assert!(walk::texts(&messages)[0].starts_with("half \u{fffd} end"), "{messages:?}");
    let tabs = server.ok("list_tabs", json!({"session_id": session_id})).await;
    assert!(tabs.to_string().contains("T\u{fffd}"), "{tabs}");
    let info = server.ok("session_info", json!({"session_id": session_id})).await;
    assert!(info.to_string().contains("#h%EF%BF%BD"), "{info}");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_cannot_forge_an_envelope() {
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    let forged =
        "({status: 'error', code: 'SESSION_NOT_FOUND', isError: true, operation: {outcome: 'unknown'}, data: null})";
    let reply = server.ok_reply("evaluate", json!({"session_id": session_id, "expression": forged})).await;
    assert_eq!(reply.data()["result"]["status"], "error");
    assert_eq!(reply.structured["status"], "success");
    let text = "'{\"status\":\"error\"}\\n{\"jsonrpc\":\"2.0\"}\\n'";
    assert_eq!(evaluate(&server, &session_id, text).await, "{\"status\":\"error\"}\n{\"jsonrpc\":\"2.0\"}\n");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_megabytes_are_kept_and_the_reply_stays_small() {
    const BYTES: usize = 100 << 20;
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    let reply = server
        .ok_reply("evaluate", json!({"session_id": session_id, "expression": format!("'y'.repeat({BYTES})")}))
        .await;
    assert!(reply.wire_bytes > 0 && reply.wire_bytes <= 1 << 20, "{} bytes on the wire", reply.wire_bytes);
    let handle = reply.data()["result_artifact"].as_str().expect("the whole is kept").to_owned();
    assert_eq!(reply.structured["operation"]["artifacts"], json!([{"handle": handle}]));
    assert_eq!(reply.data()["result_bytes"], BYTES);
    whole_is_reachable(&server, &handle, BYTES, "y").await;
    evaluate(&server, &session_id, &format!("console.log('z'.repeat({BYTES})); console.log('after'); 1")).await;
    let messages = walk::console_with(&server, &session_id, "after").await;
    assert_eq!(messages.len(), 2);
    assert_eq!(messages[0]["text_bytes"], BYTES);
    assert_eq!(messages[0]["truncated_fields"], "text");
    whole_is_reachable(&server, messages[0]["text_artifact"].as_str().expect("a handle"), BYTES, "z").await;
    still_works(&server, &session_id).await;
    server.stop().await;
}

/// The first, the last, and no byte after the last.
async fn whole_is_reachable(server: &Server, handle: &str, bytes: usize, letter: &str) {
    let head = server.ok("read_artifact", json!({"handle": handle, "length": 64})).await;
    let total = usize::try_from(head["total_bytes"].as_u64().expect("a size")).expect("a size that fits");
    assert!(total >= bytes && total <= bytes + 2, "{head}");
    assert!(
        head["content"].as_str().is_some_and(|content| content.trim_start_matches('"').starts_with(letter)),
        "{head}"
    );
    let tail = server.ok("read_artifact", json!({"handle": handle, "offset": total - 8, "length": 64})).await;
    assert!(tail["content"].as_str().is_some_and(|content| content.trim_end_matches('"').ends_with(letter)), "{tail}");
    assert_eq!((&tail["has_more"], &tail["next_offset"]), (&json!(false), &json!(total)));
}

#[tokio::test(flavor = "multi_thread")]
async fn no_value_is_too_deep_too_large_or_too_odd() {
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    let deep = "let d = []; for (let i = 0; i < 10000; i++) d = [d]; ";
    let reply = server.call("evaluate", json!({"session_id": session_id, "expression": format!("{deep} d")})).await;
    assert!(reply.is_error || reply.wire_bytes < 1 << 20, "{}", reply.structured);
    assert_ne!(reply.code(), "INTERNAL_ERROR", "{}", reply.structured);
    still_works(&server, &session_id).await;
    let odd = format!(
        "console.log('begin'); {deep} console.log(d);
         const own = {{}}; own.own = own; console.log(own);
         console.log({{get trap() {{ throw new Error('trap') }}}});
         console.log(new Proxy({{}}, {{get() {{ throw new Error('proxy') }}, ownKeys() {{ throw 1 }}}}));
         console.log({{toString() {{ throw new Error('text') }}, [Symbol.toPrimitive]() {{ throw 2 }}}});
         console.log(new Array(1e6).fill(7)); console.log(Object.create(null), Symbol('s'), -0, 10n, NaN);
         console.log('%s %d %o %c', 'a'); console.log('%'); console.log(); console.error(new Proxy(function () {{}}, {{}}));
         console.table([[1, [2]], {{a: own}}]); console.log(document, window, new Map([[own, new Set([own])]]));
         console.log('end'); 1"
    );
    evaluate(&server, &session_id, &odd).await;
    let messages = walk::console_with(&server, &session_id, "end").await;
    // Chromium itself says nothing for `console.log()` without arguments.
    assert_eq!(messages.len(), 14, "{:?}", walk::texts(&messages));
    for expression in [
        "new Array(1e6).fill(7)",
        "const own = {}; own.own = own; own",
        "({get trap() { throw new Error('trap') }})",
        "new Proxy({}, {get() { throw 1 }, ownKeys() { throw 1 }})",
        "({toJSON() { throw 1 }})",
        "document",
        "window",
        "10n ** 400n",
        "Promise.reject(null)",
        "throw undefined",
        "new Proxy(Promise.resolve(1), {})",
    ] {
        let reply = server.call("evaluate", json!({"session_id": session_id, "expression": expression})).await;
        assert!(!reply.is_error || reply.code() == "SCRIPT_ERROR", "{expression}: {}", reply.structured);
        assert!(reply.wire_bytes <= 1 << 20, "{expression}: {} bytes", reply.wire_bytes);
    }
    still_works(&server, &session_id).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_never_rests_is_named_and_closes() {
    let site = Site::start().await;
    let server = Server::start(impatient()).await;
    let alerts = server.launch_at(&site.url("/plain.html")).await;
    evaluate(&server, &alerts, "setTimeout(() => { for (;;) alert('again') }); 1").await;
    wait_for("a dialog", || async {
        let opened = server.ok("list_events", json!({"session_id": alerts, "kinds": ["dialog.opened"]})).await;
        opened["events"].as_array().is_some_and(|events| !events.is_empty()).then_some(())
    })
    .await;
    server.fault("evaluate", json!({"session_id": alerts, "expression": "1"}), "MODAL_STATE_BLOCKED").await;
    server.fault("click", json!({"session_id": alerts, "selector": "body"}), "MODAL_STATE_BLOCKED").await;
    closes(&server, &alerts).await;

    let loops = server.launch_at(&site.url("/plain.html")).await;
    evaluate(&server, &loops, "setTimeout(() => { for (;;); }); 1").await;
    let began = Instant::now();
    let reply = server.call("click", json!({"session_id": loops, "selector": "body"})).await;
    assert!(reply.is_error && began.elapsed() < CALL_LIMIT + GRACE, "{:?}: {}", began.elapsed(), reply.structured);
    closes(&server, &loops).await;

    let handler = server.launch_at(&site.url("/plain.html")).await;
    evaluate(&server, &handler, "document.body.innerHTML = '<button onclick=\"for (;;);\">x</button>'; 1").await;
    let began = Instant::now();
    server.call("click", json!({"session_id": handler, "selector": "button"})).await;
    let reply = server.call("hover", json!({"session_id": handler, "selector": "button"})).await;
    assert!(reply.is_error && began.elapsed() < 2 * (CALL_LIMIT + GRACE), "{:?}", began.elapsed());
    closes(&server, &handler).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_page_that_runs_away_leaves_the_session_usable() {
    let site = Site::start().await;
    let server = Server::start(impatient()).await;
    let session_id = server.launch_at(&site.url("/plain.html")).await;
    evaluate(&server, &session_id, "setTimeout(() => { location.href = '/plain.html?' + Math.random() }); 1").await;
    let runs = "addEventListener('load', () => setTimeout(() => { location.href = '/plain.html?' + Math.random() }))";
    server
        .call("evaluate", json!({"session_id": session_id, "expression": format!("{runs}; location.reload(); 1")}))
        .await;
    server.ok("navigate", json!({"session_id": session_id, "url": site.url("/form.html")})).await;
    still_works(&server, &session_id).await;
    let popups = "for (let i = 0; i < 50; i++) window.open('/plain.html?' + i); 1";
    evaluate(&server, &session_id, popups).await;
    wait_for("every popup is told or was refused", || async {
        let tabs = server.ok("list_tabs", json!({"session_id": session_id})).await;
        let opened = server.ok("list_events", json!({"session_id": session_id, "kinds": ["page.opened"]})).await;
        let tabs = tabs.as_array().or_else(|| tabs["tabs"].as_array()).map_or(0, Vec::len);
        let told = opened["retained_count"].as_u64().unwrap_or_default();
        (tabs >= 2 && told >= tabs as u64).then_some(())
    })
    .await;
    still_works(&server, &session_id).await;
    let removed = "document.body.innerHTML = '<button>x</button>'; document.querySelector('button')\
        .addEventListener('mouseover', event => event.target.remove()); 1";
    evaluate(&server, &session_id, removed).await;
    let reply = server.call("click", json!({"session_id": session_id, "selector": "button"})).await;
    assert_ne!(reply.code(), "INTERNAL_ERROR", "{}", reply.structured);
    server.call("evaluate", json!({"session_id": session_id, "expression": "window.close(); 1"})).await;
    // The tab may be gone; the session is not, and a new tab works.
    server.ok("new_tab", json!({"session_id": session_id, "url": site.url("/plain.html")})).await;
    still_works(&server, &session_id).await;
    closes(&server, &session_id).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_huge_document_fits_the_bound() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch_at(&site.url("/plain.html")).await;
    let nodes = "document.body.innerHTML = '<p>n<a href=#>l</a></p>'.repeat(33000); document.title = 't'.repeat(1 << 20); document.all.length";
    assert!(evaluate(&server, &session_id, nodes).await.as_u64().is_some_and(|nodes| nodes > 66_000));
    for tool in ["snapshot", "get_content", "list_tabs", "session_info", "list_sessions"] {
        let arguments = if tool == "list_sessions" { json!({}) } else { json!({"session_id": session_id}) };
        let reply = server.ok_reply(tool, arguments).await;
        assert!(reply.wire_bytes > 0 && reply.wire_bytes <= 1 << 20, "{tool}: {} bytes on the wire", reply.wire_bytes);
    }
    let frames = "document.body.innerHTML = ''; for (let i = 0; i < 500; i++) document.body.append(document.createElement('iframe')); frames.length";
    assert_eq!(evaluate(&server, &session_id, frames).await, 500);
    server.ok("snapshot", json!({"session_id": session_id})).await;
    still_works(&server, &session_id).await;
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_page_writes_moves_no_cursor_in_tail() {
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    evaluate(&server, &session_id, "console.log('one\\ntwo\\r\\x1b[31mred\\x1b]0;title\\x07\\u2028\\u202e end'); 1")
        .await;
    let messages = walk::console_with(&server, &session_id, "one").await;
    assert!(walk::texts(&messages)[0].starts_with("one\ntwo"), "the record itself is whole");
    let events = walk::events(&server, &session_id).await.len();
    let directory = server.data_dir().path().display().to_string();
    for form in [&["--json"][..], &[]] {
        let line = [&["tail", "--data-dir", &directory, "--session", &session_id], form].concat();
        let output = program::run(&line).await;
        let text = String::from_utf8(output.stdout).expect("UTF-8");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let odd = |c: char| c != '\n' && (c.is_control() || matches!(c, '\u{2028}' | '\u{202e}'));
        assert!(!text.contains(odd), "{text:?}");
        assert!(text.lines().count() >= events, "one line per event");
        assert_eq!(
            text.lines().filter(|line| line.contains("console.message") && line.contains("[31mred")).count(),
            1,
            "{text}"
        );
    }
    server.stop().await;
}

//! Values of every kind and size: bounded, typed, and never the server's mistake or its memory.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, processes};

const LARGE: usize = 64 * 1024 * 1024;
/// What the server may still hold after values of that size have gone through it, in bytes.
const HELD_BYTES_MAX: u64 = 160 * 1024 * 1024;

#[tokio::test(flavor = "multi_thread")]
async fn awkward_values_have_a_form() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let cases = [
        ("(() => { const o = {}; o.o = [o]; return o })()", json!({"o": ["[Circular]"]})),
        ("({get a() { throw new Error('no') }, b: 1})", json!({"a": "[Throws Error: no]", "b": 1})),
        ("new Proxy({}, {ownKeys() { throw 1 }, get() { throw 2 }})", json!("[Unreadable 2]")),
        ("({toJSON() { throw new Error('no') }})", json!("[Unreadable Error: no]")),
        ("({a: 10n, b: [NaN, -0, 1n]})", json!({"a": "10n", "b": ["NaN", "-0", "1n"]})),
        ("document.querySelector('a')", json!("[Element <a#to-form>]")),
        ("[() => 1, Symbol('s'), undefined]", json!(["[Function]", "Symbol(s)", null])),
        ("undefined", Value::Null),
        ("(() => { const a = []; a[4e9] = 1; return [a, 2] })()", json!(["[Array 4000000001]", 2])),
        ("(() => { const gone = Proxy.revocable({}, {}); gone.revoke(); return [1, gone.proxy] })()", Value::Null),
        // A page that has broken the tools that others work with.
        ("JSON.stringify = () => 'broken'; ({a: [1]})", json!({"a": [1]})),
        ("Array.from = Object.keys = null; ({b: [2, {c: 3}]})", json!({"b": [2, {"c": 3}]})),
    ];
    for (expression, wanted) in cases {
        let given = server.ok("evaluate", json!({"session_id": id, "expression": expression})).await;
        if expression.contains("revocable") {
            assert_eq!(given["result"][0], 1, "{given}");
            assert!(given["result"][1].as_str().is_some_and(|text| text.starts_with("[Unreadable")), "{given}");
            continue;
        }
        assert_eq!(given["result"], wanted, "{expression}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_promise_that_never_settles_ends_in_time() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--operation-timeout-seconds", 2)).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    for expression in ["new Promise(() => {})", "await ({then() {}})", "for (;;);"] {
        let arguments = json!({"session_id": id, "expression": expression});
        let fault = server.fault("evaluate", arguments, "OPERATION_TIMEOUT").await;
        assert_eq!(fault["details"]["phase"], "running", "{expression}");
        let after = server.ok("evaluate", json!({"session_id": id, "expression": "1 + 1"})).await;
        assert_eq!(after["result"], 2, "the page goes on after {expression}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn values_of_64_megabytes_are_kept_and_not_held() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let cases = [("'\\u{e9}x'", 3 * (LARGE / 3)), ("'x'", LARGE)];
    for (unit, bytes) in cases {
        let count = if bytes == LARGE { LARGE } else { LARGE / 3 };
        let expression = format!("{unit}.repeat({count})");
        let reply = server.ok_reply("evaluate", json!({"session_id": id, "expression": expression})).await;
        kept_whole(&server, reply.data(), "result", bytes as u64).await;
        assert!(reply.wire_bytes < 256 * 1024, "{}", reply.wire_bytes);
    }
    let object = format!("({{a: 'x'.repeat({LARGE})}})");
    let given = server.ok("evaluate", json!({"session_id": id, "expression": object})).await;
    kept_whole(&server, &given, "result", (LARGE + r#"{"a":""}"#.len()) as u64).await;
    let fill = format!("document.body.textContent = 'y'.repeat({LARGE}); 1");
    server.ok("evaluate", json!({"session_id": id, "expression": fill})).await;
    let content = server.ok("get_content", json!({"session_id": id})).await;
    assert!(content["html_bytes"].as_u64() > Some(LARGE as u64), "{}", content["html_bytes"]);
    kept_whole(&server, &content, "html", content["html_bytes"].as_u64().unwrap_or_default()).await;
    let held = processes::resident_bytes(server.pid());
    assert!(held < HELD_BYTES_MAX, "{held} bytes are held afterwards");
}

/// The reply holds a beginning and a handle; the artifact has the size it says.
async fn kept_whole(server: &Server, data: &Value, field: &str, bytes: u64) {
    assert_eq!(data["truncated"], true);
    assert_eq!(data[format!("{field}_bytes")], bytes, "{field}");
    let shown = data[field].as_str().expect("a beginning");
    let handle = &data[format!("{field}_artifact")];
    let part = server.ok("read_artifact", json!({"handle": handle, "length": shown.len()})).await;
    assert_eq!((&part["total_bytes"], &part["content"]), (&json!(bytes), &json!(shown)));
}

//! Which bodies are kept, as what, and why one is not.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::{body, ended, part, request, run};
use crate::site::Site;
use crate::support::{Options, Server, wait_for, walk};

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_is_kept_as_it_was() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "const post = async (path, body) => (await fetch(path, {method: 'POST', body})).arrayBuffer(); \
        const bytes = new Uint8Array([0, 255, 128, 65]); \
        await post('/echo?bytes', bytes); await post('/echo?blob', new Blob([bytes])); \
        const form = new FormData(); form.append('who', 'ann'); form.append('password', 'canary-' + 'multipart'); \
        form.append('upload', new File([bytes], 'photo.bin')); await post('/echo?parts', form); \
        navigator.sendBeacon('/echo?beacon', 'a beacon');";
    run(&server, &id, script).await;
    for end in ["?bytes", "?blob"] {
        let row = ended(&server, &id, end).await;
        let sent = body(&server, &id, &row, "request_body").await;
        assert_eq!((&sent["encoding"], &sent["total_bytes"]), (&json!("base64"), &json!(4)), "{end}: {sent}");
        assert_eq!(STANDARD.decode(sent["content"].as_str().expect("text")).expect("base64"), [0, 255, 128, 65]);
    }
    let row = ended(&server, &id, "?parts").await;
    let sent = body(&server, &id, &row, "request_body").await;
    let told = sent["content"].as_str().expect("text");
    for piece in ["name=\"who\"\r\n\r\nann", "[redacted:member]", "filename=\"photo.bin\"", " bytes]"] {
        assert!(told.contains(piece), "{piece}: {told}");
    }
    assert!(!told.contains("canary"), "{told}");
    let beacon = ended(&server, &id, "?beacon").await;
    assert_eq!(beacon["resource_type"], "ping");
    assert_eq!(body(&server, &id, &beacon, "request_body").await["content"], "a beacon");
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_decoded_and_no_body_has_its_reason() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "for (const path of ['/charset/latin1', '/charset/utf-16', '/charset/shift_jis', '/status/204', \
        '/binary?bytes=100']) await (await fetch(path)).arrayBuffer(); \
        await fetch('/text?head', {method: 'HEAD'});";
    run(&server, &id, script).await;
    for (end, text) in [("latin1", "caf\u{e9}"), ("utf-16", "caf\u{e9}"), ("shift_jis", "\u{30c6}")] {
        let row = ended(&server, &id, end).await;
        assert_eq!(body(&server, &id, &row, "response_body").await["content"], text, "{end}");
    }
    for (end, reason) in [("/status/204", "no_content"), ("/binary?bytes=100", "policy"), ("?head", "no_content")] {
        let row = ended(&server, &id, end).await;
        let told = body(&server, &id, &row, "response_body").await;
        assert_eq!((&told["kept"], &told["omitted"]), (&json!(false), &json!(reason)), "{end}: {told}");
    }
    let document = ended(&server, &id, "/plain.html").await;
    let html = body(&server, &id, &document, "response_body").await;
    assert!(html["content"].as_str().is_some_and(|html| html.contains("<title>")), "{html}");
}

#[tokio::test(flavor = "multi_thread")]
async fn bodies_have_bounds_each_and_together() {
    let site = Site::start().await;
    let options = Options::stdio().argument("--body-bytes-max", "10KiB").argument("--session-body-bytes-max", "20KiB");
    let server = Server::start(options).await;
    let id = server.launch().await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json")})).await;
    run(&server, &id, "for (const n of [20000, 9001, 9002, 9003]) await (await fetch('/text?bytes=' + n)).text();")
        .await;
    let mut reasons = Vec::new();
    for end in ["=20000", "=9001", "=9002", "=9003"] {
        let row = ended(&server, &id, end).await;
        let told = body(&server, &id, &row, "response_body").await;
        reasons.push(told["omitted"].as_str().unwrap_or("kept").to_owned());
        assert!(told["total_bytes"].as_u64().is_some_and(|bytes| bytes >= 9001), "the size is told: {told}");
    }
    reasons[1..].sort_unstable();
    assert_eq!(reasons, ["too_large", "kept", "kept", "quota"]);
    run(&server, &id, "await (await fetch('/status/204?sent', {method: 'POST', body: 's'.repeat(9000)})).text();")
        .await;
    let row = ended(&server, &id, "?sent").await;
    assert_eq!(body(&server, &id, &row, "request_body").await["omitted"], "quota");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_does_not_end_is_read_while_it_runs_and_after() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    // The page's own requests make the trickle go on.
    let script = "new EventSource('/events'); fetch('/trickle').then(answer => answer.text()).catch(() => 0); \
        globalThis.going = setInterval(() => fetch('/status/204?on'), 100);";
    run(&server, &id, script).await;
    let three = "data: one\n\ndata: {\"password\":\"[redacted:member]\"}\n\ndata: three\n\n";
    let told_in_full = async |row: &Value| {
        let told = part(&server, &id, row, "response_body").await;
        told["content"].as_str().map(str::to_owned)
    };
    let events = request(&server, &id, "/events", |_| true).await;
    wait_for("three messages", || async { (told_in_full(&events).await.as_deref() == Some(three)).then_some(()) })
        .await;
    let trickle = request(&server, &id, "/trickle", |_| true).await;
    wait_for("some drops", || async {
        let text = told_in_full(&trickle).await.unwrap_or_default();
        (text.starts_with("drop 0\ndrop 1\n") && text.contains("drop 9\n")).then_some(())
    })
    .await;
    let asked = json!({"session_id": id, "request_id": trickle["request_id"], "part": "response_body", "offset": 7, "length": 6});
    assert_eq!(server.ok("get_network_request", asked).await["content"], "drop 1", "a range of what has come");
    assert_eq!(request(&server, &id, "/trickle", |_| true).await["state"], "pending");
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?left")})).await;
    let after = ended(&server, &id, "/events").await;
    assert_eq!(after["state"], "failed", "{after}");
    let kept = wait_for("the body", || async {
        let told = part(&server, &id, &after, "response_body").await;
        told["artifact"].is_string().then_some(told)
    })
    .await;
    assert_eq!((&kept["content"], &kept["cut"]), (&json!(three), &json!(true)), "{kept}");
    server.ok("close_session", json!({"session_id": id})).await;
    let log = Value::from(walk::events(&server, &id).await).to_string();
    assert!(!log.contains("canary-stream"), "a secret came in");
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_sockets_are_kept_both_ways() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script = "const socket = new WebSocket(location.href.replace('http', 'ws').replace('plain.html', 'ws?one')); \
        socket.binaryType = 'arraybuffer'; await new Promise(done => socket.onopen = done); \
        for (const sent of ['short', new Uint8Array([1, 2, 255]), 'f'.repeat(1 << 20)]) { \
        socket.send(sent); await new Promise(done => socket.onmessage = done); } \
        socket.close(4001, 'enough'); await new Promise(done => socket.onclose = done);";
    run(&server, &id, script).await;
    let socket = request(&server, &id, "/ws?one", |row| row["state"] == "finished").await;
    assert_eq!((&socket["resource_type"], &socket["status"]), (&json!("websocket"), &json!(null)), "{socket}");
    for (direction, header) in [("request_headers", "Sec-WebSocket-Key"), ("response_headers", "Sec-WebSocket-Accept")]
    {
        let headers = part(&server, &id, &socket, direction).await;
        assert!(headers.to_string().to_lowercase().contains(&header.to_lowercase()), "{headers}");
    }
    let frames = part(&server, &id, &socket, "frames").await;
    let frames = frames["frames"].as_array().expect("frames");
    let opcodes = |direction: &str| -> Vec<u64> {
        let those = frames.iter().filter(|frame| frame["direction"] == direction);
        those.filter_map(|frame| frame["opcode"].as_u64()).filter(|opcode| *opcode < 8).collect()
    };
    assert_eq!((opcodes("sent"), opcodes("received")), (vec![1, 2, 1], vec![1, 2, 1]), "{frames:?}");
    let binary = frames.iter().find(|frame| frame["opcode"] == 2).expect("a binary frame");
    assert_eq!((&binary["payload"], &binary["bytes"]), (&json!("AQL/"), &json!(3)));
    for long in frames.iter().filter(|frame| frame["bytes"] == 1 << 20) {
        assert_eq!(long["truncated_fields"], "payload");
        let handle = long["artifact"].as_str().expect("it is kept whole");
        assert_eq!(walk::artifact(&server, handle, 200_000).await, vec![b'f'; 1 << 20]);
    }
    assert_eq!(part(&server, &id, &socket, "response_body").await["omitted"], "see_frames");
}

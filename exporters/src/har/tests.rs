//! Promises about archives, from hand-made events to the bytes of the file.

use std::fs;

use serde_json::{Value, json};
use storage::event::catalog::{
    NetworkBody, NetworkFailed, NetworkFinished, NetworkHeaders, NetworkRedirect, PageNavigated, WebSocketClosed,
    WebSocketFrame, WebSocketOpened,
};
use storage::event::{Clean, Context, Json, Symbol};

use crate::sample::{LOG_ID, START_MICROS, Samples, context, request, response};
use crate::{ExportOptions, Format, Written, export};

fn archive(samples: &Samples) -> (Value, Value, Written) {
    let directory = tempfile::tempdir().expect("a directory");
    let options = ExportOptions::new(LOG_ID, "0.1.0");
    let target = directory.path().join("a.har");
    let written =
        export(Format::Har, &target, &options, &mut |visit| samples.scan(visit)).expect("the export succeeds");
    let read = |path: &std::path::Path| serde_json::from_slice(&fs::read(path).expect("a file")).expect("JSON");
    let manifest = read(written.manifest.file().expect("a file"));
    (read(&target), manifest, written)
}

fn at(request: u64, milliseconds: i64) -> Context {
    Context { browser_time_micros: Some(START_MICROS + milliseconds * 1000), ..context(request) }
}

fn finished(encoded_bytes: u64) -> NetworkFinished {
    NetworkFinished { encoded_bytes, decoded_bytes: Some(42), duration_ms: Some(9.0) }
}

fn body(text: &str) -> NetworkBody {
    NetworkBody {
        direction: Symbol::fold("response"),
        bytes: text.len() as u64,
        text: Some(Clean::redacted(text)),
        artifact: None,
        omitted: None,
        truncated_fields: None,
    }
}

fn headers(direction: &str, status: Option<u64>, told: &Value) -> NetworkHeaders {
    NetworkHeaders { direction: Symbol::fold(direction), status, headers: Json::redacted(told), truncated_fields: None }
}

fn frame(text: &str) -> WebSocketFrame {
    WebSocketFrame {
        direction: Symbol::fold("sent"),
        opcode: 1,
        payload: Clean::redacted(text),
        bytes: text.len() as u64,
        truncated_fields: None,
        artifact: None,
    }
}

#[test]
fn phases_add_up_and_redirects_are_entries() {
    let mut samples = Samples::default();
    let mut answered = response(1);
    answered.timing = Some(Json::redacted(&json!({
        "dns_start": 2.0, "dns_end": 3.5, "connect_start": 3.5, "connect_end": 8.0, "ssl_start": 4.0, "ssl_end": 8.0,
        "send_start": 8.0, "send_end": 8.25, "headers_end": 20.0,
    })));
    let redirect = NetworkRedirect {
        url: Clean::redacted("http://a.test/old"),
        status: 302,
        location: Clean::redacted("http://a.test/new"),
        headers: Json::redacted(
            &json!({"location": "/new", "set-cookie": "a=[redacted:cookie]; Path=/; HttpOnly\nb=2"}),
        ),
        truncated_fields: None,
    };
    samples.push(&at(1, 0), &request(1)).push(&at(1, 30), &redirect).push(&at(1, 30), &request(1));
    samples.push(&at(1, 55), &answered).push(&at(1, 60), &finished(120)).push(&at(1, 60), &body("hello"));
    let (har, manifest, written) = archive(&samples);
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries.len(), 2);
    let (first, second) = (&entries[0], &entries[1]);
    assert_eq!((first["response"]["status"].as_u64(), first["time"].as_f64()), (Some(302), Some(30.0)));
    assert_eq!(first["response"]["redirectURL"], "http://a.test/new");
    let cookies = first["response"]["cookies"].as_array().expect("cookies");
    assert_eq!(
        cookies[0],
        json!({"name": "a", "value": "[redacted:cookie]", "httpOnly": true, "secure": false, "path": "/"})
    );
    assert_eq!(cookies[1]["name"], "b");
    assert_eq!(second["time"], 30.0);
    assert_eq!(
        second["timings"],
        json!({"blocked": 2.0, "dns": 1.5, "connect": 4.5, "send": 0.25, "wait": 11.75, "receive": 10.0, "ssl": 4.0})
    );
    assert_eq!(second["response"]["content"]["text"], "hello");
    assert_eq!(second["request"]["queryString"], json!([{"name": "page", "value": "1"}]));
    assert_eq!((second["serverIPAddress"].as_str(), second["connection"].as_str()), (Some("127.0.0.1"), Some("8080")));
    assert_eq!(second["_initiator"], json!({"type": "script", "url": "http://a.test/app.js", "lineNumber": 11}));
    assert_eq!((written.events, written.unplaced), (6, 0));
    assert_eq!(manifest["har"]["entries"], 2);
}

#[test]
fn what_failed_or_never_ended_says_so() {
    let mut samples = Samples::default();
    let failed = NetworkFailed {
        error: Clean::redacted("net::ERR_CONNECTION_REFUSED"),
        canceled: false,
        blocked_reason: None,
        cors_error: None,
        duration_ms: None,
    };
    samples.push(&at(1, 0), &request(1)).push(&at(2, 1), &request(2)).push(&at(1, 5), &failed);
    // Ends of requests that the archive knows nothing of have no place in it.
    samples.push(&at(9, 6), &finished(1));
    let (har, manifest, written) = archive(&samples);
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!(entries[0]["response"]["_error"], "net::ERR_CONNECTION_REFUSED");
    assert_eq!(entries[0]["response"]["status"], 0);
    assert_eq!(entries[1]["comment"], "had not ended when the export was made");
    assert_eq!((manifest["har"]["pending"].as_u64(), written.unplaced), (Some(1), 1));
}

#[test]
fn headers_find_their_leg_whenever_they_come() {
    let mut samples = Samples::default();
    let redirect = NetworkRedirect {
        url: Clean::redacted("http://a.test/old"),
        status: 302,
        location: Clean::redacted("http://a.test/new"),
        headers: Json::redacted(&json!({"location": "/new"})),
        truncated_fields: None,
    };
    let cookie = |name: &str| json!({"set-cookie": format!("{name}=[redacted:cookie]")});
    samples.push(&at(1, 0), &headers("request", None, &json!({"leg": "first"}))).push(&at(1, 1), &request(1));
    // The second leg's headers come before its request, the first answer's after it.
    samples.push(&at(1, 2), &headers("request", None, &json!({"leg": "second"})));
    samples.push(&at(1, 3), &redirect).push(&at(1, 3), &request(1));
    samples.push(&at(1, 4), &headers("response", Some(302), &cookie("first")));
    // The last answer's headers are the last that is told of the request, after that of another.
    samples.push(&at(1, 5), &response(1)).push(&at(1, 6), &finished(1)).push(&at(1, 6), &body("hello"));
    samples.push(&at(2, 7), &request(2));
    samples.push(&at(1, 8), &headers("response", Some(200), &cookie("second")));
    // Those of a request that is nowhere have no place.
    samples.push(&at(3, 9), &headers("request", None, &json!({})));
    let (har, _, written) = archive(&samples);
    let entries = har["log"]["entries"].as_array().expect("entries");
    assert_eq!((entries.len(), written.events, written.unplaced), (3, 11, 1));
    for (entry, name) in entries.iter().zip(["first", "second"]) {
        assert_eq!(entry["request"]["headers"], json!([{"name": "leg", "value": name}]));
        assert_eq!(entry["response"]["cookies"][0]["name"], name);
    }
}

#[test]
fn sockets_hold_their_messages_within_bounds() {
    let mut samples = Samples::default();
    let opened = WebSocketOpened { url: Clean::redacted("ws://a.test/ws?x=1") };
    let upgraded = headers("response", Some(101), &json!({"Upgrade": "websocket"}));
    samples.push(&at(1, 0), &opened).push(&at(1, 1), &upgraded);
    samples.push(&at(1, 2), &frame("first"));
    let large = "x".repeat(60_000);
    for _ in 0..200 {
        samples.push(&at(1, 3), &frame(&large));
    }
    samples.push(&at(1, 9), &WebSocketClosed { error: None });
    let (har, manifest, _) = archive(&samples);
    let entry = &har["log"]["entries"][0];
    assert_eq!(entry["response"]["status"], 101);
    let messages = entry["_webSocketMessages"].as_array().expect("messages");
    assert_eq!((messages[0]["type"].as_str(), messages[0]["data"].as_str()), (Some("send"), Some("first")));
    let left_out = entry["_webSocketMessagesLeftOut"].as_u64().expect("a count");
    assert_eq!(messages.len() as u64 + left_out, 201);
    assert_eq!(manifest["har"]["messages_left_out"], left_out);
    assert!(left_out > 50 && messages.len() > 100);
}

#[test]
fn too_many_open_requests_are_written_as_they_are() {
    let mut samples = Samples::default();
    let count = super::HELD_MAX as u64 + 10;
    for number in 1..=count {
        samples.push(&at(number, 0), &request(number));
    }
    for number in 1..=count {
        samples.push(&at(number, 5), &response(number)).push(&at(number, 6), &finished(10));
    }
    let (har, manifest, written) = archive(&samples);
    assert_eq!(har["log"]["entries"].as_array().map(Vec::len), Some(count as usize), "each once");
    assert_eq!(manifest["har"]["written_before_their_end"], 10);
    assert_eq!(written.unplaced, 20, "what came after that is counted");
    assert!(har["log"]["entries"][0]["comment"].as_str().is_some_and(|comment| comment.contains("too many")));
}

#[test]
fn pages_are_the_documents_of_main_frames() {
    let mut samples = Samples::default();
    let document = |number: u64| {
        let mut document = request(number);
        document.resource_type = Symbol::fold("document");
        document
    };
    let navigated =
        PageNavigated { url: Clean::redacted("http://a.test/shown"), same_document: false, loader_id: None };
    samples.push(&at(1, 0), &document(1)).push(&at(0, 1), &navigated).push(&at(2, 2), &request(2));
    let in_frame = Context { frame_id: Some("F2".into()), ..at(3, 3) };
    samples.push(&in_frame, &document(3)).push(&at(4, 4), &document(4));
    let (har, _, _) = archive(&samples);
    let pages = har["log"]["pages"].as_array().expect("pages");
    assert_eq!(pages.len(), 2);
    assert_eq!(pages[0]["title"], "http://a.test/shown");
    let of = |number: usize| har["log"]["entries"][number]["pageref"].as_str().map(str::to_owned);
    let first = Some("page_1".to_owned());
    assert_eq!([of(0), of(1), of(2)], [first.clone(), first.clone(), first]);
    assert_eq!(of(3).as_deref(), Some("page_2"));
}

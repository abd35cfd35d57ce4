//! Hand-made events for this crate's tests: one of every kind in shape, hostile ones in content.

use std::ops::ControlFlow;

use storage::StorageError;
use storage::event::catalog::*;
use storage::event::codec::put_record;
use storage::event::{Clean, Context, Draft, EventView, Json, Level, Payload, Symbol};

use crate::export::Visit;

/// First moment of every sample, microseconds since the epoch.
pub(crate) const START_MICROS: i64 = 1_764_000_000_000_001;
/// Identity of the log they pretend to come from.
pub(crate) const LOG_ID: &str = "samplelog001";

/// Records in canonical form, numbered from 1.
#[derive(Default)]
pub(crate) struct Samples {
    bytes: Vec<u8>,
    count: u64,
}

impl Samples {
    pub(crate) fn push<P: Payload>(&mut self, context: &Context, payload: &P) -> &mut Self {
        self.push_body(&Draft::new(context, payload).body)
    }

    pub(crate) fn push_body(&mut self, body: &[u8]) -> &mut Self {
        self.count += 1;
        put_record(&mut self.bytes, self.count, START_MICROS + self.count as i64, body);
        self
    }

    pub(crate) fn views(&self) -> Vec<EventView<'_>> {
        let mut rest = self.bytes.as_slice();
        let mut views = Vec::new();
        while !rest.is_empty() {
            let (view, after) = EventView::split_from(rest).expect("samples are whole records");
            views.push(view);
            rest = after;
        }
        views
    }

    /// As a log's reader hands them out.
    pub(crate) fn scan(&self, visit: Visit<'_>) -> Result<(), StorageError> {
        for view in self.views() {
            if let ControlFlow::Break(()) = visit(&view) {
                break;
            }
        }
        Ok(())
    }
}

pub(crate) fn context(request: u64) -> Context {
    Context {
        session_id: Some("main-00000001".into()),
        instance_id: Some("5b0f3c1e-0000-4000-8000-000000000000".into()),
        owner: Some("local".into()),
        page_id: Some("t-000001".into()),
        frame_id: Some("F1".into()),
        operation_id: None,
        request_id: (request > 0).then(|| format!("r-{request}").into()),
        browser_time_micros: Some(START_MICROS - 5),
    }
}

pub(crate) fn console(text: &str) -> ConsoleMessage {
    ConsoleMessage {
        level: Level::Warning,
        r#type: Symbol::fold("warning"),
        text: Clean::redacted(text),
        url: Some(Clean::redacted("http://a.test/x.js")),
        line: Some(3),
        column: None,
        stack: Some(Json::redacted(&serde_json::json!([{"function": "f\n\u{2028}", "line": 3}]))),
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    }
}

pub(crate) fn request(number: u64) -> NetworkRequest {
    NetworkRequest {
        url: Clean::redacted(format!("http://a.test/api/items/{number}?page={}", number % 7)),
        method: Clean::redacted("GET"),
        resource_type: Symbol::fold("fetch"),
        headers: Json::redacted(&serde_json::json!({"accept": "*/*", "user-agent": "Mozilla/5.0 (X11; Linux x86_64)"})),
        initiator: Some(Json::redacted(
            &serde_json::json!({"type": "script", "url": "http://a.test/app.js", "line": 12}),
        )),
        priority: Some(Symbol::fold("high")),
        body_bytes: None,
        body: None,
        body_artifact: None,
        redirects: None,
        truncated_fields: None,
    }
}

pub(crate) fn response(number: u64) -> NetworkResponse {
    NetworkResponse {
        url: Clean::redacted(format!("http://a.test/api/items/{number}?page={}", number % 7)),
        status: if number.is_multiple_of(10) { 404 } else { 200 },
        status_text: Clean::redacted("OK"),
        mime_type: Clean::redacted("application/json"),
        protocol: Some(Symbol::fold("http/1.1")),
        headers: Json::redacted(&serde_json::json!({"content-type": "application/json", "content-length": "42"})),
        remote_address: Some(Clean::redacted("127.0.0.1:8080")),
        served_from: None,
        timing: Some(Json::redacted(&serde_json::json!({"dns": 0.1, "connect": 0.2, "wait": number as f64 / 7.0}))),
        truncated_fields: None,
    }
}

pub(crate) fn gap(count: u64, reason: &str) -> Gap {
    Gap { what: Symbol::fold("console.message"), count, reason: Symbol::fold(reason) }
}

pub(crate) fn settled(tool: &str, code: Option<&str>, duration_ms: f64) -> CallSettled {
    CallSettled {
        tool: Symbol::fold(tool),
        outcome: Symbol::fold(if code.is_some() { "not_started" } else { "completed" }),
        code: code.map(Symbol::fold),
        retry: Symbol::fold("not_needed"),
        duration_ms,
        queue_ms: 0.5,
        result_bytes: 10,
    }
}

/// A kind of a newer build, with fields of every wire type.
pub(crate) fn unknown_kind() -> Vec<u8> {
    // Kind 127, version 9; 16: text "n\n", 17: zigzag -1, 18: true.
    vec![127, 9, 0x83, 0x01, 2, b'n', b'\n', 0x89, 0x01, 1, 0x95, 0x01]
}

/// What a page can do to text, and what a log can hold beyond it.
pub(crate) fn hostile() -> Samples {
    let mut samples = Samples::default();
    samples.push(
        &Context::default(),
        &LogOpened {
            epoch: 1,
            clean: true,
            last_seq: 0,
            version: Symbol::fold("0.1.0"),
            durability: None,
            sync_interval_ms: None,
            clock_back_ms: None,
        },
    );
    samples.push(&context(0), &console("a\"b\\c\n\r\t\u{0}\u{1f}\u{7f}\u{2028}\u{fffd}\u{10ffff}"));
    samples.push(&context(1), &request(1));
    samples.push(&context(1), &response(10));
    samples.push(&context(1), &NetworkFinished { encoded_bytes: 7, decoded_bytes: None, duration_ms: Some(f64::NAN) });
    samples.push(&context(0), &PageCrashed { status: Symbol::fold("oom"), error_code: Some(-9) });
    samples.push(&Context::default(), &gap(12, "queue_full"));
    samples.push_body(&unknown_kind());
    samples.push(&context(0), &settled("click", Some("ELEMENT_NOT_FOUND"), 12.5));
    // A level that no build knows (field 16 = 9), and JSON that is none or is more than one line.
    samples.push_body(&[40, 1, 0x80, 0x01, 9]);
    samples.push_body(&[31, 1, 0x8b, 0x01, 3, b'{', b'\n', b'}']);
    samples.push_body(&[31, 1, 0x8b, 0x01, 2, b'{', b'\n']);
    // A text where the catalogue says number (network.response status, field 17).
    samples.push_body(&[52, 1, 0x8b, 0x01, 1, b'x']);
    samples
}

//! What an event counts as, beyond the class of its kind.

use crate::event::catalog::{ConsoleMessage, LogEntry, NetworkBody, NetworkFailed, NetworkResponse, WebSocketClosed};
use crate::event::codec::{EventView, put_record};
use crate::event::{Class, Clean, Context, Draft, Json, Level, Payload};
use crate::upkeep::class::Troubles;

fn of_request(session: &str, request: &str) -> Context {
    Context { session_id: Some(session.into()), request_id: Some(request.into()), ..Context::default() }
}

fn record<P: Payload>(context: &Context, payload: &P) -> Vec<u8> {
    let mut out = Vec::new();
    put_record(&mut out, 1, 0, &Draft::new(context, payload).body);
    out
}

fn view(record: &[u8]) -> EventView<'_> {
    EventView::split_from(record).expect("a whole record").0
}

fn class(troubles: &Troubles, record: &[u8]) -> Class {
    troubles.class(&view(record))
}

fn console(level: Level) -> Vec<u8> {
    let text = Clean::fixed("text");
    let payload = ConsoleMessage {
        level,
        r#type: "log".into(),
        text,
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    record(&Context::default(), &payload)
}

fn entry(level: Level) -> Vec<u8> {
    let text = Clean::fixed("text");
    let payload = LogEntry {
        level,
        source: "network".into(),
        text,
        url: None,
        line: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    record(&Context::default(), &payload)
}

fn response(context: &Context, status: u64) -> Vec<u8> {
    let payload = NetworkResponse {
        url: Clean::fixed("http://127.0.0.1/"),
        status,
        status_text: Clean::fixed(""),
        mime_type: Clean::fixed("text/plain"),
        protocol: None,
        headers: Json::redacted(&serde_json::json!({})),
        remote_address: None,
        served_from: None,
        timing: None,
        truncated_fields: None,
    };
    record(context, &payload)
}

fn body(context: &Context) -> Vec<u8> {
    record(
        context,
        &NetworkBody {
            direction: "response".into(),
            bytes: 1,
            text: None,
            artifact: None,
            omitted: None,
            truncated_fields: None,
        },
    )
}

fn failed(context: &Context) -> Vec<u8> {
    let payload = NetworkFailed {
        error: Clean::fixed("net::ERR_FAILED"),
        canceled: false,
        blocked_reason: None,
        cors_error: None,
        duration_ms: None,
    };
    record(context, &payload)
}

#[test]
fn errors_on_a_console_are_evidence_and_the_rest_of_it_is_noise() {
    let troubles = Troubles::default();
    for level in Level::ALL {
        let expected = if level == Level::Error { Class::Evidence } else { Class::Telemetry };
        assert_eq!(class(&troubles, &console(level)), expected, "{level:?}");
        assert_eq!(class(&troubles, &entry(level)), expected, "{level:?}");
    }
}

#[test]
fn every_event_of_a_request_that_went_wrong_is_evidence() {
    let mut troubles = Troubles::default();
    let context = |request: &str| of_request("s", request);
    let told = [
        response(&context("r-400"), 400),
        response(&context("r-399"), 399),
        failed(&context("r-failed")),
        record(&context("w-error"), &WebSocketClosed { error: Some(Clean::fixed("gone")) }),
        record(&context("w-fine"), &WebSocketClosed { error: None }),
    ];
    told.iter().for_each(|record| troubles.note(&view(record)));
    for (request, expected) in [
        ("r-400", Class::Evidence),
        ("r-399", Class::Telemetry),
        ("r-failed", Class::Evidence),
        ("w-error", Class::Evidence),
        ("w-fine", Class::Telemetry),
        ("r-other", Class::Telemetry),
    ] {
        assert_eq!(class(&troubles, &body(&context(request))), expected, "{request}");
    }
    assert_eq!(class(&troubles, &body(&of_request("another", "r-400"))), Class::Telemetry, "ids are a session's own");
    assert_eq!(class(&troubles, &body(&Context::default())), Class::Telemetry, "no request at all");
}

#[test]
fn a_kind_of_a_newer_build_is_not_judged() {
    let mut out = Vec::new();
    put_record(&mut out, 1, 0, &[126, 1]);
    assert_eq!(class(&Troubles::default(), &out), Class::Audit);
}

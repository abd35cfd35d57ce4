//! One entry, from all that is known of a request.
//!
//! Members that begin with `_` are additions: those that Chromium's tools write too are named and
//! shaped as there, the others lead back to the log.

use serde_json::{Map, Value, json};
use storage::event::catalog::{NetworkRequest, NetworkResponse};
use storage::time::rfc3339;

use super::body::{Bodies, Body};
use super::flight::{End, Flight, Message, Start};
use super::message::{cookies_sent, cookies_set, header, headers, http_version, object, pairs, query};
use super::phases::phases;

/// Length of a part that was not measured.
const UNKNOWN: i64 = -1;
const FORM: &str = "application/x-www-form-urlencoded";
const MICROS_PER_MILLI: f64 = 1000.0;

pub(super) fn entry(flight: &Flight, page: Option<&str>, early: bool, bodies: &mut Bodies) -> Value {
    let measured = object(flight.response.as_ref().and_then(|response| response.timing.as_ref()).map(|t| t.as_str()));
    let ended = if flight.end.is_some() { flight.ended_micros } else { flight.started_micros };
    let total_ms = (ended - flight.started_micros) as f64 / MICROS_PER_MILLI;
    let phases = phases(&measured, total_ms);
    let mut entry = Map::new();
    if let Some(page) = page {
        entry.insert("pageref".into(), page.into());
    }
    entry.insert("startedDateTime".into(), rfc3339(flight.started_micros).into());
    entry.insert("time".into(), phases.time.into());
    entry.insert("request".into(), request(flight, bodies));
    entry.insert("response".into(), response(flight, bodies));
    entry.insert("cache".into(), json!({}));
    entry.insert("timings".into(), phases.timings);
    peer(&mut entry, flight);
    additions(&mut entry, flight);
    if let Some(comment) = comment(flight, early) {
        entry.insert("comment".into(), comment.into());
    }
    Value::Object(entry)
}

fn comment(flight: &Flight, early: bool) -> Option<&'static str> {
    match (&flight.end, early) {
        (None, true) => Some("written before its end: too many requests were open"),
        (None, false) => Some("had not ended when the export was made"),
        _ => None,
    }
}

/// The peer's address without its port, which has a member of its own.
fn peer(entry: &mut Map<String, Value>, flight: &Flight) {
    let address = flight.response.as_ref().and_then(|response| response.remote_address.as_ref());
    let Some((host, port)) = address.and_then(|address| address.as_str().rsplit_once(':')) else { return };
    entry.insert("serverIPAddress".into(), host.trim_matches(['[', ']']).into());
    entry.insert("connection".into(), port.into());
}

fn additions(entry: &mut Map<String, Value>, flight: &Flight) {
    match &flight.start {
        Start::Request(request) => {
            entry.insert("_resourceType".into(), request.resource_type.as_str().into());
            if let Some(priority) = &request.priority {
                entry.insert("_priority".into(), priority.as_str().into());
            }
            let mut initiator = object(request.initiator.as_ref().map(|initiator| initiator.as_str()));
            // Lines count from 1 in the log and from 0 in an archive.
            if let Some(line) = initiator.shift_remove("line").and_then(|line| line.as_u64()) {
                initiator.insert("lineNumber".into(), line.saturating_sub(1).into());
            }
            if let Some(Value::Array(frames)) = initiator.get("stack") {
                let stack = json!({"callFrames": frames.iter().map(call_frame).collect::<Vec<_>>()});
                initiator.insert("stack".into(), stack);
            }
            if !initiator.is_empty() {
                entry.insert("_initiator".into(), Value::Object(initiator));
            }
        }
        Start::Socket(_) => {
            entry.insert("_resourceType".into(), "websocket".into());
            entry.insert("_webSocketMessages".into(), flight.messages.iter().map(message).collect());
            if flight.messages_left_out > 0 {
                entry.insert("_webSocketMessagesLeftOut".into(), flight.messages_left_out.into());
            }
        }
    }
    if let Some(from) = flight.response.as_ref().and_then(|response| response.served_from.as_ref()) {
        entry.insert("_fromCache".into(), from.as_str().into());
    }
    let (session, request) = (&flight.name.0, &flight.name.1);
    let known = [
        ("_session_id", Some(session)),
        ("_page_id", flight.page_id.as_ref()),
        ("_frame_id", flight.frame_id.as_ref()),
        ("_operation_id", flight.operation_id.as_ref()),
        ("_request_id", Some(request)),
    ];
    let present = known.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.as_str().into())));
    entry.extend(present);
}

fn call_frame(frame: &Value) -> Value {
    let from_zero = |name: &str| frame[name].as_u64().map(|number| number.saturating_sub(1));
    json!({
        "functionName": frame["function"].as_str().unwrap_or_default(),
        "url": frame["url"].as_str().unwrap_or_default(),
        "lineNumber": from_zero("line"),
        "columnNumber": from_zero("column"),
    })
}

fn message(message: &Message) -> Value {
    json!({
        "type": if message.frame.direction.as_str() == "sent" { "send" } else { "receive" },
        "time": message.at_micros as f64 / 1e6,
        "opcode": message.frame.opcode,
        "data": message.frame.payload.as_str(),
    })
}

fn request(flight: &Flight, bodies: &mut Bodies) -> Value {
    let wire = flight.request_headers.as_ref().map(|told| told.headers.as_str());
    let (method, early) = match &flight.start {
        Start::Request(request) => (request.method.as_str(), Some(request.headers.as_str())),
        Start::Socket(_) => ("GET", None),
    };
    let recorded = object(wire.or(early));
    let protocol = flight.response.as_ref().and_then(|response| response.protocol.as_ref());
    let mut shown = json!({
        "method": method,
        "url": flight.url(),
        "httpVersion": http_version(protocol.map(|protocol| protocol.as_str())),
        "cookies": cookies_sent(&recorded),
        "headers": headers(&recorded),
        "queryString": pairs(query(flight.url())),
        "headersSize": UNKNOWN,
        "bodySize": UNKNOWN,
    });
    if let Start::Request(request) = &flight.start {
        shown["bodySize"] = request.body_bytes.map_or(UNKNOWN.into(), Into::into);
        if let Some(data) = post_data(flight, request, &recorded, bodies) {
            shown["postData"] = data;
        }
    }
    shown
}

fn post_data(
    flight: &Flight,
    request: &NetworkRequest,
    recorded: &Map<String, Value>,
    bodies: &mut Bodies,
) -> Option<Value> {
    let body = match &flight.request_body {
        Some(told) => bodies.of(told),
        None => bodies.from(request.body.as_ref(), request.body_artifact.as_ref()),
    };
    let media_type = header(recorded, "content-type").unwrap_or_default();
    let mut data = json!({"mimeType": media_type, "params": [], "text": ""});
    match body? {
        Body::Text(text) => {
            if media_type.starts_with(FORM) {
                data["params"] = pairs(&text);
            }
            data["text"] = text.into();
        }
        // The archive's format has no encoding here; the name is that of responses.
        Body::Base64(text) => {
            data["text"] = text.into();
            data["_encoding"] = "base64".into();
        }
        Body::LeftOut(reason) => data["comment"] = reason.into(),
    }
    Some(data)
}

fn response(flight: &Flight, bodies: &mut Bodies) -> Value {
    match (&flight.end, &flight.response) {
        (Some(End::Redirected(redirect)), _) => {
            let told = flight.response_headers.as_ref().filter(|told| told.status == Some(redirect.status));
            let recorded = object(Some(told.map_or(redirect.headers.as_str(), |told| told.headers.as_str())));
            let mut shown = head(redirect.status, "", None, &recorded);
            shown["redirectURL"] = redirect.location.as_str().into();
            shown
        }
        (end, Some(response)) => answered(flight, end.as_ref(), response, bodies),
        (end, None) => {
            let told = flight.response_headers.as_ref();
            let recorded = object(told.map(|told| told.headers.as_str()));
            let mut shown = head(told.and_then(|told| told.status).unwrap_or(0), "", None, &recorded);
            failure(&mut shown, end.as_ref());
            shown
        }
    }
}

fn answered(flight: &Flight, end: Option<&End>, response: &NetworkResponse, bodies: &mut Bodies) -> Value {
    let told = flight.response_headers.as_ref().filter(|told| told.status.is_none_or(|s| s == response.status));
    let recorded = object(Some(told.map_or(response.headers.as_str(), |told| told.headers.as_str())));
    let protocol = response.protocol.as_ref().map(|protocol| protocol.as_str());
    let mut shown = head(response.status, response.status_text.as_str(), protocol, &recorded);
    let mut content = json!({"size": 0, "mimeType": response.mime_type.as_str()});
    if let Some(End::Finished(finished)) = end {
        content["size"] = finished.decoded_bytes.unwrap_or_default().into();
        shown["_transferSize"] = finished.encoded_bytes.into();
    }
    if let Some(told) = &flight.response_body {
        content["size"] = told.bytes.into();
        match bodies.of(told) {
            Some(Body::Text(text)) => content["text"] = text.into(),
            Some(Body::Base64(text)) => {
                content["text"] = text.into();
                content["encoding"] = "base64".into();
            }
            Some(Body::LeftOut(reason)) => content["comment"] = reason.into(),
            None => {}
        }
        if told.truncated_fields.is_some() && content.get("text").is_some() {
            content["comment"] = "only the beginning was kept".into();
        }
    }
    shown["content"] = content;
    if let Some(location) = header(&recorded, "location").filter(|_| (300..400).contains(&response.status)) {
        shown["redirectURL"] = location.into();
    }
    failure(&mut shown, end);
    shown
}

fn head(status: u64, text: &str, protocol: Option<&str>, recorded: &Map<String, Value>) -> Value {
    json!({
        "status": status,
        "statusText": text,
        "httpVersion": http_version(protocol),
        "cookies": cookies_set(recorded),
        "headers": headers(recorded),
        "content": {"size": 0, "mimeType": header(recorded, "content-type").unwrap_or("x-unknown")},
        "redirectURL": "",
        "headersSize": UNKNOWN,
        "bodySize": UNKNOWN,
    })
}

/// How it failed, when it did, in the browser's word.
fn failure(shown: &mut Value, end: Option<&End>) {
    let error = match end {
        Some(End::Failed(failed)) => Some(failed.error.as_str()),
        Some(End::Closed(closed)) => closed.error.as_ref().map(|error| error.as_str()),
        _ => None,
    };
    if let Some(error) = error {
        shown["_error"] = error.into();
    }
}

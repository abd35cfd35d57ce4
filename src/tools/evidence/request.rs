//! `get_network_request`: one request in full, bodies by range, from the log alone.

use serde_json::{Map, Value, json};
use storage::event::catalog::{NetworkBody, NetworkChunk};
use storage::event::{Kind, Payload, json as event_json};
use storage::ids::RequestId;
use storage::limits::PAGE_LIMIT_MAX;
use storage::query::{
    BodyFacts, EventFilter, List as ListKind, Order, OwnedEvent, PageRequest, RequestDetail, RequestRow, RequestState,
};

use super::network::row_json;
use super::paging::{self, AFTER, LIMIT, ORDER, Row, put};
use crate::contract::facts::{INTEGER_MAX, SESSION, Scalar};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Data;
use crate::fault::Fault;
use crate::tools::tool::{Call, Output, Tool};

const PARTS: &[&str] = &[
    "summary",
    "request_headers",
    "request_body",
    "response_headers",
    "response_body",
    "timing",
    "redirects",
    "frames",
];
/// What one call reads of a body, in bytes, when it names no length.
const LENGTH_DEFAULT: u64 = 65_536;

pub static GET_NETWORK_REQUEST: Tool = Tool {
    facts: ToolFacts {
        name: "get_network_request",
        title: "Get network request",
        text: "One request by request_id: headers, timing, redirects, WebSocket frames, or a body by byte range.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::name("request_id", "").required(),
            Parameter::new("part", Shape::Choice(PARTS), "").or(Scalar::Text("summary")),
            Parameter::new("offset", Shape::Integer { min: 0, max: INTEGER_MAX }, "of a body, in bytes")
                .or(Scalar::Integer(0)),
            Parameter::new("length", Shape::Integer { min: 1, max: 16 * 1024 * 1024 }, "of a body, in bytes"),
            ORDER,
            AFTER,
            LIMIT,
        ],
        returns: Returns::Object(&[
            Field::text("request_id").maybe(),
            Field::text("part").maybe(),
            Field::any("headers").maybe(),
            Field::text("content").maybe(),
            Field::any("redirects").maybe(),
            Field::objects("frames").maybe(),
        ]),
    },
    run: |call| Box::pin(get_network_request(call)),
};

async fn get_network_request(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let request_id = RequestId::from(call.arguments.text("request_id"));
    let detail = call.gateway.ledger.request(&call.owner, &session_id, &request_id).await?;
    let detail =
        detail.ok_or_else(|| Fault::invalid_argument("request_id", "this session has no request of that id"))?;
    let part = call.arguments.text("part");
    if part == "frames" {
        return frames(&call, session_id, request_id).await;
    }
    let mut data = Map::new();
    data.insert("request_id".into(), request_id.as_str().into());
    data.insert("part".into(), part.into());
    match part {
        "summary" => data.extend(summary(&detail, paging::is_live(&call))),
        "request_headers" => data.extend(headers(&detail, "request")),
        "response_headers" => data.extend(headers(&detail, "response")),
        "timing" => data.extend(timing(&detail)),
        "redirects" => put(&mut data, "redirects", Some(of_kind(&detail, Kind::NetworkRedirect))),
        _ => return Ok(body(&call, &detail, part.trim_end_matches("_body"), data).await?.into()),
    }
    Ok(Output::value(Value::Object(data)))
}

fn summary(detail: &RequestDetail, live: bool) -> Map<String, Value> {
    let mut out = row_json(&detail.row, live);
    let row = &detail.row;
    put(&mut out, "status_text", row.status_text.as_deref());
    put(&mut out, "protocol", row.protocol.as_deref());
    put(&mut out, "remote_address", row.remote_address.as_deref());
    put(&mut out, "decoded_bytes", row.decoded_bytes);
    let first = of_kind(detail, Kind::NetworkRequest).into_iter().next();
    put(&mut out, "priority", row.priority.as_deref());
    put(&mut out, "initiator", first.and_then(|mut request| request.get_mut("initiator").map(Value::take)));
    put(&mut out, "request_body", row.request_body.as_ref().map(body_facts));
    put(&mut out, "response_body", row.response_body.as_ref().map(body_facts));
    put(&mut out, "events_left_out", (detail.events_left_out > 0).then_some(detail.events_left_out));
    out
}

fn body_facts(body: &BodyFacts) -> Value {
    let mut out = Map::new();
    out.insert("bytes".into(), body.bytes.into());
    out.insert("kept".into(), (body.inline || body.artifact.is_some()).into());
    put(&mut out, "artifact", body.artifact.as_ref().map(|handle| handle.as_str()));
    put(&mut out, "cut", body.cut.then_some(true));
    put(&mut out, "omitted", body.omitted.as_deref());
    Value::Object(out)
}

/// The payloads of all events of one kind, in order.
fn of_kind(detail: &RequestDetail, kind: Kind) -> Vec<Value> {
    let views = detail.events.iter().map(OwnedEvent::view);
    views.filter(|view| view.kind_number == kind.number()).map(|view| event_json::payload(&view)).collect()
}

/// The headers that went over the wire where the browser told them, else those it announced.
fn headers(detail: &RequestDetail, direction: &str) -> Map<String, Value> {
    let wire = of_kind(detail, Kind::NetworkHeaders).into_iter().rev();
    let wire = wire.filter(|payload| payload["direction"] == direction);
    let announced = if direction == "request" { Kind::NetworkRequest } else { Kind::NetworkResponse };
    let announced = of_kind(detail, announced).into_iter().rev();
    let told = wire.chain(announced).find(|payload| payload["headers"].is_object());
    let mut out = Map::new();
    if let Some(mut told) = told {
        let cut = told["truncated_fields"].as_str().is_some_and(|names| names.split(',').any(|name| name == "headers"));
        put(&mut out, "headers", Some(told["headers"].take()));
        put(&mut out, "cut", cut.then_some(true));
    }
    out
}

fn timing(detail: &RequestDetail) -> Map<String, Value> {
    let mut out = Map::new();
    let row = &detail.row;
    let marks = row.timing.as_deref().and_then(|text| serde_json::from_str::<Value>(text).ok());
    put(&mut out, "duration_ms", row.duration_ms);
    put(&mut out, "phases", marks.as_ref().map(|marks| phases(marks, row.duration_ms)));
    put(&mut out, "marks_ms", marks);
    put(&mut out, "protocol", row.protocol.as_deref());
    put(&mut out, "remote_address", row.remote_address.as_deref());
    put(&mut out, "encoded_bytes", row.encoded_bytes);
    put(&mut out, "decoded_bytes", row.decoded_bytes);
    out
}

/// How long each phase took. Those of a request that has ended add up to its duration; what belongs to
/// no other phase was spent waiting for its turn.
fn phases(marks: &Value, duration_ms: Option<f64>) -> Value {
    let mark = |name: &str| marks[name].as_f64();
    let between = |from: &str, to: &str| Some((mark(to)? - mark(from)?).max(0.0));
    let tls = between("ssl_start", "ssl_end");
    let connect = between("connect_start", "connect_end").map(|ms| (ms - tls.unwrap_or(0.0)).max(0.0));
    let queued = mark("queued").unwrap_or(0.0);
    let receive = duration_ms.zip(mark("headers_end")).map(|(whole, head)| (whole - queued - head).max(0.0));
    let mut told = vec![
        ("dns_ms", between("dns_start", "dns_end")),
        ("connect_ms", connect),
        ("tls_ms", tls),
        ("send_ms", between("send_start", "send_end")),
        ("wait_ms", between("send_end", "headers_end")),
        ("receive_ms", receive),
    ];
    let known: f64 = told.iter().filter_map(|(_, ms)| *ms).sum();
    told.insert(0, ("queued_ms", duration_ms.map(|whole| (whole - known).max(0.0))));
    let rounded = |ms: f64| (ms * 1000.0).round() / 1000.0;
    told.into_iter().filter_map(|(name, ms)| Some((name.to_owned(), json!(rounded(ms?))))).collect::<Map<_, _>>().into()
}

/// Why a request has no body on record, when no event says so.
fn none_recorded(row: &RequestRow, direction: &str, live: bool) -> &'static str {
    match (direction, row.state) {
        _ if row.is_websocket => "see_frames",
        ("request", _) => "no_content",
        _ if row.url.starts_with("data:") => "in_url",
        (_, RequestState::Pending) if live => "not_finished",
        (_, RequestState::Failed) => "request_failed",
        (_, RequestState::Pending) => "unfinished",
        (_, RequestState::Finished) => "unavailable",
    }
}

async fn body(
    call: &Call,
    detail: &RequestDetail,
    direction: &str,
    mut out: Map<String, Value>,
) -> Result<Data, Fault> {
    let row = &detail.row;
    let facts = if direction == "request" { &row.request_body } else { &row.response_body };
    let is_kept = facts.as_ref().is_some_and(|facts| facts.omitted.is_none());
    if direction == "response" && !is_kept && !row.is_websocket && row.frames > 0 {
        return running_body(call, row, out).await;
    }
    let Some(facts) = facts else {
        let omitted = none_recorded(row, direction, paging::is_live(call));
        out.insert("kept".into(), false.into());
        out.insert("omitted".into(), omitted.into());
        return Ok(Data::Value(Value::Object(out)));
    };
    let offset = call.arguments.integer("offset").unwrap_or(0);
    let length = super::artifact::longest(call, call.arguments.integer("length").unwrap_or(LENGTH_DEFAULT));
    out.insert("total_bytes".into(), facts.bytes.into());
    put(&mut out, "cut", facts.cut.then_some(true));
    put(&mut out, "mime_type", row.mime_type.as_deref().filter(|_| direction == "response"));
    let bytes = match (&facts.artifact, inline(detail, direction)) {
        (Some(handle), _) => {
            out.insert("artifact".into(), handle.as_str().into());
            let (artifacts, handle) = (call.gateway.artifacts.clone(), handle.clone());
            super::artifact::read_kept(artifacts, handle, offset, length, row.seq).await?
        }
        (None, Some(text)) => slice(text.as_bytes(), offset, length),
        (None, None) => {
            out.insert("kept".into(), false.into());
            put(&mut out, "omitted", facts.omitted.as_deref());
            return Ok(Data::Value(Value::Object(out)));
        }
    };
    super::artifact::range(out, bytes, offset, facts.bytes, "auto")
}

/// What has come of a response that has not ended, or had not when the record did.
async fn running_body(call: &Call, row: &RequestRow, mut out: Map<String, Value>) -> Result<Data, Fault> {
    let filter = EventFilter {
        session_id: Some(row.session_id.clone()),
        kinds: Some(vec![Kind::NetworkChunk]),
        request_id: Some(row.request_id.clone()),
        ..EventFilter::default()
    };
    let filter = paging::compile(&filter)?;
    let offset = call.arguments.integer("offset").unwrap_or(0);
    let length = super::artifact::longest(call, call.arguments.integer("length").unwrap_or(LENGTH_DEFAULT));
    let (mut wanted, mut total, mut after) = (Vec::new(), 0, None);
    loop {
        let asked = PageRequest {
            filter: &filter,
            order: Order::Oldest,
            after: after.as_deref(),
            limit: PAGE_LIMIT_MAX,
            owner: &call.owner,
        };
        let page = call.gateway.ledger.page(&asked).await?;
        for chunk in page.items.iter().filter_map(|event| NetworkChunk::take(&event.view()).ok()) {
            let text = chunk.text.as_str().as_bytes();
            let missing = length.saturating_sub(wanted.len());
            wanted.extend(slice(text, (offset + wanted.len() as u64).saturating_sub(total), missing));
            total += text.len() as u64;
        }
        after = Some(page.next_cursor);
        if !page.has_more {
            break;
        }
    }
    out.insert("total_bytes".into(), total.into());
    out.insert("cut".into(), true.into());
    put(&mut out, "mime_type", row.mime_type.as_deref());
    super::artifact::range(out, wanted, offset, total, "auto")
}

/// The body as the log itself holds it.
fn inline(detail: &RequestDetail, direction: &str) -> Option<String> {
    let bodies = detail.events.iter().map(OwnedEvent::view).filter_map(|view| NetworkBody::take(&view).ok());
    let kept = bodies.filter(|body| body.direction.as_str() == direction).find_map(|body| body.text);
    let text = kept.map(|text| text.as_str().to_owned());
    if direction == "request" {
        let announced =
            of_kind(detail, Kind::NetworkRequest).into_iter().find_map(|p| p["body"].as_str().map(str::to_owned));
        return text.or(announced);
    }
    text
}

fn slice(bytes: &[u8], offset: u64, length: usize) -> Vec<u8> {
    let start = usize::try_from(offset).unwrap_or(usize::MAX).min(bytes.len());
    let end = start.saturating_add(length).min(bytes.len());
    bytes[start..end].to_vec()
}

/// The frames of a WebSocket, paged like any list.
async fn frames(call: &Call, session_id: storage::ids::SessionId, request_id: RequestId) -> Result<Output, Fault> {
    let filter = EventFilter {
        session_id: Some(session_id),
        kinds: Some(vec![Kind::WebSocketFrame]),
        request_id: Some(request_id),
        ..EventFilter::default()
    };
    let filter = paging::compile(&filter)?;
    let asked = paging::request(call, &filter);
    let page = call.gateway.ledger.page(&asked).await?;
    let rows = page.items.iter().map(|event| {
        let view = event.view();
        let mut value = event_json::payload(&view);
        value["seq"] = view.seq.into();
        value["timestamp"] = storage::time::rfc3339(view.recorded_at_micros).into();
        Row { seq: view.seq, value }
    });
    let rows = rows.collect();
    Ok(paging::list(call, ListKind::Events, "frames", &asked, &page, rows).into())
}

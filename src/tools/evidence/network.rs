//! `list_network_requests`: one row a request, with where it stands now.

use serde_json::{Map, Value};
use storage::query::{List as ListKind, RequestRow, RequestState, StatusFilter};
use storage::time::rfc3339;

use super::paging::{self, AFTER, LIMIT, OPERATION, ORDER, Row, SINCE, TAB, UNTIL, pattern, put, words};
use crate::contract::facts::{SESSION, Scalar};
use crate::contract::result::{DROPPED_COUNT, HAS_MORE, NEXT_CURSOR, RETAINED_COUNT, RETENTION_LOST};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, ToolFacts};
use crate::envelope::Data;
use crate::fault::Fault;
use crate::limits::{ROW_URL_BYTES_MAX, head};
use crate::tools::tool::{Call, Output, Tool};

/// What Chromium calls the purposes of requests, in lower case.
const RESOURCE_TYPES: [&str; 19] = [
    "document",
    "stylesheet",
    "image",
    "media",
    "font",
    "script",
    "texttrack",
    "xhr",
    "fetch",
    "prefetch",
    "eventsource",
    "websocket",
    "manifest",
    "signedexchange",
    "ping",
    "cspviolationreport",
    "preflight",
    "fedcm",
    "other",
];

pub static LIST_NETWORK_REQUESTS: Tool = Tool {
    facts: ToolFacts {
        name: "list_network_requests",
        title: "List network requests",
        text: "Page through a session's requests in order of start, each with its current state.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            pattern("url_filter"),
            Parameter::name("method", ""),
            Parameter::name("status", "404, 4xx or 400-499"),
            words("resource_types", "document, fetch, xhr, script, image, websocket, ..."),
            Parameter::flag("failed", ""),
            Parameter::flag("static", "false hides successful static assets and counts them").or(Scalar::Flag(true)),
            TAB,
            OPERATION,
            SINCE,
            UNTIL,
            ORDER,
            AFTER,
            LIMIT,
        ],
        returns: Returns::Object(&[
            Field::objects("requests"),
            NEXT_CURSOR,
            HAS_MORE,
            RETAINED_COUNT,
            DROPPED_COUNT,
            RETENTION_LOST,
        ]),
    },
    run: |call| Box::pin(list_network_requests(call)),
};

async fn list_network_requests(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let arguments = &call.arguments;
    let mut filter = paging::common_filter(arguments, session_id)?;
    filter.url = arguments.optional_text("url_filter").map(str::to_owned);
    filter.method = arguments.optional_text("method").map(method).transpose()?;
    let status = arguments.optional_text("status").map(StatusFilter::parse).transpose();
    filter.status = status.map_err(|error| Fault::invalid_argument("status", error.reason))?;
    filter.resource_types = resource_types(arguments.texts("resource_types"))?;
    filter.failed = arguments.flag("failed");
    filter.hide_static = arguments.flag("static") == Some(false);
    let hides = filter.hide_static;
    let filter = paging::compile(&filter)?;
    let asked = paging::request(&call, &filter);
    let page = call.gateway.ledger.requests_page(&asked).await?;
    let live = paging::is_live(&call);
    let rows = page.items.iter().map(|row| Row { seq: row.seq, value: Value::Object(listed(row, live)) }).collect();
    let mut data = paging::list(&call, ListKind::Requests, "requests", &asked, &page, rows);
    if let (true, Data::List(list)) = (hides, &mut data) {
        list.rest.insert("hidden_count".into(), page.hidden_count.into());
    }
    Ok(data.into())
}

fn method(named: &str) -> Result<String, Fault> {
    let fits = named.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-' || byte == b'_');
    let wrong = || Fault::invalid_argument("method", "give one method, such as GET or POST");
    fits.then(|| named.to_owned()).ok_or_else(wrong)
}

fn resource_types(named: Vec<String>) -> Result<Vec<String>, Fault> {
    let unknown = named.iter().find(|word| !RESOURCE_TYPES.iter().any(|known| known.eq_ignore_ascii_case(word)));
    match unknown {
        Some(_) => Err(Fault::invalid_argument("resource_types", format!("may name {}", RESOURCE_TYPES.join(", ")))),
        None => Ok(named),
    }
}

/// A row with its address cut short; the request's summary has all that was recorded.
fn listed(row: &RequestRow, live: bool) -> Map<String, Value> {
    let mut out = row_json(row, live);
    let shown = head(&row.url, ROW_URL_BYTES_MAX);
    if shown.len() < row.url.len() {
        out.insert("url".into(), shown.into());
        out.insert("url_bytes".into(), row.url.len().into());
    }
    out
}

/// A request as lists show it. Absent facts are left out. What is pending in a session that has ended
/// will not go on: nobody knows more of it than the log.
pub(super) fn row_json(row: &RequestRow, live: bool) -> Map<String, Value> {
    let mut out = Map::new();
    out.insert("request_id".into(), row.request_id.as_str().into());
    out.insert("seq".into(), row.seq.into());
    out.insert("timestamp".into(), rfc3339(row.started_micros).into());
    put(&mut out, "method", (!row.is_websocket).then_some(row.method.as_str()));
    out.insert("url".into(), row.url.as_str().into());
    out.insert("resource_type".into(), row.resource_type.as_str().into());
    let state = if live || row.state != RequestState::Pending { row.state.as_str() } else { "unfinished" };
    out.insert("state".into(), state.into());
    out.insert("status".into(), row.status.into());
    put(&mut out, "mime_type", row.mime_type.as_deref());
    put(&mut out, "failure", row.error.as_deref());
    put(&mut out, "blocked_reason", row.blocked_reason.as_deref());
    put(&mut out, "cors_error", row.cors_error.as_deref());
    put(&mut out, "served_from", row.served_from.as_deref());
    put(&mut out, "wire_status", row.wire_status);
    put(&mut out, "preflight_for", row.preflight_for.as_deref());
    put(&mut out, "duration_ms", row.duration_ms.map(|ms| (ms * 1000.0).round() / 1000.0));
    put(&mut out, "encoded_bytes", row.encoded_bytes);
    put(&mut out, "redirects", (row.redirects > 0).then_some(row.redirects));
    put(&mut out, "frames", row.is_websocket.then_some(row.frames));
    put(&mut out, "tab_id", row.page_id.as_ref().map(|id| id.as_str()));
    put(&mut out, "operation_id", row.operation_id.as_ref().map(|id| id.as_str()));
    out
}

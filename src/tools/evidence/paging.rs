//! What all evidence lists share: the filter arguments, the page, and its cursors.

use serde_json::{Map, Value};
use storage::ids::{OperationId, PageId, SessionId};
use storage::query::{CompiledFilter, EventFilter, FilterError, List as ListKind, Order, Page, PageRequest};
use storage::time::parse_rfc3339;

use crate::contract::facts::{NAME_LENGTH_MAX, Scalar};
use crate::contract::{Arguments, Parameter, Shape};
use crate::envelope::{Data, List};
use crate::fault::{Code, Fault};
use crate::tools::tool::Call;

pub(super) const TAB: Parameter = Parameter::name("tab_id", "");
pub(super) const OPERATION: Parameter = Parameter::name("operation_id", "what happened during that call");
pub(super) const SINCE: Parameter = Parameter::name("since", "RFC 3339 time");
pub(super) const UNTIL: Parameter = Parameter::name("until", "RFC 3339 time");
pub(super) const ORDER: Parameter =
    Parameter::new("order", Shape::Choice(&["asc", "desc"]), "asc: oldest first").or(Scalar::Text("asc"));
pub(super) const AFTER: Parameter =
    Parameter::new("after", Shape::Text { length_min: 0, length_max: 1_024 }, "next_cursor of the page before");
pub(super) const LIMIT: Parameter =
    Parameter::new("limit", Shape::Integer { min: 1, max: storage::limits::PAGE_LIMIT_MAX as u64 }, "")
        .or(Scalar::Integer(storage::limits::PAGE_LIMIT_DEFAULT as u64));
/// Any of several words.
pub(super) const fn words(name: &'static str, text: &'static str) -> Parameter {
    Parameter::new(name, Shape::Texts { items_min: 0, items_max: storage::query::FILTER_WORDS_MAX }, text)
}
/// A regular expression.
pub(super) const fn pattern(name: &'static str) -> Parameter {
    Parameter::new(name, Shape::Text { length_min: 1, length_max: 4_096 }, "regular expression")
}

const _: () = assert!(NAME_LENGTH_MAX >= 64);

/// The session must have a history that this owner may read; its ids go into the envelope.
pub(super) async fn history(call: &Call) -> Result<SessionId, Fault> {
    let session_id = SessionId::from(call.arguments.text("session_id"));
    if let Ok(session) = call.gateway.registry.find(&call.owner, session_id.as_str()) {
        call.target.set_session(&session);
        return Ok(session_id);
    }
    match call.gateway.ledger.session(&call.owner, &session_id).await? {
        Some(row) => {
            call.target.update(|ids| {
                ids.instance = Some(row.session_id.to_string());
                ids.instance_id = row.instance_id.clone();
            });
            Ok(session_id)
        }
        None => Err(Fault::new(Code::SessionNotFound).with("session_id", session_id.as_str())),
    }
}

/// The filter arguments every list has.
pub(super) fn common_filter(arguments: &Arguments, session_id: SessionId) -> Result<EventFilter, Fault> {
    Ok(EventFilter {
        session_id: Some(session_id),
        page_id: arguments.optional_text("tab_id").map(PageId::from),
        operation_id: arguments.optional_text("operation_id").map(OperationId::from),
        since_micros: moment(arguments, "since")?,
        until_micros: moment(arguments, "until")?,
        ..EventFilter::default()
    })
}

fn moment(arguments: &Arguments, name: &'static str) -> Result<Option<i64>, Fault> {
    let Some(text) = arguments.optional_text(name) else { return Ok(None) };
    let parsed = parse_rfc3339(text);
    parsed.map(Some).ok_or_else(|| Fault::invalid_argument(name, "must be an RFC 3339 time like 2026-01-31T12:00:00Z"))
}

/// Whether the session that the call names is still running.
pub(super) fn is_live(call: &Call) -> bool {
    call.gateway.registry.find(&call.owner, call.arguments.text("session_id")).is_ok()
}

/// # Errors
/// `INVALID_ARGUMENTS`, naming the argument as callers know it.
pub(super) fn compile(filter: &EventFilter) -> Result<CompiledFilter, Fault> {
    filter.compile().map_err(|error| named(&error))
}

fn named(error: &FilterError) -> Fault {
    let field = match error.field {
        "text" => "text_filter",
        "url" => "url_filter",
        field => field,
    };
    Fault::invalid_argument(field, error.reason.clone())
}

/// The page that the call asks for.
pub(super) fn request<'a>(call: &'a Call, filter: &'a CompiledFilter) -> PageRequest<'a> {
    let order = if call.arguments.text("order") == "desc" { Order::Newest } else { Order::Oldest };
    PageRequest {
        filter,
        order,
        after: call.arguments.optional_text("after").filter(|cursor| !cursor.is_empty()),
        limit: usize::try_from(call.arguments.integer("limit").unwrap_or_default()).unwrap_or(usize::MAX),
        owner: &call.owner,
    }
}

/// One row of a list and the sequence number its cursor points at.
pub(super) struct Row {
    pub seq: u64,
    pub value: Value,
}

/// A list as the envelope bounds it: fewer rows if need be, each cut with a cursor of its own.
pub(super) fn list<T>(
    call: &Call,
    kind: ListKind,
    field: &'static str,
    asked: &PageRequest<'_>,
    page: &Page<T>,
    rows: Vec<Row>,
) -> Data {
    let mut rest = Map::new();
    rest.insert("next_cursor".into(), page.next_cursor.as_str().into());
    rest.insert("has_more".into(), page.has_more.into());
    rest.insert("retained_count".into(), page.retained_count.into());
    rest.insert("dropped_count".into(), page.dropped_count.into());
    rest.insert("retention_lost".into(), page.retention_lost.into());
    let seqs: Vec<u64> = rows.iter().map(|row| row.seq).collect();
    let ledger = call.gateway.ledger.clone();
    let (owner, filter, order) = (call.owner.clone(), asked.filter.clone(), asked.order);
    let cursor_after = move |position: usize| {
        let seq = seqs.get(position).copied().unwrap_or_default();
        let request = PageRequest { filter: &filter, order, after: None, limit: 1, owner: &owner };
        ledger.cursor_at(&request, kind, seq)
    };
    Data::List(List {
        field,
        items: rows.into_iter().map(|row| row.value).collect(),
        rest,
        cursor_after: Box::new(cursor_after),
    })
}

/// Puts `value` under `key` where there is one: absent facts take no room in a reply.
pub(super) fn put(row: &mut Map<String, Value>, key: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        row.insert(key.to_owned(), value.into());
    }
}

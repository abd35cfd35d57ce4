//! `list_console_messages`.

use serde_json::{Map, Value};
use storage::event::codec::ContextField;
use storage::event::{EventView, Kind, Level, json};
use storage::query::{List as ListKind, OwnedEvent};
use storage::time::rfc3339;

use super::paging::{self, AFTER, LIMIT, OPERATION, ORDER, Row, SINCE, TAB, UNTIL, pattern, words};
use crate::contract::facts::SESSION;
use crate::contract::result::{DROPPED_COUNT, HAS_MORE, NEXT_CURSOR, RETAINED_COUNT, RETENTION_LOST};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;
use crate::tools::tool::{Call, Output, Tool};

pub static LIST_CONSOLE_MESSAGES: Tool = Tool {
    facts: ToolFacts {
        name: "list_console_messages",
        title: "List console messages",
        text: "Page through console messages, uncaught errors and browser log entries of a session, open or closed.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::new("level", Shape::Choice(&["debug", "info", "warning", "error"]), "this level and above"),
            words("types", "log, warning, error, table, exception, ..."),
            pattern("text_filter"),
            TAB,
            OPERATION,
            SINCE,
            UNTIL,
            ORDER,
            AFTER,
            LIMIT,
            Parameter::new(
                "repeats",
                Shape::Choice(&["keep", "fold"]),
                "fold: equal neighbours become one with a count",
            ),
        ],
        returns: Returns::Object(&[
            Field::objects("messages"),
            NEXT_CURSOR,
            HAS_MORE,
            RETAINED_COUNT,
            DROPPED_COUNT,
            RETENTION_LOST,
        ]),
    },
    run: |call| Box::pin(list_console_messages(call)),
};

const KINDS: [Kind; 3] = [Kind::ConsoleMessage, Kind::ConsoleException, Kind::LogEntry];

async fn list_console_messages(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let arguments = &call.arguments;
    let mut filter = paging::common_filter(arguments, session_id)?;
    filter.kinds = Some(KINDS.to_vec());
    filter.level = arguments.optional_text("level").and_then(Level::parse);
    filter.types = arguments.texts("types");
    filter.text = arguments.optional_text("text_filter").map(str::to_owned);
    let filter = paging::compile(&filter)?;
    let asked = paging::request(&call, &filter);
    let page = call.gateway.ledger.page(&asked).await?;
    let rows =
        page.items.iter().map(OwnedEvent::view).map(|view| Row { seq: view.seq, value: Value::Object(message(&view)) });
    let rows = if arguments.optional_text("repeats") == Some("fold") { fold(rows) } else { rows.collect() };
    Ok(paging::list(&call, ListKind::Events, "messages", &asked, &page, rows).into())
}

/// One message. Absent facts are left out.
fn message(view: &EventView<'_>) -> Map<String, Value> {
    let mut row = Map::new();
    row.insert("seq".into(), view.seq.into());
    row.insert("timestamp".into(), rfc3339(view.recorded_at_micros).into());
    let Value::Object(mut data) = json::payload(view) else { return row };
    let source = match view.kind() {
        Some(Kind::ConsoleException) => Some(Value::from("exception")),
        Some(Kind::LogEntry) => data.remove("source").map(|source| {
            row.insert("source".into(), source);
            Value::from("browser")
        }),
        _ => data.remove("type"),
    };
    paging::put(&mut row, "type", source);
    for key in ["level", "text"] {
        paging::put(&mut row, key, data.remove(key));
    }
    paging::put(&mut row, "tab_id", view.context(ContextField::PageId));
    paging::put(&mut row, "operation_id", view.context(ContextField::OperationId));
    let mut location = Map::new();
    for key in ["url", "line", "column"] {
        paging::put(&mut location, key, data.remove(key));
    }
    if !location.is_empty() {
        row.insert("location".into(), Value::Object(location));
    }
    // A plain message's stack repeats its location; it is worth its bytes where something went wrong.
    if row.get("level").and_then(Value::as_str).is_some_and(|level| level == "info" || level == "debug") {
        data.remove("stack");
    }
    row.extend(data);
    row
}

/// Equal neighbours become one row, with how often and up to where.
fn fold(rows: impl Iterator<Item = Row>) -> Vec<Row> {
    // Texts that were cut are equal only when the kept wholes are.
    const SAME: [&str; 8] = ["type", "level", "text", "tab_id", "location", "source", "text_bytes", "text_artifact"];
    let mut folded: Vec<Row> = Vec::new();
    for row in rows {
        match folded.last_mut() {
            Some(last) if SAME.iter().all(|key| last.value.get(key) == row.value.get(key)) => {
                let repeats = last.value.get("repeats").and_then(Value::as_u64).unwrap_or(1);
                last.value["repeats"] = (repeats + 1).into();
                last.value["last_seq"] = row.seq.into();
                last.seq = row.seq;
            }
            _ => folded.push(row),
        }
    }
    folded
}

//! `list_events`: the timeline of a session, every kind.

use serde_json::Value;
use storage::event::{Kind, Level, json};
use storage::ids::{RequestId, SessionId};
use storage::query::{EventFilter, List as ListKind};

use super::paging::{self, AFTER, LIMIT, OPERATION, ORDER, Row, SINCE, TAB, UNTIL, pattern, words};
use crate::contract::facts::SESSION;
use crate::contract::result::{DROPPED_COUNT, HAS_MORE, NEXT_CURSOR, RETAINED_COUNT, RETENTION_LOST};
use crate::contract::{Arguments, Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;
use crate::tools::tool::{Call, Output, Tool};

pub(super) const LEVEL: Parameter =
    Parameter::new("level", Shape::Choice(&["debug", "info", "warning", "error"]), "this level and above");
pub(super) const REQUEST: Parameter = Parameter::name("request_id", "");

pub static LIST_EVENTS: Tool = Tool {
    facts: ToolFacts {
        name: "list_events",
        title: "List events",
        text: "Page through everything on record for a session, open or closed. With operation_id: what one call caused.",
        pack: Pack::Evidence,
        effect: Effect::READ,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            words(
                "kinds",
                "call.settled, page.navigated, console.message, ...; a prefix like network.* takes all of a group",
            ),
            LEVEL,
            pattern("text_filter"),
            pattern("url_filter"),
            REQUEST,
            TAB,
            OPERATION,
            SINCE,
            UNTIL,
            ORDER,
            AFTER,
            LIMIT,
        ],
        returns: Returns::Object(&[
            Field::objects("events"),
            NEXT_CURSOR,
            HAS_MORE,
            RETAINED_COUNT,
            DROPPED_COUNT,
            RETENTION_LOST,
        ]),
    },
    run: |call| Box::pin(list_events(call)),
};

async fn list_events(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let arguments = &call.arguments;
    let filter = paging::compile(&filter(arguments, Some(session_id))?)?;
    let asked = paging::request(&call, &filter);
    let page = call.gateway.ledger.page(&asked).await?;
    let log_id = call.gateway.journal.log().log_id();
    let rows = page.items.iter().map(|event| {
        let view = event.view();
        Row { seq: view.seq, value: shown(json::event(&view, log_id)) }
    });
    let rows = rows.collect();
    Ok(paging::list(&call, ListKind::Events, "events", &asked, &page, rows).into())
}

/// The session is the caller's own argument and the owner the caller; neither is worth repeating.
fn shown(mut event: Value) -> Value {
    if let Some(fields) = event.as_object_mut() {
        for known in ["session_id", "instance_id", "owner"] {
            fields.shift_remove(known);
        }
    }
    event
}

/// All conditions on events.
pub(super) fn filter(arguments: &Arguments, session_id: Option<SessionId>) -> Result<EventFilter, Fault> {
    Ok(EventFilter {
        session_id,
        kinds: kinds(arguments)?,
        level: arguments.optional_text("level").and_then(Level::parse),
        text: arguments.optional_text("text_filter").map(str::to_owned),
        url: arguments.optional_text("url_filter").map(str::to_owned),
        request_id: arguments.optional_text("request_id").map(RequestId::from),
        ..paging::common_filter(arguments, SessionId::from(""))?
    })
}

/// Kind names and prefixes, as kinds. None given: every kind.
pub(super) fn kinds(arguments: &Arguments) -> Result<Option<Vec<Kind>>, Fault> {
    let names = arguments.texts("kinds");
    if names.is_empty() {
        return Ok(None);
    }
    let mut kinds = Vec::new();
    for name in &names {
        let found = Kind::named(name);
        if found.is_empty() {
            let known: Vec<&str> = storage::event::KINDS.iter().map(|facts| facts.name).collect();
            return Err(Fault::invalid_argument(
                "kinds",
                format!("no kind is called so; there are {}", known.join(", ")),
            ));
        }
        kinds.extend(found);
    }
    Ok(Some(kinds))
}

//! `find_in_page`, `wait_for_text`, `list_frames`.

use serde_json::{Map, Value, json};

use super::faults;
use super::frozen::{self, CURSOR, Capture};
use super::tool::{Call, Output, Tool};
use crate::browser::page::{TextFound, TextMatch, TextPattern};
use crate::contract::facts::{SESSION, Scalar, TAB, TIMEOUT};
use crate::contract::result::{HAS_MORE, NEXT_CURSOR, SESSION_ID, TAB_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::{Data, List};
use crate::fault::Fault;

/// Matches of a search in parts, as the log and `read_artifact` know them.
const PURPOSE: &str = "find";
const LIMIT_DEFAULT: u64 = 20;
const LIMIT_MAX: u64 = 200;
/// The longest text to look for, in characters.
const TEXT_LENGTH_MAX: usize = 2_000;

pub(super) const fn text(name: &'static str) -> Parameter {
    Parameter::new(
        name,
        Shape::Text { length_min: 1, length_max: TEXT_LENGTH_MAX },
        "text in any case, \"text as it stands\", or /regular expression/i",
    )
}

pub static FIND_IN_PAGE: Tool = Tool {
    facts: ToolFacts {
        name: "find_in_page",
        title: "Find in page",
        text: "Find visible text in all frames; each match with its surroundings and a selector for its element.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            text("text"),
            Parameter::new("limit", Shape::Integer { min: 1, max: LIMIT_MAX }, "").or(Scalar::Integer(LIMIT_DEFAULT)),
            CURSOR,
            TAB,
        ],
        returns: Returns::Object(&[
            Field::objects("matches"),
            SESSION_ID,
            URL,
            Field::integer("count"),
            HAS_MORE,
            NEXT_CURSOR.maybe(),
        ]),
    },
    run: |call| Box::pin(find_in_page(call)),
};

async fn find_in_page(call: Call) -> Result<Output, Fault> {
    let limit = usize::try_from(call.arguments.integer("limit").unwrap_or(LIMIT_DEFAULT)).unwrap_or(usize::MAX);
    if let Some(cursor) = call.arguments.optional_text("cursor") {
        if call.arguments.value("text").is_some() {
            return Err(Fault::invalid_argument("text", "a cursor continues a search as it was; leave this out"));
        }
        return Ok(list(&call, frozen::thaw(&call, PURPOSE, cursor).await?, limit).into());
    }
    let pattern = pattern(&call)?;
    let page = call.page()?;
    let found = page.find_text(&pattern, call.deadline).await.map_err(faults::page(&call))?;
    let main = page.main_frame_id();
    let lines: String = found.matches.iter().map(|one| format!("{}\n", row(one, main.as_str()))).collect();
    let head = head(&found, page.url());
    let whole = Capture::whole(head, lines);
    if found.matches.len() <= limit {
        let mut shown = whole.head.clone();
        shown.insert("matches".into(), whole.lines(limit).0.into_iter().map(|(row, _)| row).collect());
        if call.form.holds(&Value::Object(shown), call.gateway.config.max_result_bytes) {
            return Ok(list(&call, whole, limit).into());
        }
    }
    let capture = frozen::freeze(&call, PURPOSE, whole.head, whole.text).await?;
    Ok(list(&call, capture, limit).into())
}

fn pattern(call: &Call) -> Result<TextPattern, Fault> {
    match call.arguments.optional_text("text") {
        Some(text) => TextPattern::parse(text).map_err(|problem| Fault::invalid_argument("text", problem)),
        None => Err(Fault::invalid_argument("text", "is required")),
    }
}

fn row(found: &TextMatch, main_frame_id: &str) -> Value {
    let mut row = Map::new();
    row.insert("match".into(), found.text.as_str().into());
    row.insert("before".into(), found.before.as_str().into());
    row.insert("after".into(), found.after.as_str().into());
    row.insert("element".into(), found.element.as_str().into());
    row.insert("selector".into(), found.reference.as_deref().into());
    if found.frame_id.as_str() != main_frame_id {
        row.insert("frame_id".into(), found.frame_id.as_str().into());
    }
    Value::Object(row)
}

fn head(found: &TextFound, url: String) -> Map<String, Value> {
    let mut head = Map::new();
    head.insert("url".into(), url.into());
    head.insert("count".into(), found.count.into());
    if found.count > found.matches.len() as u64 {
        head.insert("shown_max".into(), found.matches.len().into());
    }
    if found.frames_omitted > 0 {
        head.insert("frames_omitted".into(), found.frames_omitted.into());
    }
    if found.capped {
        head.insert("text_capped".into(), true.into());
    }
    head
}

fn list(call: &Call, capture: Capture, limit: usize) -> Data {
    let (rows, more) = capture.lines(limit);
    let cursors: Vec<Option<String>> = rows.iter().map(|(_, end)| capture.cursor_at(*end)).collect();
    let mut rest = Map::new();
    rest.insert("session_id".into(), call.arguments.text("session_id").into());
    rest.extend(capture.head);
    rest.insert("has_more".into(), more.into());
    if let Some(Some(cursor)) = cursors.last().filter(|_| more) {
        rest.insert("next_cursor".into(), cursor.as_str().into());
    }
    let items = rows.into_iter().map(|(row, _)| row).collect();
    let cursor_after = move |position: usize| cursors.get(position).cloned().flatten().unwrap_or_default();
    Data::List(List { field: "matches", items, rest, cursor_after: Box::new(cursor_after) })
}

pub static WAIT_FOR_TEXT: Tool = Tool {
    facts: ToolFacts {
        name: "wait_for_text",
        title: "Wait for text",
        text: "Wait until a text is to be seen in some frame, or in none.",
        pack: Pack::Waits,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            text("text").required(),
            Parameter::new("state", Shape::Choice(&["visible", "hidden"]), "").or(Scalar::Text("visible")),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::text("text"), Field::text("state")]),
    },
    run: |call| Box::pin(wait_for_text(call)),
};

async fn wait_for_text(call: Call) -> Result<Output, Fault> {
    let pattern = pattern(&call)?;
    let state = call.arguments.text("state");
    call.page()?.wait_for_text(&pattern, state == "visible", call.deadline).await.map_err(faults::page(&call))?;
    let (session_id, text) = (call.arguments.text("session_id"), call.arguments.text("text"));
    Ok(Output::value(json!({"session_id": session_id, "text": text, "state": state})))
}

pub static LIST_FRAMES: Tool = Tool {
    facts: ToolFacts {
        name: "list_frames",
        title: "List frames",
        text: "List a tab's frames; selector >> ... works inside one.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[SESSION, TAB],
        returns: Returns::Object(&[SESSION_ID, TAB_ID, Field::text("main_frame_id"), Field::objects("frames")]),
    },
    run: |call| Box::pin(list_frames(call)),
};

async fn list_frames(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let frames = page.frames(call.deadline).await.map_err(faults::page(&call))?;
    let rows: Vec<Value> = frames
        .iter()
        .map(|frame| {
            json!({
                "frame_id": frame.frame_id.as_str(),
                "parent_frame_id": frame.parent.as_ref().map(|parent| parent.as_str()),
                "name": frame.name,
                "url": frame.url,
                "is_main": frame.parent.is_none(),
                "depth": frame.depth,
                "selector": frame.reference,
            })
        })
        .collect();
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "tab_id": page.page_id().as_str(),
        "main_frame_id": page.main_frame_id().as_str(),
        "frames": rows,
    })))
}

//! `snapshot`: the page as text, in parts of one moment where it is long.

use serde_json::{Map, Value};
use storage::event::Draft;
use storage::event::catalog::SnapshotTaken;

use super::faults;
use super::frozen::{self, CURSOR, Capture};
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::browser::page::SnapshotOptions;
use crate::contract::facts::{SESSION, Scalar, TAB};
use crate::contract::result::{SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::deadline::Deadline;
use crate::envelope::{Data, Piece};
use crate::fault::Fault;
use crate::keep::reference;

/// Most of a tree in one reply when the caller names no bound, in bytes: a thousand elements.
const PART_BYTES_DEFAULT: u64 = 65_536;
const PART_BYTES_MIN: u64 = 256;
/// A snapshot in parts, as the log and `read_artifact` know it.
const PURPOSE: &str = "snapshot";
/// Arguments that say what is captured, which a cursor has settled already.
const CAPTURING: [&str; 3] = ["scope", "interactive_only", "max_depth"];

pub static SNAPSHOT: Tool = Tool {
    facts: ToolFacts {
        name: "snapshot",
        title: "Snapshot",
        text: "The page's accessibility tree as YAML, frames included; its refs (e12) serve as selectors.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            TAB,
            Parameter::selector("scope", "selector of the part to show"),
            Parameter::flag("interactive_only", "only what can be acted on"),
            Parameter::new("max_depth", Shape::Integer { min: 0, max: 1000 }, "levels"),
            Parameter::new(
                "max_bytes",
                Shape::Integer { min: PART_BYTES_MIN, max: PART_BYTES_MAX },
                "of tree in a reply",
            )
            .or(Scalar::Integer(PART_BYTES_DEFAULT)),
            CURSOR,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            URL,
            Field::text("tree"),
            Field::text("snapshot_id"),
            Field::flag("has_more"),
            Field::text("next_cursor").maybe(),
        ]),
    },
    run: |call| Box::pin(snapshot(call)),
};
const PART_BYTES_MAX: u64 = crate::limits::RESULT_BYTES_MAX as u64;

async fn snapshot(call: Call) -> Result<Output, Fault> {
    if let Some(cursor) = call.arguments.optional_text("cursor") {
        if let Some(name) = CAPTURING.iter().find(|name| call.arguments.value(name).is_some()) {
            return Err(Fault::invalid_argument(
                *name,
                "a cursor continues a snapshot as it was taken; leave this out",
            ));
        }
        let capture = frozen::thaw(&call, PURPOSE, cursor).await?;
        return Ok(parts(&call, capture, |shown| shown));
    }
    let page = call.page()?;
    let arguments = &call.arguments;
    let options = SnapshotOptions {
        scope: arguments.optional_text("scope").map(str::to_owned),
        interactive_only: arguments.flag("interactive_only").unwrap_or(false),
        depth_max: arguments.integer("max_depth").and_then(|depth| usize::try_from(depth).ok()),
    };
    take(&call, &page, &options, call.deadline, |shown| shown).await
}

/// Captures the page, as the data that `placed` makes of it; what is too long for one reply is kept, and its
/// first part shown.
///
/// # Errors
/// As a failed page operation.
pub(super) async fn take(
    call: &Call,
    page: &Page,
    options: &SnapshotOptions,
    deadline: Deadline,
    placed: impl Fn(Value) -> Value + Send + Sync + 'static,
) -> Result<Output, Fault> {
    let taken = page.snapshot_of(options, deadline).await.map_err(faults::page(call))?;
    let _ = call.browser()?.refresh_titles(deadline.within(super::tabs::TITLES_WAIT)).await;
    let event = SnapshotTaken { references: taken.references, bytes: taken.tree.len() as u64 };
    call.gateway.journal.record(vec![Draft::new(&call.page_context(page)?, &event)]);
    let mut head = Map::new();
    head.insert("url".into(), taken.url.into());
    head.insert("title".into(), page.title().into());
    head.insert("snapshot_id".into(), taken.snapshot_id.into());
    head.insert("references".into(), taken.references.into());
    head.insert("tree_bytes".into(), taken.tree.len().into());
    for (key, count) in [("frames_omitted", taken.frames_omitted), ("lines_omitted", taken.lines_omitted)] {
        if count > 0 {
            head.insert(key.into(), count.into());
        }
    }
    let whole = Capture::whole(head, taken.tree);
    if whole.text.len() <= bytes_max(call) {
        let data = placed(data(call.arguments.text("session_id"), &whole.head, &whole.text, None));
        if call.form.holds(&data, call.gateway.config.max_result_bytes) {
            return Ok(Output::value(data));
        }
    }
    let capture = frozen::freeze(call, PURPOSE, whole.head, whole.text).await?;
    Ok(parts(call, capture, placed))
}

fn bytes_max(call: &Call) -> usize {
    let asked = call.arguments.integer("max_bytes").unwrap_or(PART_BYTES_DEFAULT);
    usize::try_from(asked).unwrap_or(usize::MAX)
}

/// As much of a capture as the reply has room for.
fn parts(call: &Call, capture: Capture, placed: impl Fn(Value) -> Value + Send + Sync + 'static) -> Output {
    let handle = capture.handle.clone();
    let artifacts = handle.iter().map(reference).collect();
    let session_id = call.arguments.text("session_id").to_owned();
    let length = capture.length(bytes_max(call));
    let beginning = move |bytes_max: usize| {
        let (tree, cursor) = capture.part(bytes_max.min(length));
        let mut data = data(&session_id, &capture.head, tree, cursor);
        if let Some(handle) = &handle {
            data["tree_artifact"] = handle.as_str().into();
        }
        placed(data)
    };
    let mut output = Output::from(Data::Piece(Piece { length, beginning: Box::new(beginning) }));
    output.artifacts = artifacts;
    output
}

fn data(session_id: &str, head: &Map<String, Value>, tree: &str, cursor: Option<String>) -> Value {
    let mut data = Map::new();
    data.insert("session_id".into(), session_id.into());
    data.extend(head.clone());
    data.insert("has_more".into(), cursor.is_some().into());
    if let Some(cursor) = cursor {
        data.insert("next_cursor".into(), cursor.into());
    }
    data.insert("tree".into(), tree.into());
    Value::Object(data)
}

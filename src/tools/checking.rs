//! `verify`: what a page should show, as a result that says yes or no and what was seen.

use serde_json::json;

use super::faults;
use super::finding;
use super::tool::{Call, Output, Tool};
use crate::browser::page::{Check, ElementState, TextPattern};
use crate::contract::facts::{INTEGER_MAX, SESSION, Scalar, TAB};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;

const KINDS: &[&str] = &["element", "text", "list", "value"];
const STATES: &[&str] = &["visible", "hidden", "enabled", "disabled", "checked", "unchecked"];
/// Items of a list that is checked.
const ITEMS_MAX: usize = 200;
/// How long a check is patient when the caller does not say, in milliseconds.
const PATIENCE_MS: u64 = 5_000;

pub static VERIFY: Tool = Tool {
    facts: ToolFacts {
        name: "verify",
        title: "Verify",
        text: "Check an element's state, a visible text, a list's items in order or a field's value, patiently; \
               answers with passed and what was seen.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("kind", Shape::Choice(KINDS), "").required(),
            Parameter::selector("selector", "needed but for kind text"),
            Parameter::new("state", Shape::Choice(STATES), "of kind element").or(Scalar::Text("visible")),
            finding::text("text"),
            Parameter::new("items", Shape::Texts { items_min: 0, items_max: ITEMS_MAX }, "of kind list"),
            Parameter::text("value", "of kind value; true or false for a checkbox").typed(),
            Parameter::new("timeout", Shape::Integer { min: 0, max: INTEGER_MAX }, "ms")
                .or(Scalar::Integer(PATIENCE_MS)),
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::text("kind"), Field::flag("passed"), Field::object("actual")]),
    },
    run: |call| Box::pin(verify(call)),
};

async fn verify(call: Call) -> Result<Output, Fault> {
    let check = check(&call)?;
    let verdict = call.page()?.verify(&check, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(json!({
        "session_id": call.arguments.text("session_id"),
        "kind": call.arguments.text("kind"),
        "passed": verdict.passed,
        "actual": verdict.actual,
    })))
}

/// Each kind needs arguments of its own, which a flat schema cannot say.
fn check(call: &Call) -> Result<Check, Fault> {
    let arguments = &call.arguments;
    let kind = arguments.text("kind");
    let needed = |name: &str| match arguments.optional_text(name) {
        Some(text) => Ok(text.to_owned()),
        None => Err(Fault::invalid_argument(name, format!("kind {kind} needs it"))),
    };
    match kind {
        "text" => {
            let pattern = TextPattern::parse(&needed("text")?);
            let pattern = pattern.map_err(|problem| Fault::invalid_argument("text", problem))?;
            Ok(Check::Text { pattern, selector: arguments.optional_text("selector").map(str::to_owned) })
        }
        "list" => {
            let items = arguments.texts("items");
            if items.is_empty() {
                return Err(Fault::invalid_argument("items", "kind list needs at least one"));
            }
            Ok(Check::List { selector: needed("selector")?, items })
        }
        "value" => Ok(Check::Value { selector: needed("selector")?, value: needed("value")? }),
        _ => {
            let state = ElementState::parse(arguments.text("state")).unwrap_or_default();
            Ok(Check::Element { selector: needed("selector")?, state })
        }
    }
}

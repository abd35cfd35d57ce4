//! `select_option`, `fill_form`.

use serde_json::{Value, json};

use super::acting::{After, INCLUDE_SNAPSHOT, echo, ok, wait_for_as};
use super::faults;
use super::interaction::keep_secret;
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::browser::page::{ActionDone, FieldKind, Locator};
use crate::contract::facts::{SELECTOR, SESSION, TAB, TIMEOUT};
use crate::contract::result::{OK, SELECTED, SESSION_ID};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault, Problem};

/// Options chosen in one call.
const VALUES_MAX: usize = 1000;

pub static SELECT_OPTION: Tool = Tool {
    facts: ToolFacts {
        name: "select_option",
        title: "Select option",
        text: "Select exactly these options of a <select>, each by its value or its label.",
        pack: Pack::Interaction,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            Parameter::new("values", Shape::Texts { items_min: 1, items_max: VALUES_MAX }, "").required(),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, Field::texts("selected")]),
    },
    run: |call| Box::pin(select_option(call)),
};

async fn select_option(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let (selector, values) = (call.arguments.text("selector"), call.arguments.texts("values"));
    let (done, selected) = page.select_option(selector, &values, call.deadline).await.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[echo(&call, "selector"), ("selected", selected.into())]).await
}

/// Fields of one form.
const FIELDS_MAX: usize = 100;

const FIELD: &[Parameter] = &[
    Parameter::selector("selector", "").required(),
    Parameter::new(
        "value",
        Shape::FieldValue,
        "text; true or false for a checkbox or radio; labels or values for a select",
    )
    .required(),
];

pub static FILL_FORM: Tool = Tool {
    facts: ToolFacts {
        name: "fill_form",
        title: "Fill form",
        text: "Fill several fields in order: texts, checkboxes, radios, selects. Stops at the first that fails and names it.",
        pack: Pack::Interaction,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new(
                "fields",
                Shape::Records { items_min: 1, items_max: FIELDS_MAX, fields: FIELD, open: false },
                "",
            )
            .required()
            .typed(),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, OK, Field::objects("fields")]),
    },
    run: |call| Box::pin(fill_form(call)),
};

async fn fill_form(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let fields: Vec<Value> = call.arguments.value("fields").and_then(Value::as_array).cloned().unwrap_or_default();
    let selector = |at: usize| fields[at]["selector"].as_str().unwrap_or_default();
    check_selectors(&fields)?;
    let (mut shown, mut last) = (Vec::new(), ActionDone::default());
    let stopped = |fault: Fault, done: usize| {
        let done: Vec<&str> = (0..done).map(selector).collect();
        fault.with("failed_field", done.len()).with("done", done)
    };
    for (at, field) in fields.iter().enumerate() {
        if let Some(dialog) = &last.dialog {
            return Err(stopped(faults::dialog_blocks(&dialog.dialog_type), at));
        }
        let filled = fill_field(&call, &page, selector(at), &field["value"]).await;
        let (kind, done) = filled.map_err(|fault| stopped(fault, at))?;
        shown.push(json!({"selector": selector(at), "kind": kind.name()}));
        let navigated = last.navigated || done.navigated;
        last = ActionDone { navigated, ..done };
    }
    after.tell(&call, &last, &[ok(), ("fields", shown.into())]).await
}

/// A selector that does not parse is told before anything is filled.
fn check_selectors(fields: &[Value]) -> Result<(), Fault> {
    let problem = |(at, field): (usize, &Value)| {
        let reason = Locator::parse(field["selector"].as_str().unwrap_or_default()).err()?;
        Some(Problem::new(format!("fields.{at}.selector"), reason))
    };
    let problems: Vec<Problem> = fields.iter().enumerate().filter_map(problem).collect();
    if problems.is_empty() { Ok(()) } else { Err(Fault::invalid(&problems)) }
}

async fn fill_field(call: &Call, page: &Page, selector: &str, value: &Value) -> Result<(FieldKind, ActionDone), Fault> {
    let kind = page.field(selector, call.deadline).await.map_err(faults::page(call))?.kind;
    let refused =
        |reason: &str| Err(Fault::new(Code::ElementNotActionable).with("selector", selector).with("reason", reason));
    let done = match (kind, value) {
        (FieldKind::Checkbox | FieldKind::Radio, value) => {
            let wanted = match value {
                Value::Bool(wanted) => *wanted,
                Value::String(text) if text == "true" || text == "false" => text == "true",
                _ => return refused("a checkbox or radio button takes true or false"),
            };
            page.set_checked(selector, wanted, call.deadline).await
        }
        (FieldKind::Select, Value::Array(values)) => {
            let values: Vec<String> = values.iter().filter_map(|value| value.as_str().map(str::to_owned)).collect();
            page.select_option(selector, &values, call.deadline).await.map(|(done, _)| done)
        }
        (FieldKind::Select, Value::String(value)) => {
            page.select_option(selector, std::slice::from_ref(value), call.deadline).await.map(|(done, _)| done)
        }
        (FieldKind::Text, Value::String(value)) => page.fill(selector, value, call.deadline).await,
        (FieldKind::Select, _) => return refused("a select takes a text or several"),
        (FieldKind::Text, _) => return refused("a text field takes one text"),
    };
    let done = done.map_err(faults::page(call))?;
    if let Value::String(text) = value {
        keep_secret(call, &done, text);
    }
    Ok((kind, done))
}

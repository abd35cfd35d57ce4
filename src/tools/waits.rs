//! `wait_for_selector`, `wait_for_load_state`.

use serde_json::json;

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::page::{LoadState, SelectorState};
use crate::contract::facts::{SELECTOR, SESSION, Scalar, TAB, TIMEOUT};
use crate::contract::result::{SELECTED, SESSION_ID};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;

const SELECTOR_STATES: &[&str] = &["attached", "detached", "visible", "hidden"];
const LOAD_STATES: &[&str] = &["load", "domcontentloaded", "networkidle"];

pub static WAIT_FOR_SELECTOR: Tool = Tool {
    facts: ToolFacts {
        name: "wait_for_selector",
        title: "Wait for selector",
        text: "Wait until the element that matches is attached, detached, visible or hidden.",
        pack: Pack::Waits,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            Parameter::new("state", Shape::Choice(SELECTOR_STATES), "").or(Scalar::Text("visible")),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, Field::choice("state", SELECTOR_STATES)]),
    },
    run: |call| Box::pin(wait_for_selector(call)),
};

async fn wait_for_selector(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let (selector, state) = (call.arguments.text("selector"), call.arguments.text("state"));
    let wanted = SelectorState::parse(state).unwrap_or_default();
    page.wait_for_selector(selector, wanted, call.deadline).await.map_err(faults::page(&call))?;
    let session_id = call.arguments.text("session_id");
    Ok(Output::value(json!({"session_id": session_id, "selector": selector, "state": state})))
}

pub static WAIT_FOR_LOAD_STATE: Tool = Tool {
    facts: ToolFacts {
        name: "wait_for_load_state",
        title: "Wait for load state",
        text: "Wait until a tab's document has reached a load state.",
        pack: Pack::Waits,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("state", Shape::Choice(LOAD_STATES), "").or(Scalar::Text("load")),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::choice("state", LOAD_STATES)]),
    },
    run: |call| Box::pin(wait_for_load_state(call)),
};

async fn wait_for_load_state(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let state = call.arguments.text("state");
    let wanted = LoadState::parse(state).unwrap_or_default();
    page.wait_for_load_state(wanted, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(json!({"session_id": call.arguments.text("session_id"), "state": state})))
}

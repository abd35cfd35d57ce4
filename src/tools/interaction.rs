//! `click`, `type_text`, `fill`, `press_key`, `hover`, `scroll`.

use std::time::Duration;

use serde_json::{Value, json};

use super::acting::{After, INCLUDE_SNAPSHOT, WAIT_FOR, echo, ok, wait_for_as};
use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::page::{ActionDone, ClickOptions, Modifier, MouseButton, ScrollTarget};
use crate::contract::facts::{SELECTOR, SESSION, Scalar, TAB, TIMEOUT};
use crate::contract::result::{OK, SELECTED, SESSION_ID};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;

const POSITION: &[Parameter] = &[
    Parameter::new("x", Shape::Number { min: None }, "").required(),
    Parameter::new("y", Shape::Number { min: None }, "").required(),
];

pub(super) const BUTTON: Parameter =
    Parameter::new("button", Shape::Choice(&["left", "right", "middle"]), "").or(Scalar::Text("left"));
pub(super) const CLICK_COUNT: Parameter =
    Parameter::new("click_count", Shape::Integer { min: 1, max: 3 }, "").or(Scalar::Integer(1));
pub(super) const MODIFIERS: Parameter =
    Parameter::new("modifiers", Shape::Choices(&["Alt", "Control", "ControlOrMeta", "Meta", "Shift"]), "");

pub static CLICK: Tool = Tool {
    facts: ToolFacts {
        name: "click",
        title: "Click",
        text: "Click the one element that matches, once it is visible, enabled, still and not covered.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            BUTTON,
            CLICK_COUNT,
            MODIFIERS,
            Parameter::new(
                "position",
                Shape::Record { fields: POSITION, open: false },
                "from the element's top left corner",
            ),
            WAIT_FOR,
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, OK]),
    },
    run: |call| Box::pin(click(call)),
};

async fn click(call: Call) -> Result<Output, Fault> {
    let (page, options) = (call.page()?, click_options(&call));
    let after = After::watch(&call, &page).await?;
    let done =
        page.click(call.arguments.text("selector"), &options, call.deadline).await.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[echo(&call, "selector"), ok()]).await
}

/// How to click, as the arguments say.
pub(super) fn click_options(call: &Call) -> ClickOptions {
    ClickOptions {
        button: match call.arguments.text("button") {
            "right" => MouseButton::Right,
            "middle" => MouseButton::Middle,
            _ => MouseButton::Left,
        },
        click_count: call.arguments.integer("click_count").and_then(|n| u8::try_from(n).ok()).unwrap_or(1),
        modifiers: call.arguments.texts("modifiers").iter().filter_map(|name| Modifier::parse(name)).collect(),
        position: call.arguments.value("position").and_then(point),
    }
}

fn point(position: &Value) -> Option<(f64, f64)> {
    Some((position.get("x")?.as_f64()?, position.get("y")?.as_f64()?))
}

pub static TYPE_TEXT: Tool = Tool {
    facts: ToolFacts {
        name: "type_text",
        title: "Type text",
        text: "Focus the element that matches and type text key by key.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            Parameter::text("text", "").required().typed(),
            Parameter::new("delay", Shape::Number { min: Some(0.0) }, "ms between keys").or(Scalar::Integer(0)),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, OK]),
    },
    run: |call| Box::pin(type_text(call)),
};

/// The longest pause between two keys, in milliseconds.
const DELAY_MS_MAX: f64 = 60_000.0;

async fn type_text(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let delay_ms = call.arguments.number("delay").unwrap_or(0.0).min(DELAY_MS_MAX);
    let delay = Duration::from_secs_f64(delay_ms / 1000.0);
    let (selector, text) = (call.arguments.text("selector"), call.arguments.text("text"));
    let done = page.type_text(selector, text, delay, call.deadline).await.map_err(faults::page(&call))?;
    keep_secret(&call, &done, text);
    after.tell(&call, &done, &[echo(&call, "selector"), ok()]).await
}

/// What went into a password field is a secret from here on, wherever the page shows it.
pub(super) fn keep_secret(call: &Call, done: &ActionDone, text: &str) {
    if done.password_field {
        call.gateway.redactor.declare(text);
    }
}

pub static FILL: Tool = Tool {
    facts: ToolFacts {
        name: "fill",
        title: "Fill",
        text: "Replace the content of the input, textarea or editable element that matches.",
        pack: Pack::Interaction,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            SELECTOR,
            Parameter::text("value", "").required().typed(),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, SELECTED, OK]),
    },
    run: |call| Box::pin(fill(call)),
};

async fn fill(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let (selector, value) = (call.arguments.text("selector"), call.arguments.text("value"));
    let done = page.fill(selector, value, call.deadline).await.map_err(faults::page(&call))?;
    keep_secret(&call, &done, value);
    after.tell(&call, &done, &[echo(&call, "selector"), ok()]).await
}

pub static PRESS_KEY: Tool = Tool {
    facts: ToolFacts {
        name: "press_key",
        title: "Press key",
        text: "Press a key or chord: Enter, ArrowDown, a, Control+A. With selector, focus that element first.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("key", Shape::Text { length_min: 1, length_max: 256 }, "").required().typed(),
            Parameter::selector("selector", ""),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::text("key"), OK]),
    },
    run: |call| Box::pin(press_key(call)),
};

async fn press_key(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let selector = call.arguments.optional_text("selector");
    let done =
        page.press_key(call.arguments.text("key"), selector, call.deadline).await.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[echo(&call, "key"), ok()]).await
}

pub static HOVER: Tool = Tool {
    facts: ToolFacts {
        name: "hover",
        title: "Hover",
        text: "Move the mouse over the element that matches.",
        pack: Pack::Interaction,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[SESSION, SELECTOR, wait_for_as("click"), INCLUDE_SNAPSHOT, TIMEOUT, TAB],
        returns: Returns::Object(&[SESSION_ID, SELECTED, OK]),
    },
    run: |call| Box::pin(hover(call)),
};

async fn hover(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let done = page.hover(call.arguments.text("selector"), call.deadline).await.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[echo(&call, "selector"), ok()]).await
}

pub static SCROLL: Tool = Tool {
    facts: ToolFacts {
        name: "scroll",
        title: "Scroll",
        text: "Scroll the page by dx/dy, to x/y, or until the element that matches is in view; answers with the offset.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("mode", Shape::Choice(&["by", "to", "selector"]), "").required(),
            Parameter::new("dx", Shape::Number { min: None }, "").or(Scalar::Integer(0)),
            Parameter::new("dy", Shape::Number { min: None }, "").or(Scalar::Integer(0)),
            Parameter::new("x", Shape::Number { min: None }, ""),
            Parameter::new("y", Shape::Number { min: None }, ""),
            Parameter::selector("selector", ""),
            Parameter::new("behavior", Shape::Choice(&["auto", "smooth"]), "").or(Scalar::Text("auto")),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::number("x"), Field::number("y")]),
    },
    run: |call| Box::pin(scroll(call)),
};

async fn scroll(call: Call) -> Result<Output, Fault> {
    let target = scroll_target(&call)?;
    let smooth = call.arguments.text("behavior") == "smooth";
    let offset = call.page()?.scroll(&target, smooth, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(json!({"session_id": call.arguments.text("session_id"), "x": offset.x, "y": offset.y})))
}

/// Each mode needs arguments of its own, which a flat schema cannot say.
fn scroll_target(call: &Call) -> Result<ScrollTarget, Fault> {
    let number = |name: &str| call.arguments.number(name);
    match call.arguments.text("mode") {
        "to" => match (number("x"), number("y")) {
            (Some(x), Some(y)) => Ok(ScrollTarget::To { x, y }),
            _ => Err(Fault::invalid_argument("x", "mode to needs both x and y")),
        },
        "selector" => match call.arguments.optional_text("selector") {
            Some(selector) => Ok(ScrollTarget::Selector(selector.to_owned())),
            None => Err(Fault::invalid_argument("selector", "mode selector needs a selector")),
        },
        _ => Ok(ScrollTarget::By { dx: number("dx").unwrap_or(0.0), dy: number("dy").unwrap_or(0.0) }),
    }
}

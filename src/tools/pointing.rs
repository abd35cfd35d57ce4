//! `drag_and_drop`, and the mouse by coordinates: `mouse_move`, `mouse_click`, `mouse_drag`, `mouse_wheel`.

use serde_json::json;

use super::acting::{After, INCLUDE_SNAPSHOT, acted, ok, wait_for_as};
use super::faults;
use super::interaction::{BUTTON, CLICK_COUNT, MODIFIERS, click_options};
use super::tool::{Call, Output, Tool};
use crate::contract::facts::{SESSION, Scalar, TAB, TIMEOUT};
use crate::contract::result::{OK, SESSION_ID};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::Fault;

const fn coordinate(name: &'static str) -> Parameter {
    Parameter::new(name, Shape::Number { min: None }, "")
}

pub static DRAG_AND_DROP: Tool = Tool {
    facts: ToolFacts {
        name: "drag_and_drop",
        title: "Drag and drop",
        text: "Drag the element that source_selector matches onto the one that target_selector matches; HTML5 data transfer included.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::selector("source_selector", "").required(),
            Parameter::selector("target_selector", "").required(),
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, OK]),
    },
    run: |call| Box::pin(drag_and_drop(call)),
};

async fn drag_and_drop(call: Call) -> Result<Output, Fault> {
    let (source, target) = (call.arguments.text("source_selector"), call.arguments.text("target_selector"));
    let page = call.page()?;
    let after = After::watch(&call, &page).await?;
    let done = page.drag_and_drop(source, target, call.deadline).await.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[ok()]).await
}

pub static MOUSE_MOVE: Tool = Tool {
    facts: ToolFacts {
        name: "mouse_move",
        title: "Move mouse",
        text: "Move the mouse to a point of the viewport, in CSS pixels; says what lies there.",
        pack: Pack::Interaction,
        effect: Effect::ACT_IDEMPOTENT,
        lane: Lane::Session,
        parameters: &[SESSION, coordinate("x").required(), coordinate("y").required(), TIMEOUT, TAB],
        returns: Returns::Object(&[SESSION_ID, OK, Field::text("element")]),
    },
    run: |call| Box::pin(mouse_move(call)),
};

async fn mouse_move(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let (done, hit) = page.mouse_move(point(&call, "x", "y"), call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(acted(&call, &done, &[ok(), ("element", hit.into())])))
}

fn point(call: &Call, x: &str, y: &str) -> (f64, f64) {
    (call.arguments.number(x).unwrap_or(0.0), call.arguments.number(y).unwrap_or(0.0))
}

pub static MOUSE_CLICK: Tool = Tool {
    facts: ToolFacts {
        name: "mouse_click",
        title: "Click at point",
        text: "Click at a point of the viewport; says what lies there. Prefer click with a selector.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            coordinate("x").required(),
            coordinate("y").required(),
            BUTTON,
            CLICK_COUNT,
            MODIFIERS,
            wait_for_as("click"),
            INCLUDE_SNAPSHOT,
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, OK, Field::text("element")]),
    },
    run: |call| Box::pin(mouse_click(call)),
};

async fn mouse_click(call: Call) -> Result<Output, Fault> {
    let (page, options) = (call.page()?, click_options(&call));
    let after = After::watch(&call, &page).await?;
    let clicked = page.mouse_click(point(&call, "x", "y"), &options, call.deadline).await;
    let (done, hit) = clicked.map_err(faults::page(&call))?;
    after.tell(&call, &done, &[ok(), ("element", hit.into())]).await
}

pub static MOUSE_DRAG: Tool = Tool {
    facts: ToolFacts {
        name: "mouse_drag",
        title: "Drag between points",
        text: "Press at one point of the viewport, move to another, release.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            coordinate("from_x").required(),
            coordinate("from_y").required(),
            coordinate("to_x").required(),
            coordinate("to_y").required(),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, OK]),
    },
    run: |call| Box::pin(mouse_drag(call)),
};

async fn mouse_drag(call: Call) -> Result<Output, Fault> {
    let (from, to) = (point(&call, "from_x", "from_y"), point(&call, "to_x", "to_y"));
    let done = call.page()?.mouse_drag(from, to, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(acted(&call, &done, &[ok()])))
}

pub static MOUSE_WHEEL: Tool = Tool {
    facts: ToolFacts {
        name: "mouse_wheel",
        title: "Turn wheel",
        text: "Turn the mouse wheel at a point of the viewport (its middle by default); answers with the page's offset.",
        pack: Pack::Interaction,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            coordinate("dx").or(Scalar::Integer(0)),
            coordinate("dy").or(Scalar::Integer(0)),
            coordinate("x"),
            coordinate("y"),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::number("x"), Field::number("y")]),
    },
    run: |call| Box::pin(mouse_wheel(call)),
};

async fn mouse_wheel(call: Call) -> Result<Output, Fault> {
    let by = point(&call, "dx", "dy");
    if by == (0.0, 0.0) {
        return Err(Fault::invalid_argument("dy", "dx, dy or both must be other than 0"));
    }
    let at = match (call.arguments.number("x"), call.arguments.number("y")) {
        (Some(x), Some(y)) => Some((x, y)),
        (None, None) => None,
        _ => return Err(Fault::invalid_argument("x", "x and y come together")),
    };
    let (done, offset) = call.page()?.mouse_wheel(at, by, call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(acted(&call, &done, &[("x", json!(offset.x)), ("y", json!(offset.y))])))
}

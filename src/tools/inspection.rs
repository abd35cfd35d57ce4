//! `get_content`, `evaluate`.

use serde_json::{Value, json};
use storage::event::Context;

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::contract::facts::{SESSION, TAB, TEXT_LENGTH_MAX};
use crate::contract::result::{SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};
use crate::keep;
use crate::limits::{PREVIEW_BYTES_MAX, head};

/// Of events about a page.
pub(super) fn context(call: &Call, page: &Page) -> Result<Context, Fault> {
    Ok(Context { page_id: Some(page.page_id().clone()), ..call.session()?.scope.context() })
}

pub static GET_CONTENT: Tool = Tool {
    facts: ToolFacts {
        name: "get_content",
        title: "Get content",
        text: "The page's HTML as it stands now.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[SESSION, TAB],
        returns: Returns::Object(&[SESSION_ID, URL, Field::text("html")]),
    },
    run: |call| Box::pin(get_content(call)),
};

async fn get_content(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let html = page.content(call.deadline).await.map_err(faults::page(&call))?;
    Ok(Output::value(json!({"session_id": call.arguments.text("session_id"), "url": page.url(), "html": html})))
}

pub static EVALUATE: Tool = Tool {
    facts: ToolFacts {
        name: "evaluate",
        title: "Evaluate",
        text: "Run a JavaScript expression or function in the page and answer with its value; promises are awaited.",
        pack: Pack::Inspection,
        effect: Effect::ACT,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::new("expression", Shape::Text { length_min: 1, length_max: TEXT_LENGTH_MAX }, "").required(),
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::any("result")]),
    },
    run: |call| Box::pin(evaluate(call)),
};

async fn evaluate(call: Call) -> Result<Output, Fault> {
    if call.session()?.options.disable_evaluate {
        return Err(Fault::new(Code::EvaluateDisabled).with("scope", "session"));
    }
    let page = call.page_or_new().await?;
    let evaluated =
        page.evaluate(call.arguments.text("expression"), call.deadline).await.map_err(faults::page(&call))?;
    let session_id = call.arguments.text("session_id");
    let json = evaluated.json.get();
    // A large text goes the way of all large texts.
    if json.len() > call.gateway.config.max_result_bytes && !json.starts_with('"') {
        return keep_large(&call, &page, session_id, Box::<str>::from(json)).await;
    }
    // What nests deeper than the reader goes is shown as the text it is.
    let result: Value = serde_json::from_str(json).unwrap_or_else(|_| json.into());
    Ok(Output::value(json!({"session_id": session_id, "result": result})))
}

/// A value that no reply could hold is kept as the JSON it came as: reading it into memory as a tree
/// would cost many times its size.
async fn keep_large(call: &Call, page: &Page, session_id: &str, json: Box<str>) -> Result<Output, Fault> {
    let bytes = json.len();
    let preview = head(&json, PREVIEW_BYTES_MAX / 4).to_owned();
    let context = context(call, page)?;
    let kept =
        keep::keep(&call.gateway, &context, "result", "application/json", json.into_boxed_bytes().into_vec()).await?;
    let mut output = Output::value(json!({
        "session_id": session_id,
        "result": preview,
        "result_bytes": bytes,
        "result_artifact": kept.handle.as_str(),
        "truncated": true,
    }));
    output.artifacts = vec![keep::reference(&kept.handle)];
    Ok(output)
}

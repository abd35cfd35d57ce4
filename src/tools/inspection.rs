//! `get_content`, `evaluate`.

use serde_json::{Value, json};

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::contract::facts::{SESSION, TAB, TEXT_LENGTH_MAX};
use crate::contract::result::{SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::fault::{Code, Fault};
use crate::keep;
use crate::limits::{PREVIEW_BYTES_MAX, head};

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
    let mut data = json!({"session_id": call.arguments.text("session_id"), "url": page.url()});
    if html.len() > call.gateway.config.max_result_bytes {
        return keep_large(&call, &page, data, "html", Large::Text(html)).await;
    }
    data["html"] = html.into();
    Ok(Output::value(data))
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
    let mut data = json!({"session_id": call.arguments.text("session_id")});
    if evaluated.json.get().len() > call.gateway.config.max_result_bytes {
        let large = match serde_json::from_str::<String>(evaluated.json.get()) {
            Ok(text) => Large::Text(text),
            Err(_) => Large::Json(Box::<str>::from(evaluated.json).into_string()),
        };
        return keep_large(&call, &page, data, "result", large).await;
    }
    let json = evaluated.json.get();
    // What nests deeper than the reader goes is shown as the text it is.
    data["result"] = serde_json::from_str(json).unwrap_or_else(|_| json.into());
    Ok(Output::value(data))
}

/// A value that no reply could hold.
enum Large {
    Text(String),
    Json(String),
}

/// Keeps a large value as it came: to read JSON into memory as a tree, or to weigh a text for a reply
/// that cannot hold it, would cost many times its size.
async fn keep_large(
    call: &Call,
    page: &Page,
    mut data: Value,
    field: &'static str,
    large: Large,
) -> Result<Output, Fault> {
    let (media_type, text, preview_bytes) = match large {
        Large::Text(text) => ("text/plain; charset=utf-8", text, PREVIEW_BYTES_MAX),
        Large::Json(json) => ("application/json", json, PREVIEW_BYTES_MAX / 4),
    };
    data[field] = head(&text, preview_bytes).into();
    data[format!("{field}_bytes")] = text.len().into();
    let kept = keep::keep(&call.gateway, &call.page_context(page)?, "result", media_type, text.into_bytes()).await?;
    data[format!("{field}_artifact")] = kept.handle.as_str().into();
    data["truncated"] = true.into();
    let mut output = Output::value(data);
    output.artifacts = vec![keep::reference(&kept.handle)];
    Ok(output)
}

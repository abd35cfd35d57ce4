//! `screenshot`, `get_content`, `evaluate`.

use serde_json::{Value, json};
use storage::event::catalog::ScreenshotTaken;
use storage::event::{Context, Draft};

use super::faults;
use super::launch_arguments::record_refusal;
use super::tool::{Call, Image, Output, Tool};
use crate::browser::Page;
use crate::browser::page::{Clip, ScreenshotOptions};
use crate::contract::facts::{SESSION, Scalar, TAB, TEXT_LENGTH_MAX};
use crate::contract::result::{SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;
use crate::limits::{PREVIEW_BYTES_MAX, head};

const CLIP: &[Parameter] = &[
    Parameter::new("x", Shape::Number { min: None }, "").required(),
    Parameter::new("y", Shape::Number { min: None }, "").required(),
    Parameter::new("width", Shape::Number { min: Some(0.0) }, "").required(),
    Parameter::new("height", Shape::Number { min: Some(0.0) }, "").required(),
];

pub static SCREENSHOT: Tool = Tool {
    facts: ToolFacts {
        name: "screenshot",
        title: "Screenshot",
        text: "Take a PNG of the viewport, the full page or a clip; kept as an artifact and shown when small enough.",
        pack: Pack::Inspection,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::flag("full_page", "").or(Scalar::Flag(false)),
            Parameter::new("clip", Shape::Record { fields: CLIP, open: false }, ""),
            Parameter::flag("omit_background", "").or(Scalar::Flag(false)),
            Parameter::text("save_path", "below the session's files directory"),
            TAB,
        ],
        returns: Returns::Object(&[
            Field::text("saved_to").maybe(),
            Field::integer("width"),
            Field::integer("height"),
            Field::integer("bytes"),
            Field::text("artifact"),
        ]),
    },
    run: |call| Box::pin(screenshot(call)),
};

async fn screenshot(call: Call) -> Result<Output, Fault> {
    let save_path = call.arguments.optional_text("save_path").map(|path| file_path(&call, path)).transpose()?;
    let page = call.page()?;
    let options = ScreenshotOptions {
        full_page: call.arguments.flag("full_page").unwrap_or(false),
        clip: call.arguments.value("clip").and_then(clip),
        omit_background: call.arguments.flag("omit_background").unwrap_or(false),
    };
    let shot = page.screenshot(&options, call.deadline).await.map_err(faults::page(&call))?;
    let context = context(&call, &page)?;
    let kept = keep::keep(&call.gateway, &context, "screenshot", "image/png", shot.png.clone()).await?;
    let bytes = shot.png.len() as u64;
    let (width, height) = (u64::from(shot.width), u64::from(shot.height));
    let taken = ScreenshotTaken { width, height, bytes, artifact: kept.handle.clone() };
    call.gateway.journal.record(vec![Draft::new(&context, &taken)]);
    let mut data = json!({"width": width, "height": height, "bytes": bytes, "artifact": kept.handle.as_str()});
    let mut artifacts = vec![keep::reference(&kept.handle)];
    if let Some(path) = save_path {
        let shown = path.display().to_string();
        let png = shot.png.clone();
        keep::blocking(move || crate::paths::write(&path, &png)).await?;
        data["saved_to"] = shown.as_str().into();
        artifacts.push(Reference::Path(shown));
    }
    let mut output = Output::value(data);
    output.artifacts = artifacts;
    output.image = Some(Image { media_type: "image/png", bytes: shot.png });
    Ok(output)
}

fn clip(value: &Value) -> Option<Clip> {
    let side = |name: &str| value.get(name).and_then(Value::as_f64);
    Some(Clip { x: side("x")?, y: side("y")?, width: side("width")?, height: side("height")? })
}

/// A session's files lie in a directory of its own.
fn file_path(call: &Call, asked: &str) -> Result<std::path::PathBuf, Fault> {
    let root = call.gateway.files_directory().join(call.session()?.instance_id.as_str());
    crate::paths::below(&root, asked).map_err(|_| {
        record_refusal(call, "path", asked);
        Fault::new(Code::PathNotAllowed).with("path", asked)
    })
}

fn context(call: &Call, page: &Page) -> Result<Context, Fault> {
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

//! `screenshot`, `save_pdf`: pictures of pages, kept as artifacts and written to files on request.

use std::path::PathBuf;

use serde_json::{Value, json};
use storage::artifact::Kept;
use storage::event::Draft;
use storage::event::catalog::ScreenshotTaken;

use super::faults;
use super::refusals;
use super::tool::{Call, Image, Output, Tool};
use crate::browser::page::{Clip, PAPER_NAMES, PdfOptions, ScreenshotOptions};
use crate::contract::facts::{SESSION, Scalar, TAB, TIMEOUT};
use crate::contract::result::{SESSION_ID, URL};
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;

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
        text: "Take a PNG of the viewport, the full page, a clip or an element; kept as an artifact, shown when small enough.",
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
            Parameter::selector("selector", "one element, in the place of clip"),
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
    let path = path(&call, "save_path")?;
    let options = ScreenshotOptions {
        full_page: call.arguments.flag("full_page").unwrap_or(false),
        clip: call.arguments.value("clip").and_then(clip),
        selector: call.arguments.optional_text("selector").map(str::to_owned),
        omit_background: call.arguments.flag("omit_background").unwrap_or(false),
    };
    if options.selector.is_some() && (options.clip.is_some() || options.full_page) {
        return Err(Fault::invalid_argument("selector", "goes with neither clip nor full_page"));
    }
    let page = call.page()?;
    let shot = page.screenshot(&options, call.deadline).await.map_err(faults::page(&call))?;
    let context = call.page_context(&page)?;
    let kept = keep::keep(&call.gateway, &context, "screenshot", "image/png", shot.png.clone()).await?;
    let (width, height) = (u64::from(shot.width), u64::from(shot.height));
    let taken = ScreenshotTaken { width, height, bytes: kept.bytes, artifact: kept.handle.clone() };
    call.gateway.journal.record(vec![Draft::new(&context, &taken)]);
    let mut data = json!({"width": width, "height": height});
    if let Some((page_width, page_height)) = shot.cut_from {
        // The rest is had with full_page and a clip.
        data["truncated"] = true.into();
        data["page_width"] = page_width.into();
        data["page_height"] = page_height.into();
    }
    let mut output = deliver(data, &kept, path, shot.png.clone()).await?;
    output.image = Some(Image { media_type: "image/png", bytes: shot.png });
    Ok(output)
}

/// The result of something that was taken and kept: its size, its handle, and the file it went to.
async fn deliver(mut data: Value, kept: &Kept, path: Option<PathBuf>, content: Vec<u8>) -> Result<Output, Fault> {
    data["bytes"] = kept.bytes.into();
    data["artifact"] = kept.handle.as_str().into();
    let mut artifacts = vec![keep::reference(&kept.handle)];
    if let Some(path) = path {
        let shown = path.display().to_string();
        keep::blocking(move || crate::paths::write(&path, &content)).await?;
        data["saved_to"] = shown.as_str().into();
        artifacts.push(Reference::Path(shown));
    }
    let mut output = Output::value(data);
    output.artifacts = artifacts;
    Ok(output)
}

fn clip(value: &Value) -> Option<Clip> {
    let side = |name: &str| value.get(name).and_then(Value::as_f64);
    Some(Clip { x: side("x")?, y: side("y")?, width: side("width")?, height: side("height")? })
}

/// A session's files lie in a directory of its own.
fn path(call: &Call, argument: &str) -> Result<Option<PathBuf>, Fault> {
    let Some(asked) = call.arguments.optional_text(argument) else { return Ok(None) };
    refusals::below(call, &call.files_directory()?, asked).map(Some)
}

pub static SAVE_PDF: Tool = Tool {
    facts: ToolFacts {
        name: "save_pdf",
        title: "Save PDF",
        text: "Print the page to a PDF, kept as an artifact; headless sessions only.",
        pack: Pack::Files,
        effect: Effect::READ,
        lane: Lane::Session,
        parameters: &[
            SESSION,
            Parameter::text("path", "below the session's files directory"),
            Parameter::new("format", Shape::Choice(PAPER_NAMES), "").or(Scalar::Text("A4")),
            Parameter::flag("landscape", "").or(Scalar::Flag(false)),
            Parameter::flag("print_background", "").or(Scalar::Flag(true)),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
            URL,
            Field::integer("bytes"),
            Field::text("artifact"),
            Field::text("saved_to").maybe(),
        ]),
    },
    run: |call| Box::pin(save_pdf(call)),
};

async fn save_pdf(call: Call) -> Result<Output, Fault> {
    let path = path(&call, "path")?;
    if !call.session()?.options.headless {
        return Err(Fault::new(Code::UnsupportedCapability).with("what", "a PDF from a session with a window"));
    }
    let page = call.page()?;
    let options = PdfOptions {
        paper: call.arguments.text("format"),
        landscape: call.arguments.flag("landscape").unwrap_or(false),
        background: call.arguments.flag("print_background").unwrap_or(true),
    };
    let pdf = page.pdf(&options, call.deadline).await.map_err(faults::page(&call))?;
    let kept = keep::keep(&call.gateway, &call.page_context(&page)?, "pdf", "application/pdf", pdf.clone()).await?;
    deliver(json!({"session_id": call.arguments.text("session_id"), "url": page.url()}), &kept, path, pdf).await
}

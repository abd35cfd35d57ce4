//! Pictures of a page, as PNG.

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};

use super::actionability::number;
use super::error::PageError;
use crate::browser::Page;
use crate::deadline::Deadline;

/// The longest side of a picture, in pixels: what graphics processors take.
pub const SCREENSHOT_SIDE_MAX: u32 = 16_384;

/// A part of the viewport, or of the whole page when that is taken. In CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct ScreenshotOptions {
    /// The whole document, not only what shows.
    pub full_page: bool,
    pub clip: Option<Clip>,
    /// Leave out the white that the browser draws behind pages.
    pub omit_background: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    pub png: Vec<u8>,
    /// Of the picture, in pixels.
    pub width: u32,
    pub height: u32,
}

#[derive(Deserialize)]
struct Captured<'a> {
    #[serde(borrow)]
    data: std::borrow::Cow<'a, str>,
}

impl Page {
    /// # Errors
    /// `Unsupported` when the picture would be larger than [`SCREENSHOT_SIDE_MAX`], and see
    /// [`PageError`].
    pub async fn screenshot(&self, options: &ScreenshotOptions, deadline: Deadline) -> Result<Screenshot, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.capture(options, deadline)).await
    }

    async fn capture(&self, options: &ScreenshotOptions, deadline: Deadline) -> Result<Screenshot, PageError> {
        let mut params = json!({ "format": "png" });
        if options.full_page || options.clip.is_some() {
            let metrics = self.command(self.session(), "Page.getLayoutMetrics", json!({}), deadline).await?;
            let clip = area(options, &metrics)?;
            params["clip"] =
                json!({ "x": clip.x, "y": clip.y, "width": clip.width, "height": clip.height, "scale": 1 });
            params["captureBeyondViewport"] = options.full_page.into();
        }
        let background = |color: Value| {
            self.connection().post(Some(self.session()), "Emulation.setDefaultBackgroundColorOverride", color)
        };
        if options.omit_background {
            background(json!({ "color": { "r": 0, "g": 0, "b": 0, "a": 0 } }));
        }
        let captured =
            self.connection().raw_text(Some(self.session()), "Page.captureScreenshot", params, deadline).await;
        if options.omit_background {
            background(json!({}));
        }
        let captured = captured.map_err(|error| self.fault(&error, "Page.captureScreenshot"))?;
        let captured: Captured<'_> =
            serde_json::from_str(captured.get()).map_err(|error| PageError::internal(error.to_string()))?;
        let png = base64::engine::general_purpose::STANDARD.decode(captured.data.as_bytes());
        let png = png.map_err(|error| PageError::internal(error.to_string()))?;
        let (width, height) = dimensions(&png).ok_or_else(|| PageError::internal("the picture is no PNG"))?;
        Ok(Screenshot { png, width, height })
    }
}

/// What to take, in the document's coordinates.
fn area(options: &ScreenshotOptions, metrics: &Value) -> Result<Clip, PageError> {
    let content = &metrics["cssContentSize"];
    let view = &metrics["cssVisualViewport"];
    let clip = match options.clip {
        None => {
            Clip { x: 0.0, y: 0.0, width: number(&content["width"]).ceil(), height: number(&content["height"]).ceil() }
        }
        Some(clip) if options.full_page => clip,
        Some(clip) => Clip { x: clip.x + number(&view["pageX"]), y: clip.y + number(&view["pageY"]), ..clip },
    };
    if !(clip.width >= 1.0 && clip.height >= 1.0) {
        return Err(PageError::Unsupported { what: "the picture would be empty".into() });
    }
    let side_max = f64::from(SCREENSHOT_SIDE_MAX);
    if clip.width > side_max || clip.height > side_max {
        let (width, height) = (clip.width, clip.height);
        let what = format!("the picture would be {width} x {height} pixels; at most {SCREENSHOT_SIDE_MAX} a side");
        return Err(PageError::Unsupported { what });
    }
    Ok(clip)
}

/// Width and height from a PNG's header.
fn dimensions(png: &[u8]) -> Option<(u32, u32)> {
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let field = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    (header.get(4..8)? == b"IHDR").then_some((field(8)?, field(12)?))
}

//! Pictures of a page, as PNG: what shows, the whole document, a part of it, or one element.

use serde_json::{Value, json};

use super::actionability::number;
use super::error::PageError;
use super::frames::FRAME_DEPTH_MAX;
use super::kit::KitError;
use crate::browser::Page;
use crate::deadline::Deadline;

/// The longest side of a picture, in pixels: what graphics processors take.
pub const SCREENSHOT_SIDE_MAX: u32 = 16_384;
/// A whole picture, in pixels; the browser holds four bytes for each, and more than once.
pub const SCREENSHOT_PIXELS_MAX: u32 = SCREENSHOT_SIDE_MAX * 4_096;

/// An element's box in its frame's viewport.
const BOX: &str = "function(id) {
  const element = this.get(id);
  if (!element.isConnected) return null;
  const { left, top, width, height } = element.getBoundingClientRect();
  return { left, top, width, height };
}";
/// Where the inside of a frame's element begins, in the viewport around it.
const INSIDE: &str = "function(id) {
  const element = this.get(id);
  const { left, top } = element.getBoundingClientRect();
  const style = getComputedStyle(element);
  return {
    left: left + element.clientLeft + parseFloat(style.paddingLeft),
    top: top + element.clientTop + parseFloat(style.paddingTop),
  };
}";

/// A part of the viewport, or of the whole page when that is taken. In CSS pixels.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Clip {
    pub x: f64,
    pub y: f64,
    pub width: f64,
    pub height: f64,
}

#[derive(Debug, Clone, PartialEq, Default)]
pub struct ScreenshotOptions {
    /// The whole document, not only what shows.
    pub full_page: bool,
    pub clip: Option<Clip>,
    /// The one element that it means, in the place of a clip.
    pub selector: Option<String>,
    /// Leave out the white that the browser draws behind pages.
    pub omit_background: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Screenshot {
    pub png: Vec<u8>,
    /// Of the picture, in pixels.
    pub width: u32,
    pub height: u32,
    /// Width and height of a document that is larger than a picture may be; this is its beginning.
    pub cut_from: Option<(u64, u64)>,
}

/// What to take, in the document's coordinates.
struct Area {
    clip: Clip,
    cut_from: Option<(u64, u64)>,
}

/// While it lives, the browser draws nothing behind the page.
struct Transparent<'a>(&'a Page);

impl<'a> Transparent<'a> {
    fn begin(page: &'a Page) -> Self {
        let transparent = Self(page);
        transparent.set(json!({ "color": { "r": 0, "g": 0, "b": 0, "a": 0 } }));
        transparent
    }

    fn set(&self, color: Value) {
        let page = self.0;
        page.connection().post(Some(page.session()), "Emulation.setDefaultBackgroundColorOverride", color);
    }
}

impl Drop for Transparent<'_> {
    // However the capture ends: a page that stays transparent would be no page any more.
    fn drop(&mut self) {
        self.set(json!({}));
    }
}

impl Page {
    /// A document that is larger than a picture may be is cut off at its end; a clip is not.
    ///
    /// # Errors
    /// `TooLarge` when the clip goes beyond [`SCREENSHOT_SIDE_MAX`] or [`SCREENSHOT_PIXELS_MAX`], and
    /// see [`PageError`].
    pub async fn screenshot(&self, options: &ScreenshotOptions, deadline: Deadline) -> Result<Screenshot, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.capture(options, deadline)).await
    }

    async fn capture(&self, options: &ScreenshotOptions, deadline: Deadline) -> Result<Screenshot, PageError> {
        let mut params = json!({ "format": "png" });
        let mut cut_from = None;
        let clip = match &options.selector {
            Some(selector) => Some(self.box_of(selector, deadline).await?),
            None => options.clip,
        };
        if options.full_page || clip.is_some() {
            let metrics = self.command(self.session(), "Page.getLayoutMetrics", json!({}), deadline).await?;
            let on_page = options.full_page && options.selector.is_none();
            let area = area(on_page, clip, &metrics)?;
            cut_from = area.cut_from;
            let Clip { x, y, width, height } = area.clip;
            params["clip"] = json!({ "x": x, "y": y, "width": width, "height": height, "scale": 1 });
            params["captureBeyondViewport"] = (on_page || !shows(&area.clip, &metrics)).into();
        }
        let transparent = options.omit_background.then(|| Transparent::begin(self));
        let captured = self.command_for_bytes("Page.captureScreenshot", params, deadline).await;
        drop(transparent);
        let png = captured?;
        let (width, height) = dimensions(&png).ok_or_else(|| PageError::internal("the picture is no PNG"))?;
        Ok(Screenshot { png, width, height, cut_from })
    }

    /// The box of the one element that `selector` means, in the viewport, after scrolling to it.
    async fn box_of(&self, selector: &str, deadline: Deadline) -> Result<Clip, PageError> {
        loop {
            let then = json!({ "action": "scroll", "behavior": "instant" });
            let element = self.element(selector, &then, deadline).await?;
            match self.box_in_viewport(&element.frame_id, element.id, deadline).await {
                Ok(Some(found)) if found.width > 0.0 && found.height > 0.0 => {
                    let (x, y) = (found.x.floor(), found.y.floor());
                    let (right, bottom) = ((found.x + found.width).ceil(), (found.y + found.height).ceil());
                    return Ok(Clip { x, y, width: right - x, height: bottom - y });
                }
                Ok(Some(_)) => return Err(PageError::not_actionable(selector, "it has no size")),
                Ok(None) | Err(KitError::Lost) => self.pause(deadline).await?,
                Err(KitError::Page(error)) => return Err(error),
            }
        }
    }

    /// `None`: the element has gone meanwhile.
    async fn box_in_viewport(
        &self,
        frame_id: &storage::ids::FrameId,
        id: u64,
        deadline: Deadline,
    ) -> Result<Option<Clip>, KitError> {
        let found = self.kit_function(frame_id, BOX, &json!([{ "value": id }]), true, deadline).await?;
        let found = &found["value"];
        if found.is_null() {
            return Ok(None);
        }
        let mut clip = Clip {
            x: number(&found["left"]),
            y: number(&found["top"]),
            width: number(&found["width"]),
            height: number(&found["height"]),
        };
        let mut frame_id = frame_id.clone();
        for _ in 0..FRAME_DEPTH_MAX {
            let Some((parent, node)) = self.holder(&frame_id, deadline).await? else { return Ok(Some(clip)) };
            let id = self.keep_backend_node(&parent, node, deadline).await?;
            let inside = self.kit_function(&parent, INSIDE, &json!([{ "value": id }]), true, deadline).await?;
            clip.x += number(&inside["value"]["left"]);
            clip.y += number(&inside["value"]["top"]);
            frame_id = parent;
        }
        Err(KitError::Lost)
    }
}

/// Whether all of it is in the viewport: then nothing need be laid out anew for the picture.
fn shows(clip: &Clip, metrics: &Value) -> bool {
    let view = &metrics["cssVisualViewport"];
    let (left, top) = (number(&view["pageX"]), number(&view["pageY"]));
    let (right, bottom) = (left + number(&view["clientWidth"]), top + number(&view["clientHeight"]));
    clip.x >= left && clip.y >= top && clip.x + clip.width <= right && clip.y + clip.height <= bottom
}

fn area(on_page: bool, clip: Option<Clip>, metrics: &Value) -> Result<Area, PageError> {
    let (side_max, pixels_max) = (f64::from(SCREENSHOT_SIDE_MAX), f64::from(SCREENSHOT_PIXELS_MAX));
    let view = &metrics["cssVisualViewport"];
    let content = &metrics["cssContentSize"];
    let Some(clip) = clip else {
        let (whole_width, whole_height) = (number(&content["width"]).ceil(), number(&content["height"]).ceil());
        let width = whole_width.min(side_max);
        let height = whole_height.min(side_max).min((pixels_max / width.max(1.0)).floor());
        let cut = width < whole_width || height < whole_height;
        let clip = Clip { x: 0.0, y: 0.0, width, height };
        // Sizes of documents are small whole numbers.
        return filled(clip, cut.then_some((whole_width as u64, whole_height as u64)));
    };
    let clip = if on_page {
        clip
    } else {
        Clip { x: clip.x + number(&view["pageX"]), y: clip.y + number(&view["pageY"]), ..clip }
    };
    if clip.width > side_max || clip.height > side_max {
        return Err(PageError::TooLarge { what: "pixels of a picture's side", limit: SCREENSHOT_SIDE_MAX.into() });
    }
    if clip.width * clip.height > pixels_max {
        return Err(PageError::TooLarge { what: "pixels of a picture", limit: SCREENSHOT_PIXELS_MAX.into() });
    }
    filled(clip, None)
}

fn filled(clip: Clip, cut_from: Option<(u64, u64)>) -> Result<Area, PageError> {
    if clip.width >= 1.0 && clip.height >= 1.0 {
        return Ok(Area { clip, cut_from });
    }
    Err(PageError::Unsupported { what: "the picture would be empty".into() })
}

/// Width and height from a PNG's header.
fn dimensions(png: &[u8]) -> Option<(u32, u32)> {
    let header = png.strip_prefix(b"\x89PNG\r\n\x1a\n")?;
    let field = |at: usize| header.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
    (header.get(4..8)? == b"IHDR").then_some((field(8)?, field(12)?))
}

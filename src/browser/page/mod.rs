//! What can be done with a page: go somewhere, wait, find elements, act on them, look at it.
//!
//! Every operation takes one deadline and ends by it. It fails at once when a dialog blocks the page
//! or the page is gone, and returns at once when its own doing opens a dialog. Read [`call`] first
//! (how commands end), then [`kit`] (the script in each frame), [`resolve`] (selector to element).

mod actionability;
mod answer;
mod ax;
mod call;
mod check;
mod drag;
mod emulation;
mod error;
mod evaluate;
mod fill;
mod frames;
mod glob;
mod keyboard;
mod keys;
mod kit;
mod locator;
mod mouse;
mod navigation;
mod observe;
mod pdf;
mod pointer;
mod references;
mod resolve;
mod role;
mod screenshot;
mod scroll;
mod select;
mod snapshot;
#[cfg(test)]
mod tests;
mod texts;
mod typing;
mod upload;
mod verifying;
mod wait;
mod walk;
mod web_storage;

pub use call::ActionDone;
pub use check::{FieldKind, FieldState};
pub use error::PageError;
pub use evaluate::EvaluateResult;
pub use frames::FrameShown;
pub use glob::UrlPattern;
pub use keys::{Chord, Modifier};
pub use kit::Memory;
pub use locator::{Locator, SELECTOR_BYTES_MAX};
pub use navigation::{Direction, Navigated};
pub use observe::{Expected, ResponsePattern, Watch, Watched};
pub use pdf::{PAPER_NAMES, PdfOptions};
pub use pointer::{ClickOptions, MouseButton};
pub use resolve::Candidate;
pub use screenshot::{Clip, SCREENSHOT_PIXELS_MAX, SCREENSHOT_SIDE_MAX, Screenshot, ScreenshotOptions};
pub use scroll::{ScrollOffset, ScrollTarget};
pub use snapshot::{Snapshot, SnapshotOptions};
pub use texts::{TextFound, TextMatch, TextPattern};
pub use upload::Offered;
pub use verifying::{Check, ElementState, Verdict};
pub use wait::{LoadState, SelectorState};
pub use web_storage::{Area, StorageArea, origin_of};

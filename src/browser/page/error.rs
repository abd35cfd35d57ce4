//! What can go wrong while acting on a page, as one closed list that callers map to faults.
//!
//! A deadline is only one of these when time really ran out: an element that is absent, ambiguous or
//! covered has its own case with its own reason, because each asks for a different next step.

use super::resolve::Candidate;
use crate::browser::state::Dialog;

/// A failed page operation. Texts in it are bounded but not redacted: callers show what they allow.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum PageError {
    /// Nothing matches, and the page has come to rest.
    #[error("nothing matches {selector}")]
    NotFound { selector: String },
    #[error("{count} elements match {selector}")]
    Ambiguous { selector: String, count: u64, candidates: Vec<Candidate> },
    /// There, but it cannot be acted on: hidden, disabled, covered, moving, detached.
    #[error("{selector} cannot be acted on: {reason}")]
    NotActionable { selector: String, reason: String },
    #[error("the selector does not parse: {reason}")]
    InvalidSelector { selector: String, reason: String },
    #[error("{key} is not a key: {reason}")]
    InvalidKey { key: String, reason: String },
    /// The reference's node or document is gone, or no snapshot gave it.
    #[error("reference {reference} no longer holds")]
    StaleRef { reference: String, snapshot_id: Option<String> },
    #[error("navigation failed: {reason}")]
    NavigationFailed { reason: String, url: String },
    #[error("the page did not load in time")]
    NavigationTimeout { url: String },
    #[error("{what} did not come in time")]
    WaitTimeout { what: String },
    /// The page's script threw or did not parse.
    #[error("script error: {text}")]
    Script { text: String },
    #[error("an open {} blocks the page", dialog.dialog_type)]
    DialogOpen { dialog: Box<Dialog> },
    /// The page does not take the files.
    #[error("upload failed: {reason}")]
    UploadFailed { reason: &'static str },
    /// A point that the page does not show.
    #[error("the point lies outside the viewport, which is {width} x {height}")]
    OutsideViewport { width: f64, height: f64 },
    /// A request that this page cannot meet, such as a picture taller than the limit.
    #[error("{what}")]
    Unsupported { what: String },
    #[error("{what} are limited to {limit}")]
    TooLarge { what: &'static str, limit: u64 },
    #[error("the page is closed")]
    PageClosed,
    #[error("the page crashed")]
    PageCrashed,
    #[error("the browser is gone")]
    BrowserGone,
    #[error("the deadline passed")]
    Timeout,
    /// The browser answered something that no other case covers.
    #[error("{reason}")]
    Internal { reason: String },
}

impl PageError {
    pub(crate) fn internal(reason: impl Into<String>) -> Self {
        Self::Internal { reason: cut(&reason.into(), REASON_BYTES_MAX) }
    }

    pub(crate) fn upload_failed(reason: &'static str) -> Self {
        Self::UploadFailed { reason }
    }

    pub(crate) fn not_actionable(selector: &str, reason: impl Into<String>) -> Self {
        let reason = cut(&reason.into(), REASON_BYTES_MAX);
        Self::NotActionable { selector: cut(selector, SELECTOR_SHOWN_BYTES_MAX), reason }
    }
}

/// A reason's text, in bytes.
const REASON_BYTES_MAX: usize = 512;
/// A selector's text inside an error, in bytes.
pub(crate) const SELECTOR_SHOWN_BYTES_MAX: usize = 256;

/// The beginning of `text`, at most `bytes_max` bytes, ending at a character's boundary.
pub(crate) fn cut(text: &str, bytes_max: usize) -> String {
    if text.len() <= bytes_max {
        return text.to_owned();
    }
    let end = (0..=bytes_max).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    format!("{}...", &text[..end])
}

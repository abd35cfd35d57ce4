//! What goes wrong on a page or in a browser, as faults with the details callers may see.

use serde_json::{Value, json};

use crate::browser::CdpError;
use crate::browser::page::{Candidate, PageError};
use crate::fault::{Code, Fault};
use crate::tools::tool::Call;

/// Chromium's reason for a request that was refused on our word.
const BLOCKED: &str = "net::ERR_BLOCKED_BY_CLIENT";

/// A failed page operation of this call.
pub(super) fn page(call: &Call) -> impl Fn(PageError) -> Fault + '_ {
    move |error| of_page(call, error)
}

fn of_page(call: &Call, error: PageError) -> Fault {
    let cause = error.to_string();
    let fault = match error {
        PageError::NotFound { selector } => Fault::new(Code::ElementNotFound).with("selector", selector),
        PageError::Ambiguous { selector, count, candidates } => Fault::new(Code::LocatorAmbiguous)
            .with("selector", selector)
            .with("count", count)
            .with("candidates", candidates.iter().map(candidate).collect::<Vec<_>>()),
        PageError::NotActionable { selector, reason } => {
            Fault::new(Code::ElementNotActionable).with("selector", selector).with("reason", reason)
        }
        PageError::InvalidSelector { selector, reason } => {
            Fault::new(Code::InvalidSelector).with("selector", selector).with("reason", reason)
        }
        PageError::InvalidKey { reason, .. } => Fault::invalid_argument("key", reason),
        PageError::StaleRef { reference, snapshot_id } => {
            Fault::new(Code::StaleRef).with("ref", reference).with("snapshot_id", snapshot_id)
        }
        // Nobody else refuses anything in the browser's name: extensions are off.
        PageError::NavigationFailed { reason, .. } if reason == BLOCKED => {
            let rule = call.page().ok().and_then(|page| page.state().refused_by.clone());
            Fault::new(Code::UrlBlocked).with("rule", rule)
        }
        PageError::NavigationFailed { reason, url } => {
            Fault::new(Code::NavigationFailed).with("reason", reason).with("url", url)
        }
        PageError::NavigationTimeout { url } => navigation_timeout(call, &url),
        PageError::WaitTimeout { what } => {
            Fault::new(Code::WaitTimeout).with("timeout_ms", budget_ms(call)).with("what", what)
        }
        PageError::Script { text } => Fault::new(Code::ScriptError).with("text", text),
        PageError::DialogOpen { dialog } => dialog_blocks(&dialog.dialog_type),
        PageError::UploadFailed { reason } => Fault::new(Code::UploadFailed).with("reason", reason),
        PageError::OutsideViewport { width, height } => {
            let problem = format!("the point lies outside the viewport, which is {width} x {height} CSS pixels");
            Fault::invalid_argument("x, y", problem)
        }
        PageError::Unsupported { what } => Fault::new(Code::UnsupportedCapability).with("what", what),
        PageError::TooLarge { what, limit } => Fault::new(Code::LimitExceeded).with("name", what).with("limit", limit),
        PageError::PageClosed => page_closed(call),
        PageError::PageCrashed => Fault::new(Code::PageCrashed).with("tab_id", tab(call)),
        PageError::BrowserGone => browser_gone(call),
        PageError::Timeout => {
            Fault::new(Code::OperationTimeout).with("timeout_ms", budget_ms(call)).with("phase", phase(call))
        }
        PageError::Internal { reason } => return Fault::new(Code::InternalError).because(reason),
    };
    fault.because(cause)
}

/// What a call was at when its time was over. Chromium holds back what concerns a document for as long
/// as a server keeps the next one waiting.
fn phase(call: &Call) -> &'static str {
    let is_navigating = call.page().is_ok_and(|page| page.state().navigating.is_some());
    if is_navigating { "navigating" } else { "running" }
}

/// One of several matches, with the selector that means it alone.
fn candidate(candidate: &Candidate) -> Value {
    json!({"element": candidate.element, "text": candidate.text, "selector": candidate.reference})
}

/// The address did not load within the call's time.
pub(super) fn navigation_timeout(call: &Call, url: &str) -> Fault {
    Fault::new(Code::NavigationTimeout).with("timeout_ms", budget_ms(call)).with("url", url)
}

/// An open dialog stands in the way; the fault names what clears it.
pub(super) fn dialog_blocks(dialog_type: &str) -> Fault {
    Fault::new(Code::ModalStateBlocked)
        .with("dialog_type", dialog_type)
        .with("clear_with", "handle_dialog, accept_next_dialog or dismiss_next_dialog")
}

/// A failed command that belongs to no page operation.
pub(super) fn cdp(call: &Call) -> impl Fn(CdpError) -> Fault + '_ {
    move |error| match error {
        CdpError::Timeout => {
            Fault::new(Code::OperationTimeout).with("timeout_ms", budget_ms(call)).with("phase", phase(call))
        }
        CdpError::Closed => browser_gone(call),
        other => Fault::new(Code::InternalError).because(other),
    }
}

/// A tab goes with its browser; which of the two it was decides what the caller does next.
fn page_closed(call: &Call) -> Fault {
    let session = call.session.as_ref();
    let ended = session.and_then(|session| session.browser().err());
    let gone =
        session.and_then(|session| session.browser_if_any()).is_some_and(|browser| browser.gone().borrow().is_some());
    match ended {
        Some(fault) => fault,
        None if gone => browser_gone(call),
        None => Fault::new(Code::PageClosed).with("tab_id", tab(call)),
    }
}

fn browser_gone(call: &Call) -> Fault {
    let session_id = call.target.ids().instance.unwrap_or_default();
    Fault::new(Code::BrowserCrashed).with("session_id", session_id)
}

fn tab(call: &Call) -> String {
    call.target.ids().page_id.map(|page_id| page_id.to_string()).unwrap_or_default()
}

fn budget_ms(call: &Call) -> u64 {
    u64::try_from(call.deadline.budget().as_millis()).unwrap_or(u64::MAX)
}

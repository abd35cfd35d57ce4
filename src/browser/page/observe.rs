//! What an action is expected to bring about: watched for from before the action, waited for after it.
//!
//! Responses and addresses come and go, so that the collector notes the first one that fits; elements
//! and texts are looked for once the action is done. Time is the only link between an action and what
//! is seen after it.

use std::time::Instant;

use serde_json::{Value, json};

use super::call::Mark;
use super::error::PageError;
use super::glob::UrlPattern;
use super::texts::TextPattern;
use super::wait::SelectorState;
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// One condition.
#[derive(Debug, Clone)]
pub enum Expected {
    /// Headers of a request that began after the watch did.
    Response(ResponsePattern),
    /// A navigation of the main frame, within the document too.
    Url(UrlPattern),
    Element {
        selector: String,
        state: SelectorState,
    },
    Text {
        text: String,
        pattern: TextPattern,
        gone: bool,
    },
    Popup,
    Download,
}

/// What a response must be; what is `None` may be anything.
#[derive(Debug, Clone)]
pub struct ResponsePattern {
    pub url: Option<UrlPattern>,
    pub method: Option<String>,
    pub status: Option<u64>,
}

/// A watch that has begun. It ends with the value.
pub struct Watch {
    page: Page,
    mark: Mark,
    expected: Expected,
}

/// The collector's part of a watch.
#[derive(Debug)]
pub struct Watched {
    expected: Expected,
    since: Instant,
    found: Option<Value>,
}

impl Watched {
    /// The main frame has come to another address.
    pub(in crate::browser) fn address(&mut self, url: &str) {
        if let Expected::Url(pattern) = &self.expected
            && self.found.is_none()
            && pattern.matches(url)
        {
            self.found = Some(json!({ "url": url }));
        }
    }

    /// A response to a request that began at `began`.
    pub(in crate::browser) fn response(
        &mut self,
        began: Instant,
        (url, method, status): (&str, &str, u64),
        request_id: &str,
    ) {
        let Expected::Response(pattern) = &self.expected else { return };
        let fits = pattern.url.as_ref().is_none_or(|wanted| wanted.matches(url))
            && pattern.method.as_deref().is_none_or(|wanted| wanted.eq_ignore_ascii_case(method))
            && pattern.status.is_none_or(|wanted| wanted == status);
        if fits && self.found.is_none() && began >= self.since {
            self.found = Some(json!({ "url": url, "method": method, "status": status, "request_id": request_id }));
        }
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.page.state().watched = None;
    }
}

impl Page {
    /// Begins to watch. One watch at a time: calls of a session come one after another.
    pub fn watch(&self, expected: Expected) -> Watch {
        let mut state = self.state();
        state.watched = Some(Watched { expected: expected.clone(), since: Instant::now(), found: None });
        Watch { page: self.clone(), mark: Mark::of(&state), expected }
    }
}

impl Watch {
    /// Waits until it has come; gives what is known of it.
    ///
    /// # Errors
    /// `Timeout` or `WaitTimeout` when it does not come in time, and see [`PageError`].
    pub async fn come(&self, deadline: Deadline) -> Result<Value, PageError> {
        let (page, mark) = (&self.page, self.mark);
        match &self.expected {
            Expected::Response(_) | Expected::Url(_) => {
                self.fact(deadline, |state| state.watched.as_ref().and_then(|watched| watched.found.clone())).await
            }
            Expected::Popup => self.fact(deadline, |state| opened(state, mark)).await,
            Expected::Download => self.fact(deadline, |state| begun(state, mark)).await,
            Expected::Element { selector, state } => {
                page.wait_for_selector(selector, *state, deadline).await?;
                Ok(json!({ "selector": selector, "state": state.name() }))
            }
            Expected::Text { text, pattern, gone } => {
                page.wait_for_text(pattern, !gone, deadline).await?;
                Ok(json!({ "text": text, "state": if *gone { "hidden" } else { "visible" } }))
            }
        }
    }

    async fn fact(
        &self,
        deadline: Deadline,
        fact: impl Fn(&PageState) -> Option<Value> + Send + Sync,
    ) -> Result<Value, PageError> {
        // What has come already counts, whatever stands in the way by now.
        let come = fact(&self.page.state());
        if let Some(come) = come {
            return Ok(come);
        }
        let mark = self.page.free()?;
        let work = async { self.page.wait(deadline, &fact).await.map_err(|error| self.page.waited(error)) };
        self.page.race_undone(mark, deadline, work).await
    }
}

fn opened(state: &PageState, mark: Mark) -> Option<Value> {
    let page_id = state.popups.since(mark.popups).into_iter().next()?;
    Some(json!({ "tab_id": page_id.as_str() }))
}

fn begun(state: &PageState, mark: Mark) -> Option<Value> {
    let download_id = state.downloads.since(mark.downloads).into_iter().next()?;
    Some(json!({ "download_id": download_id.as_str() }))
}

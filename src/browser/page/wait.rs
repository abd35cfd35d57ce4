//! Waiting for a fact about the page: its address, its load state, an element's presence.

use super::call::Mark;
use super::error::{PageError, SELECTOR_SHOWN_BYTES_MAX, cut};
use super::glob::UrlPattern;
use super::kit::KitError;
use super::resolve::parse;
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// How far a document has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum LoadState {
    /// The document has taken over; nothing of it need be there yet.
    Commit,
    DomContentLoaded,
    #[default]
    Load,
    /// Loaded, and no request for half a second.
    NetworkIdle,
}

/// What is waited for about a selector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SelectorState {
    Attached,
    Detached,
    #[default]
    Visible,
    Hidden,
}

impl LoadState {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "commit" => Some(Self::Commit),
            "domcontentloaded" => Some(Self::DomContentLoaded),
            "load" => Some(Self::Load),
            "networkidle" => Some(Self::NetworkIdle),
            _ => None,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Commit => "commit",
            Self::DomContentLoaded => "domcontentloaded",
            Self::Load => "load",
            Self::NetworkIdle => "networkidle",
        }
    }

    /// Whether the main frame's present document has come this far.
    pub(super) fn reached(self, state: &PageState) -> bool {
        let main = state.main_frame();
        match self {
            Self::Commit => true,
            Self::DomContentLoaded => main.reached("DOMContentLoaded"),
            Self::Load => main.reached("load"),
            Self::NetworkIdle => main.reached("networkIdle"),
        }
    }
}

impl SelectorState {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "attached" => Some(Self::Attached),
            "detached" => Some(Self::Detached),
            "visible" => Some(Self::Visible),
            "hidden" => Some(Self::Hidden),
            _ => None,
        }
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Attached => "attached",
            Self::Detached => "detached",
            Self::Visible => "visible",
            Self::Hidden => "hidden",
        }
    }

    fn holds(self, count: u64, visible: u64) -> bool {
        match self {
            Self::Attached => count > 0,
            Self::Detached => count == 0,
            Self::Visible => visible > 0,
            Self::Hidden => visible == 0,
        }
    }
}

impl Page {
    /// Waits until the page's address matches; gives the address.
    ///
    /// # Errors
    /// `WaitTimeout` at the deadline, and see [`PageError`].
    pub async fn wait_for_url(&self, pattern: &UrlPattern, deadline: Deadline) -> Result<String, PageError> {
        let mark = self.begin(deadline).await?;
        let matched = |state: &PageState| pattern.matches(&state.url).then(|| state.url.clone());
        self.wait_fact(mark, "the address", deadline, matched).await
    }

    /// Waits until the document has come to `wanted`; gives the address.
    ///
    /// # Errors
    /// `WaitTimeout` at the deadline, and see [`PageError`].
    pub async fn wait_for_load_state(&self, wanted: LoadState, deadline: Deadline) -> Result<String, PageError> {
        let mark = self.begin(deadline).await?;
        let reached = |state: &PageState| wanted.reached(state).then(|| state.url.clone());
        self.wait_fact(mark, wanted.name(), deadline, reached).await
    }

    async fn wait_fact(
        &self,
        mark: Mark,
        what: &str,
        deadline: Deadline,
        fact: impl FnMut(&PageState) -> Option<String> + Send,
    ) -> Result<String, PageError> {
        let work = async { self.wait(deadline, fact).await.map_err(|error| self.waited(error)) };
        self.race_undone(mark, deadline, work).await.map_err(|error| timeout_of(error, what))
    }

    /// Waits until `wanted` holds for the elements that `selector` matches.
    ///
    /// # Errors
    /// `WaitTimeout` at the deadline, and see [`PageError`].
    pub async fn wait_for_selector(
        &self,
        selector: &str,
        wanted: SelectorState,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let locator = parse(selector)?;
        let mark = self.begin(deadline).await?;
        let work = async {
            loop {
                let frame_id = match self.matches(selector, &locator, None, true, deadline).await {
                    Ok(found) if wanted.holds(found.count, found.visible) => return Ok(()),
                    Ok(found) => found.frame_id,
                    // A reference whose node has gone is detached and hidden.
                    Err(KitError::Page(PageError::StaleRef { .. })) if wanted.holds(0, 0) => return Ok(()),
                    Err(KitError::Page(error)) => return Err(error),
                    Err(KitError::Lost) => {
                        self.pause(deadline).await?;
                        continue;
                    }
                };
                self.at_rest(&frame_id, deadline).await?;
                if deadline.passed() {
                    return Err(PageError::Timeout);
                }
            }
        };
        let done = self.race_undone(mark, deadline, work).await;
        let shown = cut(selector, SELECTOR_SHOWN_BYTES_MAX);
        done.map_err(|error| timeout_of(error, &format!("{shown} {}", wanted.name())))
    }
}

fn timeout_of(error: PageError, what: &str) -> PageError {
    match error {
        PageError::Timeout => PageError::WaitTimeout { what: what.to_owned() },
        other => other,
    }
}

//! Going somewhere: by address, through the history, or again to the same place.

use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::DownloadId;

use super::call::{Mark, Raced};
use super::error::PageError;
use super::wait::LoadState;
use crate::browser::state::{Dialog, PageState};
use crate::browser::{Page, WaitError};
use crate::deadline::Deadline;

/// Chromium's error for a load that did not become a document: a download, a 204, or a stop.
pub(super) const ABORTED: &str = "net::ERR_ABORTED";

/// A download that the browser announced has begun within this.
const DOWNLOAD_WAIT: Duration = Duration::from_secs(2);

/// Where a navigation ended.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Navigated {
    pub url: String,
    /// Of the document's response; `None` within one document, and for schemes that have none.
    pub status: Option<u16>,
    /// A dialog that the new document opened before it had loaded; it waits for its answer.
    pub dialog: Option<Dialog>,
    /// A file came instead of a document, and the page stayed where it was.
    pub download: Option<DownloadId>,
}

/// Which way through the history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Back,
    Forward,
}

/// What tells that the awaited document has taken over.
enum Arrival<'a> {
    Loader(&'a str),
    /// Whatever commits next.
    Any,
}

impl Page {
    /// Opens `url` in this page.
    ///
    /// # Errors
    /// `NavigationFailed` with the browser's reason, `NavigationTimeout`, and see [`PageError`].
    pub async fn navigate(&self, url: &str, wait_until: LoadState, deadline: Deadline) -> Result<Navigated, PageError> {
        self.revive();
        let committed = self.state().navigations_committed;
        let outcome = self.navigate_to(url, wait_until, deadline).await;
        self.let_go(committed, outcome)
    }

    /// A crashed page gets a new renderer by going somewhere.
    fn revive(&self) {
        self.state().crashed = false;
    }

    /// A navigation that nobody waits for any more and that has not even begun to show is stopped:
    /// Chromium answers no script while it waits for the new document.
    fn let_go(&self, committed: u64, outcome: Result<Navigated, PageError>) -> Result<Navigated, PageError> {
        let late = matches!(outcome, Err(PageError::NavigationTimeout { .. } | PageError::Timeout));
        if late && self.state().navigations_committed == committed {
            self.connection().post(Some(self.session()), "Page.stopLoading", json!({}));
        }
        outcome
    }

    async fn navigate_to(&self, url: &str, wait_until: LoadState, deadline: Deadline) -> Result<Navigated, PageError> {
        let mark = self.begin(deadline).await?;
        let work = async {
            let params = json!({ "url": url });
            self.command(self.session(), "Page.navigate", params, deadline).await
        };
        // The dialog may be the old document's, asking whether to leave.
        let answer = match self.race(mark, deadline, work).await {
            Ok(Raced::Done(answer)) => answer,
            Ok(Raced::Dialog(dialog)) => return Err(PageError::DialogOpen { dialog: Box::new(dialog) }),
            Err(error) => return Err(navigation_error(error, url)),
        };
        if let Some(reason) = answer["errorText"].as_str().filter(|reason| !reason.is_empty()) {
            let download = answer["isDownload"] == true;
            return self.failed(mark, reason, download, url, &answer["loaderId"], deadline).await;
        }
        match answer["loaderId"].as_str() {
            Some(loader_id) => self.arrive(mark, &Arrival::Loader(loader_id), wait_until, url, deadline).await,
            // Within the same document nothing is loaded; its address change is on its way.
            None => {
                let moved = |state: &PageState| {
                    (state.same_document_navigations > mark.same_document || state.url == url).then_some(())
                };
                let _ = self.wait(deadline.within(super::kit::PAUSE), moved).await;
                Ok(Navigated { url: self.url(), ..Navigated::default() })
            }
        }
    }

    /// Goes one entry through the history; without one it stays where it is.
    ///
    /// # Errors
    /// See [`Page::navigate`].
    pub async fn go(
        &self,
        direction: Direction,
        wait_until: LoadState,
        deadline: Deadline,
    ) -> Result<Navigated, PageError> {
        let mark = self.begin(deadline).await?;
        let history = self.command(self.session(), "Page.getNavigationHistory", json!({}), deadline);
        let history = self.race_undone(mark, deadline, history).await?;
        let here = history["currentIndex"].as_i64().unwrap_or(0);
        let there = match direction {
            Direction::Back => here - 1,
            Direction::Forward => here + 1,
        };
        let entry = usize::try_from(there).ok().and_then(|at| history["entries"].get(at));
        let Some(entry) = entry else {
            return Ok(Navigated { url: self.url(), ..Navigated::default() });
        };
        let url = entry["url"].as_str().unwrap_or_default().to_owned();
        let params = json!({ "entryId": entry["id"] });
        let going = self.command(self.session(), "Page.navigateToHistoryEntry", params, deadline);
        self.race_undone(mark, deadline, going).await.map_err(|error| navigation_error(error, &url))?;
        self.arrive(mark, &Arrival::Any, wait_until, &url, deadline).await
    }

    /// Loads the present address again.
    ///
    /// # Errors
    /// See [`Page::navigate`].
    pub async fn reload(&self, wait_until: LoadState, deadline: Deadline) -> Result<Navigated, PageError> {
        self.revive();
        let committed = self.state().navigations_committed;
        let outcome = self.reload_here(wait_until, deadline).await;
        self.let_go(committed, outcome)
    }

    async fn reload_here(&self, wait_until: LoadState, deadline: Deadline) -> Result<Navigated, PageError> {
        let mark = self.begin(deadline).await?;
        let url = self.url();
        let reloading = self.command(self.session(), "Page.reload", json!({}), deadline);
        self.race_undone(mark, deadline, reloading).await.map_err(|error| navigation_error(error, &url))?;
        self.arrive(mark, &Arrival::Any, wait_until, &url, deadline).await
    }

    /// Waits for the document and then for its load state. Follows where scripts lead meanwhile.
    async fn arrive(
        &self,
        mark: Mark,
        arrival: &Arrival<'_>,
        wait_until: LoadState,
        url: &str,
        deadline: Deadline,
    ) -> Result<Navigated, PageError> {
        let mut arrived = false;
        let mut sought: Option<String> = None;
        let outcome = |state: &PageState| {
            let current = state.main_frame().loader_id.as_deref();
            if let Some(navigating) = &state.navigating {
                sought = Some(navigating.clone());
            }
            let committed = state.navigations_committed > mark.committed;
            arrived |= match arrival {
                Arrival::Loader(loader_id) => current == Some(*loader_id) || is_later(state, current, loader_id),
                Arrival::Any => committed || state.same_document_navigations > mark.same_document,
            };
            let load = sought.as_deref().or(current).and_then(|loader_id| state.load(loader_id));
            if let Some(failed) = load.filter(|load| load.failure.is_some() && current != Some(&load.loader_id)) {
                if failed.download {
                    let download = state.downloads.since(mark.downloads).into_iter().next();
                    return Some(Ok(Navigated { url: state.url.clone(), download, ..Navigated::default() }));
                }
                let reason = failed.failure.as_deref().unwrap_or(ABORTED);
                return Some(Err(PageError::NavigationFailed { reason: reason.to_owned(), url: url.to_owned() }));
            }
            if let (true, Some(load)) = (arrived, current.and_then(|loader_id| state.load(loader_id))) {
                // The browser's own error page has taken the document's place.
                if let Some(reason) = load.failure.as_deref().filter(|_| matches!(arrival, Arrival::Any)) {
                    return Some(Err(PageError::NavigationFailed { reason: reason.to_owned(), url: url.to_owned() }));
                }
            }
            let dialog = state.dialog.clone().filter(|_| state.dialogs_opened > mark.dialogs());
            if let Some(dialog) = &dialog
                && !arrived
            {
                return Some(Err(PageError::DialogOpen { dialog: Box::new(dialog.clone()) }));
            }
            let within = matches!(arrival, Arrival::Any) && !committed;
            let ready = arrived && (within || wait_until.reached(state) || dialog.is_some());
            ready.then(|| {
                let status = current.and_then(|loader_id| state.load(loader_id)).and_then(|load| load.status);
                Ok(Navigated { url: state.url.clone(), status: status.filter(|_| !within), dialog, download: None })
            })
        };
        match self.wait(deadline, outcome).await {
            Ok(outcome) => outcome,
            Err(error) => Err(navigation_error(self.waited(error), url)),
        }
    }

    /// What became of a navigation that the browser refused or that came to no document.
    async fn failed(
        &self,
        mark: Mark,
        reason: &str,
        download: bool,
        url: &str,
        loader: &Value,
        deadline: Deadline,
    ) -> Result<Navigated, PageError> {
        let url = url.to_owned();
        if reason != ABORTED {
            // Its error page takes over; what comes next must not find it still on its way.
            if let Some(loader_id) = loader.as_str() {
                let shown =
                    |state: &PageState| (state.main_frame().loader_id.as_deref() == Some(loader_id)).then_some(());
                let _ = self.wait(deadline.within(super::kit::PAUSE), shown).await;
            }
            return Err(PageError::NavigationFailed { reason: reason.to_owned(), url });
        }
        let begun = |state: &PageState| state.downloads.since(mark.downloads).into_iter().next();
        let patience = if download { DOWNLOAD_WAIT } else { super::kit::PAUSE };
        match self.wait(deadline.within(patience), begun).await {
            Ok(download) => Ok(Navigated { url: self.url(), download: Some(download), ..Navigated::default() }),
            Err(WaitError::Passed) => Err(PageError::NavigationFailed { reason: reason.to_owned(), url }),
            Err(end) => Err(self.waited(end)),
        }
    }
}

/// Whether the present document is one that followed `loader_id`: a script there led on to it.
fn is_later(state: &PageState, current: Option<&str>, loader_id: &str) -> bool {
    let place = |wanted: &str| state.loads.iter().position(|load| load.loader_id == wanted);
    match (current.and_then(place), place(loader_id)) {
        (Some(current), Some(awaited)) => current > awaited,
        _ => false,
    }
}

fn navigation_error(error: PageError, url: &str) -> PageError {
    match error {
        PageError::Timeout => PageError::NavigationTimeout { url: url.to_owned() },
        // An address that does not parse is refused by the command itself.
        PageError::Internal { reason } if reason.contains("invalid URL") => {
            PageError::NavigationFailed { reason: "the address is not valid".into(), url: url.to_owned() }
        }
        other => other,
    }
}

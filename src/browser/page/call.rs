//! How an operation talks to its page and how it ends: by the answer, the deadline, a dialog, or the
//! end of the page, whichever comes first.

use std::borrow::Cow;
use std::time::Duration;

use base64::Engine as _;
use serde::Deserialize;
use serde_json::{Value, json};
use storage::ids::{DownloadId, PageId};

use super::error::PageError;
use super::navigation::ABORTED;
use crate::browser::state::{Dialog, Load, PageState};
use crate::browser::{CdpError, Page, SessionKey, WaitError};
use crate::deadline::Deadline;

/// A navigation that an action set off is waited for at most this long, until it commits.
pub(super) const COMMIT_WAIT: Duration = Duration::from_secs(5);
/// The collector is given this long to take in what has arrived.
pub(super) const COLLECT_WAIT: Duration = Duration::from_millis(200);
/// A window that the page asked for has to appear within this, or it was refused.
const WINDOW_WAIT: Duration = Duration::from_millis(500);
/// The page is given this long to show that it has handled input.
const ECHO_WAIT: Duration = Duration::from_millis(500);
/// One that was asked for has to begin within this, or nothing came of it.
const BEGIN_WAIT: Duration = Duration::from_millis(500);

/// What an action left behind.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ActionDone {
    /// A dialog that it opened and that now blocks the page.
    pub dialog: Option<Dialog>,
    /// A file chooser that it opened: whether it takes several files.
    pub file_chooser: Option<bool>,
    /// Whether the page shows another document since.
    pub navigated: bool,
    /// The text went into a password field: it must not be recorded.
    pub password_field: bool,
    /// Whether the field holds what was put into it: pages and lengths have their own will.
    pub value_matches: Option<bool>,
    /// Whether what was dragged with data was taken where it was let go; `None` when nobody can say.
    pub dropped: Option<bool>,
    /// Tabs that it opened; some may be gone already.
    pub popups: Vec<PageId>,
    /// Downloads that began with it.
    pub downloads: Vec<DownloadId>,
    /// Whether the tab closed over it.
    pub closed: bool,
}

/// How a piece of work ended that a dialog may interrupt.
pub(super) enum Raced<T> {
    Done(T),
    Dialog(Dialog),
}

/// Counters of a page's state at the moment an action begins.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    dialogs: u64,
    choosers: u64,
    requested: u64,
    pub(super) committed: u64,
    pub(super) same_document: u64,
    pub(super) downloads: u64,
    pub(super) popups: u64,
    windows: u64,
}

impl Page {
    /// Runs a command on `session` of this page.
    pub(super) async fn command(
        &self,
        session: &SessionKey,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Value, PageError> {
        let answer = self.connection().raw(Some(session), method, params, deadline).await;
        answer.map_err(|error| self.fault(&error, method))
    }

    /// As [`Page::command`] on the page's own session, for an answer whose `data` is base64.
    pub(super) async fn command_for_bytes(
        &self,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Vec<u8>, PageError> {
        #[derive(Deserialize)]
        struct Answer<'a> {
            #[serde(borrow)]
            data: Cow<'a, str>,
        }
        let answer = self.connection().raw_text(Some(self.session()), method, params, deadline).await;
        let answer = answer.map_err(|error| self.fault(&error, method))?;
        let answer: Answer<'_> =
            serde_json::from_str(answer.get()).map_err(|error| PageError::internal(error.to_string()))?;
        let bytes = base64::engine::general_purpose::STANDARD.decode(answer.data.as_bytes());
        bytes.map_err(|error| PageError::internal(error.to_string()))
    }

    /// What a failed command says about this page.
    pub(super) fn fault(&self, error: &CdpError, method: &str) -> PageError {
        match error {
            CdpError::Timeout => PageError::Timeout,
            CdpError::Closed => self.end().unwrap_or(PageError::PageClosed),
            // The target's own end may reach us after the refusal it causes.
            CdpError::Protocol { code: -32001, .. } => self.end().unwrap_or(PageError::PageClosed),
            CdpError::Protocol { message, .. } => {
                self.end().unwrap_or_else(|| PageError::internal(format!("{method}: {message}")))
            }
            CdpError::TooLarge | CdpError::Undecodable => PageError::internal(format!("{method}: {error}")),
        }
    }

    /// Why nothing can be done with the page any more.
    fn end(&self) -> Option<PageError> {
        if self.connection().closed().borrow().is_some() {
            return Some(PageError::BrowserGone);
        }
        let state = self.state();
        if state.crashed {
            return Some(PageError::PageCrashed);
        }
        state.closed.then_some(PageError::PageClosed)
    }

    pub(super) fn waited(&self, error: WaitError) -> PageError {
        match error {
            WaitError::Passed => PageError::Timeout,
            WaitError::Crashed => PageError::PageCrashed,
            WaitError::Closed => self.end().unwrap_or(PageError::PageClosed),
        }
    }

    /// Begins an operation: with everything known that has happened so far, so that its own effects
    /// can be told from earlier ones. Fails as [`Page::free`] does.
    pub(super) async fn begin(&self, deadline: Deadline) -> Result<Mark, PageError> {
        self.caught_up(deadline.within(COLLECT_WAIT)).await;
        self.free()
    }

    /// The counters as they are, whatever blocks the page.
    pub(super) fn mark(&self) -> Mark {
        Mark::of(&self.state())
    }

    /// Fails when the page cannot take an operation: a dialog is open, or it is gone.
    pub(super) fn free(&self) -> Result<Mark, PageError> {
        if let Some(end) = self.end() {
            return Err(end);
        }
        let state = self.state();
        match &state.dialog {
            Some(dialog) => Err(PageError::DialogOpen { dialog: Box::new(dialog.clone()) }),
            None => Ok(Mark::of(&state)),
        }
    }

    /// Runs `work` until it ends, a dialog opens, the page ends, or the deadline passes.
    pub(super) async fn race<T>(
        &self,
        mark: Mark,
        deadline: Deadline,
        work: impl Future<Output = Result<T, PageError>> + Send,
    ) -> Result<Raced<T>, PageError> {
        let opened = |state: &PageState| {
            let new = state.dialogs_opened > mark.dialogs;
            state.dialog.clone().filter(|_| new)
        };
        tokio::select! {
            biased;
            done = work => done.map(Raced::Done),
            dialog = self.wait(deadline, opened) => match dialog {
                Ok(dialog) => Ok(Raced::Dialog(dialog)),
                Err(error) => Err(self.waited(error)),
            },
        }
    }

    /// As [`Page::race`], for work that has not touched the page when a dialog interrupts it.
    pub(super) async fn race_undone<T>(
        &self,
        mark: Mark,
        deadline: Deadline,
        work: impl Future<Output = Result<T, PageError>> + Send,
    ) -> Result<T, PageError> {
        match self.race(mark, deadline, work).await? {
            Raced::Done(done) => Ok(done),
            Raced::Dialog(dialog) => Err(PageError::DialogOpen { dialog: Box::new(dialog) }),
        }
    }

    /// Runs the effect of an action and sees it through: until its navigation commits, if it set one
    /// off, or its dialog opens.
    pub(super) async fn effect(
        &self,
        mark: Mark,
        deadline: Deadline,
        work: impl Future<Output = Result<(), PageError>> + Send,
    ) -> Result<ActionDone, PageError> {
        let done = match self.race(mark, deadline, work).await {
            Ok(Raced::Done(())) => {
                self.caught_up(deadline.within(COLLECT_WAIT)).await;
                self.settle(mark, deadline).await?
            }
            Ok(Raced::Dialog(dialog)) => ActionDone { dialog: Some(dialog), ..ActionDone::default() },
            // A page that closes on a click has taken the click. A command may fail of it before its end
            // is known.
            Err(PageError::PageClosed) => {
                self.caught_up(deadline.within(COLLECT_WAIT)).await;
                ActionDone::default()
            }
            Err(error) => return Err(error),
        };
        self.windows_opened(mark, deadline).await;
        let file_chooser = self.chooser_opened(mark);
        let state = self.state();
        let (popups, downloads) = (state.popups.since(mark.popups), state.downloads.since(mark.downloads));
        Ok(ActionDone { popups, downloads, file_chooser, closed: state.closed, ..done })
    }

    /// Waits until the windows that the page asked for since `mark` are there.
    async fn windows_opened(&self, mark: Mark, deadline: Deadline) {
        let opened = |state: &PageState| {
            let asked = state.windows.count().saturating_sub(mark.windows);
            (state.popups.count().saturating_sub(mark.popups) >= asked).then_some(())
        };
        // A window that does not come was refused by the browser, and nothing is to be told of it.
        let _ = self.wait(deadline.within(WINDOW_WAIT), opened).await;
    }

    /// The file chooser that opened since `mark`: whether it takes several files.
    fn chooser_opened(&self, mark: Mark) -> Option<bool> {
        let state = self.state();
        let new = state.file_choosers_opened > mark.choosers;
        state.file_chooser.as_ref().filter(|_| new).map(|chooser| chooser.multiple)
    }

    /// Waits until the page's script thread has come past what input just gave it: what an event's
    /// handlers put off to the next turn, such as the submission of a form, has begun by then.
    pub(super) async fn echo(&self, deadline: Deadline) {
        let params = json!({ "expression": "0" });
        let asked = self.connection().raw(Some(self.session()), "Runtime.evaluate", params, deadline.within(ECHO_WAIT));
        // A page that does not answer is on its way elsewhere, or busy; both show in its state.
        let _ = asked.await;
    }

    async fn settle(&self, mark: Mark, deadline: Deadline) -> Result<ActionDone, PageError> {
        let settled = |state: &PageState| {
            let dialog = state.dialog.clone().filter(|_| state.dialogs_opened > mark.dialogs);
            let navigated = state.navigations_committed > mark.committed;
            let over = dialog.is_some()
                || navigated
                || state.navigations_requested == mark.requested
                || state.same_document_navigations > mark.same_document
                || state.downloads.count() > mark.downloads;
            over.then(|| ActionDone { dialog, navigated, ..ActionDone::default() })
        };
        let begun = |state: &PageState| settled(state).map(Some).or_else(|| state.navigating.as_ref().map(|_| None));
        match self.wait(deadline.within(BEGIN_WAIT), begun).await {
            Ok(Some(done)) => return Ok(done),
            Ok(None) => {}
            Err(_) => return Ok(ActionDone::default()),
        }
        let ended = |state: &PageState| settled(state).or_else(|| state.navigating.is_none().then(ActionDone::default));
        // The action is done whether or not its navigation commits in time.
        let done = self.wait(deadline.within(COMMIT_WAIT), ended).await.unwrap_or_default();
        if !done.navigated && done.dialog.is_none() {
            self.download_begun(mark, deadline).await;
        }
        Ok(done)
    }

    /// A navigation that got an answer and was given up is a download, which the browser may tell of
    /// only after that.
    async fn download_begun(&self, mark: Mark, deadline: Deadline) {
        let answered = |load: &Load| {
            let has_body = load.status.is_some_and(|status| status / 100 == 2 && !matches!(status, 204 | 205));
            has_body && load.failure.as_deref() == Some(ABORTED)
        };
        if !self.state().loads.back().is_some_and(answered) {
            return;
        }
        let begun = |state: &PageState| (state.downloads.count() > mark.downloads).then_some(());
        let _ = self.wait(deadline.within(BEGIN_WAIT), begun).await;
    }
}

impl Mark {
    pub(super) fn dialogs(self) -> u64 {
        self.dialogs
    }

    pub(super) fn of(state: &PageState) -> Self {
        Self {
            dialogs: state.dialogs_opened,
            choosers: state.file_choosers_opened,
            requested: state.navigations_requested,
            committed: state.navigations_committed,
            same_document: state.same_document_navigations,
            downloads: state.downloads.count(),
            popups: state.popups.count(),
            windows: state.windows.count(),
        }
    }
}

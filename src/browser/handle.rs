//! The handle on one page: its session, its state, and waiting for that state to change.
//!
//! What can be done with a page stands in [`super::page`]; this file holds what all of it needs. A
//! wait wakes on every change of the state and on nothing else.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::json;
use storage::ids::PageId;
use tokio::sync::watch;

use super::chromium::{CdpError, Connection, SessionKey};
use super::collect::Progress;
use super::state::{Armed, Dialog, PageState};
use crate::deadline::Deadline;

/// A page target. Cheap to clone; stays valid, and says so, after the page is gone.
#[derive(Clone)]
pub struct Page {
    shared: Arc<Shared>,
}

struct Shared {
    connection: Connection,
    progress: Progress,
    session: SessionKey,
    page_id: PageId,
    target_id: String,
    opener: Option<PageId>,
    state: Mutex<PageState>,
    version: watch::Sender<u64>,
    /// What operations remember about the page; only [`super::page`] looks inside.
    memory: super::page::Memory,
}

/// Why a wait ended without what it waited for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitError {
    /// The deadline came first.
    Passed,
    /// The page or the browser is gone.
    Closed,
    /// The page's renderer died.
    Crashed,
}

impl Page {
    pub(super) fn new(
        connection: Connection,
        progress: Progress,
        session: SessionKey,
        target_id: String,
        opener: Option<PageId>,
        state: PageState,
    ) -> Self {
        let page_id = PageId::from(format!("t-{}", storage::ids::random_suffix(6)));
        let (version, _) = watch::channel(0);
        let state = Mutex::new(state);
        Self {
            shared: Arc::new(Shared {
                connection,
                progress,
                session,
                page_id,
                target_id,
                opener,
                state,
                version,
                memory: super::page::Memory::default(),
            }),
        }
    }

    pub(crate) fn connection(&self) -> &Connection {
        &self.shared.connection
    }

    /// The session of the page itself; a frame in another process has its own in its `FrameState`.
    pub(crate) fn session(&self) -> &SessionKey {
        &self.shared.session
    }

    #[must_use]
    pub fn page_id(&self) -> &PageId {
        &self.shared.page_id
    }

    /// The page that opened this one.
    #[must_use]
    pub fn opener(&self) -> Option<&PageId> {
        self.shared.opener.as_ref()
    }

    /// Waits until the state knows of everything that Chromium had sent by now. Replies come ahead of
    /// the events before them, so whoever judges the state by a reply does this first.
    pub(super) async fn caught_up(&self, deadline: Deadline) {
        // Whoever waits in vain judges by the state as it is.
        let _ = self.shared.progress.caught_up(deadline).await;
    }

    pub(super) fn memory(&self) -> &super::page::Memory {
        &self.shared.memory
    }

    pub(crate) fn target_id(&self) -> &str {
        &self.shared.target_id
    }

    /// The state as it is now. Not to be held over an await.
    pub(crate) fn state(&self) -> MutexGuard<'_, PageState> {
        self.shared.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn url(&self) -> String {
        self.state().url.clone()
    }

    #[must_use]
    pub fn title(&self) -> String {
        self.state().title.clone()
    }

    /// The dialog that waits for an answer.
    #[must_use]
    pub fn dialog(&self) -> Option<Dialog> {
        self.state().dialog.clone()
    }

    /// Wakes everybody who waits. The collector calls it after its events are on their way to the
    /// log, so that whoever wakes finds them before its own.
    pub(super) fn changed(&self) {
        self.shared.version.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Waits until `predicate` finds what it looks for in the state.
    ///
    /// # Errors
    /// When the deadline passes, or when the page closes or crashes and `predicate` still finds
    /// nothing.
    pub(crate) async fn wait<T>(
        &self,
        deadline: Deadline,
        mut predicate: impl FnMut(&PageState) -> Option<T>,
    ) -> Result<T, WaitError> {
        let mut version = self.shared.version.subscribe();
        loop {
            version.borrow_and_update();
            {
                let state = self.state();
                if let Some(found) = predicate(&state) {
                    return Ok(found);
                }
                if state.closed {
                    return Err(WaitError::Closed);
                }
                if state.crashed {
                    return Err(WaitError::Crashed);
                }
            }
            match deadline.bound(version.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(WaitError::Closed),
                Err(_) => return Err(WaitError::Passed),
            }
        }
    }

    /// Answers the open dialog and waits until it is closed.
    ///
    /// # Errors
    /// `Protocol` when no dialog is open, else as for any command.
    pub async fn answer_dialog(
        &self,
        accept: bool,
        prompt_text: Option<&str>,
        deadline: Deadline,
    ) -> Result<(), CdpError> {
        let (session, number) = {
            let state = self.state();
            let session = state.dialog.as_ref().map_or_else(|| self.session().clone(), |dialog| dialog.session.clone());
            (session, state.dialogs_opened)
        };
        let mut params = json!({ "accept": accept });
        if let Some(text) = prompt_text {
            params["promptText"] = text.into();
        }
        self.connection().raw(Some(&session), "Page.handleJavaScriptDialog", params, deadline).await?;
        let closed = |state: &PageState| (state.dialog.is_none() || state.dialogs_opened > number).then_some(());
        match self.wait(deadline, closed).await {
            Ok(()) => Ok(()),
            Err(WaitError::Passed) => Err(CdpError::Timeout),
            Err(WaitError::Closed | WaitError::Crashed) => Err(CdpError::Closed),
        }
    }

    /// Answers the next dialog at the moment it opens, if that is before `armed.until`.
    pub fn arm_dialog(&self, armed: Armed) {
        self.state().armed = Some(armed);
    }
}

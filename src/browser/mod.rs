//! The browser: one Chromium per session, captured from its first moment.
//!
//! [`chromium`] talks to it, [`collect`] turns what it says into events and state, [`page`] acts on
//! its pages. This file is what the session layer sees: launch, pages, close.

pub mod chromium;
mod collect;
mod cookies;
pub mod downloads;
mod handle;
mod launch;
mod login;
pub mod page;
mod standing;
pub mod state;
#[cfg(test)]
mod tests;

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::json;
use storage::ids::PageId;
use tokio::sync::watch;

pub use chromium::flags::find_executable;
pub use chromium::process::Exit;
pub use chromium::{CdpError, Connection, SessionKey};
pub use handle::{Page, WaitError};
pub use launch::LaunchError;

use crate::blocklist::Blocklist;
use crate::deadline::Deadline;

/// Which response and request bodies are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BodyPolicy {
    /// Those of text-like media types.
    #[default]
    Text,
    All,
    None,
}

/// What of bodies is kept, and how much.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyRules {
    pub policy: BodyPolicy,
    /// One body.
    pub bytes_max: u64,
    /// All bodies of this browser.
    pub session_bytes_max: u64,
}

impl BodyRules {
    /// No bodies at all.
    pub const NONE: Self = Self { policy: BodyPolicy::None, bytes_max: 0, session_bytes_max: 0 };
}

/// How a browser is to be started.
#[derive(Debug, Clone)]
pub struct LaunchOptions {
    pub executable: PathBuf,
    pub headless: bool,
    /// Chromium's own sandbox; without it a page's exploit is this user's.
    pub sandbox: bool,
    /// Further arguments, after ours.
    pub arguments: Vec<String>,
    /// `None`: a fresh private one inside the run directory, removed at close.
    pub profile_directory: Option<PathBuf>,
    /// Exists, belongs to this session alone; profile, temporary files and downloads go here.
    pub run_directory: PathBuf,
    /// Width and height in pixels.
    pub window: Option<(u32, u32)>,
    pub bodies: BodyRules,
    /// What pages do not reach.
    pub blocklist: Blocklist,
    /// A larger download is stopped.
    pub download_bytes_max: u64,
}

/// One page, as lists show it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageInfo {
    pub page_id: PageId,
    pub url: String,
    pub title: String,
}

/// How a close went.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Closed {
    pub exit: Option<Exit>,
    /// Whether it had to be killed.
    pub killed: bool,
    /// Whether every process of the group is gone.
    pub group_gone: bool,
    /// Whether the private profile and the run directory's contents are gone.
    pub profile_removed: bool,
}

/// The pages there are, in order of creation, and which of them calls mean when they name none.
/// The collector adds and removes; the session layer reads and activates.
#[derive(Default)]
pub(crate) struct Roster {
    inner: Mutex<RosterInner>,
    changed: watch::Sender<u64>,
}

#[derive(Default)]
struct RosterInner {
    pages: Vec<Page>,
    active: Option<PageId>,
}

impl Roster {
    fn lock(&self) -> std::sync::MutexGuard<'_, RosterInner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn pages(&self) -> Vec<Page> {
        self.lock().pages.clone()
    }

    fn by_id(&self, page_id: &PageId) -> Option<Page> {
        self.lock().pages.iter().find(|page| page.page_id() == page_id).cloned()
    }

    fn by_target(&self, target_id: &str) -> Option<Page> {
        self.lock().pages.iter().find(|page| page.target_id() == target_id).cloned()
    }

    fn add(&self, page: Page) {
        let mut inner = self.lock();
        if inner.active.is_none() {
            inner.active = Some(page.page_id().clone());
        }
        inner.pages.push(page);
    }

    /// Takes a page out; when it was the active one, its opener or else the last page follows it.
    fn remove(&self, page_id: &PageId) {
        let mut inner = self.lock();
        let Some(position) = inner.pages.iter().position(|page| page.page_id() == page_id) else { return };
        let gone = inner.pages.remove(position);
        if inner.active.as_ref() == Some(page_id) {
            let opener = gone.opener().filter(|opener| inner.pages.iter().any(|page| page.page_id() == *opener));
            inner.active = opener.cloned().or_else(|| inner.pages.last().map(|page| page.page_id().clone()));
        }
    }

    fn notify(&self) {
        self.changed.send_modify(|version| *version = version.wrapping_add(1));
    }

    /// Waits until `find` finds what it looks for among the pages.
    async fn wait<T>(&self, deadline: Deadline, find: &(dyn Fn(&Roster) -> Option<T> + Sync)) -> Result<T, CdpError> {
        let mut changed = self.changed.subscribe();
        loop {
            changed.borrow_and_update();
            if let Some(found) = find(self) {
                return Ok(found);
            }
            match deadline.bound(changed.changed()).await {
                Ok(Ok(())) => {}
                Ok(Err(_)) => return Err(CdpError::Closed),
                Err(_) => return Err(CdpError::Timeout),
            }
        }
    }
}

/// A running Chromium. Cheap to clone; [`Browser::close`] ends it for all clones.
#[derive(Clone)]
pub struct Browser {
    inner: Arc<Inner>,
}

struct Inner {
    connection: Connection,
    version: String,
    process_id: u32,
    launch_ms: f64,
    roster: Arc<Roster>,
    downloads: Arc<downloads::Downloads>,
    progress: collect::Progress,
    standing: standing::Standing,
    process: chromium::process::Process,
    directories: launch::Directories,
    closing: watch::Sender<bool>,
}

impl Browser {
    /// Product and version, as Chromium reports them.
    #[must_use]
    pub fn version(&self) -> &str {
        &self.inner.version
    }

    /// Process id of Chromium, which leads its own process group.
    #[must_use]
    pub fn process_id(&self) -> u32 {
        self.inner.process_id
    }

    /// Time from start to the first page.
    #[must_use]
    pub fn launch_ms(&self) -> f64 {
        self.inner.launch_ms
    }

    #[must_use]
    pub fn connection(&self) -> &Connection {
        &self.inner.connection
    }

    #[must_use]
    pub fn downloads(&self) -> &downloads::Downloads {
        &self.inner.downloads
    }

    /// All pages, in order of creation.
    #[must_use]
    pub fn pages(&self) -> Vec<PageInfo> {
        let info = |page: Page| PageInfo { page_id: page.page_id().clone(), url: page.url(), title: page.title() };
        self.inner.roster.pages().into_iter().map(info).collect()
    }

    /// Brings the titles that [`Browser::pages`] shows up to date. Chromium does not tell of every
    /// change by itself; it answers this without asking the pages, so a busy one does not hold it up.
    ///
    /// # Errors
    /// When Chromium is gone or takes longer than the deadline.
    pub async fn refresh_titles(&self, deadline: Deadline) -> Result<(), CdpError> {
        let params = json!({ "filter": [{ "type": "page" }] });
        let answer = self.inner.connection.raw(None, "Target.getTargets", params, deadline).await?;
        for target in answer["targetInfos"].as_array().into_iter().flatten() {
            let text = |key: &str| target[key].as_str().unwrap_or_default();
            if let Some(page) = self.inner.roster.by_target(text("targetId")) {
                page.state().set_title(text("title"), text("url"));
                page.changed();
            }
        }
        Ok(())
    }

    /// The page that calls mean when they name none.
    #[must_use]
    pub fn active(&self) -> Option<PageId> {
        self.inner.roster.lock().active.clone()
    }

    /// Makes a page the active one; false when there is none of that id.
    pub fn activate(&self, page_id: &PageId) -> bool {
        let Some(page) = self.page(page_id) else { return false };
        self.inner.roster.lock().active = Some(page_id.clone());
        self.inner.connection.post(Some(page.session()), "Page.bringToFront", json!({}));
        true
    }

    #[must_use]
    pub fn page(&self, page_id: &PageId) -> Option<Page> {
        self.inner.roster.by_id(page_id)
    }

    /// Opens an empty page, which becomes the active one.
    ///
    /// # Errors
    /// When Chromium refuses, is gone, or takes longer than the deadline.
    pub async fn open_page(&self, deadline: Deadline) -> Result<Page, CdpError> {
        let params = json!({ "url": "about:blank" });
        let created = self.inner.connection.raw(None, "Target.createTarget", params, deadline).await?;
        let target_id = created["targetId"].as_str().unwrap_or_default().to_owned();
        let page = self.inner.roster.wait(deadline, &|roster| roster.by_target(&target_id)).await?;
        ready(&page, deadline).await?;
        self.activate(page.page_id());
        Ok(page)
    }

    /// Closes a page without asking it, and waits until it is gone. A page that is not there is gone.
    ///
    /// # Errors
    /// When Chromium refuses, is gone, or takes longer than the deadline.
    pub async fn close_page(&self, page_id: &PageId, deadline: Deadline) -> Result<(), CdpError> {
        let Some(page) = self.page(page_id) else { return Ok(()) };
        let params = json!({ "targetId": page.target_id() });
        self.inner.connection.raw(None, "Target.closeTarget", params, deadline).await?;
        match page.wait(deadline, |state| state.closed.then_some(())).await {
            Ok(()) | Err(WaitError::Closed | WaitError::Crashed) => Ok(()),
            Err(WaitError::Passed) => Err(CdpError::Timeout),
        }
    }

    /// Waits until everything that Chromium had sent by now is on its way to the log. A call that
    /// does this before it settles finds its own console lines and requests recorded before itself.
    ///
    /// # Errors
    /// `Passed` when the deadline comes first.
    pub async fn recorded(&self, deadline: Deadline) -> Result<(), crate::deadline::Passed> {
        self.inner.progress.caught_up(deadline).await
    }

    /// Waits until no body or download is being kept any more.
    ///
    /// # Errors
    /// `Passed` when the deadline comes first.
    pub async fn bodies_kept(&self, deadline: Deadline) -> Result<(), crate::deadline::Passed> {
        self.inner.progress.bodies_kept(deadline).await
    }

    /// Becomes `Some` when Chromium's process has ended, for whatever reason.
    #[must_use]
    pub fn gone(&self) -> watch::Receiver<Option<Exit>> {
        self.inner.process.exit()
    }

    /// Ends Chromium: by asking, then by signals to its process group; waits until the whole group
    /// is gone and its last events are on their way to the log; removes what it left on disk.
    pub async fn close(&self, reason: &str, deadline: Deadline) -> Closed {
        /// Share of the time for an orderly end; the rest is for signals and removal.
        const ASKING: Duration = Duration::from_secs(3);
        let inner = &self.inner;
        inner.closing.send_replace(true);
        tracing::debug!(process_id = inner.process_id, reason, "closing the browser");
        inner.connection.post(None, "Browser.close", json!({}));
        let asking = deadline.within(ASKING.min(deadline.budget() / 2));
        let ended = asking.bound(inner.process.ended()).await.is_ok();
        let group_gone = inner.process.end_group(deadline).await;
        inner.connection.end("the browser was closed");
        // The collector ends by itself once the pipe is closed; what it cannot finish in time it
        // leaves to its own bounds.
        let _ = deadline.bound(inner.progress.finished()).await;
        let profile_removed = inner.directories.remove().await;
        let exit = inner.process.exit().borrow().clone();
        Closed { exit, killed: !ended, group_gone, profile_removed }
    }
}

/// Waits until an empty page can be used: its document is there and so is its main world.
async fn ready(page: &Page, deadline: Deadline) -> Result<(), CdpError> {
    let usable = |state: &state::PageState| {
        let main = state.main_frame();
        (main.default_context.is_some() && main.reached("load")).then_some(())
    };
    page.wait(deadline, usable).await.map_err(|error| match error {
        WaitError::Passed => CdpError::Timeout,
        WaitError::Closed | WaitError::Crashed => CdpError::Closed,
    })
}

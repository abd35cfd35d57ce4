//! From what Chromium says to events in the log and to the state of pages.
//!
//! One task per browser takes events in order of arrival. A batch's drafts are handed to the journal
//! before anybody who waits for a page's state is woken: whoever acts on a state finds the events
//! behind it recorded before its own. Nothing here waits for Chromium; bodies are fetched beside.
//!
//! [`attach`] follows targets, [`page`] documents and frames, [`dialog`] what stops a page,
//! [`console`], [`render`] and [`issue`] console lines, [`network`] with [`sent`], [`flight`] and [`wire`] requests,
//! [`socket`] WebSockets, [`body`] and [`stream`] bodies, [`download`] downloads, [`outgoing`] what is on its way to
//! the log.

mod attach;
mod body;
mod console;
mod dialog;
mod download;
mod flight;
mod held;
mod issue;
mod network;
mod outgoing;
mod page;
mod render;
mod sent;
mod socket;
mod stream;
mod wire;

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use storage::artifact::ArtifactStore;
use storage::event::catalog::Gap;
use storage::event::{Context, Draft, Payload, Symbol};
use storage::ids::FrameId;
use tokio::sync::watch;

pub(super) use attach::attach_to_top_level;

use super::chromium::queue::{EventQueue, Incoming, Losses};
use super::chromium::{Connection, SessionKey, envelope};
use super::downloads::Downloads;
use super::handle::Page;
use super::standing::Standing;
use super::state::PageState;
use super::{BodyPolicy, BodyRules, Roster};
use crate::deadline::{Deadline, Passed};
use crate::journal::{Journal, Scope};
use crate::redact::Redactor;

/// Events handled between two hand-overs to the journal.
const BATCH_EVENTS: usize = 256;
/// How long a batch waits for room in the log before it is handed over all the same.
const ROOM_WAIT: Duration = Duration::from_millis(500);
/// How long nobody waits for room after such a wait was in vain.
const ROOM_PAUSE: Duration = Duration::from_secs(2);
/// How long bodies may still be worked on after the browser has ended.
const BODIES_WAIT: Duration = Duration::from_secs(10);

/// What the collector works with.
pub(super) struct Setting {
    pub connection: Connection,
    pub roster: Arc<Roster>,
    pub scope: Arc<Scope>,
    pub journal: Journal,
    pub artifacts: ArtifactStore,
    pub redactor: Arc<Redactor>,
    pub bodies: BodyRules,
    pub standing: Standing,
    pub downloads: Arc<Downloads>,
    pub download_directory: PathBuf,
    /// One download.
    pub download_bytes_max: u64,
    pub closing: watch::Receiver<bool>,
}

/// How far the collector is.
#[derive(Clone)]
pub(super) struct Progress {
    queue: Arc<EventQueue>,
    recorded: watch::Receiver<u64>,
    bodies: watch::Receiver<u64>,
}

impl Progress {
    /// Waits until every event that has arrived by now is on its way to the log.
    pub(super) async fn caught_up(&self, deadline: Deadline) -> Result<(), Passed> {
        let arrived = self.queue.arrived();
        let mut recorded = self.recorded.clone();
        while *recorded.borrow_and_update() < arrived {
            // Under a flood there is always another change; the deadline must not wait for a lull.
            if deadline.passed() {
                return Err(Passed);
            }
            if deadline.bound(recorded.changed()).await?.is_err() {
                // The collector has ended, after recording everything.
                return Ok(());
            }
        }
        Ok(())
    }

    /// Waits until no body is being fetched.
    pub(super) async fn bodies_kept(&self, deadline: Deadline) -> Result<(), Passed> {
        let mut bodies = self.bodies.clone();
        deadline.bound(bodies.wait_for(|pending| *pending == 0)).await.map(|_| ())
    }

    /// Waits until the collector has ended.
    pub(super) async fn finished(&self) {
        let mut recorded = self.recorded.clone();
        while recorded.changed().await.is_ok() {}
    }
}

/// Starts the collector. It ends when `queue` is closed and empty.
pub(super) fn start(setting: Setting, queue: Arc<EventQueue>) -> Progress {
    let (sender, recorded) = watch::channel(0);
    let fetcher = body::Fetcher::start(&setting);
    let progress = Progress { queue: queue.clone(), recorded, bodies: fetcher.pending() };
    let flights = flight::Flights::of_launch(setting.scope.clone());
    let collector = Collector {
        setting,
        progress: progress.clone(),
        targets: HashMap::new(),
        flights,
        running_downloads: HashMap::new(),
        fetcher,
        outgoing: Vec::new(),
        touched: Vec::new(),
        roster_touched: false,
        downloads_touched: false,
        losses: Losses::new(),
        wall_minus_monotonic: None,
    };
    tokio::spawn(run(collector, queue, sender));
    progress
}

async fn run(mut collector: Collector, queue: Arc<EventQueue>, recorded: watch::Sender<u64>) {
    let mut events = Vec::with_capacity(BATCH_EVENTS);
    let mut pause_until = tokio::time::Instant::now();
    while queue.receive(&mut events, &mut collector.losses, BATCH_EVENTS).await {
        if tokio::time::Instant::now() >= pause_until {
            let room = tokio::time::timeout(ROOM_WAIT, collector.setting.journal.room()).await;
            // The log is stuck. Pages' state must go on; the journal sheds and declares.
            if room.is_err() {
                pause_until = tokio::time::Instant::now() + ROOM_PAUSE;
            }
        }
        let last = events.last().map(|event| event.arrival);
        for event in events.drain(..) {
            collector.event(&event);
        }
        collector.flush().await;
        if let Some(last) = last {
            recorded.send_replace(last);
        }
    }
    collector.browser_gone();
    collector.flush().await;
    let Collector { fetcher, .. } = collector;
    let _ = Deadline::after(BODIES_WAIT).bound(fetcher.finish()).await;
    drop(recorded);
}

/// A target we are attached to.
struct Target {
    role: Role,
    /// The page it is, or belongs to; shared and service workers belong to none.
    page: Option<Page>,
    target_id: String,
    parent: Option<SessionKey>,
    /// Frames by execution context.
    contexts: HashMap<i64, FrameId>,
    refusals: held::Refusals,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Page,
    Frame,
    Worker(&'static str),
    Other,
}

struct Collector {
    setting: Setting,
    /// Its own, handed to the pages it opens.
    progress: Progress,
    targets: HashMap<SessionKey, Target>,
    flights: flight::Flights,
    running_downloads: HashMap<String, download::Running>,
    fetcher: body::Fetcher,
    outgoing: Vec<outgoing::Outgoing>,
    touched: Vec<Page>,
    roster_touched: bool,
    downloads_touched: bool,
    losses: Losses,
    /// Seconds between the browser's monotonic clock and the epoch.
    wall_minus_monotonic: Option<f64>,
}

/// `None`: the parameters were not what the method's name promises.
type Handled = Option<()>;

impl Collector {
    fn event(&mut self, event: &Incoming) {
        let raw = &*event.params;
        let handled = match (&*event.method, event.session.as_ref()) {
            ("Target.attachedToTarget", session) => self.attached(session, raw),
            ("Target.detachedFromTarget", _) => self.detached(raw),
            ("Target.targetInfoChanged", None) => self.target_changed(raw),
            ("Target.targetCrashed", None) => self.target_crashed(raw),
            ("Browser.downloadWillBegin", None) => self.download_started(raw),
            ("Browser.downloadProgress", None) => self.download_progress(raw),
            (method, Some(session)) => self.session_event(method, session, raw),
            // Methods of newer builds, and those that say nothing of use.
            (_, None) => Some(()),
        };
        if handled.is_none() {
            *self.losses.entry((event.method.to_string(), "undecodable")).or_default() += 1;
        }
    }

    fn session_event(&mut self, method: &str, session: &SessionKey, raw: &RawValue) -> Handled {
        let (domain, name) = method.split_once('.')?;
        match domain {
            "Runtime" | "Log" => self.console_event(name, domain, session, raw),
            "Network" => self.network_event(name, session, raw),
            "Page" => self.page_event(name, session, raw),
            "Audits" if name == "issueAdded" => self.issue_added(session, raw),
            "Fetch" if name == "requestPaused" => self.request_held(session, raw),
            "Input" if name == "dragIntercepted" => self.drag_begun(session, raw),
            _ => Some(()),
        }
    }

    fn page_of(&self, session: &SessionKey) -> Option<&Page> {
        self.targets.get(session)?.page.as_ref()
    }

    /// The context of an event of `session`.
    fn context(&self, session: &SessionKey) -> Context {
        self.page_context(self.page_of(session))
    }

    fn page_context(&self, page: Option<&Page>) -> Context {
        let page_id = page.map(|page| page.page_id().clone());
        Context { page_id, ..self.setting.scope.context() }
    }

    /// Changes the state of a page; whoever waits is woken after the batch is handed over.
    fn change(&mut self, page: &Page, change: impl FnOnce(&mut PageState)) {
        change(&mut page.state());
        if !self.touched.iter().any(|touched| touched.page_id() == page.page_id()) {
            self.touched.push(page.clone());
        }
    }

    fn record<P: Payload>(&mut self, context: &Context, payload: &P) {
        self.outgoing.push(outgoing::Outgoing::Ready(Draft::new(context, payload)));
    }

    fn declare_losses(&mut self) {
        let context = self.setting.scope.context();
        for ((what, reason), count) in std::mem::take(&mut self.losses) {
            self.record(&context, &Gap { what: Symbol::fold(&what), count, reason: Symbol::fold(reason) });
        }
    }

    /// Hands everything over to the journal, then wakes whoever waits.
    async fn flush(&mut self) {
        self.declare_losses();
        let drafts = outgoing::settle(&self.setting, std::mem::take(&mut self.outgoing)).await;
        if !drafts.is_empty() {
            self.setting.journal.record(drafts);
        }
        for page in self.touched.drain(..) {
            page.changed();
        }
        if std::mem::take(&mut self.roster_touched) {
            self.setting.roster.notify();
        }
        if std::mem::take(&mut self.downloads_touched) {
            self.setting.downloads.notify();
        }
    }
}

/// Parameters as a tolerant struct.
fn read<T: serde::de::DeserializeOwned>(raw: &RawValue) -> Option<T> {
    envelope::parse(raw)
}

/// Seconds since the epoch as microseconds.
fn micros(seconds: f64) -> i64 {
    // Saturates at the ends, which is what a nonsensical timestamp deserves.
    (seconds * 1_000_000.0) as i64
}

//! What is known about a page at this moment, as its events tell it.
//!
//! The collector alone writes here, in order of arrival; everybody else reads through
//! [`Page::state`](super::Page::state) or waits through [`Page::wait`](super::Page::wait). Every list
//! is bounded, because pages choose how long they grow.

use std::collections::{HashMap, VecDeque};
use std::time::Instant;

use storage::ids::{DownloadId, FrameId, PageId};

use super::chromium::SessionKey;
use super::page::Watched;

/// Frames remembered per page; a page with more keeps the first ones.
pub const FRAMES_MAX: usize = 4096;
/// Requests in flight remembered per page.
pub const IN_FLIGHT_MAX: usize = 16_384;
/// Document loads remembered per page.
pub const LOADS_MAX: usize = 32;
/// Popups and downloads of a page remembered by name; all of them are counted.
const LATEST_MAX: usize = 64;
/// Names of life-cycle moments remembered per document.
const LIFECYCLE_MAX: usize = 32;
/// Isolated worlds remembered per frame.
const WORLDS_MAX: usize = 64;

/// A JavaScript world of a frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExecutionContext {
    pub id: i64,
    pub unique_id: String,
    pub session: SessionKey,
}

/// One frame of a page, in whichever process it lives.
#[derive(Debug, Clone)]
pub struct FrameState {
    pub parent: Option<FrameId>,
    pub url: String,
    pub name: Option<String>,
    /// Where commands about this frame go: out-of-process frames have their own.
    pub session: SessionKey,
    pub loader_id: Option<String>,
    pub default_context: Option<ExecutionContext>,
    /// World name and context.
    pub isolated: Vec<(String, ExecutionContext)>,
    lifecycle: Vec<String>,
}

impl FrameState {
    pub(super) fn new(parent: Option<FrameId>, session: SessionKey) -> Self {
        Self {
            parent,
            url: String::new(),
            name: None,
            session,
            loader_id: None,
            default_context: None,
            isolated: Vec::new(),
            lifecycle: Vec::new(),
        }
    }

    /// Whether the current document has reached `name`: `commit`, `DOMContentLoaded`, `load`,
    /// `networkAlmostIdle`, `networkIdle`, ...
    #[must_use]
    pub fn reached(&self, name: &str) -> bool {
        self.lifecycle.iter().any(|reached| reached == name)
    }

    #[must_use]
    pub fn isolated_context(&self, world: &str) -> Option<&ExecutionContext> {
        self.isolated.iter().find(|(name, _)| name == world).map(|(_, context)| context)
    }

    /// Another document takes over, unless it is the one already there.
    pub(super) fn commit(&mut self, loader_id: &str) {
        if self.loader_id.as_deref() != Some(loader_id) {
            self.loader_id = Some(loader_id.to_owned());
            self.lifecycle.clear();
        }
    }

    pub(super) fn moment(&mut self, loader_id: &str, name: &str) {
        if name == "init" || name == "commit" || self.loader_id.is_none() {
            self.commit(loader_id);
        }
        // Two processes may report on one frame around a navigation; what the old document still
        // says about itself is of no use.
        let current = self.loader_id.as_deref() == Some(loader_id);
        if current && self.lifecycle.len() < LIFECYCLE_MAX && !self.reached(name) {
            self.lifecycle.push(name.to_owned());
        }
    }

    pub(super) fn context_created(&mut self, world: Option<&str>, context: ExecutionContext) {
        let Some(world) = world else {
            self.default_context = Some(context);
            return;
        };
        self.isolated.retain(|(name, _)| name != world);
        if self.isolated.len() < WORLDS_MAX {
            self.isolated.push((world.to_owned(), context));
        }
    }

    /// Forgets the contexts of `session` for which `gone` holds.
    pub(super) fn contexts_destroyed(&mut self, session: &SessionKey, gone: &dyn Fn(&ExecutionContext) -> bool) {
        let lost = |context: &ExecutionContext| context.session == *session && gone(context);
        if self.default_context.as_ref().is_some_and(lost) {
            self.default_context = None;
        }
        self.isolated.retain(|(_, context)| !lost(context));
    }
}

/// A dialog that waits for its answer; the page stands still meanwhile.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Dialog {
    /// `alert`, `confirm`, `prompt` or `beforeunload`.
    pub dialog_type: String,
    pub message: String,
    pub default_prompt: Option<String>,
    pub url: String,
    /// Where its answer goes.
    pub session: SessionKey,
}

/// An answer given beforehand to the next dialog.
#[derive(Debug, Clone)]
pub struct Armed {
    pub accept: bool,
    pub prompt_text: Option<String>,
    pub until: Instant,
}

/// A page asks for files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileChooser {
    pub frame_id: FrameId,
    /// Whether several files may be given.
    pub multiple: bool,
    /// The `input` element; absent when script opened the chooser.
    pub backend_node_id: Option<i64>,
    pub session: SessionKey,
}

/// How a document load went, as far as the network tells.
#[derive(Debug, Clone, Default)]
pub struct Load {
    pub loader_id: String,
    pub frame_id: Option<FrameId>,
    /// Status of the last response.
    pub status: Option<u16>,
    pub url: String,
    /// The browser's error name, when it failed: `net::ERR_CONNECTION_REFUSED`, ...
    pub failure: Option<String>,
    /// It became a download instead of a document.
    pub download: bool,
}

/// Things that happen to a page one after another: how many, and which the latest were.
#[derive(Debug, Clone)]
pub struct Latest<T> {
    count: u64,
    items: VecDeque<T>,
}

impl<T> Default for Latest<T> {
    fn default() -> Self {
        Self { count: 0, items: VecDeque::new() }
    }
}

impl<T: Clone> Latest<T> {
    pub(super) fn add(&mut self, item: T) {
        self.count += 1;
        if self.items.len() >= LATEST_MAX {
            self.items.pop_front();
        }
        self.items.push_back(item);
    }

    /// How many there have been.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Those after the first `count`, oldest first.
    #[must_use]
    pub fn since(&self, count: u64) -> Vec<T> {
        let new = usize::try_from(self.count.saturating_sub(count)).unwrap_or(usize::MAX).min(self.items.len());
        self.items.iter().skip(self.items.len() - new).cloned().collect()
    }
}

/// What a page wants in a new window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WindowAsked {
    /// For script to fill.
    Empty,
    Document,
}

/// A request that has not ended.
#[derive(Debug, Clone)]
pub struct InFlight {
    pub method: String,
    pub loader_id: String,
    pub frame_id: Option<FrameId>,
    pub since: Instant,
}

/// Everything known about a page.
#[derive(Debug)]
pub struct PageState {
    pub main_frame_id: FrameId,
    pub url: String,
    pub title: String,
    pub frames: HashMap<FrameId, FrameState>,
    pub dialog: Option<Dialog>,
    /// Dialogs opened since the page exists: tells a new one from the one before.
    pub dialogs_opened: u64,
    pub armed: Option<Armed>,
    pub file_chooser: Option<FileChooser>,
    pub file_choosers_opened: u64,
    /// What is being dragged, as the browser handed it over.
    pub drag: Option<serde_json::Value>,
    pub drags_begun: u64,
    /// Those that began in the page, or in a popup of its.
    pub downloads: Latest<DownloadId>,
    pub popups: Latest<PageId>,
    /// Windows that its script, links and forms asked for; each becomes a popup unless it is refused.
    /// Whether each was to show a document of its own, or be empty.
    pub windows: Latest<WindowAsked>,
    /// Navigations of the main frame that script, a link or a form asked for, or that began.
    pub navigations_requested: u64,
    /// Documents the main frame has committed.
    pub navigations_committed: u64,
    /// Address changes of the main frame within a document.
    pub same_document_navigations: u64,
    /// A navigation of the main frame is on its way: its loader.
    pub navigating: Option<String>,
    /// The operator's rule that refused its latest refused navigation.
    pub refused_by: Option<String>,
    /// What the call that runs waits for.
    pub watched: Option<Watched>,
    pub crashed: bool,
    pub closed: bool,
    pub in_flight: HashMap<String, InFlight>,
    /// When a request last began or ended.
    pub network_changed_at: Instant,
    pub loads: VecDeque<Load>,
}

impl PageState {
    pub(super) fn new(main_frame_id: FrameId, session: SessionKey, url: &str) -> Self {
        let mut main = FrameState::new(None, session);
        main.url = url.to_owned();
        Self {
            frames: HashMap::from([(main_frame_id.clone(), main)]),
            main_frame_id,
            url: url.to_owned(),
            title: String::new(),
            dialog: None,
            dialogs_opened: 0,
            armed: None,
            file_chooser: None,
            file_choosers_opened: 0,
            drag: None,
            drags_begun: 0,
            downloads: Latest::default(),
            popups: Latest::default(),
            windows: Latest::default(),
            navigations_requested: 0,
            navigations_committed: 0,
            same_document_navigations: 0,
            navigating: None,
            refused_by: None,
            watched: None,
            crashed: false,
            closed: false,
            in_flight: HashMap::new(),
            network_changed_at: Instant::now(),
            loads: VecDeque::new(),
        }
    }

    /// The main frame.
    ///
    /// # Panics
    /// Never: the main frame is put in by `new` and is not taken out while the page exists.
    #[must_use]
    pub fn main_frame(&self) -> &FrameState {
        self.frames.get(&self.main_frame_id).expect("a page has its main frame from the start")
    }

    #[must_use]
    pub fn frame(&self, frame_id: &FrameId) -> Option<&FrameState> {
        self.frames.get(frame_id)
    }

    /// The load that the browser names `loader_id`.
    #[must_use]
    pub fn load(&self, loader_id: &str) -> Option<&Load> {
        self.loads.iter().rev().find(|load| load.loader_id == loader_id)
    }

    /// Takes over what Chromium calls the title: the address, where a document has none.
    pub(super) fn set_title(&mut self, title: &str, url: &str) {
        let bare = url.split_once("://").map_or(url, |(_, bare)| bare);
        let untitled = title == url || title.trim_end_matches('/') == bare.trim_end_matches('/');
        self.title = if untitled { String::new() } else { title.to_owned() };
    }

    pub(super) fn load_mut(&mut self, loader_id: &str) -> &mut Load {
        if let Some(position) = self.loads.iter().position(|load| load.loader_id == loader_id) {
            return &mut self.loads[position];
        }
        if self.loads.len() >= LOADS_MAX {
            self.loads.pop_front();
        }
        self.loads.push_back(Load { loader_id: loader_id.to_owned(), ..Load::default() });
        let last = self.loads.len() - 1;
        &mut self.loads[last]
    }

    /// Puts `frame_id` in when there is room.
    pub(super) fn frame_entry(
        &mut self,
        frame_id: &FrameId,
        parent: Option<FrameId>,
        session: &SessionKey,
    ) -> Option<&mut FrameState> {
        if !self.frames.contains_key(frame_id) {
            if self.frames.len() >= FRAMES_MAX {
                return None;
            }
            self.frames.insert(frame_id.clone(), FrameState::new(parent, session.clone()));
        }
        self.frames.get_mut(frame_id)
    }

    /// Takes out `frame_id` and every frame below it, the main frame excepted.
    pub(super) fn remove_frame(&mut self, frame_id: &FrameId) {
        if *frame_id == self.main_frame_id {
            return;
        }
        let mut gone = vec![frame_id.clone()];
        while let Some(parent) = gone.pop() {
            let children = self.frames.iter().filter(|(_, frame)| frame.parent.as_ref() == Some(&parent));
            gone.extend(children.map(|(id, _)| id.clone()));
            self.frames.remove(&parent);
        }
    }

    pub(super) fn request_began(&mut self, request_id: &str, request: InFlight) {
        self.network_changed_at = request.since;
        if self.in_flight.len() < IN_FLIGHT_MAX {
            self.in_flight.insert(request_id.to_owned(), request);
        }
    }

    /// The head of a response has come.
    pub(super) fn response_began(&mut self, browser_id: &str, url: &str, status: u64, request_id: &str) {
        let Some(watched) = &mut self.watched else { return };
        if let Some(request) = self.in_flight.get(browser_id) {
            watched.response(request.since, (url, &request.method, status), request_id);
        }
    }

    /// The main frame shows another address.
    pub(super) fn set_address(&mut self, url: String) {
        if let Some(watched) = &mut self.watched {
            watched.address(&url);
        }
        self.url = url;
    }

    pub(super) fn request_ended(&mut self, request_id: &str) {
        if self.in_flight.remove(request_id).is_some() {
            self.network_changed_at = Instant::now();
        }
    }

    /// The main frame shows another document: what the one before still waited for is over.
    pub(super) fn main_committed(&mut self, loader_id: &str) {
        self.navigations_committed += 1;
        self.navigating = None;
        self.file_chooser = None;
        self.in_flight.retain(|_, request| request.loader_id == loader_id);
    }
}

//! Requests under way: from the browser's ids to ours, and what later events need of earlier ones.
//!
//! An id is given at the first sight of a request, by whatever event, and stays over redirects. No two
//! launches give the same one: a session's name may live more than once, and its requests are told
//! apart by their ids alone. With the id goes the call that was running then: all that is told of a
//! request carries the call that caused it, however much later it comes. Ended requests are remembered for a while, because headers may arrive
//! after the end, and because Chromium tells of its own error page under the id of the request that
//! failed.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use storage::ids::{FrameId, OperationId, RequestId, random_suffix};
use tokio::sync::mpsc;

use super::super::chromium::SessionKey;
use super::super::handle::Page;
use super::stream::Piece;
use crate::journal::Scope;

/// Requests that may be under way at one time; further ones are counted in a gap.
const FLIGHTS_MAX: usize = 65_536;
/// Ended requests that are remembered.
const ENDED_MAX: usize = 2048;
/// Length of what tells one launch's requests from another's.
const LAUNCH_MARK_LENGTH: usize = 6;

/// One request or WebSocket.
pub(super) struct Flight {
    pub id: RequestId,
    /// In order of first sight.
    number: u64,
    /// The call that caused it.
    pub operation_id: Option<OperationId>,
    pub session: SessionKey,
    pub page: Option<Page>,
    pub frame_id: Option<FrameId>,
    pub loader_id: String,
    pub url: String,
    pub resource_type: String,
    pub mime_type: String,
    /// Seconds on the browser's monotonic clock.
    pub started: f64,
    pub decoded_bytes: u64,
    pub redirects: u64,
    /// Whether `network.request` was recorded.
    pub announced: bool,
    pub from_memory: bool,
    /// Whether its response has no body by the rules of HTTP.
    pub bodiless: bool,
    /// Where the pieces of a body go that is read while it runs.
    pub pieces: Option<mpsc::Sender<Piece>>,
    /// Whether its body could never be fetched whole.
    pub is_event_stream: bool,
    /// Whether its body may yet be read while it runs.
    pub reads_along: bool,
    /// When the head of its response came, in seconds on the browser's monotonic clock.
    pub head_came: f64,
    /// Whether the head of a response was told.
    pub answered: bool,
    /// Goes on when its page does not.
    pub outlives_page: bool,
    pub is_websocket: bool,
    pub preflight: bool,
    pub method: String,
    ended: bool,
}

pub(super) struct Flights {
    scope: Arc<Scope>,
    launch_mark: String,
    by_browser_id: HashMap<String, Flight>,
    ended: VecDeque<String>,
    last_number: u64,
}

impl Flights {
    /// None yet, of a new launch.
    pub(super) fn of_launch(scope: Arc<Scope>) -> Self {
        Self {
            scope,
            launch_mark: random_suffix(LAUNCH_MARK_LENGTH),
            by_browser_id: HashMap::new(),
            ended: VecDeque::new(),
            last_number: 0,
        }
    }

    /// The flight of that id, made when it is new; `None` when there are too many.
    pub(super) fn entry(&mut self, browser_id: &str, session: &SessionKey, page: Option<&Page>) -> Option<&mut Flight> {
        if !self.by_browser_id.contains_key(browser_id) {
            if self.by_browser_id.len() >= FLIGHTS_MAX + ENDED_MAX {
                return None;
            }
            let flight = self.fresh(session, page);
            self.by_browser_id.insert(browser_id.to_owned(), flight);
        }
        self.by_browser_id.get_mut(browser_id)
    }

    /// The browser uses an id again for another request: it gets another of ours.
    pub(super) fn renew(&mut self, browser_id: &str, session: &SessionKey, page: Option<&Page>) {
        let used = self.by_browser_id.get(browser_id).is_some_and(|flight| flight.ended && flight.announced);
        if used {
            self.ended.retain(|id| id != browser_id);
            let flight = self.fresh(session, page);
            self.by_browser_id.insert(browser_id.to_owned(), flight);
        }
    }

    fn fresh(&mut self, session: &SessionKey, page: Option<&Page>) -> Flight {
        self.last_number += 1;
        Flight {
            id: RequestId::from(format!("r-{}-{}", self.launch_mark, self.last_number)),
            number: self.last_number,
            operation_id: self.scope.operation(),
            session: session.clone(),
            page: page.cloned(),
            frame_id: None,
            loader_id: String::new(),
            url: String::new(),
            resource_type: String::new(),
            mime_type: String::new(),
            started: 0.0,
            decoded_bytes: 0,
            redirects: 0,
            announced: false,
            from_memory: false,
            bodiless: false,
            pieces: None,
            is_event_stream: false,
            reads_along: true,
            head_came: 0.0,
            answered: false,
            outlives_page: false,
            is_websocket: false,
            preflight: false,
            method: String::new(),
            ended: false,
        }
    }

    pub(super) fn get_mut(&mut self, browser_id: &str) -> Option<&mut Flight> {
        self.by_browser_id.get_mut(browser_id)
    }

    /// How many responses are read while they run.
    pub(super) fn streams(&self) -> usize {
        self.by_browser_id.values().filter(|flight| flight.pieces.is_some()).count()
    }

    pub(super) fn id_of(&self, browser_id: &str) -> Option<RequestId> {
        self.by_browser_id.get(browser_id).map(|flight| flight.id.clone())
    }

    pub(super) fn has_ended(&self, browser_id: &str) -> bool {
        self.by_browser_id.get(browser_id).is_some_and(|flight| flight.ended)
    }

    /// The browser's ids of those under way that `fits`, in order of start.
    pub(super) fn under_way(&self, fits: impl Fn(&Flight) -> bool) -> Vec<String> {
        let live = self.by_browser_id.iter().filter(|(_, flight)| flight.announced && !flight.ended && fits(flight));
        let mut live: Vec<_> = live.map(|(browser_id, flight)| (flight.number, browser_id.clone())).collect();
        live.sort_unstable();
        live.into_iter().map(|(_, browser_id)| browser_id).collect()
    }

    /// Remembers an ended request for a while.
    pub(super) fn end(&mut self, browser_id: &str) {
        let Some(flight) = self.by_browser_id.get_mut(browser_id) else { return };
        if std::mem::replace(&mut flight.ended, true) {
            return;
        }
        flight.pieces = None;
        self.ended.push_back(browser_id.to_owned());
        if self.ended.len() > ENDED_MAX
            && let Some(oldest) = self.ended.pop_front()
        {
            self.by_browser_id.remove(&oldest);
        }
    }
}

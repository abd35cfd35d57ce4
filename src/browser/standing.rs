//! What holds for every target of a browser, those to come included.
//!
//! What must stay true: a target that appears while something is set either finds it set or is told.
//! One lock covers the list of targets and what they are told, so there is no moment in between.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde_json::{Map, Value, json};

use super::chromium::{Connection, SessionKey};
use crate::blocklist::Blocklist;

/// Shared by the browser's handle, which sets, and the collector, which follows targets.
#[derive(Clone, Default)]
pub(super) struct Standing(Arc<Mutex<Inner>>);

#[derive(Default)]
struct Inner {
    sessions: HashSet<SessionKey>,
    headers: Map<String, Value>,
    /// Requests of this session are answered with an empty document.
    blank: Option<SessionKey>,
    blocklist: Blocklist,
}

impl Standing {
    pub fn new(blocklist: Blocklist) -> Self {
        Self(Arc::new(Mutex::new(Inner { blocklist, ..Inner::default() })))
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A target is there, its network domain switched on and nothing sent yet.
    pub fn attached(&self, connection: &Connection, session: &SessionKey) {
        let mut inner = self.lock();
        inner.sessions.insert(session.clone());
        if !inner.headers.is_empty() {
            tell(connection, session, &inner.headers);
        }
    }

    /// Chromium asks before it sends what the operator's rules may refuse, and only then. A target that
    /// has requests of its own must have been told so before it runs.
    pub fn guard(&self, connection: &Connection, session: &SessionKey) {
        let suspects = self.lock().blocklist.suspects();
        if !suspects.is_empty() {
            let patterns: Vec<Value> = suspects.into_iter().map(|pattern| json!({ "urlPattern": pattern })).collect();
            connection.post(Some(session), "Fetch.enable", json!({ "patterns": patterns }));
        }
    }

    /// The rule that refuses `url`.
    pub fn refuses(&self, url: &str) -> Option<String> {
        let blocklist = self.lock().blocklist.clone();
        blocklist.refuses(url).map(str::to_owned)
    }

    pub fn detached(&self, session: &SessionKey) {
        self.lock().sessions.remove(session);
    }

    /// From now on every request carries `headers`, and none of those set before.
    pub fn set_headers(&self, connection: &Connection, headers: Map<String, Value>) {
        let mut inner = self.lock();
        inner.headers = headers;
        for session in &inner.sessions {
            tell(connection, session, &inner.headers);
        }
    }

    /// Whether requests of one target never reach the network: `Some` from now on, `None` no longer.
    pub fn set_blank(&self, session: Option<SessionKey>) {
        self.lock().blank = session;
    }

    pub fn is_blank(&self, session: &SessionKey) -> bool {
        self.lock().blank.as_ref() == Some(session)
    }
}

fn tell(connection: &Connection, session: &SessionKey, headers: &Map<String, Value>) {
    connection.post(Some(session), "Network.setExtraHTTPHeaders", json!({ "headers": headers }));
}

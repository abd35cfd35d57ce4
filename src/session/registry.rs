//! Which sessions there are. A name, a place under the cap and a profile stay reserved from before
//! the launch until the browser's whole process group is gone.

use std::collections::{HashMap, VecDeque};
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use storage::ids::{Owner, SessionId};

use super::{Session, State};
use crate::fault::{Code, Fault};

/// How many ended sessions are remembered, so that a late call learns what became of its session.
const ENDED_MAX: usize = 1_024;

/// The sessions of one gateway.
#[derive(Default)]
pub struct Registry {
    inner: Mutex<Inner>,
    sessions_max: usize,
}

#[derive(Default)]
struct Inner {
    sessions: HashMap<SessionId, Arc<Session>>,
    /// In order of their launch, for listing.
    order: Vec<SessionId>,
    ended: VecDeque<Ended>,
    shutting_down: bool,
}

struct Ended {
    id: SessionId,
    owner: Owner,
    crashed: bool,
}

impl Registry {
    #[must_use]
    pub fn new(sessions_max: usize) -> Self {
        Self { inner: Mutex::default(), sessions_max }
    }

    #[must_use]
    pub fn sessions_max(&self) -> usize {
        self.sessions_max
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the session's name, one place and its profile.
    ///
    /// # Errors
    /// `SESSION_ALREADY_EXISTS`, `SESSION_LIMIT_REACHED`, `PROFILE_DIR_IN_USE`, `SERVER_SHUTTING_DOWN`.
    pub fn reserve(&self, session: &Arc<Session>) -> Result<(), Fault> {
        let mut inner = self.lock();
        if inner.shutting_down {
            return Err(Fault::new(Code::ServerShuttingDown));
        }
        if inner.sessions.contains_key(&session.id) {
            return Err(Fault::new(Code::SessionAlreadyExists).with("session_id", session.id.as_str()));
        }
        if inner.sessions.len() >= self.sessions_max {
            let live = inner.sessions.len();
            return Err(Fault::new(Code::SessionLimitReached).with("limit", self.sessions_max).with("live", live));
        }
        let profile = session.options.profile_directory.as_deref();
        let taken = |path: &Path| inner.sessions.values().any(|s| s.options.profile_directory.as_deref() == Some(path));
        if profile.is_some_and(taken) {
            return Err(Fault::new(Code::ProfileDirInUse));
        }
        inner.ended.retain(|ended| ended.id != session.id);
        inner.order.push(session.id.clone());
        inner.sessions.insert(session.id.clone(), Arc::clone(session));
        Ok(())
    }

    /// Gives the reservation back. Only once nothing of the session is left.
    pub fn release(&self, session: &Session, crashed: bool) {
        let mut inner = self.lock();
        inner.sessions.remove(&session.id);
        inner.order.retain(|id| *id != session.id);
        if inner.ended.len() >= ENDED_MAX {
            inner.ended.pop_front();
        }
        inner.ended.push_back(Ended { id: session.id.clone(), owner: session.owner.clone(), crashed });
    }

    /// The session called `id`, in whatever state. Another owner's behaves like none.
    ///
    /// # Errors
    /// `SESSION_DEAD` or `SESSION_CLOSED` for one that ended lately, `SESSION_NOT_FOUND` otherwise.
    pub fn find(&self, owner: &Owner, id: &str) -> Result<Arc<Session>, Fault> {
        let inner = self.lock();
        if let Some(session) = inner.sessions.get(&SessionId::from(id)).filter(|s| s.owner == *owner) {
            return Ok(Arc::clone(session));
        }
        let ended = inner.ended.iter().rev().find(|e| e.id.as_str() == id && e.owner == *owner);
        let code = match ended {
            Some(ended) if ended.crashed => Code::SessionDead,
            Some(_) => Code::SessionClosed,
            None => Code::SessionNotFound,
        };
        Err(Fault::new(code).with("session_id", id))
    }

    /// Every session of `owner` in order of launch, those being launched or closed included.
    #[must_use]
    pub fn list(&self, owner: &Owner) -> Vec<Arc<Session>> {
        let inner = self.lock();
        let sessions = inner.order.iter().filter_map(|id| inner.sessions.get(id));
        sessions.filter(|s| s.owner == *owner).cloned().collect()
    }

    /// Every session there is, of all owners.
    #[must_use]
    pub fn all(&self) -> Vec<Arc<Session>> {
        self.lock().sessions.values().cloned().collect()
    }

    /// Places taken, of all owners.
    #[must_use]
    pub fn reserved(&self) -> usize {
        self.lock().sessions.len()
    }

    /// Sessions that serve calls, of all owners.
    #[must_use]
    pub fn live(&self) -> usize {
        self.lock().sessions.values().filter(|s| s.state() == State::Live).count()
    }

    /// Lets no session in any more; returns those that are left to close.
    #[must_use]
    pub fn shut(&self) -> Vec<Arc<Session>> {
        let mut inner = self.lock();
        inner.shutting_down = true;
        inner.sessions.values().cloned().collect()
    }

    #[must_use]
    pub fn is_shutting_down(&self) -> bool {
        self.lock().shutting_down
    }
}

//! Sessions: one isolated browser each, with its own process group, profile, lane and history.
//!
//! [`registry`] reserves names and capacity and finds sessions; [`open`] starts a browser and follows
//! it until it is gone; [`lane`] orders a session's calls.

pub mod lane;
pub mod open;
pub mod registry;
mod restore;

use std::path::PathBuf;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use storage::ids::{InstanceId, Owner, SessionId, random_uuid};
use storage::time::now_micros;
use tokio::sync::watch;

use crate::auth_state::AuthState;
use crate::browser::Browser;
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::journal::Scope;
use lane::Lane;

/// Where a session is in its life; it only moves forward.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum State {
    Launching,
    Live,
    /// Its browser went away by itself; the process group is being cleared.
    Crashed,
    Closing,
    /// Nothing of it is left but its history.
    Closed,
}

impl State {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            State::Launching => "launching",
            State::Live => "live",
            State::Crashed => "crashed",
            State::Closing => "closing",
            State::Closed => "closed",
        }
    }
}

/// What a session was asked to be.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    pub slug: String,
    pub channel: String,
    pub incognito: bool,
    pub headless: bool,
    pub disable_evaluate: bool,
    pub vault_enabled: bool,
    /// Extra Chromium arguments, already checked against the refused ones.
    pub arguments: Vec<String>,
    pub executable: Option<PathBuf>,
    /// A profile to keep; `None` for a private one that is removed at the end.
    pub profile_directory: Option<PathBuf>,
    pub window: Option<(u32, u32)>,
    /// What the contract calls the way of keeping state.
    pub persistence_mode: &'static str,
    /// A saved login that the session starts with.
    pub auth_state: Option<Arc<AuthState>>,
}

/// One session.
pub struct Session {
    pub id: SessionId,
    pub instance_id: InstanceId,
    pub owner: Owner,
    pub options: SessionOptions,
    pub lane: Lane,
    pub scope: Arc<Scope>,
    pub created_at_micros: i64,
    /// How long it may go unused; `None` for as long as the gateway runs.
    pub idle_ttl: Option<Duration>,
    created: Instant,
    last_used_micros: AtomicI64,
    navigations: AtomicU64,
    state: watch::Sender<State>,
    browser: OnceLock<Browser>,
}

impl Session {
    #[must_use]
    pub fn new(id: SessionId, owner: Owner, options: SessionOptions, config: &Config) -> Arc<Self> {
        let instance_id = InstanceId::from(random_uuid());
        let now = now_micros();
        Arc::new(Self {
            scope: Scope::new(id.clone(), instance_id.clone(), owner.clone()),
            id,
            instance_id,
            owner,
            options,
            lane: Lane::new(config.lane_depth),
            created_at_micros: now,
            idle_ttl: config.idle_ttl,
            created: Instant::now(),
            last_used_micros: AtomicI64::new(now),
            navigations: AtomicU64::new(0),
            state: watch::Sender::new(State::Launching),
            browser: OnceLock::new(),
        })
    }

    #[must_use]
    pub fn state(&self) -> State {
        *self.state.borrow()
    }

    /// Follows the state.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<State> {
        self.state.subscribe()
    }

    /// Moves forward to `next`; returns whether this call moved it.
    fn advance(&self, next: State) -> bool {
        self.state.send_if_modified(|state| {
            let forward = next > *state;
            if forward {
                *state = next;
            }
            forward
        })
    }

    /// The browser of a live session.
    ///
    /// # Errors
    /// The fault that says in which other state the session is.
    pub fn browser(&self) -> Result<&Browser, Fault> {
        let code = match self.state() {
            State::Live => match self.browser.get() {
                Some(browser) => return Ok(browser),
                None => Code::SessionNotReady,
            },
            State::Launching => Code::SessionNotReady,
            State::Crashed => Code::SessionDead,
            State::Closing => Code::SessionClosing,
            State::Closed => Code::SessionClosed,
        };
        let fault = Fault::new(code).with("session_id", self.id.as_str());
        Err(if code == Code::SessionNotReady { fault.with("state", self.state().as_str()) } else { fault })
    }

    /// The browser in any state, for looking at without acting.
    #[must_use]
    pub fn browser_if_any(&self) -> Option<&Browser> {
        self.browser.get()
    }

    pub fn touch(&self) {
        self.last_used_micros.store(now_micros(), Ordering::Relaxed);
    }

    #[must_use]
    pub fn last_used_micros(&self) -> i64 {
        self.last_used_micros.load(Ordering::Relaxed)
    }

    pub fn count_navigation(&self) {
        self.navigations.fetch_add(1, Ordering::Relaxed);
    }

    #[must_use]
    pub fn navigations(&self) -> u64 {
        self.navigations.load(Ordering::Relaxed)
    }

    fn lived_ms(&self) -> f64 {
        self.created.elapsed().as_secs_f64() * 1000.0
    }
}

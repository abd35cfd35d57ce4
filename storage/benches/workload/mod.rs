//! Events as a gateway with a few busy sessions records them, made from a seed: the same every time.
//!
//! Several sessions live at once and take turns in short runs; each lives through calls, pages with their
//! requests, console lines, polling, a few errors and rare things, then ends and another begins. So the
//! number of sessions grows with the log. Identifiers have the entropy of real ones, texts and headers
//! vary as on real pages. One event is about 400 bytes in its canonical form, about 600 as JSON.

mod network;
mod random;
mod session;
mod words;

use std::collections::VecDeque;

use storage::event::{Context, Draft, Payload};

use random::Random;
use session::Session;

/// Sessions alive at any time.
const SESSIONS: usize = 8;
/// Events that one session records in a row, at most.
const RUN_EVENTS_MAX: u64 = 12;
/// The beginning of the imagined time: 2026-11-01, in microseconds.
const BEGIN_MICROS: i64 = 1_793_491_200_000_000;
/// From one event to the next, at most.
const PAUSE_MICROS_MAX: u64 = 1_000;
/// The owner of most sessions; the others belong to another one.
pub const OWNER: &str = "local";

pub struct Workload {
    random: Random,
    sessions: Vec<Session>,
    /// Who records, and how many events more before somebody else does.
    turn: (usize, u64),
    micros: i64,
}

impl Workload {
    pub fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let sessions = (0..SESSIONS).map(|_| Session::new(random.number())).collect();
        Self { random, sessions, turn: (0, 0), micros: BEGIN_MICROS }
    }

    /// When the last event taken happened, for a log whose clock is to agree with it.
    #[allow(dead_code)]
    pub fn micros(&self) -> i64 {
        self.micros
    }

    /// The next events, in the order in which they are recorded.
    pub fn take(&mut self, count: usize) -> Vec<Draft> {
        (0..count).map(|_| self.draft()).collect()
    }

    fn draft(&mut self) -> Draft {
        if self.turn.1 == 0 {
            self.turn = (self.random.within(0, SESSIONS as u64) as usize, self.random.within(1, RUN_EVENTS_MAX + 1));
        }
        self.turn.1 -= 1;
        self.micros += self.random.within(1, PAUSE_MICROS_MAX) as i64;
        loop {
            let session = &mut self.sessions[self.turn.0];
            if let Some(draft) = session.next(self.micros) {
                return draft;
            }
            *session = Session::new(self.random.number());
        }
    }
}

/// What a session is about to record.
struct Script {
    random: Random,
    drafts: VecDeque<Draft>,
    micros: i64,
}

impl Script {
    fn record<P: Payload>(&mut self, context: &Context, payload: &P) {
        self.drafts.push_back(Draft::new(context, payload));
    }

    /// The context with the browser's own time, a little later each time.
    fn now(&mut self, context: &Context) -> Context {
        self.micros += self.random.within(20, 900) as i64;
        Context { browser_time_micros: Some(self.micros), ..context.clone() }
    }
}

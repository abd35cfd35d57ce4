//! What to do next with the segments of the log: a pure function of what they hold, the policy and
//! the time.
//!
//! What must stay true: the oldest goes first; noise goes before evidence; audit events go by their own
//! age alone and only with whole segments, from the beginning of the log; the segment being written is
//! never touched.

use std::collections::BTreeSet;

use crate::event::Class;
use crate::upkeep::policy::Policy;

/// What one segment holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holding {
    pub number: u32,
    /// How often it was rewritten.
    pub generation: u16,
    /// Not being written any more.
    pub sealed: bool,
    pub bytes: u64,
    /// By class, in order of their weight; `None` where it is not known.
    pub kept: Option<[Kept; 3]>,
}

/// Events of one class in one segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Kept {
    pub count: u64,
    /// The latest time among them; meaningless when there are none.
    pub last_micros: i64,
}

impl Kept {
    pub const NOTHING: Kept = Kept { count: 0, last_micros: i64::MIN };

    pub fn add(&mut self, micros: i64) {
        self.count += 1;
        self.last_micros = self.last_micros.max(micros);
    }
}

/// Why events go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reason {
    Age,
    Bytes,
    Erased,
}

impl Reason {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Reason::Age => "age",
            Reason::Bytes => "bytes",
            Reason::Erased => "erased",
        }
    }
}

/// One thing to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// The segments before this one go: everything in them has had its time.
    DropBefore(u32),
    /// A segment is written anew without the events of these classes: this one and what weighs less.
    Remove { number: u32, class: Class, reason: Reason },
    /// A segment is written anew as it is, in less room.
    Compress(u32),
}

/// The first thing to do, or that there is nothing. Segments in `skipped` stay as they are.
#[must_use]
pub fn next(holdings: &[Holding], policy: &Policy, now_micros: i64, skipped: &BTreeSet<u32>) -> Option<Step> {
    let may_go = |holding: &&Holding| holding.sealed && !skipped.contains(&holding.number);
    let open = || holdings.iter().filter(may_go);
    let state = |holding: &Holding, class: Class| State::of(holding, class, policy, now_micros);
    let gone = |holding: &&Holding| may_go(holding) && CLASSES.iter().all(|class| state(holding, *class).is_spent());
    if let Some(last) = holdings.iter().take_while(gone).last() {
        return Some(Step::DropBefore(last.number + 1));
    }
    for holding in open() {
        let lesser_are_spent =
            |class: Class| CLASSES.iter().take_while(|c| **c <= class).all(|c| state(holding, *c).is_spent());
        let class = REMOVABLE
            .into_iter()
            .rev()
            .find(|class| state(holding, *class) == State::Expired && lesser_are_spent(*class));
        if let Some(class) = class {
            return Some(Step::Remove { number: holding.number, class, reason: Reason::Age });
        }
    }
    if let Some(holding) = open().find(|holding| holding.generation == 0) {
        return Some(Step::Compress(holding.number));
    }
    if !is_over(holdings, policy) {
        return None;
    }
    REMOVABLE.into_iter().find_map(|class| {
        let holding = open().find(|holding| matches!(state(holding, class), State::Expired | State::Young))?;
        Some(Step::Remove { number: holding.number, class, reason: Reason::Bytes })
    })
}

/// How a class of events stands in a segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// There are none.
    Absent,
    /// All have had their time.
    Expired,
    Young,
    /// Nobody has read the segment yet.
    Unknown,
}

impl State {
    fn of(holding: &Holding, class: Class, policy: &Policy, now_micros: i64) -> Self {
        let Some(kept) = holding.kept.map(|kept| kept[class as usize]) else { return State::Unknown };
        let cutoff = policy.cutoff_micros(class, now_micros);
        match kept.count {
            0 => State::Absent,
            _ if cutoff.is_some_and(|cutoff| kept.last_micros < cutoff) => State::Expired,
            _ => State::Young,
        }
    }

    fn is_spent(self) -> bool {
        matches!(self, State::Absent | State::Expired)
    }
}

/// Whether the log is larger than it may be.
#[must_use]
pub fn is_over(holdings: &[Holding], policy: &Policy) -> bool {
    let bytes: u64 = holdings.iter().map(|holding| holding.bytes).sum();
    policy.log_bytes_max.is_some_and(|bytes_max| bytes > bytes_max)
}

const CLASSES: [Class; 3] = [Class::Telemetry, Class::Evidence, Class::Audit];
const REMOVABLE: [Class; 2] = [Class::Telemetry, Class::Evidence];

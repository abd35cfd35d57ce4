//! What verifying found, in words and numbers for people and programs.

use super::super::key::PublicKey;

/// Findings beyond this many are counted and not kept.
const FINDINGS_MAX: usize = 1000;

/// Findings that may lie between two parts of one.
const NEARBY: usize = 4;

/// What is wrong. The words are stable: programs may go by them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Problem {
    /// Bytes differ from what was written.
    Damaged,
    /// A header says something else than what follows it.
    Misdescribed,
    /// Numbers are missing.
    Missing,
    /// Numbers come twice or in another order.
    Misplaced,
    /// Events are not those that the hash chain was made of.
    Changed,
    /// The log ends before a place that it is known to have reached.
    Cut,
    /// Events are gone, or are back, and no record of a removal says so.
    Removal,
    /// The high-water mark is missing or says something else than the log.
    Mark,
    /// A line of the checkpoints is not what was signed, or not in its place.
    Checkpoint,
    /// Signed by a key that nothing vouches for, or the public key was changed.
    Key,
    /// The trail is not the one that was signed.
    Trail,
    /// Nothing of the log is signed, or not its end where it should be.
    Unsigned,
    /// What an event names as kept beside the log is not there, or is something else.
    Artifact,
}

impl Problem {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Problem::Damaged => "damaged",
            Problem::Misdescribed => "misdescribed",
            Problem::Missing => "missing",
            Problem::Misplaced => "misplaced",
            Problem::Changed => "changed",
            Problem::Cut => "cut",
            Problem::Removal => "removal",
            Problem::Mark => "mark",
            Problem::Checkpoint => "checkpoint",
            Problem::Key => "key",
            Problem::Trail => "trail",
            Problem::Unsigned => "unsigned",
            Problem::Artifact => "artifact",
        }
    }

    /// How much it says about the events themselves: 0 the most. A removal that is not on record may
    /// follow from a change of the record.
    fn remoteness(self) -> u8 {
        use Problem::{Artifact, Changed, Cut, Damaged, Misplaced, Missing, Removal};
        match self {
            Damaged | Missing | Misplaced | Changed | Cut => 0,
            Removal | Artifact => 1,
            _ => 2,
        }
    }

    /// Whether it is about the events, and not about what speaks of them.
    #[must_use]
    pub fn is_of_events(self) -> bool {
        self.remoteness() < 2
    }
}

/// One thing that is wrong, and the events it concerns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finding {
    pub problem: Problem,
    pub first_seq: u64,
    pub last_seq: u64,
    /// Whether `first_seq` is known to be the first event concerned; else it lies in the range.
    pub exact: bool,
    /// The file.
    pub place: String,
    pub detail: String,
}

impl Finding {
    /// Whether its numbers are those of events that it is about. What is wrong with the mark, a key or a
    /// checkpoint is wrong with no event.
    #[must_use]
    pub fn concerns_events(&self) -> bool {
        let beside = matches!(self.problem, Problem::Mark | Problem::Checkpoint | Problem::Key | Problem::Trail);
        self.first_seq > 0 && !beside
    }
}

/// What is vouched for from outside of the directory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Pinned {
    pub key: bool,
    /// Saved checkpoints that were held against the log.
    pub checkpoints: u64,
    /// The last event that any of them covers, 0 when there is none.
    pub reach_seq: u64,
}

/// How verifying went.
#[derive(Debug, Clone, Default)]
pub struct Report {
    pub log_id: String,
    /// Numbers retained and read; `last_seq` is below `first_seq` when there are none.
    pub first_seq: u64,
    pub last_seq: u64,
    pub events: u64,
    /// Events that were removed on record, within the segments retained.
    pub removed: u64,
    pub segments: u64,
    pub stored_bytes: u64,
    pub raw_bytes: u64,
    pub seconds: f64,
    /// Checkpoints whose signature and place hold.
    pub checkpoints: u64,
    /// The keys that signed them, in order.
    pub keys: Vec<PublicKey>,
    pub pinned: Pinned,
    /// The last event that a checkpoint covers which agrees with the log.
    pub signed_through: u64,
    pub signed_at_micros: Option<i64>,
    /// Events that no checkpoint covered when the run that recorded them ended: a later run signed them,
    /// as it found them.
    pub signed_late: u64,
    /// Those of them whose run was closed in order, which signs everything unless it cannot.
    pub signed_late_closed: u64,
    /// The log ends in order, and the checkpoint of that is missing.
    pub unsigned_close: bool,
    /// Removed events whose record no checkpoint covers yet.
    pub removed_unsigned: u64,
    /// Events whose removal is announced and not done yet.
    pub removed_pending: u64,
    /// Artifacts whose content is what their names say, and their size; `None` when they were not looked at.
    pub artifacts: Option<(u64, u64)>,
    /// Times that an event names one.
    pub artifacts_named: u64,
    /// Bytes of a checkpoint that a crash cut short.
    pub torn_checkpoint_bytes: u64,
    /// In order of the events concerned.
    pub findings: Vec<Finding>,
    pub findings_left_out: u64,
}

impl Report {
    #[must_use]
    pub fn is_sound(&self) -> bool {
        self.findings.is_empty()
    }

    /// The first event that is not as it was recorded, as far as that is known; when all events are,
    /// the first one about which something else is wrong. `None` when nothing is wrong with any.
    #[must_use]
    pub fn first_bad(&self) -> Option<&Finding> {
        let events_first = |finding: &&Finding| (finding.problem.remoteness(), finding.first_seq, !finding.exact);
        self.findings.iter().filter(|finding| finding.concerns_events()).min_by_key(events_first)
    }

    /// Events at the end that no signature covers.
    #[must_use]
    pub fn unsigned_events(&self) -> u64 {
        (self.last_seq + 1).saturating_sub(self.first_seq.max(self.signed_through + 1))
    }
}

/// Collects findings up to a bound.
#[derive(Debug, Clone, Default)]
pub(super) struct Findings {
    kept: Vec<Finding>,
    left_out: u64,
}

impl Findings {
    pub fn add(&mut self, problem: Problem, (first_seq, last_seq): (u64, u64), place: &str, detail: impl Into<String>) {
        self.put(Finding {
            problem,
            first_seq,
            last_seq: last_seq.max(first_seq),
            exact: false,
            place: place.to_owned(),
            detail: detail.into(),
        });
    }

    pub fn put(&mut self, finding: Finding) {
        // What goes on right behind the last finding of its kind is the same thing still.
        let alike = |kept: &&mut Finding| {
            kept.problem == finding.problem
                && kept.detail == finding.detail
                && kept.last_seq + 1 == finding.first_seq
                && (kept.problem != Problem::Artifact || kept.place == finding.place)
        };
        if let Some(kept) = self.kept.iter_mut().rev().take(NEARBY).find(alike) {
            kept.last_seq = finding.last_seq;
            return;
        }
        if self.kept.len() < FINDINGS_MAX {
            self.kept.push(finding);
        } else {
            self.left_out += 1;
        }
    }

    pub fn end(mut self) -> (Vec<Finding>, u64) {
        self.kept.sort_by_key(|finding| (finding.first_seq, !finding.exact, finding.last_seq));
        (self.kept, self.left_out)
    }
}

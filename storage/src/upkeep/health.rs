//! How upkeep stands, for status and metrics.

use crate::upkeep::plan::{Holding, Reason};
use crate::upkeep::rewriting::Outcome;

/// What was done in the life of this process, and how the log lay when it was last looked at.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// Events removed by age and by bytes, each by class.
    pub removed: [[u64; 3]; 2],
    /// Segments written anew or dropped, what they took before and what they take now.
    pub segments_done: u64,
    pub bytes_before: u64,
    pub bytes_after: u64,
    pub artifacts_removed: u64,
    pub artifact_bytes_removed: u64,
    /// Segments of the log, and their bytes: of those as first written and of those written anew.
    pub segments: u64,
    pub plain_bytes: u64,
    pub compressed_bytes: u64,
}

impl Counts {
    pub(super) fn add(&mut self, reason: Reason, outcome: &Outcome) {
        let row = if reason == Reason::Bytes { 1 } else { 0 };
        for (sum, removed) in self.removed[row].iter_mut().zip(outcome.removed) {
            *sum += removed;
        }
        self.segments_done += 1;
        self.bytes_before += outcome.bytes_before;
        self.bytes_after += outcome.bytes_after;
    }

    pub(super) fn look(&mut self, holdings: &[Holding]) {
        let bytes = |compressed: bool| {
            let alike = holdings.iter().filter(|holding| (holding.generation > 0) == compressed);
            alike.map(|holding| holding.bytes).sum()
        };
        self.segments = holdings.len() as u64;
        (self.plain_bytes, self.compressed_bytes) = (bytes(false), bytes(true));
    }
}

/// How upkeep stands.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct UpkeepHealth {
    pub running: bool,
    /// When the latest pass ended, and why it failed when it did.
    pub last_pass_micros: Option<i64>,
    pub last_error: Option<String>,
    /// Whether the log is larger than it may be, with nothing left that may go.
    pub over_quota: bool,
    pub counts: Counts,
}

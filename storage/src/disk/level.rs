//! How low a disk is: a pure function of its room, the watermarks and the level before.
//!
//! What must stay true: more room never gives a worse level; a level is left only when there is a
//! margin more than it took to come into it, so that a disk at a watermark does not flap.

use crate::limits::{DISK_MARGIN_PERCENT, DISK_RECKONED_BYTES_MAX};

/// What the room left on the disk allows, the most first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum DiskLevel {
    Ok,
    /// Everything goes on; somebody should know.
    Warn,
    /// No new sessions; those that live go on.
    RefuseSessions,
    /// Nothing new is begun or kept; what runs ends in order, and reading goes on.
    ReadOnly,
}

impl DiskLevel {
    pub const ALL: [Self; 4] = [Self::Ok, Self::Warn, Self::RefuseSessions, Self::ReadOnly];

    /// As events and status show it.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::RefuseSessions => "refuse_sessions",
            Self::ReadOnly => "read_only",
        }
    }
}

/// Below how many percent of free room each level begins; 0 switches it off.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watermarks {
    pub warn_percent: u64,
    pub refuse_percent: u64,
    pub read_only_percent: u64,
}

/// Room on a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Space {
    /// What this process may still use.
    pub free_bytes: u64,
    pub total_bytes: u64,
}

impl Space {
    /// A percentage of the file system, which counts as no larger than is reckoned with: on a large
    /// disk a few percent are far more than any work in progress needs.
    #[must_use]
    pub fn percent_bytes(&self, percent: u64) -> u64 {
        self.total_bytes.min(DISK_RECKONED_BYTES_MAX) / 100 * percent
    }
}

impl Watermarks {
    /// The level of a disk that was at `before` and has `space` now.
    #[must_use]
    pub fn level(&self, before: DiskLevel, space: &Space) -> DiskLevel {
        let margin = space.percent_bytes(DISK_MARGIN_PERCENT);
        let holds = |level: &DiskLevel| {
            let percent = match level {
                DiskLevel::Ok => return true,
                DiskLevel::Warn => self.warn_percent,
                DiskLevel::RefuseSessions => self.refuse_percent,
                DiskLevel::ReadOnly => self.read_only_percent,
            };
            let margin = if before >= *level { margin } else { 0 };
            percent > 0 && space.free_bytes < space.percent_bytes(percent) + margin
        };
        DiskLevel::ALL.into_iter().rev().find(holds).unwrap_or(DiskLevel::Ok)
    }
}

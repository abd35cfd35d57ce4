//! How long events are kept, and how large the log may become.

use std::time::Duration;

use crate::event::Class;
use crate::limits::SEGMENT_AGE_SECONDS_MAX;

/// What the operator wants kept. `None`: for ever, or of any size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Policy {
    pub telemetry: Option<Duration>,
    pub evidence: Option<Duration>,
    pub audit: Option<Duration>,
    /// All segments together. Noise goes for it first, then evidence; audit events never do.
    pub log_bytes_max: Option<u64>,
}

impl Policy {
    /// Nothing is ever removed.
    pub const KEEP_ALL: Policy = Policy { telemetry: None, evidence: None, audit: None, log_bytes_max: None };

    /// How long events of a class are kept.
    #[must_use]
    pub fn age(&self, class: Class) -> Option<Duration> {
        match class {
            Class::Telemetry => self.telemetry,
            Class::Evidence => self.evidence,
            Class::Audit => self.audit,
        }
    }

    /// Events of a class from before this moment have had their time; `None` when they never have.
    #[must_use]
    pub fn cutoff_micros(&self, class: Class, now_micros: i64) -> Option<i64> {
        let age = i64::try_from(self.age(class)?.as_micros()).unwrap_or(i64::MAX);
        Some(now_micros.saturating_sub(age))
    }

    /// Whether a class of less weight would outlive one of more, pair by pair.
    #[must_use]
    pub fn inversions(&self) -> Vec<(Class, Class)> {
        let pairs = [(Class::Telemetry, Class::Evidence), (Class::Evidence, Class::Audit)];
        let longer = |(lesser, greater): &(Class, Class)| match (self.age(*lesser), self.age(*greater)) {
            (Some(lesser), Some(greater)) => lesser > greater,
            (None, Some(_)) => true,
            (_, None) => false,
        };
        pairs.into_iter().filter(longer).collect()
    }

    /// A segment is sealed when its first event is older than this, full or not: what is in one
    /// segment goes together, so this is how late a removal can be.
    #[must_use]
    pub fn segment_age(&self) -> Option<Duration> {
        let shortest = [self.telemetry, self.evidence, self.audit].into_iter().flatten().min()?;
        Some((shortest / 8).min(Duration::from_secs(SEGMENT_AGE_SECONDS_MAX)))
    }
}

//! Time comes in through a door: a wall clock that tests can hold still.
//!
//! Order in the log is by sequence number, never by these values.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

/// A wall clock. Microseconds since 1970-01-01T00:00:00Z, negative before it.
pub trait Clock: Send + Sync {
    fn now_micros(&self) -> i64;
}

/// The operating system's clock.
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_micros(&self) -> i64 {
        now_micros()
    }
}

/// A clock that moves only when told to: for tests.
#[derive(Default)]
pub struct ManualClock(AtomicI64);

impl ManualClock {
    pub fn set_micros(&self, micros: i64) {
        self.0.store(micros, Ordering::SeqCst);
    }
}

impl Clock for ManualClock {
    fn now_micros(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }
}

/// The system clock's microseconds since the epoch.
#[must_use]
pub fn now_micros() -> i64 {
    match SystemTime::now().duration_since(UNIX_EPOCH) {
        Ok(since) => i64::try_from(since.as_micros()).unwrap_or(i64::MAX),
        Err(before) => -i64::try_from(before.duration().as_micros()).unwrap_or(i64::MAX),
    }
}

/// RFC 3339 in UTC with microseconds, for example `2026-11-30T12:00:00.000001Z`.
#[must_use]
pub fn rfc3339(micros: i64) -> String {
    chrono::DateTime::from_timestamp_micros(micros)
        .map(|moment| moment.to_rfc3339_opts(chrono::SecondsFormat::Micros, true))
        .unwrap_or_else(|| micros.to_string())
}

/// Microseconds since the epoch of an RFC 3339 text, or `None` when it is not one.
#[must_use]
pub fn parse_rfc3339(text: &str) -> Option<i64> {
    chrono::DateTime::parse_from_rfc3339(text).ok().map(|moment| moment.timestamp_micros())
}

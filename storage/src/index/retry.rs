//! When to try again what failed: soon at first, then more and more seldom, and for as long as it takes.

use std::time::{Duration, Instant};

/// After a failure the files are tried again after this, then twice as much, up to the maximum.
const RETRY_MILLIS_MIN: u64 = 1_000;
const RETRY_MILLIS_MAX: u64 = 60_000;

/// When to try again, and how long to wait the next time.
pub struct Retry {
    at: Option<Instant>,
    wait: Duration,
}

impl Default for Retry {
    fn default() -> Self {
        Self { at: None, wait: Duration::from_millis(RETRY_MILLIS_MIN) }
    }
}

impl Retry {
    pub fn later(&mut self) {
        self.at = Some(Instant::now() + self.wait);
        self.wait = (self.wait * 2).min(Duration::from_millis(RETRY_MILLIS_MAX));
    }

    pub fn is_due(&self) -> bool {
        self.at.is_some_and(|at| at <= Instant::now())
    }

    pub fn at(&self) -> Option<Instant> {
        self.at
    }
}

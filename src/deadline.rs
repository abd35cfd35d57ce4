//! One absolute moment by which an operation must have ended, queue time included.

use std::time::{Duration, Instant};

/// An absolute deadline. Copy it down through every step; each step takes what is left.
#[derive(Debug, Clone, Copy)]
pub struct Deadline {
    at: Instant,
    budget: Duration,
}

impl Deadline {
    #[must_use]
    pub fn after(budget: Duration) -> Self {
        Self { at: Instant::now() + budget, budget }
    }

    /// What is left, zero once it has passed.
    #[must_use]
    pub fn remaining(&self) -> Duration {
        self.at.saturating_duration_since(Instant::now())
    }

    #[must_use]
    pub fn passed(&self) -> bool {
        self.remaining().is_zero()
    }

    /// The whole time that was given.
    #[must_use]
    pub fn budget(&self) -> Duration {
        self.budget
    }

    /// The earlier of this and `limit` from now.
    #[must_use]
    pub fn within(&self, limit: Duration) -> Self {
        let at = self.at.min(Instant::now() + limit);
        Self { at, budget: limit.min(self.budget) }
    }

    /// The same moment and `grace` more.
    #[must_use]
    pub fn extended(&self, grace: Duration) -> Self {
        Self { at: self.at + grace, budget: self.budget + grace }
    }

    /// Runs `work` until the deadline.
    ///
    /// # Errors
    /// `Passed` when the deadline came first; `work` is dropped then.
    pub async fn bound<F: Future>(&self, work: F) -> Result<F::Output, Passed> {
        tokio::time::timeout_at(self.at.into(), work).await.map_err(|_| Passed)
    }
}

/// The deadline came first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Passed;

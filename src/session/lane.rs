//! A session's lane: its calls run one at a time, in order of arrival, and only so many may wait.
//!
//! A call holds its place as a [`Turn`]; dropping it, by whatever way the call ends, a panic
//! included, lets the next one in. Waiting ends at the call's own deadline, when the client takes
//! the call back, or when the session closes; in all three the browser was never touched.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

use crate::deadline::Deadline;

/// The lane of one session.
#[derive(Debug, Clone)]
pub struct Lane {
    // Tokio's semaphore is fair: permits go out in order of asking.
    turn: Arc<Semaphore>,
    waiting: Arc<AtomicUsize>,
    depth_max: usize,
    closing: CancellationToken,
}

/// The right to use the session's browser, until dropped.
#[derive(Debug)]
pub struct Turn {
    _permit: OwnedSemaphorePermit,
}

/// Why a call did not get its turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoTurn {
    /// `depth_max` calls wait already.
    Full,
    /// The deadline passed in the queue.
    Late,
    /// The client took the call back.
    Cancelled,
    /// The session began to close.
    Closing,
}

/// Counts one waiting call, however its wait ends.
struct Waiting<'a>(&'a AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::AcqRel);
    }
}

impl Lane {
    #[must_use]
    pub fn new(depth_max: usize) -> Self {
        Self {
            turn: Arc::new(Semaphore::new(1)),
            waiting: Arc::default(),
            depth_max,
            closing: CancellationToken::new(),
        }
    }

    /// How many calls wait.
    #[must_use]
    pub fn depth(&self) -> usize {
        self.waiting.load(Ordering::Acquire)
    }

    /// Whether a call has its turn.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        self.turn.available_permits() == 0
    }

    /// Lets nobody in any more; whoever waits is told so.
    pub fn close(&self) {
        self.closing.cancel();
    }

    /// Fires when the session begins to close.
    #[must_use]
    pub fn closing(&self) -> &CancellationToken {
        &self.closing
    }

    /// Waits for the turn.
    ///
    /// # Errors
    /// [`NoTurn`], and then the browser was not touched.
    pub async fn enter(&self, deadline: Deadline, cancelled: &CancellationToken) -> Result<Turn, NoTurn> {
        if self.closing.is_cancelled() {
            return Err(NoTurn::Closing);
        }
        if let Ok(permit) = Arc::clone(&self.turn).try_acquire_owned() {
            return Ok(Turn { _permit: permit });
        }
        if self.waiting.fetch_add(1, Ordering::AcqRel) >= self.depth_max {
            self.waiting.fetch_sub(1, Ordering::AcqRel);
            return Err(NoTurn::Full);
        }
        let _waiting = Waiting(&self.waiting);
        tokio::select! {
            biased;
            () = cancelled.cancelled() => Err(NoTurn::Cancelled),
            () = self.closing.cancelled() => Err(NoTurn::Closing),
            turn = deadline.bound(Arc::clone(&self.turn).acquire_owned()) => match turn {
                Ok(Ok(permit)) => Ok(Turn { _permit: permit }),
                // The semaphore is never closed; were it, the session would be closing.
                Ok(Err(_)) => Err(NoTurn::Closing),
                Err(_) => Err(NoTurn::Late),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn soon() -> Deadline {
        Deadline::after(Duration::from_secs(5))
    }

    #[tokio::test]
    async fn a_full_lane_answers_at_once_and_a_late_call_never_enters() {
        let lane = Lane::new(1);
        let quiet = CancellationToken::new();
        let turn = lane.enter(soon(), &quiet).await.expect("an empty lane lets one in");
        let waiting = {
            let lane = lane.clone();
            tokio::spawn(async move {
                lane.enter(Deadline::after(Duration::from_millis(30)), &CancellationToken::new()).await.err()
            })
        };
        while lane.depth() == 0 {
            tokio::task::yield_now().await;
        }
        assert_eq!(lane.enter(soon(), &quiet).await.err(), Some(NoTurn::Full));
        assert_eq!(waiting.await.expect("the waiting call ends"), Some(NoTurn::Late));
        assert_eq!(lane.depth(), 0, "a call that gave up no longer counts");
        drop(turn);
        assert!(lane.enter(soon(), &quiet).await.is_ok());
    }

    #[tokio::test]
    async fn closing_turns_away_those_who_wait() {
        let lane = Lane::new(4);
        let turn = lane.enter(soon(), &CancellationToken::new()).await.expect("an empty lane lets one in");
        let waiting = {
            let lane = lane.clone();
            tokio::spawn(async move { lane.enter(soon(), &CancellationToken::new()).await.err() })
        };
        while lane.depth() == 0 {
            tokio::task::yield_now().await;
        }
        lane.close();
        assert_eq!(waiting.await.expect("the waiting call ends"), Some(NoTurn::Closing));
        drop(turn);
    }
}

//! What becomes of old events: sealed segments are compressed, what has had its time is removed, what
//! must be forgotten is erased.
//!
//! Read in this order: [`policy`] (what the operator wants), [`class`] (what an event counts as),
//! [`contents`] and [`inventory`] (what segments hold), [`plan`] (what to do next), [`rewriting`] (how it
//! is done so that the process may die on any line), [`keeper`] (one pass), [`erase`]
//! and [`subject`] (what must be forgotten).
//!
//! A thread of its own makes a pass at start, when a segment was sealed, and every ten minutes. What
//! must stay true: no number is lost from the chain, a removal is on record before it is done, and
//! nobody who appends or reads waits for upkeep.

mod announced;
mod class;
mod contents;
mod erase;
mod files;
mod health;
mod inventory;
mod keeper;
mod plan;
mod policy;
mod rewriting;
mod subject;
mod tally;
#[cfg(test)]
mod tests;
mod unnamed;

use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::sync::watch;

use crate::StorageError;
use crate::limits::UPKEEP_PERIOD_SECONDS;
use crate::time::Clock;

pub(crate) use announced::{Pending, pending};
pub(crate) use contents::{Handle, handle, handle_text};
pub use erase::{Erased, Erasure, erase};
pub use health::{Counts, UpkeepHealth};
pub use keeper::{Keeper, Parts};
pub use policy::Policy;
pub use subject::Subject;

/// How much less of the processor upkeep gets than others who want it, as nice(1) counts.
const NICENESS: i32 = 10;

/// A handle on the thread. Cheap to clone; the last one dropped ends it.
#[derive(Clone)]
pub struct Upkeep {
    shared: Arc<Mutex<UpkeepHealth>>,
    stop: Arc<watch::Sender<bool>>,
    thread: Arc<Mutex<Option<JoinHandle<()>>>>,
}

impl Upkeep {
    /// Begins to look after the log; returns at once. `directory` is upkeep's own, `<data>/upkeep`.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn start(directory: &Path, parts: Parts) -> Result<Self, StorageError> {
        let shared = Arc::new(Mutex::new(UpkeepHealth { running: true, ..UpkeepHealth::default() }));
        let stop = watch::Sender::new(false);
        let segments = parts.log.reader().watch_segments();
        let clock = parts.clock.clone();
        let keeper = Keeper::open(directory, parts)?;
        let rounds = Rounds { keeper, segments, clock, stop: stop.subscribe(), shared: shared.clone() };
        let thread = std::thread::Builder::new()
            .name("upkeep".into())
            .spawn(move || rounds.run())
            .map_err(StorageError::io("start a thread for", directory))?;
        Ok(Self { shared, stop: Arc::new(stop), thread: Arc::new(Mutex::new(Some(thread))) })
    }

    #[must_use]
    pub fn health(&self) -> UpkeepHealth {
        lock(&self.shared).clone()
    }

    /// Ends after the step being taken. Blocks for that.
    pub fn close(&self) {
        self.stop.send_replace(true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // A panic there has ended upkeep, which its health shows.
            let _ = thread.join();
        }
    }
}

/// The passes, one after the other.
struct Rounds {
    keeper: Keeper,
    segments: Option<watch::Receiver<u64>>,
    clock: Arc<dyn Clock>,
    stop: watch::Receiver<bool>,
    shared: Arc<Mutex<UpkeepHealth>>,
}

/// Also after a panic, it is known that nobody looks after the log any more.
struct Ended(Arc<Mutex<UpkeepHealth>>);

impl Drop for Ended {
    fn drop(&mut self) {
        lock(&self.0).running = false;
    }
}

impl Rounds {
    fn run(mut self) {
        let _ended = Ended(self.shared.clone());
        be_nice();
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else { return };
        let mut swept = false;
        loop {
            if let Some(segments) = &mut self.segments {
                segments.mark_unchanged();
            }
            let stop = self.stop.clone();
            let stops = move || *stop.borrow() || stop.has_changed().is_err();
            let mut outcome = self.keeper.pass(&stops);
            if outcome.is_ok() && !swept && !stops() {
                outcome = self.keeper.sweep_orphans();
                swept = outcome.is_ok();
            }
            self.publish(outcome);
            if runtime.block_on(self.wait()) {
                return;
            }
        }
    }

    fn publish(&self, outcome: Result<(), StorageError>) {
        let mut health = lock(&self.shared);
        health.last_pass_micros = Some(self.clock.now_micros());
        health.counts = self.keeper.counts();
        health.over_quota = self.keeper.is_over();
        health.last_error = outcome.err().map(|error| error.to_string());
        if let Some(error) = &health.last_error {
            tracing::warn!(error, "upkeep could not do all that is due");
        }
    }

    /// Waits for the next pass; true when there will be none.
    async fn wait(&mut self) -> bool {
        let segments = &mut self.segments;
        let sealed = async move {
            let told = match segments {
                Some(segments) => segments.changed().await.is_ok(),
                None => false,
            };
            if !told {
                std::future::pending::<()>().await;
            }
        };
        tokio::select! {
            stop = self.stop.wait_for(|stop| *stop) => {
                let _ = stop;
                true
            }
            () = sealed => false,
            () = tokio::time::sleep(Duration::from_secs(UPKEEP_PERIOD_SECONDS)) => false,
        }
    }
}

fn lock(shared: &Mutex<UpkeepHealth>) -> MutexGuard<'_, UpkeepHealth> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

/// On Linux each thread has a niceness of its own. Where it cannot be had, upkeep is merely less polite.
fn be_nice() {
    let _ = rustix::process::setpriority_process(Some(rustix::thread::gettid()), NICENESS);
}

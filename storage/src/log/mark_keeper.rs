//! Keeps the mark in step with the log: writes each slot, and syncs it on a thread of its own.
//!
//! What must stay true: a commit is acknowledged only when its mark is written, so that the death of
//! the process never leaves the mark behind; the mark is synced soon after, so that it lags a power cut
//! by a few commits at most. It need not do better: what an acknowledgement rests on is the segment's
//! sync, and a sync of the mark for each commit would halve the rate of commits to no reader's gain. A
//! sync that failed is never tried again; every later step fails.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::Durable;
use super::mark::Mark;
use super::storage_io::StorageFile;
use crate::StorageError;
use crate::limits::MARK_SYNC_MILLIS;

pub(super) struct MarkKeeper {
    latest: Mark,
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

/// Lets others than the writer wait for the sync of the mark.
#[derive(Clone)]
pub(super) struct MarkSync(Arc<Shared>);

struct Shared {
    file: Arc<dyn StorageFile>,
    state: Mutex<State>,
    changed: Condvar,
}

/// Counters of marks: the latest written, the latest synced.
struct State {
    written: u64,
    synced: u64,
    failure: Option<String>,
    /// Somebody waits for the sync.
    hurried: bool,
    /// A thread syncs; without one, whoever waits does.
    threaded: bool,
    stopping: bool,
}

impl MarkKeeper {
    /// `latest` is the mark that `file` holds. Nobody syncs it before
    /// [`MarkKeeper::settle`] does, unless a thread is started.
    pub fn new(latest: Mark, file: Arc<dyn StorageFile>, path: PathBuf) -> Self {
        let state = State {
            written: latest.counter,
            synced: latest.counter,
            failure: None,
            hurried: false,
            threaded: false,
            stopping: false,
        };
        let shared = Arc::new(Shared { file, state: Mutex::new(state), changed: Condvar::new() });
        Self { latest, path, shared, thread: None }
    }

    /// Starts the thread that syncs what is written.
    ///
    /// # Errors
    /// When there can be none.
    pub fn start_thread(&mut self) -> Result<(), StorageError> {
        let shared = self.shared.clone();
        let thread = std::thread::Builder::new()
            .name("log-mark".into())
            .spawn(move || {
                shared.run();
                shared.lock().threaded = false;
            })
            .map_err(StorageError::io("start a thread for", &self.path))?;
        self.shared.lock().threaded = true;
        self.thread = Some(thread);
        Ok(())
    }

    /// Writes the mark of a log that is durable up to `durable`.
    ///
    /// # Errors
    /// When this write or an earlier sync failed.
    pub fn advance(&mut self, durable: Durable, clean: bool) -> Result<(), StorageError> {
        self.latest.durable = durable;
        self.latest.clean = clean;
        self.write()
    }

    /// Writes the mark of a log that is opened. Whoever writes a segment anew or drops one counts on a
    /// mark that does not lie before it, and the one that was read may be in memory only. Before anything
    /// is written behind an orderly end, no mark says any more that there is one: what is found behind it
    /// then was never ours.
    ///
    /// # Errors
    /// When this write or its sync failed.
    pub fn reopen(&mut self, durable: Durable, was_clean: bool) -> Result<(), StorageError> {
        self.advance(durable, false)?;
        if was_clean { self.settle() } else { Ok(()) }
    }

    /// Writes the mark of a log whose oldest segment is `number`, which begins with `first_seq`.
    ///
    /// # Errors
    /// When this write or an earlier sync failed.
    pub fn retain_from(&mut self, number: u32, first_seq: u64) -> Result<(), StorageError> {
        self.latest.oldest_segment = number;
        self.latest.oldest_seq = first_seq;
        self.write()
    }

    fn write(&mut self) -> Result<(), StorageError> {
        if let Some(reason) = &self.shared.lock().failure {
            return Err(StorageError::Unavailable { reason: reason.clone() });
        }
        self.latest.counter += 1;
        self.latest.write(&*self.shared.file).map_err(StorageError::io("write", &self.path))?;
        self.shared.lock().written = self.latest.counter;
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until what was written is synced.
    ///
    /// # Errors
    /// When the sync failed.
    pub fn settle(&self) -> Result<(), StorageError> {
        self.shared.settle()
    }

    pub fn sync_handle(&self) -> MarkSync {
        MarkSync(self.shared.clone())
    }
}

impl MarkSync {
    /// Waits until what is written by now is synced.
    ///
    /// # Errors
    /// When the sync failed.
    pub fn settle(&self) -> Result<(), StorageError> {
        self.0.settle()
    }
}

impl Drop for MarkKeeper {
    fn drop(&mut self) {
        self.shared.lock().stopping = true;
        self.shared.changed.notify_all();
        if let Some(thread) = self.thread.take() {
            // It catches its own panics as failures, so there is nothing to learn here.
            let _ = thread.join();
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn settle(&self) -> Result<(), StorageError> {
        let mut state = self.lock();
        let wanted = state.written;
        state.hurried = true;
        self.changed.notify_all();
        while state.synced < wanted && state.failure.is_none() {
            state = if state.threaded {
                self.changed.wait(state).unwrap_or_else(PoisonError::into_inner)
            } else {
                self.sync(state)
            };
        }
        match &state.failure {
            None => Ok(()),
            Some(reason) => Err(StorageError::Unavailable { reason: reason.clone() }),
        }
    }

    fn run(&self) {
        loop {
            let mut state = self.lock();
            while state.written == state.synced && !state.stopping {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.written == state.synced {
                return;
            }
            if !state.hurried && !state.stopping {
                // Commits that follow at once share this sync.
                let soon = Duration::from_millis(MARK_SYNC_MILLIS);
                let calm = |state: &mut State| !state.hurried && !state.stopping;
                let waited = self.changed.wait_timeout_while(state, soon, calm);
                state = waited.unwrap_or_else(PoisonError::into_inner).0;
            }
            let state = self.sync(state);
            let failed = state.failure.is_some();
            drop(state);
            self.changed.notify_all();
            if failed {
                return;
            }
        }
    }

    /// Syncs what is written by now. Nobody is kept from writing the next mark meanwhile.
    fn sync<'a>(&'a self, mut state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        state.hurried = false;
        let written = state.written;
        drop(state);
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| self.file.sync_data()));
        let mut state = self.lock();
        match outcome {
            Ok(Ok(())) => state.synced = written,
            Ok(Err(error)) => state.failure = Some(format!("the high-water mark could not be synced: {error}")),
            Err(_) => state.failure = Some("the sync of the high-water mark panicked".into()),
        }
        state
    }
}

//! Keeps the mark in step with the log: writes each slot, and syncs it on a thread of its own.
//!
//! What must stay true: a commit is acknowledged only when the mark of the commit before it is on
//! stable storage. A sync that failed is never tried again; every later step fails.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;

use super::Durable;
use super::mark::Mark;
use super::storage_io::StorageFile;
use crate::StorageError;

pub(super) struct MarkKeeper {
    latest: Mark,
    file: Arc<dyn StorageFile>,
    path: PathBuf,
    shared: Arc<Shared>,
    thread: Option<JoinHandle<()>>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
}

/// Counters of marks: the latest written, the latest synced.
struct State {
    written: u64,
    synced: u64,
    failure: Option<String>,
    stopping: bool,
}

impl MarkKeeper {
    /// `latest` is the mark that `file` holds, and it is on stable storage.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn start(latest: Mark, file: Arc<dyn StorageFile>, path: PathBuf) -> Result<Self, StorageError> {
        let state = State { written: latest.counter, synced: latest.counter, failure: None, stopping: false };
        let shared = Arc::new(Shared { state: Mutex::new(state), changed: Condvar::new() });
        let (for_thread, synced_file) = (shared.clone(), file.clone());
        let thread = std::thread::Builder::new()
            .name("log-mark".into())
            .spawn(move || for_thread.run(&*synced_file))
            .map_err(StorageError::io("start a thread for", &path))?;
        Ok(Self { latest, file, path, shared, thread: Some(thread) })
    }

    /// Writes the mark of a log that is durable up to `durable`, once the one before it is synced.
    ///
    /// # Errors
    /// When this write or an earlier sync failed.
    pub fn advance(&mut self, durable: Durable, clean: bool) -> Result<(), StorageError> {
        self.settle()?;
        self.latest.counter += 1;
        self.latest.durable = durable;
        self.latest.clean = clean;
        self.latest.write(&*self.file).map_err(StorageError::io("write", &self.path))?;
        self.shared.lock().written = self.latest.counter;
        self.shared.changed.notify_all();
        Ok(())
    }

    /// Waits until what was written is synced.
    ///
    /// # Errors
    /// When the sync failed.
    pub fn settle(&self) -> Result<(), StorageError> {
        let mut state = self.shared.lock();
        while state.synced < state.written && state.failure.is_none() {
            state = self.shared.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        match &state.failure {
            None => Ok(()),
            Some(reason) => Err(StorageError::Unavailable { reason: reason.clone() }),
        }
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

    fn run(&self, file: &dyn StorageFile) {
        loop {
            let mut state = self.lock();
            while state.written == state.synced && !state.stopping {
                state = self.changed.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
            if state.written == state.synced {
                return;
            }
            let written = state.written;
            drop(state);
            let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| file.sync_data()));
            let mut state = self.lock();
            match outcome {
                Ok(Ok(())) => state.synced = written,
                Ok(Err(error)) => state.failure = Some(format!("the high-water mark could not be synced: {error}")),
                Err(_) => state.failure = Some("the thread that syncs the high-water mark panicked".into()),
            }
            let failed = state.failure.is_some();
            drop(state);
            self.changed.notify_all();
            if failed {
                return;
            }
        }
    }
}

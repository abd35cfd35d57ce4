//! The index: where things are in the log. Derived from it, disposable, never the truth.
//!
//! What is known of a span of the log is a layer: sorted entries that never change. Sealed segments
//! have theirs in tables, files beside the log; the newest part is in memory, and sled keeps that for
//! the next start. One thread follows the log, another one makes tables. Whatever is wrong with the
//! files (deleted, damaged, of another log or build, or sled itself failing) they are thrown away and
//! made again, and tried again for as long as it takes; meanwhile questions are answered from memory
//! and from the log, slower and the same. Nobody who opens the index waits for it.

mod ahead;
mod build;
mod chain;
mod entry;
mod fold;
mod follow;
mod layer;
mod leaf;
mod lost;
mod make;
mod merge;
mod retry;
mod rows;
mod shared;
mod shelf;
mod store;
mod stretches;
mod table;
mod view;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::StorageError;
use crate::ids::SessionId;
use crate::log::{Durable, Reader};

pub(crate) use chain::{Chain, Link, TROUBLE_STATUS_MIN};
pub(crate) use entry::BlockEntry;
pub use rows::{ArtifactRow, DROPPED_NAMES_MAX, SessionRow};
use shared::Shared;
pub(crate) use view::{Sieve, View};
pub(crate) use wire::Space;

/// A handle on the index. Cheap to clone; the last one dropped ends its threads.
#[derive(Clone)]
pub struct Index {
    shared: Arc<Shared>,
    control: Arc<watch::Sender<bool>>,
    threads: Arc<Mutex<Vec<std::thread::JoinHandle<()>>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Being opened or checked.
    Opening,
    /// Following the log.
    Following,
    /// Its files cannot be written; that is tried again. Questions are answered all the same.
    Broken,
    Closed,
}

#[derive(Debug, Clone)]
pub struct IndexHealth {
    pub state: IndexState,
    /// Every event up to here is in the index.
    pub reached_seq: u64,
    /// Rebuilds finished in this process: of all of it or of a part.
    pub rebuilds: u64,
    /// Why the latest rebuild was needed, or why the index is broken.
    pub reason: Option<String>,
    /// Files that hold what is known of the log.
    pub tables: usize,
    /// Memory that grows with the log: what says which part of a table holds what.
    pub fences_bytes: usize,
    /// Memory of what is in no table yet.
    pub tail_bytes: usize,
}

/// Why a question could not be answered.
pub(crate) enum Failure {
    /// By a table: without it the answer will be found.
    Table(Arc<table::Table>, String),
    /// By what is in memory.
    Index(String),
    Storage(StorageError),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Failure::Storage(error)
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Failure::Table(table, reason) => write!(f, "{}: {reason}", table.path.display()),
            Failure::Index(reason) => f.write_str(reason),
            Failure::Storage(error) => error.fmt(f),
        }
    }
}

impl std::fmt::Debug for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Display::fmt(self, f)
    }
}

impl Index {
    /// Begins to follow the log behind `reader`; returns at once. `directory` is the index's own.
    #[must_use]
    pub fn start(directory: &Path, reader: Reader, durable: watch::Receiver<Durable>) -> Self {
        let shared = Arc::new(Shared::new(directory, reader));
        // Here, not on the follower's thread: a table may be asked for as soon as this returns.
        shared.ahead.clear();
        let control = Arc::new(watch::Sender::new(false));
        let index = Self { shared: shared.clone(), control, threads: Arc::default() };
        let follower = follow::Follower::new(shared.clone(), durable, index.control.subscribe());
        index.spawn("indexer", move || follower.run());
        let maker = make::Maker::new(shared, index.control.subscribe());
        index.spawn("index-tables", move || maker.run());
        index
    }

    fn spawn(&self, name: &str, work: impl FnOnce() + Send + 'static) {
        match std::thread::Builder::new().name(name.into()).spawn(work) {
            Ok(thread) => self.threads.lock().unwrap_or_else(PoisonError::into_inner).push(thread),
            Err(error) => self.shared.broke(format!("its thread could not be started: {error}")),
        }
    }

    /// Waits until the index has seen `seq`, or cannot go on for now. The caller sets the deadline.
    pub async fn caught_up(&self, seq: u64) {
        let mut progress = self.shared.progress.subscribe();
        // An error means that the sender is gone, which `self` prevents.
        let _ = progress.wait_for(|progress| progress.ended || progress.reached_seq >= seq).await;
    }

    #[must_use]
    pub fn health(&self) -> IndexHealth {
        self.shared.health()
    }

    /// Tells each rebuild that is finished, so that it can be put on record.
    #[must_use]
    pub fn watch_rebuilds(&self) -> watch::Receiver<u64> {
        self.shared.rebuilds.subscribe()
    }

    /// Makes the table of a generation of a segment that is about to be installed, so that questions
    /// go on at their pace when it is. `reader` reads that segment alone. Blocks.
    ///
    /// # Errors
    /// When the segment cannot be read, or the table not be written; it is then made later.
    pub fn build(&self, reader: &Reader) -> Result<(), StorageError> {
        match self.shared.build_ahead(reader) {
            Ok(()) => Ok(()),
            Err(Failure::Storage(error)) => Err(error),
            Err(failure) => Err(StorageError::Unavailable { reason: failure.to_string() }),
        }
    }

    /// Stops following and lets go of the files. Blocks for what is being written.
    pub fn close(&self) {
        self.control.send_replace(true);
        let threads = std::mem::take(&mut *self.threads.lock().unwrap_or_else(PoisonError::into_inner));
        for thread in threads {
            // Its panics are caught inside and on record as the reason.
            let _ = thread.join();
        }
    }

    /// How far the exporter called `name` has come, unless the index was made again since.
    #[must_use]
    pub fn checkpoint(&self, name: &str) -> Option<u64> {
        self.shared.with_store(|store| store.checkpoint(name)).flatten()
    }

    /// Remembers how far the exporter called `name` has come. False when there is nowhere to.
    #[must_use]
    pub fn set_checkpoint(&self, name: &str, seq: u64) -> bool {
        self.shared.with_store(|store| store.set_checkpoint(name, seq)).is_some()
    }

    /// A look for one question, on everything durable up to `last_seq`. Blocks on files. With `only`,
    /// nothing is promised but on that session. Without `trusting`, the log alone is asked.
    pub(crate) fn view(
        &self,
        reader: &Reader,
        last_seq: u64,
        only: Option<&SessionId>,
        trusting: bool,
    ) -> Result<View, Failure> {
        View::over(Some(&*self.shared).filter(|_| trusting), reader, last_seq, only)
    }

    /// What failed a question is made again.
    pub(crate) fn complain(&self, failure: Failure) {
        self.shared.complain(failure);
    }
}

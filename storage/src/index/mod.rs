//! The index: where things are in the log. Derived from it, disposable, never the truth.
//!
//! A thread of its own follows the log and writes to sled. Whatever is wrong with the files (deleted,
//! damaged, of another log, of another build, or sled itself failing) they are thrown away and made
//! again; when even that fails the index stays broken and questions are answered from the log, slower
//! and the same. Nobody who opens the index waits for it.

mod entry;
mod fold;
mod follow;
mod rows;
mod store;
mod view;
mod wire;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::watch;

use crate::StorageError;
use crate::ids::SessionId;
use crate::log::{Durable, Reader};

pub(crate) use entry::{BlockEntry, Chain, Link, TROUBLE_STATUS_MIN};
pub use rows::{ArtifactRow, DROPPED_NAMES_MAX, SessionRow};
use store::{Meta, Store};
pub(crate) use view::View;
pub(crate) use wire::Space;

/// How often in the life of a process a failing index is made again before it is left alone.
pub const FAILURES_MAX: u32 = 2;

/// A handle on the index. Cheap to clone; the last one dropped ends the thread.
#[derive(Clone)]
pub struct Index {
    shared: Arc<Shared>,
    control: Arc<watch::Sender<Control>>,
    thread: Arc<Mutex<Option<std::thread::JoinHandle<()>>>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Being opened or checked.
    Opening,
    /// Following the log.
    Following,
    /// Given up: questions are answered from the log itself.
    Broken,
    Closed,
}

#[derive(Debug, Clone)]
pub struct IndexHealth {
    pub state: IndexState,
    /// Every event up to here is in the index.
    pub reached_seq: u64,
    /// Rebuilds finished in this process.
    pub rebuilds: u64,
    /// Why the latest rebuild was needed, or why the index is broken.
    pub reason: Option<String>,
}

/// Why a question could not be answered.
#[derive(Debug)]
pub(crate) enum Failure {
    /// By the index: asking the log instead may help.
    Index(String),
    Storage(StorageError),
}

impl From<StorageError> for Failure {
    fn from(error: StorageError) -> Self {
        Failure::Storage(error)
    }
}

fn damaged() -> Failure {
    Failure::Index("an entry does not decode".into())
}

/// What the thread publishes.
struct Shared {
    standing: Mutex<Standing>,
    progress: watch::Sender<Progress>,
    rebuilds: watch::Sender<u64>,
}

struct Standing {
    state: IndexState,
    open: Option<(Store, Meta)>,
    /// Counts stores opened, so that a complaint about an old one is not laid at a new one's door.
    generation: u64,
    reason: Option<String>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Progress {
    reached_seq: u64,
    /// Waiting is pointless.
    ended: bool,
}

/// What the thread is told.
#[derive(Debug, Clone, Default)]
struct Control {
    stop: bool,
    /// Generation of the store that failed a question, and how.
    complaint: Option<(u64, String)>,
}

impl Index {
    /// Begins to follow the log behind `reader`; returns at once. `directory` is the index's own.
    #[must_use]
    pub fn start(directory: &Path, reader: Reader, durable: watch::Receiver<Durable>) -> Self {
        let shared = Arc::new(Shared {
            standing: Mutex::new(Standing { state: IndexState::Opening, open: None, generation: 0, reason: None }),
            progress: watch::Sender::new(Progress::default()),
            rebuilds: watch::Sender::new(0),
        });
        let control = watch::Sender::new(Control::default());
        let follower =
            follow::Follower::new(directory.to_path_buf(), reader, durable, control.subscribe(), shared.clone());
        let thread = std::thread::Builder::new().name("indexer".into()).spawn(move || follower.run());
        let thread = match thread {
            Ok(thread) => Some(thread),
            Err(error) => {
                shared.give_up(format!("its thread could not be started: {error}"));
                None
            }
        };
        Self { shared, control: Arc::new(control), thread: Arc::new(Mutex::new(thread)) }
    }

    /// Waits until the index has seen `seq`, or is broken or closed. The caller sets the deadline.
    pub async fn caught_up(&self, seq: u64) {
        let mut progress = self.shared.progress.subscribe();
        // An error means that the sender is gone, which `self` prevents.
        let _ = progress.wait_for(|progress| progress.ended || progress.reached_seq >= seq).await;
    }

    #[must_use]
    pub fn health(&self) -> IndexHealth {
        let standing = self.shared.standing();
        IndexHealth {
            state: standing.state,
            reached_seq: standing.open.as_ref().map_or(0, |(_, meta)| meta.reached_seq),
            rebuilds: *self.shared.rebuilds.borrow(),
            reason: standing.reason.clone(),
        }
    }

    /// Tells each rebuild that is finished, so that it can be put on record.
    #[must_use]
    pub fn watch_rebuilds(&self) -> watch::Receiver<u64> {
        self.shared.rebuilds.subscribe()
    }

    /// Stops following and lets go of the files. Blocks for the batch being written.
    pub fn close(&self) {
        self.control.send_modify(|control| control.stop = true);
        let thread = self.thread.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(thread) = thread {
            // Its panics are caught inside and on record as the reason.
            let _ = thread.join();
        }
    }

    /// How far the exporter called `name` has come, unless the index was made again since.
    #[must_use]
    pub fn checkpoint(&self, name: &str) -> Option<u64> {
        let (store, generation) = self.shared.store()?;
        match store.get(&wire::key(Space::Checkpoint, &[name], None)) {
            Ok(bytes) => bytes.and_then(|bytes| Some(u64::from_be_bytes(bytes.try_into().ok()?))),
            Err(reason) => {
                self.complain(generation, reason);
                None
            }
        }
    }

    /// Remembers how far the exporter called `name` has come. False when there is nowhere to.
    #[must_use]
    pub fn set_checkpoint(&self, name: &str, seq: u64) -> bool {
        let Some((store, generation)) = self.shared.store() else { return false };
        let put = store.put_checkpoint(&wire::key(Space::Checkpoint, &[name], None), seq);
        put.map_err(|reason| self.complain(generation, reason)).is_ok()
    }

    /// A look for one question, on everything durable up to `last_seq`. Blocks on files. Without
    /// `trusting`, the log alone is asked. Also gives the generation to complain about.
    pub(crate) fn view(
        &self,
        reader: &Reader,
        last_seq: u64,
        only: Option<&SessionId>,
        trusting: bool,
    ) -> (u64, Result<View, Failure>) {
        let (open, generation) = {
            let standing = self.shared.standing();
            (standing.open.clone(), standing.generation)
        };
        (generation, View::over(open.filter(|_| trusting), reader, last_seq, only))
    }

    #[cfg(test)]
    pub(crate) fn standing_for_tests(&self) -> Option<(Store, Meta)> {
        self.shared.standing().open.clone()
    }

    pub(crate) fn generation(&self) -> u64 {
        self.shared.standing().generation
    }

    /// The store of that generation failed a question: it is made again.
    pub(crate) fn complain(&self, generation: u64, reason: String) {
        self.control.send_modify(|control| control.complaint = Some((generation, reason)));
    }
}

impl Shared {
    fn standing(&self) -> std::sync::MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn store(&self) -> Option<(Store, u64)> {
        let standing = self.standing();
        standing.open.as_ref().map(|(store, _)| (store.clone(), standing.generation))
    }

    fn give_up(&self, reason: String) {
        tracing::error!(reason, "the index is broken; questions are answered from the log");
        let mut standing = self.standing();
        standing.open = None;
        standing.state = IndexState::Broken;
        standing.reason = Some(reason);
        drop(standing);
        self.progress.send_modify(|progress| progress.ended = true);
    }
}

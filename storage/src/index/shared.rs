//! What the index's threads and its questions share.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use crate::index::ahead::Ahead;
use crate::index::build::{self, Job};
use crate::index::layer::{self, Layer};
use crate::index::shelf::{Hole, Shelf, holes};
use crate::index::store::Store;
use crate::index::{Failure, IndexHealth, IndexState, Space};
use crate::log::{Reader, SegmentFacts};

pub struct Shared {
    pub directory: PathBuf,
    pub reader: Reader,
    pub shelf: Shelf,
    pub progress: watch::Sender<Progress>,
    pub rebuilds: watch::Sender<u64>,
    /// Counts reasons for the maker of tables to look around.
    pub work: watch::Sender<u64>,
    /// Counts reasons for the follower to fold again what is in memory.
    pub doubts: watch::Sender<u64>,
    standing: Mutex<Standing>,
    store: Mutex<Option<Store>>,
    /// Tables of generations that are about to be installed.
    pub ahead: Ahead,
    /// Held by whoever makes a table from the log: one at a time, so that memory stays bounded.
    bench: Mutex<()>,
}

#[derive(Debug, Clone, Copy, Default)]
pub struct Progress {
    pub reached_seq: u64,
    /// Waiting is pointless for now.
    pub ended: bool,
}

struct Standing {
    state: IndexState,
    reason: Option<String>,
    /// Something that was there is being made again.
    lost: bool,
    /// The tables of the log as it was found were looked through.
    opened: bool,
    caught_up: bool,
    tail_seq: u64,
    /// First number that should be in a table and is not; the very first as long as nobody looked.
    hole_seq: Option<u64>,
    /// Segment that the follower is at: what lies before is for tables.
    following: u32,
}

impl Shared {
    #[must_use]
    pub fn new(directory: &Path, reader: Reader) -> Self {
        let standing = Standing {
            state: IndexState::Opening,
            reason: None,
            lost: false,
            opened: false,
            caught_up: false,
            tail_seq: 0,
            hole_seq: Some(0),
            following: 0,
        };
        let log_id = reader.log_id().to_owned();
        Self {
            directory: directory.to_owned(),
            shelf: Shelf::new(directory, &log_id),
            progress: watch::Sender::new(Progress::default()),
            reader,
            rebuilds: watch::Sender::new(0),
            work: watch::Sender::new(0),
            doubts: watch::Sender::new(0),
            standing: Mutex::new(standing),
            store: Mutex::new(None),
            ahead: Ahead::new(directory, &log_id),
            bench: Mutex::new(()),
        }
    }

    fn standing(&self) -> MutexGuard<'_, Standing> {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[must_use]
    pub fn health(&self) -> IndexHealth {
        let (tables, fences_bytes) = self.shelf.extent();
        let standing = self.standing();
        IndexHealth {
            state: standing.state,
            reached_seq: self.progress.borrow().reached_seq,
            rebuilds: *self.rebuilds.borrow(),
            reason: standing.reason.clone(),
            tables,
            fences_bytes,
            tail_bytes: self.shelf.tail_bytes(),
        }
    }

    /// Its files cannot be written for now.
    pub fn broke(&self, reason: String) {
        tracing::warn!(reason, "the index cannot be written for now; questions are answered all the same");
        let mut standing = self.standing();
        (standing.state, standing.reason) = (IndexState::Broken, Some(reason));
    }

    /// Its files can be written. When they could not before, what they hold is made again.
    pub fn mended(&self) {
        let mut standing = self.standing();
        standing.lost |= standing.state == IndexState::Broken;
        standing.state = IndexState::Following;
    }

    pub fn closed(&self) {
        self.standing().state = IndexState::Closed;
        self.progress.send_modify(|progress| progress.ended = true);
    }

    /// Something that was there has to be made again.
    pub fn lost(&self, reason: String) {
        tracing::warn!(reason, "a part of the index is made again from the log");
        let mut standing = self.standing();
        (standing.lost, standing.reason) = (true, Some(reason));
        drop(standing);
        self.look_around();
    }

    /// Whether something is being made again.
    #[must_use]
    pub fn is_lost(&self) -> bool {
        self.standing().lost
    }

    pub fn look_around(&self) {
        self.work.send_modify(|work| *work += 1);
    }

    /// What is on disk was looked through: from now on what is missing is made.
    pub fn opened(&self) {
        self.standing().opened = true;
        self.look_around();
    }

    #[must_use]
    pub fn is_opened(&self) -> bool {
        self.standing().opened
    }

    pub fn follow_segment(&self, segment: u32) {
        self.standing().following = segment;
    }

    /// Whether a segment is left to the maker of tables.
    #[must_use]
    pub fn is_for_tables(&self, facts: &SegmentFacts) -> bool {
        facts.last_seq.is_some() && facts.number != self.standing().following
    }

    /// How far the newest segment is in layers. `stalled`: it goes no further for now.
    pub fn tail_reached(&self, tail_seq: u64, caught_up: bool, stalled: bool) {
        let mut standing = self.standing();
        (standing.tail_seq, standing.caught_up) = (tail_seq, caught_up);
        self.published(standing, Some(stalled));
    }

    pub fn sealed_reached(&self, hole_seq: Option<u64>) {
        let mut standing = self.standing();
        standing.hole_seq = hole_seq;
        self.published(standing, None);
    }

    fn published(&self, mut standing: MutexGuard<'_, Standing>, stalled: Option<bool>) {
        let reached = standing.hole_seq.map_or(standing.tail_seq, |hole| standing.tail_seq.min(hole.saturating_sub(1)));
        let reached = if standing.opened { reached } else { 0 };
        let rebuilt = standing.opened && standing.caught_up && standing.hole_seq.is_none() && standing.lost;
        standing.lost &= !rebuilt;
        drop(standing);
        if rebuilt {
            self.rebuilds.send_modify(|rebuilds| *rebuilds += 1);
        }
        self.progress.send_modify(|progress| {
            progress.reached_seq = reached;
            progress.ended = stalled.unwrap_or(progress.ended);
        });
    }

    pub fn set_store(&self, store: Option<Store>) {
        *self.store.lock().unwrap_or_else(PoisonError::into_inner) = store;
    }

    #[must_use]
    pub fn has_store(&self) -> bool {
        self.store.lock().unwrap_or_else(PoisonError::into_inner).is_some()
    }

    /// Does something with sled, which is known to panic on damaged files and full disks. After a
    /// failure it is let go of; the follower opens it again.
    pub fn with_store<T>(&self, work: impl FnOnce(&Store) -> Result<T, String>) -> Option<T> {
        let store = self.store.lock().unwrap_or_else(PoisonError::into_inner).clone()?;
        let done = guarded(|| work(&store));
        // Dropping a store that failed may panic once more.
        let _ = guarded(move || {
            drop(store);
            Ok(())
        });
        done.map_err(|reason| {
            let _ = guarded(|| {
                self.set_store(None);
                Ok(())
            });
            self.broke(reason);
        })
        .ok()
    }

    pub fn complain(&self, failure: Failure) {
        match failure {
            Failure::Table(table, reason) => {
                if self.shelf.discard(&table) {
                    self.lost(format!("{}: {reason}", table.path.display()));
                }
            }
            Failure::Index(reason) => {
                self.lost(reason);
                self.doubts.send_modify(|doubts| *doubts += 1);
            }
            Failure::Storage(_) => {}
        }
    }

    /// What a thread of the index could not do; it will try again.
    pub fn report(&self, failure: Failure) {
        match failure {
            Failure::Table(..) => self.complain(failure),
            other => self.broke(other.to_string()),
        }
    }

    /// Makes tables for what nothing is known of in a segment that is not written any more.
    pub fn fill(&self, reader: &Reader, facts: &SegmentFacts, stop: &dyn Fn() -> bool) -> Result<(), Failure> {
        let _bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        if self.ahead.adopt(reader, facts, &self.shelf)? {
            return Ok(());
        }
        for hole in self.shelf.holes(facts) {
            self.fill_hole(&self.shelf, reader, facts, hole, stop)?;
        }
        Ok(())
    }

    pub fn fill_hole(
        &self,
        shelf: &Shelf,
        reader: &Reader,
        facts: &SegmentFacts,
        hole: Hole,
        stop: &dyn Fn() -> bool,
    ) -> Result<(), Failure> {
        Job { reader, facts, hole, only: None }.run(&mut |piece| {
            let before = piece.first_seq();
            let layer = piece.into_layer(&|session, id| self.begun_before(before, session, id))?;
            build::write(shelf, facts, &[layer]).map_err(Failure::Index)?;
            Ok(!stop())
        })
    }

    /// Takes up the table that was made in advance of a generation that holds now, if there is one.
    pub fn adopt(&self, reader: &Reader, facts: &SegmentFacts) -> Result<bool, Failure> {
        if !self.ahead.may_have(facts) {
            return Ok(false);
        }
        let _bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        self.ahead.adopt(reader, facts, &self.shelf)
    }

    /// Writes all layers of a sealed segment as one table, unless that is how they are.
    pub fn unite(&self, facts: &SegmentFacts) -> Result<(), String> {
        let layers = self.shelf.layers(facts.number, facts.generation);
        match &layers[..] {
            [only] if only.is_table() => Ok(()),
            // A table that was discarded just now is a reason of its own to look around.
            some if !holes(facts, some).is_empty() => Ok(()),
            several => self.write(facts, several),
        }
    }

    /// Writes neighbouring layers as one table. A table that cannot be read is discarded.
    pub fn write(&self, facts: &SegmentFacts, layers: &[Layer]) -> Result<(), String> {
        build::write(&self.shelf, facts, layers).inspect_err(|_| {
            for failure in layers.iter().filter_map(|layer| layer.check().err()) {
                self.complain(failure);
            }
        })
    }

    pub fn build_ahead(&self, reader: &Reader) -> Result<(), Failure> {
        let _bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        for facts in reader.segments()? {
            self.ahead.begin(facts.number)?;
            for hole in self.ahead.shelf.holes(&facts) {
                self.fill_hole(&self.ahead.shelf, reader, &facts, hole, &|| false)?;
            }
            let layers = self.ahead.shelf.layers(facts.number, facts.generation);
            if layers.len() > 1 {
                build::write(&self.ahead.shelf, &facts, &layers).map_err(Failure::Index)?;
            }
            self.ahead.done(reader, &facts)?;
        }
        Ok(())
    }

    /// Where a request began before `seq`, as far as that is known now.
    pub fn begun_before(&self, seq: u64, session: &str, id: &str) -> Result<Option<u64>, Failure> {
        let mut layers: Vec<Layer> = Vec::new();
        for facts in self.reader.segments()?.iter().filter(|facts| facts.first_seq < seq) {
            layers.extend(self.shelf.layers(facts.number, facts.generation));
        }
        layers.retain(|layer| layer.first_seq < seq);
        match layer::chain(&layers, Space::Request, session, id) {
            Ok(chain) => Ok(chain.start().map(|link| link.seq)),
            // It will be looked for again when somebody asks.
            Err(failure) => {
                self.complain(failure);
                Ok(None)
            }
        }
    }
}

/// What sled is asked, with its panics as errors.
pub fn guarded<T>(work: impl FnOnce() -> Result<T, String>) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(text_of(&*panic)))
}

pub fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".into())
}

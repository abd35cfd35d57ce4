//! The thread that keeps the index up with the log.
//!
//! Everything that touches sled here runs behind `catch_unwind`. One life of a store ends by an order
//! to stop or by a failure; after a failure the directory goes and the next life begins from the
//! log's first block.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::watch;

use crate::index::fold::Fold;
use crate::index::store::{Meta, Store};
use crate::index::{Control, FAILURES_MAX, Failure, IndexState, Shared};
use crate::log::{Durable, Reader};

/// Blocks folded into one write, unless their commit has more.
const BATCH_BLOCKS_MAX: usize = 512;

pub struct Follower {
    directory: PathBuf,
    reader: Reader,
    durable: watch::Receiver<Durable>,
    control: watch::Receiver<Control>,
    shared: Arc<Shared>,
    /// Set while what is being built replaces something that was lost.
    rebuilding: bool,
}

/// Why a life of a store ended.
enum End {
    Stop,
    Failed(String),
}

enum Wake {
    Stop,
    Complaint(String),
    Log,
}

impl Follower {
    pub fn new(
        directory: PathBuf,
        reader: Reader,
        durable: watch::Receiver<Durable>,
        control: watch::Receiver<Control>,
        shared: Arc<Shared>,
    ) -> Self {
        Self { directory, reader, durable, control, shared, rebuilding: false }
    }

    pub fn run(mut self) {
        let mut failures = 0;
        loop {
            let end =
                catch_unwind(AssertUnwindSafe(|| self.live())).unwrap_or_else(|panic| End::Failed(text_of(&*panic)));
            let End::Failed(reason) = end else { break };
            failures += 1;
            self.shared.progress.send_modify(|progress| progress.reached_seq = 0);
            // Dropping a store that failed may panic once more.
            let dropped = catch_unwind(AssertUnwindSafe(|| self.shared.standing().open = None));
            if failures > FAILURES_MAX || dropped.is_err() {
                self.shared.give_up(reason);
                return;
            }
            tracing::warn!(reason, "the index is made again from the log");
            {
                let mut standing = self.shared.standing();
                (standing.state, standing.reason) = (IndexState::Opening, Some(reason));
            }
            if let Err(error) = self.discard() {
                self.shared.give_up(error);
                return;
            }
        }
        let _ = catch_unwind(AssertUnwindSafe(|| self.leave()));
    }

    fn leave(&self) {
        let open = {
            let mut standing = self.shared.standing();
            standing.state = IndexState::Closed;
            standing.open.take()
        };
        self.shared.progress.send_modify(|progress| progress.ended = true);
        if let Some((store, _)) = open
            && let Err(reason) = store.flush()
        {
            tracing::warn!(reason, "the index could not be written to its end; the next start makes up for it");
        }
    }

    fn live(&mut self) -> End {
        let (store, mut meta) = match self.open() {
            Ok(opened) => opened,
            Err(reason) => return End::Failed(reason),
        };
        let generation = self.publish(&store, &meta, true);
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().build() else {
            return End::Failed("no runtime to wait in".into());
        };
        let from_nothing = meta.reached_seq == 0;
        let mut openings = 0;
        loop {
            let durable = *self.durable.borrow_and_update();
            while meta.reached_seq < durable.last_seq {
                if self.control.borrow().stop {
                    return End::Stop;
                }
                match self.batch(&store, &mut meta) {
                    Ok(seen) => openings += seen,
                    Err(reason) => return End::Failed(reason),
                }
                self.publish(&store, &meta, false);
            }
            // A log that was opened before has had an index before.
            if self.rebuilding || (from_nothing && openings > 1) {
                self.shared.rebuilds.send_modify(|rebuilds| *rebuilds += 1);
            }
            (self.rebuilding, openings) = (false, 0);
            match runtime.block_on(self.wait(generation)) {
                Wake::Stop => return End::Stop,
                Wake::Complaint(reason) => return End::Failed(reason),
                Wake::Log => {}
            }
        }
    }

    fn open(&mut self) -> Result<(Store, Meta), String> {
        let files = self.directory.join("sled");
        // Still there when the last opening took the whole process with it: not tried again.
        let opening = self.directory.join("opening");
        std::fs::create_dir_all(&self.directory).map_err(|error| error.to_string())?;
        if opening.exists() {
            self.discard()?;
        }
        std::fs::write(&opening, b"").map_err(|error| error.to_string())?;
        let opened =
            catch_unwind(AssertUnwindSafe(|| Store::open(&files))).unwrap_or_else(|panic| Err(text_of(&*panic)));
        std::fs::remove_file(&opening).map_err(|error| error.to_string())?;
        let (store, meta) = opened?;
        let Some(meta) = meta else { return Ok((store, Meta::empty(self.reader.log_id()))) };
        let durable = *self.durable.borrow();
        let unfit = if meta.log_id != self.reader.log_id() {
            "it belongs to another log"
        } else if meta.reached_seq > durable.last_seq {
            "it is ahead of the log"
        } else {
            return Ok((store, meta));
        };
        drop(store);
        tracing::warn!(reason = unfit, "the index is made again from the log");
        self.shared.standing().reason = Some(unfit.into());
        self.discard()?;
        let (store, _) = Store::open(&files)?;
        Ok((store, Meta::empty(self.reader.log_id())))
    }

    fn discard(&mut self) -> Result<(), String> {
        self.rebuilding = true;
        match std::fs::remove_dir_all(self.directory.join("sled")) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("it cannot be removed: {error}")),
            _ => Ok(()),
        }
    }

    /// Takes in some blocks, ending with a commit. Gives the openings of the log among them.
    fn batch(&self, store: &Store, meta: &mut Meta) -> Result<u64, String> {
        let from = meta.position.unwrap_or_else(|| self.reader.start());
        let mut fold = Fold::over(Some(store));
        let mut next = meta.clone();
        for block in self.reader.blocks(from).map_err(|error| error.to_string())? {
            let block = block.map_err(|error| error.to_string())?;
            let whole = fold.block(&self.reader, &block).map_err(said)?;
            next.reached_seq = next.reached_seq.max(block.header.last_seq);
            next.position = Some(block.next);
            if whole && fold.blocks >= BATCH_BLOCKS_MAX {
                break;
            }
        }
        if next.reached_seq == meta.reached_seq || !fold.ends_with_a_commit() {
            return Err("the log holds less than it says".into());
        }
        let openings = fold.openings;
        store.apply(&fold.finish().map_err(said)?, &mut next)?;
        *meta = next;
        Ok(openings)
    }

    fn publish(&self, store: &Store, meta: &Meta, anew: bool) -> u64 {
        let mut standing = self.shared.standing();
        standing.state = IndexState::Following;
        standing.generation += u64::from(anew);
        standing.open = Some((store.clone(), meta.clone()));
        let generation = standing.generation;
        drop(standing);
        self.shared.progress.send_modify(|progress| progress.reached_seq = meta.reached_seq);
        generation
    }

    async fn wait(&mut self, generation: u64) -> Wake {
        loop {
            {
                let control = self.control.borrow_and_update();
                if control.stop {
                    return Wake::Stop;
                }
                if let Some((_, reason)) = control.complaint.as_ref().filter(|(about, _)| *about == generation) {
                    return Wake::Complaint(reason.clone());
                }
            }
            tokio::select! {
                told = self.control.changed() => if told.is_err() {
                    return Wake::Stop;
                },
                // When the log's end of the watch is gone there is nothing more to follow.
                Ok(()) = self.durable.changed() => return Wake::Log,
                else => return Wake::Stop,
            }
        }
    }
}

fn said(failure: Failure) -> String {
    match failure {
        Failure::Index(reason) => reason,
        Failure::Storage(error) => error.to_string(),
    }
}

fn text_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().map(|text| (*text).to_owned()).or_else(|| panic.downcast_ref::<String>().cloned());
    text.unwrap_or_else(|| "it panicked".into())
}

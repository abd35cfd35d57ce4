//! The thread that keeps the index up with the log.
//!
//! It folds what is new into layers in memory, which questions see at once, and writes them as a table
//! when they have grown or their segment is sealed. What is only in memory is kept in sled a little
//! later, for the next start. Neither has to succeed for the answers to be right.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use crate::StorageError;
use crate::index::Failure;
use crate::index::build::{Job, Piece};
use crate::index::layer::{Layer, adjoin, united};
use crate::index::retry::Retry;
use crate::index::shared::{Shared, guarded, text_of};
use crate::index::shelf::Hole;
use crate::index::store::Store;
use crate::log::{Durable, Position, SegmentFacts};

/// Layers in memory are written as a table once they take this much, in bytes; tests see it often.
const TAIL_BYTES_MAX: usize = if cfg!(test) { 64 * 1024 } else { 4 * 1024 * 1024 };
/// While tables cannot be written memory takes no more than this; what is behind it stays in the log.
const TAIL_BYTES_LIMIT: usize = 4 * TAIL_BYTES_MAX;
/// What is new is kept in sled this much later, in milliseconds.
const KEEP_MILLIS: u64 = 500;
pub struct Follower {
    shared: Arc<Shared>,
    durable: watch::Receiver<Durable>,
    control: watch::Receiver<bool>,
    doubts: watch::Receiver<u64>,
    /// Where the log goes on behind what was folded.
    place: Position,
    next_seq: u64,
    /// Layers that are neither in a table nor in sled.
    unkept: Vec<Layer>,
    keep_at: Option<Instant>,
    retry: Retry,
    /// Nothing was there when it began, so what it makes replaces something if the log is not new.
    from_nothing: bool,
    /// Openings of the log seen by then.
    openings: u64,
    tables_opened: bool,
}

impl Follower {
    pub fn new(shared: Arc<Shared>, durable: watch::Receiver<Durable>, control: watch::Receiver<bool>) -> Self {
        let doubts = shared.doubts.subscribe();
        Self {
            shared,
            durable,
            control,
            doubts,
            place: Position::from_u64(0),
            next_seq: 0,
            unkept: Vec::new(),
            keep_at: None,
            retry: Retry::default(),
            from_nothing: false,
            openings: 0,
            tables_opened: false,
        }
    }

    pub fn run(mut self) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return self.shared.broke("no runtime to wait in".into());
        };
        self.open();
        self.shared.opened();
        self.locate();
        while !*self.control.borrow() {
            let followed = catch_unwind(AssertUnwindSafe(|| self.follow()));
            match followed.unwrap_or_else(|panic| Err(Failure::Index(text_of(&*panic)))) {
                Ok(()) => {}
                // The segment was written anew or is gone: the tables know of it.
                Err(Failure::Storage(StorageError::Moved)) => {
                    self.locate();
                    continue;
                }
                Err(failure) => self.failed(&failure),
            }
            if !runtime.block_on(self.wait()) {
                break;
            }
        }
        self.leave();
    }

    /// Looks through the files; makes those anew that are of no use.
    fn open(&mut self) {
        let opened = self.open_tables().and_then(|()| self.open_store());
        match opened {
            Ok(()) => {
                self.retry = Retry::default();
                self.shared.mended();
            }
            Err(reason) => {
                self.shared.broke(reason);
                self.retry.later();
            }
        }
    }

    fn open_tables(&mut self) -> Result<(), String> {
        if self.tables_opened {
            return Ok(());
        }
        let segments = self.shared.reader.segments().map_err(|error| error.to_string())?;
        let fault = self.shared.shelf.open(&segments).map_err(|error| error.to_string())?;
        self.tables_opened = true;
        if let Some(reason) = fault {
            self.shared.lost(reason);
        }
        Ok(())
    }

    fn open_store(&mut self) -> Result<(), String> {
        if self.shared.has_store() {
            return Ok(());
        }
        let files = self.shared.directory.join("sled");
        // Still there when the last opening took the whole process with it: not tried again.
        let opening = self.shared.directory.join("opening");
        let log_id = self.shared.reader.log_id().to_owned();
        if opening.exists() {
            self.shared.lost("opening it ended the process".into());
            remove(&files)?;
        }
        std::fs::write(&opening, b"").map_err(|error| error.to_string())?;
        let opened = match guarded(|| Store::open(&files, &log_id)) {
            Err(reason) => {
                self.shared.lost(reason);
                remove(&files)?;
                guarded(|| Store::open(&files, &log_id))
            }
            opened => opened,
        };
        std::fs::remove_file(&opening).map_err(|error| error.to_string())?;
        let (store, opened) = opened?;
        self.shared.set_store(Some(store));
        if self.next_seq == 0 {
            self.from_nothing = opened.fresh && self.shared.shelf.extent().0 == 0 && !self.shared.is_lost();
            self.take_in(opened.layers);
        } else {
            // What is in memory is kept in it next.
            self.shared.with_store(Store::empty);
            self.unkept = self.shared.shelf.tail(self.place.segment);
            self.keep_at = Some(Instant::now());
        }
        Ok(())
    }

    /// Puts on the shelf what sled kept, as far as it goes on where the tables end.
    fn take_in(&self, kept: Vec<Layer>) {
        for layer in kept {
            let layers = self.shared.shelf.layers(layer.segment, 0);
            let Ok(segments) = self.shared.reader.segments() else { return };
            let facts = segments.iter().find(|facts| facts.number == layer.segment && facts.generation == 0);
            let Some(facts) = facts else { continue };
            let fits = layers.last().map_or(layer.start == facts.start.offset, |last| last.end == layer.start)
                && self.is_of_this_log(&layer);
            if fits && u64::from(layer.end) <= facts.end && self.shared.shelf.push_tail(layer).is_err() {
                return;
            }
        }
    }

    /// Finds out where to go on: behind the layers of the newest segment.
    fn locate(&mut self) {
        let Ok(segments) = self.shared.reader.segments() else { return };
        let Some(newest) = segments.last() else { return };
        if self.from_nothing && segments.len() > 1 {
            self.shared.lost("there was none".into());
            self.from_nothing = false;
        }
        self.shared.shelf.retain(&segments);
        let layers = self.shared.shelf.layers(newest.number, newest.generation);
        if layers.last().is_some_and(|last| !self.is_of_this_log(last)) {
            self.shared.lost("the log went on otherwise".into());
            self.shared.shelf.forget_segment(newest.number);
        }
        self.begin(newest);
    }

    /// Goes on in that segment, behind what is known of it.
    fn begin(&mut self, facts: &SegmentFacts) {
        let layers = self.shared.shelf.layers(facts.number, facts.generation);
        let (place, next_seq) = match layers.last() {
            Some(last) => (Position { offset: last.end, ..facts.start }, last.last_seq + 1),
            None => (facts.start, facts.first_seq),
        };
        (self.place, self.next_seq) = (place, next_seq);
        self.shared.follow_segment(place.segment);
        self.unkept.retain(|layer| layer.segment == place.segment && layer.end <= place.offset);
        self.shared.tail_reached(next_seq.saturating_sub(1), false, false);
    }

    /// Whether the last block that a layer was made of is the one that the log has there.
    fn is_of_this_log(&self, layer: &Layer) -> bool {
        if layer.tip.block == 0 {
            return true;
        }
        let block = self.shared.reader.block_at(Position { offset: layer.tip.block, ..layer.place() });
        block.is_ok_and(|block| block.header.chain == layer.tip.chain && block.next.offset == layer.end)
    }

    /// Folds what is new.
    fn follow(&mut self) -> Result<(), Failure> {
        if self.retry.is_due() {
            self.open();
            self.locate();
        }
        if !self.shared.has_store() && self.retry.at().is_none() {
            self.retry.later();
        }
        loop {
            let durable = *self.durable.borrow_and_update();
            if *self.control.borrow() || self.place >= durable.end {
                break;
            }
            if self.shared.shelf.tail_bytes() > TAIL_BYTES_MAX {
                self.write_tail();
            }
            if self.shared.shelf.tail_bytes() > TAIL_BYTES_LIMIT {
                self.shared.tail_reached(self.next_seq.saturating_sub(1), false, true);
                return Ok(());
            }
            let segments = self.shared.reader.segments()?;
            let now = segments.iter().find(|facts| facts.number == self.place.segment);
            let facts = now.filter(|facts| facts.generation == 0).ok_or(StorageError::Moved)?;
            if u64::from(self.place.offset) < facts.end {
                self.fold(facts)?;
            } else {
                self.go_on(&segments)?;
            }
        }
        self.from_nothing = false;
        self.shared.tail_reached(self.next_seq.saturating_sub(1), true, false);
        if self.keep_at.is_some_and(|at| at <= Instant::now()) {
            self.keep();
        }
        Ok(())
    }

    fn fold(&mut self, facts: &SegmentFacts) -> Result<(), Failure> {
        let (shared, control) = (self.shared.clone(), self.control.clone());
        let end = u32::try_from(facts.end).unwrap_or(u32::MAX);
        let hole = Hole { start: self.place.offset, end, first_seq: self.next_seq };
        Job { reader: &shared.reader, facts, hole, only: None }.run(&mut |piece| {
            self.push(piece)?;
            let more = shared.shelf.tail_bytes() <= TAIL_BYTES_MAX;
            Ok(more && !*control.borrow())
        })
    }

    fn push(&mut self, piece: Piece) -> Result<(), Failure> {
        self.openings += piece.fold.openings;
        if self.from_nothing && self.openings > 1 {
            self.shared.lost("there was none".into());
            self.from_nothing = false;
        }
        let before = self.next_seq;
        let layer = piece.into_layer(&|session, id| self.shared.begun_before(before, session, id))?;
        (self.place.offset, self.next_seq) = (layer.end, layer.last_seq + 1);
        self.unkept.push(layer.clone());
        self.keep_at.get_or_insert_with(|| Instant::now() + Duration::from_millis(KEEP_MILLIS));
        self.shared.shelf.push_tail(layer).map_err(Failure::Index)?;
        self.shared.tail_reached(self.next_seq.saturating_sub(1), false, false);
        Ok(())
    }

    /// The segment is sealed: its layers become a table, and the next one begins.
    fn go_on(&mut self, segments: &[SegmentFacts]) -> Result<(), Failure> {
        let next = segments.iter().find(|facts| facts.number > self.place.segment).ok_or(StorageError::Moved)?;
        self.write_tail();
        self.begin(next);
        self.shared.look_around();
        Ok(())
    }

    /// What is in memory becomes a table. When it cannot be written it stays where it is.
    fn write_tail(&mut self) {
        if self.retry.at().is_some_and(|at| at > Instant::now()) {
            return;
        }
        let Ok(segments) = self.shared.reader.segments() else { return };
        let layers = self.shared.shelf.tail(self.place.segment);
        let facts = segments.iter().find(|facts| facts.number == self.place.segment && facts.generation == 0);
        let Some(facts) = facts.filter(|_| !layers.is_empty()) else { return };
        let mut written = layers.chunk_by(adjoin).map(|layers| self.shared.write(facts, layers));
        match written.try_for_each(|written| written) {
            Ok(()) => {
                (self.unkept, self.keep_at) = (Vec::new(), None);
                self.shared.with_store(Store::empty);
                self.shared.look_around();
            }
            Err(reason) => {
                self.shared.broke(reason);
                self.retry.later();
            }
        }
    }

    fn keep(&mut self) {
        self.keep_at = None;
        for layers in std::mem::take(&mut self.unkept).chunk_by(adjoin) {
            let Ok(layer) = united(layers) else { continue };
            if self.shared.with_store(|store| store.keep(&layer)).is_none() && self.retry.at().is_none() {
                self.retry.later();
            }
        }
    }

    fn failed(&mut self, failure: &Failure) {
        match failure {
            // The log cannot be read for now.
            Failure::Storage(error) => self.shared.broke(error.to_string()),
            other => {
                self.shared.lost(other.to_string());
                self.fold_again();
            }
        }
        self.shared.tail_reached(self.next_seq.saturating_sub(1), false, true);
        self.retry.later();
    }

    /// What is in memory is not to be relied on.
    fn fold_again(&mut self) {
        self.shared.shelf.forget_tail();
        self.shared.with_store(Store::empty);
        self.unkept.clear();
        self.locate();
    }

    /// Waits for something to do; false when there will be nothing more.
    async fn wait(&mut self) -> bool {
        let due = [self.keep_at, self.retry.at()].into_iter().flatten().min();
        let due = async {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.control.changed() => told.is_ok(),
            told = self.durable.changed() => {
                // When the log's end of the watch is gone there is nothing more to follow.
                told.is_ok() || self.control.changed().await.is_ok()
            }
            told = self.doubts.changed() => {
                if told.is_ok() {
                    self.fold_again();
                }
                told.is_ok()
            }
            () = due => true,
        }
    }

    fn leave(mut self) {
        self.shared.closed();
        self.write_tail();
        if !self.unkept.is_empty() {
            self.keep();
        }
        self.shared.with_store(Store::flush);
        let _ = guarded(|| {
            self.shared.set_store(None);
            Ok(())
        });
    }
}

fn remove(files: &std::path::Path) -> Result<(), String> {
    match std::fs::remove_dir_all(files) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(format!("it cannot be removed: {error}")),
        _ => Ok(()),
    }
}

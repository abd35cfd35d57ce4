//! The thread that makes tables: of sealed segments one each, and of the newest one few.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use tokio::sync::watch;

use crate::StorageError;
use crate::index::Failure;
use crate::index::layer::{Layer, adjoin};
use crate::index::retry::Retry;
use crate::index::shared::{Shared, text_of};
use crate::index::shelf::Hole;
use crate::log::SegmentFacts;

/// Two neighbouring tables of the newest segment are united unless the earlier one is this many times
/// larger: so there are few, and each entry is written few times.
const GROWTH: u64 = 4;

pub struct Maker {
    shared: Arc<Shared>,
    control: watch::Receiver<bool>,
    work: watch::Receiver<u64>,
    segments: Option<watch::Receiver<u64>>,
    retry: Retry,
}

impl Maker {
    pub fn new(shared: Arc<Shared>, control: watch::Receiver<bool>) -> Self {
        let (work, segments) = (shared.work.subscribe(), shared.reader.watch_segments());
        Self { shared, control, work, segments, retry: Retry::default() }
    }

    pub fn run(mut self) {
        let Ok(runtime) = tokio::runtime::Builder::new_current_thread().enable_time().build() else {
            return self.shared.broke("no runtime to wait in".into());
        };
        while !*self.control.borrow() {
            self.work.borrow_and_update();
            if let Some(segments) = &mut self.segments {
                segments.borrow_and_update();
            }
            if self.shared.is_opened() {
                let made = catch_unwind(AssertUnwindSafe(|| self.look_around()));
                match made.unwrap_or_else(|panic| Err(Failure::Index(text_of(&*panic)))) {
                    Ok(()) if self.retry.at().is_some() => {
                        self.retry = Retry::default();
                        self.shared.mended();
                    }
                    Ok(()) => {}
                    // Written anew or removed meanwhile: the change itself is the reason to look again.
                    Err(Failure::Storage(StorageError::Moved)) => {}
                    Err(failure) => {
                        self.shared.report(failure);
                        self.retry.later();
                    }
                }
            }
            if !runtime.block_on(self.wait()) {
                break;
            }
        }
    }

    fn look_around(&mut self) -> Result<(), Failure> {
        let segments = self.shared.reader.segments()?;
        self.shared.shelf.retain(&segments);
        let stop = || *self.control.borrow();
        self.tell(&segments);
        for facts in segments.iter().filter(|facts| self.shared.is_for_tables(facts)) {
            if stop() {
                return Ok(());
            }
            self.shared.fill(&self.shared.reader, facts, &stop)?;
            if stop() {
                return Ok(());
            }
            self.shared.unite(facts).map_err(Failure::Index)?;
            self.tell(&segments);
        }
        match segments.last().filter(|facts| facts.last_seq.is_none()) {
            Some(newest) => self.tend(newest)?,
            None => return Ok(()),
        }
        self.tell(&segments);
        Ok(())
    }

    /// Says from where on something is missing of what is not written any more.
    fn tell(&self, segments: &[SegmentFacts]) {
        let hole = segments.iter().find_map(|facts| {
            let mut holes = self.shared.shelf.holes(facts);
            if !self.shared.is_for_tables(facts) {
                // What lies behind the last layer is the follower's.
                holes.retain(|hole| u64::from(hole.end) < facts.end);
            }
            holes.first().copied()
        });
        self.shared.sealed_reached(hole.map(|hole| hole.first_seq));
    }

    /// Of the segment being written: mends what is missing between its layers, and unites its tables.
    fn tend(&self, newest: &SegmentFacts) -> Result<(), Failure> {
        // What lies behind the last layer is the follower's.
        let between = |hole: &Hole| u64::from(hole.end) < newest.end;
        for hole in self.shared.shelf.holes(newest).into_iter().filter(between) {
            self.shared.fill_hole(&self.shared.shelf, &self.shared.reader, newest, hole, &|| *self.control.borrow())?;
        }
        while let Some(two) = self.two_alike(newest) {
            if *self.control.borrow() {
                return Ok(());
            }
            self.shared.write(newest, &two).map_err(Failure::Index)?;
        }
        Ok(())
    }

    /// The latest two neighbouring tables of about the same size.
    fn two_alike(&self, newest: &SegmentFacts) -> Option<[Layer; 2]> {
        let mut layers = self.shared.shelf.layers(newest.number, newest.generation);
        layers.retain(Layer::is_table);
        let alike = |pair: &&[Layer]| {
            matches!(pair, [large, small]
                if adjoin(large, small) && table_bytes(large) <= GROWTH * table_bytes(small))
        };
        let [large, small] = layers.windows(2).rev().find(alike)? else { return None };
        Some([large.clone(), small.clone()])
    }

    /// Waits for something to do; false when there will be nothing more.
    async fn wait(&mut self) -> bool {
        let due = self.retry.at();
        let due = async {
            match due {
                Some(at) => tokio::time::sleep_until(at.into()).await,
                None => std::future::pending().await,
            }
        };
        let segments = async {
            match &mut self.segments {
                Some(segments) => segments.changed().await.is_ok(),
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            told = self.control.changed() => told.is_ok(),
            told = self.work.changed() => told.is_ok(),
            told = segments => told || self.work.changed().await.is_ok(),
            () = due => true,
        }
    }
}

fn table_bytes(layer: &Layer) -> u64 {
    layer.table().map_or(0, |table| table.bytes())
}

//! Writing a segment anew, and dropping whole ones: the order of steps in which the process may die
//! on any line.
//!
//! The new generation lies whole and durable under an unfinished name; the index has its table; the
//! note of what is about to be announced; the announcements, durable; the new generation gets its name;
//! the note goes. Before the name everything is as it was, and the next run takes the announcements
//! back. After it the removal is done.

use std::collections::HashSet;

use tokio::runtime::Runtime;

use crate::StorageError;
use crate::event::removed::WHOLE_SEGMENT;
use crate::event::{Class, Draft, EventView};
use crate::log::{Fate, Log, Rewritten, SegmentFacts};
use crate::upkeep::announced::Announced;
use crate::upkeep::contents::{Contents, Handle, each_event, troubles};
use crate::upkeep::inventory::Inventory;
use crate::upkeep::tally::{Grounds, Tally};

/// What it takes to change segments.
pub struct Rewriting {
    pub log: Log,
    pub announced: Announced,
    pub inventory: Inventory,
    /// In which the log is waited for.
    pub runtime: Runtime,
}

/// What became of a segment.
pub struct Outcome {
    /// By class.
    pub removed: [u64; 3],
    /// Handles that the removed events named.
    pub handles: HashSet<Handle>,
    pub bytes_before: u64,
    pub bytes_after: u64,
}

/// Whether an event goes.
pub type Removes<'a> = dyn FnMut(&EventView<'_>, Class) -> bool + 'a;
/// What is said of those that do, in a generation of that number.
pub type Announces<'a> = dyn Fn(&Tally, u64) -> Vec<Draft> + 'a;
/// Is given the new generation before it holds.
pub type Prepares<'a> = dyn Fn(&Rewritten) + 'a;

impl Rewriting {
    /// Writes a sealed segment anew. Blocks.
    ///
    /// # Errors
    /// As [`Log::rewrite`] and [`Rewritten::install`]; the segment is then as it was.
    pub fn rewrite(
        &mut self,
        facts: &SegmentFacts,
        removes: &mut Removes<'_>,
        announces: &Announces<'_>,
        prepares: &Prepares<'_>,
    ) -> Result<Outcome, StorageError> {
        let troubles = troubles(&self.log.reader(), facts)?;
        let (mut contents, mut tally) = (Contents::NOTHING, Tally::default());
        let rewritten = self.log.rewrite(facts.number, &mut |view| {
            let class = troubles.class(view);
            tally.meet(view);
            if removes(view, class) {
                tally.remove(class, view);
                return Fate::Remove;
            }
            contents.add(class, view);
            Fate::Keep
        })?;
        let after = rewritten.facts();
        prepares(&rewritten);
        let generation = u64::from(after.generation);
        let drafts = announces(&tally, generation);
        self.announced.announce(&self.log, &self.runtime, facts.number, generation, drafts)?;
        // The bytes before are overwritten: what is removed is gone, and a later erasure need not look
        // for copies in free space.
        if let Err(error) = rewritten.install(true) {
            let segments = self.log.reader().segments()?;
            if !segments.iter().any(|held| (held.number, held.generation) == (after.number, after.generation)) {
                self.announced.settle(&self.log, &self.runtime)?;
                return Err(error);
            }
            tracing::warn!(segment = facts.number, %error, "the generation before is still there; it goes at the next start");
        }
        self.announced.done()?;
        self.inventory.put(self.log.log_id(), &after, &contents);
        let Tally { removed, handles, .. } = tally;
        Ok(Outcome { removed, handles, bytes_before: facts.end, bytes_after: after.end })
    }

    /// Drops the oldest segment, which must be sealed. Blocks.
    ///
    /// # Errors
    /// As [`Log::drop_before`]; the segment is then there or gone as a whole.
    pub fn drop_whole(&mut self, facts: &SegmentFacts, grounds: &Grounds) -> Result<Outcome, StorageError> {
        let reader = self.log.reader();
        let troubles = troubles(&reader, facts)?;
        let mut tally = Tally::default();
        each_event(&reader, facts, &|_| true, &mut |view| {
            tally.meet(view);
            tally.remove(troubles.class(view), view);
        })?;
        let drafts = tally.by_session(grounds, facts.number, WHOLE_SEGMENT);
        self.announced.announce(&self.log, &self.runtime, facts.number, WHOLE_SEGMENT, drafts)?;
        self.runtime.block_on(self.log.drop_before(facts.number + 1))?;
        self.announced.done()?;
        let Tally { removed, handles, .. } = tally;
        Ok(Outcome { removed, handles, bytes_before: facts.end, bytes_after: 0 })
    }
}

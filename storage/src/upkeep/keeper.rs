//! One pass over the log: what is due is done step by step, oldest first.
//!
//! Everything here blocks, and may be stopped between two steps. A step that fails for what is wrong
//! with one segment leaves that segment as it is; one that fails for want of room, or because the log
//! records no more, ends the pass.

use std::collections::{BTreeSet, HashSet};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::StorageError;
use crate::artifact::ArtifactStore;
use crate::event::catalog::{LOG_KIND_NUMBER_MAX, LOG_KINDS, SessionWarning};
use crate::event::{Class, Clean, Context, Draft, KINDS, Symbol};
use crate::index::Index;
use crate::limits::{ARTIFACT_ORPHAN_SECONDS, ARTIFACT_PIN_SECONDS};
use crate::log::{Log, SegmentFacts};
use crate::time::Clock;
use crate::upkeep::announced::Announced;
use crate::upkeep::contents::{Handle, each_block};
use crate::upkeep::health::Counts;
use crate::upkeep::inventory::Inventory;
use crate::upkeep::plan::{self, Holding, Reason, Step};
use crate::upkeep::policy::Policy;
use crate::upkeep::rewriting::{Outcome, Rewriting};
use crate::upkeep::tally::Grounds;
use crate::upkeep::unnamed;

/// What upkeep works on.
pub struct Parts {
    pub log: Log,
    /// `None`: nobody asks by index meanwhile.
    pub index: Option<Index>,
    pub artifacts: ArtifactStore,
    pub policy: Policy,
    pub clock: Arc<dyn Clock>,
}

/// Keeps one log. There is one at a time.
pub struct Keeper {
    parts: Parts,
    rewriting: Rewriting,
    /// What removed events named and perhaps nobody does any more.
    released: HashSet<Handle>,
    counts: Counts,
    /// Whether the log was too large when last looked at.
    over: bool,
}

/// Whether to stop before the next step.
pub type Stops<'a> = dyn Fn() -> bool + 'a;

impl Keeper {
    /// `directory` is upkeep's own, `<data>/upkeep`.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn open(directory: &Path, parts: Parts) -> Result<Self, StorageError> {
        let runtime = tokio::runtime::Builder::new_current_thread().build();
        let rewriting = Rewriting {
            log: parts.log.clone(),
            inventory: Inventory::open(directory)?,
            announced: Announced::within(directory),
            runtime: runtime.map_err(StorageError::io("prepare upkeep in", directory))?,
        };
        Ok(Self { parts, rewriting, released: HashSet::new(), counts: Counts::default(), over: false })
    }

    /// What was done so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.counts.clone()
    }

    /// Whether the log is larger than it may be, with nothing left that may go.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.over
    }

    /// Does what is due.
    ///
    /// # Errors
    /// When the log records no more or the disk has no room; what was done before is done.
    pub fn pass(&mut self, stops: &Stops<'_>) -> Result<(), StorageError> {
        self.rewriting.announced.settle(&self.parts.log, &self.rewriting.runtime)?;
        self.seal_in_time()?;
        let mut skipped = BTreeSet::new();
        let (mut failed, mut sealed) = (None, false);
        let holdings = loop {
            let holdings = self.rewriting.inventory.holdings(&self.parts.log.reader())?;
            self.counts.look(&holdings);
            let now_micros = self.parts.clock.now_micros();
            let next = plan::next(&holdings, &self.parts.policy, now_micros, &skipped);
            if next.is_none() && !sealed && !stops() && self.seal_when_over(&holdings)? {
                sealed = true;
                continue;
            }
            let Some(step) = next.filter(|_| !stops()) else { break holdings };
            let number = self.number_of(step, &holdings);
            match self.take(step, number) {
                Ok(()) => {}
                Err(error @ (StorageError::Damaged { .. } | StorageError::Limit { .. })) => {
                    tracing::warn!(segment = number, %error, "a segment is left as it is");
                    skipped.insert(number);
                    failed.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        };
        self.tell_when_over(&holdings)?;
        self.release()?;
        self.rewriting.inventory.tidy(&self.parts.log.reader())?;
        failed.map_or(Ok(()), Err)
    }

    fn number_of(&self, step: Step, holdings: &[Holding]) -> u32 {
        match step {
            Step::DropBefore(_) => holdings.first().map_or(0, |oldest| oldest.number),
            Step::Remove { number, .. } | Step::Compress(number) => number,
        }
    }

    fn take(&mut self, step: Step, number: u32) -> Result<(), StorageError> {
        let Some(facts) = self.facts(number)? else { return Ok(()) };
        let (outcome, reason) = match step {
            Step::DropBefore(_) => return self.drop_oldest(&facts),
            Step::Compress(_) => (self.rewrite(&facts, None, Reason::Age)?, Reason::Age),
            Step::Remove { class, reason, .. } => (self.rewrite(&facts, Some(class), reason)?, reason),
        };
        self.note(&facts, reason, outcome);
        Ok(())
    }

    /// The segment is emptied first, so that its bytes are overwritten while nobody waits; where there
    /// is no room for that it goes as it is.
    fn drop_oldest(&mut self, facts: &SegmentFacts) -> Result<(), StorageError> {
        match self.rewrite(facts, Some(Class::Audit), Reason::Age) {
            Ok(outcome) => self.note(facts, Reason::Age, outcome),
            Err(error) if error.is_full() || matches!(error, StorageError::Limit { .. }) => {}
            Err(error) => return Err(error),
        }
        let Some(facts) = self.facts(facts.number)? else { return Ok(()) };
        let outcome = self.rewriting.drop_whole(&facts, &Grounds::plain(Reason::Age))?;
        self.note(&facts, Reason::Age, outcome);
        Ok(())
    }

    fn note(&mut self, facts: &SegmentFacts, reason: Reason, outcome: Outcome) {
        tracing::info!(
            segment = facts.number,
            removed = outcome.removed.iter().sum::<u64>(),
            bytes_before = outcome.bytes_before,
            bytes_after = outcome.bytes_after,
            "a segment was looked after"
        );
        self.counts.add(reason, &outcome);
        self.released.extend(outcome.handles);
    }

    /// Without the events of that class and of those that weigh less; what the log says of itself stays.
    fn rewrite(&mut self, facts: &SegmentFacts, most: Option<Class>, reason: Reason) -> Result<Outcome, StorageError> {
        let (grounds, number, index) = (Grounds::plain(reason), facts.number, &self.parts.index);
        self.rewriting.rewrite(
            facts,
            &mut |view, class| most.is_some_and(|most| class <= most) && view.kind_number > LOG_KIND_NUMBER_MAX,
            &|tally, generation| tally.by_session(&grounds, number, generation),
            &|rewritten| {
                if let Some(Err(error)) = index.as_ref().map(|index| index.build(&rewritten.reader())) {
                    tracing::warn!(segment = number, %error, "the index will have to make a table later");
                }
            },
        )
    }

    fn facts(&self, number: u32) -> Result<Option<SegmentFacts>, StorageError> {
        let segments = self.parts.log.reader().segments()?;
        Ok(segments.into_iter().find(|facts| facts.number == number))
    }

    /// Seals the segment being written when it is old enough.
    fn seal_in_time(&self) -> Result<(), StorageError> {
        let Some(age) = self.parts.policy.segment_age() else { return Ok(()) };
        let Some(active) = self.parts.log.reader().segments()?.pop() else { return Ok(()) };
        let age_micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
        if active.created_micros.saturating_add(age_micros) <= self.parts.clock.now_micros() {
            // What the log says of itself alone is no reason to.
            self.seal(&active, !LOG_KINDS)?;
        }
        Ok(())
    }

    /// Seals the segment being written when the log is too large and much of it lies there: a quota may
    /// be smaller than a segment.
    fn seal_when_over(&self, holdings: &[Holding]) -> Result<bool, StorageError> {
        let policy = &self.parts.policy;
        let much = policy.log_bytes_max.unwrap_or(u64::MAX) / 2;
        let active = holdings.last().filter(|holding| !holding.sealed && holding.bytes > much);
        match self.parts.log.reader().segments()?.pop() {
            Some(newest) if active.is_some() && plan::is_over(holdings, policy) => {
                let removable = KINDS.iter().filter(|facts| facts.class != Class::Audit);
                self.seal(&newest, removable.fold(0, |kinds, facts| kinds | 1 << facts.number))
            }
            _ => Ok(false),
        }
    }

    /// Seals the segment being written if it holds any of these kinds, given as bits by their numbers.
    fn seal(&self, active: &SegmentFacts, kinds: u128) -> Result<bool, StorageError> {
        let mut holds = false;
        each_block(&self.parts.log.reader(), active, &mut |block| {
            holds = block.header.kinds & kinds != 0;
            Ok(if holds { std::ops::ControlFlow::Break(()) } else { std::ops::ControlFlow::Continue(()) })
        })?;
        if holds {
            self.rewriting.runtime.block_on(self.parts.log.roll())?;
        }
        Ok(holds)
    }

    /// Only audit events are left and they are still too many: somebody must hear of it, once.
    fn tell_when_over(&mut self, holdings: &[Holding]) -> Result<(), StorageError> {
        let over = plan::is_over(holdings, &self.parts.policy);
        if over && !self.over {
            let code = Symbol::fold("log_over_quota");
            let message = Clean::fixed("The log is larger than its quota, and nothing is left in it that may go.");
            let warning = Draft::new(&Context::default(), &SessionWarning { code, message });
            self.rewriting.runtime.block_on(self.parts.log.commit(vec![warning]))?;
        }
        self.over = over;
        Ok(())
    }

    /// Removes the artifacts that removed events named and no event that is left does.
    fn release(&mut self) -> Result<(), StorageError> {
        if self.released.is_empty() {
            return Ok(());
        }
        let candidates = std::mem::take(&mut self.released);
        self.remove_unnamed(candidates, Duration::from_secs(ARTIFACT_PIN_SECONDS))
    }

    /// Removes the artifacts that no event names: their events were never recorded, or they were
    /// released when the process died.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn sweep_orphans(&mut self) -> Result<(), StorageError> {
        let age = Duration::from_secs(ARTIFACT_ORPHAN_SECONDS);
        let old = SystemTime::now().checked_sub(age).unwrap_or(SystemTime::UNIX_EPOCH);
        for candidates in unnamed::batches(&self.parts.artifacts, old)? {
            self.remove_unnamed(candidates, age)?;
        }
        Ok(())
    }

    /// Whatever was put before the look into the log has its event in the log by then, because all that
    /// was accepted before is waited for; whatever was put after it, or shortly before, stays.
    fn remove_unnamed(&mut self, mut candidates: HashSet<Handle>, unless_within: Duration) -> Result<(), StorageError> {
        if candidates.is_empty() {
            return Ok(());
        }
        let put_before = SystemTime::now().checked_sub(unless_within).unwrap_or(SystemTime::UNIX_EPOCH);
        self.rewriting.runtime.block_on(self.parts.log.commit(Vec::new()))?;
        self.rewriting.inventory.strike_out_held(&self.parts.log.reader(), &mut candidates)?;
        let gone = unnamed::remove(&self.parts.artifacts, &candidates, put_before)?;
        self.counts.artifacts_removed += gone.count;
        self.counts.artifact_bytes_removed += gone.bytes;
        Ok(())
    }
}

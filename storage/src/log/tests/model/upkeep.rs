//! Steps that seal, rewrite and drop segments and that follow the hash chain, and what their outcomes
//! must mean.

use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

use super::super::super::{Fate, Rewritten};
use super::super::Dice;
use super::check::check_all;
use super::world::{Running, World};
use crate::StorageError;
use crate::event::EventView;
use crate::event::codec::ContextField;

/// A new generation that is not installed, and the numbers that it leaves out.
pub struct Prepared {
    rewritten: Rewritten,
    removes: BTreeSet<u64>,
}

/// What the caller of something that panics is left with.
fn unwound<T>(action: impl FnOnce() -> Result<T, StorageError>) -> Result<T, StorageError> {
    catch_unwind(AssertUnwindSafe(action))
        .unwrap_or_else(|_| Err(StorageError::Unavailable { reason: "it panicked".into() }))
}

impl World {
    pub fn roll(&mut self, running: &mut Running) {
        let log = running.log.clone();
        let outcome = running.wait(log.roll());
        self.note(format!("roll: {outcome:?}"));
        match outcome {
            // Everything accepted before is in the segment that was sealed.
            Ok(()) => self.book.ensure(self.book.last_seq() + self.book.doubtful_events()),
            Err(error) => running.excuse(&error),
        }
    }

    pub fn sync(&mut self, running: &mut Running) {
        let log = running.log.clone();
        let outcome = running.wait(log.sync());
        self.note(format!("sync: {outcome:?}"));
        match outcome {
            Ok(()) => self.book.ensure(self.book.last_seq() + self.book.doubtful_events()),
            Err(error) => running.excuse(&error),
        }
    }

    /// Writes a sealed segment anew, without some of its events.
    pub fn rewrite(&mut self, running: &mut Running) {
        let segments = running.log.reader().segments().expect("they are known");
        let sealed: Vec<_> = segments.iter().filter(|facts| facts.last_seq.is_some()).collect();
        if sealed.is_empty() || running.prepared.is_some() || self.book.has_doubts() {
            return;
        }
        // What is sealed is synced.
        self.book.ensure(sealed.iter().filter_map(|facts| facts.last_seq).max().unwrap_or(0));
        let facts = sealed[self.dice.below(sealed.len() as u64) as usize];
        let style = self.dice.below(4);
        let mut removes = BTreeSet::new();
        let mut dice = Dice::of(self.dice.below(u64::MAX));
        let mut fate = |event: &EventView<'_>| {
            let goes = match style {
                0 => false,
                1 => dice.one_in(2),
                2 => event.context(ContextField::SessionId) == Some("a"),
                _ => true,
            };
            if goes {
                removes.insert(event.seq);
            }
            if goes { Fate::Remove } else { Fate::Keep }
        };
        let outcome = unwound(|| running.log.rewrite(facts.number, &mut fate));
        match outcome {
            Ok(rewritten) => {
                self.note(format!("rewrote {} without {removes:?}", facts.number));
                let new = rewritten.facts();
                assert_eq!((new.number, new.generation), (facts.number, facts.generation + 1));
                assert_eq!((new.first_seq, new.last_seq), (facts.first_seq, facts.last_seq));
                assert_eq!(rewritten.removed_count(), removes.len() as u64);
                if !running.process.is_dead() {
                    let plan = running.process.plan(None);
                    let gone = check_all(&mut self.book, &rewritten.reader());
                    let range = facts.first_seq..facts.last_seq.unwrap_or(0) + 1;
                    let expected: BTreeSet<u64> =
                        self.book.removed.range(range).chain(removes.iter()).copied().collect();
                    assert_eq!(gone, expected, "what the new generation removes");
                    running.process.plan(plan);
                }
                running.prepared = Some(Prepared { rewritten, removes });
            }
            Err(error) => {
                self.note(format!("not rewritten {}: {error}", facts.number));
                running.excuse(&error);
            }
        }
    }

    pub fn install(&mut self, running: &mut Running) {
        let Some(Prepared { rewritten, removes }) = running.prepared.take() else { return };
        let (number, generation) = (rewritten.facts().number, rewritten.facts().generation);
        let holds = |running: &Running| {
            let segments = running.log.reader().segments().expect("they are known");
            segments.iter().any(|facts| (facts.number, facts.generation) == (number, generation))
        };
        let was_dropped = running.log.reader().first_seq() > rewritten.facts().first_seq;
        let shred = self.dice.one_in(2);
        let outcome = unwound(|| rewritten.install(shred));
        self.note(format!("install {number}: {outcome:?}"));
        match outcome {
            Ok(()) => {
                assert!(holds(running), "it is installed and does not hold");
                self.book.removed.extend(removes);
            }
            Err(StorageError::Moved) if was_dropped => {}
            Err(error) => {
                running.excuse(&error);
                if holds(running) {
                    self.book.removed.extend(removes);
                } else {
                    self.book.removals_in_doubt.push(removes);
                }
            }
        }
    }

    pub fn discard(&mut self, running: &mut Running) {
        if let Some(prepared) = running.prepared.take() {
            self.note("discard what was rewritten");
            // Where it panics, the file stays for the next opening to remove.
            let _ = unwound(|| {
                drop(prepared);
                Ok(())
            });
        }
    }

    pub fn drop_segments(&mut self, running: &mut Running) {
        let segments = running.log.reader().segments().expect("they are known");
        let target = &segments[self.dice.below(segments.len() as u64) as usize];
        self.book.ensure(target.first_seq - 1);
        let log = running.log.clone();
        let was_unavailable = log.health().unavailable.is_some();
        let acknowledged = self.book.acknowledged;
        let outcome = running.wait(log.drop_before(target.number));
        self.note(format!("drop before {}: {outcome:?}", target.number));
        if let Err(error) = &outcome {
            running.excuse(error);
        }
        if running.log.reader().first_seq() == target.first_seq {
            if target.first_seq > self.book.first_seq {
                // The events that tell of a removal are synced before it.
                self.book.ensure(acknowledged);
            }
            self.book.first_seq = target.first_seq;
        } else if !was_unavailable {
            assert!(outcome.is_err(), "they were dropped and are there");
            self.book.first_seqs_in_doubt.insert(target.first_seq);
        }
    }

    /// Claims what became durable of the chain.
    pub fn take_chain(&mut self, running: &mut Running) {
        let durable = *running.log.watch().borrow();
        let Some(progress) = running.log.take_chain() else {
            assert!(self.by_interval() || running.claimed == durable.last_seq, "nothing is left to claim");
            return;
        };
        self.note(format!("claimed the chain up to {}", progress.last_seq));
        assert_eq!(progress.first_seq, running.claimed + 1);
        assert!(progress.last_seq == durable.last_seq || self.by_interval() && progress.last_seq < durable.last_seq);
        assert_eq!(progress.chain, self.book.chain_after(progress.last_seq));
        self.book.ensure(progress.last_seq);
        let steps = (progress.first_seq..=progress.last_seq).map(|seq| self.book.chain_after(seq));
        let trail: Vec<u8> = steps.flat_map(|hash| [hash[0], hash[1]]).collect();
        assert_eq!(progress.trail, Some(trail));
        running.claimed = progress.last_seq;
    }
}

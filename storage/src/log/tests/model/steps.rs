//! What each step does, and what its outcome must mean.

use super::super::message;
use super::super::simulated_disk::{Call, Mishap};
use super::check::{absorb, check_from_anywhere};
use super::program::Step;
use super::world::{Running, World};
use crate::StorageError;
use crate::event::Draft;

impl World {
    /// Does one step. Whether the process ended with it.
    pub fn act(&mut self, step: Step, running: &mut Running) -> bool {
        match step {
            Step::Commit => self.commit(running),
            Step::Offer => self.offer(running),
            Step::Flush => self.settle(running, Vec::new()),
            Step::Read => self.read(running),
            Step::TurnClock => self.turn_clock(),
            Step::Outside => self.look_from_outside(),
            Step::Sync => self.sync(running),
            Step::Roll => self.roll(running),
            Step::Rewrite => self.rewrite(running),
            Step::Install => self.install(running),
            Step::Discard => self.discard(running),
            Step::Drop => self.drop_segments(running),
            Step::TakeChain => self.take_chain(running),
            Step::Walk => self.walk(running),
            Step::Fill => self.fill(),
            Step::Free => self.free(),
            Step::Close => return self.close(running),
            Step::LetGo => return self.let_go(running),
            Step::Kill => return self.kill(),
        }
        false
    }

    fn drafts(&mut self) -> Vec<Draft> {
        let count = 1 + self.dice.below(6);
        (0..count).map(|_| self.draft()).collect()
    }

    fn draft(&mut self) -> Draft {
        let session = [None, Some("a"), Some("b"), Some("c")][self.dice.below(4) as usize];
        let length = [10, 40, 300, 700][self.dice.below(4) as usize];
        let word = ["good", "bad"][usize::from(self.dice.one_in(4))];
        let noise: String =
            (0..self.dice.below(length)).map(|_| char::from(b'a' + self.dice.below(26) as u8)).collect();
        message(session, &format!("{word} {noise}"))
    }

    fn commit(&mut self, running: &mut Running) {
        let drafts = self.drafts();
        self.book.doubtful.push_back(drafts.iter().map(|draft| draft.body.clone()).collect());
        self.settle(running, drafts);
    }

    /// Commits, and holds the outcome against what may come out.
    fn settle(&mut self, running: &mut Running, drafts: Vec<Draft>) {
        let count = drafts.len() as u64;
        let was_unavailable = running.log.health().unavailable.is_some();
        let last_seq = self.book.last_seq() + self.book.doubtful_events();
        let before = running.process.happened().len();
        let log = running.log.clone();
        let outcome = running.wait(log.commit(drafts));
        self.note(format!("commit of {count}: {outcome:?}"));
        let sync_failed = running.process.happened()[before..].contains(&(Mishap::Refused, Call::Sync));
        match outcome {
            Ok(appended) => {
                assert!(!was_unavailable, "a log that failed goes on");
                assert!(!sync_failed, "a sync failed and what it was for is acknowledged");
                assert_eq!((appended.first_seq, appended.last_seq), (last_seq + 1 - count, last_seq));
                self.book.acknowledged = last_seq;
                if !self.by_interval() {
                    self.book.ensure(last_seq);
                }
            }
            Err(error @ StorageError::Full { .. }) => {
                running.excuse(&error);
                assert!(!was_unavailable && running.log.health().unavailable.is_none(), "a full disk is no end");
                assert!(running.log.health().full);
                if count > 0 {
                    // Nothing of it is written, now or later.
                    self.book.doubtful.pop_back();
                }
            }
            Err(error) => {
                running.excuse(&error);
                assert!(matches!(error, StorageError::Unavailable { .. }), "an unexpected failure: {error}");
                assert!(running.log.health().unavailable.is_some());
                if was_unavailable && count > 0 {
                    self.book.doubtful.pop_back();
                }
            }
        }
    }

    fn offer(&mut self, running: &mut Running) {
        let drafts = self.drafts();
        let bodies: Vec<Vec<u8>> = drafts.iter().map(|draft| draft.body.clone()).collect();
        self.note(format!("offer of {}", bodies.len()));
        match running.log.offer(drafts) {
            Ok(()) => self.book.doubtful.push_back(bodies),
            Err(refused) => {
                let health = running.log.health();
                let is_full = health.queue_bytes + 1000 > self.options.queue_bytes_max as u64 / 2;
                assert!(health.unavailable.is_some() || is_full, "an offer is refused without a cause");
                assert_eq!(refused.drafts.len(), bodies.len());
            }
        }
    }

    fn read(&mut self, running: &mut Running) {
        if self.book.has_doubts() {
            return;
        }
        let outcome = check_from_anywhere(&self.book, &running.log.reader(), &mut self.dice, false);
        self.note(format!("read: {outcome:?}"));
        if let Err(error) = outcome {
            assert!(matches!(error, StorageError::Io { .. }), "an unexpected failure: {error}");
            running.excuse(&error);
        }
    }

    fn close(&mut self, running: &mut Running) -> bool {
        let log = running.log.clone();
        let outcome = running.wait(log.close());
        self.note(format!("close: {outcome:?}"));
        match outcome {
            Ok(()) => {
                // What found no room was counted instead, so how many events there are is seen only now.
                let plan = running.process.plan(None);
                absorb(&mut self.book, &running.log.reader());
                running.process.plan(plan);
                assert_eq!(self.book.doubtful_events(), 0, "what was accepted is neither there nor counted");
                self.book.ensure(self.book.last_seq());
                self.book.clean = Some(true);
            }
            Err(error) => {
                running.excuse(&error);
                self.book.clean = None;
            }
        }
        true
    }

    /// The last handle goes: what was accepted is still written.
    fn let_go(&mut self, running: &mut Running) -> bool {
        self.note("let go");
        running.queue.abandon();
        while running.serve() {}
        if !running.is_excused() {
            self.book.ensure(self.book.last_seq() + self.book.doubtful_events());
        }
        true
    }

    fn kill(&mut self) -> bool {
        self.note("kill");
        if self.dice.one_in(2) {
            self.note("    and the power goes");
            self.power_goes = true;
        }
        true
    }

    /// Others fill the disk.
    fn fill(&mut self) {
        let bytes = self.dice.below(3000);
        self.note(format!("the disk has room for {bytes}"));
        self.disk.set_room(Some(bytes));
        self.is_full = true;
    }

    pub fn free(&mut self) {
        if self.is_full {
            self.note("the disk has room");
            self.disk.set_room(None);
        }
        self.is_full = false;
    }

    fn turn_clock(&mut self) {
        let micros = if self.dice.one_in(3) { -3_600_000_000 } else { self.dice.below(10_000_000) as i64 };
        self.move_clock(micros);
        self.note(format!("the clock moves by {micros}"));
    }
}

//! The random program: which step comes next, what goes wrong in it, and what is looked at after it.

use super::super::super::Reader;
use super::super::simulated_disk::{Call, Mishap, Plan};
use super::check::{absorb, check_all, check_files, check_from_anywhere};
use super::world::World;

/// What can be done to a log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    Commit,
    Offer,
    Flush,
    Read,
    Close,
    LetGo,
    Kill,
    TurnClock,
    Outside,
    Sync,
    Roll,
    Rewrite,
    Install,
    Discard,
    Drop,
    TakeChain,
    Walk,
    Fill,
    Free,
}

/// The steps of a random program, and how likely each is.
const STEPS: [(Step, usize); 19] = [
    (Step::Commit, 10),
    (Step::Offer, 4),
    (Step::Flush, 2),
    (Step::Read, 4),
    (Step::Outside, 3),
    (Step::Close, 2),
    (Step::LetGo, 1),
    (Step::Kill, 2),
    (Step::TurnClock, 2),
    (Step::Sync, 2),
    (Step::Roll, 3),
    (Step::Rewrite, 5),
    (Step::Install, 4),
    (Step::Discard, 1),
    (Step::Drop, 1),
    (Step::TakeChain, 2),
    (Step::Walk, 4),
    (Step::Fill, 1),
    (Step::Free, 2),
];

impl World {
    /// One step of a random program.
    pub fn random_step(&mut self) {
        if self.running.is_none() {
            if self.dice.one_in(3) {
                self.look_from_outside();
            }
            self.reopen();
            return;
        }
        let step = self.any_step();
        let plan = if self.dice.one_in(6) { Some(self.any_plan()) } else { None };
        // Who looks at all of it must not be stopped half way.
        self.perform(
            step,
            plan.filter(|plan| !matches!(step, Step::Read | Step::Walk) || plan.mishap != Mishap::Panic),
        );
    }

    fn any_step(&mut self) -> Step {
        let steps: Vec<Step> = STEPS.iter().flat_map(|(step, weight)| std::iter::repeat_n(*step, *weight)).collect();
        steps[self.dice.below(steps.len() as u64) as usize]
    }

    /// One step, in which `plan` may go wrong; gives the plan back when it did not.
    pub fn perform(&mut self, step: Step, plan: Option<Plan>) -> Option<Plan> {
        let mut running = self.running.take()?;
        running.process.plan(plan);
        let before = running.process.happened().len();
        let ended = self.act(step, &mut running);
        let left = running.process.plan(None);
        let happened = running.process.happened();
        if happened.len() > before {
            self.note(format!("    {:?}", &happened[before..]));
        }
        if ended || running.process.is_dead() {
            let process = running.process.clone();
            // What is dropped here can do nothing more.
            process.kill();
            drop(running);
            self.bury(&process);
            return left;
        }
        absorb(&mut self.book, &running.log.reader());
        self.running = Some(running);
        left
    }

    fn any_plan(&mut self) -> Plan {
        let mishaps = [Mishap::Refused, Mishap::NoRoom, Mishap::Panic, Mishap::Kill, Mishap::PowerCut];
        let mishap = mishaps[self.dice.below(5) as usize];
        let calls: [fn(Call) -> bool; 4] =
            [Call::changes, |call| call == Call::Sync, |call| call == Call::Write, |_| true];
        let calls = if mishap == Mishap::NoRoom { Call::needs_room } else { calls[self.dice.below(4) as usize] };
        let most = [2, 8, 30][self.dice.below(3) as usize];
        // Cleaning up after a failure can fail as well.
        let then = [Mishap::Refused, Mishap::Kill, Mishap::PowerCut][self.dice.below(3) as usize];
        let then = if self.dice.one_in(3) { Some((self.dice.below(4), then)) } else { None };
        Plan { passes: self.dice.below(most), calls, mishap, then }
    }

    /// Opens the log, if need be after attempts that go wrong.
    fn reopen(&mut self) {
        // Making a log is the rarest thing of all, so it goes wrong more often.
        let most = if self.book.last_seq() == 0 { 8 } else { 3 };
        for _ in 0..self.dice.below(most) {
            let plan = self.any_plan();
            self.open(Some(plan));
            if self.running.is_some() {
                break;
            }
        }
        if self.running.is_none() {
            self.free();
            self.open(None);
        }
        self.check_opened();
    }

    /// Looks at all of a log that was just opened.
    pub fn check_opened(&mut self) {
        let Some(mut running) = self.running.take() else { panic!("the log is not open") };
        let reader = running.log.reader();
        self.book.meet_log(reader.log_id());
        let gone = check_all(&mut self.book, &reader);
        self.book.check_met(self.book.last_seq());
        self.book.resolve(reader.first_seq(), &gone);
        check_files(&self.disk, &reader);
        assert_eq!(running.log.health().epoch, self.book.epoch);
        running.claimed = self.book.opened_behind;
        self.running = Some(running);
    }

    /// Another process reads what the mark says is there, through a reader that it made before or now,
    /// whether a writer lives or not.
    pub fn look_from_outside(&mut self) {
        if self.outside.is_none() || self.dice.one_in(3) {
            let reader = Reader::open_with(&self.directory(), self.disk.process());
            // Before anything was acknowledged there may be no log.
            self.outside =
                if self.book.acknowledged == 0 { reader.ok() } else { Some(reader.expect("there is a log")) };
        }
        let Some(reader) = &self.outside else { return };
        let durable = reader.durable().expect("it is known").last_seq;
        self.trace.push(format!("looked from outside, up to {durable}"));
        // Even a power cut takes nothing away that was shown here.
        let shown = self.book.last_seq().min(durable);
        self.book.synced = self.book.synced.max(shown);
        if durable > self.book.last_seq() {
            self.book.meet_log(reader.log_id());
            // Shown without having been acknowledged: it must stay all the same.
            absorb(&mut self.book, reader);
            self.book.synced = durable;
        }
        if !self.book.has_doubts() {
            check_from_anywhere(&self.book, reader, &mut self.dice, true).expect("it is whole");
        }
    }
}

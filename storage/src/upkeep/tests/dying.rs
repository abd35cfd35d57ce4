//! Upkeep may die on any line: the next run makes it right.
//!
//! Every call that changes a file of the log fails once, by itself and with all that follow, and the
//! disk may then have lost what was not synced. What must hold after the next run: everything that was
//! to stay is as it was, everything that was to go is gone, and the announcements add up to exactly that.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use super::erasing::totals;
use super::world::{World, days, ownerless, plain, policy};
use crate::event::Clean;
use crate::log::tests::faulty_io::FaultyIo;
use crate::log::tests::rewrite::Told;
use crate::log::tests::{Dice, copy_directory};
use crate::upkeep::{Erasure, Policy, Subject, erase};

/// A directory whose log has two sealed segments, the first of them written anew before.
struct Base {
    world: World,
    told: Told,
}

fn base() -> Base {
    let world = World::new();
    world.session("ann", "s-1");
    world.session("bob", "s-2");
    world.put(vec![ownerless("s-1")]);
    world.roll();
    world.days_pass(25);
    world.pass(Policy { telemetry: days(20), ..policy() });
    world.session("ann", "s-1");
    world.put(vec![plain("ann", "s-1", "the last")]);
    world.roll();
    world.session("bob", "s-2");
    let told = world.told();
    Base { world, told }
}

type Work = dyn Fn(&World);

/// Lets `work` fail at every call in turn; each time `check` is given what the next run finds.
fn at_every_call(base: &Base, later_days: i64, work: &Work, check: &dyn Fn(&World, &str)) {
    let mut dice = Dice(11);
    let mut failures = 0;
    for call in 1.. {
        let mut reached = false;
        for (how, cuts) in [("fails", false), ("dies", false), ("dies", true)] {
            let io =
                Arc::new(if how == "fails" { FaultyIo::failing_at(call, false) } else { FaultyIo::dying_at(call) });
            let directory = copy_of(base.world.directory.path());
            let clock = base.world.clock.clone();
            let Some(broken) = World::failing(directory, clock, io.clone()) else {
                reached = true;
                continue;
            };
            broken.days_pass(later_days);
            work(&broken);
            reached |= io.has_failed();
            let next = if cuts { broken.after_power_cut(&io, &mut dice) } else { broken.reopened() };
            check(&next, &format!("call {call} {how}{}", if cuts { ", then the power" } else { "" }));
            next.days_pass(-later_days);
            failures += u32::from(io.has_failed());
        }
        if !reached {
            break;
        }
    }
    assert!(failures > 60, "only {failures} failures");
}

fn copy_of(from: &Path) -> tempfile::TempDir {
    let directory = super::world::directory();
    for part in ["log", "upkeep"] {
        copy_directory(&from.join(part), &directory.path().join(part));
    }
    directory
}

/// Each segment's removed numbers are those that were announced; of segments that are gone, all.
fn assert_accounted(world: &World, at: &str) {
    let told = world.told();
    let mut gone: BTreeMap<u64, u64> = totals(world);
    for facts in world.log.reader().segments().expect("they are known") {
        let removed = match facts.last_seq {
            Some(last_seq) => told.removed.range(facts.first_seq..=last_seq).count() as u64,
            None => 0,
        };
        assert_eq!(gone.remove(&u64::from(facts.number)).unwrap_or(0), removed, "{at}: segment {}", facts.number);
    }
    let dropped = world.log.reader().first_seq() - 1;
    assert_eq!(gone.values().sum::<u64>(), dropped, "{at}: {gone:?}");
}

fn assert_kept(world: &World, base: &Base, gone: &dyn Fn(u64) -> bool, at: &str) {
    let after: BTreeMap<u64, Vec<u8>> = world.told().kept.into_iter().collect();
    for (seq, record) in &base.told.kept {
        assert_eq!(after.get(seq), Some(record).filter(|_| !gone(*seq)), "{at}: event {seq}");
    }
}

/// What an undisturbed run leaves of the base's events.
fn left(base: &Base, later_days: i64, work: &Work) -> Vec<u64> {
    let world = World::on(copy_of(base.world.directory.path()), base.world.clock.clone());
    world.days_pass(later_days);
    work(&world);
    world.days_pass(-later_days);
    world.told().kept.into_iter().map(|(seq, _)| seq).collect()
}

fn retention_is_made_right(later_days: i64) {
    let base = base();
    let pass: &Work = &|world| _ = world.try_pass(policy());
    let left = left(&base, later_days, pass);
    assert!(left.len() < base.told.kept.len());
    at_every_call(&base, later_days, pass, &|world, at| {
        // What was announced and not done is taken back, should nobody want it any more.
        world.pass(Policy::KEEP_ALL);
        assert_accounted(world, at);
        world.pass(policy());
        assert_kept(world, &base, &|seq| !left.contains(&seq), at);
        assert_accounted(world, at);
        let segments = world.log.reader().segments().expect("they are known");
        assert_eq!(segments.iter().filter(|facts| facts.last_seq.is_some() && facts.generation == 0).count(), 0);
        world.try_erase().expect("it goes through");
        assert_accounted(world, at);
    });
}

#[test]
fn while_noise_is_removed() {
    retention_is_made_right(31);
}

#[test]
fn while_whole_segments_are_dropped() {
    retention_is_made_right(390);
}

#[test]
fn while_a_session_is_erased() {
    let base = base();
    let work: &Work = &|world| _ = world.try_erase();
    let left = left(&base, 0, work);
    at_every_call(&base, 0, work, &|world, at| {
        world.pass(Policy::KEEP_ALL);
        assert_accounted(world, at);
        world.try_erase().expect("it goes through");
        assert_kept(world, &base, &|seq| !left.contains(&seq), at);
        assert_accounted(world, at);
        assert_eq!(world.files_with("s-1"), Vec::<String>::new(), "{at}");
    });
}

impl World {
    fn try_erase(&self) -> Result<crate::upkeep::Erased, crate::StorageError> {
        let (by, note) = (Clean::fixed("root"), Clean::fixed("note"));
        let erasure = Erasure { subject: Subject::Session("s-1".into()), by, note };
        erase(self.directory.path(), &self.log, &erasure)
    }

    fn after_power_cut(self, io: &FaultyIo, dice: &mut Dice) -> Self {
        let directory = super::world::directory();
        let (from, to) = (self.directory.path(), directory.path());
        io.power_cut(&from.join("log"), &to.join("log"), dice);
        copy_directory(&from.join("upkeep"), &to.join("upkeep"));
        let clock = self.clock.clone();
        drop(self);
        World::on(directory, clock)
    }
}

//! One whole life of a log, in which the n-th call goes wrong, for every n until none is left: the
//! caller gets an error or what was asked for, nothing acknowledged is lost, and the next start is fine.

use super::super::simulated_disk::{Call, Mishap, Plan};
use super::super::temporary;
use super::program::Step;
use super::world::World;

/// Opening, closing and opening again come by themselves.
const LIFE: [Step; 22] = [
    Step::Commit,
    Step::Commit,
    Step::Offer,
    Step::Roll,
    Step::Commit,
    Step::Rewrite,
    Step::Commit,
    Step::Install,
    Step::Read,
    Step::Roll,
    Step::Commit,
    Step::TakeChain,
    Step::Rewrite,
    Step::Drop,
    Step::Install,
    Step::Commit,
    Step::Close,
    Step::Commit,
    Step::Rewrite,
    Step::Install,
    Step::Offer,
    Step::Close,
];

/// Lives one life; whether something went wrong in it.
fn live(plan: Plan, power_goes: bool) -> bool {
    let scratch = temporary();
    let mut world = World::new(9, scratch.path());
    let mut left = Some(plan);
    for step in LIFE {
        if world.running.is_none() {
            left = world.open(left);
            if world.running.is_some() {
                world.check_opened();
            }
        }
        if left.is_some() {
            left = world.perform(step, left);
        }
        if left.is_none() {
            // What follows a failure must not make it worse.
            world.perform(Step::Commit, None);
            break;
        }
    }
    if let Some(running) = world.running.take() {
        world.power_goes = power_goes;
        world.bury(&running.process);
    }
    world.open(None);
    world.check_opened();
    world.perform(Step::Commit, None);
    left.is_none_or(|left| left.then.is_none() && plan.then.is_some())
}

fn every_call(mishap: Mishap, calls: fn(Call) -> bool, power_goes: bool) {
    let went_wrong = (0..5_000).find(|passes| !live(Plan { passes: *passes, calls, mishap, then: None }, power_goes));
    let calls = went_wrong.expect("a life has an end");
    assert!(calls > 100, "only {calls} calls");
}

#[test]
fn no_room_at_any_call_costs_nothing_acknowledged() {
    every_call(Mishap::NoRoom, Call::needs_room, false);
    every_call(Mishap::NoRoom, Call::needs_room, true);
}

#[test]
fn a_refusal_at_any_call_costs_nothing_acknowledged() {
    every_call(Mishap::Refused, |_| true, false);
    every_call(Mishap::Refused, Call::changes, true);
}

#[test]
fn a_panic_at_any_call_costs_nothing_acknowledged() {
    every_call(Mishap::Panic, Call::changes, true);
}

#[test]
fn an_end_at_any_call_costs_nothing_acknowledged() {
    every_call(Mishap::Kill, Call::changes, false);
    every_call(Mishap::PowerCut, Call::changes, true);
}

/// The power goes while something that failed is cleaned up.
#[test]
fn an_end_soon_after_a_refusal_costs_nothing_acknowledged() {
    for then in 0..4 {
        let then = Some((then, Mishap::PowerCut));
        let plan = |passes| Plan { passes, calls: Call::changes, mishap: Mishap::Refused, then };
        let went_wrong = (0..5_000).find(|passes| !live(plan(*passes), true));
        assert!(went_wrong.is_some_and(|calls| calls > 100), "a life has an end, and many calls");
    }
}

/// The power goes while a log is made, and again while that is mended.
#[test]
fn a_creation_cut_short_twice_is_begun_again() {
    let scratch = temporary();
    let plan = |passes| Plan { passes, calls: Call::changes, mishap: Mishap::PowerCut, then: None };
    let mut mended = 0;
    for (seed, first, second) in (0..20).flat_map(|seed| (0..80).map(move |n| (seed, 6 + n / 10, n % 10))) {
        let mut world = World::new(seed, scratch.path());
        world.open(Some(plan(first)));
        let names: Vec<String> = world.disk.files().into_iter().map(|(name, _)| name).collect();
        let has = |name: &str| names.iter().any(|other| other == name);
        mended += usize::from(has("000001.seg") && !has("mark"));
        if world.running.is_none() {
            world.open(Some(plan(second)));
        }
        if world.running.is_none() {
            world.open(None);
        }
        world.check_opened();
    }
    assert!(mended > 50, "only {mended} had a segment and no mark");
}

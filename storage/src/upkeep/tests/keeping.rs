//! What goes, what stays, and what is on record of it.

use super::world::{World, days, plain, policy, portions};
use crate::event::removed::WHOLE_SEGMENT;
use crate::event::{Kind, Level};
use crate::query::tests::world::console;
use crate::upkeep::Policy;

/// Everything told of the numbers up to `last_seq`: kept records as they were, and removed ones.
fn assert_removed(world: &World, before: &crate::log::tests::rewrite::Told, gone: &[u64]) {
    let after = world.told();
    for (seq, record) in &before.kept {
        let kept = after.kept.iter().find(|(other, _)| other == seq).map(|(_, record)| record);
        assert_eq!(kept, Some(record).filter(|_| !gone.contains(seq)), "event {seq}");
        assert_eq!(after.removed.contains(seq), gone.contains(seq), "event {seq}");
    }
}

#[test]
fn noise_goes_first_then_evidence_and_audit_events_with_their_whole_segment() {
    let world = World::new();
    let [noise, evidence, audit] = world.session("ann", "s-1");
    let last_seq = world.put(vec![plain("ann", "s-1", "last")]);
    world.roll();
    world.days_pass(30);
    let before = world.told();
    assert_eq!(world.pass(policy()).removed, [[0; 3]; 2], "not yet");
    assert_removed(&world, &before, &[]);

    world.days_pass(1);
    let noise = [noise, vec![last_seq]].concat();
    assert_eq!(world.pass(policy()).removed[0], [noise.len() as u64, 0, 0]);
    assert_removed(&world, &before, &noise);

    world.days_pass(60);
    assert_eq!(world.pass(policy()).removed[0], [0, evidence.len() as u64, 0]);
    assert_removed(&world, &before, &[noise, evidence].concat());
    assert!(audit.iter().all(|seq| world.kinds().contains_key(seq)));

    world.days_pass(309);
    assert_eq!(world.pass(policy()).removed[0], [0, 0, 0], "400 days are not over");
    world.days_pass(1);
    // log.opened and the two of the session.
    assert_eq!(world.pass(policy()).removed[0], [0, 0, 3]);
    assert_eq!(world.log.reader().first_seq(), last_seq + 1);
    assert_eq!(world.kinds().into_values().filter(|kind| kind != "log.removed").count(), 0);
}

#[test]
fn what_is_removed_is_on_record_by_owner_session_kind_and_level() {
    let world = World::new();
    world.session("ann", "s-1");
    world.put(vec![super::world::ownerless("s-1"), plain("bob", "s-2", "hello"), super::world::ownerless("s-2")]);
    let none = console("", "", Level::Info, "nobody's");
    world.put(vec![none]);
    world.roll();
    world.days_pass(31);
    world.pass(policy());
    let removals = world.removals();
    let whose: Vec<&str> = removals.iter().map(|(whose, _)| whose.as_str()).collect();
    assert_eq!(whose, ["-/-", "ann/s-1", "bob/s-2"]);
    for (_, removed) in &removals {
        assert_eq!((removed.reason.as_str(), removed.segment, removed.generation), ("age", 1, 2));
        let portions = portions(removed);
        assert_eq!(portions.iter().map(|portion| portion.count).sum::<u64>(), removed.count);
        assert_eq!(portions.iter().map(|portion| portion.first_seq).min(), Some(removed.first_seq));
        assert_eq!(portions.iter().map(|portion| portion.last_seq).max(), Some(removed.last_seq));
        assert_eq!((&removed.by, &removed.note, &removed.subject), (&None, &None, &None));
    }
    let counts: Vec<_> =
        portions(&removals[1].1).into_iter().map(|portion| (portion.kind, portion.level, portion.count)).collect();
    let kinds = [Kind::NetworkRequest, Kind::NetworkResponse, Kind::NetworkFinished].map(Kind::number);
    let expected = [
        (Kind::ConsoleMessage.number(), Some(Level::Info), 1),
        (Kind::ConsoleMessage.number(), Some(Level::Warning), 1),
        (kinds[0], None, 1),
        (kinds[1], None, 1),
        (kinds[2], None, 1),
    ];
    assert_eq!(counts, expected);

    world.days_pass(370);
    world.pass(policy());
    let whole: Vec<_> =
        world.removals().into_iter().filter(|(_, removed)| removed.generation == WHOLE_SEGMENT).collect();
    let whose: Vec<&str> = whole.iter().map(|(whose, _)| whose.as_str()).collect();
    assert_eq!(whose, ["-/-", "-/s-1", "-/s-2"], "gaps, of which nothing is left that says whose they are");
    let told: u64 = world.removals().iter().filter(|(_, removed)| removed.segment == 1).map(|(_, r)| r.count).sum();
    assert_eq!(told, world.log.reader().first_seq() - 1, "every number of the segment is accounted for");
}

/// Text of which no compression makes less than half.
fn incompressible(seed: u64, bytes: usize) -> String {
    use sha2::{Digest, Sha256};
    let mut text = String::new();
    for round in 0u64.. {
        if text.len() >= bytes {
            break;
        }
        let digest = Sha256::digest(format!("{seed} {round}"));
        text.extend(digest.iter().map(|byte| format!("{byte:02x}")));
    }
    text
}

#[test]
fn for_room_the_oldest_noise_goes_and_evidence_only_when_no_noise_is_left() {
    let world = World::new();
    let mut sessions = Vec::new();
    for number in 0..4 {
        sessions.push(world.session("ann", &format!("s-{number}")));
        let number: u64 = number;
        world.put((0..40).map(|n| plain("ann", "s-x", &incompressible(number * 40 + n, 2_000))).collect());
        world.roll();
    }
    let compressed = world.pass(Policy::KEEP_ALL);
    let size = compressed.plain_bytes + compressed.compressed_bytes;
    let there = |world: &World, class: usize| -> Vec<usize> {
        let kinds = world.kinds();
        (0..4).filter(|number| kinds.contains_key(&sessions[*number][class][0])).collect()
    };
    let tight = |bytes| Policy { log_bytes_max: Some(bytes), ..Policy::KEEP_ALL };
    world.pass(tight(size - 1));
    assert_eq!((there(&world, 0), there(&world, 1)), (vec![1, 2, 3], vec![0, 1, 2, 3]));
    let counts = world.pass(tight(1));
    assert_eq!((there(&world, 0), there(&world, 1), there(&world, 2)), (vec![], vec![], vec![0, 1, 2, 3]));
    assert!(counts.removed[1][0] > 0 && counts.removed[1][1] == 20 && counts.removed[0] == [0; 3], "{counts:?}");
    assert!(world.removals().iter().all(|(_, removed)| removed.reason.as_str() == "bytes"));
}

#[test]
fn a_quota_smaller_than_a_segment_holds_all_the_same() {
    let world = World::new();
    world.put((0..40).map(|n| plain("ann", "s-1", &incompressible(n, 2_000))).collect());
    let first = world.put(vec![plain("ann", "s-1", "the last one")]);
    let mut keeper = world.keeper(Policy { log_bytes_max: Some(10_000), ..Policy::KEEP_ALL });
    keeper.pass(&|| false).expect("it goes through");
    assert!(!keeper.is_over() && !world.kinds().contains_key(&first), "{:?}", keeper.counts());
    let segments = world.log.reader().segments().expect("they are known").len();
    keeper.pass(&|| false).expect("it goes through");
    assert_eq!(world.log.reader().segments().expect("they are known").len(), segments, "once is enough");
}

#[test]
fn audit_events_that_are_too_many_are_told_of_once_and_stay() {
    let world = World::new();
    world.session("ann", "s-1");
    world.roll();
    let mut keeper = world.keeper(Policy { log_bytes_max: Some(1), ..Policy::KEEP_ALL });
    for _ in 0..3 {
        keeper.pass(&|| false).expect("it goes through");
        assert!(keeper.is_over());
    }
    assert!(world.log.reader().segments().expect("they are known").len() <= 3, "nothing is sealed in vain");
    let warnings = world.kinds().into_values().filter(|kind| kind == "session.warning").count();
    assert_eq!(warnings, 1);
}

#[test]
fn sealed_segments_are_compressed_and_nothing_else_happens_to_them() {
    let world = World::new();
    for number in 0..300 {
        world.put(vec![plain("ann", &format!("s-{}", number % 7), &format!("message number {number} of the page"))]);
    }
    world.roll();
    let before = world.told();
    let counts = world.pass(Policy::KEEP_ALL);
    assert_eq!(world.told(), before);
    assert_eq!(counts.segments_done, 1);
    assert!(counts.bytes_after * 3 < counts.bytes_before, "{counts:?}");
    assert_eq!(world.pass(Policy::KEEP_ALL).segments_done, 0, "once is enough");
    assert_eq!(world.reopened().told().kept[..before.kept.len()], before.kept);
}

#[test]
fn a_quiet_log_is_sealed_in_time_but_not_for_its_own_sake() {
    let world = World::new();
    world.put(vec![plain("ann", "s-1", "once")]);
    world.days_pass(2);
    world.pass(Policy::KEEP_ALL);
    assert_eq!(world.log.reader().segments().expect("they are known").len(), 1, "nothing will ever go");
    let week = Policy { telemetry: days(8), ..policy() };
    world.pass(week);
    assert_eq!(world.log.reader().segments().expect("they are known").len(), 2);
    world.days_pass(7);
    world.pass(week);
    assert_eq!(world.removals().len(), 1);
    for _ in 0..5 {
        world.days_pass(2);
        world.pass(week);
    }
    assert_eq!(world.log.reader().segments().expect("they are known").len(), 2, "it only speaks of itself");
}

#[test]
fn what_segments_hold_is_remembered_and_known_again_when_that_is_lost() {
    let world = World::new();
    world.session("ann", "s-1");
    world.roll();
    world.pass(policy());
    let file = world.upkeep_directory().join("000001-1.held");
    let whole = std::fs::read(&file).expect("it is there");
    world.days_pass(31);
    for damage in 0..4 {
        let mut bytes = whole.clone();
        match damage {
            0 => bytes.clear(),
            1 => bytes.truncate(whole.len() - 3),
            // The times of the noise: taken at their word, nothing would ever go.
            2 => bytes[34..42].fill(0x7f),
            _ => {}
        }
        std::fs::write(&file, bytes).expect("it is written");
        let mut keeper = world.keeper(Policy { telemetry: days(10_000), ..Policy::KEEP_ALL });
        keeper.pass(&|| false).expect("it goes through");
        assert_eq!(std::fs::read(&file).expect("it is there"), whole, "damage {damage}");
    }
    std::fs::write(&file, [&whole[..34], &[0x7f; 8], &whole[42..]].concat()).expect("it is written");
    assert_eq!(world.pass(policy()).removed[0][0], 5);
    assert!(!file.exists(), "it told of a generation that is gone");
}

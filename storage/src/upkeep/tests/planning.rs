//! What goes first, what goes when, and what never goes.

use std::collections::BTreeSet;
use std::time::Duration;

use proptest::prelude::*;

use crate::event::Class;
use crate::upkeep::plan::{Holding, Kept, Reason, Step, is_over, next};
use crate::upkeep::policy::Policy;

const DAY_MICROS: i64 = 86_400_000_000;
const NOW_MICROS: i64 = 1_000 * DAY_MICROS;

fn days(days: u64) -> Option<Duration> {
    Some(Duration::from_secs(days * 86_400))
}

fn policy() -> Policy {
    Policy { telemetry: days(30), evidence: days(90), audit: days(400), log_bytes_max: None }
}

/// A sealed and compressed segment whose events are that old, ten of each class named.
fn aged(number: u32, age_days: i64, classes: &[Class]) -> Holding {
    let mut kept = [Kept::NOTHING; 3];
    for class in classes {
        kept[*class as usize] = Kept { count: 10, last_micros: NOW_MICROS - age_days * DAY_MICROS };
    }
    Holding { number, generation: 1, sealed: true, bytes: 100, kept: Some(kept) }
}

/// Nothing of that class is left.
fn clear(holding: &mut Holding, class: Class) {
    holding.kept.as_mut().expect("it is known")[class as usize] = Kept::NOTHING;
}

fn kept(holding: &Holding, class: Class) -> Kept {
    holding.kept.expect("it is known")[class as usize]
}

const ALL: [Class; 3] = [Class::Telemetry, Class::Evidence, Class::Audit];

fn step(holdings: &[Holding], policy: &Policy) -> Option<Step> {
    next(holdings, policy, NOW_MICROS, &BTreeSet::new())
}

#[test]
fn each_class_has_its_own_age() {
    let removes = |class| Some(Step::Remove { number: 1, class, reason: Reason::Age });
    for (age_days, expected) in [
        (30, None),
        (31, removes(Class::Telemetry)),
        (90, removes(Class::Telemetry)),
        (91, removes(Class::Evidence)),
        (400, removes(Class::Evidence)),
        (401, Some(Step::DropBefore(2))),
    ] {
        assert_eq!(step(&[aged(1, age_days, &ALL)], &policy()), expected, "{age_days} days");
    }
}

#[test]
fn what_is_gone_is_not_removed_again() {
    assert_eq!(step(&[aged(1, 31, &[Class::Evidence, Class::Audit])], &policy()), None);
    assert_eq!(step(&[aged(1, 399, &[Class::Audit])], &policy()), None);
    assert_eq!(step(&[aged(1, 10_000, &ALL)], &Policy::KEEP_ALL), None);
}

#[test]
fn only_leading_segments_go_whole() {
    let audit = [Class::Audit];
    let log = [aged(4, 500, &audit), aged(5, 401, &audit), aged(6, 300, &audit), aged(7, 500, &audit)];
    assert_eq!(step(&log, &policy()), Some(Step::DropBefore(6)));
    assert_eq!(step(&log[2..], &policy()), None, "a hole would be damage");
}

#[test]
fn the_segment_being_written_is_left_alone() {
    let active = Holding { sealed: false, generation: 0, ..aged(1, 10_000, &ALL) };
    let tight = Policy { log_bytes_max: Some(1), ..policy() };
    assert_eq!(step(&[active], &tight), None);
}

#[test]
fn what_is_sealed_is_compressed_once() {
    let fresh = Holding { generation: 0, kept: None, ..aged(2, 0, &[]) };
    let tight = Policy { log_bytes_max: Some(1), ..policy() };
    assert_eq!(step(&[aged(1, 0, &ALL), fresh.clone()], &tight), Some(Step::Compress(2)), "it may be enough");
    assert_eq!(step(&[fresh], &policy()), Some(Step::Compress(2)), "what nobody has read is not dropped");
}

#[test]
fn for_room_noise_goes_before_evidence_and_audit_never() {
    let tight = Policy { log_bytes_max: Some(250), ..policy() };
    let removes = |number, class| Some(Step::Remove { number, class, reason: Reason::Bytes });
    let mut log = [aged(1, 3, &ALL), aged(2, 2, &ALL), aged(3, 1, &ALL)];
    for (at, class) in [(0, Class::Telemetry), (1, Class::Telemetry), (2, Class::Telemetry), (0, Class::Evidence)] {
        assert_eq!(step(&log, &tight), removes(log[at].number, class));
        clear(&mut log[at], class);
    }
    log[0].bytes = 50;
    assert_eq!(step(&log, &tight), None, "it fits again");
    log.iter_mut().for_each(|holding| {
        holding.bytes = 100;
        clear(holding, Class::Evidence);
    });
    assert_eq!(step(&log, &tight), None, "audit events stay");
    assert!(is_over(&log, &tight), "and it is known that they take too much");
}

#[test]
fn what_cannot_be_rewritten_is_passed_over() {
    let log = [aged(1, 500, &ALL), aged(2, 500, &ALL)];
    let skipped = BTreeSet::from([1]);
    let second = Step::Remove { number: 2, class: Class::Evidence, reason: Reason::Age };
    assert_eq!(next(&log, &policy(), NOW_MICROS, &skipped), Some(second), "and nothing behind it is dropped whole");
}

#[test]
fn segments_are_sealed_in_time() {
    assert_eq!(policy().segment_age(), days(1));
    assert_eq!(Policy { telemetry: days(4), ..policy() }.segment_age(), Some(Duration::from_secs(43_200)));
    assert_eq!(Policy::KEEP_ALL.segment_age(), None);
}

#[test]
fn a_lesser_class_may_not_outlive_a_greater() {
    let inversions =
        |telemetry, evidence, audit| Policy { telemetry, evidence, audit, log_bytes_max: None }.inversions().len();
    assert_eq!(inversions(days(30), days(30), days(30)), 0);
    assert_eq!(inversions(None, None, None), 0);
    assert_eq!(inversions(days(1), None, None), 0);
    assert_eq!(inversions(None, days(1), None), 1);
    assert_eq!(inversions(days(3), days(2), days(1)), 2);
}

fn holdings() -> impl Strategy<Value = Vec<Holding>> {
    let kept = (0..3u64, 0..600i64).prop_map(|(count, age)| Kept { count, last_micros: NOW_MICROS - age * DAY_MICROS });
    let holding = (0..2u16, 0..200u64, [kept.clone(), kept.clone(), kept]);
    proptest::collection::vec(holding, 1..8).prop_map(|segments| {
        let last = segments.len();
        let numbered = (1u32..).zip(segments);
        let holding = |(number, (generation, bytes, kept)): (u32, (u16, u64, [Kept; 3]))| {
            let sealed = (number as usize) < last;
            Holding { number, generation, sealed, bytes, kept: Some(kept) }
        };
        numbered.map(holding).collect()
    })
}

/// What the step would leave.
fn apply(log: &mut Vec<Holding>, step: Step) {
    match step {
        Step::DropBefore(number) => log.retain(|holding| holding.number >= number),
        Step::Compress(number) => {
            log.iter_mut().filter(|holding| holding.number == number).for_each(|holding| holding.generation += 1);
        }
        Step::Remove { number, class, .. } => {
            let holding = log.iter_mut().find(|holding| holding.number == number).expect("it is there");
            assert!(kept(holding, class).count > 0, "there is something to remove");
            ALL.into_iter().filter(|lesser| *lesser <= class).for_each(|class| clear(holding, class));
            holding.generation += 1;
            holding.bytes /= 2;
        }
    }
}

proptest! {
    #[test]
    fn steps_come_to_an_end_and_take_only_what_may_go(mut log in holdings(), bytes_max in 0..800u64) {
        let policy = Policy { log_bytes_max: Some(bytes_max), ..policy() };
        let young = |holding: &Holding, class: Class| {
            let kept = kept(holding, class);
            kept.count > 0 && kept.last_micros >= policy.cutoff_micros(class, NOW_MICROS).expect("there is one")
        };
        for round in 0.. {
            prop_assert!(round < 100, "no end");
            let Some(step) = step(&log, &policy) else { break };
            let before = log.clone();
            apply(&mut log, step);
            for holding in &before {
                let after = log.iter().find(|other| other.number == holding.number);
                let lost = |class: Class| kept(holding, class).count > 0
                    && after.is_none_or(|after| kept(after, class).count == 0);
                prop_assert!(holding.sealed || after == Some(holding), "the segment being written");
                prop_assert!(!(lost(Class::Audit) && young(holding, Class::Audit)), "young audit events");
                let by_bytes = matches!(step, Step::Remove { reason: Reason::Bytes, .. });
                for class in [Class::Telemetry, Class::Evidence] {
                    prop_assert!(by_bytes || !(lost(class) && young(holding, class)), "young without need");
                }
                let noise = before.iter().any(|other| other.sealed && kept(other, Class::Telemetry).count > 0);
                prop_assert!(!(by_bytes && lost(Class::Evidence) && noise), "evidence before noise");
            }
        }
        let sealed = || log.iter().filter(|holding| holding.sealed);
        prop_assert!(sealed().all(|holding| holding.generation > 0), "all are compressed");
        let removable = sealed().any(|holding| ALL[..2].iter().any(|class| kept(holding, *class).count > 0));
        prop_assert!(!(is_over(&log, &policy) && removable), "what could go for room went");
    }
}

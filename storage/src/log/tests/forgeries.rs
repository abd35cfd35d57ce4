//! A01: whatever somebody without the private key does to the files, verifying finds it, and names the
//! first event that is not as it was wherever the trail and a checkpoint cover it.

use std::path::{Path, PathBuf};

use super::Dice;
use super::forged_world::World;
use super::forger::{Entry, Forgery, misdescribe, write_files};
use crate::audit::PublicKey;
use crate::audit::verify::{Finding, Problem};
use crate::log::RemovedRun;

const FORGERIES: u64 = 200;

/// What a forgery must lead to.
#[derive(Debug)]
enum Expected {
    /// This event is named as the first one.
    Exactly(u64),
    /// A finding about events holds this one.
    Within(u64),
    /// A finding of that kind.
    Problem(Problem),
    /// Found only by a checkpoint that was kept elsewhere.
    WithSaved,
}

/// A forged event in the place of a true one: what the trail tells apart.
fn edit(entry: &mut Entry, dice: &mut Dice) {
    let Entry::Event { micros, body, .. } = entry else { return };
    if dice.below(4) == 0 {
        *micros += 1;
        return;
    }
    // Texts end most bodies, so the last byte is one of a text.
    if let Some(last) = body.last_mut() {
        *last = if *last == b'x' { b'y' } else { b'x' };
    }
}

/// One forgery of the events; returns what verifying must say.
fn forge_events(world: &World, dice: &mut Dice, chained: bool) -> Expected {
    let mut forgery = Forgery::take_apart(world.data());
    let places = forgery.places();
    let signed = places.iter().filter(|place| forgery.entry(**place).seq() + 2 < world.signed_through).count();
    // Behind the newest checkpoint nothing but the chain says what was there.
    let reach = if chained { signed } else { places.len() - 2 };
    let at = 2 + dice.below(reach as u64 - 3) as usize;
    let place = places[at];
    let seq = forgery.entry(place).seq();
    let mut bad = seq;
    match dice.below(6) {
        0 | 1 => edit(forgery.entry(place), dice),
        2 => {
            let keeps_numbers = dice.below(2) == 0;
            if !keeps_numbers {
                forgery.renumber_after(place, -1);
            }
            forgery.commit(place).entries.remove(place.2);
        }
        3 => {
            let mut forged = forgery.entry(place).clone();
            edit(&mut forged, dice);
            forgery.renumber_after((place.0, place.1, place.2), 1);
            *match forgery.entry(place) {
                Entry::Event { seq, .. } => seq,
                Entry::Removed(_) => unreachable!("it is a place of an event"),
            } += 1;
            forgery.commit(place).entries.insert(place.2, forged);
        }
        4 => {
            let other = places[at + 1];
            let (mut a, mut b) = (forgery.entry(place).clone(), forgery.entry(other).clone());
            if let (Entry::Event { seq: first, .. }, Entry::Event { seq: second, .. }) = (&mut a, &mut b) {
                std::mem::swap(first, second);
            }
            (*forgery.entry(place), *forgery.entry(other)) = (b, a);
        }
        _ => {
            let mut twice = forgery.entry(place).clone();
            forgery.renumber_after(place, 1);
            if let Entry::Event { seq, .. } = &mut twice {
                *seq += 1;
            }
            forgery.commit(place).entries.insert(place.2 + 1, twice);
            bad = seq + 1;
        }
    }
    forgery.put_together(world.data(), chained);
    if bad > world.signed_through {
        return Expected::Within(bad);
    }
    // Two bytes of a hash agree by chance once in a great while; the next event then differs.
    let forged = forgery.hashes();
    let differs = |seq: &u64| forged.get(seq).map(|hash| &hash[..2]) != world.hashes.get(seq).map(|hash| &hash[..2]);
    Expected::Exactly((bad..).find(|seq| differs(seq)).unwrap_or(bad))
}

/// One forgery of anything but single events.
fn forge_files(world: &World, dice: &mut Dice, chained: bool) -> Expected {
    match dice.below(12) {
        choice @ (0 | 3 | 4 | 10) => forge_log(world, dice, chained, choice),
        1 => {
            // The older copy of a segment, from before events were removed from it.
            let log = world.data().join("log");
            std::fs::remove_file(log.join("000003-1.seg")).expect("it was written anew");
            let older = &world.unremoved[Path::new("log/000003.seg")];
            std::fs::write(log.join("000003.seg"), older).expect("it is written");
            Expected::Problem(Problem::Removal)
        }
        2 => {
            write_files(&world.older, world.data());
            Expected::WithSaved
        }
        choice => forge_audit(world, dice, choice),
    }
}

/// Events at an end, or runs of removed ones.
fn forge_log(world: &World, dice: &mut Dice, chained: bool, choice: u64) -> Expected {
    let mut forgery = Forgery::take_apart(world.data());
    match choice {
        0 => {
            forgery.cut_after(world.signed_through - 1 - dice.below(40));
            let left = forgery.hashes().last_key_value().map_or(0, |(seq, _)| *seq);
            forgery.put_together(world.data(), chained);
            Expected::Exactly(left + 1)
        }
        3 => {
            // An event is said to be removed, and nothing says so on record.
            let places = forgery.places();
            let place = places[1 + dice.below(places.len() as u64 - 20) as usize];
            let seq = forgery.entry(place).seq();
            *forgery.entry(place) = Entry::Removed(RemovedRun { first_seq: seq, count: 1, chain: world.hashes[&seq] });
            forgery.put_together(world.data(), true);
            Expected::Within(seq)
        }
        4 => {
            // What is told of removed events is told otherwise.
            let commits = forgery.segments.iter_mut().flat_map(|segment| &mut segment.commits);
            let runs = commits.flat_map(|commit| &mut commit.entries).filter_map(|entry| match entry {
                Entry::Removed(run) => Some(run),
                Entry::Event { .. } => None,
            });
            let mut runs: Vec<_> = runs.collect();
            let chosen = dice.below(runs.len() as u64) as usize;
            runs[chosen].chain[dice.below(2) as usize] ^= 1;
            let seq = runs[chosen].first_seq;
            forgery.put_together(world.data(), chained);
            Expected::Exactly(seq)
        }
        _ => {
            // A leading segment goes, and the mark says that it was meant to.
            forgery.drop_first_segment(world.data());
            Expected::Problem(Problem::Removal)
        }
    }
}

/// The files beside the log.
fn forge_audit(world: &World, dice: &mut Dice, choice: u64) -> Expected {
    let audit = world.data().join("audit");
    match choice {
        5 => {
            let older = &world.older[Path::new("audit/checkpoints.jws")];
            std::fs::write(audit.join("checkpoints.jws"), older).expect("it is written");
            Expected::Problem(Problem::Checkpoint)
        }
        6 => forge_lines(&audit, dice),
        7 => {
            let path = audit.join("trail");
            let mut trail = std::fs::read(&path).expect("it is there");
            let at = dice.below(2 * world.signed_through) as usize;
            trail[at] ^= 1 << dice.below(8);
            std::fs::write(&path, trail).expect("it is written");
            Expected::Problem(Problem::Trail)
        }
        8 => {
            std::fs::write(audit.join("key.pub"), format!("{}\n", stranger())).expect("it is written");
            Expected::Problem(Problem::Key)
        }
        9 => {
            let files =
                [("key.pub", Problem::Key), ("checkpoints.jws", Problem::Checkpoint), ("trail", Problem::Trail)];
            let (name, problem) = files[dice.below(3) as usize];
            std::fs::remove_file(audit.join(name)).expect("it goes");
            Expected::Problem(problem)
        }
        _ => {
            std::fs::remove_dir_all(&audit).expect("it goes");
            std::fs::create_dir(&audit).expect("it is made");
            Expected::Problem(Problem::Checkpoint)
        }
    }
}

fn stranger() -> PublicKey {
    PublicKey::parse("ed25519:11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo").expect("a key")
}

/// Lines of the checkpoints go, change places, or come from elsewhere.
fn forge_lines(audit: &Path, dice: &mut Dice) -> Expected {
    let path: PathBuf = audit.join("checkpoints.jws");
    let text = std::fs::read_to_string(&path).expect("it is text");
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    let at = dice.below(lines.len() as u64 - 1) as usize;
    match dice.below(4) {
        0 => {
            lines.remove(at);
        }
        1 => lines.swap(at, at + 1),
        2 => {
            let again = lines[at].clone();
            lines.insert(at, again);
        }
        _ => {
            let byte = dice.below(lines[at].len() as u64) as usize;
            let other = if lines[at].as_bytes()[byte] == b'A' { "B" } else { "A" };
            lines[at].replace_range(byte..=byte, other);
        }
    }
    std::fs::write(&path, lines.join("\n") + "\n").expect("it is written");
    Expected::Problem(Problem::Checkpoint)
}

fn check(trial: u64, world: &World, expected: &Expected) {
    let report = world.verify();
    let said = || format!("forgery {trial}: {expected:?}: {:#?}", report.findings);
    match expected {
        Expected::Exactly(seq) => {
            let first = report.first_bad().unwrap_or_else(|| panic!("{}", said()));
            assert!(first.exact && first.first_seq == *seq, "{}", said());
        }
        Expected::Within(seq) => {
            let mut of_events = report.findings.iter().filter(|finding| finding.problem.is_of_events());
            assert!(of_events.any(|finding| (finding.first_seq..=finding.last_seq).contains(seq)), "{}", said());
        }
        Expected::Problem(problem) => {
            assert!(report.findings.iter().any(|finding| finding.problem == *problem), "{}", said());
        }
        Expected::WithSaved => {
            let kept = world.verify_with(None, &world.saved);
            assert!(kept.findings.iter().any(|finding| finding.problem == Problem::Cut && finding.exact), "{}", said());
        }
    }
    assert!(report.findings.len() < 12, "{}", said());
}

#[tokio::test]
async fn two_hundred_forgeries_are_found_and_the_first_false_event_is_named() {
    let world = World::new().await;
    let clean = world.verify_with(Some(world.key), &world.saved);
    assert_eq!(clean.findings, []);
    assert!(clean.removed > 3 && clean.segments > 4 && clean.first_seq > 1, "{clean:?}");
    assert_eq!((clean.signed_through, clean.unsigned_events()), (world.signed_through, 11));
    let seed = std::env::var("FORGER_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(0x5eed_u64);
    let mut dice = Dice(seed);
    for trial in 0..FORGERIES {
        world.restore();
        let chained = trial % 2 == 0;
        let forge = if dice.below(3) == 0 { forge_files } else { forge_events };
        let expected = forge(&world, &mut dice, chained);
        check(trial, &world, &expected);
    }
}

#[tokio::test]
async fn a_header_that_hides_what_it_holds_is_found() {
    let world = World::new().await;
    let mut dice = Dice(7);
    for _ in 0..30 {
        world.restore();
        let (first_seq, last_seq) = misdescribe(world.data(), &mut dice);
        let report = world.verify();
        let [finding] = &report.findings[..] else { panic!("{first_seq}: {:?}", report.findings) };
        assert_eq!(
            (finding.problem, finding.first_seq, finding.last_seq),
            (Problem::Misdescribed, first_seq, last_seq)
        );
    }
}

#[tokio::test]
async fn a_mark_that_says_something_else_than_the_log_is_found() {
    let world = World::new().await;
    for change in 0..4 {
        world.restore();
        let mut forgery = Forgery::take_apart(world.data());
        forgery.forge_mark(world.data(), change);
        let report = world.verify();
        let problems: Vec<_> = report.findings.iter().map(|finding| finding.problem).collect();
        assert!(
            problems.iter().any(|it| matches!(it, Problem::Mark | Problem::Cut)),
            "{change}: {:?}",
            report.findings
        );
    }
    world.restore();
    std::fs::remove_file(world.data().join("log/mark")).expect("it goes");
    assert!(world.verify().findings.iter().any(|finding| finding.problem == Problem::Mark));
}

/// Where a file means something: behind the last event there is only room, and of the two slots of the
/// mark one is older.
fn meant_bytes(world: &World, name: &str, length: usize) -> usize {
    match name {
        "trail" => 2 * world.signed_through as usize,
        "key.pub" => length - 1,
        _ if world.last_segment == name => world.last_offset,
        _ => length,
    }
}

#[tokio::test]
async fn every_flipped_bit_and_every_hole_is_found() {
    let world = World::new().await;
    let mut dice = Dice(0xf11b);
    let watched = |name: &str| name.ends_with(".seg") || ["trail", "key.pub", "checkpoints.jws"].contains(&name);
    let files: Vec<_> = world.whole.keys().filter(|path| watched(&name_of(path))).cloned().collect();
    for trial in 0..150 {
        world.restore();
        let path = &files[dice.below(files.len() as u64) as usize];
        let mut bytes = world.whole[path].clone();
        let meant = meant_bytes(&world, &name_of(path), bytes.len());
        let at = dice.below(meant as u64) as usize;
        match trial % 3 {
            0 | 1 => bytes[at] ^= 1 << dice.below(8),
            _ => {
                let until = (at + 64).min(meant);
                if bytes[at..until].iter().all(|byte| *byte == 0) {
                    continue;
                }
                bytes[at..until].fill(0);
            }
        }
        std::fs::write(world.data().join(path), bytes).expect("it is written");
        let report = world.verify();
        assert!(!report.is_sound(), "{trial}: {} at {at}", path.display());
        let ordered =
            |finding: &Finding| finding.first_seq <= finding.last_seq && finding.last_seq <= 2 * report.last_seq;
        assert!(report.findings.iter().all(ordered), "{trial}: {:?}", report.findings);
        world.restore();
        std::fs::write(world.data().join(path), &world.whole[path][..at]).expect("it is written");
        assert!(!world.verify().is_sound(), "{trial}: {} cut at {at}", path.display());
    }
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

#[tokio::test]
async fn numbers_beyond_all_bounds_are_damage_and_nothing_worse() {
    let world = World::new().await;
    for (trial, number) in [u64::MAX, u64::MAX - 1, 1 << 60, (1 << 60) - 1, 1 << 62, 0].into_iter().enumerate() {
        for at in [0, 3, 50] {
            world.restore();
            let mut forgery = Forgery::take_apart(world.data());
            let place = forgery.places()[at];
            if let Entry::Event { seq, .. } = forgery.entry(place) {
                *seq = number;
            }
            forgery.put_together(world.data(), trial % 2 == 0);
            assert!(!world.verify().is_sound(), "{number} at {at}");
        }
    }
}

//! A log that nobody changed verifies: while it is written, after crashes, without its last moments,
//! and against what was kept elsewhere.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use super::super::key::AuditKey;
use super::super::verify::{Problem, Report, VerifyOptions, verify};
use super::super::{CHECKPOINTS_FILE, Checkpoint, KeyChange, SignedLine, Statement};
use super::{World, announcement, append, close};
use crate::event::removed::{Portion, WHOLE_SEGMENT};
use crate::event::{EventView, Kind};
use crate::log::{Fate, Log};

fn report(world: &World) -> Report {
    verify(&VerifyOptions::new(world.path()), &mut |_| {}).expect("it can be read")
}

fn problems(report: &Report) -> Vec<Problem> {
    report.findings.iter().map(|finding| finding.problem).collect()
}

#[tokio::test]
async fn a_log_verifies_while_it_is_written_and_after_it_was_closed() {
    let world = World::new();
    for epoch in 1..4 {
        let log = world.open();
        let auditor = world.start(&log).expect("it starts");
        for _ in 0..20 {
            append(&log, 30).await;
        }
        let running = report(&world);
        assert_eq!(running.findings, [], "epoch {epoch}");
        assert!(running.unsigned_events() >= 600, "{}", running.unsigned_events());
        auditor.cover(log.health().last_seq).await.expect("it is covered");
        assert!(report(&world).unsigned_events() <= 1, "its own event alone is not covered");
        if epoch < 3 {
            close(&log, &auditor).await;
        }
        // The auditor's last event comes after its answer. A log that was closed takes nothing more.
        drop(auditor);
        let _ = log.commit(Vec::new()).await;
        let last_seq = log.health().last_seq;
        drop(log);
        let ended = report(&world);
        assert_eq!(ended.findings, [], "epoch {epoch}");
        assert_eq!((ended.first_seq, ended.last_seq, ended.events), (1, last_seq, last_seq));
        assert_eq!(ended.unsigned_events(), u64::from(epoch == 3));
        assert!(ended.segments > 1 && ended.raw_bytes > 0 && ended.stored_bytes > 0 && ended.checkpoints > 1);
    }
}

#[tokio::test]
async fn what_was_kept_elsewhere_is_held_against_the_log() {
    let (world, other) = (World::new(), World::new());
    let mut saved = Vec::new();
    for world in [&world, &other] {
        let log = world.open();
        let auditor = world.start(&log).expect("it starts");
        append(&log, 100).await;
        close(&log, &auditor).await;
        saved.push(world.lines());
    }
    let key = saved[0][0].key;
    let with = |key, saved: &[SignedLine]| {
        let options = VerifyOptions { key, saved: saved.to_vec(), ..VerifyOptions::new(world.path()) };
        verify(&options, &mut |_| {}).expect("it can be read")
    };
    let sound = with(Some(key), &saved[0]);
    assert_eq!(sound.findings, []);
    assert_eq!((sound.pinned.key, sound.pinned.checkpoints), (true, saved[0].len() as u64));
    assert!(problems(&with(Some(saved[1][0].key), &[])).contains(&Problem::Key));
    let foreign = with(None, &saved[1][..1]);
    assert!(problems(&foreign).contains(&Problem::Key) && problems(&foreign).contains(&Problem::Changed));
    assert_eq!(foreign.signed_through, 0, "what contradicts the saved checkpoint is worth nothing");
}

#[tokio::test]
async fn a_log_without_checkpoints_is_sound_only_when_nothing_happened_in_it() {
    let world = World::new();
    let log = world.open();
    assert_eq!(report(&world).findings, []);
    let last_seq = append(&log, 1).await;
    log.close().await.expect("it closes");
    let unsigned = report(&world);
    assert_eq!(problems(&unsigned), [Problem::Unsigned]);
    assert_eq!(unsigned.unsigned_events(), last_seq + 1);
}

#[tokio::test]
async fn lines_that_a_crash_cut_short_are_no_findings() {
    let world = World::new();
    let log = world.open();
    close(&log, &world.start(&log).expect("it starts")).await;
    let path = world.audit().join(CHECKPOINTS_FILE);
    let mut bytes = std::fs::read(&path).expect("it is there");
    bytes.extend_from_slice(b"eyJhbGci");
    std::fs::write(&path, bytes).expect("it is written");
    let report = report(&world);
    assert_eq!((report.findings.len(), report.torn_checkpoint_bytes), (0, 8));
}

#[tokio::test]
async fn any_two_saved_checkpoints_agree_over_changes_of_key() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let mut keys = vec![auditor.health().key.expect("a key")];
    for _ in 0..3 {
        append(&log, 20).await;
        auditor.cover(log.health().last_seq).await.expect("it is covered");
        keys.push(auditor.change_key().await.expect("it is changed"));
    }
    close(&log, &auditor).await;
    let saved: Vec<_> = world.lines().into_iter().filter(|line| line.checkpoint().is_some()).collect();
    let with = |key, saved: &[SignedLine]| {
        let options = VerifyOptions { key, saved: saved.to_vec(), ..VerifyOptions::new(world.path()) };
        verify(&options, &mut |_| {}).expect("it can be read")
    };
    for key in &keys {
        let sound = with(Some(*key), &saved);
        assert_eq!((sound.findings.as_slice(), sound.keys.as_slice()), ([].as_slice(), keys.as_slice()), "{key}");
    }
    for (position, first) in saved.iter().enumerate() {
        for second in &saved[position + 1..] {
            assert_eq!(with(None, &[first.clone(), second.clone()]).findings, []);
        }
    }
    // The same place with another chain, signed by a stranger.
    let forged = forged(saved[1].checkpoint().expect("a checkpoint"), [7; 32]);
    assert!(with(None, &[forged]).findings.iter().any(|finding| finding.problem == Problem::Key));
}

/// A checkpoint that states another chain, signed by a stranger.
fn forged(checkpoint: &Checkpoint, secret: [u8; 32]) -> SignedLine {
    let statement = Statement::Checkpoint(Checkpoint { chain: [1; 32], ..checkpoint.clone() });
    SignedLine::read(&statement.sign(&AuditKey::from_secret(secret))).expect("it is sound by itself")
}

#[tokio::test]
async fn lines_that_a_stranger_signed_are_found_wherever_they_stand() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    append(&log, 20).await;
    close(&log, &auditor).await;
    let path = world.audit().join(CHECKPOINTS_FILE);
    let true_lines = std::fs::read_to_string(&path).expect("it is text");
    let lines = world.lines();
    let stranger = AuditKey::from_secret([7; 32]);
    let last = lines.last().expect("a line");
    let checkpoint = last.checkpoint().expect("a checkpoint").clone();
    let next = Checkpoint { previous: Some(last.digest), since_seq: checkpoint.seq, ..checkpoint.clone() };
    let change = KeyChange {
        log_id: checkpoint.log_id.clone(),
        seq: checkpoint.seq,
        at_micros: 0,
        next_key: stranger.public(),
        previous: Some(last.digest),
    };
    let appended = [
        // The stranger signs on, or names itself as the next key.
        Statement::Checkpoint(next).sign(&stranger),
        Statement::KeyChange(change).sign(&stranger),
    ];
    for line in appended {
        std::fs::write(&path, format!("{true_lines}{line}\n")).expect("it is written");
        let found = report(&world);
        assert!(problems(&found).contains(&Problem::Key), "{:?}", found.findings);
        assert_eq!(found.signed_through, checkpoint.seq, "what was signed before still holds");
    }
}

#[tokio::test]
async fn a_history_made_anew_without_the_key_is_found_by_what_was_kept_elsewhere() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    append(&log, 20).await;
    close(&log, &auditor).await;
    let (saved, key) = (world.lines(), world.lines()[0].key);
    for part in ["log", "audit"] {
        std::fs::remove_dir_all(world.path().join(part)).expect("it goes");
    }
    // Another log under the same roof, with a key of its own: consistent in itself.
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    append(&log, 20).await;
    close(&log, &auditor).await;
    assert_eq!(report(&world).findings, [], "by itself it shows nothing");
    for (key, saved) in [(Some(key), &saved[..0]), (None, &saved[1..2])] {
        let options = VerifyOptions { key, saved: saved.to_vec(), ..VerifyOptions::new(world.path()) };
        let found = verify(&options, &mut |_| {}).expect("it can be read");
        assert!(!found.is_sound() && found.signed_through == 0, "{:?}", found.findings);
    }
}

/// Upkeep's note of the removal that is about to be announced.
fn note(log: &Log, data: &Path, segment: u32, generation: u64) {
    let after_seq = log.health().last_seq;
    let text = serde_json::json!({"segment": segment, "generation": generation, "after_seq": after_seq}).to_string();
    std::fs::create_dir_all(data.join("upkeep")).expect("it is made");
    std::fs::write(data.join("upkeep/new"), text).expect("it is written");
    std::fs::rename(data.join("upkeep/new"), data.join("upkeep/announced")).expect("it gets its name");
}

/// The removal was done.
fn done(data: &Path) {
    std::fs::remove_file(data.join("upkeep/announced")).expect("it goes");
}

/// Rewrites segments without some of their events, and drops the oldest, as upkeep does.
async fn thin_out(log: &Log, data: &Path, round: u64) {
    let segments = log.reader().segments().expect("they are known");
    let sealed: Vec<_> = segments.iter().filter(|facts| facts.last_seq.is_some()).collect();
    let Some(chosen) = sealed.get(round as usize % sealed.len().max(1)) else { return };
    let mut portions = Vec::new();
    let rewritten = log.rewrite(chosen.number, &mut |event| {
        let goes = event.kind() == Some(Kind::ConsoleMessage) && event.seq % 5 == round % 5;
        portions.extend(goes.then(|| Portion::of(event)));
        if goes { Fate::Remove } else { Fate::Keep }
    });
    let rewritten = rewritten.expect("it is written anew");
    let generation = u64::from(rewritten.facts().generation);
    note(log, data, chosen.number, generation);
    log.commit(vec![announcement(chosen.number, generation, &portions)]).await.expect("it is recorded");
    rewritten.install(true).expect("it is installed");
    done(data);
    if round % 4 == 3 && sealed.len() > 6 {
        let mut portions = Vec::new();
        let oldest = sealed[0];
        let mut visit = |event: &EventView<'_>| {
            portions.extend((Some(event.seq) <= oldest.last_seq).then(|| Portion::of(event)));
            ControlFlow::Continue(())
        };
        log.reader()
            .scan(oldest.first_seq, &|header| Some(header.first_seq) <= oldest.last_seq, &mut visit)
            .expect("it is whole");
        note(log, data, oldest.number, WHOLE_SEGMENT);
        log.commit(vec![announcement(oldest.number, WHOLE_SEGMENT, &portions)]).await.expect("it is recorded");
        log.drop_before(oldest.number + 1).await.expect("it is dropped");
        done(data);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_log_verifies_while_it_is_written_thinned_out_and_dropped() {
    const VERIFIED: usize = 10;
    const ROUNDS_MIN: u64 = 6;
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    let done = Arc::new(AtomicBool::new(false));
    let (stop, writer_log, writer_auditor) = (done.clone(), log.clone(), auditor.clone());
    let data = world.path().to_owned();
    let writing = tokio::spawn(async move {
        let mut round = 0;
        while !stop.load(Ordering::SeqCst) || round < ROUNDS_MIN {
            for _ in 0..4 {
                append(&writer_log, 40).await;
            }
            thin_out(&writer_log, &data, round).await;
            writer_auditor.cover(writer_log.health().last_seq).await.expect("it is covered");
            round += 1;
        }
        round
    });
    let path = world.path().to_owned();
    let verifying = tokio::task::spawn_blocking(move || {
        let verified = |_| verify(&VerifyOptions::new(&path), &mut |_| {}).expect("it can be read");
        (0..VERIFIED).map(verified).collect::<Vec<_>>()
    });
    let reports = verifying.await.expect("it does not panic");
    done.store(true, Ordering::SeqCst);
    let rounds = writing.await.expect("it does not panic");
    for report in &reports {
        assert_eq!(report.findings, [], "{report:?}");
    }
    close(&log, &auditor).await;
    let last = report(&world);
    assert_eq!(last.findings, []);
    assert!(last.removed > 0, "{rounds} rounds: {last:?}");
}

#[tokio::test]
async fn a_removal_that_was_announced_and_not_done_is_on_its_way_while_upkeep_says_so() {
    let world = World::new();
    let log = world.open();
    let auditor = world.start(&log).expect("it starts");
    for _ in 0..10 {
        append(&log, 40).await;
    }
    note(&log, world.path(), 1, 1);
    let portion = Portion { kind: 40, level: None, count: 3, first_seq: 2, last_seq: 9 };
    log.commit(vec![announcement(1, 1, &[portion])]).await.expect("it is recorded");
    auditor.cover(log.health().last_seq).await.expect("it is covered");
    let coming = report(&world);
    assert_eq!((coming.findings.as_slice(), coming.removed_pending), ([].as_slice(), 3));
    close(&log, &auditor).await;
    drop((auditor, log));
    drop(world.open());
    assert_eq!(report(&world).removed_pending, 3, "a start that was cut short settles nothing");
    done(world.path());
    assert_eq!(problems(&report(&world)), [Problem::Removal], "nobody says that it is on its way");
}

#[tokio::test]
async fn a_line_that_nothing_else_speaks_of_is_missed_by_the_line_after_it() {
    let world = World::new();
    for _ in 0..2 {
        let log = world.open();
        let auditor = world.start(&log).expect("it starts");
        append(&log, 5).await;
        close(&log, &auditor).await;
    }
    let path = world.audit().join(CHECKPOINTS_FILE);
    let text = std::fs::read_to_string(&path).expect("it is text");
    // What is signed behind the seal has no event in the log.
    let closing = text.lines().nth(1).expect("the first run's last line");
    std::fs::write(&path, text.replacen(&format!("{closing}\n"), "", 1)).expect("it is written");
    assert!(problems(&report(&world)).contains(&Problem::Checkpoint));
}

//! A log that nobody changed verifies: while it is written, after crashes, without its last moments,
//! and against what was kept elsewhere.

use super::super::verify::{Problem, Report, VerifyOptions, verify};
use super::super::{CHECKPOINTS_FILE, SignedLine};
use super::{World, append, close};

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
        let last_seq = log.health().last_seq;
        drop((auditor, log));
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

//! A log that was closed in order stays closed until it is opened: nothing can be put behind its end,
//! nothing of it can be rewritten and signed unnoticed, and what no run signed in its time is told.

use std::path::Path;
use std::sync::mpsc;

use super::forger::{Entry, Forgery};
use super::{message, open, read_all, recoveries, temporary, texts};
use crate::audit::verify::{Finding, Problem, Report, VerifyOptions, verify};
use crate::audit::{AuditOptions, Auditor, CHECKPOINTS_FILE, read_public_key};
use crate::event::catalog::LogRecovered;
use crate::log::Log;

pub fn audited(data: &Path) -> (Log, Auditor) {
    let log = open(data);
    let auditor = Auditor::start(log.clone(), AuditOptions::new(data.join("audit"))).expect("it starts");
    (log, auditor)
}

pub async fn run(data: &Path, messages: usize) {
    let (log, auditor) = audited(data);
    for n in 0..messages {
        log.commit(vec![message(Some("a"), &format!("message {n}"))]).await.expect("it is recorded");
    }
    log.seal().await.expect("it is sealed");
    auditor.close().await;
    log.close().await.expect("it closes");
}

fn verified(data: &Path) -> Report {
    let key = read_public_key(&data.join("audit/key.pub")).ok();
    verify(&VerifyOptions { key, ..VerifyOptions::new(data) }, &mut |_| {}).expect("it can be read")
}

fn told(finding: &Finding) -> (Problem, u64, u64) {
    (finding.problem, finding.first_seq, finding.last_seq)
}

/// Takes the last checkpoint away, and what it covers of the trail; returns what is covered still.
fn drop_last_line(data: &Path) -> u64 {
    let path = data.join("audit").join(CHECKPOINTS_FILE);
    let text = std::fs::read_to_string(&path).expect("it is text");
    let lines: Vec<&str> = text.lines().collect();
    let kept = lines[..lines.len() - 1].join("\n") + "\n";
    std::fs::write(&path, kept).expect("it is written");
    let newest = crate::audit::newest_checkpoint(&path).expect("it is read").expect("there is one").seq;
    let trail = std::fs::OpenOptions::new().write(true).open(data.join("audit/trail")).expect("it opens");
    trail.set_len(2 * newest).expect("it is shortened");
    newest
}

fn found(log: &Log, what: &str) -> Vec<LogRecovered> {
    recoveries(&log.reader()).into_iter().filter(|it| it.what.as_str() == what).collect()
}

#[tokio::test]
async fn a_history_rewritten_behind_its_last_checkpoint_is_found_and_told_after_it_was_signed() {
    let directory = temporary();
    let data = directory.path();
    run(data, 20).await;
    assert_eq!(verified(data).findings, []);
    let mut forgery = Forgery::take_apart(data);
    let place = forgery.places()[10];
    if let Entry::Event { body, .. } = forgery.entry(place) {
        *body.last_mut().expect("it has a text") = b'x';
    }
    forgery.put_together(data, true);
    assert!(verified(data).findings.iter().any(|finding| finding.problem == Problem::Changed));
    let signed = drop_last_line(data);
    let report = verified(data);
    let last_seq = report.last_seq;
    assert_eq!(report.findings.iter().map(told).collect::<Vec<_>>(), [(Problem::Unsigned, signed + 1, last_seq)]);
    assert_eq!((report.signed_late, report.signed_late_closed), (0, 0), "nobody signed it yet");

    let (log, auditor) = audited(data);
    let [tail] = &found(&log, "unsigned_tail")[..] else { panic!("it is on record once") };
    let detail = tail.detail.as_ref().expect("numbers").as_str();
    assert!(
        detail.contains(&format!("{} to {last_seq}", signed + 1)) && detail.contains("closed in order"),
        "{detail}"
    );
    assert!(auditor.health().signed_seq > last_seq + 1, "its record is signed with it");
    let report = verified(data);
    let late = last_seq - signed;
    assert_eq!((report.findings.len(), report.signed_late, report.signed_late_closed), (0, late, late));
    drop((auditor, log));
    run(data, 1).await;
    let report = verified(data);
    assert_eq!((report.findings.as_slice(), report.signed_late_closed), ([].as_slice(), late), "it stays told");
}

#[tokio::test]
async fn what_a_crash_left_unsigned_is_told_apart_from_an_orderly_end() {
    let directory = temporary();
    let data = directory.path();
    let (log, auditor) = audited(data);
    let signed = auditor.health().signed_seq;
    // Behind the first checkpoint comes its own event.
    log.commit(vec![message(None, "one"), message(None, "two")]).await.expect("it is recorded");
    let last_seq = log.health().last_seq;
    drop((auditor, log));
    run(data, 1).await;
    let report = verified(data);
    assert_eq!(
        (report.findings.as_slice(), report.signed_late, report.signed_late_closed),
        ([].as_slice(), last_seq - signed, 0)
    );
    assert_eq!(found(&open(data), "unsigned_tail").len(), 1);
}

#[tokio::test]
async fn nothing_follows_an_orderly_end_but_an_opening() {
    let directory = temporary();
    let data = directory.path();
    run(data, 5).await;
    let mut forgery = Forgery::take_apart(data);
    let seq = forgery.append("appended");
    forgery.put_together(data, true);
    let report = verified(data);
    assert_eq!(report.findings.iter().map(told).collect::<Vec<_>>(), [(Problem::Misplaced, seq, seq)]);
    assert!(report.findings[0].exact);
}

#[tokio::test]
async fn what_lies_behind_a_clean_mark_is_found_and_never_becomes_part_of_the_log() {
    let directory = temporary();
    let data = directory.path();
    run(data, 5).await;
    let mark = std::fs::read(data.join("log/mark")).expect("it is there");
    let mut forgery = Forgery::take_apart(data);
    let seq = forgery.append("appended");
    forgery.put_together(data, true);
    std::fs::write(data.join("log/mark"), mark).expect("it is written");
    let report = verified(data);
    assert_eq!(report.findings.iter().map(told).collect::<Vec<_>>(), [(Problem::Misplaced, seq, seq)]);
    let log = open(data);
    let events = read_all(&log.reader());
    assert!(!texts(&events).contains(&"appended"), "{events:?}");
    assert_eq!(events[seq as usize - 1].1, "log.opened");
    let [torn] = &found(&log, "torn_tail")[..] else { panic!("it is on record") };
    let aside = data.join("log").join(torn.kept_as.as_ref().expect("it was kept").as_str());
    assert!(std::fs::metadata(aside).expect("it is there").len() > 0);
    assert!(log.was_clean());
}

#[tokio::test]
async fn a_seal_that_the_mark_does_not_know_is_kept_and_nothing_behind_it() {
    let directory = temporary();
    let data = directory.path();
    let log = open(data);
    log.commit(vec![message(None, "one")]).await.expect("it is recorded");
    let mark = std::fs::read(data.join("log/mark")).expect("it is there");
    log.close().await.expect("it closes");
    drop(log);
    let mut forgery = Forgery::take_apart(data);
    let seq = forgery.append("appended");
    forgery.put_together(data, true);
    std::fs::write(data.join("log/mark"), mark).expect("it is written");
    let events = read_all(&open(data).reader());
    assert_eq!(texts(&events[seq as usize - 2..]), ["log.sealed", "log.opened", "log.recovered"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_last_checkpoint_of_a_server_that_ends_is_waited_for() {
    let directory = temporary();
    let data = directory.path().to_owned();
    let (log, auditor) = audited(&data);
    log.commit(vec![message(None, "one")]).await.expect("it is recorded");
    log.seal().await.expect("it is sealed");
    let (reading, begun) = mpsc::channel();
    let verifying = std::thread::spawn(move || {
        // Nobody listens any more after the first time.
        let progress = &mut |_| {
            let _ = reading.send(());
        };
        verify(&VerifyOptions::new(&data), progress).expect("it can be read")
    });
    begun.recv().expect("it has read the checkpoints");
    auditor.close().await;
    let report = verifying.join().expect("it ends");
    assert_eq!((report.findings.as_slice(), report.unsigned_events()), ([].as_slice(), 0));
}

#[tokio::test]
async fn a_clean_mark_put_back_from_a_copy_makes_nobody_suspect_the_run_behind_it() {
    let directory = temporary();
    let data = directory.path();
    run(data, 5).await;
    let mark = std::fs::read(data.join("log/mark")).expect("it is there");
    let (log, auditor) = audited(data);
    for n in 0..3 {
        log.commit(vec![message(None, &format!("later {n}"))]).await.expect("it is recorded");
    }
    let last_seq = log.health().last_seq;
    drop((auditor, log));
    std::fs::write(data.join("log/mark"), mark).expect("it is written");
    let report = verified(data);
    assert_eq!((report.findings.as_slice(), report.last_seq), ([].as_slice(), last_seq));
    let events = read_all(&open(data).reader());
    assert_eq!(texts(&events[last_seq as usize - 1..]), ["later 2", "log.opened"]);
}

//! A history that was written twice with the same key: what was kept elsewhere says so, and the range
//! that is named begins where both still agree.

use std::path::Path;

use super::closing::{audited, run};
use super::forger::{Entry, Forgery};
use super::{copy_directory, message, temporary};
use crate::audit::verify::{Problem, Report, VerifyOptions, verify};
use crate::audit::{CHECKPOINTS_FILE, RawLines, SignedLine};

fn lines(data: &Path) -> Vec<SignedLine> {
    let lines = RawLines::open(&data.join("audit").join(CHECKPOINTS_FILE)).expect("it opens").expect("it is there");
    lines.map(|line| line.expect("it is read").read().expect("it is sound")).collect()
}

fn verified(data: &Path, saved: &[SignedLine]) -> Report {
    verify(&VerifyOptions { saved: saved.to_vec(), ..VerifyOptions::new(data) }, &mut |_| {}).expect("it can be read")
}

/// The range that is named lies between these and holds the first event that differs.
fn assert_named(report: &Report, from: u64, to: u64, first_bad: u64) {
    let found = report.first_bad().unwrap_or_else(|| panic!("{:?}", report.findings));
    assert_eq!((found.problem, found.exact), (Problem::Changed, false), "{:?}", report.findings);
    assert_eq!((found.first_seq, found.last_seq), (from, to), "{:?}", report.findings);
    assert!((from..=to).contains(&first_bad));
}

#[tokio::test]
async fn of_a_forked_history_the_range_since_the_last_agreement_is_named() {
    let directory = temporary();
    let data = directory.path();
    run(data, 20).await;
    let agreed = lines(data);
    let (forked_after, aside) = (agreed.last().expect("a line").statement.seq(), data.join("aside"));
    for part in ["log", "audit"] {
        copy_directory(&data.join(part), &aside.join(part));
    }
    run(data, 5).await;
    let saved = lines(data);
    let newest = saved.last().expect("a line").clone();
    run(&aside, 30).await;
    assert_eq!(verified(&aside, &[]).findings, [], "by itself it shows nothing");
    // Only the newest: nothing says where both still agree.
    assert_named(&verified(&aside, std::slice::from_ref(&newest)), 1, newest.statement.seq(), forked_after + 1);
    let report = verified(&aside, &saved);
    assert_named(&report, forked_after + 1, newest.statement.seq(), forked_after + 1);
    let of_events = report.findings.iter().filter(|finding| finding.concerns_events()).count();
    assert_eq!(of_events, 1, "one fork is one finding: {:?}", report.findings);
    assert_eq!(verified(data, &saved).findings, [], "the true one");
}

#[tokio::test]
async fn of_a_history_that_was_signed_again_all_up_to_what_was_kept_is_named() {
    let directory = temporary();
    let data = directory.path();
    run(data, 20).await;
    let newest = lines(data).pop().expect("a line");
    let mut forgery = Forgery::take_apart(data);
    let place = forgery.places()[10];
    let bad = forgery.entry(place).seq();
    if let Entry::Event { body, .. } = forgery.entry(place) {
        *body.last_mut().expect("it has a text") = b'x';
    }
    forgery.put_together(data, true);
    for name in [CHECKPOINTS_FILE, "trail"] {
        std::fs::remove_file(data.join("audit").join(name)).expect("it goes");
    }
    let (log, auditor) = audited(data);
    log.commit(vec![message(None, "more")]).await.expect("it is recorded");
    auditor.cover(log.health().last_seq).await.expect("it is signed");
    assert_named(&verified(data, std::slice::from_ref(&newest)), 1, newest.statement.seq(), bad);
}

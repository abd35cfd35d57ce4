//! Data directories of every released format stay in `tests/fixtures`: they open, read as they did when
//! they were made, verify, and can be appended to.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::super::{Log, LogOptions, Reader};
use super::{copy_directory, message, read_all, temporary};
use crate::artifact::ArtifactStore;
use crate::audit::verify::{Report, VerifyOptions, verify};
use crate::audit::{AuditOptions, Auditor};
use crate::time::{Clock, ManualClock};
use crate::upkeep::{Keeper, Parts, Policy};

const DAY: Duration = Duration::from_secs(86_400);

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures").join(name)
}

fn verified(data_dir: &Path) -> Report {
    let report = verify(&VerifyOptions::new(data_dir), &mut |_| {}).expect("it can be read");
    assert!(report.is_sound(), "{:?}", report.findings);
    report
}

/// What the log holds, one line for each event.
fn told(reader: &Reader) -> String {
    let mut lines = String::new();
    for (seq, text) in read_all(reader) {
        writeln!(lines, "{seq} {text}").expect("there is memory");
    }
    lines
}

/// Each segment's number and generation.
fn generations(reader: &Reader) -> Vec<(u32, u16)> {
    let segments = reader.segments().expect("they are known");
    segments.iter().map(|facts| (facts.number, facts.generation)).collect()
}

#[tokio::test]
async fn a_data_directory_of_format_2_is_read_verified_and_gone_on_with() {
    let (kept, copy) = (fixture("format-2"), temporary());
    for part in ["log", "audit"] {
        copy_directory(&kept.join(part), &copy.path().join(part));
    }
    let events = std::fs::read_to_string(kept.join("events.txt")).expect("it can be read");
    let outside = Reader::open(&copy.path().join("log")).expect("there is a log");
    assert_eq!(told(&outside), events);
    assert_eq!(generations(&outside), [(2, 2), (3, 1), (4, 0)]);
    let report = verified(copy.path());
    assert!(report.first_seq > 1 && report.removed > 0, "{report:?}");
    assert_eq!((report.signed_through, report.checkpoints), (report.last_seq, 3));
    let log = Log::open(LogOptions { segment_bytes: 4096, ..LogOptions::new(copy.path().join("log")) });
    let log = log.expect("it opens");
    assert_eq!(log.health().epoch, 2);
    log.commit(vec![message(Some("a"), "new")]).await.expect("it is recorded");
    assert!(told(&log.reader()).starts_with(&events));
    drop(log);
    assert_eq!(verified(copy.path()).last_seq, report.last_seq + 2);
}

/// Run once when the format was final; a later build must not make it anew.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "makes the fixture of format 2"]
async fn make_the_data_directory_of_format_2() {
    let data_dir = fixture("format-2");
    std::fs::create_dir(&data_dir).expect("it is not there yet");
    let clock = Arc::new(ManualClock::default());
    clock.set_micros(1_764_000_000_000_000);
    let options = LogOptions { segment_bytes: 4096, clock: clock.clone(), ..LogOptions::new(data_dir.join("log")) };
    let log = Log::open(options).expect("it opens");
    let auditor = Auditor::start(log.clone(), AuditOptions::new(data_dir.join("audit"))).expect("it starts");
    let days_pass = |days: u32| clock.set_micros(clock.now_micros() + (DAY * days).as_micros() as i64);
    // By the end the first segment has had its time, the second its telemetry; the third is only
    // compressed, and the fourth is being written.
    fill(&log, "first", "good").await;
    days_pass(40);
    fill(&log, "second", "good").await;
    fill(&log, "third", "bad").await;
    auditor.cover(log.health().last_seq).await.expect("it is signed");
    days_pass(40);
    let days = |days: u32| Some(DAY * days);
    let policy = Policy { telemetry: days(30), evidence: days(60), audit: days(70), log_bytes_max: None };
    keep(&data_dir, &log, clock.clone(), policy).await;
    log.commit(vec![message(Some("a"), "live"), message(None, "bad")]).await.expect("it is recorded");
    log.seal().await.expect("it is sealed");
    auditor.close().await;
    log.close().await.expect("it closes");
    std::fs::write(data_dir.join("events.txt"), told(&log.reader())).expect("it can be written");
    // The secret key and the lock are nobody's business, and the rest is made again.
    for name in ["audit/key", "log/lock"] {
        std::fs::remove_file(data_dir.join(name)).expect("it is there");
    }
    for name in ["upkeep", "artifacts"] {
        std::fs::remove_dir_all(data_dir.join(name)).expect("it is there");
    }
}

/// Some commits of several sessions, in a segment of their own.
async fn fill(log: &Log, name: &str, word: &str) {
    for n in 0..5 {
        let drafts = [Some("a"), Some("b"), None].map(|session| message(session, &format!("{word} {name} {n}")));
        log.commit(drafts.into()).await.expect("it is recorded");
    }
    log.commit(vec![message(Some("a"), &format!("bad {name}"))]).await.expect("it is recorded");
    log.roll().await.expect("it is sealed");
}

/// Upkeep blocks, so it has a thread of its own.
async fn keep(data_dir: &Path, log: &Log, clock: Arc<ManualClock>, policy: Policy) {
    let artifacts = ArtifactStore::open(&data_dir.join("artifacts"), 1 << 20).expect("it opens");
    let parts = Parts { log: log.clone(), index: None, artifacts, policy, clock };
    let directory = data_dir.join("upkeep");
    let pass = move || Keeper::open(&directory, parts).expect("it opens").pass(&|| false);
    tokio::task::spawn_blocking(pass).await.expect("it ends").expect("it goes through");
}

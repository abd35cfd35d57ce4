//! What is no regular file, or is one without end, in the place of a file: nobody waits for it.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use super::super::CHECKPOINTS_FILE;
use super::super::verify::{Problem, VerifyOptions, verify};
use super::{LIMIT, World, append, close};
use crate::log::{Log, LogOptions, Reader};

fn pipe_at(path: &Path) {
    std::fs::remove_file(path).expect("it goes");
    assert!(Command::new("mkfifo").arg(path).status().expect("it runs").success());
}

/// Fails when `work` does not end.
async fn ends<T: Send + 'static>(what: &str, work: impl FnOnce() -> T + Send + 'static) -> T {
    let ended = tokio::time::timeout(LIMIT, tokio::task::spawn_blocking(work)).await;
    ended.unwrap_or_else(|_| panic!("{what} waits for ever")).expect("it does not panic")
}

#[tokio::test]
async fn nobody_waits_for_a_pipe_in_a_files_place() {
    for name in
        ["log/mark", "log/000001.seg", "log/lock", "audit/checkpoints.jws", "audit/trail", "audit/key", "audit/key.pub"]
    {
        let world = World::new();
        let log = world.open();
        let auditor = world.start(&log).expect("it starts");
        append(&log, 3).await;
        close(&log, &auditor).await;
        drop((auditor, log));
        pipe_at(&world.path().join(name));
        let (data, of_log) = (world.path().to_owned(), name.starts_with("log/"));
        let verified = ends(name, move || verify(&VerifyOptions::new(data), &mut |_| {})).await;
        let private = ["log/lock", "audit/key"].contains(&name);
        assert_eq!(verified.is_ok_and(|report| report.is_sound()), private, "{name}");
        let data = world.path().join("log");
        let read = ends(name, move || Reader::open(&data).map(drop)).await;
        assert_eq!(read.is_err(), of_log && !private, "{name}");
        let options = LogOptions::new(world.path().join("log"));
        match ends(name, move || Log::open(options)).await {
            Err(_) => assert!(of_log, "{name}"),
            Ok(log) => {
                assert!(!of_log, "{name}");
                // A public key that is none is published anew; everything else cannot be signed with.
                let (options, told) = (world.audit_options(), log.clone());
                let started = ends(name, move || super::super::Auditor::start(told, options)).await;
                let failing = started.expect("the log goes on").health().failing;
                assert_eq!(failing.is_some(), name != "audit/key.pub", "{name}: {failing:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_line_without_end_is_given_up() {
    let world = World::new();
    let log = world.open();
    close(&log, &world.start(&log).expect("it starts")).await;
    let path = world.audit().join(CHECKPOINTS_FILE);
    let file = std::fs::OpenOptions::new().write(true).open(&path).expect("it opens");
    // A hole takes no room, and reads as zeros without a newline.
    file.set_len(1 << 40).expect("it grows");
    let data = world.path().to_owned();
    let report = ends("verify", move || verify(&VerifyOptions::new(data), &mut |_| {})).await.expect("it can be read");
    let [finding] = &report.findings[..] else { panic!("{:?}", report.findings) };
    assert!(finding.problem == Problem::Checkpoint && finding.detail.contains("longer"), "{finding:?}");
    assert!(report.seconds < Duration::from_secs(10).as_secs_f64());
}

//! D07: whatever lies in a data directory before a start, the server starts: what was left half made
//! goes, on record; what is nobody's stays as it is; a lock without a holder is none, and one with a
//! holder is refused at once, without harm to the holder.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::crash::tail;
use crate::damage::with_session;
use crate::support::check::{Check, is_long};
use crate::support::{LIMIT, Options, Server, program, walk};

/// EX_TEMPFAIL of sysexits(3).
const EXIT_LOCKED: i32 = 75;
/// A refusal comes within this time; held in `make torture`, where nothing else runs.
const REFUSAL_LIMIT: Duration = Duration::from_secs(1);

/// Files whose making was cut short, by whatever makes files there.
const HALF_MADE: [&str; 5] =
    ["log/000002.seg.new", "log/000001-1.seg.new", "log/mark.new", "artifacts/tmp/half", "run/somebody/profile/lock"];
/// Those of the log itself, which are named on record.
const ON_RECORD: [&str; 3] = ["000002.seg.new", "000001-1.seg.new", "mark.new"];
/// Files that nobody here makes.
const UNKNOWN: [&str; 9] = [
    "README.txt",
    "log/.DS_Store",
    "log/000001.seg~",
    "log/notes.new",
    "log/1.seg",
    "log/core.4711",
    "index/notes.txt",
    "artifacts/notes.txt",
    "audit/notes.txt",
];

fn plant(path: &Path) {
    fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("the directory is made");
    fs::write(path, format!("planted as {}", path.display())).expect("the file is planted");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_lies_about_is_cleared_on_record_or_left_alone() {
    let mut check = Check::begin("D07", "leftovers, unknown files, a stale lock before a start");
    let (data, session_id, events) = with_session(&["kept"]).await;
    let at = |name: &str| data.path().join(name);
    for name in HALF_MADE.iter().chain(&UNKNOWN) {
        plant(&at(name));
    }
    fs::write(at("log/lock"), "1").expect("a stale lock");
    fs::create_dir(at("log/old.new")).expect("a directory");
    symlink("nowhere", at("log/dangling")).expect("a link");
    let fifo = std::process::Command::new("mkfifo").arg(at("log/pipe")).status();
    assert!(fifo.is_ok_and(|status| status.success()));

    let server = Server::start(Options::stdio().on(&data)).await;
    assert_eq!(walk::events(&server, &session_id).await, events);
    server.stop().await;
    for name in HALF_MADE {
        assert!(!at(name).exists(), "{name} was left half made and is still there");
    }
    for name in UNKNOWN {
        let held = fs::read_to_string(at(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert_eq!(held, format!("planted as {}", at(name).display()), "{name} is nobody's");
    }
    assert!(at("log/old.new").is_dir() && at("log/dangling").is_symlink() && at("log/pipe").exists());
    let removed = |event: &&Value| event["kind"] == "log.recovered" && event["data"]["what"] == "leftover_removed";
    let all = tail(&data).await;
    let named: BTreeSet<&str> =
        all.iter().filter(removed).map(|event| event["data"]["detail"].as_str().expect("a name")).collect();
    assert_eq!(named, BTreeSet::from(ON_RECORD));
    check.tried(HALF_MADE.len() + UNKNOWN.len() + 4);
    check.figure("half made, removed", HALF_MADE.len());
    check.figure("unknown, untouched", UNKNOWN.len() + 3);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lock_with_a_holder_is_refused_at_once_and_the_holder_is_unharmed() {
    let mut check = Check::begin("D07", "a second server on a directory in use");
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    let line = Options::stdio().on(server.data_dir()).command_line();
    let began = Instant::now();
    let output = program::run_with(&line, &[]).await;
    let took = began.elapsed();
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(EXIT_LOCKED), "{said}");
    assert!(said.contains("in use") && said.contains(&server.pid().to_string()), "{said}");
    assert!(took < if is_long() { REFUSAL_LIMIT } else { LIMIT }, "refused only after {took:?}");
    server.ok("evaluate", json!({"session_id": session_id, "expression": "console.log('unharmed'); 1"})).await;
    walk::console_with(&server, &session_id, "unharmed").await;
    let data = server.stop().await.data;
    let recovered = tail(&data).await.into_iter().filter(|event| event["kind"] == "log.recovered").count();
    assert_eq!(recovered, 0);
    check.tried(1);
    check.figure("refused in ms", took.as_millis());
}

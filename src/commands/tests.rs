//! The commands against real logs: written beside them, closed, damaged, or not there.

use std::path::Path;
use std::sync::mpsc;
use std::time::Duration;

use serde_json::Value;
use storage::event::catalog::{PageClosed, SessionLaunching};
use storage::event::{Context, Draft, Json, Symbol};
use storage::log::{Log, LogOptions};

use super::*;
use crate::config::{self, Environment};

/// Time in which a line must arrive.
const LIMIT: Duration = Duration::from_secs(20);

fn asked(data_dir: &Path, words: &[&str]) -> Command {
    let arguments = ["pageledger"].iter().chain(words).map(Into::into);
    let environment = Environment { data_directory: Some("/nowhere".into()), ..Environment::default() };
    let mut arguments: Vec<std::ffi::OsString> = arguments.collect();
    arguments.extend(["--data-dir".into(), data_dir.into()]);
    config::parse(arguments, &environment).expect("the command line holds")
}

fn printed(data_dir: &Path, words: &[&str]) -> Result<String, CommandError> {
    let mut out = Vec::new();
    perform(asked(data_dir, words), &mut out)?;
    Ok(String::from_utf8(out).expect("lines are UTF-8"))
}

fn events(session: &str, reasons: &[&str]) -> Vec<Draft> {
    let context = Context { session_id: Some(session.into()), ..Context::default() };
    let launching = SessionLaunching {
        name: Symbol::fold("main"),
        channel: Symbol::fold("chromium"),
        headless: true,
        options: Json::redacted(&serde_json::json!({})),
    };
    let closed = reasons.iter().map(|reason| Draft::new(&context, &PageClosed { reason: Symbol::fold(reason) }));
    std::iter::once(Draft::new(&context, &launching)).chain(closed).collect()
}

fn run_now<T>(work: impl Future<Output = T>) -> T {
    tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime").block_on(work)
}

fn written(data_dir: &Path) -> Log {
    let log = Log::open(LogOptions::new(data_dir.join("log"))).expect("a new log opens");
    run_now(async {
        log.commit(events("s-1", &["one", "two"])).await.expect("the log records");
        log.commit(events("s-2", &["three"])).await.expect("the log records");
    });
    log
}

/// Changes one bit of an event on disk.
fn spoil(data_dir: &Path) {
    let segment = data_dir.join("log/000001.seg");
    let mut bytes = std::fs::read(&segment).expect("the segment is there");
    let name = bytes.windows(5).position(|window| window == b"three").expect("short blocks are stored plain");
    bytes[name] ^= 1;
    std::fs::write(&segment, bytes).expect("the segment is written");
}

#[test]
fn tail_and_export_read_beside_a_writer_and_after_it() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    let elsewhere = tempfile::tempdir().expect("a temporary directory");
    let log = written(data_dir);
    for round in ["running", "stopped"] {
        let all = printed(data_dir, &["tail", "--json"]).expect("tail reads");
        let seqs: Vec<u64> = all
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).expect("a line is JSON")["seq"].as_u64().expect("numbered"))
            .collect();
        let last_seq = log.health().last_seq;
        assert_eq!(seqs, (1..=last_seq).collect::<Vec<_>>(), "{round}");
        let last: Vec<&str> = all.lines().rev().take(2).collect();
        let two = printed(data_dir, &["tail", "--json", "--lines", "2"]).expect("tail reads");
        assert_eq!(two.lines().rev().collect::<Vec<_>>(), last, "the last of what is there");
        let first = printed(data_dir, &["tail", "--json", "--last-seq", "1"]).expect("tail reads");
        assert_eq!(first.trim_end(), all.lines().next().unwrap_or_default(), "up to a number");
        let chosen = printed(data_dir, &["tail", "--session", "s-1", "--kind", "page.closed"]).expect("tail reads");
        assert_eq!(chosen.lines().count(), 2, "{round}: {chosen}");
        // Both sessions were launched as `main`; the name means the later one.
        let named = printed(data_dir, &["tail", "--session", "main"]).expect("tail reads");
        assert!(named.contains("three") && !named.contains("one"), "{round}: {named}");
        let target = elsewhere.path().join(format!("{round}.ndjson"));
        let words = ["export", "--session", "s-1", "--format", "ndjson", "--json", "--out"];
        let told = printed(data_dir, &[&words[..], &[target.to_str().expect("UTF-8")]].concat()).expect("export reads");
        let told: Value = serde_json::from_str(&told).expect("the line is JSON");
        assert_eq!(told["events"], 3, "{round}");
        let exported = std::fs::read_to_string(&target).expect("the file is there");
        assert_eq!(
            exported,
            printed(data_dir, &["tail", "--session", "s-1", "--json"]).expect("tail reads"),
            "{round}"
        );
        if round == "running" {
            run_now(log.close()).expect("the log closes");
        }
    }
}

#[test]
fn what_is_not_there_and_what_is_damaged_have_their_own_exit_codes() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = &directory.path().join("data");
    let target = directory.path().join("out.parquet");
    let export = ["export", "--session", "none", "--out", target.to_str().expect("UTF-8")];
    let code = |words: &[&str]| printed(data_dir, words).expect_err("there is nothing to read").code;
    assert_eq!((code(&["tail"]), code(&export)), (EXIT_NOTHING_THERE, EXIT_NOTHING_THERE));
    let log = written(data_dir);
    run_now(log.close()).expect("the log closes");
    assert_eq!((code(&["tail", "--session", "none"]), code(&export)), (EXIT_NOTHING_THERE, EXIT_NOTHING_THERE));
    assert!(!target.exists());
    spoil(data_dir);
    assert_eq!(
        (code(&["tail"]), code(&["export", "--session", "s-2", "--out", export[4]])),
        (EXIT_DAMAGED, EXIT_DAMAGED)
    );
    assert!(!target.exists());
}

#[test]
fn what_cannot_be_looked_at_is_not_taken_for_absent() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    // Whoever runs this may be allowed to look everywhere, but nobody gets through a circle.
    for name in ["log", "audit"] {
        std::os::unix::fs::symlink(data_dir.join(name), data_dir.join(name)).expect("a link to itself");
    }
    for words in [&["verify"][..], &["audit", "key"], &["audit", "checkpoints"], &["tail"]] {
        let refused = printed(data_dir, words).expect_err("it cannot be looked at");
        assert_eq!(refused.code, EXIT_IO, "{words:?}: {}", refused.message);
    }
    let told = printed(data_dir, &["doctor", "--chromium", "/no/such/chromium"]).expect_err("it cannot be looked at");
    assert_eq!(told.code, EXIT_IO, "{}", told.message);
}

#[test]
fn verify_needs_no_configuration() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    run_now(written(directory.path()).close()).expect("the log closes");
    let environment = Environment { config_directory: Some(directory.path().into()), ..Environment::default() };
    let (wrong, data_dir) = (directory.path().join("wrong.toml"), directory.path().as_os_str().to_owned());
    std::fs::write(&wrong, "[nonsense").expect("it is written");
    let words = ["pageledger", "verify", "--config"].map(std::ffi::OsString::from);
    let arguments = words.into_iter().chain([wrong.into_os_string(), data_dir]).collect();
    assert!(matches!(config::parse(arguments, &environment), Ok(Command::Verify(_))));
}

/// Hands each line on, and refuses more once it has what it came for: a closed pipe.
struct Lines {
    sender: mpsc::Sender<String>,
    wanted: usize,
}

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.wanted == 0 {
            return Err(io::ErrorKind::BrokenPipe.into());
        }
        for line in String::from_utf8_lossy(bytes).lines().filter(|line| !line.is_empty()) {
            self.wanted -= 1;
            self.sender.send(line.to_owned()).map_err(|_| io::Error::from(io::ErrorKind::BrokenPipe))?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn follow_goes_on_with_what_comes_and_ends_well_when_nobody_listens() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let log = written(directory.path());
    let order = asked(directory.path(), &["tail", "--session", "s-3", "--follow"]);
    let (sender, lines) = mpsc::channel();
    let follower = std::thread::spawn(move || perform(order, &mut Lines { sender, wanted: 2 }));
    run_now(log.commit(events("s-3", &["four", "five"]))).expect("the log records");
    for expected in ["session.launching", "four"] {
        let line = lines.recv_timeout(LIMIT).expect("the event arrives");
        assert!(line.contains(expected), "{line}");
    }
    let error = follower.join().expect("the follower ends").expect_err("the pipe is closed");
    assert_eq!(error.code, 0);
}

#[test]
fn erase_forgets_one_session_and_remembers_that_it_did() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    let erase = |words: &[&str]| printed(data_dir, &[&["erase"], words, &["--reason", "asked for"]].concat());
    let refused = |words: &[&str]| erase(words).expect_err("nothing is erased");
    assert_eq!(refused(&["--session", "s-1"]).code, EXIT_NOTHING_THERE);
    assert!(!data_dir.join("log").exists(), "asking makes nothing");
    let log = written(data_dir);
    assert_eq!(refused(&["--session", "s-1"]).code, EXIT_IN_USE);
    run_now(log.close()).expect("the log closes");
    drop(log);
    let told: Value =
        serde_json::from_str(&erase(&["--session", "s-1", "--json"]).expect("it is erased")).expect("the line is JSON");
    assert_eq!((&told["events"], &told["segments"]), (&3.into(), &1.into()));
    let left = printed(data_dir, &["tail", "--json"]).expect("tail reads");
    // In quotation marks: a signature may hold these letters by chance.
    assert!(left.contains("three") && !left.contains("\"s-1\""), "{left}");
    let record: Vec<Value> = left.lines().filter_map(|line| serde_json::from_str(line).ok()).collect();
    let removed = record.iter().find(|event| event["kind"] == "log.removed").expect("it is on record");
    assert_eq!((&removed["data"]["note"], &removed["data"]["count"]), (&"asked for".into(), &3.into()));
    assert!(removed["data"]["by"].as_str().is_some_and(|by| by.contains("(uid ")), "{removed}");
    let again = refused(&["--session", "s-1"]);
    assert_eq!(again.code, EXIT_NOTHING_THERE);
    assert!(again.message.contains("3 events of it were erased before"), "{}", again.message);
    let nobody = refused(&["--owner", "nobody"]);
    assert!(nobody.message.starts_with("nothing of owner nobody is on record; "), "{}", nobody.message);
    assert_eq!(printed(data_dir, &["erase", "--session", "s-2", "--reason", " "]).expect_err("why?").code, EXIT_USAGE);
}

#[test]
fn config_show_names_every_option_and_its_source() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let shown = printed(directory.path(), &["config", "show"]).expect("options are shown");
    assert_eq!(shown.lines().count(), config::OPTIONS.len());
    let data_dir = shown.lines().find(|line| line.starts_with("data_dir")).expect("every option is shown");
    assert!(data_dir.ends_with("(flag --data-dir)"), "{data_dir}");
}

#[test]
fn doctor_makes_every_check_whatever_came_before() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let data_dir = directory.path();
    let log = written(data_dir);
    let examined = || {
        let mut out = Vec::new();
        let order = asked(data_dir, &["doctor", "--chromium", "/no/such/chromium"]);
        let error = perform(order, &mut out).expect_err("there is no such browser");
        (error.code, String::from_utf8(out).expect("lines are UTF-8"))
    };
    let (code, told) = examined();
    assert_eq!(code, EXIT_UNAVAILABLE, "{told}");
    assert!(told.contains(&format!("{} events", log.health().last_seq)), "{told}");
    assert!(told.contains("failed  chromium: not found; looked for /no/such/chromium"), "{told}");
    run_now(log.close()).expect("the log closes");
    spoil(data_dir);
    let (code, told) = examined();
    assert_eq!(code, EXIT_DAMAGED, "{told}");
    assert!(told.contains("failed  data directory:") && told.contains("failed  chromium:"), "{told}");
}

#[test]
fn an_export_replaces_nothing_but_files_and_nothing_that_it_reads() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let (data_dir, elsewhere) = (&directory.path().join("data"), directory.path());
    run_now(written(data_dir).close()).expect("the log closes");
    let before = printed(data_dir, &["tail", "--json"]).expect("tail reads");
    std::os::unix::fs::symlink("/dev/null", elsewhere.join("link")).expect("a link");
    std::fs::create_dir(elsewhere.join("directory")).expect("a directory");
    std::fs::write(elsewhere.join("kept"), "old").expect("a file");
    std::fs::create_dir(elsewhere.join("kept.manifest.json")).expect("a directory");
    let targets = ["data/log/000001.seg", "data/log/mark", "data/x", "link", "directory", "kept"];
    for target in targets {
        let out = elsewhere.join(target);
        let refused = printed(data_dir, &["export", "--out", out.to_str().expect("UTF-8")]).expect_err("it is refused");
        assert_eq!(refused.code, EXIT_USAGE, "{target}: {}", refused.message);
    }
    assert_eq!(printed(data_dir, &["export", "--out", "-"]).expect_err("it is no file").code, EXIT_USAGE);
    assert_eq!(printed(data_dir, &["tail", "--json"]).expect("tail reads"), before);
    assert_eq!(std::fs::read_to_string(elsewhere.join("kept")).expect("it stays"), "old");
    assert!(elsewhere.join("link").is_symlink());
    std::fs::create_dir(data_dir.join("exports")).expect("a directory");
    for _ in 0..2 {
        let out = data_dir.join("exports/fine.csv");
        printed(data_dir, &["export", "--format", "csv", "--out", out.to_str().expect("UTF-8")])
            .expect("it is written");
    }
}

//! A browser that ends, however it ends, leaves nothing and says so.

use serde_json::json;

use super::{Bench, limit, options};
use crate::browser::chromium::os::{Signal, signal_group};
use crate::browser::chromium::process::runs;
use crate::browser::{Browser, LaunchError};
use crate::journal::{Journal, Scope};

#[tokio::test(flavor = "multi_thread")]
async fn a_closed_browser_leaves_nothing() {
    for headless_shell in [true, false] {
        let bench = Bench::in_directory(&"a-name-too-long-for-the-path-of-a-socket-".repeat(3), headless_shell).await;
        let run = bench.run_directory.clone();
        let page = bench.browser.open_page(limit()).await.expect("a page opens");
        assert_eq!(bench.browser.active().as_ref(), Some(page.page_id()));
        bench.browser.close_page(page.page_id(), limit()).await.expect("it closes");
        assert_eq!(bench.browser.pages().len(), 1);
        assert_eq!(bench.browser.active().as_ref(), Some(bench.page.page_id()));
        bench.evaluate("setTimeout(() => confirm('stay?'))").await;
        bench.page.wait(limit(), |state| state.dialog.clone()).await.expect("a dialog opens");
        let group = bench.browser.process_id();
        let closed = bench.browser.close("requested", limit()).await;
        assert!(closed.group_gone && closed.profile_removed && !closed.killed, "{closed:?}");
        assert!(!runs(group));
        assert_eq!(std::fs::read_dir(run).expect("the run directory is the caller's").count(), 0);
        let reasons: Vec<_> =
            bench.of_kind("page.closed").await.iter().map(|event| event["data"]["reason"].clone()).collect();
        assert_eq!(reasons, ["closed", "session_closed"]);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_fails_what_waits_for_it() {
    let bench = Bench::start().await;
    let (connection, session) = (bench.browser.connection().clone(), bench.page.session().clone());
    let never = json!({ "expression": "new Promise(() => {})", "awaitPromise": true });
    let waiting = tokio::spawn(async move { connection.raw(Some(&session), "Runtime.evaluate", never, limit()).await });
    let _ = signal_group(bench.browser.process_id(), Signal::Kill);
    assert_eq!(waiting.await.expect("no panic"), Err(crate::browser::CdpError::Closed));
    let mut gone = bench.browser.gone();
    let exit = limit().bound(gone.wait_for(Option::is_some)).await.expect("in time").expect("it is watched").clone();
    assert_eq!(exit.and_then(|exit| exit.signal), Some(9));
    bench.page.wait(limit(), |state| state.closed.then_some(())).await.expect("the page is gone");
    assert_eq!(bench.of_kind("page.closed").await[0]["data"]["reason"], "crashed");
    assert!(bench.close().await.group_gone);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_crashed_page_says_so_and_the_browser_lives() {
    let bench = Bench::start().await;
    bench.browser.connection().post(Some(bench.page.session()), "Page.crash", json!({}));
    bench.page.wait(limit(), |state| state.crashed.then_some(())).await.expect("the crash is noticed");
    bench.event(|event| event["kind"] == "page.crashed").await;
    bench.browser.open_page(limit()).await.expect("another page opens");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_launch_that_cannot_work_says_why() {
    let directory = tempfile::tempdir().expect("a temporary directory can be made");
    let launch = |options| {
        let path = directory.path().to_owned();
        async move {
            let log = storage::log::Log::open(storage::log::LogOptions::new(path.join("log"))).expect("a log opens");
            let artifacts =
                storage::artifact::ArtifactStore::open(&path.join("artifacts"), 1 << 20).expect("a store opens");
            let scope = Scope::new("s".into(), "i".into(), "local".into());
            let result = Browser::launch(
                options,
                scope,
                Journal::new(log.clone()),
                artifacts,
                std::sync::Arc::default(),
                limit(),
            )
            .await;
            log.close().await.expect("the log closes");
            result.err()
        }
    };
    let mut missing = options(directory.path(), &[], true);
    missing.executable = directory.path().join("nowhere");
    assert!(matches!(launch(missing).await, Some(LaunchError::NotFound { .. })));
    let mut broken = options(directory.path(), &[], true);
    broken.executable = "/bin/false".into();
    assert!(matches!(launch(broken).await, Some(LaunchError::Failed { .. })));
    let mut sandboxed = options(directory.path(), &[], true);
    sandboxed.sandbox = true;
    if crate::browser::chromium::os::is_root() {
        assert!(matches!(
            launch(sandboxed).await,
            Some(LaunchError::SandboxUnavailable { reason: "this process runs as root" })
        ));
    }
    assert_eq!(std::fs::read_dir(directory.path().join("run")).map_or(0, Iterator::count), 0);
}

/// Not a test: a gateway for the next one to kill. Tells Chromium's process id and waits to be killed.
#[tokio::test(flavor = "multi_thread")]
#[ignore = "started by another test"]
async fn stand_in_gateway() {
    use std::io::Write;
    let headless_shell = std::env::var_os("STAND_IN_FULL").is_none();
    let bench = Bench::with(&[], headless_shell).await;
    let mut out = std::io::stdout();
    writeln!(out, "chromium={}", bench.browser.process_id()).expect("the other test listens");
    out.flush().expect("the other test listens");
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn chromium_ends_with_a_killed_gateway() {
    use tokio::io::AsyncBufReadExt;
    for full in [false, true] {
        let mut command = tokio::process::Command::new(std::env::current_exe().expect("this test is a program"));
        command.args(["--ignored", "--exact", "--nocapture", "browser::tests::ending::stand_in_gateway"]);
        command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::null()).kill_on_drop(true);
        if full {
            command.env("STAND_IN_FULL", "1");
        }
        let mut gateway = command.spawn().expect("the stand-in starts");
        let mut lines = tokio::io::BufReader::new(gateway.stdout.take().expect("it is piped")).lines();
        let group = loop {
            let line =
                limit().bound(lines.next_line()).await.expect("in time").expect("it can be read").expect("it goes on");
            if let Some((_, group)) = line.split_once("chromium=") {
                break group.trim().parse::<u32>().expect("it tells a process id");
            }
        };
        assert!(runs(group));
        gateway.kill().await.expect("it can be killed");
        let gone = limit().bound(crate::browser::chromium::process::group_gone(group)).await;
        assert!(gone.is_ok(), "processes of group {group} are left");
    }
}

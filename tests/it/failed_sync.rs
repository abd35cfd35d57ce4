//! One sync that fails, injected into the running server by strace: what it was for is not
//! acknowledged, nothing tries it again, nothing more is done or recorded, what stands is readable, and
//! the next start finds everything that was acknowledged.

use std::path::PathBuf;
use std::process::Stdio;
use std::time::{Duration, Instant};

use serde_json::json;
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::support::check::Check;
use crate::support::{LIMIT, Options, Server, http, processes, walk};

/// EX_UNAVAILABLE of sysexits(3).
const EXIT_UNAVAILABLE: i32 = 69;
/// How soon readiness must say so.
const READY_LIMIT: Duration = Duration::from_secs(2);

/// strace at work on a process; lets go of it with the value.
struct Tracer {
    child: Child,
    output: PathBuf,
    _directory: tempfile::TempDir,
}

impl Tracer {
    /// Has the next fdatasync of each thread of `pid` fail; `None` where that is not allowed.
    async fn fail_next_sync(pid: u32) -> Option<Self> {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let output = directory.path().join("calls");
        let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("it runs").count();
        let mut child = Command::new("strace")
            .args(["-f", "-e", "trace=fdatasync,fsync", "-e", "inject=fdatasync:error=EIO:when=1", "-o"])
            .arg(&output)
            .args(["-p", &pid.to_string()])
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("strace is installed by .ci/setup");
        let mut said = BufReader::new(child.stderr.take().expect("it is piped")).lines();
        let attached = async {
            while let Ok(Some(line)) = said.next_line().await {
                if line.contains("Operation not permitted") {
                    return false;
                }
                // "strace: Process 123 attached with 14 threads", or without the threads when there is one.
                if line.contains(&format!("Process {pid} attached")) {
                    assert!(threads == 1 || line.contains("threads"), "{line}");
                    return true;
                }
            }
            false
        };
        let attached = tokio::time::timeout(LIMIT, attached).await.expect("strace says something");
        attached.then_some(Self { child, output, _directory: directory })
    }

    /// Lets go of the process; gives the calls seen, a line each, with the thread first.
    async fn let_go(mut self) -> Vec<String> {
        let pid = self.child.id().expect("it runs");
        processes::signal(pid, "INT").await;
        tokio::time::timeout(LIMIT, self.child.wait()).await.expect("it lets go").expect("it can be waited for");
        let text = std::fs::read_to_string(&self.output).expect("the calls");
        text.lines().map(str::to_owned).collect()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_sync_that_fails_once_is_the_end_of_recording() {
    let mut check = Check::begin("D10", "one failed fdatasync");
    let server = Server::start(Options::http()).await;
    let address = server.address();
    let session_id = server.launch().await;
    let evaluate = |text: &str| json!({"session_id": session_id, "expression": format!("console.log('{text}'); 1")});
    let mut acknowledged = Vec::new();
    for number in 0..5 {
        let reply = server.ok_reply("evaluate", evaluate(&format!("line {number}"))).await;
        acknowledged.push(reply.operation_id().to_owned());
    }
    let Some(tracer) = Tracer::fail_next_sync(server.pid()).await else {
        check.not_run("strace may not trace here; the storage tests fail each sync in turn");
        return;
    };
    check.tried(1);
    let failed = server.call("evaluate", evaluate("never")).await;
    assert_eq!(failed.code(), "LOG_UNAVAILABLE", "{}", failed.structured);
    let since = Instant::now();
    let ready = http::get(address, "/readyz").await;
    assert!(ready.status == 503 && ready.body.contains("LOG_UNAVAILABLE"), "{ready:?}");
    assert!(since.elapsed() < READY_LIMIT);
    let calls = tracer.let_go().await;
    let injected = calls.iter().position(|call| call.contains("(INJECTED)")).expect("a sync was made to fail");
    let thread = calls[injected].split(' ').next().expect("a thread");
    let is_its_sync = |call: &&String| call.starts_with(&format!("{thread} ")) && call.contains("sync(");
    let later = calls[injected + 1..].iter().filter(is_its_sync).count();
    assert_eq!(later, 0, "it was tried again: {calls:?}");

    // Syncs would succeed from here on; the log does not try.
    for (tool, arguments) in [
        ("evaluate", evaluate("never")),
        ("navigate", json!({"session_id": session_id, "url": "about:blank"})),
        ("launch_session", json!({"slug": "more"})),
        ("export_events", json!({"session_id": session_id})),
    ] {
        server.fault(tool, arguments, "LOG_UNAVAILABLE").await;
    }
    assert_eq!(http::get(address, "/readyz").await.status, 503);
    assert_eq!(http::get(address, "/healthz").await.status, 200);
    let metrics = http::get(address, "/metrics").await.body;
    assert_eq!(http::series(&metrics, "pageledger_log_available"), Some(0.0));
    assert_eq!(walk::texts(&walk::console(&server, &session_id).await).len(), 5, "what stands is readable");
    let status = server.ok("server_status", json!({})).await;
    assert!(status["log"]["reason"].as_str().is_some_and(|reason| reason.contains("sync")), "{}", status["log"]);
    let family = processes::descendants(server.pid());
    let ended = server.stop().await;
    assert_eq!(ended.status.code(), Some(EXIT_UNAVAILABLE), "{}", ended.stderr);
    assert!(ended.stderr.contains("cannot record"), "{}", ended.stderr);
    assert_eq!(processes::alive(&family), []);

    let server = Server::start(Options::stdio().on(&ended.data)).await;
    let events = walk::events(&server, &session_id).await;
    for operation in &acknowledged {
        let of_it = |event: &&serde_json::Value| event["operation_id"] == operation.as_str();
        let settled = events.iter().filter(of_it).any(|event| event["kind"] == "call.settled");
        assert!(settled, "{operation} was acknowledged");
    }
    let texts = walk::console(&server, &session_id).await;
    assert_eq!(
        walk::texts(&texts),
        ["line 0", "line 1", "line 2", "line 3", "line 4"],
        "what was refused was not done"
    );
    let id = server.launch().await;
    server.ok("evaluate", json!({"session_id": id, "expression": "1"})).await;
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
}

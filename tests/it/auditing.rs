//! History can be proven from the files alone, and accounts for every call, however often the server was
//! killed.

use std::collections::BTreeMap;
use std::process::Output;

use serde_json::{Value, json};

use crate::support::{DataDir, Options, Server, http, program, wait_for};

/// Kills in the mixed run.
const KILLS: usize = 4;

async fn run(data: &DataDir, words: &[&str]) -> Output {
    let directory = data.path().display().to_string();
    let words: Vec<&str> = words.iter().copied().chain(["--data-dir", &directory]).collect();
    program::run(&words).await
}

async fn said(data: &DataDir, words: &[&str]) -> String {
    let output = run(data, words).await;
    assert!(output.status.success(), "{words:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("UTF-8")
}

/// The report of `verify`, and the exit code.
async fn verify(data: &DataDir, words: &[&str]) -> (Value, Option<i32>) {
    let words: Vec<&str> = ["verify", "--json"].iter().chain(words).copied().collect();
    let output = run(data, &words).await;
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    let report = serde_json::from_str(&text);
    let report = report.unwrap_or_else(|_| panic!("{text}{}", String::from_utf8_lossy(&output.stderr)));
    (report, output.status.code())
}

async fn assert_sound(data: &DataDir, words: &[&str]) -> Value {
    let (report, code) = verify(data, words).await;
    assert_eq!((code, &report["sound"], &report["findings"]), (Some(0), &json!(true), &json!([])), "{report}");
    report
}

async fn work(server: &Server) -> String {
    let session_id = server.launch().await;
    for n in 0..5 {
        let expression = format!("console.log('said {n}')");
        server.ok("evaluate", json!({"session_id": session_id, "expression": expression})).await;
    }
    session_id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_history_verifies_beside_its_server_and_after_it_and_a_changed_one_does_not() {
    let data = DataDir::fresh();
    let server = Server::start(Options::stdio().on(&data)).await;
    work(&server).await;
    let running = assert_sound(&data, &[]).await;
    assert!(running["checkpoints"].as_u64() >= Some(1), "a started server has signed: {running}");
    let status = server.ok("server_status", json!({})).await;
    assert_eq!((&status["audit"]["signing"], &status["audit"]["reason"]), (&json!(true), &Value::Null), "{status}");
    server.stop().await;

    let (key, line) = (said(&data, &["audit", "key"]).await, said(&data, &["audit", "checkpoint"]).await);
    let (key, line) = (key.lines().next().expect("a key"), line.trim());
    let ended = assert_sound(&data, &["--key", key, "--from", line]).await;
    assert_eq!(ended["unsigned_events"], 0, "the last checkpoint covers the seal: {ended}");
    assert_eq!((&ended["keys"], &ended["key_given"]), (&json!([key]), &json!(true)));
    let listed = said(&data, &["audit", "checkpoints", "--json"]).await;
    let last: Value = serde_json::from_str(listed.lines().last().expect("a line")).expect("JSON");
    assert_eq!((&last["seq"], &last["key_id"]), (&ended["last_seq"], &json!(key)));
    let words = said(&data, &["verify"]).await;
    assert!(words.contains("sound") && words.contains("neither --key nor --from"), "{words}");

    let segment = data.path().join("log/000001.seg");
    let true_bytes = std::fs::read(&segment).expect("the segment");
    let mut bytes = true_bytes.clone();
    // Behind the last event the segment holds room that was laid out in advance.
    let middle = usize::try_from(ended["stored_bytes"].as_u64().expect("a number") / 2).expect("it is short");
    bytes[middle] ^= 1;
    std::fs::write(&segment, bytes).expect("it is written");
    let (report, code) = verify(&data, &[]).await;
    assert_eq!((code, &report["sound"]), (Some(65), &json!(false)), "{report}");
    let finding = &report["findings"][0];
    assert!(finding["first_seq"].as_u64() >= Some(1) && finding["last_seq"].as_u64() <= ended["last_seq"].as_u64());
    std::fs::write(&segment, true_bytes).expect("it is written");
    assert_sound(&data, &[]).await;
    for wrong in [&["--key", "nowhere"], &["--from", "nowhere"]] {
        let refused = run(&data, &["verify", wrong[0], wrong[1]]).await;
        assert_eq!(refused.status.code(), Some(64), "{}", String::from_utf8_lossy(&refused.stderr));
    }
    let nothing = DataDir::fresh();
    assert_eq!(run(&nothing, &["verify"]).await.status.code(), Some(66));
    assert_eq!(run(&nothing, &["audit", "key"]).await.status.code(), Some(66));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_key_is_changed_while_the_server_is_stopped() {
    let data = DataDir::fresh();
    let server = Server::start(Options::stdio().on(&data)).await;
    // The handshake does not wait for the log; a call does.
    server.ok("server_status", json!({})).await;
    let old = said(&data, &["audit", "key"]).await.lines().next().expect("a key").to_owned();
    let refused = run(&data, &["audit", "key", "--rotate"]).await;
    assert_eq!(refused.status.code(), Some(75), "a server uses it: {}", String::from_utf8_lossy(&refused.stderr));
    server.stop().await;
    let new = said(&data, &["audit", "key", "--rotate"]).await.lines().next().expect("a key").to_owned();
    assert_ne!(new, old);
    for key in [&old, &new] {
        let report = assert_sound(&data, &["--key", key]).await;
        assert_eq!(report["keys"], json!([old, new]));
    }
    let server = Server::start(Options::stdio().on(&data)).await;
    let status = server.ok("server_status", json!({})).await;
    assert_eq!(status["audit"]["key_id"], json!(new));
    server.stop().await;
    assert_sound(&data, &["--key", &old]).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_is_gone_or_rolled_back_is_never_taken_for_a_new_one() {
    let data = DataDir::fresh();
    let server = Server::start(Options::stdio().on(&data)).await;
    server.ok("server_status", json!({})).await;
    server.stop().await;
    let (log, aside) = (data.path().join("log"), data.path().join("aside"));
    let copy = |from: &std::path::Path, to: &std::path::Path| {
        std::fs::create_dir(to).expect("it is made");
        for entry in std::fs::read_dir(from).expect("it is read").flatten() {
            std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it is copied");
        }
    };
    copy(&log, &aside);
    let server = Server::start(Options::stdio().on(&data)).await;
    work(&server).await;
    server.stop().await;
    std::fs::remove_dir_all(&log).expect("it goes");
    for what in ["gone", "rolled back"] {
        if what == "rolled back" {
            copy(&aside, &log);
        }
        let refused = run(&data, &["serve"]).await;
        let text = String::from_utf8_lossy(&refused.stderr).into_owned();
        assert_eq!(refused.status.code(), Some(65), "{what}: {text}");
        assert!(text.contains("checkpoint") && text.contains("sequence"), "{what}: {text}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_cannot_sign_records_all_the_same_and_says_so() {
    let data = DataDir::fresh();
    std::fs::write(data.path().join("audit"), "in the way").expect("it is written");
    let server = Server::start(Options::http().on(&data)).await;
    work(&server).await;
    let status = server.ok("server_status", json!({})).await;
    assert_eq!((&status["audit"]["signing"], &status["audit"]["signed_seq"]), (&json!(false), &json!(0)), "{status}");
    assert!(status["audit"]["reason"].as_str().is_some_and(|reason| reason.contains("audit")), "{status}");
    let ready = http::get(server.address(), "/readyz").await;
    assert!(ready.status == 200 && ready.body.contains("no checkpoint can be signed"), "{}", ready.body);
    assert!(http::get(server.address(), "/metrics").await.body.contains("pageledger_audit_signing 0\n"));
    std::fs::remove_file(data.path().join("audit")).expect("it goes");
    wait_for("it signs again", || async {
        let status = server.ok("server_status", json!({})).await;
        (status["audit"]["signing"] == true).then_some(())
    })
    .await;
    assert_eq!(http::get(server.address(), "/readyz").await.body, "ready\n");
    server.stop().await;
    let report = assert_sound(&data, &[]).await;
    assert_eq!((&report["unsigned_events"], &report["first_seq"]), (&json!(0), &json!(1)), "{report}");
}

/// One round of calls of every kind of end; the last ones are cut short by the kill.
async fn round(data: &DataDir) {
    let server = Server::start(Options::stdio().on(data)).await;
    let session_id = work(&server).await;
    server
        .fault("click", json!({"session_id": session_id, "selector": "#none", "timeout": 200}), "ELEMENT_NOT_FOUND")
        .await;
    server.call("navigate", json!({"session_id": session_id})).await;
    let endless = json!({"session_id": session_id, "expression": "new Promise(() => {})"});
    let running = server.begin("evaluate", endless.clone()).await;
    let queued = server.begin("evaluate", endless).await;
    let two_are_under_way = || async {
        let arguments = json!({"session_id": session_id, "kinds": ["call.accepted"], "limit": 500});
        let page = server.ok("list_events", arguments).await;
        let last_two: Vec<_> = page["events"].as_array().expect("events").iter().rev().take(2).collect();
        let endless = |event: &&Value| event["data"]["arguments"].to_string().contains("new Promise");
        (last_two.len() == 2 && last_two.iter().all(endless)).then_some(())
    };
    wait_for("both calls are on record", two_are_under_way).await;
    server.signal("KILL").await;
    drop((running, queued));
}

#[tokio::test(flavor = "multi_thread")]
async fn every_call_is_accounted_for_after_any_number_of_crashes() {
    let data = DataDir::fresh();
    let mut saved = Vec::new();
    for _ in 0..KILLS {
        round(&data).await;
        // As the crash left it, and against all that was kept before it.
        let from: Vec<&str> = saved.iter().flat_map(|line: &String| ["--from", line.as_str()]).collect();
        assert_sound(&data, &from).await;
        saved.push(said(&data, &["audit", "checkpoint"]).await.trim().to_owned());
    }
    let server = Server::start(Options::stdio().on(&data)).await;
    server.ok("server_status", json!({})).await;
    server.stop().await;
    let events: Vec<Value> = said(&data, &["tail", "--json"])
        .await
        .lines()
        .map(|line| serde_json::from_str(line).expect("a line is JSON"))
        .collect();
    account_for(&events);
    let from: Vec<&str> = saved.iter().flat_map(|line| ["--from", line.as_str()]).collect();
    let report = assert_sound(&data, &from).await;
    assert_eq!(report["events"], json!(events.len()));
}

/// Each call was accepted once, entered at most once, and ended once, by whom, where, with what.
fn account_for(events: &[Value]) {
    let mut calls: BTreeMap<&str, Vec<&Value>> = BTreeMap::new();
    for event in events.iter().filter(|event| event["kind"].as_str().is_some_and(|kind| kind.starts_with("call."))) {
        assert!(event["owner"].is_string(), "{event}");
        calls.entry(event["operation_id"].as_str().expect("an operation")).or_default().push(event);
    }
    let mut outcomes: BTreeMap<String, usize> = BTreeMap::new();
    for call in calls.values() {
        let of_kind = |kind: &str| call.iter().filter(|event| event["kind"] == kind).copied().collect::<Vec<_>>();
        if let [rejected] = of_kind("call.rejected")[..] {
            assert!(call.len() == 1 && rejected["data"]["code"].is_string(), "{call:?}");
            continue;
        }
        let (accepted, entered, settled) = (of_kind("call.accepted"), of_kind("call.entered"), of_kind("call.settled"));
        assert_eq!((accepted.len(), settled.len()), (1, 1), "{call:?}");
        assert!(entered.len() <= 1, "no call is made twice: {call:?}");
        let (accepted, settled) = (accepted[0], settled[0]);
        assert!(!accepted["data"]["arguments"].is_null() && accepted["data"]["tool"] == settled["data"]["tool"]);
        // Reading a history does not become part of it.
        let reads_history = accepted["data"]["tool"] == "list_events";
        let names_session = accepted["data"]["arguments"].to_string().contains("session_id");
        assert!(reads_history || !names_session || accepted["session_id"].is_string(), "{accepted}");
        // A launch has no session yet when it is accepted.
        let same = accepted["session_id"] == settled["session_id"];
        assert!(same || accepted["data"]["tool"] == "launch_session", "{call:?}");
        let outcome = settled["data"]["outcome"].as_str().expect("an outcome");
        assert!(entered.is_empty() || outcome != "not_started", "{call:?}");
        *outcomes.entry(outcome.to_owned()).or_default() += 1;
    }
    assert!(outcomes["unknown"] >= KILLS && outcomes["not_started"] >= KILLS, "{outcomes:?}");
    assert!(outcomes["completed"] > KILLS, "{outcomes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_audit_directory_that_was_lost_is_told_to_everybody() {
    let data = DataDir::fresh();
    let server = Server::start(Options::stdio().on(&data)).await;
    server.ok("server_status", json!({})).await;
    server.stop().await;
    let old = said(&data, &["audit", "key"]).await.lines().next().expect("a key").to_owned();
    std::fs::remove_dir_all(data.path().join("audit")).expect("it goes");
    let server = Server::start(Options::http().on(&data)).await;
    let status = server.ok("server_status", json!({})).await;
    assert!(status["audit"]["lost"].as_str().is_some_and(|lost| lost.contains(&old)), "{status}");
    let ready = http::get(server.address(), "/readyz").await;
    assert!(ready.status == 200 && ready.body.contains(&old), "{}", ready.body);
    server.stop().await;
    let (report, code) = verify(&data, &[]).await;
    let lost = |finding: &Value| finding["detail"].as_str().is_some_and(|detail| detail.contains("lost or replaced"));
    assert!(code == Some(65) && report["findings"].as_array().is_some_and(|all| all.iter().any(lost)), "{report}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_pipe_among_the_audit_files_keeps_no_server_from_ending() {
    let data = DataDir::fresh();
    let server = Server::start(Options::stdio().on(&data)).await;
    server.ok("server_status", json!({})).await;
    server.stop().await;
    let path = data.path().join("audit/checkpoints.jws");
    std::fs::remove_file(&path).expect("it goes");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().expect("it runs").success());
    let server = Server::start(Options::stdio().on(&data)).await;
    let status = server.ok("server_status", json!({})).await;
    assert_eq!(status["audit"]["signing"], false, "{status}");
    // Fails unless the process ends in time.
    server.stop().await;
    let refused = run(&data, &["verify"]).await;
    assert_eq!(refused.status.code(), Some(74), "{}", String::from_utf8_lossy(&refused.stderr));
}

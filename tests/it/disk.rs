//! A disk that runs low: each level refuses what it says and no more, and everything comes back by
//! itself when there is room again.

use serde_json::{Value, json};

use crate::support::{Options, Server, SmallDisk, http, wait_for, walk};

async fn disk_level(server: &Server) -> String {
    let status = server.ok("server_status", json!({})).await;
    status["disk"]["level"].as_str().expect("a level").to_owned()
}

async fn reaches(server: &Server, level: &str) {
    wait_for(level, || async { (disk_level(server).await == level).then_some(()) }).await;
}

/// The levels that are on record, in order, each with the state of the ballast.
async fn recorded(disk: &SmallDisk) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().expect("a word").to_owned();
    let events = events(disk, "disk.level").await;
    events.iter().map(|event| (text(&event["data"]["level"]), text(&event["data"]["ballast"]))).collect()
}

/// Events of no session, which `tail` prints beside the running server.
async fn events(disk: &SmallDisk, kind: &str) -> Vec<Value> {
    let directory = disk.data().display().to_string();
    let words = ["tail", "--json", "--data-dir", &directory, "--kind", kind];
    let output = crate::support::program::run(&words).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn each_level_refuses_what_it_says_and_goes_by_itself() {
    let disk = SmallDisk::tmpfs(128);
    let server = Server::start(disk.serving(Options::http())).await;
    let address = server.address();
    let session_id = server.launch().await;
    let evaluate = json!({"session_id": session_id, "expression": "console.log('seen'); 1"});
    server.ok("evaluate", evaluate.clone()).await;
    wait_for("the ballast", || async { disk.data().join("ballast").exists().then_some(()) }).await;
    let percent = disk.total_bytes() / 100;
    assert_eq!(disk_level(&server).await, "ok");

    disk.leave_free(12 * percent);
    reaches(&server, "warn").await;
    server.ok("evaluate", evaluate.clone()).await;
    assert_eq!(http::get(address, "/readyz").await.body, "ready\n");

    disk.leave_free(8 * percent);
    reaches(&server, "refuse_sessions").await;
    for (tool, arguments) in
        [("launch_session", json!({"slug": "more"})), ("browser_create_instance", json!({"name": "more"}))]
    {
        let refused = server.fault(tool, arguments, "DISK_LOW").await;
        assert!(refused["details"]["free_bytes"].as_u64().is_some_and(|free| free <= 8 * percent), "{refused}");
    }
    server.ok("evaluate", evaluate.clone()).await;
    let ready = http::get(address, "/readyz").await;
    assert!(ready.status == 200 && ready.body.contains("DISK_LOW"), "{ready:?}");

    disk.leave_free(3 * percent);
    reaches(&server, "read_only").await;
    assert!(!disk.data().join("ballast").exists(), "its room is given back");
    let before = walk::console(&server, &session_id).await.len();
    for (tool, arguments) in [
        ("evaluate", evaluate.clone()),
        ("navigate", json!({"session_id": session_id, "url": "about:blank"})),
        ("launch_session", json!({"slug": "more"})),
        ("export_events", json!({"session_id": session_id})),
    ] {
        server.fault(tool, arguments, "DISK_LOW").await;
    }
    server.ok("session_info", json!({"session_id": session_id})).await;
    let ready = http::get(address, "/readyz").await;
    assert!(ready.status == 503 && ready.body.contains("DISK_LOW"), "{ready:?}");
    assert_eq!(http::get(address, "/healthz").await.status, 200);
    let metrics = http::get(address, "/metrics").await.body;
    assert_eq!(http::series(&metrics, "pageledger_disk_level"), Some(3.0));
    assert_eq!(http::series(&metrics, "pageledger_disk_ballast_bytes"), Some(0.0));
    assert_eq!(walk::console(&server, &session_id).await.len(), before);
    server.ok("close_session", json!({"session_id": session_id})).await;

    disk.empty();
    reaches(&server, "ok").await;
    wait_for("the ballast", || async { disk.data().join("ballast").exists().then_some(()) }).await;
    let again = server.launch().await;
    server.ok("evaluate", json!({"session_id": again, "expression": "1"})).await;
    assert_eq!(http::get(address, "/readyz").await.body, "ready\n");
    let said = recorded(&disk).await;
    let wanted = [("warn", "held"), ("refuse_sessions", "held"), ("read_only", "released"), ("ok", "held")];
    assert_eq!(said, wanted.map(|(level, ballast)| (level.to_owned(), ballast.to_owned())));
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
}

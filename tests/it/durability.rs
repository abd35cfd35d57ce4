//! Durability by interval: its window shows wherever somebody could rely on more, and the death of the
//! process costs nothing all the same.

use std::path::Path;

use serde_json::{Value, json};

use crate::support::{DataDir, Options, Server, http, program, walk};

fn manifest(path: &Value) -> Value {
    let text = std::fs::read_to_string(path.as_str().expect("a path")).expect("a manifest");
    serde_json::from_str(&text).expect("JSON")
}

async fn opened(data: &Path) -> Vec<Value> {
    let directory = data.display().to_string();
    let output = program::run(&["tail", "--json", "--data-dir", &directory, "--kind", "log.opened"]).await;
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    text.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON")["data"].clone()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn the_window_is_told_and_the_death_of_the_process_costs_nothing() {
    let server = Server::start(Options::http().argument("--durability", "interval=60000")).await;
    let session_id = server.launch().await;
    for line in 0..20 {
        let expression = format!("console.log('line {line}'); 1");
        server.ok("evaluate", json!({"session_id": session_id, "expression": expression})).await;
    }
    let log = server.ok("server_status", json!({})).await["log"].take();
    assert_eq!((&log["durability"], &log["sync_interval_ms"]), (&json!("interval"), &json!(60_000)));
    assert!(log["unsynced_ms"].is_u64(), "{log}");
    let address = server.address();
    let ready = http::get(address, "/readyz").await;
    assert!(ready.status == 200 && ready.body.contains("60000 ms"), "{ready:?}");
    let metrics = http::get(address, "/metrics").await.body;
    assert_eq!(http::series(&metrics, "pageledger_log_sync_interval_seconds"), Some(60.0));
    assert!(http::series(&metrics, "pageledger_log_unsynced_seconds").is_some_and(|seconds| seconds > 0.0));
    let exported = server.ok("export_events", json!({"session_id": session_id, "path": "a.parquet"})).await;
    let durability = json!({"mode": "interval", "sync_interval_ms": 60_000});
    assert_eq!(manifest(&exported["manifest_path"])["durability"], durability);

    let data = server.signal("KILL").await.data;
    let server = Server::start(Options::http().on(&data)).await;
    let lines: Vec<String> = (0..20).map(|line| format!("line {line}")).collect();
    assert_eq!(walk::texts(&walk::console(&server, &session_id).await), lines);
    let log = server.ok("server_status", json!({})).await["log"].take();
    assert_eq!((&log["durability"], &log["sync_interval_ms"]), (&json!("commit"), &Value::Null));
    let exported = server.ok("export_events", json!({"session_id": session_id, "path": "b.parquet"})).await;
    let durability = json!({"mode": "commit", "sync_interval_ms": null});
    assert_eq!(manifest(&exported["manifest_path"])["durability"], durability);
    assert_eq!(http::get(server.address(), "/readyz").await.body, "ready\n");
    let opened = opened(data.path()).await;
    let said: Vec<_> = opened.iter().map(|data| (&data["durability"], &data["sync_interval_ms"])).collect();
    assert_eq!(said, [(&json!("interval"), &json!(60_000)), (&json!("commit"), &Value::Null)]);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_export_beside_the_server_says_the_window_too() {
    let server = Server::start(Options::stdio().argument("--durability", "interval=20")).await;
    let session_id = server.launch().await;
    server.ok("close_session", json!({"session_id": session_id})).await;
    let data = server.stop().await.data;
    let elsewhere = DataDir::fresh();
    let (directory, out) = (data.path().display().to_string(), elsewhere.path().join("history.ndjson"));
    let out = out.display().to_string();
    let words = ["export", "--data-dir", &directory, "--session", &session_id, "--format", "ndjson", "--out", &out];
    let output = program::run(&words).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let manifest = manifest(&json!(format!("{out}.manifest.json")));
    assert_eq!(manifest["durability"], json!({"mode": "interval", "sync_interval_ms": 20}));
}

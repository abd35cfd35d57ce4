//! Where exports go and what they are of: stores, permitted places, sessions, owners, ranges.

use std::path::Path;

use serde_json::{Value, json};

use super::readers::Store;
use crate::site::Site;
use crate::support::{Options, Server, program, wait_for, walk};

/// Messages that together are more than one part of an upload.
const LARGE: &str = "for (let n = 0; n < 600; n++) console.log(n + ' ' + 'x'.repeat(16000))";

/// `pageledger export` with the store's variables; its exit code, what it printed, and what it complained of.
async fn export(server: &Server, store: &Store, arguments: &[&str]) -> (Option<i32>, Value, String) {
    let directory = server.data_dir().path().display().to_string();
    let line = ["export", "--data-dir", &directory, "--json"].into_iter().chain(arguments.iter().copied());
    let line: Vec<String> = line.map(str::to_owned).collect();
    let output = program::run_with(&line, &store.environment()).await;
    let told = String::from_utf8(output.stderr).expect("UTF-8");
    for secret in ["hush-4711", "key-1"] {
        assert!(!told.contains(secret), "{told}");
    }
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default(), told)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_store_lists_an_export_only_when_it_is_whole() {
    let site = Site::start().await;
    let (server, mut store) = tokio::join!(Server::start(Options::stdio()), Store::start());
    let id = server.launch_at(&site.url("/plain.html")).await;
    server.ok("evaluate", json!({"session_id": id, "expression": LARGE})).await;
    wait_for("the last message", || async {
        let asked = json!({"session_id": id, "text_filter": "^599 x", "limit": 1});
        let page = server.ok("list_console_messages", asked).await;
        page["messages"].get(0).is_some().then_some(())
    })
    .await;
    let ndjson = ["--session", &id, "--format", "ndjson", "--out"];

    store.ask("fail 2").await;
    let (code, _, told) = export(&server, &store, &[&ndjson[..], &["s3://audit/broken.ndjson"]].concat()).await;
    assert_eq!(code, Some(69), "{told}");
    assert!(told.contains("s3://audit/broken.ndjson") && told.contains("does not permit"), "{told}");
    assert_eq!(store.ask("list").await, json!({"objects": [], "uploads": []}), "nothing is left");
    store.ask("fail 0").await;

    let (code, reply, told) = export(&server, &store, &[&ndjson[..], &["s3://audit/kept/a.ndjson"]].concat()).await;
    assert_eq!((code, told.as_str()), (Some(0), ""));
    assert!(reply["bytes"].as_u64() > Some(8 * 1024 * 1024), "it takes several parts: {reply}");
    let listed = store.ask("list").await;
    assert_eq!(listed["objects"], json!(["kept/a.ndjson", "kept/a.ndjson.manifest.json"]));
    let held = store.ask("get kept/a.ndjson").await;
    assert_eq!((&held["bytes"], &held["sha256"]), (&reply["bytes"], &reply["sha256"]));
    let seen = store.ask("log").await["seen"].to_string();
    let (whole, manifest) = (seen.rfind("uploadId="), seen.rfind("PUT /audit/kept/a.ndjson.manifest.json"));
    assert!(whole.is_some() && whole < manifest, "the manifest comes last");

    let (code, _, told) = export(&server, &store, &["--session", &id, "--out", "s3://nowhere/a.parquet"]).await;
    assert_eq!(code, Some(69), "{told}");
    assert!(told.contains("no such bucket"), "{told}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_writes_only_where_its_operator_allows() {
    let (permitted, outside) = (tempfile::tempdir().expect("a directory"), tempfile::tempdir().expect("a directory"));
    let (permitted, outside) = (permitted.path().display().to_string(), outside.path().display().to_string());
    let mut store = Store::start().await;
    let of_store =
        store.environment().into_iter().fold(Options::stdio(), |options, (name, value)| options.variable(name, value));
    let of_store = Server::start(of_store.argument("--export-url", "s3://audit/kept/")).await;
    let reply = of_store.ok("export_events", json!({"format": "ndjson", "path": "s3://audit/kept/b.ndjson"})).await;
    assert_eq!(store.ask("get kept/b.ndjson").await["sha256"], reply["sha256"]);
    let again = json!({"format": "ndjson", "path": "s3://audit/kept/b.ndjson"});
    let again = of_store.fault("export_events", again, "EXPORT_FAILED").await;
    assert!(again["details"]["reason"].as_str().is_some_and(|reason| reason.contains("exists")), "{again}");

    let url = format!("file://{permitted}/");
    let of_files = Server::start(Options::stdio().argument("--export-url", &url)).await;
    let inside = format!("file://{permitted}/deep/a.csv");
    let reply = of_files.ok("export_events", json!({"format": "csv", "path": inside})).await;
    assert_eq!(reply["path"], format!("{permitted}/deep/a.csv"));
    assert!(Path::new(&format!("{permitted}/deep/a.csv.manifest.json")).exists());
    std::os::unix::fs::symlink(&outside, format!("{permitted}/link")).expect("a link");
    let none = Server::start(Options::stdio()).await;
    for (server, path) in [
        (&of_store, "s3://audit/keptnot/a".to_owned()),
        (&of_store, "s3://audit/kept/../a".to_owned()),
        (&of_store, "s3://other/kept/a".to_owned()),
        (&of_store, "s3://audit/kept/".to_owned()),
        (&of_store, "s3://hush-4711/kept/a".to_owned()),
        (&of_store, inside.clone()),
        (&of_files, format!("file://{outside}/a")),
        (&of_files, format!("file://{permitted}/link/a")),
        (&of_files, format!("file://{permitted}/../a")),
        (&of_files, "s3://audit/kept/a".to_owned()),
        (&none, inside.clone()),
        (&none, "s3://audit/kept/a".to_owned()),
        (&none, "https://127.0.0.1/a".to_owned()),
    ] {
        server.fault("export_events", json!({"path": path}), "PATH_NOT_ALLOWED").await;
    }
    let events = of_store.ok("export_events", json!({"format": "ndjson", "path": "all.ndjson"})).await;
    let text = std::fs::read_to_string(events["path"].as_str().expect("a path")).expect("the file");
    assert!(text.contains("policy.refused") && !text.contains("hush-4711"), "refusals are on record, access is not");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_owner_exports_all_sessions_and_a_command_chooses_alike() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let launch = async |page: &str| server.launch_at(&site.url(page)).await;
    let (first, second) = tokio::join!(launch("/console.html"), launch("/plain.html"));
    walk::console_with(&server, &first, "thrown later").await;
    server.fault("click", json!({"session_id": "none-00000000", "selector": "a"}), "SESSION_NOT_FOUND").await;
    let all = server.ok("export_events", json!({"format": "ndjson", "path": "all.ndjson"})).await;
    let lines = lines(Path::new(all["path"].as_str().expect("a path")));
    let of = |id: &str| lines.iter().filter(|event| event["session_id"] == id).count();
    assert!(of(&first) > 10 && of(&second) > 10, "{all}");
    assert!(lines.iter().any(|event| event["session_id"].is_null() && event["kind"] == "call.rejected"));
    assert!(lines.iter().all(|event| event["owner"] == "local" || event["owner"].is_null()));

    let last_seq = all["last_seq"].as_u64().expect("a number");
    let asked = json!({
        "session_id": first, "format": "ndjson", "path": "some.ndjson",
        "kinds": ["console.*"], "level": "error", "first_seq": 3, "last_seq": last_seq,
    });
    let by_tool = server.ok("export_events", asked).await;
    assert!(by_tool["events"].as_u64() > Some(0) && by_tool["excluded"].as_u64() > Some(10), "{by_tool}");
    let (out, data) = (tempfile::tempdir().expect("a directory"), server.data_dir().clone());
    let (target, directory) = (out.path().join("some.ndjson"), data.path().display().to_string());
    let last = last_seq.to_string();
    let target_text = target.display().to_string();
    let line = [
        "export",
        "--data-dir",
        &directory,
        "--session",
        &first,
        "--format",
        "ndjson",
        "--kind",
        "console.*",
        "--level",
        "error",
        "--first-seq",
        "3",
        "--last-seq",
        &last,
        "--out",
        &target_text,
        "--json",
    ];
    let output = program::run(&line).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.stderr.is_empty(), "progress is for terminals");
    let by_command: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(by_command["sha256"], by_tool["sha256"], "the same events, the same file");
    let owner = ["export", "--data-dir", &directory, "--owner", "nobody", "--out", &target_text];
    assert_eq!(program::run(&owner).await.status.code(), Some(66));
    server.fault("export_events", json!({"first_seq": 9, "last_seq": 8}), "INVALID_ARGUMENTS").await;
}

fn lines(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).expect("the file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

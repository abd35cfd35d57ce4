//! The auditor's page of the README, as it stands there, on a history that has an answer to each question.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use super::readers::read;
use crate::site::Site;
use crate::support::{Options, Server, program, wait_for, walk};

/// The questions of the page with their queries: each SQL block begins with its question as a comment.
fn questions() -> Vec<(String, String)> {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).expect("the README");
    let page = readme.split("### For an auditor").nth(1).expect("the page").split("\n## ").next().expect("its end");
    let blocks = page.split("```sql\n").skip(1).map(|block| block.split("```").next().expect("its end").to_owned());
    let question = |block: &str| block.lines().next().unwrap_or_default().trim_start_matches("-- ").to_owned();
    blocks.map(|block| (question(&block), block)).collect()
}

/// A session that did what the questions ask about, and one whose history was erased.
async fn history(site: &Site) -> (String, String, crate::support::DataDir) {
    let server = Server::start(Options::stdio()).await;
    let data = server.data_dir().clone();
    let erased = server.launch_at(&site.url("/plain.html")).await;
    let id = server.launch_at(&site.url("/downloads.html")).await;
    server.ok("click", json!({"session_id": id, "selector": "#header"})).await;
    wait_for("the download", || async {
        let list = server.ok("list_downloads", json!({"session_id": id})).await;
        list.to_string().contains("sha256").then_some(())
    })
    .await;
    server.fault("click", json!({"session_id": id, "selector": "#absent", "timeout": 100}), "ELEMENT_NOT_FOUND").await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/network.html")})).await;
    walk::console_with(&server, &id, "network done").await;
    server.stop().await;
    let directory = data.path().display().to_string();
    let erase = ["erase", "--data-dir", &directory, "--session", &erased, "--reason", "request 4711"];
    let output = program::run(&erase).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    (id, erased, data)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_question_of_the_page_is_answered() {
    let site = Site::start().await;
    let (id, erased, data) = history(&site).await;
    let out = tempfile::tempdir().expect("a directory");
    let (directory, target) = (data.path().display().to_string(), out.path().join("history.parquet"));
    let target = target.display().to_string();
    let output = program::run(&["export", "--data-dir", &directory, "--out", &target]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let questions = questions();
    let queries: Vec<&String> = questions.iter().map(|(_, query)| query).collect();
    let input = serde_json::to_string(&queries).expect("JSON");
    let found = read(&["query", &out.path().display().to_string()], &input).await;
    let answers: BTreeMap<&str, &Value> =
        questions.iter().map(|(question, _)| question.as_str()).zip(found.as_array().expect("answers")).collect();
    let first = |question: &str| {
        let rows = answers.get(question).unwrap_or_else(|| panic!("{question} of {:?}", answers.keys()));
        assert!(rows[0].is_object(), "{question} has no answer: {rows}");
        rows[0].clone()
    };
    let origin = site.url("");
    assert_eq!(first("Which origins were contacted?")["origin"], origin.trim_end_matches('/'));
    let failed = answers["Which calls failed?"].to_string();
    assert!(failed.contains("element_not_found"), "{failed}");
    let download = first("What was downloaded, from where, and with which hash?");
    assert_eq!((download["bytes"].as_str(), download["session_id"].as_str()), (Some("300000"), Some(id.as_str())));
    assert_eq!(download["sha256"].as_str().map(str::len), Some(64));
    let click = first("How long from a click to the first response?");
    assert!(click["milliseconds"].as_str().and_then(|ms| ms.parse::<f64>().ok()).is_some_and(|ms| ms > 0.0), "{click}");
    let decision = first("What did people decide?");
    assert_eq!((decision["kind"].as_str(), decision["why"].as_str()), (Some("log.removed"), Some("request 4711")));
    let missing = answers["What is missing, and why?"].to_string();
    assert!(missing.contains("erased"), "{missing}");
    let unknown = answers["Of which calls is the outcome not known?"].as_array().expect("rows");
    assert_eq!(unknown.len(), 1, "the click that waited in vain: {unknown:?}");
    let manifest = first("What does the manifest say?");
    assert!(manifest["written"].as_str().and_then(|n| n.parse::<u64>().ok()) > Some(100), "{manifest}");
    assert!(!found.to_string().contains(&erased), "what is erased is gone");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_manifest_ties_its_file_to_the_log() {
    let server = Server::start(Options::stdio()).await;
    server.ok("server_status", json!({})).await;
    let reply = server.ok("export_events", json!({"path": "a.parquet"})).await;
    let text = std::fs::read_to_string(reply["manifest_path"].as_str().expect("a path")).expect("the manifest");
    let manifest: Value = serde_json::from_str(&text).expect("JSON");
    let checkpoint = &manifest["checkpoint"];
    assert_eq!(checkpoint["covers_all"], true, "{manifest:#}");
    assert!(checkpoint["seq"].as_u64() >= reply["last_seq"].as_u64());
    let directory = server.data_dir().path().display().to_string();
    let line = checkpoint["line"].as_str().expect("a line");
    let key = program::run(&["audit", "key", "--data-dir", &directory]).await;
    let key = String::from_utf8(key.stdout).expect("UTF-8");
    assert!(key.contains(checkpoint["key_id"].as_str().expect("a key")), "{key}");
    let verified = program::run(&["verify", "--data-dir", &directory, "--from", line, "--json"]).await;
    assert!(verified.status.success(), "{}", String::from_utf8_lossy(&verified.stderr));
    let report: Value = serde_json::from_slice(&verified.stdout).expect("JSON");
    assert_eq!(report["checkpoints_given_reach"], checkpoint["seq"]);
    assert_eq!(manifest["files"][0]["sha256"], reply["sha256"]);
}

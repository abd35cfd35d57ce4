//! History leaves as files: in every format, whole or chosen, from the server and beside it.

mod atomic;
mod auditor;
mod formats;
mod places;
mod readers;
mod terminal;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::Path;

use arrow_array::{Array, RecordBatch, StringArray, UInt64Array};
use parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use serde_json::{Value, json};

use storage::log::{Log, LogOptions};

use crate::site::Site;
use crate::support::{Options, Server, program, walk};
use crate::torture::payload::Origin;

/// Adds so many events to the log of a data directory, without a server.
async fn grow(data_dir: &Path, events: u64) {
    const COMMIT_EVENTS: u64 = 500;
    let log = Log::open(LogOptions::new(data_dir.join("log"))).expect("the log opens");
    for number in (0..events).step_by(COMMIT_EVENTS as usize) {
        let end = events.min(number + COMMIT_EVENTS);
        let drafts = (number..end).map(|number| Origin { run: 0, writer: 0, number }.draft());
        log.commit(drafts.collect()).await.expect("the log records");
    }
    log.close().await.expect("the log closes");
}

/// Sequence number and kind of every row, in the file's order.
fn parquet_rows(path: &Path) -> Vec<(u64, String)> {
    let file = File::open(path).expect("the file is there");
    let reader =
        ParquetRecordBatchReaderBuilder::try_new(file).expect("it is Parquet").build().expect("it can be read");
    let mut rows = Vec::new();
    for batch in reader {
        let batch = batch.expect("a batch");
        let seqs = column::<UInt64Array>(&batch, "seq");
        for at in 0..batch.num_rows() {
            rows.push((seqs.value(at), text(&batch, "kind", at)));
        }
    }
    rows
}

fn column<'a, T: 'static>(batch: &'a RecordBatch, name: &str) -> &'a T {
    let column = batch.column_by_name(name).unwrap_or_else(|| panic!("a column {name}"));
    column.as_any().downcast_ref().unwrap_or_else(|| panic!("{name} is {:?}", column.data_type()))
}

/// A text, whether the reader gives dictionaries or plain strings.
fn text(batch: &RecordBatch, name: &str, at: usize) -> String {
    let column = batch.column_by_name(name).expect("the column");
    match column.as_any().downcast_ref::<StringArray>() {
        Some(plain) => plain.value(at).to_owned(),
        None => {
            let keyed = column.as_any().downcast_ref::<arrow_array::DictionaryArray<arrow_array::types::Int32Type>>();
            let keyed = keyed.unwrap_or_else(|| panic!("{name} is {:?}", column.data_type()));
            let values = keyed.values().as_any().downcast_ref::<StringArray>().expect("a dictionary of texts");
            values.value(keyed.key(at).expect("a key")).to_owned()
        }
    }
}

fn by_kind(kinds: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
    for kind in kinds {
        *counts.entry(kind).or_default() += 1;
    }
    counts
}

fn listed(events: &[Value]) -> Vec<(u64, String)> {
    let row = |event: &Value| (event["seq"].as_u64().expect("seq"), event["kind"].as_str().expect("kind").to_owned());
    events.iter().map(row).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn exports_hold_exactly_what_is_listed() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/console.html")).await;
    walk::console_with(&server, &id, "thrown later").await;
    server.ok("close_session", json!({"session_id": id})).await;
    let events = listed(&walk::events(&server, &id).await);

    let parquet = server.ok("export_events", json!({"session_id": id, "path": "a.parquet"})).await;
    let rows = parquet_rows(Path::new(parquet["path"].as_str().expect("a path")));
    assert_eq!(parquet["events"], rows.len());
    let rows_before: Vec<_> = rows.iter().filter(|(_, kind)| !kind.starts_with("export.")).cloned().collect();
    let missing: Vec<_> = events.iter().filter(|event| !rows_before.contains(event)).collect();
    assert_eq!(missing, Vec::<&(u64, String)>::new(), "what is listed is exported");
    assert!(rows.windows(2).all(|pair| pair[0].0 < pair[1].0), "in order, once each");

    let console = json!({"session_id": id, "kinds": ["console.*"], "format": "ndjson", "path": "sub/b.ndjson"});
    let ndjson = server.ok("export_events", console).await;
    let text = std::fs::read_to_string(ndjson["path"].as_str().expect("a path")).expect("the file");
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let of_console = events.iter().filter(|(_, kind)| kind.starts_with("console.")).count();
    assert_eq!((lines.len(), ndjson["events"].as_u64()), (of_console, Some(of_console as u64)));
    let manifest = std::fs::read_to_string(ndjson["manifest_path"].as_str().expect("a path")).expect("the manifest");
    let manifest: Value = serde_json::from_str(&manifest).expect("JSON");
    assert!(manifest.to_string().contains(ndjson["sha256"].as_str().expect("a hash")), "{manifest}");

    let kept = server.ok("export_events", json!({"session_id": id, "format": "ndjson"})).await;
    let bytes = walk::artifact(&server, kept["artifact"].as_str().expect("a handle"), 50_000).await;
    assert_eq!(kept["bytes"], bytes.len());
    for path in ["../x.parquet", "/tmp/x.parquet", "a/../../x"] {
        server.fault("export_events", json!({"session_id": id, "path": path}), "PATH_NOT_ALLOWED").await;
    }
    let again = server.fault("export_events", json!({"session_id": id, "path": "a.parquet"}), "EXPORT_FAILED").await;
    assert!(again["details"]["reason"].as_str().is_some_and(|reason| reason.contains("exists")), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn commands_work_beside_a_running_and_a_stopped_server() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/console.html")).await;
    walk::console_with(&server, &id, "thrown later").await;
    let data = server.data_dir().clone();
    let directory = data.path().display().to_string();
    let out = tempfile::tempdir().expect("a directory");
    let (running, stopped) = (out.path().join("running.parquet"), out.path().join("stopped.parquet"));
    let export = async |out: &Path| {
        let out = out.display().to_string();
        let output =
            program::run(&["export", "--data-dir", &directory, "--session", &id, "--format", "parquet", "--out", &out])
                .await;
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    };
    let listed = listed(&walk::events(&server, &id).await);
    export(&running).await;
    let rows = parquet_rows(&running);
    assert!(listed.iter().all(|event| rows.contains(event)), "beside a running server, what is listed is exported");
    let ended = server.stop().await;
    assert!(ended.status.success());
    export(&stopped).await;
    let later = parquet_rows(&stopped);
    assert_eq!(later[..rows.len()], rows, "history only grows");
    let kinds = by_kind(later.iter().map(|(_, kind)| kind.clone()));
    assert_eq!(kinds.get("session.closed"), Some(&1), "{kinds:?}");

    let tail = program::run(&["tail", "--data-dir", &directory, "--json"]).await;
    let tail = String::from_utf8(tail.stdout).expect("UTF-8");
    let seqs: Vec<u64> = tail
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).expect("JSON")["seq"].as_u64().expect("seq"))
        .collect();
    assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>(), "numbered without a gap");
    let none = program::run(&[
        "export",
        "--data-dir",
        &directory,
        "--session",
        "none",
        "--format",
        "parquet",
        "--out",
        "/dev/null",
    ])
    .await;
    assert_eq!(none.status.code(), Some(66), "{}", String::from_utf8_lossy(&none.stderr));
}

#[tokio::test(flavor = "multi_thread")]
async fn tail_follows_a_running_server() {
    use tokio::io::{AsyncBufReadExt, BufReader};

    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let directory = server.data_dir().path().display().to_string();
    let line = ["tail", "--data-dir", &directory, "--session", &id, "--follow"].map(str::to_owned);
    let mut command = program::command(&program::path(), &line);
    let mut tail = command.stdout(std::process::Stdio::piped()).spawn().expect("the program starts");
    let mut lines = BufReader::new(tail.stdout.take().expect("stdout is piped")).lines();
    server.ok("evaluate", json!({"session_id": id, "expression": "console.log('heard by tail')"})).await;
    let heard = async {
        while let Some(line) = lines.next_line().await.expect("a line") {
            if line.contains("heard by tail") && line.contains("console.message") {
                return;
            }
        }
        panic!("tail ends before it hears");
    };
    tokio::time::timeout(crate::support::LIMIT, heard).await.expect("tail hears the page");
    tail.kill().await.expect("tail ends");
}

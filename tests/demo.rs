//! The main job, told in plain words: an MCP client drives real Chromium, everything that happens is in
//! the log, the evidence is paged, a Parquet file comes out, metrics move.
//!
//! What it says it has seen it has also checked: any step that does not hold ends it with a failure.
//! It reaches nothing but loopback, and ends by itself.

#![allow(clippy::print_stdout)]

#[path = "site/mod.rs"]
mod site;
#[path = "it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;
use std::fs::File;
use std::path::{Path, PathBuf};
use std::time::Instant;

use parquet::file::reader::{FileReader, SerializedFileReader};
use serde_json::{Value, json};

use site::Site;
use support::{DataDir, Options, Server, http, processes, program, walk};

/// How many rows a page of evidence has here: few, to show the paging.
const PAGE_ROWS: usize = 3;
/// What is shown of the metrics.
const SERIES: [&str; 5] = [
    "pageledger_sessions_opened_total",
    "pageledger_calls_total{tool=\"click\",outcome=\"completed\",code=\"none\"}",
    "pageledger_console_messages_total{level=\"info\"}",
    "pageledger_downloads_finished_total",
    "pageledger_log_last_seq",
];

#[tokio::main]
async fn main() {
    let began = Instant::now();
    let directory = directory();
    let site = Site::start().await;
    println!("A web site for this demonstration answers at {}", site.url("/"));
    let server = start(&directory).await;
    let before = http::get(server.address(), "/metrics").await.body;

    let session_id = launch(&server).await;
    drive(&server, &site, &session_id).await;
    page_through(&server, &session_id).await;
    download(&server, &site, &session_id, &directory).await;
    export(&server, &session_id, &directory).await;
    show_metrics(&server, &before).await;
    finish(server, &session_id, &directory).await;
    println!(
        "\nAll of it checked, in {:.1} s. The files stay in {}",
        began.elapsed().as_secs_f64(),
        directory.display()
    );
}

/// `target/demo`, emptied.
fn directory() -> PathBuf {
    let program = program::path();
    let target = program.parent().and_then(Path::parent).expect("the program lies in target/debug");
    let directory = target.join("demo");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).expect("what the last run left can be removed");
    }
    std::fs::create_dir_all(&directory).expect("a directory for the files");
    directory
}

async fn start(directory: &Path) -> Server {
    let mut options = Options::stdio().argument("--metrics", "127.0.0.1:0");
    options.data = DataDir::kept(directory.join("data"));
    options.sandbox_waived = processes::is_root();
    let server = Server::start(options).await;
    let tools = server.client().tools().await;
    println!("The gateway runs as process {}, speaks MCP over stdio and offers {} tools", server.pid(), tools.len());
    println!("Its metrics are at http://{}/metrics", server.address());
    if processes::is_root() {
        println!("We are root, so Chromium runs without its sandbox; every session has that on record as a warning");
    }
    server
}

async fn launch(server: &Server) -> String {
    println!("\n== Drive a browser");
    let launched = server.ok("launch_session", json!({"slug": "demo"})).await;
    let session_id = launched["session_id"].as_str().expect("a session id").to_owned();
    let count = processes::descendants(server.pid()).len();
    println!("launch_session     Chromium is up in {count} processes; the session is called {session_id}");
    session_id
}

async fn drive(server: &Server, site: &Site, session_id: &str) {
    let url = site.url("/form.html");
    let arrived = server.ok("navigate", json!({"session_id": session_id, "url": url})).await;
    println!("navigate           {} answered with status {}", arrived["url"], arrived["status"]);
    let snapshot = server.ok("snapshot", json!({"session_id": session_id})).await;
    let tree = snapshot["tree"].as_str().expect("a tree");
    let save = reference(tree, "button \"Save\"");
    println!("snapshot           {} elements have references; among them:", snapshot["references"]);
    for line in tree.lines().filter(|line| line.contains("textbox") || line.contains("\"Save\"")).take(4) {
        println!("                   {}", line.trim());
    }
    let name = reference(tree, "textbox \"Name\"");
    server.ok("fill", json!({"session_id": session_id, "selector": name, "value": "Ada"})).await;
    println!("fill               Ada into {name}");
    let clicked = server.ok_reply("click", json!({"session_id": session_id, "selector": save})).await;
    println!("click              {save}, as operation {}", clicked.operation_id());
    let heard = walk::console_with(server, session_id, "saved Ada").await;
    println!("                   the page said: {}", heard.last().expect("a message")["text"]);

    server.ok("navigate", json!({"session_id": session_id, "url": site.url("/popup.html")})).await;
    server.ok("click", json!({"session_id": session_id, "selector": "#open"})).await;
    walk::console_with(server, session_id, "popup first line").await;
    let tabs = server.ok("list_tabs", json!({"session_id": session_id})).await;
    println!("click              opened a popup; there are {} tabs now", tabs.as_array().map_or(0, Vec::len));

    for page in ["/errors.html", "/network.html"] {
        server.ok("navigate", json!({"session_id": session_id, "url": site.url(page)})).await;
    }
    walk::console_with(server, session_id, "network done").await;
    println!("navigate           to a page that breaks, and to one that fetches a dozen things");
}

/// The reference of the line that begins with `what`.
fn reference(tree: &str, what: &str) -> String {
    let line = tree.lines().find(|line| line.contains(what)).expect("the element is in the tree");
    let (_, rest) = line.split_once("[ref=").expect("it has a reference");
    rest.split(']').next().unwrap_or_default().to_owned()
}

async fn page_through(server: &Server, session_id: &str) {
    println!("\n== Read the evidence, {PAGE_ROWS} rows a page");
    let errors = json!({"session_id": session_id, "level": "error"});
    let messages = walk::all(server, "list_console_messages", "messages", errors, PAGE_ROWS).await;
    println!(
        "list_console_messages at level error: {} in {} pages",
        messages.len(),
        messages.len().div_ceil(PAGE_ROWS)
    );
    for message in &messages {
        println!("                   {:<9} {}", text(message, "type"), text(message, "text"));
    }
    assert!(walk::texts(&messages).iter().any(|text| text.contains("page broke")), "the page's error is there");

    let everything = json!({"session_id": session_id});
    let requests = walk::all(server, "list_network_requests", "requests", everything, PAGE_ROWS).await;
    let failed = requests.iter().filter(|request| request["state"] == "failed").count();
    println!(
        "list_network_requests: {} in {} pages, {failed} of them failed",
        requests.len(),
        requests.len().div_ceil(PAGE_ROWS)
    );
    let posted = requests.iter().find(|request| request["method"] == "POST").expect("the page posted something");
    let asked = json!({"session_id": session_id, "request_id": posted["request_id"], "part": "request_body"});
    let body = server.ok("get_network_request", asked).await;
    println!("get_network_request: the page posted {}", body["content"]);
    assert_eq!(body["content"], r#"{"posted":"body text"}"#);

    let secret =
        requests.iter().find(|request| text(request, "url").contains("token=")).expect("a request with a token");
    println!("                   a token in a URL is on record as {}", text(secret, "url"));
    assert!(!text(secret, "url").contains("canary"), "secrets are out");
}

fn text<'a>(row: &'a Value, key: &str) -> &'a str {
    row[key].as_str().unwrap_or_default()
}

async fn download(server: &Server, site: &Site, session_id: &str, directory: &Path) {
    println!("\n== Take a download");
    server.ok("navigate", json!({"session_id": session_id, "url": site.url("/downloads.html")})).await;
    server.ok("click", json!({"session_id": session_id, "selector": "#header"})).await;
    let download = support::wait_for("the download ends", || async {
        let listed = server.ok("list_downloads", json!({"session_id": session_id})).await;
        let found = listed["downloads"].as_array()?.first()?.clone();
        (found["state"] == "finished").then_some(found)
    })
    .await;
    println!(
        "list_downloads     {} of {} bytes, SHA-256 {}",
        download["suggested_name"],
        download["total_bytes"],
        text(&download, "sha256")
    );
    let bytes = walk::artifact(server, text(&download, "artifact"), 65_536).await;
    assert_eq!(bytes, site::pattern(300_000), "every byte is what the site sent");
    let path = directory.join("header.bin");
    std::fs::write(&path, &bytes).expect("the file is written");
    println!("read_artifact      all {} bytes, equal to what the site sent, now in {}", bytes.len(), path.display());
}

async fn export(server: &Server, session_id: &str, directory: &Path) {
    println!("\n== Export the session");
    let events = walk::events(server, session_id).await;
    let mut kinds: BTreeMap<&str, usize> = BTreeMap::new();
    for event in &events {
        *kinds.entry(text(event, "kind")).or_default() += 1;
    }
    println!("list_events        {} events of {} kinds", events.len(), kinds.len());
    let parquet = server.ok("export_events", json!({"session_id": session_id, "path": "demo.parquet"})).await;
    println!(
        "export_events      {} events, {} bytes of Parquet: {}",
        parquet["events"],
        parquet["bytes"],
        text(&parquet, "path")
    );
    let reader = SerializedFileReader::new(File::open(text(&parquet, "path")).expect("the file is there"));
    let metadata = reader.expect("it is Parquet").metadata().clone();
    let (rows, columns) = (metadata.file_metadata().num_rows(), metadata.file_metadata().schema_descr().num_columns());
    println!("                   read back: {rows} rows, {columns} columns");
    assert_eq!(Some(rows), parquet["events"].as_i64());
    assert!(rows >= i64::try_from(events.len()).unwrap_or(i64::MAX), "nothing that was listed is missing");

    let out = directory.join("demo.ndjson");
    let (data, out_text) = (server.data_dir().path().display().to_string(), out.display().to_string());
    let line = ["export", "--data-dir", &data, "--session", session_id, "--format", "ndjson", "--out", &out_text];
    let exported = program::run(&line).await;
    assert!(exported.status.success(), "{}", String::from_utf8_lossy(&exported.stderr));
    let lines = std::fs::read_to_string(&out).expect("the file is there").lines().count();
    println!("pageledger export  from a second process, beside the running server: {lines} lines in {out_text}");
    assert!(lines >= events.len());
}

async fn show_metrics(server: &Server, before: &str) {
    println!("\n== Watch the metrics move");
    let opened = |body: &str| http::series(body, SERIES[0]).unwrap_or(0.0);
    // Metrics follow the log within moments.
    let after = support::wait_for("the metrics follow", || async {
        let body = http::get(server.address(), "/metrics").await.body;
        (http::series(&body, SERIES[1]).unwrap_or(0.0) >= 3.0).then_some(body)
    })
    .await;
    for name in SERIES {
        let value = |body: &str| http::series(body, name).unwrap_or(0.0);
        println!("{name:<82} {:>4} -> {:>4}", value(before), value(&after));
        assert!(value(&after) > value(before), "{name} moves");
    }
    assert_eq!((opened(before), opened(&after)), (0.0, 1.0));
}

async fn finish(server: Server, session_id: &str, directory: &Path) {
    println!("\n== Close, and look again");
    let family = processes::descendants(server.pid());
    server.ok("close_session", json!({"session_id": session_id})).await;
    let left = processes::alive(&family).len();
    println!("close_session      {} processes ended, {left} are left", family.len());
    assert_eq!(left, 0);
    let messages = walk::console(&server, session_id).await;
    println!("list_console_messages of the closed session: still {} messages", messages.len());
    assert!(!messages.is_empty());
    let secrets = ["canary-query-1182", "canary-bearer-5520", "canary-cookie-7431"];
    let found: Vec<PathBuf> = secrets.iter().flat_map(|secret| server.data_dir().files_with(secret)).collect();
    println!("Files that hold the token, the bearer or the cookie that the page used: {}", found.len());
    assert_eq!(found, Vec::<PathBuf>::new(), "secrets never reach the disk");
    let data = server.data_dir().path().display().to_string();
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    println!("The client is gone and the gateway has ended: {}", ended.status);
    let tail = program::run(&["tail", "--data-dir", &data, "--session", session_id]).await;
    let tail = String::from_utf8_lossy(&tail.stdout).into_owned();
    let path = directory.join("timeline.txt");
    std::fs::write(&path, &tail).expect("the file is written");
    println!("pageledger tail    {} lines of history, now in {}; the end of it:", tail.lines().count(), path.display());
    for line in tail.lines().rev().take(3).collect::<Vec<_>>().into_iter().rev() {
        println!("                   {:.110}", line);
    }
}

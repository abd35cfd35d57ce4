//! The figures that the README quotes, each beside its floor, in one run and taking turns.
//!
//! `make bench` builds for release and runs this. Medians and ratios are what counts; absolute times
//! are the machine's. The floor for browser work is a bare CDP client on the same Chromium. The log has
//! its own figures in `storage/benches`, and beside other engines in `benches/engines`.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod bare;
mod mcp;
mod site;
mod stores;
#[path = "../storage/benches/workload/mod.rs"]
mod workload;

use std::path::{Path, PathBuf};
use std::time::Instant;

use serde_json::{Value, json};

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let wants = |name: &str| wanted.is_empty() || wanted.iter().any(|part| name.contains(part.as_str()));
    let scratch = tempfile::tempdir().unwrap();
    println!("| figure | ours, median | floor, median | ratio | n |\n|---|---|---|---|---|");
    if wants("start") {
        start(scratch.path());
    }
    if wants("browser") {
        browser(scratch.path());
    }
    if wants("burst") {
        burst(scratch.path());
    }
    if wants("parquet") {
        stores::parquet(scratch.path());
    }
}

pub fn milliseconds(work: impl FnOnce()) -> f64 {
    let started = Instant::now();
    work();
    started.elapsed().as_secs_f64() * 1000.0
}

pub fn median(samples: &mut [f64]) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[samples.len() / 2]
}

/// One row: ours and its floor, both in `unit`.
pub fn row(name: &str, unit: &str, ours: &mut [f64], floor: &mut [f64]) {
    let n = ours.len();
    let ours = median(ours);
    if floor.is_empty() {
        println!("| {name} | {ours:.2} {unit} | | | {n} |");
        return;
    }
    let floor = median(floor);
    println!("| {name} | {ours:.2} {unit} | {floor:.2} {unit} | {:.2} | {n} |", ours / floor);
}

fn start(scratch: &Path) {
    let mut list = Vec::new();
    let mut resident = Vec::new();
    for round in 0..15 {
        let directory = scratch.join(format!("start-{round}"));
        list.push(milliseconds(|| {
            let mut client = mcp::Client::start(&directory);
            client.request("tools/list", json!({}));
            resident.push(client.resident_mebibytes());
        }));
    }
    // The time to end the process again is in it too; it is the smaller part.
    row("start to tools/list, and end", "ms", &mut list, &mut []);
    row("resident memory, idle", "MiB", &mut resident, &mut []);
}

fn browser(scratch: &Path) {
    let site = site::serve();
    let mut launches = (Vec::new(), Vec::new());
    for round in 0..5 {
        let mut client = mcp::Client::start(&scratch.join(format!("launch-{round}")));
        launches.0.push(milliseconds(|| {
            client.call("launch_session", json!({"slug": "bench"}));
        }));
        launches.1.push(milliseconds(|| drop(bare::Chromium::start(&scratch.join(format!("bare-{round}"))))));
    }
    row("session launch", "ms", &mut launches.0, &mut launches.1);

    let mut floor = bare::Chromium::start(&scratch.join("floor"));
    let mut disk = Session::open(&scratch.join("disk"));
    let memory_directory = memory_directory();
    let mut memory = Session::open(memory_directory.path());
    let url = format!("http://{site}/static");
    let mut navigate = (Vec::new(), Vec::new());
    for _ in 0..40 {
        navigate.0.push(milliseconds(|| disk.call("navigate", json!({"url": url}))));
        navigate.1.push(milliseconds(|| floor.navigate(&url)));
    }
    row("navigate, static page", "ms", &mut navigate.0, &mut navigate.1);
    let mut evaluate = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..200 {
        evaluate.0.push(milliseconds(|| disk.call("evaluate", json!({"expression": "1"}))));
        evaluate.1.push(milliseconds(|| memory.call("evaluate", json!({"expression": "1"}))));
        evaluate.2.push(milliseconds(|| floor.evaluate("1")));
    }
    row("evaluate 1", "ms", &mut evaluate.0, &mut evaluate.2.clone());
    row("evaluate 1, log in memory", "ms", &mut evaluate.1, &mut evaluate.2);
    let form = format!("http://{site}/form");
    disk.call("navigate", json!({"url": form}));
    let mut click = Vec::new();
    let mut fill = Vec::new();
    let mut snapshot = Vec::new();
    let mut screenshot = Vec::new();
    for _ in 0..40 {
        click.push(milliseconds(|| disk.call("click", json!({"selector": "#button"}))));
        fill.push(milliseconds(|| disk.call("fill", json!({"selector": "#input", "value": "hello"}))));
        screenshot.push(milliseconds(|| disk.call("screenshot", json!({}))));
    }
    disk.call("navigate", json!({"url": format!("http://{site}/thousand")}));
    let mut bytes = Vec::new();
    for _ in 0..20 {
        let mut reply = Value::Null;
        snapshot.push(milliseconds(|| reply = disk.call_for("snapshot", json!({}))));
        bytes.push(reply["data"]["tree"].as_str().map_or(0, str::len) as f64);
    }
    row("click", "ms", &mut click, &mut []);
    row("fill", "ms", &mut fill, &mut []);
    row("screenshot", "ms", &mut screenshot, &mut []);
    row("snapshot of 1,000 elements", "ms", &mut snapshot, &mut []);
    row("snapshot of 1,000 elements", "bytes", &mut bytes, &mut []);
}

/// The console burst: from the call that starts it until the last message can be read back.
fn burst(scratch: &Path) {
    const MESSAGES: u64 = 20_000;
    let script = format!("for (let i = 0; i < {MESSAGES}; i++) console.log('message ' + i + ' ' + 'x'.repeat(180))");
    let mut sent = Vec::new();
    let mut recorded = Vec::new();
    let mut processor = Vec::new();
    let mut resident = Vec::new();
    let mut page = Vec::new();
    for round in 0..3 {
        let mut floor = bare::Chromium::start(&scratch.join(format!("burst-bare-{round}")));
        sent.push(milliseconds(|| floor.burst(&script, MESSAGES)));
        drop(floor);
        let mut session = Session::open(&scratch.join(format!("burst-{round}")));
        let before = session.client.processor_milliseconds();
        recorded.push(milliseconds(|| {
            session.call("evaluate", json!({"expression": script}));
            let reply = session.call_for("list_console_messages", json!({"order": "desc", "limit": 1}));
            let text = reply["data"]["messages"][0]["text"].as_str().unwrap_or_default().to_owned();
            assert!(text.starts_with(&format!("message {} ", MESSAGES - 1)), "the burst is not whole: {text}");
            assert_eq!(reply["data"]["retained_count"], MESSAGES);
        }));
        processor.push(session.client.processor_milliseconds() - before);
        resident.push(session.client.resident_mebibytes());
        for _ in 0..20 {
            page.push(milliseconds(|| session.call("list_console_messages", json!({"limit": 50}))));
        }
    }
    row("20,000 console messages, until all can be read", "ms", &mut recorded, &mut sent);
    row("20,000 console messages, processor time of the gateway", "ms", &mut processor, &mut []);
    row("resident memory after them", "MiB", &mut resident, &mut []);
    row("a page of 50 of 20,000 messages", "ms", &mut page, &mut []);
}

/// A directory in memory where there is one: syncs cost nothing there.
fn memory_directory() -> tempfile::TempDir {
    let root = PathBuf::from("/dev/shm");
    if root.is_dir() { tempfile::tempdir_in(root).unwrap() } else { tempfile::tempdir().unwrap() }
}

struct Session {
    client: mcp::Client,
    session_id: String,
}

impl Session {
    fn open(directory: &Path) -> Self {
        let mut client = mcp::Client::start(directory);
        let reply = client.call("launch_session", json!({"slug": "bench"}));
        let session_id = reply["data"]["session_id"].as_str().unwrap().to_owned();
        Self { client, session_id }
    }

    fn call(&mut self, tool: &str, arguments: Value) {
        self.call_for(tool, arguments);
    }

    fn call_for(&mut self, tool: &str, mut arguments: Value) -> Value {
        arguments["session_id"] = self.session_id.as_str().into();
        let reply = self.client.call(tool, arguments);
        assert_eq!(reply["status"], "success", "{tool}: {reply}");
        reply
    }
}

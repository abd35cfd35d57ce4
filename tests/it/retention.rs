//! What has had its time goes, what went wrong and who did what stays, and what must be forgotten is
//! nowhere any more.

use std::collections::HashSet;
use std::io::Write;
use std::path::Path;
use std::time::{Duration, SystemTime};

use serde_json::{Value, json};
use storage::artifact::ArtifactStore;
use storage::event::catalog::ConsoleMessage;
use storage::event::{Class, Clean, Context, Draft, Kind, Level};
use storage::log::{Log, LogOptions};
use storage::time::SystemClock;
use storage::upkeep::{Keeper, Parts, Policy};

use crate::site::Site;
use crate::support::data::files_below;
use crate::support::loop_disk::LoopDisk;
use crate::support::{DataDir, Options, Server, http, program, wait_for, walk};

/// As good as no time at all: by the next start it is over.
const MOMENT_DAYS: &str = "0.000001";

/// What one session left, and ways back to it.
struct Story {
    id: String,
    events: Vec<Value>,
    /// Behind the seventh event.
    cursor: Value,
    screenshot: String,
    export: Value,
    exported: Vec<u8>,
}

/// A session of noise, errors, failed requests and a screenshot, exported when it is over.
async fn story(server: &Server, site: &Site) -> Story {
    let id = server.launch_at(&site.url("/network.html")).await;
    walk::console_with(server, &id, "network done").await;
    wait_for("every request ends", || async {
        let requests = walk::requests(server, &id).await;
        requests.iter().all(|request| request["state"] != "pending").then_some(())
    })
    .await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/console.html")})).await;
    walk::console_with(server, &id, "thrown later").await;
    server.ok("screenshot", json!({"session_id": id})).await;
    server.ok("close_session", json!({"session_id": id})).await;
    let events = walk::events(server, &id).await;
    let taken = events.iter().find(|event| event["kind"] == "screenshot.taken").expect("a screenshot");
    let screenshot = taken["data"]["artifact"].as_str().expect("a handle").to_owned();
    let cursor = server.ok("list_events", json!({"session_id": id, "limit": 7})).await["next_cursor"].take();
    let asked = json!({"session_id": id, "format": "ndjson", "path": "before.ndjson"});
    let export = server.ok("export_events", asked).await;
    let exported = std::fs::read(export["path"].as_str().expect("a path")).expect("the export");
    Story { id, events, cursor, screenshot, export, exported }
}

/// Waits until a pass of upkeep has removed something by age.
async fn removed_by_age(server: &Server, class: &str) -> Value {
    wait_for("a removal", || async {
        let mut status = server.ok("server_status", json!({})).await;
        let upkeep = status["upkeep"].take();
        assert_eq!((&upkeep["running"], &upkeep["reason"]), (&json!(true), &Value::Null), "{upkeep}");
        upkeep["removed_by_age"][class].as_u64().filter(|count| *count > 0).map(|_| upkeep)
    })
    .await
}

/// Whether retention keeps it as evidence or audit, told from what the lists show.
fn stays(event: &Value, troubled: &HashSet<String>) -> bool {
    let kind = Kind::from_name(event["kind"].as_str().expect("a kind")).expect("a known kind");
    let error = matches!(kind, Kind::ConsoleMessage | Kind::LogEntry) && event["data"]["level"] == "error";
    let of_trouble = event["request_id"].as_str().is_some_and(|request| troubled.contains(request));
    kind.facts().class != Class::Telemetry || error || of_trouble
}

fn troubled(events: &[Value]) -> HashSet<String> {
    let wrong = |event: &&Value| {
        event["kind"] == "network.failed"
            || event["kind"] == "network.response" && event["data"]["status"].as_u64() >= Some(400)
            || event["kind"] == "websocket.closed" && event["data"]["error"].is_string()
    };
    events.iter().filter(wrong).filter_map(|event| event["request_id"].as_str().map(str::to_owned)).collect()
}

async fn lost(server: &Server, tool: &str, mut filter: Value, story: &Story) -> bool {
    filter["session_id"] = json!(story.id);
    filter["limit"] = json!(1);
    server.ok(tool, filter).await["retention_lost"].as_bool().expect("a flag")
}

#[tokio::test(flavor = "multi_thread")]
async fn noise_goes_and_what_went_wrong_stays() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let story = story(&server, &site).await;
    let data = server.stop().await.data;

    let options = Options::http().on(&data).argument("--retention-telemetry-days", MOMENT_DAYS);
    let server = Server::start(options).await;
    let upkeep = removed_by_age(&server, "telemetry").await;
    assert_eq!(upkeep["removed_by_age"]["evidence"], 0);
    let wrong = troubled(&story.events);
    let (kept, gone): (Vec<Value>, Vec<Value>) = story.events.iter().cloned().partition(|event| stays(event, &wrong));
    assert!(kept.len() > 20 && gone.len() > 50, "{} {}", kept.len(), gone.len());
    let mut after = walk::events(&server, &story.id).await;
    let removals: Vec<Value> = after.extract_if(.., |event| event["kind"] == "log.removed").collect();
    // The export that came behind the story belongs to it as well.
    assert_eq!(after[..kept.len()], kept, "what stays is as it was");
    assert!(after[kept.len()..].iter().all(|event| stays(event, &wrong)));
    let counted: u64 = removals.iter().filter_map(|event| event["data"]["count"].as_u64()).sum();
    assert_eq!(counted, gone.len() as u64, "{removals:?}");
    for removal in &removals {
        let kinds = removal["data"]["kinds"].as_array().expect("kinds");
        let sum: u64 = kinds.iter().filter_map(|kind| kind["count"].as_u64()).sum();
        assert_eq!(Some(sum), removal["data"]["count"].as_u64());
    }

    let console = walk::console(&server, &story.id).await;
    assert!(!console.is_empty() && console.iter().all(|message| message["level"] == "error"), "{console:?}");
    let requests = walk::requests(&server, &story.id).await;
    assert_eq!(requests.len(), wrong.len(), "{requests:?}");
    assert!(requests.iter().all(|request| request["state"] == "failed" || request["status"].as_u64() >= Some(400)));
    let rest = json!({"session_id": story.id, "after": story.cursor, "limit": 500});
    let rest = server.ok("list_events", rest).await;
    let behind = |event: &&Value| event["seq"].as_u64() > story.events[6]["seq"].as_u64();
    let expected: Vec<&Value> = kept.iter().filter(behind).collect();
    let found: Vec<&Value> = rest["events"].as_array().expect("events").iter().take(expected.len()).collect();
    assert_eq!(found, expected, "a cursor into what is gone goes on behind it");

    for (tool, filter, expected) in [
        ("list_events", json!({}), true),
        ("list_events", json!({"after": story.cursor}), true),
        ("list_console_messages", json!({}), true),
        ("list_console_messages", json!({"level": "error"}), false),
        ("list_events", json!({"kinds": ["call.settled", "console.exception"]}), false),
        ("list_network_requests", json!({}), true),
    ] {
        assert_eq!(lost(&server, tool, filter.clone(), &story).await, expected, "{tool} {filter}");
    }
    let path = story.export["path"].as_str().expect("a path");
    assert_eq!(std::fs::read(path).expect("it is there"), story.exported, "exports made before are as they were");
    assert!(!walk::artifact(&server, &story.screenshot, 100_000).await.is_empty());
    let metrics = http::get(server.address(), "/metrics").await.body;
    let removed = http::series(&metrics, "pageledger_upkeep_removed_telemetry_total");
    assert!(removed >= Some(gone.len() as f64), "{removed:?}");
    assert_eq!(http::series(&metrics, "pageledger_upkeep_failing"), Some(0.0));
    verifies(&server.stop().await.data).await;
}

/// The chain, the signatures and the records of removals agree with what is left.
async fn verifies(data: &DataDir) {
    let output = program::run(&["verify", &data.path().display().to_string()]).await;
    assert!(output.status.success(), "{output:?}");
}

/// As if everything in the store had been put a day ago.
fn age_artifacts(data: &DataDir) {
    for path in files_below(&data.path().join("artifacts")) {
        let file = std::fs::File::open(path).expect("it opens");
        file.set_modified(SystemTime::now() - Duration::from_secs(86_400)).expect("its time is set");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn artifacts_go_with_the_last_event_that_names_them() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let story = story(&server, &site).await;
    let export = server.ok("export_events", json!({"session_id": story.id, "format": "ndjson"})).await;
    let export = export["artifact"].as_str().expect("a handle").to_owned();
    let data = server.stop().await.data;
    age_artifacts(&data);

    let short = |options: Options| options.argument("--retention-telemetry-days", MOMENT_DAYS);
    let server = Server::start(short(Options::stdio().on(&data))).await;
    removed_by_age(&server, "telemetry").await;
    for handle in [&story.screenshot, &export] {
        assert!(!walk::artifact(&server, handle, 1_000_000).await.is_empty(), "evidence names it");
    }
    let data = server.stop().await.data;

    let options = short(Options::stdio().on(&data)).argument("--retention-evidence-days", MOMENT_DAYS);
    let server = Server::start(options).await;
    removed_by_age(&server, "evidence").await;
    for handle in [&story.screenshot, &export] {
        server.fault("read_artifact", json!({"handle": handle}), "UNKNOWN_HANDLE").await;
    }
    wait_for("the files are gone", || async { files_below(&data.path().join("artifacts")).is_empty().then_some(()) })
        .await;
    let left = walk::events(&server, &story.id).await;
    let audit = |event: &Value| {
        let kind = Kind::from_name(event["kind"].as_str().expect("a kind")).expect("a known kind");
        kind.facts().class == Class::Audit
    };
    assert!(left.len() > 10 && left.iter().all(audit), "who did what is still known");
    verifies(&server.stop().await.data).await;
}

async fn erase(data: &Path, words: &[&str]) -> std::process::Output {
    let directory = data.display().to_string();
    let words = [&["erase", &directory, "--reason", "asked for by letter"], words].concat();
    program::run(&words).await
}

/// A session that leaves `marker` wherever a session can, and is closed.
async fn marked(server: &Server, site: &Site, marker: &str) -> String {
    let id = server.launch_at(&site.url(&format!("/plain.html?q={marker}"))).await;
    let say = format!("console.log('{marker}'); fetch('/text?bytes=40000&m={marker}'); document.title = '{marker}'; 1");
    server.ok("evaluate", json!({"session_id": id, "expression": say})).await;
    walk::console_with(server, &id, marker).await;
    let large = format!("'{marker} '.repeat(200_000)");
    server.ok("evaluate", json!({"session_id": id, "expression": large})).await;
    let echo = format!("fetch('/echo', {{method: 'POST', body: '{marker} '.repeat(5_000)}}).then(a => a.text())");
    server.ok("evaluate", json!({"session_id": id, "expression": echo})).await;
    server.ok("screenshot", json!({"session_id": id})).await;
    server.ok("close_session", json!({"session_id": id})).await;
    // Calls about a session that is over belong to no session.
    let asked = json!({"session_id": id, "text_filter": marker});
    server.ok("list_console_messages", asked).await;
    server.ok("export_events", json!({"session_id": id, "format": "ndjson"})).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn an_erased_session_is_nowhere_and_unknown() {
    const MARKER: &str = "marker-of-the-erased-5582";
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let other = story(&server, &site).await;
    let id = marked(&server, &site, MARKER).await;
    let other_events = walk::events(&server, &other.id).await;
    let data = server.data_dir().clone();
    let refused = erase(data.path(), &["--session", &id]).await;
    assert_eq!(refused.status.code(), Some(75), "a server uses it: {refused:?}");
    let data = server.stop().await.data;
    assert!(data.files_with(MARKER).len() > 2, "{:?}", data.files_with(MARKER));

    let erased = erase(data.path(), &["--session", &id, "--json"]).await;
    assert!(erased.status.success(), "{erased:?}");
    let told: Value = serde_json::from_slice(&erased.stdout).expect("JSON");
    assert!(told["events"].as_u64() > Some(30) && told["artifacts"].as_u64() > Some(2), "{told}");
    for text in [MARKER, &id] {
        assert_eq!(data.files_with(text), Vec::<std::path::PathBuf>::new(), "{text}");
        let all = program::run(&["tail", "--json", "--data-dir", &data.path().display().to_string()]).await;
        assert!(all.status.success() && !String::from_utf8_lossy(&all.stdout).contains(text), "{text}");
    }

    verifies(&data).await;
    let server = Server::start(Options::stdio().on(&data)).await;
    assert_eq!(walk::events(&server, &other.id).await, other_events, "nobody else is touched");
    assert!(!walk::artifact(&server, &other.screenshot, 100_000).await.is_empty());
    for tool in ["list_events", "list_console_messages", "list_network_requests", "list_downloads"] {
        let mut answers = Vec::new();
        for session_id in [id.as_str(), "test-00000000"] {
            let mut fault = server.fault(tool, json!({"session_id": session_id}), "SESSION_NOT_FOUND").await;
            fault["details"]["session_id"].take();
            answers.push((fault["message"].take(), fault["next_step"].take(), fault["details"].take()));
        }
        assert_eq!(answers[0], answers[1], "{tool}: as if it had never been");
    }
}

/// A console line of an owner's session that says `text`.
fn line(owner: &str, text: &str) -> Draft {
    let context = Context { owner: Some(owner.into()), session_id: Some("s-1".into()), ..Context::default() };
    let payload = ConsoleMessage {
        level: Level::Info,
        r#type: "log".into(),
        text: Clean::redacted(text),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context, &payload)
}

/// A log and artifacts of an owner who said `marker`, some of it compressed since, some dropped as a
/// duplicate, some left over by a crash.
fn fill(data: &Path, marker: &str) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
    let log = Log::open(LogOptions::new(data.join("log"))).expect("the log opens");
    let artifacts = ArtifactStore::open(&data.join("artifacts"), 1 << 30).expect("it opens");
    let (policy, clock) = (Policy::KEEP_ALL, std::sync::Arc::new(SystemClock));
    let parts = Parts { log: log.clone(), index: None, artifacts: artifacts.clone(), policy, clock };
    let mut keeper = Keeper::open(&data.join("upkeep"), parts).expect("it opens");
    for round in 0..3 {
        let said = vec![line("ann", &format!("{marker} {round}")), line("bob", "another")];
        runtime.block_on(log.commit(said)).expect("it is recorded");
        if round < 2 {
            runtime.block_on(log.roll()).expect("a segment is sealed");
            keeper.pass(&|| false).expect("it is compressed");
        }
    }
    artifacts.put(marker.repeat(10_000).as_bytes()).expect("it is kept");
    let mut download = std::fs::File::create(data.join("download")).expect("it is made");
    // On the disk, not only on its way there.
    download.write_all(marker.repeat(10_000).as_bytes()).and_then(|()| download.sync_all()).expect("it is written");
    artifacts.put_file(&data.join("download")).expect("it is there already");
    std::fs::write(data.join("artifacts/tmp/1-a"), marker).expect("it is written");
    std::fs::write(data.join("log/torn-2-4096.bin"), marker).expect("it is written");
    runtime.block_on(log.close()).expect("the log closes");
}

/// Needs a loop device; where there is none the files alone are looked through, by the test before.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_an_erased_owner_is_on_the_disk_itself() {
    const MARKER: &str = "marker-on-the-disk-9137";
    let disk = match LoopDisk::fresh(256) {
        Ok(disk) => disk,
        Err(reason) => return eprintln!("not tested here: {reason}"),
    };
    let data = disk.path().join("data");
    let filled = data.clone();
    tokio::task::spawn_blocking(move || fill(&filled, MARKER)).await.expect("it is filled");
    assert!(disk.image_holds(MARKER), "it can be found");
    let erased = erase(&data, &["--owner", "ann"]).await;
    assert!(erased.status.success(), "{erased:?}");
    assert!(!disk.image_holds(MARKER));
}

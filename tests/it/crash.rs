//! A server that was killed leaves nothing behind, and says after the next start what was in progress.
//! That it has lost nothing it told is for `torture::gateway` to prove.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::{Value, json};
use storage::log::{Log, LogOptions};

use crate::damage::launching;
use crate::site::Site;
use crate::support::data::files_below;
use crate::support::{DataDir, Options, Server, processes, program, wait_for, wait_within, walk};

/// How long a browser may outlive its killed server.
pub const GONE_LIMIT: Duration = Duration::from_secs(5);

/// All events on record, oldest first, as `pageledger tail --json` prints them.
pub async fn tail(data: &DataDir) -> Vec<Value> {
    let directory = data.path().display().to_string();
    let output = program::run(&["tail", "--json", "--data-dir", &directory]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

pub fn check_numbers(events: &[Value]) {
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["seq"], number, "numbers have no holes: {event}");
    }
}

/// What the killed server's browsers kept on disk is gone.
pub fn nothing_runs_there(data: &DataDir) {
    let run = data.path().join("run");
    let left = std::fs::read_dir(&run).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the run directory is cleared: {:?}", files_below(&run));
}

/// The end of each call that was accepted, of which there is exactly one.
pub fn ends_of_calls(events: &[Value]) -> BTreeMap<&str, &Value> {
    let of_kind = |kind: &str| {
        let found = events.iter().filter(|event| event["kind"] == kind);
        found.map(|event| (event["operation_id"].as_str().expect("a call has an id"), event)).collect::<Vec<_>>()
    };
    let (accepted, settled) = (of_kind("call.accepted"), of_kind("call.settled"));
    let ends: BTreeMap<&str, &Value> = settled.iter().copied().collect();
    assert_eq!(ends.len(), settled.len(), "no call has two ends");
    for (id, event) in accepted {
        assert!(ends.contains_key(id), "{event}");
    }
    ends
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_that_was_waiting_did_nothing_and_one_that_was_running_is_unknown() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch_at(&site.url("/plain.html")).await;
    let never = json!({"session_id": session_id, "expression": "fetch('/hold').then(r => r.text())"});
    let running = server.begin("evaluate", never).await;
    site.arrived("/hold").await;
    let waiting = server.begin("evaluate", json!({"session_id": session_id, "expression": "'waits'"})).await;
    wait_for("the second call waits in the lane", || async {
        let info = server.ok("session_info", json!({"session_id": session_id})).await;
        (info["queue_depth"] == 1).then_some(())
    })
    .await;
    let data = server.data_dir().clone();
    server.signal("KILL").await;
    drop((running, waiting));
    let server = Server::start(Options::stdio().on(&data)).await;
    server.stop().await;
    let events = tail(&data).await;
    let ends = ends_of_calls(&events);
    let outcomes = |tool: &str| {
        let of_tool = ends.values().filter(|end| end["data"]["tool"] == tool);
        let mut outcomes: Vec<_> = of_tool.map(|end| end["data"]["outcome"].as_str().expect("a word")).collect();
        outcomes.sort_unstable();
        outcomes.join(" ")
    };
    assert_eq!(outcomes("evaluate"), "not_started unknown");
    assert_eq!(outcomes("navigate"), "completed");
    let closed: Vec<_> = events.iter().filter(|event| event["kind"] == "session.closed").collect();
    assert_eq!(closed.len(), 1);
    assert_eq!(closed[0]["data"]["reason"], "interrupted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_while_it_launches_or_closes_leaves_no_browser() {
    let data = DataDir::fresh();
    for closing in [false, true] {
        let server = Server::start(Options::stdio().on(&data)).await;
        let pending = if closing {
            let session_id = server.launch().await;
            server.begin("close_session", json!({"session_id": session_id})).await
        } else {
            server.begin("launch_session", json!({"slug": "half"})).await
        };
        let family = wait_for("a browser process", || async {
            let family = processes::descendants(server.pid());
            (!family.is_empty()).then_some(family)
        })
        .await;
        server.signal("KILL").await;
        drop(pending);
        wait_within(GONE_LIMIT, "no process is left", || async { processes::alive(&family).is_empty().then_some(()) })
            .await;
    }
    let server = Server::start(Options::stdio().on(&data)).await;
    assert_eq!(server.ok("list_sessions", json!({})).await, json!([]));
    nothing_runs_there(&data);
    server.stop().await;
    let events = tail(&data).await;
    check_numbers(&events);
    let count = |kind: &str| events.iter().filter(|event| event["kind"] == kind).count();
    assert_eq!(count("session.launching"), count("session.closed"), "every session has its end on record");
    assert_eq!(count("call.accepted"), count("call.settled"), "every call has its end on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn ends_that_a_start_did_not_come_to_record_are_recorded_by_the_next() {
    let data = DataDir::fresh();
    let options = || LogOptions::new(data.path().join("log"));
    let log = Log::open(options()).expect("a log opens");
    log.commit(vec![launching("s-1", 1)]).await.expect("it records");
    drop(log);
    drop(Log::open(options()).expect("a start that is cut short"));
    let server = Server::start(Options::stdio().on(&data)).await;
    let events = wait_for("the session's end", || async {
        let events = walk::events(&server, "s-1").await;
        (events.len() > 1).then_some(events)
    })
    .await;
    assert_eq!((&events[1]["kind"], &events[1]["data"]["reason"]), (&json!("session.closed"), &json!("interrupted")));
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn files_that_a_killed_server_did_not_finish_go_at_the_next_start_and_no_others() {
    let data = DataDir::fresh();
    let put = |name: &str| {
        let path = data.path().join(name);
        std::fs::create_dir_all(path.parent().expect("it lies in a directory")).expect("a directory");
        std::fs::write(&path, "half a login").expect("a file");
        path
    };
    let unfinished = [
        "auth-states/0123/.unfinished.aZ09bcdefghi.part",
        "files/i-1/deep/.unfinished.0123456789ab.part",
        "exports/sub/.history.parquet.0123456789ab.part",
    ]
    .map(put);
    let others = ["exports/.hidden", "exports/a.0123456789ab.part", "files/i-1/whole.png"].map(put);
    let server = Server::start(Options::stdio().on(&data)).await;
    server.stop().await;
    let left: Vec<_> = unfinished.iter().filter(|path| path.exists()).collect();
    assert!(left.is_empty(), "{left:?}");
    assert!(others.iter().all(|path| path.exists()), "what is whole stays");
}

//! A server that is killed at any moment has lost nothing that it acknowledged, leaves nothing
//! behind, and says after the next start what was in progress.

use std::collections::{BTreeMap, BTreeSet};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use serde_json::{Value, json};
use storage::log::{Log, LogOptions};

use crate::damage::launching;
use crate::site::Site;
use crate::support::data::files_below;
use crate::support::{DataDir, Options, Server, processes, program, wait_for, wait_within, walk};

const KILLS: usize = 12;
/// Console lines that are told before a kill, at the most.
const LINES: usize = 3_000;
/// How long a browser may outlive its killed server.
const GONE_LIMIT: Duration = Duration::from_secs(5);

/// Everything that replies have told, by session.
#[derive(Default)]
struct Acknowledged {
    /// Sequence number and text of console lines.
    lines: BTreeMap<String, BTreeMap<u64, String>>,
    settled: BTreeSet<String>,
    last_seq: u64,
}

impl Acknowledged {
    fn take_in(&mut self, session_id: &str, page: &Value) -> usize {
        let lines = self.lines.entry(session_id.to_owned()).or_default();
        for message in page["messages"].as_array().expect("messages") {
            let seq = message["seq"].as_u64().expect("a number");
            self.last_seq = self.last_seq.max(seq);
            lines.insert(seq, message["text"].as_str().expect("a text").to_owned());
        }
        lines.len()
    }
}

fn random(below: usize) -> usize {
    usize::try_from(RandomState::new().hash_one(0) % (below as u64)).expect("it is below a usize")
}

/// All events on record, oldest first, as `pageledger tail --json` prints them.
async fn tail(data: &DataDir) -> Vec<Value> {
    let directory = data.path().display().to_string();
    let output = program::run(&["tail", "--json", "--data-dir", &directory]).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).expect("UTF-8");
    text.lines().map(|line| serde_json::from_str(line).expect("a line is JSON")).collect()
}

fn check_numbers(events: &[Value]) {
    for (number, event) in (1..).zip(events) {
        assert_eq!(event["seq"], number, "numbers have no holes: {event}");
    }
}

/// Kills the server in the middle of a burst, once `until` lines have been told.
async fn burst_and_kill(server: Server, until: usize, known: &mut Acknowledged) -> (DataDir, String) {
    let session_id = server.launch().await;
    let reply =
        server.ok_reply("evaluate", json!({"session_id": session_id, "expression": "console.log('first')"})).await;
    known.settled.insert(reply.operation_id().to_owned());
    let burst = "(async () => { for (let i = 0;; i++) {
        console.log('line ' + i); if (i % 20 == 0) await new Promise(done => setTimeout(done));
    } })()";
    let pending = server.begin("evaluate", json!({"session_id": session_id, "expression": burst})).await;
    let mut after = Value::Null;
    loop {
        let asked = json!({"session_id": session_id, "limit": 100, "after": after});
        let reply = server.ok_reply("list_console_messages", asked).await;
        known.settled.insert(reply.operation_id().to_owned());
        let page = reply.data();
        if known.take_in(&session_id, page) > until {
            break;
        }
        after = page["next_cursor"].clone();
    }
    let family = processes::descendants(server.pid());
    assert!(!family.is_empty());
    let data = server.data_dir().clone();
    server.signal("KILL").await;
    drop(pending);
    wait_within(GONE_LIMIT, "no process is left", || async { processes::alive(&family).is_empty().then_some(()) })
        .await;
    (data, session_id)
}

/// What the killed server's browsers kept on disk is gone.
fn nothing_runs_there(data: &DataDir) {
    let run = data.path().join("run");
    let left = std::fs::read_dir(&run).map_or(0, Iterator::count);
    assert_eq!(left, 0, "the run directory is cleared: {:?}", files_below(&run));
}

/// What was told is still there, word for word; what was interrupted says so.
async fn check_after_restart(server: &Server, session_id: &str, known: &Acknowledged) {
    let messages = walk::console(server, session_id).await;
    // The handshake does not wait for the log to be open; a call does.
    nothing_runs_there(server.data_dir());
    let held: BTreeMap<u64, &str> = messages
        .iter()
        .map(|message| (message["seq"].as_u64().expect("a number"), message["text"].as_str().expect("a text")))
        .collect();
    for (seq, text) in &known.lines[session_id] {
        assert_eq!(held.get(seq), Some(&text.as_str()), "line {seq} was told");
    }
    for (number, text) in walk::texts(&messages).into_iter().skip(1).enumerate() {
        assert_eq!(text, format!("line {number}"), "what is there is in order and without a hole");
    }
    let events = walk::events(server, session_id).await;
    let last = events.last().expect("the session has a history");
    assert_eq!((&last["kind"], &last["data"]["reason"]), (&json!("session.closed"), &json!("interrupted")), "{last}");
    server.fault("evaluate", json!({"session_id": session_id, "expression": "1"}), "SESSION_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_killed_at_any_moment_has_lost_nothing_it_told() {
    let data = DataDir::fresh();
    let mut known = Acknowledged::default();
    let mut sessions = Vec::new();
    let mut server = Server::start(Options::stdio().on(&data)).await;
    for round in 0..KILLS {
        let until = random(LINES);
        let (_, session_id) = burst_and_kill(server, until, &mut known).await;
        server = Server::start(Options::stdio().on(&data)).await;
        eprintln!("round {round}: killed after {until} lines");
        check_after_restart(&server, &session_id, &known).await;
        sessions.push(session_id);
    }
    for session_id in &sessions {
        check_after_restart(&server, session_id, &known).await;
    }
    server.stop().await;
    let events = tail(&data).await;
    check_numbers(&events);
    let opened: Vec<_> = events.iter().filter(|event| event["kind"] == "log.opened").collect();
    let clean: Vec<_> = opened.iter().map(|event| event["data"]["clean"] == true).collect();
    assert_eq!(clean[1..], [false; KILLS], "every start but the first comes after a crash");
    let ends = ends_of_calls(&events);
    for id in &known.settled {
        assert_eq!(ends[id.as_str()]["data"]["outcome"], "completed", "what was answered ended as told");
    }
    let unknown = ends.values().filter(|end| end["data"]["outcome"] == "unknown").count();
    assert_eq!(unknown, KILLS, "the calls that were running when the server was killed are on record as unknown");
    assert_eq!(events.last().map(|event| &event["kind"]), Some(&json!("log.sealed")));
    check_export(&data, &sessions[0], &events).await;
}

/// An export holds every event of an interrupted session.
async fn check_export(data: &DataDir, session_id: &str, events: &[Value]) {
    let directory = data.path().display().to_string();
    let out = data.path().join("session.ndjson");
    let file = out.display().to_string();
    let line = ["export", "--data-dir", &directory, "--session", session_id, "--format", "ndjson", "--out", &file];
    let output = program::run(&line).await;
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = std::fs::read_to_string(&out).expect("the export is there");
    let exported: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let recorded: Vec<&Value> = events.iter().filter(|event| event["session_id"] == session_id).collect();
    let numbers = |event: &Value| event["seq"].as_u64();
    let recorded: Vec<_> = recorded.into_iter().map(numbers).collect();
    assert_eq!(exported.iter().map(numbers).collect::<Vec<_>>(), recorded);
}

/// The end of each call that was accepted, of which there is exactly one.
fn ends_of_calls(events: &[Value]) -> BTreeMap<&str, &Value> {
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

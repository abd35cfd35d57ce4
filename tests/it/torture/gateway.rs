//! D01 and D12 for the whole program: a server killed at any moment, with one real page and eight
//! callers on it, has lost nothing that it told, to them or to whoever followed its log.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, BufReader};
use tokio::process::{Child, Command};

use crate::crash::{GONE_LIMIT, check_numbers, ends_of_calls, nothing_runs_there, tail};
use crate::support::check::{Check, is_long, short_or_long};
use crate::support::dice::Dice;
use crate::support::{DataDir, LIMIT, Options, Server, processes, program, wait_within, walk};

/// Console lines that are told before a kill, at the most.
const LINES_MAX: u64 = 2_000;
const CALLERS: usize = 8;
/// A restarted server answers within this time; held in `make torture`, where nothing else runs.
const READY_LIMIT: Duration = Duration::from_secs(5);

/// Everything that replies and the followed log have told.
#[derive(Default)]
struct Told {
    /// Sequence number and text of console lines, by session.
    lines: BTreeMap<String, BTreeMap<u64, String>>,
    settled: BTreeSet<String>,
    /// Events as `pageledger tail --follow` printed them.
    followed: BTreeMap<u64, Value>,
}

impl Told {
    fn take_in(&mut self, session_id: &str, page: &Value) -> u64 {
        let lines = self.lines.entry(session_id.to_owned()).or_default();
        for message in page["messages"].as_array().expect("messages") {
            let seq = message["seq"].as_u64().expect("a number");
            lines.insert(seq, message["text"].as_str().expect("a text").to_owned());
        }
        lines.len() as u64
    }

    fn follow(&mut self, lines: &[String]) {
        for line in lines {
            let event: Value = serde_json::from_str(line).expect("a line is JSON");
            let before = self.followed.insert(event["seq"].as_u64().expect("a number"), event.clone());
            assert!(before.is_none_or(|before| before == event), "a number is one event for good: {event}");
        }
    }
}

/// A process that follows the log from outside.
struct Follower {
    child: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl Follower {
    fn start(data: &DataDir) -> Self {
        let mut command = Command::new(program::path());
        command.args(["tail", "--json", "--follow", "--data-dir"]).arg(data.path());
        let mut child = command.stdout(std::process::Stdio::piped()).kill_on_drop(true).spawn().expect("it starts");
        let mut stdout = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let lines = Arc::new(Mutex::new(Vec::new()));
        let kept = lines.clone();
        tokio::spawn(async move {
            while let Ok(Some(line)) = stdout.next_line().await {
                kept.lock().unwrap_or_else(PoisonError::into_inner).push(line);
            }
        });
        Self { child, lines }
    }

    async fn stop(mut self) -> Vec<String> {
        self.child.kill().await.expect("it can be killed");
        std::mem::take(&mut *self.lines.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// Calls one after another for as long as the server lives; notes each that was answered.
async fn call_on(server: &Server, session_id: &str, number: usize, settled: &Mutex<BTreeSet<String>>) {
    loop {
        let (tool, arguments) = match number % 2 {
            0 => ("session_info", json!({"session_id": session_id})),
            _ => ("server_status", json!({})),
        };
        let reply = server.ok_reply(tool, arguments).await;
        settled.lock().unwrap_or_else(PoisonError::into_inner).insert(reply.operation_id().to_owned());
    }
}

/// Reads the page's lines as they come until `until` of them were told.
async fn read_on(server: &Server, session_id: &str, until: u64, told: &mut Told) {
    let mut after = Value::Null;
    loop {
        let asked = json!({"session_id": session_id, "limit": 100, "after": after});
        let reply = server.ok_reply("list_console_messages", asked).await;
        told.settled.insert(reply.operation_id().to_owned());
        let page = reply.data();
        if told.take_in(session_id, page) > until {
            return;
        }
        after = page["next_cursor"].clone();
    }
}

/// Kills the server in the middle of a burst, once `until` lines have been told.
async fn burst_and_kill(server: Server, until: u64, told: &mut Told) -> String {
    let session_id = server.launch().await;
    let follower = Follower::start(server.data_dir());
    let reply =
        server.ok_reply("evaluate", json!({"session_id": session_id, "expression": "console.log('first')"})).await;
    told.settled.insert(reply.operation_id().to_owned());
    let burst = "(async () => { for (let i = 0;; i++) {
        console.log('line ' + i); if (i % 20 == 0) await new Promise(done => setTimeout(done));
    } })()";
    let pending = server.begin("evaluate", json!({"session_id": session_id, "expression": burst})).await;
    let family = processes::descendants(server.pid());
    assert!(!family.is_empty());
    let settled = Mutex::default();
    let callers = join_all((0..CALLERS).map(|number| call_on(&server, &session_id, number, &settled)));
    tokio::select! {
        () = read_on(&server, &session_id, until, told) => {}
        _ = callers => unreachable!("callers do not end by themselves"),
    }
    server.kill().await;
    drop(pending);
    told.settled.extend(settled.into_inner().unwrap_or_else(PoisonError::into_inner));
    told.follow(&follower.stop().await);
    wait_within(GONE_LIMIT, "no process is left", || async { processes::alive(&family).is_empty().then_some(()) })
        .await;
    session_id
}

/// What was told is still there, word for word; what was interrupted says so.
async fn check_after_restart(server: &Server, session_id: &str, told: &Told) {
    let messages = walk::console(server, session_id).await;
    // The handshake does not wait for the log to be open; a call does.
    nothing_runs_there(server.data_dir());
    let held: BTreeMap<u64, &str> = messages
        .iter()
        .map(|message| (message["seq"].as_u64().expect("a number"), message["text"].as_str().expect("a text")))
        .collect();
    for (seq, text) in &told.lines[session_id] {
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
    let mut check = Check::begin("D01", "kill -9 of the gateway with 8 callers and a real page");
    let mut shown = Check::begin("D12", "what pageledger tail --follow printed during the kills");
    let data = DataDir::fresh();
    let mut told = Told::default();
    let mut dice = Dice::cast();
    let kills = short_or_long(4, 50);
    let mut sessions = Vec::new();
    let mut ready = Duration::ZERO;
    let mut server = Server::start(Options::stdio().on(&data)).await;
    for _ in 0..kills {
        let session_id = burst_and_kill(server, dice.within(0..LINES_MAX), &mut told).await;
        let began = Instant::now();
        server = Server::start(Options::stdio().on(&data)).await;
        server.ok("server_status", json!({})).await;
        ready = ready.max(began.elapsed());
        assert!(ready < if is_long() { READY_LIMIT } else { LIMIT }, "ready again only after {ready:?}");
        check_after_restart(&server, &session_id, &told).await;
        sessions.push(session_id);
    }
    for session_id in &sessions {
        check_after_restart(&server, session_id, &told).await;
    }
    server.stop().await;
    let events = tail(&data).await;
    check_record(&events, &told, kills);
    check_export(&data, &sessions[0], &events).await;
    check.tried(kills);
    check.figure("calls told", told.settled.len());
    check.figure("lines told", told.lines.values().map(BTreeMap::len).sum::<usize>());
    check.figure("lost", 0);
    check.figure("slowest restart ms", ready.as_millis());
    shown.tried(kills);
    shown.figure("shown", told.followed.len());
    shown.figure("replaced", 0);
}

/// The whole record after all kills, as `pageledger tail --json` prints it.
fn check_record(events: &[Value], told: &Told, kills: usize) {
    check_numbers(events);
    let opened: Vec<_> = events.iter().filter(|event| event["kind"] == "log.opened").collect();
    let clean: Vec<_> = opened.iter().map(|event| event["data"]["clean"] == true).collect();
    assert_eq!(clean[1..], vec![false; kills], "every start but the first comes after a crash");
    let ends = ends_of_calls(events);
    for id in &told.settled {
        assert_eq!(ends[id.as_str()]["data"]["outcome"], "completed", "what was answered ended as told");
    }
    let unknown = ends.values().filter(|end| end["data"]["tool"] == "evaluate" && end["data"]["outcome"] == "unknown");
    assert_eq!(unknown.count(), kills, "the call that was running when the server was killed is on record as unknown");
    assert!(told.followed.len() > kills, "the log was followed");
    for event in events {
        let seq = event["seq"].as_u64().expect("a number");
        assert!(told.followed.get(&seq).is_none_or(|shown| shown == event), "{event} was shown as something else");
    }
    let last_seq = events.len() as u64;
    assert!(told.followed.keys().all(|seq| *seq <= last_seq), "something that was shown is gone");
    assert_eq!(events.last().map(|event| &event["kind"]), Some(&json!("log.sealed")));
}

/// An export holds every event of an interrupted session.
async fn check_export(data: &DataDir, session_id: &str, events: &[Value]) {
    let directory = data.path().display().to_string();
    let elsewhere = DataDir::fresh();
    let out = elsewhere.path().join("session.ndjson");
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

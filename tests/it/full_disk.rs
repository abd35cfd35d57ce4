//! A disk that is filled to the last byte under load: writes are refused by type, reading, health and
//! ending go on, nothing acknowledged is lost, what was not recorded is counted to the last one, and
//! everything comes back by itself with the room.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{LIMIT, Options, Reply, Server, SmallDisk, http, processes, program, wait_for, wait_within, walk};

/// EX_UNAVAILABLE of sysexits(3).
const EXIT_UNAVAILABLE: i32 = 69;
/// Filling a disk through a browser takes its time on a small and busy machine.
const FILL_LIMIT: Duration = Duration::from_secs(60);

/// A server on a small disk, whose calls are all counted.
struct Trial {
    disk: SmallDisk,
    server: Server,
    session_id: String,
    /// Operation ids of what was acknowledged as done, and how many calls got any reply.
    acknowledged: Mutex<Vec<String>>,
    replies: Mutex<u64>,
}

impl Trial {
    /// With the levels of the disk, or without: then calls go on until a write is refused.
    async fn start(disk: SmallDisk, with_levels: bool) -> Self {
        let mut options = disk.serving(Options::http());
        for flag in ["--disk-warn-percent", "--disk-refuse-percent", "--disk-read-only-percent"] {
            options = if with_levels { options } else { options.argument(flag, 0) };
        }
        let server = Server::start(options).await;
        let trial =
            Self { disk, server, session_id: String::new(), acknowledged: Mutex::default(), replies: Mutex::default() };
        let launched = trial.ok("launch_session", json!({"slug": "full"})).await;
        let session_id = launched["session_id"].as_str().expect("a session id").to_owned();
        let trial = Self { session_id, ..trial };
        trial.ok("evaluate", trial.evaluate("window.count = 0; console.log('before')")).await;
        trial
    }

    fn evaluate(&self, expression: &str) -> Value {
        json!({"session_id": self.session_id, "expression": expression})
    }

    async fn call(&self, tool: &str, arguments: Value) -> Reply {
        let reply = self.server.call(tool, arguments).await;
        *self.replies.lock().expect("nobody panics with it") += 1;
        if !reply.is_error {
            self.acknowledged.lock().expect("nobody panics with it").push(reply.operation_id().to_owned());
        }
        reply
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        let reply = self.call(tool, arguments.clone()).await;
        assert!(!reply.is_error, "{tool} {arguments}: {}", reply.structured);
        reply.data().clone()
    }

    async fn refused(&self, tool: &str, arguments: Value) {
        let reply = self.call(tool, arguments.clone()).await;
        assert_eq!(reply.code(), "DISK_LOW", "{tool} {arguments}: {}", reply.structured);
        assert!(reply.structured["details"]["free_bytes"].is_u64(), "{}", reply.structured);
    }

    async fn status(&self) -> Value {
        self.ok("server_status", json!({})).await
    }

    /// The page logs as much as it can, and somebody else takes the rest of the disk, until the disk is
    /// at its lowest level or, without levels, until the log finds no room.
    async fn fill(&self, until: impl Fn(&Value) -> bool) {
        let full = AtomicBool::new(false);
        let noise = "for (let i = 0; i < 400; i++) console.log(window.count++ + ' ' + Array.from({length: 100}, Math.random).join())";
        let load = async {
            while !full.load(Ordering::SeqCst) {
                let reply = self.call("evaluate", self.evaluate(noise)).await;
                assert!(!reply.is_error || reply.code() == "DISK_LOW", "{}", reply.structured);
            }
        };
        let fill = async {
            let mut tick = tokio::time::interval(Duration::from_millis(20));
            while !full.load(Ordering::SeqCst) {
                tokio::task::block_in_place(|| self.disk.fill());
                tick.tick().await;
            }
        };
        let wait = async {
            wait_within(FILL_LIMIT, "the log has no room", || async {
                let status = self.status().await;
                until(&status).then_some(())
            })
            .await;
            full.store(true, Ordering::SeqCst);
        };
        tokio::join!(load, fill, wait);
    }

    async fn check_refusals(&self) {
        for (tool, arguments) in [
            ("launch_session", json!({"slug": "more"})),
            ("navigate", json!({"session_id": self.session_id, "url": "about:blank"})),
            ("evaluate", self.evaluate("1")),
            ("export_events", json!({"session_id": self.session_id})),
        ] {
            self.refused(tool, arguments).await;
        }
    }

    /// Everything that only reads.
    async fn check_reading(&self) {
        let mut after = Value::Null;
        let mut texts = Vec::new();
        loop {
            let asked = json!({"session_id": self.session_id, "limit": 500, "after": after});
            let page = self.ok("list_console_messages", asked).await;
            let messages = page["messages"].as_array().expect("messages");
            texts.extend(messages.iter().filter_map(|message| message["text"].as_str().map(str::to_owned)));
            after = page["next_cursor"].clone();
            if page["has_more"] != true {
                break;
            }
        }
        assert_eq!(texts[0], "before");
        assert!(texts.len() > 1, "some of the noise found room");
        let numbers: Vec<u64> = texts[1..].iter().filter_map(|text| text.split(' ').next()?.parse().ok()).collect();
        assert!(numbers.windows(2).all(|pair| pair[0] < pair[1]), "in order, once each");
        for (tool, arguments) in [
            ("list_events", json!({"session_id": self.session_id, "order": "desc", "limit": 10})),
            ("list_network_requests", json!({"session_id": self.session_id})),
            ("list_sessions", json!({})),
            ("browser_health", json!({})),
        ] {
            self.ok(tool, arguments).await;
        }
        let address = self.server.address();
        assert_eq!(http::get(address, "/healthz").await.status, 200);
        let ready = http::get(address, "/readyz").await;
        assert!(ready.status == 503 && ready.body.contains("DISK_LOW"), "{ready:?}");
        let metrics = http::get(address, "/metrics").await.body;
        assert_eq!(http::series(&metrics, "pageledger_disk_level"), Some(3.0));
        assert_eq!(http::series(&metrics, "pageledger_log_available"), Some(1.0), "a full disk is no end of the log");
    }

    async fn recovers(&self) {
        self.disk.empty();
        wait_for("the level falls", || async { (self.status().await["disk"]["level"] == "ok").then_some(()) }).await;
        self.ok("evaluate", self.evaluate("console.log('after')")).await;
        let ready = http::get(self.server.address(), "/readyz").await;
        assert_eq!(ready.status, 200, "{ready:?}");
        wait_for("the ballast", || async { self.disk.data().join("ballast").exists().then_some(()) }).await;
    }

    /// Every event of a kind, in all the log, and what gaps declare by kind.
    async fn on_record(&self, kinds: &[&str]) -> Vec<Value> {
        let directory = self.disk.data().display().to_string();
        let mut words = vec!["tail", "--json", "--data-dir", &directory];
        words.extend(kinds.iter().flat_map(|kind| ["--kind", kind]));
        let output = program::run(&words).await;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
    }

    /// Produced is stored and declared, to the last call and the last line.
    async fn check_books(&self) {
        let count = self.ok("evaluate", self.evaluate("window.count")).await["result"].as_u64().expect("a count");
        let kinds = ["call.settled", "call.rejected", "console.message", "gap"];
        let events = self.on_record(&kinds).await;
        let of = |kind: &str| events.iter().filter(|event| event["kind"] == kind).collect::<Vec<_>>();
        let mut declared: BTreeMap<String, u64> = BTreeMap::new();
        for gap in of("gap") {
            let (what, lost) = (gap["data"]["what"].as_str().expect("a kind"), gap["data"]["count"].as_u64());
            assert_eq!(gap["data"]["reason"], "disk_full", "{gap}");
            *declared.entry(what.to_owned()).or_default() += lost.expect("a count");
        }
        let lost = |kind: &str| declared.get(kind).copied().unwrap_or(0);
        let is_noise = |event: &&&Value| event["data"]["text"].as_str().is_some_and(|text| text.contains(" 0."));
        let stored = of("console.message").iter().filter(is_noise).count() as u64;
        assert_eq!(stored + lost("console.message"), count, "lines: {declared:?}");
        let replies = *self.replies.lock().expect("nobody panics with it");
        let (settled, rejected) = (of("call.settled").len() as u64, of("call.rejected").len() as u64);
        let told = settled + rejected + lost("call.settled") + lost("call.rejected");
        assert_eq!(told, replies, "calls: {settled} settled, {rejected} rejected, {declared:?}");
        assert!(lost("call.settled") > 0, "the disk was never full");
    }

    /// What was acknowledged as done is on record as settled, unless gaps count it.
    async fn check_acknowledged(&self) {
        let events = self.on_record(&["call.settled", "gap"]).await;
        let settled: Vec<&str> = events.iter().filter_map(|event| event["operation_id"].as_str()).collect();
        let acknowledged = self.acknowledged.lock().expect("nobody panics with it").clone();
        let missing = acknowledged.iter().filter(|id| !settled.contains(&id.as_str())).count() as u64;
        let is_settled = |event: &&Value| event["data"]["what"] == "call.settled";
        let declared: u64 = events.iter().filter(is_settled).filter_map(|event| event["data"]["count"].as_u64()).sum();
        assert_eq!(missing, declared, "only calls that read, and those are counted");
    }
}

fn finds_no_room(status: &Value) -> bool {
    status["log"]["disk_full"] == true
}

/// The whole story on one disk.
async fn story(disk: SmallDisk) {
    let trial = Trial::start(disk, false).await;
    trial.fill(finds_no_room).await;
    trial.disk.fill();
    trial.check_refusals().await;
    trial.check_reading().await;
    assert!(finds_no_room(&trial.status().await), "nothing of it needed room");
    trial.recovers().await;
    trial.check_books().await;
    trial.check_acknowledged().await;
    let more = trial.ok("launch_session", json!({"slug": "more"})).await;
    trial.ok("close_session", json!({"session_id": more["session_id"]})).await;
    let Trial { disk, server, .. } = trial;
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);

    // The end on a full disk: the ballast makes room for it, which nobody else takes.
    let trial = Trial::start(disk, true).await;
    trial.disk.leave_free(trial.disk.total_bytes() / 100 * 3);
    wait_for("the lowest level", || async { (trial.status().await["disk"]["level"] == "read_only").then_some(()) })
        .await;
    trial.check_refusals().await;
    trial.ok("close_session", json!({"session_id": trial.session_id})).await;
    let Trial { disk, server, session_id, .. } = trial;
    let family = processes::descendants(server.pid());
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(processes::alive(&family), []);
    disk.empty();
    let server = Server::start(disk.serving(Options::stdio())).await;
    assert_eq!(walk::texts(&walk::console(&server, &session_id).await)[0], "before");
    let events = walk::events(&server, &session_id).await;
    let closed = events.iter().find(|event| event["kind"] == "session.closed").expect("its end is on record");
    assert_eq!(closed["data"]["reason"], "requested");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_ext4_of_48_mebibytes_costs_nothing_acknowledged() {
    // Where nobody may mount ext4, memory stands in.
    story(SmallDisk::ext4(48).unwrap_or_else(|| SmallDisk::tmpfs(48))).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_tmpfs_of_16_mebibytes_costs_nothing_acknowledged() {
    story(SmallDisk::tmpfs(16)).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_end_without_one_byte_free_is_clean_and_the_next_start_is_fine() {
    let trial = Trial::start(SmallDisk::tmpfs(48), false).await;
    trial.fill(finds_no_room).await;
    trial.disk.fill();
    let Trial { disk, server, session_id, .. } = trial;
    let family = processes::descendants(server.pid());
    let ended = tokio::time::timeout(2 * LIMIT, server.stop()).await.expect("it ends");
    // Where the end itself finds no room, the exit code says that it is not on record.
    assert!(matches!(ended.status.code(), Some(0 | EXIT_UNAVAILABLE)), "{:?} {}", ended.status, ended.stderr);
    assert_eq!(processes::alive(&family), []);

    // A start on the full disk serves what stands.
    let server = Server::start(disk.serving(Options::http())).await;
    assert_eq!(walk::texts(&walk::console(&server, &session_id).await)[0], "before");
    server.fault("launch_session", json!({"slug": "more"}), "DISK_LOW").await;
    disk.empty();
    wait_for("the server is ready", || async {
        (http::get(server.address(), "/readyz").await.status == 200).then_some(())
    })
    .await;
    let id = server.launch().await;
    server.ok("evaluate", json!({"session_id": id, "expression": "1"})).await;
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
}

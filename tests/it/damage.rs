//! Files that were deleted, swapped, cut or altered: what is derived is made again, what is history is
//! named by sequence or refused, and a log that cannot record lets nothing happen.

use std::fs::{self, OpenOptions};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use storage::event::catalog::SessionLaunching;
use storage::event::{Context, Draft, Json, Symbol};
use storage::log::{Log, LogOptions};

use crate::support::{DataDir, Options, Server, program, walk};

/// EX_DATAERR of sysexits(3).
pub const EXIT_DAMAGED: i32 = 65;

/// Starts the server where it must not come up; gives what it says.
pub async fn refused(data: &DataDir) -> String {
    let line = Options::stdio().on(data).command_line();
    let output = program::run_with(&line, &[]).await;
    let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(EXIT_DAMAGED), "{stderr}");
    assert!(output.stdout.is_empty(), "nothing but protocol on standard output");
    stderr
}

/// A data directory with one session whose console holds `lines`, server gone in order.
pub async fn with_session(lines: &[&str]) -> (DataDir, String, Vec<Value>) {
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch().await;
    for line in lines {
        server
            .ok("evaluate", json!({"session_id": session_id, "expression": format!("console.log({line:?}); 1")}))
            .await;
    }
    server.ok("close_session", json!({"session_id": session_id})).await;
    let events = walk::events(&server, &session_id).await;
    (server.stop().await.data, session_id, events)
}

/// The number of the log's end and where it lies, from the newest slot of the mark.
fn mark(log: &Path) -> (u64, PathBuf, u64) {
    let bytes = fs::read(log.join("mark")).expect("the mark is there");
    let number = |at: usize, length: usize| {
        bytes[at..at + length].iter().rev().fold(0u64, |sum, byte| sum << 8 | u64::from(*byte))
    };
    let slot = if number(16, 8) > number(4096 + 16, 8) { 0 } else { 4096 };
    (number(slot + 32, 8), log.join(format!("{:06}.seg", number(slot + 40, 4))), number(slot + 44, 4))
}

#[tokio::test(flavor = "multi_thread")]
async fn an_index_that_is_gone_garbage_or_foreign_is_made_again() {
    let (data, session_id, events) = with_session(&["one", "two"]).await;
    let (foreign, _, _) = with_session(&["elsewhere"]).await;
    let index = data.path().join("index");
    for harm in ["deleted", "garbage", "foreign", "a file"] {
        let files = crate::support::data::files_below(&index);
        match harm {
            "garbage" => {
                assert!(!files.is_empty());
                for file in files {
                    fs::write(file, b"no index at all \xff\xff\xff\xff".repeat(500)).expect("the file is written");
                }
            }
            _ => fs::remove_dir_all(&index).expect("the index is removed"),
        }
        match harm {
            "foreign" => {
                let copied =
                    std::process::Command::new("cp").arg("-r").arg(foreign.path().join("index")).arg(&index).status();
                assert!(copied.is_ok_and(|status| status.success()));
            }
            "a file" => fs::write(&index, b"in the way").expect("the file is written"),
            _ => {}
        }
        let server = Server::start(Options::stdio().on(&data)).await;
        assert_eq!(walk::events(&server, &session_id).await, events, "{harm}");
        assert_eq!(walk::texts(&walk::console(&server, &session_id).await), ["one", "two"], "{harm}");
        let status = server.ok("server_status", json!({})).await;
        assert_eq!(status["log"]["available"], true, "{harm}: {status}");
        let ended = server.stop().await;
        assert!(ended.status.success(), "{harm}: {}", ended.stderr);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_torn_tail_and_leftovers_are_cleared_on_record() {
    let (data, session_id, events) = with_session(&["kept"]).await;
    let log = data.path().join("log");
    let (last_seq, segment, end) = mark(&log);
    let torn = b"\x40\x00\x00\x00torn in the middle of a block".repeat(9);
    let file = OpenOptions::new().write(true).open(&segment).expect("the segment is there");
    file.write_all_at(&torn, end).expect("it is written");
    fs::write(log.join("000002.seg.new"), b"half made").expect("it is written");
    fs::write(data.path().join("artifacts/tmp/half"), b"half kept").expect("it is written");
    fs::create_dir_all(data.path().join("run/somebody/profile")).expect("it is made");
    fs::write(data.path().join("run/somebody/profile/lock"), b"").expect("it is written");
    let server = Server::start(Options::stdio().on(&data)).await;
    assert_eq!(walk::events(&server, &session_id).await, events, "nothing whole was cut");
    server.stop().await;
    let directory = data.path().display().to_string();
    let output = program::run(&["tail", "--json", "--data-dir", &directory, "--kind", "log.recovered"]).await;
    let recovered: Vec<Value> =
        String::from_utf8_lossy(&output.stdout).lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let what =
        |what: &str| recovered.iter().find(|event| event["data"]["what"] == what).cloned().expect("it is on record");
    let tail = what("torn_tail");
    assert_eq!(tail["data"]["bytes_cut"], torn.len(), "{tail}");
    assert!(tail["seq"].as_u64().is_some_and(|seq| seq > last_seq));
    let kept = fs::read(log.join(tail["data"]["kept_as"].as_str().expect("a name"))).expect("what was cut is kept");
    assert_eq!(kept, torn);
    what("leftover_removed");
    for gone in ["log/000002.seg.new", "run/somebody", "artifacts/tmp/half"] {
        assert!(!data.path().join(gone).exists(), "{gone}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_log_that_holds_less_than_it_acknowledged_is_refused_by_sequence() {
    for harm in ["cut", "mark gone", "mark garbled", "altered", "emptied", "segment gone"] {
        let (data, _, _) = with_session(&["one"]).await;
        let log = data.path().join("log");
        let (last_seq, segment, end) = mark(&log);
        let file = OpenOptions::new().write(true).open(&segment).expect("the segment is there");
        match harm {
            "cut" => file.set_len(end - 1).expect("it is cut"),
            "mark gone" => fs::remove_file(log.join("mark")).expect("it is removed"),
            "mark garbled" => fs::write(log.join("mark"), vec![7; 8192]).expect("it is written"),
            "altered" => flip(&segment, end - 3),
            "emptied" => file.set_len(0).expect("it is emptied"),
            _ => fs::remove_file(&segment).expect("it is removed"),
        }
        let before = fs::read(&segment).ok();
        let said = refused(&data).await;
        assert!(said.contains("damaged"), "{harm}: {said}");
        assert!(said.contains(&format!("to {last_seq}")), "{harm}, which ends with {last_seq}: {said}");
        assert_eq!(fs::read(&segment).ok(), before, "{harm}: a refusal touches nothing");
    }
}

fn flip(path: &Path, at: u64) {
    let file = OpenOptions::new().read(true).write(true).open(path).expect("the file is there");
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).expect("the byte is there");
    file.write_all_at(&[byte[0] ^ 0x10], at).expect("it is written");
}

/// An event that begins a session's history.
pub fn launching(session_id: &str, number: u32) -> Draft {
    let context = Context { session_id: Some(session_id.into()), owner: Some("local".into()), ..Context::default() };
    let payload = SessionLaunching {
        name: Symbol::fold(session_id),
        channel: Symbol::fold("chromium"),
        headless: true,
        options: Json::redacted(&json!({"number": number, "text": "x".repeat(100)})),
    };
    Draft::new(&context, &payload)
}

/// A log of many small segments, as no browser is needed to make one.
async fn many_segments(data: &DataDir) -> Vec<PathBuf> {
    let mut options = LogOptions::new(data.path().join("log"));
    options.segment_bytes = 4096;
    let log = Log::open(options).expect("a log opens");
    for number in 0..200 {
        log.commit(vec![launching(&format!("s-{}", number % 2), number)]).await.expect("the log records");
    }
    log.close().await.expect("it closes");
    let files = crate::support::data::files_below(&data.path().join("log"));
    files.into_iter().filter(|file| file.extension().is_some_and(|extension| extension == "seg")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_segment_in_the_middle_is_refused_by_sequence() {
    let data = DataDir::fresh();
    let segments = many_segments(&data).await;
    assert!(segments.len() > 4, "{segments:?}");
    fs::remove_file(&segments[2]).expect("it is removed");
    let said = refused(&data).await;
    assert!(said.contains("000003.seg") && said.contains("missing"), "{said}");
    let range: Vec<u64> = said.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect();
    assert!(range.windows(2).any(|pair| pair[0] > 1 && pair[1] > pair[0] && pair[1] < 200), "{said}");
}

#[tokio::test(flavor = "multi_thread")]
async fn an_altered_block_is_named_and_everything_else_is_served() {
    const SEGMENT_HEADER_BYTES: u64 = 128;
    // A block of a session with a name of three letters.
    const BLOCK_HEADER_BYTES: u64 = 116 + 3;
    for (what, at) in
        [("content", SEGMENT_HEADER_BYTES + BLOCK_HEADER_BYTES + 20), ("header", SEGMENT_HEADER_BYTES + 40)]
    {
        let data = DataDir::fresh();
        let segments = many_segments(&data).await;
        flip(&segments[2], at);
        let server = Server::start(Options::stdio().on(&data)).await;
        let mut hurt = Vec::new();
        for session_id in ["s-0", "s-1"] {
            let reply = server.call("list_events", json!({"session_id": session_id, "limit": 500})).await;
            if reply.is_error {
                assert_eq!(reply.code(), "HISTORY_DAMAGED", "{what}");
                let details = &reply.structured["details"];
                assert!(details["first_seq"].is_u64() && details["last_seq"].is_u64(), "{what}: {details}");
                hurt.push(session_id);
            } else {
                assert_eq!(reply.data()["events"].as_array().map(Vec::len), Some(100), "what is told is whole");
            }
        }
        // Where a block begins is known from the one before it: behind a damaged header nothing is found.
        assert_eq!(hurt.len(), if what == "content" { 1 } else { 2 }, "{what}: {hurt:?}");
        let session_id = server.launch().await;
        server.ok("evaluate", json!({"session_id": session_id, "expression": "1"})).await;
        let ended = server.stop().await;
        assert!(ended.status.success(), "{}", ended.stderr);
    }
}

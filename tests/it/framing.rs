//! Lines over stdio as any client may write them: in order, and none without an answer.

use std::process::Stdio;

use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::process::{Child, ChildStdin, ChildStdout};

use crate::support::{LIMIT, Options, program};

/// A client that writes what it is told, byte for byte.
struct Bare {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    options: Options,
}

impl Bare {
    async fn start() -> Self {
        Self::start_and_say(String::new()).await
    }

    /// Starts a server and writes `more` together with the handshake.
    async fn start_and_say(more: String) -> Self {
        let options = Options::stdio().argument("--lane-depth", 64);
        let mut command = program::command(&program::path(), &options.command_line());
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn().expect("the program starts");
        let stdin = child.stdin.take();
        let stdout = BufReader::new(child.stdout.take().expect("stdout is piped"));
        let mut bare = Self { child, stdin, stdout, options };
        let params = json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bare", "version": "1"}});
        let first = json!({"jsonrpc": "2.0", "id": "first", "method": "initialize", "params": params});
        let second = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
        bare.say(format!("{first}\n{second}\n{more}").as_bytes()).await;
        assert_eq!(bare.hear().await["id"], "first");
        bare
    }

    async fn say(&mut self, bytes: &[u8]) {
        let stdin = self.stdin.as_mut().expect("stdin is open");
        let written = tokio::time::timeout(LIMIT, stdin.write_all(bytes)).await;
        written.expect("the server reads").expect("the server listens");
    }

    async fn hear(&mut self) -> Value {
        let mut line = String::new();
        let read = tokio::time::timeout(LIMIT, self.stdout.read_line(&mut line)).await;
        read.expect("an answer in time").expect("stdout can be read");
        serde_json::from_str(&line).unwrap_or_else(|error| panic!("{error}: {line:?}"))
    }

    async fn call(&mut self, tool: &str, arguments: Value) -> Value {
        self.say(request(json!("call"), tool, arguments).as_bytes()).await;
        let answer = self.hear().await;
        assert_eq!(answer["id"], "call", "{answer}");
        answer["result"]["structuredContent"]["data"].clone()
    }

    async fn launch(&mut self) -> Value {
        self.call("launch_session", json!({"slug": "bare"})).await["session_id"].clone()
    }

    /// The client's end goes away; the server must end too.
    async fn end(mut self) {
        self.stdin = None;
        let status = tokio::time::timeout(LIMIT, self.child.wait()).await;
        let status = status.expect("the server ends").expect("it can be waited for");
        assert_eq!(status.code(), Some(0), "{}", self.options.data.path().display());
    }
}

fn request(id: Value, tool: &str, arguments: Value) -> String {
    let params = json!({"name": tool, "arguments": arguments});
    format!("{}\n", json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}))
}

/// A call of `evaluate` with its expression and its end written out as they are.
fn line(id: &str, expression: &str) -> String {
    format!(
        r#"{{"method":"tools/call","params":{{"name":"evaluate","arguments":{{"session_id":"none","expression":{expression}}}}},"jsonrpc":"2.0","id":{id}}}"#
    )
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_take_effect_in_the_order_they_were_sent() {
    let mut bare = Bare::start().await;
    let session_id = bare.launch().await;
    for (round, count) in [8, 50, 8, 50, 8, 50, 8, 50, 8, 50].into_iter().enumerate() {
        let evaluate = |expression: &str| json!({"session_id": session_id, "expression": expression});
        bare.call("evaluate", evaluate("globalThis.seen = []; 1")).await;
        let lines = (0..count).map(|n| request(json!(n), "evaluate", evaluate(&format!("seen.push({n})"))));
        bare.say(lines.collect::<String>().as_bytes()).await;
        for _ in 0..count {
            let answer = bare.hear().await;
            assert_eq!(answer["result"]["isError"], false, "{answer}");
        }
        let seen = bare.call("evaluate", evaluate("seen")).await;
        assert_eq!(seen["result"], json!((0..count).collect::<Vec<_>>()), "round {round}");
    }
    bare.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn calls_that_come_before_the_log_is_open_keep_their_order() {
    let names: Vec<String> = (0..40).map(|n| format!("nobody-{n}")).collect();
    let calls = names.iter().map(|name| request(json!(name), "list_events", json!({"session_id": name})));
    let mut bare = Bare::start_and_say(calls.collect()).await;
    for _ in &names {
        bare.hear().await;
    }
    let data = bare.options.data.clone();
    bare.end().await;
    let tail = program::run(&["tail", "--data-dir", &data.path().display().to_string(), "--json"]).await;
    let tail = String::from_utf8(tail.stdout).expect("UTF-8");
    let events = tail.lines().map(|line| serde_json::from_str::<Value>(line).expect("JSON"));
    let accepted = events.filter(|event| event["kind"] == "call.accepted");
    let order: Vec<_> = accepted.map(|event| event["data"]["arguments"]["session_id"].clone()).collect();
    assert_eq!(order, names);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_line_that_cannot_be_read_is_answered_and_hurts_no_other() {
    let mut bare = Bare::start().await;
    let deep = format!("{}{}", "[".repeat(100_000), "]".repeat(100_000));
    let whole = line("7", "\"1\"");
    let mut not_text = line("7", "\"x\"").into_bytes();
    let at = not_text.iter().position(|byte| *byte == b'x').expect("there is an x");
    not_text[at] = 0xff;
    let cases: [(&str, Vec<u8>, i64, Value); 9] = [
        ("truncated", whole.as_bytes()[..whole.len() - 20].to_vec(), -32700, Value::Null),
        (
            "truncated behind its id",
            br#"{"jsonrpc":"2.0","id":8,"method":"tools/call","par"#.to_vec(),
            -32700,
            json!(8),
        ),
        ("not UTF-8", not_text, -32700, json!(7)),
        ("a number beyond all bounds", line("7", "1e400").into_bytes(), -32700, json!(7)),
        ("too deep", line("\"deep\"", &deep).into_bytes(), -32700, json!("deep")),
        ("too long", line("9", &format!("\"{}\"", "x".repeat(40_000_000))).into_bytes(), -32600, json!(9)),
        ("no JSON", b"hello".to_vec(), -32700, Value::Null),
        ("no message", b"[1]".to_vec(), -32600, Value::Null),
        ("a message of another kind", br#"{"id":5,"method":"tools/list"}"#.to_vec(), -32600, json!(5)),
    ];
    for (name, mut bytes, code, id) in cases {
        bytes.push(b'\n');
        bare.say(&bytes).await;
        let answer = bare.hear().await;
        assert_eq!(answer["error"]["code"], code, "{name}: {answer}");
        assert_eq!(answer.get("id"), Some(&id), "{name}: {answer}");
        assert_eq!(bare.call("list_sessions", json!({})).await, json!([]), "after {name}");
    }
    // No answer is due to empty lines and notifications.
    bare.say(b"\n\r\n{\"method\":\"odd\",\"jsonrpc\":\"1.0\"}\n").await;
    assert_eq!(bare.call("list_sessions", json!({})).await, json!([]));
    bare.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn lone_surrogates_are_read_as_replacement_characters() {
    let mut bare = Bare::start().await;
    let session_id = bare.launch().await;
    let escaped = line("1", r#""'a\ud800b' + '\ud83d\ude00'""#).replace("\"none\"", &session_id.to_string());
    bare.say(format!("{escaped}\n").as_bytes()).await;
    let answer = bare.hear().await;
    assert_eq!(answer["result"]["structuredContent"]["data"]["result"], "a\u{fffd}b\u{1f600}", "{answer}");
    bare.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn answers_and_errors_never_mix_within_a_line() {
    let mut bare = Bare::start().await;
    let lines = (0..50).map(|n| format!("{}{{\"id\":{},\n", request(json!(n), "server_status", json!({})), n + 100));
    bare.say(lines.collect::<String>().as_bytes()).await;
    let mut ids = Vec::new();
    for _ in 0..100 {
        // `hear` reads every line as JSON.
        ids.push(bare.hear().await["id"].as_i64().expect("every id can be found"));
    }
    ids.sort_unstable();
    assert_eq!(ids, (0..50).chain(100..150).collect::<Vec<_>>());
    bare.end().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_input_ends_a_server_whose_call_still_runs() {
    let mut bare = Bare::start().await;
    let session_id = bare.launch().await;
    let never = json!({"session_id": session_id, "expression": "new Promise(() => {})"});
    let status = request(json!("status"), "server_status", json!({}));
    bare.say(format!("{}{status}", request(json!("never"), "evaluate", never)).as_bytes()).await;
    assert_eq!(bare.hear().await["id"], "status");
    bare.end().await;
}

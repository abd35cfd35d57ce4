//! A browser that talks nonsense between true messages: none of it ends the connection, costs another
//! message, or goes uncounted.
//!
//! Chromium here is the real one, behind a go-between that passes every message on and, when a
//! command carries `inject:NAME`, first says what stands under that name in [`nonsense`].

use std::fs::{File, OpenOptions, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Options, Server, wait_within, walk};

/// The real Chromium's path, for the go-between.
const REAL: &str = "PAGELEDGER_TEST_CHROMIUM";
/// Its arguments, one a line.
const ARGUMENTS: &str = "PAGELEDGER_TEST_CHROMIUM_ARGUMENTS";
const MARK: &[u8] = b"inject:";
/// Beyond the bound of one message, in bytes.
const TOO_LARGE_BYTES: usize = 300 << 20;
const LARGE_BYTES: usize = 100 << 20;
const LIMIT: Duration = Duration::from_secs(60);

/// What is said before the reply to a command, or in its place.
struct Nonsense {
    messages: Vec<Vec<u8>>,
    in_place_of_the_reply: bool,
}

/// What stands under `name`, as it comes with command `id` of `session`.
fn nonsense(name: &str, id: &str, session: &str) -> Nonsense {
    match false_replies(name, id, session) {
        Some(messages) => Nonsense { messages, in_place_of_the_reply: true },
        None => Nonsense { messages: interjections(name, session), in_place_of_the_reply: false },
    }
}

fn false_replies(name: &str, id: &str, session: &str) -> Option<Vec<Vec<u8>>> {
    let reply = |rest: &str| format!(r#"{{"id":{id},{rest},"sessionId":"{session}"}}"#).into_bytes();
    let number = |number: u8| reply(&format!(r#""result":{{"result":{{"type":"number","value":{number}}}}}"#));
    Some(match name {
        "twice" => vec![number(7), number(8)],
        "broken-reply" => vec![reply(r#""result":{"result":{"type":"number","value":"#)],
        "odd-reply" => vec![reply(r#""result":[]"#)],
        "refused" => vec![reply(r#""error":{"code":-32000,"message":"no \u0000 \ud800 way"}"#)],
        "silence" => Vec::new(),
        _ => return None,
    })
}

fn interjections(name: &str, session: &str) -> Vec<Vec<u8>> {
    let event = |method: &str, params: &str| event(session, method, params);
    let console = |text: &str| event("Runtime.consoleAPICalled", &line(text, "1"));
    match name {
        "garbage" => vec![b"\x01\xfe\xffnonsense{".to_vec(), b"{\"id\":".to_vec(), b"[1,2".to_vec(), vec![b'{'; 4096]],
        "empty" => ["", "{}", "[]", "null", " "].map(|text| text.into()).into(),
        "bytes" => vec![utf8_cut(console("cut here"))],
        "unknown" => {
            vec![event("Quantum.entangled", r#"{"spin":[null,{}]}"#), event("NoDomain", "{}"), event("", "[]")]
        }
        "types" => {
            let every_type = |method: &&str| [r#""text""#, "[]", "7", "null"].map(|params| event(method, params));
            HANDLED.iter().flat_map(every_type).collect()
        }
        "missing" => HANDLED[2..].iter().map(|method| event(method, "{}")).collect(),
        "values" => vec![
            event(
                "Runtime.consoleAPICalled",
                r#"{"type":"quux","args":[{"type":"hologram","subtype":7}],"timestamp":1}"#,
            ),
            event("Runtime.consoleAPICalled", &line("odd time", "1e308")),
            event(
                "Runtime.exceptionThrown",
                r#"{"timestamp":-5,"exceptionDetails":{"text":"x","lineNumber":-9,"columnNumber":9223372036854775807}}"#,
            ),
            event("Page.lifecycleEvent", r#"{"frameId":"nowhere","loaderId":"","name":"apotheosis","timestamp":-1}"#),
        ],
        "replies" => ["999999999", "-1", "1.5", "18446744073709551616", "\"text\"", "null", "[]"]
            .map(|id| format!(r#"{{"id":{id},"result":{{}}}}"#).into_bytes())
            .into(),
        "sessions" => vec![
            self::event("nobody", "Runtime.consoleAPICalled", r#"{"type":"log","args":[]}"#),
            br#"{"method":"Page.frameNavigated","params":{},"sessionId":7}"#.to_vec(),
            br#"{"method":"Target.detachedFromTarget","params":{"sessionId":"nobody"}}"#.to_vec(),
        ],
        "deep" => {
            let deep = format!("{{\"args\":{}1{}}}", "[".repeat(100_000), "]".repeat(100_000));
            vec![event("Runtime.consoleAPICalled", &deep)]
        }
        "header" => vec![event("Network.requestWillBeSent", REQUEST_OF_LINES)],
        "large" => vec![console(&"w".repeat(LARGE_BYTES))],
        "too-large" => vec![console(&"w".repeat(TOO_LARGE_BYTES))],
        _ => Vec::new(),
    }
}

/// Events that the gateway makes something of.
const HANDLED: [&str; 12] = [
    "Target.attachedToTarget",
    "Target.detachedFromTarget",
    "Runtime.consoleAPICalled",
    "Runtime.exceptionThrown",
    "Runtime.executionContextCreated",
    "Log.entryAdded",
    "Network.requestWillBeSent",
    "Network.responseReceived",
    "Network.loadingFinished",
    "Network.loadingFailed",
    "Network.webSocketFrameSent",
    "Page.frameDetached",
];

/// A request with line breaks where no request has them.
const REQUEST_OF_LINES: &str = r#"{"requestId":"odd","type":"Fetch","timestamp":1,"wallTime":1,"request":{
    "url":"http://odd.test/\r\nX: y","method":"GET\r\n","headers":{"A":"one\r\nSet-Cookie: two","B\n":[1],"C":null}}}"#;

fn event(session: &str, method: &str, params: &str) -> Vec<u8> {
    format!(r#"{{"method":"{method}","params":{params},"sessionId":"{session}"}}"#).into_bytes()
}

/// Parameters of a console line.
fn line(text: &str, timestamp: &str) -> String {
    let value = format!(r#"{{"type":"string","value":"{text}"}}"#);
    format!(r#"{{"type":"log","args":[{value}],"executionContextId":1,"timestamp":{timestamp}}}"#)
}

/// A message with its text cut within a character: no UTF-8 any more, and JSON once that is mended.
fn utf8_cut(mut message: Vec<u8>) -> Vec<u8> {
    if let Some(at) = message.windows(3).position(|window| window == b"cut") {
        message[at] = 0xc3;
    }
    message
}

/// The part of the go-between, played by this very program when [`Options`] name it as Chromium.
#[test]
#[ignore = "no test: the part of the browser in this module's tests"]
fn go_between() {
    let real = std::env::var(REAL).expect("the tests name the real Chromium");
    let arguments = std::env::var(ARGUMENTS).unwrap_or_default();
    let mut command = Command::new("sh");
    command.args(["-c", "exec 3<&0 4>&1 </dev/null >/dev/null; exec \"$@\"", "sh", &real]).args(arguments.lines());
    let mut chromium = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("Chromium starts");
    let to_chromium = chromium.stdin.take().expect("a pipe");
    let from_chromium = chromium.stdout.take().expect("a pipe");
    let commands = File::open("/proc/self/fd/3").expect("the gateway's commands");
    let replies = OpenOptions::new().write(true).open("/proc/self/fd/4").expect("the gateway's ear");
    let replies = Arc::new(Mutex::new(replies));
    let said = replies.clone();
    std::thread::spawn(move || pass_commands(commands, to_chromium, &said));
    let mut from_chromium = BufReader::with_capacity(1 << 20, from_chromium);
    let mut message = Vec::new();
    while from_chromium.read_until(0, &mut message).is_ok_and(|length| length > 0) {
        say(&replies, &message);
        message.clear();
    }
    let _ = chromium.wait();
    std::process::exit(0);
}

fn say(replies: &Mutex<File>, bytes: &[u8]) {
    // A gateway that is gone listens no more; Chromium ends by its own pipe.
    let _ = replies.lock().unwrap_or_else(PoisonError::into_inner).write_all(bytes);
}

fn pass_commands(commands: impl Read, mut to_chromium: impl Write, replies: &Mutex<File>) {
    let mut commands = BufReader::new(commands);
    let mut command = Vec::new();
    while commands.read_until(0, &mut command).is_ok_and(|length| length > 0) {
        let injected = asked(&command).map(|name| {
            let text = String::from_utf8_lossy(&command).into_owned();
            nonsense(&name, after(&text, "\"id\":"), after(&text, "\"sessionId\":\""))
        });
        for message in injected.iter().flat_map(|nonsense| &nonsense.messages) {
            say(replies, &[message, &b"\0"[..]].concat());
        }
        let passes = !injected.is_some_and(|nonsense| nonsense.in_place_of_the_reply);
        if passes && to_chromium.write_all(&command).is_err() {
            return;
        }
        command.clear();
    }
}

/// The name in a command that asks for an injection.
fn asked(command: &[u8]) -> Option<String> {
    let at = command.windows(MARK.len()).position(|window| window == MARK)? + MARK.len();
    let name = command[at..].iter().take_while(|byte| byte.is_ascii_lowercase() || **byte == b'-');
    Some(name.map(|byte| char::from(*byte)).collect())
}

fn after<'a>(text: &'a str, key: &str) -> &'a str {
    let rest = text.split_once(key).map_or("", |(_, rest)| rest);
    rest.split([',', '"', '}']).next().unwrap_or_default()
}

/// A script that starts this program in the go-between's part.
fn program(directory: &Path) -> PathBuf {
    let path = directory.join("go-between");
    let own = std::env::current_exe().expect("this program has a path");
    let script = format!(
        "#!/bin/sh\n{ARGUMENTS}=$(printf '%s\\n' \"$@\")\nexport {ARGUMENTS}\nexec '{}' --ignored --exact channel::go_between\n",
        own.display()
    );
    std::fs::write(&path, script).expect("the script is written");
    std::fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("the script may run");
    path
}

fn real_chromium() -> PathBuf {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = ["chromium-headless-shell", "chromium"].iter().find_map(|name| {
        std::env::split_paths(&path).map(|directory| directory.join(name)).find(|candidate| candidate.is_file())
    });
    found.expect("Chromium is installed")
}

async fn behind_the_go_between(options: Options, directory: &Path) -> Server {
    let options =
        options.argument("--chromium", program(directory).display()).variable(REAL, real_chromium().display());
    Server::start(options).await
}

fn inject(session_id: &str, name: &str) -> Value {
    json!({"session_id": session_id, "expression": format!("'inject:{name}'")})
}

async fn log(server: &Server, session_id: &str, line: &str) {
    server.ok("evaluate", json!({"session_id": session_id, "expression": format!("console.log({line:?}); 1")})).await;
}

/// How many messages the log says are missing, by reason.
async fn declared(server: &Server, session_id: &str, reason: &str) -> u64 {
    let asked = json!({"session_id": session_id, "kinds": ["gap"]});
    let gaps = walk::all(server, "list_events", "events", asked, 500).await;
    gaps.iter().filter(|gap| gap["data"]["reason"] == reason).filter_map(|gap| gap["data"]["count"].as_u64()).sum()
}

#[tokio::test(flavor = "multi_thread")]
async fn nonsense_between_messages_costs_none_of_them_and_is_counted() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = behind_the_go_between(Options::stdio(), directory.path()).await;
    let session_id = server.launch().await;
    let names =
        ["garbage", "empty", "bytes", "unknown", "types", "missing", "values", "replies", "sessions", "deep", "header"];
    for name in names {
        let missing = declared(&server, &session_id, "undecodable").await;
        log(&server, &session_id, &format!("before {name}")).await;
        assert_eq!(server.ok("evaluate", inject(&session_id, name)).await["result"], format!("inject:{name}"));
        log(&server, &session_id, &format!("after {name}")).await;
        let counted = declared(&server, &session_id, "undecodable").await - missing;
        match name {
            "garbage" => assert_eq!(counted, 4, "{name}"),
            "missing" | "header" => assert_eq!(counted, 0, "{name}"),
            // What has no domain is no method; a method that is not known says nothing of use.
            "unknown" => assert_eq!(counted, 2, "{name}"),
            "deep" => assert_eq!(counted, 1, "{name}"),
            _ => {}
        }
    }
    let messages = walk::console(&server, &session_id).await;
    let said =
        walk::texts(&messages).into_iter().filter(|text| text.starts_with("before ") || text.starts_with("after "));
    let expected: Vec<_> = names.iter().flat_map(|name| [format!("before {name}"), format!("after {name}")]).collect();
    assert_eq!(said.collect::<Vec<_>>(), expected, "every true message is there, in order");
    assert!(walk::texts(&messages).iter().any(|text| text.contains("\u{fffd}ut here")), "what can be mended is kept");
    assert!(walk::texts(&messages).contains(&"odd time"));
    let requests = walk::requests(&server, &session_id).await;
    assert!(
        requests.iter().any(|request| request["url"].as_str().is_some_and(|url| url.contains("odd.test"))),
        "{requests:?}"
    );
    let closed = server.ok("close_session", json!({"session_id": session_id})).await;
    assert_eq!(closed["closed"], true);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_of_any_size_is_kept_or_declared() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let server = behind_the_go_between(Options::stdio(), directory.path()).await;
    let session_id = server.launch().await;
    server.ok("evaluate", inject(&session_id, "large")).await;
    server.ok("evaluate", inject(&session_id, "too-large")).await;
    log(&server, &session_id, "after").await;
    let messages = walk::console_with(&server, &session_id, "after").await;
    assert_eq!(messages.len(), 2, "{:?}", messages.iter().map(|message| &message["text_bytes"]).collect::<Vec<_>>());
    assert_eq!(messages[0]["text_bytes"], LARGE_BYTES);
    assert!(messages[0]["text_artifact"].is_string(), "the whole is kept");
    assert_eq!(declared(&server, &session_id, "too_large").await, 1);
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_false_reply_fails_its_own_call_and_no_other() {
    let directory = tempfile::tempdir().expect("a temporary directory");
    let options = Options::stdio().argument("--operation-timeout-seconds", 10);
    let server = behind_the_go_between(options, directory.path()).await;
    let session_id = server.launch().await;
    assert_eq!(server.ok("evaluate", inject(&session_id, "twice")).await["result"], 7);
    for (name, code) in [
        ("broken-reply", "INTERNAL_ERROR"),
        ("odd-reply", "INTERNAL_ERROR"),
        ("refused", "INTERNAL_ERROR"),
        ("silence", "OPERATION_TIMEOUT"),
    ] {
        let reply =
            wait_within(LIMIT, name, || async { Some(server.call("evaluate", inject(&session_id, name)).await) }).await;
        assert_eq!(reply.code(), code, "{name}: {}", reply.structured);
        assert_eq!(reply.operation("outcome"), "unknown", "{name}: {}", reply.structured);
        let told = server.ok("evaluate", json!({"session_id": session_id, "expression": "2 * 3"})).await;
        assert_eq!(told["result"], 6, "after {name}");
    }
    server.stop().await;
}

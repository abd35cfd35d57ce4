//! Bursts: whatever a page sends in one go arrives complete and in order, is told of exactly, does
//! not pile up in memory, and holds up nobody else.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, processes, wait_within, walk};

const LINES: usize = 20_000;
const FETCHES: usize = 2_000;
/// How long a whole burst may take on a small and busy machine.
const BURST_LIMIT: Duration = Duration::from_secs(120);
/// How long another session's call may take meanwhile.
const NEIGHBOUR_LIMIT: Duration = Duration::from_secs(5);
/// What an unoptimised server may hold after the burst, in bytes.
const RESIDENT_BYTES_MAX: u64 = 150 * 1024 * 1024;

/// Follows a list by its cursor until `wanted` rows have come; no row twice, none left out.
async fn follow(server: &Server, tool: &str, key: &str, arguments: Value, wanted: usize) -> Vec<Value> {
    let mut rows = Vec::new();
    let mut after = Value::Null;
    let began = Instant::now();
    while rows.len() < wanted {
        let mut arguments = arguments.clone();
        arguments["limit"] = 500.into();
        arguments["after"] = after;
        let mut page = server.ok(tool, arguments).await;
        let Value::Array(found) = page[key].take() else { panic!("{tool} gives {key}: {page}") };
        rows.extend(found);
        after = page["next_cursor"].take();
        assert!(began.elapsed() < BURST_LIMIT, "{} of {wanted} rows of {tool} in time", rows.len());
    }
    rows
}

/// Calls on `session_id` while the burst goes on elsewhere; gives the longest that one took.
async fn neighbour(server: &Server, session_id: &str, calls: usize) -> Duration {
    let mut longest = Duration::ZERO;
    for call in 0..calls {
        let began = Instant::now();
        let told = server.ok("evaluate", json!({"session_id": session_id, "expression": format!("{call} + 1")})).await;
        assert_eq!(told["result"], call + 1);
        longest = longest.max(began.elapsed());
    }
    longest
}

async fn no_gaps(server: &Server, session_id: &str) {
    let gaps = server.ok("list_events", json!({"session_id": session_id, "kinds": ["gap"]})).await;
    assert_eq!(gaps["events"], json!([]), "nothing was shed");
}

#[tokio::test(flavor = "multi_thread")]
async fn twenty_thousand_console_lines_arrive_while_they_are_read() {
    let server = Server::start(Options::stdio()).await;
    let (busy, quiet) = (server.launch().await, server.launch().await);
    let lines = format!("for (let i = 0; i < {LINES}; i++) console.log('line ' + i)");
    let burst = server.begin("evaluate", json!({"session_id": busy, "expression": lines})).await;
    let followed = follow(&server, "list_console_messages", "messages", json!({"session_id": busy}), LINES);
    let (reply, followed, longest) = tokio::join!(burst.reply(), followed, neighbour(&server, &quiet, 20));
    assert!(!reply.is_error, "{}", reply.structured);
    assert!(longest < NEIGHBOUR_LIMIT, "another session waited {longest:?}");
    let walked = walk::console(&server, &busy).await;
    for messages in [&followed, &walked] {
        assert_eq!(messages.len(), LINES);
        for (number, text) in walk::texts(messages).into_iter().enumerate() {
            assert_eq!(text, format!("line {number}"));
        }
    }
    assert!(walked.iter().all(|message| message["operation_id"] == reply.operation_id()), "all belong to the call");
    let page = server.ok("list_console_messages", json!({"session_id": busy, "limit": 1})).await;
    assert_eq!((&page["retained_count"], &page["dropped_count"]), (&json!(LINES), &json!(0)));
    no_gaps(&server, &busy).await;
    let resident = processes::resident_bytes(server.pid());
    assert!(resident > 0 && resident < RESIDENT_BYTES_MAX, "{resident} bytes are resident");
    server.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn two_thousand_fetches_are_told_to_their_bodies_while_they_are_read() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let session_id = server.launch_at(&site.url("/plain.html")).await;
    // Chromium itself refuses to hold much more than this in flight when the machine is slow.
    let fetches = format!(
        "(async () => {{ let done = 0; while (done < {FETCHES}) {{
            const some = Array.from({{length: 400}}, (_, i) => fetch('/text?bytes=40&n=' + (done + i)).then(r => r.text()));
            done += (await Promise.all(some)).length;
        }} return done }})()"
    );
    let fetched = json!({"session_id": session_id, "resource_types": ["fetch"]});
    let burst = server.begin("evaluate", json!({"session_id": session_id, "expression": fetches})).await;
    let followed = follow(&server, "list_network_requests", "requests", fetched.clone(), FETCHES);
    let (reply, followed) = tokio::join!(burst.reply(), followed);
    assert_eq!(reply.data()["result"], FETCHES);
    let rows = wait_within(BURST_LIMIT, "every request has finished", || async {
        let rows = walk::all(&server, "list_network_requests", "requests", fetched.clone(), 500).await;
        rows.iter().all(|row| row["state"] == "finished").then_some(rows)
    })
    .await;
    assert_eq!((followed.len(), rows.len()), (FETCHES, FETCHES));
    for (number, (row, earlier)) in rows.iter().zip(&followed).enumerate() {
        assert_eq!(row["url"], site.url(&format!("/text?bytes=40&n={number}")), "in order of start");
        assert_eq!(row["request_id"], earlier["request_id"], "a request keeps its id and its place");
        assert_eq!((&row["status"], &row["method"]), (&json!(200), &json!("GET")));
    }
    let bodies = json!({"session_id": session_id, "kinds": ["network.body"]});
    let bodies = wait_within(BURST_LIMIT, "every body is kept", || async {
        let bodies = walk::all(&server, "list_events", "events", bodies.clone(), 500).await;
        let of_fetches = bodies.into_iter().filter(|body| body["data"]["bytes"] == 40).collect::<Vec<_>>();
        (of_fetches.len() >= FETCHES).then_some(of_fetches)
    })
    .await;
    assert_eq!(bodies.len(), FETCHES);
    for body in &bodies {
        assert!(body["data"]["text"].as_str().is_some_and(|text| text.starts_with("line 0 with")), "{body}");
    }
    let last = &rows[FETCHES - 1]["request_id"];
    let detail = json!({"session_id": session_id, "request_id": last, "part": "response_body"});
    let detail = server.ok("get_network_request", detail).await;
    assert_eq!(detail["content"].as_str().map(str::len), Some(40), "{detail}");
    no_gaps(&server, &session_id).await;
    server.stop().await;
}

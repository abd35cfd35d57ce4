//! D05 for the whole program: a server on a directory with a flipped bit either does not come up and
//! names the numbers concerned, or serves what it has, all of it right, and ends in order.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::Instant;

use serde_json::{Value, json};

use super::flips::Harm;
use super::sample::{LISTED, Sample};
use crate::damage::EXIT_DAMAGED;
use crate::support::check::{Check, short_or_long};
use crate::support::dice::Dice;
use crate::support::{DataDir, LIMIT, Options, Server, program};

/// The events of a session as the server lists them; `Err` with the fault when it cannot.
async fn list(server: &Server, session_id: &str) -> Result<Vec<Value>, Value> {
    let (mut events, mut after) = (Vec::new(), Value::Null);
    loop {
        let asked = json!({"session_id": session_id, "limit": 500, "after": after});
        let mut reply = server.call("list_events", asked).await;
        if reply.is_error {
            return Err(reply.structured);
        }
        let page = &mut reply.structured["data"];
        let Value::Array(found) = page["events"].take() else { panic!("no events: {page}") };
        events.extend(found);
        if page["has_more"] != true {
            return Ok(events);
        }
        after = page["next_cursor"].take();
    }
}

/// Starts it without a client: it ends at once, in order or by refusing.
async fn started(data: &DataDir) -> (ExitStatus, String) {
    let output = program::run_with(&Options::stdio().on(data).command_line(), &[]).await;
    (output.status, String::from_utf8_lossy(&output.stderr).into_owned())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_on_altered_files_refuses_or_serves_what_is_right() {
    let mut check = Check::begin("D05", "gateway on a directory with a flipped bit or a zeroed page");
    let mut dice = Dice::cast();
    let sample = Sample::make().await;
    let server = Server::start(Options::stdio().on(&sample.copy())).await;
    let mut originals = BTreeMap::new();
    for session_id in [LISTED, &sample.session_id] {
        originals.insert(session_id, list(&server, session_id).await.expect("nobody harmed it"));
    }
    server.stop().await;
    let (mut refused, mut named) = (0, 0);
    for number in 0..short_or_long(4, 40) {
        let data = sample.copy();
        let harm = Harm::choose(&data, &mut dice, number % 4 == 3);
        harm.inflict();
        let began = Instant::now();
        let (status, said) = started(&data).await;
        assert!(began.elapsed() < LIMIT, "{harm}");
        check.tried(1);
        if status.code() == Some(EXIT_DAMAGED) {
            assert!(said.contains("sequence "), "{harm}: no numbers are named: {said}");
            refused += 1;
            continue;
        }
        assert!(status.success(), "{harm}: {status}: {said}");
        let server = Server::start(Options::stdio().on(&data)).await;
        for (session_id, original) in &originals {
            match list(&server, session_id).await {
                Ok(events) => assert_eq!(&events, original, "{harm}"),
                Err(fault) => {
                    assert_eq!(fault["code"], "HISTORY_DAMAGED", "{harm}: {fault}");
                    let (first, last) = (&fault["details"]["first_seq"], &fault["details"]["last_seq"]);
                    assert!(first.as_u64() <= last.as_u64() && last.is_u64(), "{harm}: {fault}");
                    named += 1;
                }
            }
        }
        let ended = server.stop().await;
        assert!(ended.status.success(), "{harm}: {}", ended.stderr);
    }
    check.figure("refused", refused);
    check.figure("named in lists", named);
    check.figure("silent", 0);
}

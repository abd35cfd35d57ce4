//! Pages that fight back: each case of tests/fixtures/conformance, through MCP on real Chromium.
//!
//! `CONFORMANCE=part,of,names` runs the cases whose names hold one of the parts. What the cases expect is
//! checked against a peer by benches/conformance.

mod case;
mod run;

use std::sync::Mutex;
use std::time::Duration;

use case::Case;
use futures_util::future::join_all;
use run::Run;
use serde_json::json;

use crate::site::Site;
use crate::support::{Options, Server};

/// Sessions at one time. Much of a case is waiting.
const SESSIONS: usize = 4;
/// The longest a case may take.
const CASE_LIMIT: Duration = Duration::from_secs(60);
/// There are at least this many.
const CASES_MIN: usize = 200;

/// What all sessions take from and add to.
struct Work {
    waiting: Mutex<std::vec::IntoIter<Case>>,
    problems: Mutex<Vec<String>>,
}

#[tokio::test(flavor = "multi_thread")]
async fn pages_that_fight_back() {
    let mut cases = Case::all();
    assert!(cases.len() >= CASES_MIN, "only {} cases", cases.len());
    if let Some(asked) = std::env::var("CONFORMANCE").ok().filter(|asked| !asked.is_empty()) {
        cases.retain(|case| asked.split(',').any(|part| case.full_name().contains(part)));
        assert!(!cases.is_empty(), "no case is called like {asked}");
    }
    let server = Server::start(Options::stdio()).await;
    let site = Site::start().await;
    let work = Work { waiting: Mutex::new(cases.into_iter()), problems: Mutex::default() };
    join_all((0..SESSIONS).map(|at| one_session(&server, &site, at, &work))).await;
    let problems = work.problems.into_inner().expect("no session panicked");
    assert!(problems.is_empty(), "{} cases are not as said:\n{}", problems.len(), problems.join("\n"));
}

/// Runs cases until none is left, each on a fresh page; after a failure in a fresh session.
async fn one_session(server: &Server, site: &Site, at: usize, work: &Work) {
    let mut session_id = String::new();
    let mut launched = 0;
    loop {
        let next = work.waiting.lock().expect("no session panicked").next();
        let Some(case) = next else { return };
        if session_id.is_empty() {
            launched += 1;
            let slug = format!("pages-{at}-{launched}");
            let launch = server.ok("launch_session", json!({"slug": slug})).await;
            session_id = launch["session_id"].as_str().expect("a session id").to_owned();
        }
        let run = Run { server, site, session_id: &session_id, case: &case };
        let checked = tokio::time::timeout(CASE_LIMIT, run.check()).await;
        let Err(problem) = checked.unwrap_or_else(|_| Err("it does not end".to_owned())) else { continue };
        server.ok("close_session", json!({"session_id": session_id})).await;
        session_id.clear();
        if case.awaits.is_none() {
            work.problems.lock().expect("no session panicked").push(format!("{}: {problem}", case.full_name()));
        }
    }
}

//! Metrics follow what was done, and nobody but us can make new series.

use std::collections::BTreeSet;

use serde_json::json;

use crate::site::Site;
use crate::support::{Options, Server, http, wait_for};

async fn scrape(server: &Server) -> String {
    http::get(server.address(), "/metrics").await.body
}

/// Names with labels, values left out.
fn series(exposition: &str) -> BTreeSet<String> {
    let lines = exposition.lines().filter(|line| !line.starts_with('#') && !line.is_empty());
    lines.filter_map(|line| Some(line.rsplit_once(' ')?.0.to_owned())).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn counts_are_what_was_done() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--metrics", "127.0.0.1:0")).await;
    let id = server.launch_at(&site.url("/console.html")).await;
    for _ in 0..3 {
        server.ok("evaluate", json!({"session_id": id, "expression": "console.warn('counted')"})).await;
    }
    server.fault("evaluate", json!({"session_id": id, "expression": "("}), "SCRIPT_ERROR").await;
    server.fault("evaluate", json!({"session_id": id}), "INVALID_ARGUMENTS").await;
    wait_for("the metrics follow", || async {
        let exposition = scrape(&server).await;
        let rejected = http::series(&exposition, "pageledger_calls_rejected_total{code=\"invalid_arguments\"}");
        (rejected == Some(1.0)).then_some(())
    })
    .await;
    // A scrape reads one series after the other while events are folded in: only one that begins after
    // the last of them shows them all.
    let exposition = scrape(&server).await;
    let value = |name: &str| http::series(&exposition, name).unwrap_or_else(|| panic!("no {name} in {exposition}"));
    assert_eq!(value("pageledger_calls_total{tool=\"evaluate\",outcome=\"completed\",code=\"none\"}"), 3.0);
    let failed = exposition
        .lines()
        .filter(|line| line.contains("tool=\"evaluate\"") && line.contains("code=\"script_error\""))
        .count();
    assert_eq!(failed, 1);
    assert_eq!(value("pageledger_calls_accepted_total{tool=\"evaluate\"}"), 4.0);
    assert_eq!(value("pageledger_console_messages_total{level=\"warning\"}"), 4.0);
    assert_eq!((value("pageledger_sessions_live"), value("pageledger_sessions_opened_total")), (1.0, 1.0));
    assert_eq!(value("pageledger_log_available"), 1.0);
    assert!(value("process_resident_memory_bytes") > 1e6);
    server.ok("close_session", json!({"session_id": id})).await;
    wait_for("the session is counted out", || async {
        let exposition = scrape(&server).await;
        (http::series(&exposition, "pageledger_sessions_live") == Some(0.0)).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn names_from_outside_make_no_series() {
    let server = Server::start(Options::stdio().argument("--metrics", "127.0.0.1:0")).await;
    let hostile = async |round: usize| {
        for n in 0..40 {
            let name = format!("hostile_{round}_{n}\"}} 1\n# x{{\u{e9}");
            assert!(server.begin(&name, json!({})).await.result().await.is_err());
            server.fault("close_session", json!({"session_id": n, "hostile_argument": 1}), "INVALID_ARGUMENTS").await;
            server
                .fault(
                    "evaluate",
                    json!({"session_id": format!("hostile_{round}_{n}"), "expression": "1"}),
                    "SESSION_NOT_FOUND",
                )
                .await;
        }
        let wanted = 40.0 * (round + 1) as f64;
        wait_for("the metrics follow", || async {
            let exposition = scrape(&server).await;
            let name = "pageledger_calls_rejected_total{code=\"session_not_found\"}";
            (http::series(&exposition, name) == Some(wanted)).then_some(exposition)
        })
        .await
    };
    let (first, second) = (hostile(0).await, hostile(1).await);
    assert_eq!(series(&first), series(&second));
    assert!(!second.contains("hostile"), "{second}");
    for line in second.lines().filter(|line| !line.starts_with('#') && !line.is_empty()) {
        let value = line.rsplit_once(' ').map(|(_, value)| value.parse::<f64>());
        assert!(matches!(value, Some(Ok(_))), "a series a line: {line}");
    }
}

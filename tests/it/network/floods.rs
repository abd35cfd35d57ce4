//! Very many requests: each is a row or declared missing, and each ends.

use serde_json::json;

use super::run;
use crate::site::Site;
use crate::support::{Options, Server, wait_for, walk};

const REQUESTS: usize = 5_000;

#[tokio::test(flavor = "multi_thread")]
async fn five_thousand_requests_at_once_are_all_accounted_for() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let script =
        format!("await Promise.allSettled(Array.from({{length: {REQUESTS}}}, (_, n) => fetch('/status/204?n=' + n)));");
    run(&server, &id, &script).await;
    let asked = json!({"session_id": id, "url_filter": "/status/204"});
    wait_for("every request ends", || async {
        let rows = walk::all(&server, "list_network_requests", "requests", asked.clone(), 500).await;
        let page = server.ok("list_network_requests", json!({"session_id": id, "limit": 1})).await;
        let dropped = page["dropped_count"].as_u64().expect("a number") as usize;
        let open = rows.iter().filter(|row| row["state"] == "pending").count();
        assert!(rows.len() <= REQUESTS);
        (rows.len() == REQUESTS && open == 0 || dropped > 0 && rows.len() + dropped >= REQUESTS).then_some(())
    })
    .await;
}

//! A call goes all the way: client, gateway, browser, log, and back; over both transports.

use serde_json::json;

use crate::site::Site;
use crate::support::{Options, Server, processes, walk};

async fn goes_all_the_way(options: Options) {
    let site = Site::start().await;
    let server = Server::start(options).await;
    let session_id = server.launch_at(&site.url("/form.html")).await;
    let snapshot = server.ok("snapshot", json!({"session_id": session_id})).await;
    assert!(snapshot["tree"].as_str().is_some_and(|tree| tree.contains("button \"Save\"")), "{snapshot}");
    server.ok("click", json!({"session_id": session_id, "selector": "#save"})).await;
    walk::console_with(&server, &session_id, "trusted=true").await;
    let family = processes::descendants(server.pid());
    assert!(!family.is_empty());
    let ended = server.stop().await;
    assert!(ended.status.success(), "{}", ended.stderr);
    assert_eq!(processes::alive(&family), [], "nothing is left behind");
}

#[tokio::test(flavor = "multi_thread")]
async fn over_stdio() {
    goes_all_the_way(Options::stdio()).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn over_http() {
    goes_all_the_way(Options::http()).await;
}

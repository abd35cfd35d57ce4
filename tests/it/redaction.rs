//! Secrets never enter the log: not as they are in any file, and not in anything that is read back.

use serde_json::json;

use crate::site::Site;
use crate::support::{Options, Server, program, walk};

/// What must not be found anywhere.
const CANARIES: [&str; 4] = ["canary-query-1182", "canary-bearer-5520", "canary-cookie-7431", "canary-password-9067"];

#[tokio::test(flavor = "multi_thread")]
async fn secrets_are_nowhere_below_the_data_directory() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    for tool in [("fill", "value"), ("type_text", "text")] {
        server.ok(tool.0, json!({"session_id": id, "selector": "#password", tool.1: CANARIES[3]})).await;
    }
    let leak = "console.log('leaked ' + document.querySelector('#password').value.slice(0, 20)); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": leak})).await;
    let leaked = walk::console_with(&server, &id, "leaked").await;
    assert!(leaked.iter().all(|message| !message.to_string().contains(CANARIES[3])), "{leaked:?}");
    server.ok("navigate", json!({"session_id": id, "url": site.url("/network.html")})).await;
    walk::console_with(&server, &id, "network done").await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/cookie")})).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?again=1")})).await;
    let sent: Vec<String> = site.received().iter().map(|request| format!("{request:?}")).collect();
    for canary in &CANARIES[..3] {
        assert!(sent.iter().any(|request| request.contains(canary)), "the site itself saw {canary}");
    }
    let requests = walk::requests(&server, &id).await;
    let mut shown = serde_json::to_string(&walk::events(&server, &id).await).expect("JSON");
    for request in &requests {
        for part in ["summary", "request_headers", "response_headers"] {
            let asked = json!({"session_id": id, "request_id": request["request_id"], "part": part});
            shown.push_str(&server.ok("get_network_request", asked).await.to_string());
        }
    }
    for format in ["ndjson", "parquet"] {
        server.ok("export_events", json!({"session_id": id, "format": format, "path": format!("all.{format}")})).await;
    }
    server.ok("close_session", json!({"session_id": id})).await;
    let ended = server.stop().await;
    let data = ended.data.path().display().to_string();
    let tail = program::run(&["tail", "--data-dir", &data, "--json"]).await;
    let tail = String::from_utf8(tail.stdout).expect("UTF-8");
    assert!(tail.lines().count() > 50 && ended.data.files().len() > 5);
    for canary in CANARIES {
        assert!(!shown.contains(canary), "{canary} is shown to the client");
        assert!(!tail.contains(canary), "{canary} is in the log");
        assert!(!ended.stderr.contains(canary), "{canary} is said on stderr");
        assert_eq!(ended.data.files_with(canary), Vec::<std::path::PathBuf>::new(), "{canary} is on disk");
    }
    assert!(tail.contains("[redacted"), "what was taken out is marked");
}

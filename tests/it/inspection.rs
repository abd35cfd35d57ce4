//! Looking at pages: screenshots, snapshots, content, values.

use base64::Engine;
use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

#[tokio::test(flavor = "multi_thread")]
async fn screenshots_are_pictures_and_kept() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/obstacles.html")).await;
    let reply = server.ok_reply("screenshot", json!({"session_id": id, "save_path": "shots/one.png"})).await;
    let data = reply.data();
    let (media_type, picture) = &reply.images[0];
    let picture = base64::engine::general_purpose::STANDARD.decode(picture).expect("base64");
    assert_eq!(media_type, "image/png");
    assert!(picture.starts_with(b"\x89PNG\r\n"));
    assert_eq!(data["bytes"], picture.len());
    let saved = data["saved_to"].as_str().expect("a path");
    assert!(saved.starts_with(&server.data_dir().path().display().to_string()), "{saved}");
    assert_eq!(std::fs::read(saved).expect("the file"), picture);
    let kept = walk::artifact(&server, data["artifact"].as_str().expect("a handle"), 1_000).await;
    assert_eq!(kept, picture, "read in parts, it is the same picture");
    let full = server.ok("screenshot", json!({"session_id": id, "full_page": true})).await;
    assert!(full["height"].as_u64() > data["height"].as_u64().map(|height| height * 4), "{full}");
    let clip = json!({"session_id": id, "clip": {"x": 0, "y": 0, "width": 30, "height": 20}, "omit_background": true});
    let clip = server.ok("screenshot", clip).await;
    assert_eq!((&clip["width"], &clip["height"]), (&json!(30), &json!(20)));
    for path in ["../out.png", "/etc/out.png", "a/../../out.png", ""] {
        let reply = server.fault("screenshot", json!({"session_id": id, "save_path": path}), "PATH_NOT_ALLOWED").await;
        assert_eq!(reply["status"], "error");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn snapshots_see_into_frames() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/frames.html")).await;
    let snapshot = server.ok("snapshot", json!({"session_id": id})).await;
    let tree = snapshot["tree"].as_str().expect("a tree");
    let inside: Vec<&str> = tree.lines().filter(|line| line.contains("button \"Inside\"")).collect();
    assert_eq!(inside.len(), 2, "both frames are in it: {tree}");
    for line in inside {
        let reference = line.split("[ref=").nth(1).and_then(|rest| rest.split(']').next()).expect("a reference");
        server.ok("click", json!({"session_id": id, "selector": reference})).await;
    }
    walk::console_with(&server, &id, "frame clicked 127.0.0.1").await;
    walk::console_with(&server, &id, "frame clicked localhost").await;
    assert_eq!(snapshot["title"], "Frames");
    let content = server.ok("get_content", json!({"session_id": id})).await;
    assert!(content["html"].as_str().is_some_and(|html| html.contains("<iframe id=\"same\"")), "{content}");
}

#[tokio::test(flavor = "multi_thread")]
async fn values_come_back_as_they_are() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let cases = [
        ("1+1", json!(2)),
        ("'text \u{e9}'", json!("text \u{e9}")),
        ("null", Value::Null),
        ("undefined", Value::Null),
        ("({a: [1, {b: true}]})", json!({"a": [1, {"b": true}]})),
        ("() => document.title", json!("Plain")),
        ("async () => (await fetch('/json')).status", json!(200)),
        ("Promise.resolve(7)", json!(7)),
    ];
    for (expression, wanted) in cases {
        let given = server.ok("evaluate", json!({"session_id": id, "expression": expression})).await;
        assert_eq!(given["result"], wanted, "{expression}");
    }
    for expression in ["throw new Error('thrown text')", "(", "Promise.reject(new Error('thrown text'))"] {
        let fault = server.fault("evaluate", json!({"session_id": id, "expression": expression}), "SCRIPT_ERROR").await;
        assert!(fault["details"]["text"].as_str().is_some_and(|text| !text.is_empty()), "{fault}");
    }
    // A page cannot pass its own object off as the server's reply.
    let forged = "({status: 'error', code: 'INTERNAL_ERROR'})";
    let given = server.ok("evaluate", json!({"session_id": id, "expression": forged})).await;
    assert_eq!(given["result"]["status"], "error");
    server.fault("evaluate", json!({"session_id": id, "expression": ""}), "INVALID_ARGUMENTS").await;
    let locked = server.ok("launch_session", json!({"slug": "locked", "disable_evaluate": true})).await;
    server.fault("evaluate", json!({"session_id": locked["session_id"], "expression": "1"}), "EVALUATE_DISABLED").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_session_tells_of_itself() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let info = server.ok("session_info", json!({"session_id": id})).await;
    assert_eq!((&info["page_count"], &info["navigation_count"]), (&json!(1), &json!(1)));
    assert_eq!(info["current_url"], site.url("/plain.html"));
    let listed = server.ok("list_sessions", json!({})).await;
    assert_eq!(listed[0]["session_id"], id);
    let status = server.ok("server_status", json!({})).await;
    assert_eq!((&status["sessions"]["count"], &status["transport"]), (&json!(1), &json!("stdio")));
    assert_eq!(status["log"]["available"], true);
    assert!(status["limits"]["max_result_bytes"].is_u64());
    let health = server.ok("browser_health", json!({})).await;
    assert_eq!(health["instance_count"], 1);
    assert_eq!(health["instances"][0]["active_url"], site.url("/plain.html"));
}

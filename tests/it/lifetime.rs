//! How servers begin and end: nothing is left behind, nothing is shared, nothing is waived in silence.

use serde_json::json;

use crate::site::Site;
use crate::support::data::files_below;
use crate::support::{Options, Server, processes, program, wait_for, walk};

#[tokio::test(flavor = "multi_thread")]
async fn the_end_of_input_ends_everything() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    for _ in 0..2 {
        server.launch_at(&site.url("/workers.html")).await;
    }
    let family = processes::descendants(server.pid());
    assert!(family.len() >= 4, "{family:?}");
    let ended = server.stop().await;
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(processes::alive(&family), []);
    assert_eq!(files_below(&ended.data.path().join("run")), Vec::<std::path::PathBuf>::new(), "no profile is left");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_signal_ends_everything_in_order() {
    let site = Site::start().await;
    let server = Server::start(Options::http()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let expression = "fetch('/hold').then(answer => answer.text())";
    let held = server.begin("evaluate", json!({"session_id": id, "expression": expression})).await;
    site.arrived("/hold").await;
    let family = processes::descendants(server.pid());
    let ended = server.signal("TERM").await;
    drop(held);
    assert_eq!(ended.status.code(), Some(0), "{}", ended.stderr);
    assert_eq!(processes::alive(&family), []);
    let data = ended.data.path().display().to_string();
    let tail = program::run(&["tail", "--data-dir", &data, "--json"]).await;
    let tail = String::from_utf8(tail.stdout).expect("UTF-8");
    let of = |kind: &str| tail.lines().filter(|line| line.contains(&format!("\"kind\":\"{kind}\""))).count();
    assert_eq!(
        (of("session.opened"), of("session.closed"), of("log.sealed")),
        (1, 1, 1),
        "the log tells the whole story"
    );
    assert_eq!(of("call.accepted"), of("call.settled"), "every call has its end");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_server_takes_its_browsers_along() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    server.launch_at(&site.url("/frames.html")).await;
    let family = processes::descendants(server.pid());
    let ended = server.signal("KILL").await;
    assert!(!ended.status.success());
    wait_for("every browser process ends", || async { processes::alive(&family).is_empty().then_some(()) }).await;
    let server = Server::start(Options::stdio().on(&ended.data)).await;
    // The handshake does not wait for the log; a call does.
    server.ok("server_status", json!({})).await;
    assert_eq!(
        files_below(&ended.data.path().join("run")),
        Vec::<std::path::PathBuf>::new(),
        "the next start clears up"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn a_data_directory_has_one_server() {
    let server = Server::start(Options::stdio()).await;
    let data = server.data_dir().path().display().to_string();
    let second = program::run(&["serve", "--data-dir", &data]).await;
    let said = String::from_utf8_lossy(&second.stderr).into_owned();
    assert_eq!(second.status.code(), Some(75), "{said}");
    assert!(said.contains(&server.pid().to_string()), "it names who holds it: {said}");
    assert!(second.stdout.is_empty(), "standard output is the protocol's alone");
    server.ok("server_status", json!({})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_sandbox_is_never_waived_in_silence() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().with_sandbox()).await;
    let reply = server.call("launch_session", json!({"slug": "boxed"})).await;
    if processes::is_root() || reply.is_error {
        assert_eq!(reply.code(), "SANDBOX_UNAVAILABLE", "{}", reply.structured);
        assert!(reply.text.contains("--no-chromium-sandbox"), "it names the flag: {}", reply.text);
        assert_eq!(processes::descendants(server.pid()), []);
        return;
    }
    let id = reply.data()["session_id"].clone();
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let id = id.as_str().expect("a session id");
    let events = walk::events(&server, id).await;
    assert!(events.iter().all(|event| event["kind"] != "session.warning"), "{events:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_browser_that_is_not_there_is_said() {
    let server = Server::start(Options::stdio().argument("--chromium", "/nonexistent/chromium")).await;
    let reply = server.fault("launch_session", json!({"slug": "none"}), "BROWSER_NOT_INSTALLED").await;
    assert!(reply["details"]["remedy"].as_str().is_some_and(|remedy| remedy.contains("chromium")), "{reply}");
    assert_eq!(server.ok("list_sessions", json!({})).await, json!([]), "its place is free again");
}

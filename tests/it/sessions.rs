//! Sessions are apart from each other; within one, calls run in order, keep their deadlines, and can be
//! taken back.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{LIMIT, Options, Server, processes, wait_for, walk};

/// Runs until the site is told to let go.
const HOLD: &str = "fetch('/hold').then(answer => answer.text())";

async fn kinds_of(server: &Server, id: &str, kind: &str) -> Vec<Value> {
    walk::all(server, "list_events", "events", json!({"session_id": id, "kinds": [kind]}), 500).await
}

#[tokio::test(flavor = "multi_thread")]
async fn places_and_names_are_kept() {
    let server = Server::start(Options::stdio().argument("--max-instances", 2)).await;
    let created = server.ok("browser_create_instance", json!({"name": "main", "window": [800, 600]})).await;
    assert_eq!((&created["name"], &created["status"]), (&json!("main"), &json!("live")));
    let again = server.fault("browser_create_instance", json!({"name": "main"}), "SESSION_ALREADY_EXISTS").await;
    assert_eq!(again["details"]["session_id"], "main");
    let id = server.launch().await;
    let full = server.fault("launch_session", json!({"slug": "third"}), "SESSION_LIMIT_REACHED").await;
    assert_eq!((&full["details"]["limit"], &full["details"]["live"]), (&json!(2), &json!(2)));
    let size = server.ok("evaluate", json!({"session_id": "main", "expression": "[innerWidth, innerHeight]"})).await;
    assert_eq!(size["result"], json!([800, 600]), "an instance's name serves as session_id");
    let listed = server.ok("browser_list_instances", json!({})).await;
    assert_eq!(listed["instances"].as_array().map(Vec::len), Some(2), "{listed}");
    server.ok("browser_destroy_instance", json!({"name": "main"})).await;
    server.fault("evaluate", json!({"session_id": "main", "expression": "1"}), "SESSION_CLOSED").await;
    server.ok("browser_create_instance", json!({"name": "main"})).await;

    assert_eq!(server.ok("close_session", json!({"session_id": id})).await["closed"], true);
    assert_eq!(server.ok("close_session", json!({"session_id": id})).await["closed"], false);
    server.fault("navigate", json!({"session_id": id, "url": "about:blank"}), "SESSION_CLOSED").await;
    let left = server.ok("list_sessions", json!({})).await;
    assert_eq!(left.as_array().map(Vec::len), Some(1), "{left}");
    assert!(!kinds_of(&server, &id, "session.warning").await.is_empty(), "running without a sandbox is on record");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_had_is_refused_by_name() {
    let server = Server::start(Options::stdio()).await;
    let create = |more: Value| {
        let mut arguments = json!({"name": "never"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        ("browser_create_instance", arguments)
    };
    let launch = |more: Value| {
        let mut arguments = json!({"slug": "never"});
        arguments.as_object_mut().expect("an object").extend(more.as_object().expect("an object").clone());
        ("launch_session", arguments)
    };
    let cases = [
        (create(json!({"firefox_user_prefs": {"a": 1}})), "UNSUPPORTED_CAPABILITY"),
        (create(json!({"geoip": true})), "UNSUPPORTED_CAPABILITY"),
        (create(json!({"headless": "virtual"})), "UNSUPPORTED_CAPABILITY"),
        (create(json!({"camoufox_args": ["--remote-debugging-port=9222"]})), "UNSAFE_LAUNCH_ARG"),
        (create(json!({"camoufox_args": ["--no-sandbox"]})), "UNSAFE_LAUNCH_ARG"),
        (create(json!({"profile_dir": "../outside"})), "PATH_NOT_ALLOWED"),
        (create(json!({"window": [0, 1]})), "INVALID_ARGUMENTS"),
        (launch(json!({"stealth": true})), "UNSUPPORTED_CAPABILITY"),
        (launch(json!({"launch_options": {"executablePath": "/bin/sh"}})), "UNSAFE_LAUNCH_ARG"),
        (launch(json!({"launch_options": {"args": ["--user-data-dir=/tmp/x"]}})), "UNSAFE_LAUNCH_ARG"),
        (launch(json!({"persistence_mode": "persistent", "incognito": true})), "INVALID_PERSISTENCE_CONFIG"),
        (launch(json!({"context_options": {"geolocation": {}}})), "UNSUPPORTED_CAPABILITY"),
        (launch(json!({"slug": "Not A Slug"})), "INVALID_SLUG"),
        (launch(json!({"channel": "lynx"})), "UNKNOWN_CHANNEL"),
        (launch(json!({"slug": "Not A Slug", "channel": "lynx"})), "INVALID_ARGUMENTS"),
        (launch(json!({"slug": 5})), "INVALID_ARGUMENTS"),
    ];
    for ((tool, arguments), code) in cases {
        server.fault(tool, arguments, code).await;
    }
    assert_eq!(processes::descendants(server.pid()), [], "nothing was started");
    assert_eq!(server.ok("list_sessions", json!({})).await, json!([]));
}

#[tokio::test(flavor = "multi_thread")]
async fn one_session_never_holds_up_another() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let slow = server.launch_at(&site.url("/plain.html")).await;
    let quick = server.launch_at(&site.url("/plain.html")).await;
    let held = server.begin("evaluate", json!({"session_id": slow, "expression": HOLD})).await;
    site.arrived("/hold").await;
    server.ok("evaluate", json!({"session_id": quick, "expression": "1"})).await;
    // Evidence is read beside the lane.
    assert!(!walk::requests(&server, &slow).await.is_empty());
    server.ok("list_tabs", json!({"session_id": slow})).await;
    site.release();
    assert_eq!(held.reply().await.data()["result"], "released\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lane_keeps_its_order() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let held = server.begin("evaluate", json!({"session_id": id, "expression": HOLD})).await;
    site.arrived("/hold").await;
    let mut queued = Vec::new();
    for n in 0..8 {
        let push = format!("(window.order ??= []).push({n})");
        queued.push(server.begin("evaluate", json!({"session_id": id, "expression": push})).await);
        wait_for("it stands in the lane", || async {
            let info = server.ok("session_info", json!({"session_id": id})).await;
            (info["queue_depth"] == n + 1).then_some(())
        })
        .await;
    }
    site.release();
    assert!(!held.reply().await.is_error);
    for (n, call) in queued.into_iter().enumerate() {
        assert_eq!(call.reply().await.data()["result"], n + 1);
    }
    let order = server.ok("evaluate", json!({"session_id": id, "expression": "window.order"})).await;
    assert_eq!(order["result"], json!([0, 1, 2, 3, 4, 5, 6, 7]));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deadline_counts_the_queue_and_a_lane_has_an_end() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--lane-depth", 2)).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    let held = server.begin("evaluate", json!({"session_id": id, "expression": HOLD})).await;
    site.arrived("/hold").await;
    let late = server.call("click", json!({"session_id": id, "selector": "#save", "timeout": 200})).await;
    assert_eq!((late.code(), late.operation("outcome")), ("OPERATION_TIMEOUT", "not_started"));
    assert_eq!(late.structured["details"], json!({"timeout_ms": 200, "phase": "queued"}));
    let mut waiting = Vec::new();
    for _ in 0..2 {
        waiting.push(server.begin("evaluate", json!({"session_id": id, "expression": "1"})).await);
    }
    wait_for("both wait", || async {
        let info = server.ok("session_info", json!({"session_id": id})).await;
        (info["queue_depth"] == 2).then_some(())
    })
    .await;
    server.fault("evaluate", json!({"session_id": id, "expression": "2"}), "SESSION_BUSY").await;
    site.release();
    held.reply().await;
    for call in waiting {
        assert!(!call.reply().await.is_error);
    }
    assert!(walk::texts(&walk::console(&server, &id).await).is_empty(), "the late click never touched the page");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_taken_back_in_the_queue_touches_nothing() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let held = server.begin("evaluate", json!({"session_id": id, "expression": HOLD})).await;
    site.arrived("/hold").await;
    let queued = server.begin("evaluate", json!({"session_id": id, "expression": "window.touched = true"})).await;
    wait_for("it waits", || async {
        let info = server.ok("session_info", json!({"session_id": id})).await;
        (info["queue_depth"] == 1).then_some(())
    })
    .await;
    queued.cancel().await;
    let cancelled =
        wait_for("it is taken back", || async { kinds_of(&server, &id, "call.cancelled").await.pop() }).await;
    assert_eq!(cancelled["data"]["phase"], "queued");
    site.release();
    held.reply().await;
    let touched = server.ok("evaluate", json!({"session_id": id, "expression": "typeof window.touched"})).await;
    assert_eq!(touched["result"], "undefined");
    let asked = json!({"session_id": id, "operation_id": cancelled["operation_id"]});
    let story = walk::all(&server, "list_events", "events", asked, 500).await;
    let kinds: Vec<&str> = story.iter().filter_map(|event| event["kind"].as_str()).collect();
    assert_eq!(kinds, ["call.accepted", "call.cancelled", "call.settled"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_call_taken_back_while_running_ends_on_record() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let reading = json!({"session_id": id, "selector": "#never", "timeout": 90_000});
    let reading = server.begin_running("wait_for_selector", reading).await;
    reading.cancel().await;
    // The lane is free at once: nobody waits for what only reads.
    let next = server.ok("evaluate", json!({"session_id": id, "expression": "1"}));
    tokio::time::timeout(LIMIT, next).await.expect("the lane is free");

    let acting = server.begin("evaluate", json!({"session_id": id, "expression": HOLD})).await;
    site.arrived("/hold").await;
    acting.cancel().await;
    wait_for("both are taken back", || async {
        (kinds_of(&server, &id, "call.cancelled").await.len() == 2).then_some(())
    })
    .await;
    site.release();
    // What acts is let finish, and its outcome is kept.
    server.ok("evaluate", json!({"session_id": id, "expression": "2"})).await;
    let settled = kinds_of(&server, &id, "call.settled").await;
    let outcomes: Vec<(&str, &str)> = settled
        .iter()
        .filter_map(|event| Some((event["data"]["tool"].as_str()?, event["data"]["outcome"].as_str()?)))
        .filter(|(tool, _)| ["wait_for_selector", "evaluate"].contains(tool))
        .collect();
    assert_eq!(outcomes.len(), 4, "{outcomes:?}");
    assert_eq!(outcomes[1..], [("evaluate", "completed"); 3]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_browser_fails_its_calls_and_nothing_else() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let other = server.launch_at(&site.url("/plain.html")).await;
    let others = processes::children(server.pid());
    let id = server.launch_at(&site.url("/plain.html")).await;
    let main = processes::browser(server.pid(), &others);
    let mut family = processes::descendants(main.pid);
    family.push(main);
    let held = server.begin("evaluate", json!({"session_id": id, "expression": HOLD})).await;
    site.arrived("/hold").await;
    let killed = Instant::now();
    processes::signal(main.pid, "KILL").await;
    let reply = held.reply().await;
    assert!(killed.elapsed() < Duration::from_secs(3), "it took {:?}", killed.elapsed());
    assert_eq!((reply.code(), reply.operation("outcome")), ("BROWSER_CRASHED", "unknown"), "{}", reply.structured);
    // A call that comes while the death is still being taken in may be told as the first one was.
    let next = server.call("evaluate", json!({"session_id": id, "expression": "1"})).await;
    assert!(["SESSION_DEAD", "BROWSER_CRASHED"].contains(&next.code()), "{}", next.structured);
    wait_for("nothing of the browser is left", || async { processes::alive(&family).is_empty().then_some(()) }).await;
    let crashed = wait_for("it is on record", || async { kinds_of(&server, &id, "session.crashed").await.pop() }).await;
    // A shell in between turns the signal into 128 + 9.
    assert!(crashed["data"]["signal"] == 9 || crashed["data"]["exit_code"] == 137, "{crashed}");
    wait_for("the session is closed", || async { kinds_of(&server, &id, "session.closed").await.pop() }).await;
    server.fault("evaluate", json!({"session_id": id, "expression": "1"}), "SESSION_DEAD").await;
    server.ok("evaluate", json!({"session_id": other, "expression": "1"})).await;
    server.launch_at(&site.url("/plain.html")).await;
}

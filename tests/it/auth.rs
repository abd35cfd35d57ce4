//! Saved logins: what a session logged in to, another session can start with. And the tools whose
//! other end is a person or a vault say that there is none.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

const SECRET: &str = "canary-login-9917";

async fn launch(server: &Server, arguments: Value) -> String {
    let mut all = json!({"slug": "login"});
    for (key, value) in arguments.as_object().expect("arguments").clone() {
        all[key] = value;
    }
    server.ok("launch_session", all).await["session_id"].as_str().expect("an id").to_owned()
}

async fn log_in(server: &Server, site: &Site) -> String {
    let id = server.launch_at(&site.url("/plain.html")).await;
    let cookies = json!([{"name": "sid", "value": SECRET, "url": site.url("/"), "httpOnly": true},
        {"name": "wide", "value": "w", "domain": ".wide.test", "path": "/", "secure": true}]);
    server.ok("set_cookies", json!({"session_id": id, "cookies": cookies})).await;
    server.ok("set_storage", json!({"session_id": id, "items": {"token": SECRET, "__proto__": "p"}})).await;
    server.ok("new_tab", json!({"session_id": id, "url": site.other_url("/plain.html")})).await;
    server.ok("set_storage", json!({"session_id": id, "items": {"other": "o"}})).await;
    id
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_is_saved_and_restored() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    assert_eq!(server.ok("list_saved_auths", json!({})).await, json!([]));
    let id = log_in(&server, &site).await;
    let before = server.ok("get_cookies", json!({"session_id": id})).await;
    let saved = server.ok("save_storage_state", json!({"session_id": id, "name": "shop.1"})).await;
    assert_eq!((&saved["name"], &saved["cookies"], &saved["origins"]), (&json!("shop.1"), &json!(2), &json!(2)));
    let path = std::path::Path::new(saved["path"].as_str().expect("a path"));
    let facts = std::fs::metadata(path).expect("the file");
    assert_eq!((facts.permissions().mode() & 0o777, json!(facts.len())), (0o600, saved["size"].clone()));
    let directory = path.parent().and_then(|parent| std::fs::metadata(parent).ok()).expect("its directory");
    assert_eq!(directory.permissions().mode() & 0o777, 0o700);
    let listed = server.ok("list_saved_auths", json!({})).await;
    assert_eq!(
        (&listed[0]["name"], &listed[0]["kind"], &listed[0]["size"]),
        (&json!("shop.1"), &json!("storage"), &saved["size"])
    );
    server.ok("close_session", json!({"session_id": id})).await;
    let asked = site.received().len();
    let restored =
        launch(&server, json!({"persistence_mode": "storage-state", "context_options": {"storageState": "shop.1"}}))
            .await;
    assert_eq!(site.received().len(), asked, "restoring asks nobody");
    assert_eq!(server.ok("get_cookies", json!({"session_id": restored})).await, before);
    let info = server.ok("session_info", json!({"session_id": restored})).await;
    assert_eq!(
        (&info["config"]["persistence_mode"], &info["current_url"]),
        (&json!("storage-state"), &json!("about:blank"))
    );
    for (url, items) in [
        (site.url("/json"), json!({"token": SECRET, "__proto__": "p"})),
        (site.other_url("/json"), json!({"other": "o"})),
    ] {
        server.ok("navigate", json!({"session_id": restored, "url": url})).await;
        assert_eq!(server.ok("get_storage", json!({"session_id": restored})).await["items"], items, "{url}");
    }
    let received = site.received_for("/json");
    assert!(received[0].header("cookie").is_some_and(|cookie| cookie.contains(SECRET)), "{received:?}");
    let back = server.ok("go_back", json!({"session_id": restored})).await;
    assert_eq!(back["url"], site.url("/json"));
    // The log knows how much it was, and nothing else.
    for (session, kind) in [(&id, "auth_state.saved"), (&restored, "auth_state.restored")] {
        let events = walk::events(&server, session).await;
        let event = events.iter().find(|event| event["kind"] == kind).unwrap_or_else(|| panic!("{kind}: {events:?}"));
        let data = &event["data"];
        assert_eq!(
            (&data["auth_name"], &data["cookies"], &data["origins"]),
            (&json!("shop.1"), &json!(2), &json!(2)),
            "{event}"
        );
    }
    let kept = path.to_owned();
    let data = server.stop().await.data;
    assert_eq!(data.files_with(SECRET), [kept], "the secret stands in the saved login alone");
}

#[tokio::test(flavor = "multi_thread")]
async fn logins_outlive_the_server_and_damage_is_refused() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = log_in(&server, &site).await;
    server.ok("save_storage_state", json!({"session_id": id, "name": "one"})).await;
    server.ok("save_storage_state", json!({"session_id": id, "name": "two"})).await;
    server
        .ok("set_cookies", json!({"session_id": id, "cookies": [{"name": "x", "value": "1", "url": site.url("/")}]}))
        .await;
    let again = server.ok("save_storage_state", json!({"session_id": id, "name": "one"})).await;
    assert_eq!(again["cookies"], 3, "a name is written over");
    for name in ["../one", "a/b", "..", ".hidden", "a..b", "", &"a".repeat(65), "\u{e9}"] {
        let code = if name.is_empty() { "INVALID_ARGUMENTS" } else { "PATH_NOT_ALLOWED" };
        server.fault("save_storage_state", json!({"session_id": id, "name": name}), code).await;
    }
    let path = again["path"].as_str().expect("a path").to_owned();
    let data = server.stop().await.data;
    let server = Server::start(Options::stdio().on(&data)).await;
    let names: Vec<Value> = server
        .ok("list_saved_auths", json!({}))
        .await
        .as_array()
        .expect("a list")
        .iter()
        .map(|row| row["name"].clone())
        .collect();
    assert_eq!(names, ["one", "two"], "newest first");
    let text = std::fs::read_to_string(&path).expect("the file");
    std::fs::write(&path, text.replace(SECRET, "canary-login-9918")).expect("it can be changed");
    let with = |state: Value| json!({"slug": "login", "context_options": {"storageState": state}});
    let fault = server.fault("launch_session", with(json!("one")), "AUTH_STATE_DAMAGED").await;
    assert_eq!(fault["details"]["name"], "one");
    let fault = server.fault("launch_session", with(json!("none")), "AUTH_STATE_NOT_FOUND").await;
    assert_eq!(fault["details"], json!({"name": "none", "kind": "storage"}));
    server.fault("launch_session", with(json!("../two")), "AUTH_STATE_NOT_FOUND").await;
    server.fault("launch_session", with(json!(7)), "INVALID_ARGUMENTS").await;
    server.fault("launch_session", with(json!({"cookies": [{"name": "a"}]})), "INVALID_ARGUMENTS").await;
    server
        .fault(
            "launch_session",
            with(json!({"cookies": [{"name": "__Host-a", "value": "1", "url": "http://a.test"}]})),
            "INVALID_ARGUMENTS",
        )
        .await;
    let mut persistent = with(json!("two"));
    persistent["persistence_mode"] = json!("persistent");
    server.fault("launch_session", persistent, "INVALID_PERSISTENCE_CONFIG").await;
    let profile = json!({"slug": "login", "restore_profile": "two"});
    server.fault("launch_session", profile, "INVALID_PERSISTENCE_CONFIG").await;
    let profile = json!({"slug": "login", "restore_profile": "two", "persistence_mode": "persistent"});
    server.fault("launch_session", profile, "AUTH_STATE_NOT_FOUND").await;
    assert_eq!(server.ok("list_sessions", json!({})).await, json!([]), "nothing is left of a refused launch");
    // Files that are none of ours are counted, not listed; there is room for so many.
    let directory = std::path::Path::new(&path).parent().expect("a directory");
    for at in 0..98 {
        std::fs::write(directory.join(format!("filler-{at}.storage.json")), "no login").expect("a file");
    }
    let listed = server.ok("list_saved_auths", json!({})).await;
    assert_eq!(listed.as_array().map(Vec::len), Some(2));
    let id = server.launch().await;
    let full = server.fault("save_storage_state", json!({"session_id": id, "name": "three"}), "LIMIT_EXCEEDED").await;
    assert_eq!(full["details"], json!({"limit": 100, "name": "auth_states"}));
    server.ok("save_storage_state", json!({"session_id": id, "name": "two"})).await;
}

/// A login may come with the call; it is not written down either.
#[tokio::test(flavor = "multi_thread")]
async fn a_login_may_come_with_the_call() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let given = json!({"cookies": [{"name": "sid", "value": "canary-given-3", "domain": "127.0.0.1", "path": "/"}],
        "origins": [{"origin": site.url(""), "localStorage": [{"name": "k", "value": "canary-given-4"}]}]});
    let id = launch(&server, json!({"context_options": {"storageState": given}})).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    assert_eq!(server.ok("get_storage", json!({"session_id": id})).await["items"], json!({"k": "canary-given-4"}));
    let events = walk::events(&server, &id).await;
    let telling = events.iter().find(|event| event.to_string().contains("canary-given"));
    assert_eq!(telling, None, "no event holds what was given");
    let data = server.stop().await.data;
    assert_eq!(data.files_with("canary-given"), Vec::<std::path::PathBuf>::new());
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_says_so() {
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let reason = json!({"session_id": id, "reason": "a captcha", "options": [1, {"any": "thing"}]});
    server.fault("request_attention", reason.clone(), "ATTENTION_REQUIRES_HTTP").await;
    server.fault("get_attention_result", json!({"request_id": "r"}), "ATTENTION_REQUIRES_HTTP").await;
    server.fault("request_attention", json!({"session_id": id, "reason": ""}), "INVALID_ARGUMENTS").await;
    server.fault("vault_list_available", json!({"session_id": id}), "VAULT_NOT_CONFIGURED").await;
    let fill = json!({"session_id": id, "entry_name": "e", "username_selector": "#u", "password_selector": "#p"});
    server.fault("vault_fill", fill, "VAULT_NOT_CONFIGURED").await;
    server.fault("vault_fill", json!({"session_id": id}), "INVALID_ARGUMENTS").await;
    server.fault("save_full_profile", json!({"session_id": id, "name": "p"}), "INVALID_PERSISTENCE_CONFIG").await;
    server.fault("save_full_profile", json!({"session_id": id, "name": "../p"}), "PATH_NOT_ALLOWED").await;
    let kept = launch(&server, json!({"slug": "kept", "persistence_mode": "persistent"})).await;
    server.fault("save_full_profile", json!({"session_id": kept, "name": "p"}), "UNSUPPORTED_CAPABILITY").await;
    drop(server);
    let server = Server::start(Options::http()).await;
    let fault = server.fault("request_attention", reason, "SESSION_NOT_FOUND").await;
    assert_eq!(fault["details"]["session_id"], id);
    let id = server.launch().await;
    let fault =
        server.fault("request_attention", json!({"session_id": id, "reason": "help"}), "UNSUPPORTED_CAPABILITY").await;
    assert!(fault["details"]["what"].as_str().is_some_and(|what| what.contains("operator")), "{fault}");
    server.fault("get_attention_result", json!({"request_id": "r"}), "UNSUPPORTED_CAPABILITY").await;
}

//! A session's own state: cookies, viewport, headers, storage. Their values go to the caller and the
//! browser and nowhere else.

use serde_json::{Value, json};
use storage::time::now_micros;

use crate::site::Site;
use crate::support::{Options, Server, walk};

const SECRET: &str = "canary-state-5521";

async fn value(server: &Server, id: &str, expression: &str) -> Value {
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await["result"].take()
}

async fn cookies(server: &Server, id: &str, urls: Value) -> Vec<Value> {
    let mut data = server.ok("get_cookies", json!({"session_id": id, "urls": urls})).await;
    serde_json::from_value(data["cookies"].take()).expect("a list")
}

/// No event holds `secret`; the log's own files are compressed, so that looking there proves little.
fn tells_nothing(events: &[Value], secret: &str) {
    let telling: Vec<String> = events.iter().map(Value::to_string).filter(|event| event.contains(secret)).collect();
    assert!(events.len() > 5 && telling.is_empty(), "{telling:?}");
}

fn problems(fault: &Value) -> Vec<&str> {
    let problems = fault["details"]["problems"].as_array().expect("problems");
    problems.iter().filter_map(|problem| problem["field"].as_str()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn cookies_are_set_read_and_sent() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    assert_eq!(cookies(&server, &id, Value::Null).await, Vec::<Value>::new());
    let later = now_micros() / 1_000_000 + 3_600;
    let given = json!([
        {"name": "plain", "value": SECRET, "url": site.url("/")},
        {"name": "hidden", "value": "h", "domain": "127.0.0.1", "path": "/json", "httpOnly": true, "sameSite": "Strict",
         "expires": later},
        {"name": "far", "value": "f", "domain": ".far.test", "path": "/", "secure": true, "sameSite": "None", "expires": -1},
        {"name": "part", "value": "p", "url": "https://in.test/", "secure": true, "sameSite": "None",
         "partitionKey": {"topLevelSite": "https://top.test", "hasCrossSiteAncestor": true}},
    ]);
    let added = server.ok("set_cookies", json!({"session_id": id, "cookies": given})).await;
    assert_eq!(added, json!({"added": 4}));
    let all = cookies(&server, &id, Value::Null).await;
    let named =
        |name: &str| all.iter().find(|cookie| cookie["name"] == name).unwrap_or_else(|| panic!("{name}: {all:?}"));
    let plain = json!({"name": "plain", "value": SECRET, "domain": "127.0.0.1", "path": "/", "expires": -1,
        "httpOnly": false, "secure": false, "sameSite": "Lax"});
    assert_eq!(*named("plain"), plain);
    let hidden = named("hidden");
    assert_eq!(
        (&hidden["httpOnly"], &hidden["sameSite"], &hidden["path"]),
        (&json!(true), &json!("Strict"), &json!("/json"))
    );
    assert_eq!(hidden["expires"].as_f64(), Some(later as f64));
    assert_eq!(named("far")["domain"], ".far.test");
    assert_eq!(named("part")["partitionKey"]["topLevelSite"], "https://top.test");
    let names = |cookies: &[Value]| -> Vec<String> {
        let mut names: Vec<String> =
            cookies.iter().filter_map(|cookie| cookie["name"].as_str().map(str::to_owned)).collect();
        names.sort();
        names
    };
    assert_eq!(names(&cookies(&server, &id, json!([site.url("/x")])).await), ["plain"]);
    assert_eq!(
        names(&cookies(&server, &id, json!([site.url("/json?a"), "https://deep.far.test/"])).await),
        ["far", "hidden", "plain"]
    );
    assert_eq!(names(&cookies(&server, &id, json!(["http://far.test/"])).await), Vec::<String>::new());
    assert_eq!(names(&cookies(&server, &id, json!([])).await), Vec::<String>::new());
    let wrong = server
        .fault("get_cookies", json!({"session_id": id, "urls": [site.url("/"), "nowhere"]}), "INVALID_ARGUMENTS")
        .await;
    assert_eq!(problems(&wrong), ["urls.1"]);
    // The server gets what the page may not see.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json")})).await;
    let sent = site.received_for("/json")[0].header("cookie").unwrap_or_default().to_owned();
    assert!(sent.contains("hidden=h") && sent.contains(&format!("plain={SECRET}")), "{sent}");
    assert_eq!(value(&server, &id, "document.cookie").await, format!("plain={SECRET}"));
    // What was read can be set again, and an end that has passed removes.
    let mut again = all.clone();
    again[0]["expires"] = json!(1);
    server.ok("set_cookies", json!({"session_id": id, "cookies": again})).await;
    let left = cookies(&server, &id, Value::Null).await;
    assert_eq!(left.len(), 3, "{left:?}");
    assert!(left.iter().all(|cookie| all.contains(cookie)), "{left:?} {all:?}");
    tells_nothing(&walk::events(&server, &id).await, SECRET);
    let data = server.stop().await.data;
    assert_eq!(data.files_with(SECRET), Vec::<std::path::PathBuf>::new(), "no value is written down");
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_cookies_are_refused_by_position() {
    let server = Server::start(Options::stdio()).await;
    let id = server.launch().await;
    let fine = json!({"name": "fine", "value": "1", "domain": "a.test", "path": "/"});
    let refused = async |cookies: Value| {
        let fault =
            server.fault("set_cookies", json!({"session_id": id, "cookies": cookies}), "INVALID_ARGUMENTS").await;
        problems(&fault).into_iter().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(refused(json!([])).await, ["cookies"]);
    assert_eq!(
        refused(json!([fine, {"value": "1", "url": "http://a.test"}, 7])).await,
        ["cookies.1.name", "cookies.2"]
    );
    let wrong = [
        (json!({"name": "a", "value": "1"}), "domain"),
        (json!({"name": "a", "value": "1", "domain": "a.test"}), "domain"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "domain": "a.test"}), "url"),
        (json!({"name": "a", "value": "1", "url": "about:blank"}), "url"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "sameSite": "lax"}), "sameSite"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "sameSite": "None"}), "sameSite"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "expires": "soon"}), "expires"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "expires": -7}), "expires"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "httpOnly": "yes"}), "httpOnly"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "colour": "red"}), "colour"),
        (json!({"name": "a", "value": "1", "url": "http://a.test", "partitionKey": 1}), "partitionKey"),
    ];
    let given: Vec<&Value> = wrong.iter().map(|(cookie, _)| cookie).collect();
    let fields: Vec<String> = wrong.iter().enumerate().map(|(at, (_, key))| format!("cookies.{at}.{key}")).collect();
    assert_eq!(refused(json!(given)).await, fields);
    // What only Chromium knows to be wrong.
    let prefixed = json!({"name": "__Host-x", "value": "1", "url": "http://a.test/"});
    let broken = json!({"name": "a\nb", "value": "1", "url": "http://a.test/"});
    assert_eq!(refused(json!([fine, prefixed, fine, broken])).await, ["cookies.1", "cookies.3"]);
    assert_eq!(cookies(&server, &id, Value::Null).await, Vec::<Value>::new(), "nothing of a refused call is set");
}

/// Cookies that do not fit a reply are not kept in a file in its place.
#[tokio::test(flavor = "multi_thread")]
async fn cookies_never_become_an_artifact() {
    let server = Server::start(Options::stdio().argument("--max-result-bytes", 4096)).await;
    let id = server.launch().await;
    let big = |at: usize| json!({"name": format!("c{at}"), "value": "v".repeat(3_000), "domain": format!("s{at}.test"), "path": "/"});
    server.ok("set_cookies", json!({"session_id": id, "cookies": [big(0), big(1)]})).await;
    let told = server.ok_reply("get_cookies", json!({"session_id": id})).await;
    let cookies = told.structured["data"]["cookies"].as_array().expect("cookies");
    for (at, cookie) in cookies.iter().enumerate() {
        let told = (&cookie["name"], &cookie["value"], &cookie["value_bytes"], &cookie["truncated"]);
        assert_eq!(told, (&json!(format!("c{at}")), &Value::Null, &json!(3_000), &json!(true)));
    }
    assert_eq!((cookies.len(), told.structured["data"].get("omitted")), (2, None));
    assert_eq!(told.structured["operation"]["artifacts"], json!([]));
    let many: Vec<Value> =
        (2..60).map(|at| json!({"name": format!("c{at}"), "value": "v", "domain": "t.test", "path": "/"})).collect();
    server.ok("set_cookies", json!({"session_id": id, "cookies": many})).await;
    let told = server.ok("get_cookies", json!({"session_id": id})).await;
    let shown = told["cookies"].as_array().map_or(0, Vec::len) as u64;
    assert_eq!(told["omitted"].as_u64().map(|omitted| omitted + shown), Some(60), "each is shown or counted");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_viewport_is_set_for_one_tab() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let size = "[innerWidth, innerHeight]";
    let before = value(&server, &id, size).await;
    let set = server.ok("set_viewport", json!({"session_id": id, "width": 640, "height": 360})).await;
    assert_eq!(set, json!({"session_id": id, "width": 640, "height": 360}));
    assert_eq!(value(&server, &id, size).await, json!([640, 360]));
    server.ok("navigate", json!({"session_id": id, "url": site.url("/form.html")})).await;
    assert_eq!(value(&server, &id, size).await, json!([640, 360]), "it outlives the document");
    let clamped = server.ok("set_viewport", json!({"session_id": id, "width": 123_456, "height": 90})).await;
    assert_eq!(clamped, json!({"session_id": id, "width": 10_000, "height": 90, "clamped": true}));
    let tab = server.ok("new_tab", json!({"session_id": id})).await["tab_id"].take();
    assert_eq!(value(&server, &id, size).await, before, "another tab has its own");
    server.ok("set_viewport", json!({"session_id": id, "width": 1, "height": 1, "tab_id": tab})).await;
    for (arguments, field) in [
        (json!({"session_id": id, "width": 0, "height": 5}), "width"),
        (json!({"session_id": id, "width": 5, "height": -5}), "height"),
        (json!({"session_id": id, "width": 5.5, "height": 5}), "width"),
    ] {
        let fault = server.fault("set_viewport", arguments, "INVALID_ARGUMENTS").await;
        assert_eq!(problems(&fault), [field]);
    }
    let none = json!({"session_id": id, "width": 5, "height": 5, "tab_id": "t-none"});
    server.fault("set_viewport", none, "TAB_NOT_FOUND").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn headers_hold_for_every_tab() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let headers = json!({"X-Team": SECRET, "Accept-Language": "eo", "Host": "evil.test", "cookie": "a=b", "sec-fetch-site": "none",
        "proxy-authorization": "x", "Bad Name": "x", "X-Bad": "a\r\nb", "": "x"});
    let set = server.ok("set_extra_http_headers", json!({"session_id": id, "headers": headers})).await;
    assert_eq!(set["applied"], 2);
    assert_eq!(
        set["rejected"],
        json!(["Host", "cookie", "sec-fetch-site", "proxy-authorization", "Bad Name", "X-Bad", ""])
    );
    let sent = |path: &str, header: &str| {
        let received = site.received_for(path);
        received.last().unwrap_or_else(|| panic!("{path} was asked for")).header(header).map(str::to_owned)
    };
    // The tab there is, a new one, one that a page opens, a frame of another site, and fetch.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?old")})).await;
    assert_eq!(sent("/json", "x-team").as_deref(), Some(SECRET));
    assert_eq!(sent("/json", "accept-language").as_deref(), Some("eo"));
    server.ok("new_tab", json!({"session_id": id, "url": site.url("/text")})).await;
    assert_eq!(sent("/text", "x-team").as_deref(), Some(SECRET));
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let script = format!(
        "(async () => {{ const code = `fetch('${{location.origin}}/status/201').then(() => postMessage(1))`; \
         await new Promise(done => {{ const worker = new Worker(URL.createObjectURL(new Blob([code]))); \
         worker.onmessage = done }}); window.open('{}'); await fetch('/echo'); const f = document.createElement('iframe'); \
         await new Promise(done => {{ f.onload = done; f.src = '{}'; document.body.append(f) }}) }})()",
        site.url("/binary?opened"),
        site.other_url("/big")
    );
    value(&server, &id, &script).await;
    crate::support::wait_for("the popup asks", || async { site.received_for("/binary").pop() }).await;
    for path in ["/binary", "/echo", "/big", "/status/201"] {
        assert_eq!(sent(path, "x-team").as_deref(), Some(SECRET), "{path}");
    }
    // Another call takes the place of the one before.
    let set = json!({"session_id": id, "headers": {"x-other": "1", "X-Other": "2"}});
    assert_eq!(server.ok("set_extra_http_headers", set).await["applied"], 1);
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?new")})).await;
    assert_eq!((sent("/json", "x-team"), sent("/json", "x-other").as_deref()), (None, Some("2")));
    server.ok("set_extra_http_headers", json!({"session_id": id, "headers": {}})).await;
    server.ok("navigate", json!({"session_id": id, "url": site.url("/json?none")})).await;
    assert_eq!(sent("/json", "x-other"), None);
    let fault = server
        .fault("set_extra_http_headers", json!({"session_id": id, "headers": {"a": 1}}), "INVALID_ARGUMENTS")
        .await;
    assert_eq!(problems(&fault), ["headers.a"]);
    let events = walk::events(&server, &id).await;
    let accepted = events.iter().filter(|event| event["kind"] == "call.accepted").map(Value::to_string);
    let told: Vec<String> = accepted.filter(|event| event.contains("set_extra_http_headers")).collect();
    assert!(told.len() == 4 && told.iter().all(|event| !event.contains(SECRET)), "{told:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn storage_is_the_origins_own() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let items = json!({"token": "t1", "__proto__": "p", "": "empty", "\u{e9}\u{1f600}": "\u{1f601}"});
    let set = server.ok("set_storage", json!({"session_id": id, "items": items})).await;
    assert_eq!(set, json!({"session_id": id, "origin": site.url(""), "set": 4}));
    assert_eq!(
        value(&server, &id, "[localStorage.length, localStorage.token, localStorage.getItem('__proto__')]").await,
        json!([4, "t1", "p"])
    );
    let got = server.ok("get_storage", json!({"session_id": id})).await;
    assert_eq!((&got["items"], &got["count"]), (&items, &json!(4)));
    let one = server.ok("get_storage", json!({"session_id": id, "key": "token"})).await;
    assert_eq!(one["items"], json!({"token": "t1"}));
    assert_eq!(server.ok("get_storage", json!({"session_id": id, "key": "none"})).await["count"], 0);
    // The other area, and the other origin, are others.
    let session = json!({"session_id": id, "area": "session", "items": {"s": "1"}});
    server.ok("set_storage", session).await;
    assert_eq!(value(&server, &id, "[sessionStorage.s, sessionStorage.length]").await, json!(["1", 1]));
    server.ok("navigate", json!({"session_id": id, "url": site.other_url("/plain.html")})).await;
    assert_eq!(server.ok("get_storage", json!({"session_id": id})).await["count"], 0);
    server.ok("navigate", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    let removed = server.ok("clear_storage", json!({"session_id": id, "keys": ["token", "none", ""]})).await;
    assert_eq!(removed["removed"], 2);
    assert_eq!(value(&server, &id, "localStorage.length").await, 2);
    assert_eq!(server.ok("clear_storage", json!({"session_id": id})).await["removed"], 2);
    assert_eq!(
        server.ok("get_storage", json!({"session_id": id, "area": "session"})).await["items"],
        json!({"s": "1"})
    );
    let wrong = server.fault("set_storage", json!({"session_id": id, "items": {"a": 1}}), "INVALID_ARGUMENTS").await;
    assert_eq!(problems(&wrong), ["items.a"]);
    let much = json!({"session_id": id, "items": {"big": "x".repeat(12_000_000)}});
    server.fault("set_storage", much, "UNSUPPORTED_CAPABILITY").await;
    server.ok("new_tab", json!({"session_id": id})).await;
    server.fault("get_storage", json!({"session_id": id}), "UNSUPPORTED_CAPABILITY").await;
    server.fault("get_storage", json!({"session_id": id, "tab_id": "t-none"}), "TAB_NOT_FOUND").await;
}

//! Each tool of the list, on a page that makes all that tools tell of it as large as it can be: titles,
//! addresses, texts, names, keys, cookies, tabs, frames, files.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use super::BYTES_MAX;
use crate::every_tool::arguments;
use crate::site::Site;
use crate::support::{Options, Server, walk};

/// What grows most when it is written as JSON twice, and half a pair for good measure.
const AWKWARD: &str = r#"'"\\<\u0001\u0007\n\u00e9\u{1f600}\ud800'"#;

/// A page of large things. Each step stands for itself, so that one that fails is named.
const STEPS: &[&str] = &[
    "document.title = AWKWARD.repeat(3000)",
    "history.replaceState(0, '', '?' + 'q'.repeat(60000) + '#' + encodeURIComponent(WIDE.repeat(2000)))",
    "document.body.innerHTML = '<button id=hidden hidden>no</button><button id=go>Go</button>'
        + '<input id=field><input id=file type=file><input type=checkbox><select id=choice><option>a</select>'
        + '<a id=file-link href=# download>file</a><p id=words></p><div id=many></div>'",
    "document.querySelector('#go').onclick = () => console.log(AWKWARD.repeat(5000))",
    "document.querySelector('#words').textContent = ('needle ' + AWKWARD.repeat(40)).repeat(100)",
    "document.querySelector('#choice').innerHTML = ('<option>' + WIDE.repeat(300) + '</option>').repeat(20)",
    "for (let n = 0; n < 100; n++) document.querySelector('#many').append(
        Object.assign(document.createElement('button'), {className: 'alike', ariaLabel: AWKWARD.repeat(100) + n}))",
    "for (let n = 0; n < 20; n++) document.body.append(
        Object.assign(document.createElement('iframe'), {name: AWKWARD.repeat(50) + n, srcdoc: '<p>frame'}))",
    "for (let n = 0; n < 300; n++) localStorage.setItem(AWKWARD + n, AWKWARD.repeat(200))",
    "for (let n = 0; n < 40; n++) document.cookie = 'c' + n + '=' + 'v'.repeat(3000)",
    "for (let n = 0; n < 200; n++) console.error(n, AWKWARD.repeat(500))",
    "setTimeout(() => { throw new Error(AWKWARD.repeat(5000)) }); null",
    "Promise.all(Array.from({length: 60}, (_, n) =>
        fetch('/big?' + n + 'u'.repeat(5000), {headers: {'x-long': 'h'.repeat(9000)}}).then(r => r.text())))
        .then(() => 'fetched')",
    "document.querySelector('#file-link').href = URL.createObjectURL(new Blob([AWKWARD]));
        document.querySelector('#file-link').download = WIDE.repeat(80) + '.bin'; null",
];

fn script(step: &str) -> String {
    format!("{{ const AWKWARD = {AWKWARD}, WIDE = '\\u00e9\\u{{1f600}}\"'; {step} }}")
}

/// What is asked of a tool besides what its schema demands, where the plain example would say little.
fn larger(tool: &str, ids: &Map<String, Value>) -> Vec<Value> {
    let long = "s".repeat(20_000);
    let mut asked = match tool {
        "click" => vec![
            json!({"selector": "#go", "include_snapshot": true}),
            json!({"selector": ".alike", "timeout": 3000}),
            json!({"selector": long, "timeout": 300}),
            json!({"selector": "#go", "wait_for": {"kind": "text", "text": long, "timeout": 100}}),
        ],
        "hover" | "type_text" | "press_key" => vec![json!({"selector": "#field", "include_snapshot": true})],
        "fill" => vec![json!({"selector": "#field", "value": "\u{1}\"\\".repeat(20_000), "include_snapshot": true})],
        "fill_form" => {
            let fields: Vec<Value> = (0..100).map(|_| json!({"selector": ".alike", "value": "x"})).collect();
            vec![json!({"fields": fields, "timeout": 2000})]
        }
        "select_option" => vec![
            json!({"selector": "#choice", "values": [long], "timeout": 300}),
            json!({"selector": "#hidden", "values": ["a"], "timeout": 300}),
        ],
        "verify" => vec![
            json!({"kind": "text", "text": long, "timeout": 100}),
            json!({"kind": "list", "selector": "#choice", "items": [long, "b"], "timeout": 100}),
            json!({"kind": "value", "selector": "#field", "value": long, "timeout": 100}),
        ],
        "find_in_page" => vec![json!({"text": "needle", "limit": 100})],
        "evaluate" => vec![
            json!({"expression": script("AWKWARD.repeat(50000)")}),
            json!({"expression": "Object.fromEntries(Array.from({length: 2000}, (_, n) => ['\\u0001\"'.repeat(9) + n, {n}]))"}),
            json!({"expression": script("throw new Error(AWKWARD.repeat(50000))")}),
            json!({"expression": format!("{}(", long)}),
        ],
        "get_storage" => vec![json!({}), json!({"key": "nothing"})],
        "set_storage" => vec![json!({"items": {long.clone(): long}})],
        "clear_storage" => vec![json!({"keys": [long]})],
        "set_cookies" => vec![json!({"cookies": vec![json!({"name": long, "value": "v"}); 50]})],
        "set_extra_http_headers" => {
            let headers: Map<String, Value> = (0..100).map(|n| (format!("host {n} {long}"), json!("v"))).collect();
            vec![json!({"headers": headers})]
        }
        "upload_file" => vec![json!({"selector": "#file", "paths": vec![long; 20], "timeout": 1000})],
        "download_file" => vec![json!({"trigger_selector": "#hidden", "timeout": 300})],
        "snapshot" => vec![json!({}), json!({"interactive_only": true}), json!({"max_bytes": 1_000_000})],
        "set_viewport" => vec![json!({"width": 800, "height": 600})],
        "scroll" => vec![json!({"mode": "by", "dx": 0, "dy": 10})],
        "drag_and_drop" => vec![json!({"timeout": 300})],
        "new_tab" => vec![json!({"url": format!("about:blank#{long}")})],
        "wait_for_url" => vec![json!({"url": long, "timeout": 100})],
        "wait_for_text" => vec![json!({"text": long, "timeout": 100})],
        "wait_for_selector" => vec![json!({"selector": ".alike"}), json!({"selector": long, "timeout": 100})],
        "get_network_request" => {
            let parts = ["summary", "request_headers", "response_headers", "response_body", "timing", "redirects"];
            parts.map(|part| json!({"request_id": ids["request_id"], "part": part, "length": 1_000_000})).into()
        }
        "save_download" => vec![json!({"download_id": ids["download_id"]}), json!({"download_id": long})],
        "read_artifact" => vec![json!({"handle": ids["handle"], "length": 1_000_000}), json!({"handle": long})],
        "launch_session" => vec![json!({"slug": long}), json!({"slug": "x", "launch_options": {"args": [long]}})],
        "list_console_messages" | "list_network_requests" | "list_events" | "list_downloads" => {
            vec![json!({"limit": 500}), json!({"after": long}), json!({"limit": 1})]
        }
        _ => vec![json!({})],
    };
    // Names that nobody knows are told one by one.
    let unknown: Map<String, Value> = (0..200).map(|n| (format!("{}{n}", "unknown".repeat(40)), json!(n))).collect();
    asked.push(Value::Object(unknown));
    asked
}

/// Leaves the page.
const MOVES: &[&str] = &["navigate", "go_back", "go_forward", "reload"];

/// Ends the session, waits for a human, or is met by `launch_session`.
const LEFT_OUT: &[&str] = &["close_session", "browser_create_instance", "browser_destroy_instance"];

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_keeps_the_smallest_bound_where_everything_is_large() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--max-result-bytes", BYTES_MAX)).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    for step in STEPS {
        let reply = server.call("evaluate", json!({"session_id": id, "expression": script(step)})).await;
        assert!(!reply.is_error && reply.wire_bytes <= BYTES_MAX, "{step}: {}", reply.structured);
    }
    for _ in 0..12 {
        let opened = server.call("new_tab", json!({"session_id": id, "url": site.url("/plain.html")})).await;
        let title = script("document.title = AWKWARD.repeat(2000)");
        server.ok("evaluate", json!({"session_id": id, "tab_id": opened.data()["tab_id"], "expression": title})).await;
    }
    let tabs = walk_tabs(&server, &id).await;
    server.ok("switch_tab", json!({"session_id": id, "tab_id": tabs[0]})).await;
    let ids = ids(&server, &id).await;

    let mut met = BTreeSet::new();
    let mut problems = Vec::new();
    let tools = server.client().tools().await;
    for tool in &tools {
        let name = tool.name.as_ref();
        if LEFT_OUT.contains(&name) {
            continue;
        }
        let schema = Value::Object((*tool.input_schema).clone());
        let takes = |key: &str| schema["properties"].get(key).is_some();
        for mut more in larger(name, &ids) {
            // The large page stays where it is.
            if MOVES.contains(&name) {
                more["tab_id"] = tabs[1].clone();
            }
            if takes("session_id") {
                more["session_id"] = id.as_str().into();
            }
            let unknown = more.as_object().is_some_and(|more| more.len() > 100);
            let asked = if unknown { more } else { arguments(&schema, more) };
            let reply = server.call(name, asked).await;
            met.insert(name);
            let snapshot = &reply.structured["data"]["snapshot"];
            let continued = snapshot["tree"].is_string() && snapshot["next_cursor"].is_string();
            if !snapshot.is_null() && !continued {
                problems.push(format!("{name}: the snapshot has no part to read or none to go on with: {snapshot}"));
            }
            if reply.wire_bytes == 0 || reply.wire_bytes > BYTES_MAX {
                problems.push(format!("{name}: {} bytes: {:.300}", reply.wire_bytes, reply.text));
            }
            let unreachable = reply.code() == "RESULT_TOO_LARGE" && !reply.structured["details"]["handle"].is_string();
            if unreachable || reply.code() == "INTERNAL_ERROR" {
                problems.push(format!("{name}: {:.600}", reply.text));
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(met.len(), tools.len() - LEFT_OUT.len());
}

async fn walk_tabs(server: &Server, id: &str) -> Vec<Value> {
    let reply = server.call("list_tabs", json!({"session_id": id})).await;
    assert!(reply.wire_bytes <= BYTES_MAX, "{}", reply.wire_bytes);
    assert_eq!(reply.code(), "RESULT_TOO_LARGE", "as much as thirteen titles");
    let handle = reply.structured["details"]["handle"].as_str().expect("the whole is kept");
    let whole = walk::artifact(server, handle, 100_000).await;
    let tabs: Vec<Value> = serde_json::from_slice(&whole).expect("a list of tabs");
    assert_eq!(tabs.len(), 13, "no tab is left out");
    tabs.iter().map(|tab| tab["tab_id"].clone()).collect()
}

/// Something of each sort that is named by an id.
async fn ids(server: &Server, id: &str) -> Map<String, Value> {
    let download = json!({"session_id": id, "trigger_selector": "#file-link"});
    server.ok("download_file", download).await;
    let downloads = walk::all(server, "list_downloads", "downloads", json!({"session_id": id}), 500).await;
    let requests = walk::requests(server, id).await;
    let fetched = requests.iter().find(|row| row["url"].as_str().is_some_and(|url| url.contains("/big?")));
    let large = json!({"session_id": id, "expression": "'large '.repeat(100000)"});
    let kept = server.ok("evaluate", large).await;
    let found: BTreeMap<&str, &Value> = BTreeMap::from([
        ("download_id", &downloads[0]["download_id"]),
        ("request_id", &fetched.expect("a large request")["request_id"]),
        ("handle", &kept["result_artifact"]),
    ]);
    assert!(found.values().all(|value| value.is_string()), "{found:?}");
    found.into_iter().map(|(name, value)| (name.to_owned(), value.clone())).collect()
}

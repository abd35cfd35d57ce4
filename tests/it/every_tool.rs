//! Every fault that the contract documents for a tool can be met, under the name it documents.
//!
//! The pairs of tool and fault are the contract's; how to meet them is said here, and a pair that nobody
//! says anything of fails.

use std::collections::BTreeMap;

use rmcp::model::Tool as McpTool;
use serde_json::{Map, Value, json};

use crate::site::Site;
use crate::support::{Options, Server, processes, wait_for};

/// Faults that these tools never show, and why.
const NEVER: &[(&str, &str, &str)] = &[
    ("*", "SESSION_ACCESS_DENIED", "another owner's session answers as one that does not exist"),
    ("go_back", "NAVIGATION_FAILED", "history holds only what was reached once; tests/it/navigation.rs has the rest"),
    ("go_forward", "NAVIGATION_FAILED", "as go_back"),
    ("vault_fill", "VAULT_LOCKED", "there is no vault yet that could be locked"),
    ("launch_session", "BROWSER_NOT_INSTALLED", "needs a server of its own: tests/it/lifetime.rs"),
    ("launch_session", "SESSION_LIMIT_REACHED", "needs a server of its own: tests/it/sessions.rs"),
    ("launch_session", "SESSION_ALREADY_EXISTS", "needs a session of that id: tests/it/sessions.rs"),
    ("request_attention", "SESSION_NOT_FOUND", "what the server lacks is told first"),
    ("request_attention", "SESSION_DEAD", "what the server lacks is told first"),
    ("vault_list_available", "SESSION_NOT_FOUND", "what the server lacks is told first"),
    ("vault_list_available", "SESSION_DEAD", "what the server lacks is told first"),
    ("vault_fill", "SESSION_NOT_FOUND", "what the server lacks is told first"),
    ("vault_fill", "SESSION_DEAD", "what the server lacks is told first"),
];

/// The contract's faults by tool.
fn documented() -> BTreeMap<String, Vec<String>> {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/contract/tools.json");
    let text = std::fs::read_to_string(path).expect("the fixture");
    let contract: Value = serde_json::from_str(&text).expect("it is JSON");
    let tools = contract["tools"].as_array().expect("a list of tools").iter();
    let words = |value: &Value| serde_json::from_value(value.clone()).expect("a list of words");
    tools.map(|tool| (tool["name"].as_str().expect("a name").to_owned(), words(&tool["errors"]))).collect()
}

/// Arguments that fit the schema and nothing more: what is required, and `more`.
pub fn arguments(schema: &Value, more: Value) -> Value {
    let properties = schema["properties"].as_object().expect("an object").clone();
    let required: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let mut out = Map::new();
    for name in required {
        let example = match name {
            "selector" | "source_selector" | "target_selector" | "trigger_selector" => json!("#hidden"),
            "url" => json!("about:blank"),
            "mode" => json!("selector"),
            _ => example(&properties[name]),
        };
        out.insert(name.to_owned(), example);
    }
    for (name, value) in more.as_object().into_iter().flatten() {
        if properties.contains_key(name) {
            out.insert(name.clone(), value.clone());
        }
    }
    if out.get("mode") == Some(&json!("selector")) {
        out.insert("selector".into(), json!("#hidden"));
    }
    Value::Object(out)
}

fn example(schema: &Value) -> Value {
    if let Some(first) = schema["enum"].as_array().and_then(|choices| choices.first()) {
        return first.clone();
    }
    match schema["type"].as_str().unwrap_or("string") {
        "integer" | "number" => json!(schema["minimum"].as_i64().unwrap_or(0).max(1)),
        "boolean" => json!(false),
        "array" => json!([arguments_or_word(&schema["items"])]),
        "object" => json!({}),
        _ => json!("a"),
    }
}

fn arguments_or_word(schema: &Value) -> Value {
    if schema["type"] == "object" { arguments(schema, json!({})) } else { example(schema) }
}

/// What is done to meet a fault with any tool.
fn provocation(tool: &str, code: &str, session: &Sessions, site: &Site) -> Option<Value> {
    let id = &session.live;
    Some(match (tool, code) {
        (_, "SESSION_NOT_FOUND") => json!({"session_id": "nobody-12345678"}),
        (_, "SESSION_DEAD") => json!({"session_id": session.dead, "timeout": 2000}),
        (_, "TAB_NOT_FOUND") => json!({"session_id": id, "tab_id": "t-nobody", "timeout": 2000}),
        (_, "ELEMENT_NOT_ACTIONABLE") => {
            json!({"session_id": id, "selector": "#hidden", "source_selector": "#hidden", "timeout": 2000})
        }
        (_, "URL_BLOCKED") => json!({"session_id": id, "url": "http://refused.test/"}),
        ("reload", "NAVIGATION_FAILED") => return None,
        (_, "NAVIGATION_FAILED") => json!({"session_id": session.roaming, "url": "http://127.0.0.1:1/"}),
        ("go_back" | "go_forward" | "reload", "NAVIGATION_TIMEOUT") => return None,
        (_, "NAVIGATION_TIMEOUT") => {
            json!({"session_id": session.roaming, "url": site.url("/hold"), "timeout": 1500})
        }
        ("wait_for_load_state", "WAIT_TIMEOUT") => return None,
        (_, "WAIT_TIMEOUT") => json!({"session_id": id, "url": "http://nowhere.test/", "timeout": 300}),
        ("screenshot", "PATH_NOT_ALLOWED") => json!({"session_id": id, "save_path": "../outside.png"}),
        ("upload_file", "PATH_NOT_ALLOWED") => {
            json!({"session_id": id, "selector": "#file", "paths": ["/etc/passwd"], "timeout": 2000})
        }
        ("save_storage_state" | "save_full_profile", "PATH_NOT_ALLOWED") => {
            json!({"session_id": id, "name": "../outside"})
        }
        ("save_full_profile", "INVALID_PERSISTENCE_CONFIG") => json!({"session_id": id, "name": "kept"}),
        ("evaluate", "EVALUATE_DISABLED") => json!({"session_id": session.mute}),
        ("evaluate", "SCRIPT_ERROR") => json!({"session_id": id, "expression": "throw new Error('no')"}),
        ("set_cookies", "INVALID_ARGUMENTS") => json!({"session_id": id, "cookies": [{"name": "a", "value": "b"}]}),
        ("upload_file", "UPLOAD_FAILED") => return None,
        ("download_file", "DOWNLOAD_FAILED") => {
            json!({"session_id": id, "trigger_selector": "#nothing", "timeout": 2000})
        }
        (_, "ATTENTION_REQUIRES_HTTP" | "VAULT_NOT_CONFIGURED") => json!({"session_id": id}),
        ("launch_session", "UNSAFE_LAUNCH_ARG") => {
            json!({"slug": "never", "launch_options": {"args": ["--user-data-dir=/tmp/x"]}})
        }
        ("launch_session", "INVALID_SLUG") => json!({"slug": "No Slug"}),
        ("launch_session", "UNKNOWN_CHANNEL") => json!({"slug": "never", "channel": "lynx"}),
        ("launch_session", "INVALID_PERSISTENCE_CONFIG") => {
            json!({"slug": "never", "persistence_mode": "persistent", "incognito": true})
        }
        ("launch_session", "AUTH_STATE_NOT_FOUND") => {
            json!({"slug": "never", "restore_profile": "nobody", "persistence_mode": "persistent"})
        }
        _ => return None,
    })
}

/// Pairs that other modules meet by means of their own.
const ELSEWHERE: &[(&str, &str)] = &[
    ("reload", "NAVIGATION_FAILED"),
    ("reload", "NAVIGATION_TIMEOUT"),
    ("go_back", "NAVIGATION_TIMEOUT"),
    ("go_forward", "NAVIGATION_TIMEOUT"),
    ("wait_for_load_state", "WAIT_TIMEOUT"),
    ("upload_file", "UPLOAD_FAILED"),
];

struct Sessions {
    live: String,
    /// Goes elsewhere.
    roaming: String,
    /// Its browser was killed.
    dead: String,
    /// Without `evaluate`.
    mute: String,
}

const PAGE: &str =
    "document.body.innerHTML = '<button id=hidden hidden>No</button><input id=file type=file><p id=nothing>.</p>'";

async fn sessions(server: &Server, site: &Site) -> Sessions {
    let live = server.launch_at(&site.url("/plain.html")).await;
    server.ok("evaluate", json!({"session_id": live, "expression": PAGE})).await;
    let mute = server.ok("launch_session", json!({"slug": "mute", "disable_evaluate": true})).await;
    let mute = mute["session_id"].as_str().expect("an id").to_owned();
    let before = processes::children(server.pid());
    let dead = server.launch_at(&site.url("/plain.html")).await;
    processes::signal(processes::browser(server.pid(), &before).pid, "KILL").await;
    wait_for("the session is known to be dead", || async {
        let reply = server.call("list_tabs", json!({"session_id": dead})).await;
        (reply.code() == "SESSION_DEAD").then_some(())
    })
    .await;
    let roaming = server.launch().await;
    Sessions { live, roaming, dead, mute }
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_meets_its_documented_faults_by_name() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio().argument("--blocked-origins", "refused.test")).await;
    let sessions = sessions(&server, &site).await;
    let schemas: BTreeMap<String, Value> = server.client().tools().await.into_iter().map(schema_of).collect();
    let mut problems = Vec::new();
    let documented = documented();
    let faults = documented.values().map(Vec::len).sum::<usize>();
    assert!(
        documented.len() == 43 && faults > 4 * 43,
        "the contract names {faults} faults of {} tools",
        documented.len()
    );
    for (tool, codes) in documented {
        for code in codes {
            let known = NEVER.iter().any(|(of, never, _)| (*of == "*" || *of == tool) && *never == code)
                || ELSEWHERE.contains(&(tool.as_str(), code.as_str()));
            let more = provocation(&tool, &code, &sessions, &site);
            match more.filter(|_| !known) {
                None if known => {}
                None => problems.push(format!("{tool}: nobody says how to meet {code}")),
                Some(more) => {
                    let Some(schema) = schemas.get(&tool) else {
                        problems.push(format!("{tool} is not there"));
                        continue;
                    };
                    let asked = arguments(schema, more);
                    let reply = server.call(&tool, asked.clone()).await;
                    if reply.code() != code {
                        problems.push(format!("{tool} {asked}: {} instead of {code}", reply.structured));
                    }
                }
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

fn schema_of(tool: McpTool) -> (String, Value) {
    (tool.name.to_string(), Value::Object((*tool.input_schema).clone()))
}

#[tokio::test(flavor = "multi_thread")]
async fn each_tool_lists_wrong_arguments_by_field() {
    let server = Server::start(Options::stdio()).await;
    for tool in server.client().tools().await {
        let (name, schema) = schema_of(tool);
        let mut asked = arguments(&schema, json!({}));
        asked["no_such_argument"] = json!(1);
        let wrong: Vec<&str> = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        for field in &wrong {
            asked[*field] = json!({"not": ["this"]});
        }
        let fault = server.fault(&name, asked, "INVALID_ARGUMENTS").await;
        let problems = fault["details"]["problems"].to_string();
        for field in wrong.iter().chain(&["no_such_argument"]) {
            let takes_anything =
                schema["properties"][*field] == json!({}) || schema["properties"][*field]["type"] == "object";
            assert!(takes_anything || problems.contains(*field), "{name}: {field} is not named in {problems}");
        }
    }
}

//! The operator chooses which tools there are, and `tools/list` stays within what clients can carry.

use serde_json::{Value, json};

use crate::support::{Options, Server, program};

/// What `tools/list` may take with everything on, in bytes: it stands in every client's context.
const LIST_BYTES_MAX: usize = 64_000;
/// And with the core set.
const CORE_BYTES_MAX: usize = 24_000;

async fn listed(options: Options) -> (Vec<String>, usize, Server) {
    let server = Server::start(options).await;
    let tools = server.client().tools().await;
    let bytes = serde_json::to_string(&tools).expect("JSON").len();
    (tools.iter().map(|tool| tool.name.to_string()).collect(), bytes, server)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_list_has_its_bounds() {
    let (all, bytes, server) = listed(Options::stdio()).await;
    assert!(bytes <= LIST_BYTES_MAX, "{} tools take {bytes} bytes", all.len());
    let status = server.ok("server_status", json!({})).await;
    assert_eq!(status["tools"], all.len());
    assert!(status["packs"].as_array().is_some_and(|packs| packs.contains(&json!("evidence"))), "{status}");
    let (core, core_bytes, server) = listed(Options::stdio().argument("--packs", "core")).await;
    assert!(core_bytes < CORE_BYTES_MAX, "{} core tools take {core_bytes} bytes", core.len());
    for name in ["launch_session", "navigate", "click", "fill", "snapshot", "list_console_messages"] {
        assert!(core.iter().any(|tool| tool == name), "{name} is core");
    }
    assert!(core.len() < all.len() && core.iter().all(|name| all.contains(name)), "{core:?}");
    let id = server.launch().await;
    server.ok("close_session", json!({"session_id": id})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn packs_are_added_and_taken_away() {
    let options = Options::stdio().variable("BROWSER_MCP_PACKS", "Lifecycle, tabs,core");
    let (tools, _, server) = listed(options.argument("--no-packs", "evidence,inspection")).await;
    for name in ["list_sessions", "close_tab", "click"] {
        assert!(tools.iter().any(|tool| tool == name), "{name}: {tools:?}");
    }
    for name in ["list_console_messages", "snapshot", "server_status"] {
        assert!(tools.iter().all(|tool| tool != name), "{name}: {tools:?}");
        // What is not offered does not exist.
        let error = server.begin(name, json!({})).await.result().await.expect_err("it is not offered");
        assert!(error.to_string().contains("tools/list"), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_wrong_pack_stops_the_start() {
    let every = "lifecycle,introspection,navigation,tabs,interaction,inspection,waits,dialogs,state,files,auth,\
                 attention,vault,instances,evidence";
    for (arguments, said) in [
        (["--packs", "tabs,tubs"], "flag --packs: packs must be any of all, core, lifecycle"),
        (["--packs", ""], "packs must be any of"),
        (["--no-packs", "core"], "flag --no-packs: no_packs must be any of lifecycle"),
        (["--no-packs", every], "packs and no_packs leave no tool to offer"),
    ] {
        let output = program::run(&[&["serve"], &arguments[..]].concat()).await;
        assert_eq!(output.status.code(), Some(64), "{arguments:?}");
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(stderr.contains(said), "{arguments:?}: {stderr}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_reference_is_printed() {
    let markdown = program::run(&["tools", "--markdown"]).await;
    let text = String::from_utf8(markdown.stdout).expect("text");
    let (_, click) = text.split_once("## `click`").expect("click is there");
    let (click, _) = click.split_once("\n## ").expect("and others after it");
    for line in [
        "**Click**, pack `interaction`. ",
        "| `session_id` | string | yes |",
        "| `click_count` | integer | no | `1` | at least 1, at most 3 |",
        "| `ok` | true | yes |",
    ] {
        assert!(click.contains(line), "{line}: {click}");
    }
    let output = program::run(&["tools", "--json", "--packs", "core"]).await;
    let rows = String::from_utf8(output.stdout).expect("text");
    let rows: Vec<Value> = rows.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert!(rows.iter().all(|row| row["core"] == true && row["inputSchema"]["type"] == "object"), "{rows:?}");
    assert!(rows.len() > 15);
}

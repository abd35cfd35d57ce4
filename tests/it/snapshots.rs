//! Snapshots: what is shown, in parts of one moment, with references that live as long as their nodes.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// Ten rows a thousand times over, some with quotes, some in another script.
const MANY: &str = "document.body.innerHTML = Array.from({length: 2000}, (_, n) => `<div><h3>Row ${n}</h3>
    <p>About \"row\" ${n}</p><a href=#${n}>\u{958b}\u{304f} ${n}</a><button>Buy ${n}</button></div>`).join(''); document.querySelectorAll('*').length";

async fn run(server: &Server, id: &str, expression: &str) -> Value {
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await["result"].take()
}

async fn tree(server: &Server, arguments: Value) -> String {
    server.ok("snapshot", arguments).await["tree"].as_str().expect("a tree").to_owned()
}

fn reference<'a>(tree: &'a str, part: &str) -> &'a str {
    let line = tree.lines().find(|line| line.contains(part)).unwrap_or_else(|| panic!("{part} in {tree}"));
    line.split("[ref=").nth(1).and_then(|rest| rest.split(']').next()).expect("a reference")
}

/// All parts, each within the bound; the page changes between them.
async fn parts(server: &Server, id: &str, bytes_max: usize) -> (Vec<Value>, String) {
    let mut arguments = json!({"session_id": id});
    let mut pages = Vec::new();
    let mut whole = String::new();
    loop {
        let reply = server.ok_reply("snapshot", arguments.clone()).await;
        assert!(reply.wire_bytes <= bytes_max, "{} bytes", reply.wire_bytes);
        let page = reply.data().clone();
        whole.push_str(page["tree"].as_str().expect("a tree"));
        assert!(!page["tree"].as_str().expect("a tree").is_empty(), "parts get on: {page}");
        arguments["cursor"] = page["next_cursor"].clone();
        assert_eq!(page["has_more"] == true, page["next_cursor"].is_string());
        let more = page["has_more"] == true;
        pages.push(page);
        if !more {
            return (pages, whole);
        }
        if pages.len() == 1 {
            run(server, id, "document.body.innerHTML = '<h1>Changed</h1>'; 1").await;
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn ten_thousand_elements_are_read_in_parts_of_one_moment() {
    let site = Site::start().await;
    for bytes_max in [4096, 1024 * 1024] {
        let server = Server::start(Options::stdio().argument("--max-result-bytes", bytes_max)).await;
        let id = server.launch_at(&site.url("/plain.html")).await;
        let elements = run(&server, &id, MANY).await;
        assert!(elements.as_u64().is_some_and(|count| count >= 10_000), "{elements}");
        let (pages, whole) = parts(&server, &id, bytes_max).await;
        assert!(pages.len() > 2, "{} parts", pages.len());
        let first = &pages[0];
        assert_eq!(first["tree_bytes"], whole.len());
        assert!(whole.ends_with(&format!("- button \"Buy 1999\" [ref={}]\n", reference(&whole, "\"Buy 1999\""))));
        assert!(!whole.contains("Changed"), "what was captured stays as it was");
        for n in [0, 999, 1999] {
            assert_eq!(whole.matches(&format!("button \"Buy {n}\"")).count(), 1, "row {n}");
        }
        for page in &pages {
            assert_eq!((&page["snapshot_id"], &page["url"]), (&first["snapshot_id"], &first["url"]));
            assert!(page["tree"].as_str().is_some_and(|tree| tree.ends_with('\n')), "parts end with a line");
        }
        let kept = walk::artifact(&server, first["tree_artifact"].as_str().expect("a handle"), 1_000_000).await;
        let kept = String::from_utf8(kept).expect("text");
        let (head, below) = kept.split_once('\n').expect("a first line");
        assert!(head.starts_with("# {") && head.contains("plain.html"), "{head}");
        assert_eq!(below, whole, "the artifact is the whole");
        let now = tree(&server, json!({"session_id": id})).await;
        assert!(now.starts_with("- heading \"Changed\""), "{now}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn only_cursors_that_were_given_continue() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    run(&server, &id, MANY).await;
    let first = server.ok("snapshot", json!({"session_id": id, "max_bytes": 1000})).await;
    let cursor = first["next_cursor"].as_str().expect("a cursor").to_owned();
    assert!(first["tree"].as_str().is_some_and(|tree| tree.len() <= 1000));
    let again = json!({"session_id": id, "cursor": cursor, "max_bytes": 2000});
    let second = server.ok("snapshot", again.clone()).await;
    assert_eq!(server.ok("snapshot", again).await, second, "a cursor can be used again");
    let screenshot = server.ok("screenshot", json!({"session_id": id})).await;
    let (ours, offset) = cursor.rsplit_once('.').expect("a place");
    let forged = [
        "x".to_owned(),
        format!("{ours}.0"),
        format!("{ours}.99999999"),
        format!("{ours}.{offset}.1"),
        format!("c1.{}.10", screenshot["artifact"].as_str().expect("a handle")),
        "c1.art-00000000000000000000000000000000.10".to_owned(),
    ];
    for cursor in forged {
        server.fault("snapshot", json!({"session_id": id, "cursor": cursor}), "INVALID_CURSOR").await;
    }
    let both = json!({"session_id": id, "cursor": cursor, "scope": "body"});
    let fault = server.fault("snapshot", both, "INVALID_ARGUMENTS").await;
    assert_eq!(fault["details"]["problems"][0]["field"], "scope");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_part_of_the_page_can_be_asked_for() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/nest.html")).await;
    let whole = tree(&server, json!({"session_id": id})).await;
    let frame = reference(&whole, "iframe");
    // The frame one down, with those inside it.
    let inside = tree(&server, json!({"session_id": id, "scope": format!("{frame} >> body")})).await;
    assert!(inside.contains("button \"Press 1\"") && inside.contains("button \"Press 5\""), "{inside}");
    assert!(!inside.contains("button \"Press 0\""), "{inside}");
    assert_eq!(reference(&inside, "Press 4"), reference(&whole, "Press 4"), "references are those of the whole");
    run(&server, &id, "document.body.innerHTML = `<main><h1>Shop</h1><form aria-label=Order><p>Some text</p><ul><li>
        <button>Buy</button></ul><label>Name <input></label></form><p>More</p><div tabindex=0 role=note aria-label=Note></div>
        <section hidden id=hidden><button>No</button></section></main>`; 1").await;
    let interactive = server.ok("snapshot", json!({"session_id": id, "interactive_only": true})).await;
    let lines: Vec<&str> = interactive["tree"].as_str().expect("a tree").lines().collect();
    let shapes: Vec<String> =
        lines.iter().map(|line| line.split(" [ref=").next().unwrap_or_default().to_owned()).collect();
    assert_eq!(shapes, ["- form \"Order\"", "  - button \"Buy\"", "  - textbox \"Name\"", "- note \"Note\""]);
    assert!(interactive["lines_omitted"].as_u64() > Some(4), "{interactive}");
    let shallow = tree(&server, json!({"session_id": id, "max_depth": 1})).await;
    assert!(shallow.contains("form \"Order\"") && !shallow.contains("Buy"), "{shallow}");
    let scoped = tree(&server, json!({"session_id": id, "scope": "role=form", "interactive_only": true})).await;
    assert!(scoped.contains("Buy") && !scoped.contains("Note"), "{scoped}");
    let fault = server.fault("snapshot", json!({"session_id": id, "scope": "#hidden"}), "ELEMENT_NOT_ACTIONABLE").await;
    assert_eq!(fault["details"]["reason"], "hidden");
    server.fault("snapshot", json!({"session_id": id, "scope": "#none"}), "ELEMENT_NOT_FOUND").await;
    server.fault("snapshot", json!({"session_id": id, "scope": "p"}), "LOCATOR_AMBIGUOUS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn references_live_as_long_as_their_nodes() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/nest.html")).await;
    let first = tree(&server, json!({"session_id": id})).await;
    run(
        &server,
        &id,
        "document.body.prepend(Object.assign(document.createElement('button'), {textContent: 'New'})); 1",
    )
    .await;
    let second = tree(&server, json!({"session_id": id})).await;
    for name in ["Press 0", "Press 1", "Press 2", "Press 5"] {
        assert_eq!(reference(&first, name), reference(&second, name), "{name}");
    }
    assert!(!first.contains(&format!("[ref={}]", reference(&second, "\"New\""))), "no reference means two nodes");
    // A frame of another process goes elsewhere: its references die, the others live.
    let dead = reference(&first, "Press 1");
    let frame = format!("document.querySelector('iframe').src = '{}'; 1", site.other_url("/frame.html"));
    run(&server, &id, &frame).await;
    server.ok("wait_for_selector", json!({"session_id": id, "selector": "iframe >> #inside"})).await;
    let fault = server.fault("click", json!({"session_id": id, "selector": dead}), "STALE_REF").await;
    assert_eq!((&fault["details"]["ref"], &fault["details"]["snapshot_id"]), (&json!(dead), &json!("s2")));
    server.ok("click", json!({"session_id": id, "selector": reference(&first, "Press 0")})).await;
    run(&server, &id, "document.querySelector('#press').remove(); 1").await;
    let gone = json!({"session_id": id, "selector": reference(&first, "Press 0")});
    server.fault("click", gone, "STALE_REF").await;
    let third = tree(&server, json!({"session_id": id})).await;
    assert!(!third.contains(&format!("[ref={dead}]")), "and is given to no other: {third}");
}

#[tokio::test(flavor = "multi_thread")]
async fn passwords_are_never_shown() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/frames.html")).await;
    let fields = "`<input type=password aria-label=Pin value=canary-1><input aria-label=Styled style='-webkit-text-security: disc' value=canary-2>
        <input aria-label=Plain value=seen>`";
    run(&server, &id, &format!("document.body.insertAdjacentHTML('beforeend', {fields}); 1")).await;
    run(&server, &id, &format!("document.querySelector('#same').contentDocument.body.innerHTML = {fields}; 1")).await;
    for arguments in [
        json!({"session_id": id}),
        json!({"session_id": id, "interactive_only": true}),
        json!({"session_id": id, "scope": "body"}),
    ] {
        let tree = tree(&server, arguments).await;
        assert_eq!(tree.matches("[hidden]").count(), 4, "{tree}");
        assert_eq!(tree.matches("seen").count(), 2, "{tree}");
        assert!(!tree.contains("canary") && !tree.contains('\u{2022}'), "{tree}");
    }
}

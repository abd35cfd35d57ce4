//! Selectors mean what their authors mean: each engine, shadow trees, frames, strictness, references.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

async fn title(server: &Server, id: &str) -> Value {
    server.ok("evaluate", json!({"session_id": id, "expression": "document.title"})).await["result"].take()
}

/// Each selector and the element that it must click.
const MEANINGS: &[(&str, &str)] = &[
    ("css=.go", "css"),
    ("#plain > .go", "css"),
    ("#plain >> .go", "css"),
    ("text=go now", "css"),
    ("text=\"Go now\"", "css"),
    ("\"Go now\"", "css"),
    ("text=/^go\\s+now$/i", "css"),
    ("role=button[name=\"Go now\"]", "css"),
    ("role=button[name=/^go/i]", "css"),
    ("role=button[name=\"go NOW\" i]", "css"),
    ("testid=go-button", "css"),
    ("xpath=//button[@class='go']", "css"),
    ("#plain >> xpath=//button", "css"),
    ("#plain >> (//button)[1]", "css"),
    ("#list >> //li[2]/button", "two"),
    ("text=\"of it\"", "part"),
    ("label=Name", "label"),
    ("label=\"Size\"", "select"),
    ("placeholder=your mail", "placeholder"),
    ("placeholder=\"Your mail\"", "placeholder"),
    ("alt=logo", "alt"),
    ("role=img[name=\"The logo\"]", "alt"),
    ("title=/long/i", "title"),
    ("text=Send it", "submit"),
    ("role=button[name=\"Send it\"]", "submit"),
    ("role=textbox[name=\"Birthday\"]", "date"),
    ("text=Pick >> nth=1", "two"),
    ("#list button >> nth=-1", "three"),
    ("role=listitem >> nth=0 >> role=button", "one"),
    ("role=button[name=\"Pick\"] >> nth=2", "three"),
    ("#twins >> text=Twin >> visible=true", "shown"),
    ("role=button[name=\"Twin\"] >> visible=true", "shown"),
    ("#host button", "shadow"),
    ("#host .inner > button", "shadow"),
    ("shop-item >> role=button", "shadow"),
    ("text=Buy >> nth=0", "shadow"),
    ("text=Buy >> nth=1", "after"),
    ("body .inner .price", "deep"),
    ("text=Seven", "deep"),
    ("#host >> text=seven", "deep"),
];

#[tokio::test(flavor = "multi_thread")]
async fn each_engine_finds_its_element() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/selectors.html")).await;
    for (selector, name) in MEANINGS {
        let reply = server.call("click", json!({"session_id": id, "selector": selector, "timeout": 4000})).await;
        assert!(!reply.is_error, "{selector}: {}", reply.structured);
        assert_eq!(title(&server, &id).await, format!("hit {name}"), "{selector}");
    }
    let waits = [
        ("text=\"Slotted words\"", "visible"),
        ("role=button[name=\"Paper\"]", "visible"),
        ("#twins >> text=Twin >> visible=false", "attached"),
    ];
    for (selector, state) in waits {
        let arguments = json!({"session_id": id, "selector": selector, "state": state, "timeout": 4000});
        server.ok("wait_for_selector", arguments).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn several_matches_are_told_apart() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/selectors.html")).await;
    for selector in ["#list button", "role=button[name=\"Pick\"]", "text=Pick", "//li/button"] {
        let fault = server.fault("click", json!({"session_id": id, "selector": selector}), "LOCATOR_AMBIGUOUS").await;
        assert_eq!(fault["details"]["count"], 3, "{selector}");
        let candidates = fault["details"]["candidates"].as_array().expect("candidates");
        assert_eq!(candidates.len(), 3, "{fault}");
        for (candidate, name) in candidates.iter().zip(["one", "two", "three"]) {
            assert_eq!((&candidate["element"], &candidate["text"]), (&json!("<button>"), &json!("Pick")));
            server.ok("click", json!({"session_id": id, "selector": candidate["selector"]})).await;
            assert_eq!(title(&server, &id).await, format!("hit {name}"), "{selector}");
        }
    }
    let all = server.fault("click", json!({"session_id": id, "selector": "*"}), "LOCATOR_AMBIGUOUS").await;
    assert_eq!(all["details"]["candidates"].as_array().map(Vec::len), Some(5), "the first few: {all}");
    let bad =
        ["visible=true", "#a >> visible=yes", "css=>>", "xpath=//[", "text=/(/", "role=button[color=red]", "a >> e1"];
    for selector in bad {
        server.fault("click", json!({"session_id": id, "selector": selector}), "INVALID_SELECTOR").await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_there_is_told_once_the_page_is_quiet() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/selectors.html")).await;
    for selector in ["#none", "role=button[name=\"None\"]", "text=Nothing of it", "#host >> #none", "//nothing"] {
        let arguments = json!({"session_id": id, "selector": selector, "timeout": 60_000});
        let fault = server.fault("click", arguments, "ELEMENT_NOT_FOUND").await;
        let took = fault["operation"]["duration_ms"].as_f64().expect("a duration");
        assert!(took < 15_000.0, "{selector} took {took} ms of the minute it had");
    }
    // A page that still loads something may yet bring it.
    let later = "fetch('/hold').then(() => { document.body.insertAdjacentHTML('beforeend', '<button id=late>Late</button>') }); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": later})).await;
    let click = server.begin("click", json!({"session_id": id, "selector": "#late", "timeout": 20_000})).await;
    site.arrived("/hold").await;
    site.release();
    assert_eq!(click.reply().await.data()["ok"], true);
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_entered_five_deep() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/nest.html")).await;
    let down = ["iframe"; 5].join(" >> ");
    for part in ["#press", "role=button[name=\"Press 5\"]", "text=press 5", "xpath=//button"] {
        let selector = format!("{down} >> {part}");
        server.ok("click", json!({"session_id": id, "selector": selector})).await;
    }
    let messages = walk::console_with(&server, &id, "pressed 5 on localhost").await;
    assert_eq!(walk::texts(&messages).iter().filter(|text| text.starts_with("pressed 5")).count(), 4);
    server.ok("click", json!({"session_id": id, "selector": "iframe >> iframe >> #press"})).await;
    walk::console_with(&server, &id, "pressed 2 on 127.0.0.1").await;
    let snapshot = server.ok("snapshot", json!({"session_id": id})).await;
    let tree = snapshot["tree"].as_str().expect("a tree");
    for depth in 0..=5 {
        assert!(tree.contains(&format!("button \"Press {depth}\"")), "depth {depth} in {tree}");
    }
    let line = tree.lines().find(|line| line.contains("button \"Press 3\"")).expect("the button");
    let reference = line.split("[ref=").nth(1).and_then(|rest| rest.split(']').next()).expect("a reference");
    server.ok("click", json!({"session_id": id, "selector": reference})).await;
    walk::console_with(&server, &id, "pressed 3 on localhost").await;
    // Which of two frames is meant has to be said.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/frames.html")})).await;
    let two = json!({"session_id": id, "selector": "iframe >> #inside"});
    let fault = server.fault("click", two, "LOCATOR_AMBIGUOUS").await;
    let first = &fault["details"]["candidates"][0];
    assert_eq!((&fault["details"]["count"], &first["element"]), (&json!(2), &json!("<iframe#same>")), "{fault}");
    let inside = format!("{} >> #inside", first["selector"].as_str().expect("a selector"));
    server.ok("click", json!({"session_id": id, "selector": inside})).await;
    walk::console_with(&server, &id, "frame clicked 127.0.0.1").await;
}

/// The reference of the line of a snapshot that has `text` in it.
fn reference(snapshot: &Value, text: &str) -> String {
    let tree = snapshot["tree"].as_str().expect("a tree");
    let line = tree.lines().find(|line| line.contains(text)).unwrap_or_else(|| panic!("{text} in {tree}"));
    let (_, rest) = line.split_once("[ref=").expect("it has a reference");
    rest.split(']').next().expect("it ends").to_owned()
}

#[tokio::test(flavor = "multi_thread")]
async fn references_hold_in_the_next_document_too() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/selectors.html")).await;
    for step in ["navigate", "reload", "navigate"] {
        let mut asked = json!({"session_id": id});
        if step == "navigate" {
            asked["url"] = site.url("/selectors.html").into();
        }
        server.ok(step, asked).await;
        let snapshot = server.ok("snapshot", json!({"session_id": id})).await;
        server.ok("click", json!({"session_id": id, "selector": reference(&snapshot, "Go now")})).await;
        assert_eq!(title(&server, &id).await, "hit css", "after {step}");
    }
}

/// A link, and a frame whose document has no doctype.
const OLD_PAGE: &str = "
    document.body.innerHTML = '<p>first</p><a href=#there>low</a><iframe></iframe>';
    const inner = document.querySelector('iframe').contentDocument;
    inner.body.innerHTML = '<button>Inside</button>';
    inner.querySelector('button').onclick = () => { document.title = 'pressed'; };
    inner.compatMode";

#[tokio::test(flavor = "multi_thread")]
async fn links_have_words_and_old_documents_have_buttons() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let mode = server.ok("evaluate", json!({"session_id": id, "expression": OLD_PAGE})).await;
    assert_eq!(mode["result"], "BackCompat");
    let found = server.ok("find_in_page", json!({"session_id": id, "text": "low"})).await;
    assert_eq!(found["matches"].as_array().map(Vec::len), Some(1), "{found}");
    server.ok("click", json!({"session_id": id, "selector": "iframe >> button", "timeout": 5000})).await;
    assert_eq!(title(&server, &id).await, "pressed");
}

//! Windows that pages open are tabs of the session, and never take the active one's place.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, wait_for, walk};

async fn tabs(server: &Server, id: &str) -> Vec<Value> {
    let tabs = server.ok("list_tabs", json!({"session_id": id})).await;
    tabs.as_array().expect("tabs").clone()
}

/// The tab that calls mean when they name none.
fn active(tabs: &[Value]) -> &Value {
    let mut active = tabs.iter().filter(|tab| tab["active"] == true);
    let only = active.next().unwrap_or_else(|| panic!("one is active: {tabs:?}"));
    assert!(active.next().is_none(), "one alone is active: {tabs:?}");
    &only["tab_id"]
}

#[tokio::test(flavor = "multi_thread")]
async fn each_kind_is_adopted_and_named_in_the_reply() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/popups.html")).await;
    let opener = active(&tabs(&server, &id).await).clone();
    for (selector, address) in [
        ("#open", "/opened.html?open"),
        ("#noopener", "/opened.html?noopener"),
        ("#blank", "/opened.html?blank"),
        ("#kept-opener", "/opened.html?kept"),
        ("#form", "/opened.html?"),
        ("#named", "/opened.html?named"),
    ] {
        let clicked = server.ok("click", json!({"session_id": id, "selector": selector})).await;
        let popups = clicked["popups"].as_array().unwrap_or_else(|| panic!("{selector}: {clicked}"));
        assert_eq!(popups.len(), 1, "{selector}: {clicked}");
        let tab_id = &popups[0]["tab_id"];
        let url = json!({"session_id": id, "url": site.url(address), "tab_id": tab_id});
        server.ok("wait_for_url", url).await;
        wait_for("its first line", || async {
            let asked = json!({"session_id": id, "tab_id": tab_id, "text_filter": "^popup first line$"});
            let page = server.ok("list_console_messages", asked).await;
            page["messages"].get(0).is_some().then_some(())
        })
        .await;
        let now = tabs(&server, &id).await;
        assert_eq!(active(&now), &opener, "{selector} does not take the active tab's place");
        assert_eq!(now.len(), 2, "{selector}: {now:?}");
        server.ok("close_tab", json!({"session_id": id, "tab_id": tab_id})).await;
    }
    // What a popup does from its first line on is on record.
    let lines = walk::console(&server, &id).await;
    let first = walk::texts(&lines).into_iter().filter(|text| *text == "popup first line").count();
    assert_eq!(first, 6, "{lines:?}");
    let opened = json!({"session_id": id, "kinds": ["page.opened"]});
    let opened = walk::all(&server, "list_events", "events", opened, 500).await;
    let by: Vec<&Value> = opened.iter().skip(1).map(|event| &event["data"]["opener_page_id"]).collect();
    assert!(by.iter().all(|by| **by == opener) && by.len() == 6, "{opened:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn many_written_flashing_and_refused_ones() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/popups.html")).await;
    let three = server.ok("click", json!({"session_id": id, "selector": "#three"})).await;
    assert_eq!(three["popups"].as_array().map(Vec::len), Some(3), "{three}");
    let written = server.ok("click", json!({"session_id": id, "selector": "#written"})).await;
    let tab_id = &written["popups"][0]["tab_id"];
    let inside = json!({"session_id": id, "tab_id": tab_id, "selector": "text=Inside"});
    server.ok("click", inside).await;
    walk::console_with(&server, &id, "written clicked").await;
    let flash = server.ok("click", json!({"session_id": id, "selector": "#flash"})).await;
    let gone = &flash["popups"][0]["tab_id"];
    assert!(gone.is_string(), "{flash}");
    let count = wait_for("the flash to be over", || async {
        let tabs = tabs(&server, &id).await;
        tabs.iter().all(|tab| tab["tab_id"] != *gone).then_some(tabs.len())
    })
    .await;
    assert_eq!(count, 5);
    server.fault("snapshot", json!({"session_id": id, "tab_id": gone}), "TAB_NOT_FOUND").await;
    // A window that the frame may not open is none, and is not waited for long.
    let boxed = server.ok_reply("click", json!({"session_id": id, "selector": "#boxed >> button"})).await;
    assert!(boxed.data().get("popups").is_none(), "{}", boxed.structured);
    // Opening a window that is there already by name is no popup.
    server.ok("click", json!({"session_id": id, "selector": "#named"})).await;
    let again = server.ok("click", json!({"session_id": id, "selector": "#named"})).await;
    assert!(again.get("popups").is_none(), "{again}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tabs_that_close_themselves() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/popups.html")).await;
    let opener = active(&tabs(&server, &id).await).clone();
    let open = || async {
        let clicked = server.ok("click", json!({"session_id": id, "selector": "#asking", "tab_id": opener})).await;
        let tab_id = clicked["popups"][0]["tab_id"].clone();
        server.ok("switch_tab", json!({"session_id": id, "tab_id": tab_id})).await;
        tab_id
    };
    let closing = open().await;
    let closed = server.ok("click", json!({"session_id": id, "selector": "#close"})).await;
    assert_eq!(closed["tab_closed"], true, "{closed}");
    assert_eq!(active(&tabs(&server, &id).await), &opener, "its opener follows it");
    server.fault("click", json!({"session_id": id, "selector": "#close", "tab_id": closing}), "TAB_NOT_FOUND").await;

    let closing = open().await;
    server.ok("click", json!({"session_id": id, "selector": "#close-later"})).await;
    let waiting = json!({"session_id": id, "tab_id": closing, "selector": "#never", "timeout": 20_000});
    let waiting = server.begin_running("wait_for_selector", waiting).await;
    site.arrived("/hold").await;
    site.release();
    let fault = waiting.reply().await;
    assert_eq!(fault.code(), "PAGE_CLOSED", "{}", fault.structured);
    assert_eq!(fault.structured["details"]["tab_id"], closing);
    assert_eq!(active(&tabs(&server, &id).await), &opener);
    server.ok("snapshot", json!({"session_id": id})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_does_not_ask_the_page() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/closing.html")).await;
    server.ok("click", json!({"session_id": id, "selector": "#guard"})).await;
    let only = active(&tabs(&server, &id).await).clone();
    let away = json!({"session_id": id, "url": site.url("/plain.html")});
    let asked = server.fault("navigate", away, "MODAL_STATE_BLOCKED").await;
    assert_eq!(asked["details"]["dialog_type"], "beforeunload", "the page does guard itself: {asked}");
    server.ok("dismiss_next_dialog", json!({"session_id": id})).await;
    assert_eq!(tabs(&server, &id).await[0]["url"], site.url("/closing.html"));
    let closed = server.ok("close_tab", json!({"session_id": id, "tab_id": only})).await;
    assert_eq!(closed["closed"], true);
    assert_eq!(tabs(&server, &id).await, Vec::<Value>::new(), "the last tab may be closed");
    server.fault("switch_tab", json!({"session_id": id, "tab_id": only}), "TAB_NOT_FOUND").await;
    server.fault("close_tab", json!({"session_id": id, "tab_id": only}), "TAB_NOT_FOUND").await;
    let opened = server.ok("new_tab", json!({"session_id": id})).await;
    assert_eq!(active(&tabs(&server, &id).await), &opened["tab_id"]);
    // One that waits on a dialog can be left and closed all the same.
    server.ok("navigate", json!({"session_id": id, "url": site.url("/dialogs.html")})).await;
    server.ok("evaluate", json!({"session_id": id, "expression": "setTimeout(() => alert('stop')), 0"})).await;
    let dialog = json!({"session_id": id, "kinds": ["dialog.opened"]});
    wait_for("the alert", || async {
        let found = walk::all(&server, "list_events", "events", dialog.clone(), 500).await;
        (!found.is_empty()).then_some(())
    })
    .await;
    let other = server.ok("new_tab", json!({"session_id": id, "url": site.url("/plain.html")})).await;
    server.ok("switch_tab", json!({"session_id": id, "tab_id": opened["tab_id"]})).await;
    assert_eq!(tabs(&server, &id).await.len(), 2);
    server.ok("close_tab", json!({"session_id": id, "tab_id": opened["tab_id"]})).await;
    assert_eq!(active(&tabs(&server, &id).await), &other["tab_id"]);
}

//! Finding and awaiting text as a person sees it, and telling frames apart.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

async fn run(server: &Server, id: &str, expression: &str) -> Value {
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await["result"].take()
}

async fn show(server: &Server, id: &str, body: &str) {
    run(server, id, &format!("document.body.setHTMLUnsafe({}); 1", json!(body))).await;
}

fn matches(found: &Value) -> &Vec<Value> {
    found["matches"].as_array().expect("matches")
}

#[tokio::test(flavor = "multi_thread")]
async fn text_is_found_as_it_is_seen() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/frames.html")).await;
    show(&server, &id, "<p>Order <b>num</b>ber   seven is <i>late</i></p><p hidden>number seven</p><p style='visibility:hidden'>number seven</p>
        <div>num</div><div>ber seven</div><script>number seven</script><input value='Number seven'><input type=password value='number seven'>
        <select><option>six<option selected>number seven</select><input type=submit value='number seven' id=go>
        <x-a><template shadowrootmode=open><p>in a shadow: <slot></slot></p></template>number seven</x-a>
        <p>\u{1f600} \u{65e5}\u{672c}\u{8a9e} caf\u{e9}</p><iframe src='/frame.html'></iframe>").await;
    server.ok("wait_for_selector", json!({"session_id": id, "selector": "iframe >> #inside"})).await;
    let found = server.ok("find_in_page", json!({"session_id": id, "text": "NUMBER seven"})).await;
    let elements: Vec<&str> = matches(&found).iter().filter_map(|one| one["element"].as_str()).collect();
    assert_eq!(elements, ["<p>", "<input>", "<select>", "<input#go>", "<x-a>"], "{found}");
    let first = &matches(&found)[0];
    let around = " is late\nnum\nber seven\nNumber seven\nnumb...";
    assert_eq!((&first["match"], &first["before"]), (&json!("number seven"), &json!("Order ")), "{first}");
    assert_eq!(first["after"], around, "blocks are lines");
    server.ok("click", json!({"session_id": id, "selector": matches(&found)[3]["selector"]})).await;
    let exact = server.ok("find_in_page", json!({"session_id": id, "text": "\"Number seven\""})).await;
    assert_eq!(exact["count"], 1, "{exact}");
    let pattern = server.ok("find_in_page", json!({"session_id": id, "text": "/^.{2}\u{65e5}.*\u{e9}$/"})).await;
    assert_eq!(matches(&pattern)[0]["match"], "\u{1f600} \u{65e5}\u{672c}\u{8a9e} caf\u{e9}", "{pattern}");
    let inside = server.ok("find_in_page", json!({"session_id": id, "text": "inside"})).await;
    server.ok("click", json!({"session_id": id, "selector": matches(&inside)[0]["selector"]})).await;
    walk::console_with(&server, &id, "frame clicked 127.0.0.1").await;
    let none = server.ok("find_in_page", json!({"session_id": id, "text": "not to be found"})).await;
    assert_eq!((&none["count"], &none["has_more"]), (&json!(0), &json!(false)));
    for text in ["/(/", "/a/y", "   "] {
        let fault = server.fault("find_in_page", json!({"session_id": id, "text": text}), "INVALID_ARGUMENTS").await;
        assert_eq!(fault["details"]["problems"][0]["field"], "text", "{text}");
    }
    server.fault("find_in_page", json!({"session_id": id}), "INVALID_ARGUMENTS").await;
    // A pattern that would keep other engines busy for ever.
    show(&server, &id, &format!("<p>{}", "a".repeat(50_000))).await;
    let hostile = server.ok("find_in_page", json!({"session_id": id, "text": "/(a+)+b/"})).await;
    assert_eq!(hostile["count"], 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_matches_are_paged_from_one_moment() {
    let site = Site::start().await;
    for bytes_max in [4096, 1024 * 1024] {
        let server = Server::start(Options::stdio().argument("--max-result-bytes", bytes_max)).await;
        let id = server.launch_at(&site.url("/plain.html")).await;
        let rows = "document.body.innerHTML = Array.from({length: 1200}, (_, n) => `<p>\"Quoted\" row ${n} \u{958b}\u{304f}</p>`).join(''); 1";
        run(&server, &id, rows).await;
        let mut arguments = json!({"session_id": id, "text": "/row \\d+/", "limit": 150});
        let mut seen = Vec::new();
        loop {
            let reply = server.ok_reply("find_in_page", arguments.clone()).await;
            assert!(reply.wire_bytes <= bytes_max, "{} bytes", reply.wire_bytes);
            let page = reply.data();
            assert_eq!((&page["count"], &page["shown_max"]), (&json!(1200), &json!(1000)));
            assert!(!matches(page).is_empty() && matches(page).len() <= 150);
            seen.extend(matches(page).iter().map(|one| one["match"].as_str().expect("a text").to_owned()));
            if page["has_more"] != true {
                break;
            }
            run(&server, &id, "document.body.innerHTML = '<p>row 1'; 1").await;
            arguments = json!({"session_id": id, "cursor": page["next_cursor"], "limit": 150});
        }
        let wanted: Vec<String> = (0..1000).map(|n| format!("row {n}")).collect();
        assert_eq!(seen, wanted);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn texts_are_waited_for_until_they_come_or_go() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/frames.html")).await;
    let wait = |text: &str, state: &str| json!({"session_id": id, "text": text, "state": state, "timeout": 15_000});
    server.ok("wait_for_text", wait("inside", "visible")).await;
    let hold = "fetch('/hold').then(() => { document.body.insertAdjacentHTML('beforeend', '<p id=late>All <b>done</b></p>') }); 1";
    run(&server, &id, hold).await;
    let waiting = server.begin("wait_for_text", wait("/^all done$/i", "visible")).await;
    site.arrived("/hold").await;
    site.release();
    assert_eq!(waiting.reply().await.data()["state"], "visible");
    let fault = json!({"session_id": id, "text": "all done", "state": "hidden", "timeout": 300});
    server.fault("wait_for_text", fault, "WAIT_TIMEOUT").await;
    run(&server, &id, "setTimeout(() => { late.hidden = true }, 200); 1").await;
    server.ok("wait_for_text", wait("all done", "hidden")).await;
    let frame = "fetch('/hold').then(() => { document.querySelector('#same').contentDocument.body.textContent = 'Framed words' }); 1";
    run(&server, &id, frame).await;
    server.ok("wait_for_text", wait("framed words", "visible")).await;
    server.fault("wait_for_text", json!({"session_id": id, "text": "/(/"}), "INVALID_ARGUMENTS").await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_are_listed_and_entered() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/nest.html")).await;
    server.ok("wait_for_text", json!({"session_id": id, "text": "Frame at depth 5"})).await;
    let listed = server.ok("list_frames", json!({"session_id": id})).await;
    let frames = listed["frames"].as_array().expect("frames");
    assert_eq!(frames.len(), 6, "{listed}");
    assert_eq!(frames[0]["frame_id"], listed["main_frame_id"]);
    assert_eq!((&frames[0]["is_main"], &frames[0]["selector"]), (&json!(true), &Value::Null));
    for (depth, frame) in frames.iter().enumerate() {
        assert_eq!(frame["depth"], depth, "{frame}");
        assert!(
            depth == 0 || frame["url"].as_str().is_some_and(|url| url.ends_with(&format!("depth={depth}"))),
            "{frame}"
        );
        assert!(depth == 0 || frame["parent_frame_id"] == frames[depth - 1]["frame_id"], "{frame}");
    }
    let inside = format!("{} >> #press", frames[4]["selector"].as_str().expect("a selector"));
    server.ok("click", json!({"session_id": id, "selector": inside})).await;
    walk::console_with(&server, &id, "pressed 4 on 127.0.0.1").await;
    let found = server.ok("find_in_page", json!({"session_id": id, "text": "frame at depth"})).await;
    assert_eq!(found["count"], 6, "{found}");
    assert_eq!(matches(&found)[5]["frame_id"], frames[5]["frame_id"]);
    server.fault("list_frames", json!({"session_id": id, "tab_id": "t-none"}), "TAB_NOT_FOUND").await;
}

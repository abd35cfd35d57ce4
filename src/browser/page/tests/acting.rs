//! Clicks, fills and keys, on elements in every kind of place.

use serde_json::json;

use super::*;
use crate::browser::page::{ClickOptions, Modifier, ScrollTarget};

async fn click(bench: &Bench, selector: &str) {
    bench.page.click(selector, &ClickOptions::default(), soon()).await.expect(selector);
}

const LOG: &str = "<script>window.log = []; addEventListener('click', event => log.push([event.target.id || event.target.textContent, event.isTrusted, event.detail, event.shiftKey]), true)</script>";

#[tokio::test(flavor = "multi_thread")]
async fn clicks_reach_elements_wherever_they_are() {
    let bench = Bench::start().await;
    let body = "<div style='width:120px'>some words before <a id=wrapped href='#there'>a link that wraps over lines</a></div>\
        <label id=label for=box>Tick</label><input type=checkbox id=box>\
        <button id=icon><svg id=svg width=20 height=20 style='pointer-events:none'><rect width=20 height=20 /></svg></button>\
        <div id=host></div><div style='height:3000px'></div><button id=far>Far</button>\
        <div style='height:60px;overflow:auto;width:200px'><div style='height:900px'></div><button id=nested>Nested</button></div><div style='height:300px'></div>\
        <div style='position:fixed;bottom:0;left:0;right:0;height:80px;background:#ccc'>bar</div>\
        <script>host.attachShadow({mode:'open'}).innerHTML = '<button id=inner>In shadow</button>'</script>";
    bench.show(&format!("{LOG}{body}")).await;
    for selector in [
        "#wrapped",
        "#label",
        "#icon",
        "#svg",
        "#inner",
        "#far",
        "#nested",
        "text=In shadow",
        "role=button[name=\"Far\"]",
        "label=Tick",
    ] {
        bench.value("void (log.length = 0)").await;
        click(&bench, selector).await;
        let log = bench.value("log").await;
        assert_eq!(log[0][1], true, "{selector} was clicked by the browser: {log}");
    }
    let options = ClickOptions { click_count: 2, modifiers: vec![Modifier::Shift], ..ClickOptions::default() };
    bench.value("void (log.length = 0)").await;
    bench.page.click("#far", &options, soon()).await.expect("double click");
    assert_eq!(bench.value("log").await, json!([["far", true, 1, true], ["far", true, 2, true]]));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_clicked_says_why() {
    let bench = Bench::start().await;
    let body = "<button id=off disabled>Off</button><button id=none style='display:none'>None</button>\
        <button id=under>Under</button><div id=cover style='position:absolute;inset:0;z-index:2'></div>\
        <button class=two>1</button><button class=two>2</button>\
        <button id=runs style='position:absolute;top:300px;z-index:3;animation:run 1s linear infinite'>Runs</button><style>@keyframes run { from { left: 0 } to { left: 500px } }</style>";
    bench.show(body).await;
    let page = &bench.page;
    let click =
        async |selector: &str, deadline: Deadline| page.click(selector, &ClickOptions::default(), deadline).await;
    assert_eq!(reason(click("#off", soon()).await), "disabled");
    assert_eq!(reason(click("#none", soon()).await), "hidden");
    assert_eq!(reason(click("#under", soon()).await), "covered by <div#cover>");
    assert_eq!(reason(click("#runs", at_once()).await), "moving");
    let several = click(".two", soon()).await;
    assert!(matches!(&several, Err(PageError::Ambiguous { count: 2, candidates, .. }) if candidates.len() == 2));
    assert_eq!(click("#nothing", soon()).await, Err(PageError::NotFound { selector: "#nothing".into() }));
    assert!(matches!(click("a[", soon()).await, Err(PageError::InvalidSelector { .. })));
    assert!(matches!(click("role=button[x]", soon()).await, Err(PageError::InvalidSelector { .. })));
    assert!(matches!(click("e99", soon()).await, Err(PageError::StaleRef { .. })));
    assert_eq!(reason(page.fill("#cover", "x", soon()).await), "not editable: <div#cover>");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_action_waits_for_its_element_to_be_ready() {
    let bench = Bench::start().await;
    let body = format!(
        "{LOG}<button id=slow disabled style='position:relative;left:0;transition:left .3s'>Slow</button><div id=room></div>\
         <script>setTimeout(() => {{ slow.style.left = '200px' }}, 100); setTimeout(() => {{ slow.disabled = false }}, 1000);\
         setTimeout(() => {{ room.innerHTML = '<button id=late>Late</button>' }}, 400)</script>"
    );
    bench.show(&body).await;
    click(&bench, "#slow").await;
    click(&bench, "#late").await;
    assert_eq!(bench.value("log.map(entry => entry[0])").await, json!(["slow", "late"]));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn frames_of_this_and_another_site_are_acted_in() {
    let bench = Bench::start().await;
    let inner = "<div style='height:900px'></div><button id=go onclick=\"this.textContent = 'gone ' + event.isTrusted\">Go</button><input id=name>";
    let deep = bench.site.path(inner);
    let middle = bench.site.path(&format!("<iframe id=deep src='{}' height=120></iframe>", bench.site.url(&deep)));
    let body = format!(
        "<div style='height:1200px'></div><iframe id=same src='{}' height=100 style='border:7px solid;padding:5px'></iframe>\
         <iframe id=cross src='{}' height=200></iframe><div style='height:1200px'></div>",
        bench.site.url(&deep),
        bench.site.other(&middle)
    );
    bench.show(&body).await;
    let snapshot = bench.page.snapshot(soon()).await.expect("a snapshot");
    assert_eq!(snapshot.tree.matches("button \"Go\"").count(), 2, "{}", snapshot.tree);
    for chain in ["#same", "#cross >> #deep"] {
        click(&bench, &format!("{chain} >> #go")).await;
        let gone = format!("{chain} >> role=button[name=\"gone true\"]");
        bench.page.wait_for_selector(&gone, super::super::SelectorState::Visible, soon()).await.expect(&gone);
        bench.page.fill(&format!("{chain} >> #name"), "filled", soon()).await.expect("filled");
        bench.page.type_text(&format!("{chain} >> #name"), "!", Duration::ZERO, soon()).await.expect("typed");
    }
    let tree = bench.page.snapshot(soon()).await.expect("a snapshot").tree;
    assert_eq!(tree.matches(": filled!").count(), 2, "{tree}");
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_take_values_and_pages_hear_of_it() {
    let bench = Bench::start().await;
    let body = "<input id=text value=old><textarea id=area>old</textarea><div id=rich contenteditable>old</div>\
        <input id=number type=number><input id=date type=date><input id=color type=color><input id=range type=range max=10>\
        <input id=secret type=password><input id=fixed readonly value=v><input id=box type=checkbox>\
        <label>Named <input id=named></label><select id=pick><option value=1>One<option value=2>Two</select>\
        <script>window.heard = []; for (const kind of ['input', 'change']) addEventListener(kind, event => heard.push(event.target.id + ' ' + kind), true)</script>";
    bench.show(body).await;
    let page = &bench.page;
    let cases = [
        ("text", "new"),
        ("area", "two\nlines"),
        ("number", "12.5"),
        ("date", "2026-01-31"),
        ("color", "#00ff00"),
        ("range", "7"),
        ("named", "n"),
        ("pick", "2"),
    ];
    for (id, value) in cases {
        let done = page.fill(&format!("#{id}"), value, soon()).await.expect(id);
        assert!(!done.password_field);
        assert_eq!(bench.value(&format!("{id}.value")).await, value, "{id}");
        assert!(bench.value(&format!("heard.includes('{id} input')")).await == true, "{id}");
    }
    page.fill("#pick", "One", soon()).await.expect("picked by its label");
    assert_eq!(bench.value("pick.value").await, "1");
    page.fill("#rich", "rich \u{1f600}", soon()).await.expect("filled");
    assert_eq!(bench.value("rich.textContent").await, "rich \u{1f600}");
    page.fill("#text", "", soon()).await.expect("emptied");
    assert_eq!(bench.value("text.value").await, "");
    assert!(page.fill("#secret", "hunter2", soon()).await.expect("filled").password_field);
    page.fill("text=Named", "by label", soon()).await.expect("filled through its label");
    assert_eq!(bench.value("named.value").await, "by label");
    assert_eq!(reason(page.fill("#fixed", "x", soon()).await), "not editable: it is read-only");
    assert_eq!(reason(page.fill("#box", "x", soon()).await), "not editable: <input type=checkbox>");
    assert!(reason(page.fill("#number", "abc", soon()).await).contains("numbers"));
    assert!(reason(page.fill("#date", "tomorrow", soon()).await).contains("does not take"));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_type_edit_and_submit() {
    let bench = Bench::start().await;
    let body = "<form action='/landed'><input id=field name=q></form>\
        <script>window.keys = []; field.addEventListener('keydown', event => keys.push(event.code + ' ' + event.key))</script>";
    bench.show(body).await;
    let page = &bench.page;
    page.type_text("#field", "aB?\u{e9}", Duration::from_millis(1), soon()).await.expect("typed");
    assert_eq!(bench.value("field.value").await, "aB?\u{e9}");
    assert_eq!(bench.value("keys").await, json!(["KeyA a", "KeyB B", "Slash ?"]));
    page.type_text("#field", &"x".repeat(200), Duration::ZERO, soon()).await.expect("typed");
    assert_eq!(bench.value("field.value.length").await, 204);
    page.press_key("Control+A", Some("#field"), soon()).await.expect("selected");
    page.press_key("Backspace", None, soon()).await.expect("deleted");
    assert_eq!(bench.value("field.value").await, "");
    page.type_text("#field", "q", Duration::ZERO, soon()).await.expect("typed");
    let done = page.press_key("Enter", Some("#field"), soon()).await.expect("submitted");
    assert!(done.navigated);
    assert!(page.url().ends_with("/landed?q=q"), "{}", page.url());
    assert!(matches!(page.press_key("Nope", None, soon()).await, Err(PageError::InvalidKey { .. })));
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_click_on_a_link_returns_on_the_next_page() {
    let bench = Bench::start().await;
    bench.show(&format!("<a id=next href='/landed'>Next</a><a id=hash href='#x'>Hash</a><a id=file href='/file'>File</a><div style='height:4000px'></div><p id=end>end{LOG}")).await;
    let page = &bench.page;
    let offset = page.scroll(&ScrollTarget::By { dx: 0.0, dy: 500.0 }, false, soon()).await.expect("scrolls");
    assert_eq!(offset.y, 500.0);
    assert!(page.scroll(&ScrollTarget::Selector("#end".into()), false, soon()).await.expect("scrolls").y > 2000.0);
    assert!(!page.click("#hash", &ClickOptions::default(), soon()).await.expect("clicked").navigated);
    assert!(!page.click("#file", &ClickOptions::default(), soon()).await.expect("clicked").navigated);
    page.hover("#next", soon()).await.expect("hovered");
    assert_eq!(bench.value("document.querySelector('#next').matches(':hover')").await, true);
    assert!(page.click("#next", &ClickOptions::default(), soon()).await.expect("clicked").navigated);
    assert_eq!(page.url(), bench.site.url("/landed"));
    bench.close().await;
}

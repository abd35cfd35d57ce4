//! Elements that are hard to hit, and those that cannot be: each with its reason.

use serde_json::{Value, json};

use super::Bench;

/// Clicks and says what the page took the click for.
async fn hit(bench: &Bench, selector: &str) -> String {
    bench.log().await;
    bench.click(selector).await;
    bench.log().await.join(", ")
}

#[tokio::test(flavor = "multi_thread")]
async fn clicks_land_where_a_person_would_click() {
    let bench = Bench::at("/acting-targets.html").await;
    for selector in [
        "#sliding",
        "#in-turned",
        "#in-zoomed",
        "#wrapped",
        "#in-box",
        "#low",
        "#right",
        "#icon",
        "#keys",
        "#floating",
        "#in-box",
        "#sliding",
    ] {
        let got = hit(&bench, selector).await;
        assert!(got.starts_with(&selector[1..]), "{selector}: {got}");
    }
    assert_eq!(hit(&bench, "#empty").await, "empty", "what shows is what it holds");
    assert_eq!(hit(&bench, "#contents").await, "contents");
    assert_eq!(hit(&bench, "text=Shadowed").await, "host");
    assert_eq!(hit(&bench, "#label").await, "label, named", "the label, and the control that it names");
    bench.value("zoomed.style.zoom = 1; document.documentElement.style.zoom = 1.3").await;
    assert_eq!(hit(&bench, "#low").await, "low");
    bench.value("document.documentElement.style.zoom = 1; scrollTo(0, 0)").await;
    bench.ok("hover", json!({"selector": "#menu"})).await;
    assert_eq!(hit(&bench, "#item").await, "item", "the menu stays open on the way to its item");
    bench.ok("click", json!({"selector": "#low", "position": {"x": 2, "y": 3}})).await;
    assert_eq!(bench.log().await, ["low"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ready_yet_is_waited_for() {
    let bench = Bench::at("/acting-targets.html").await;
    for (prepare, selector) in
        [("byTimer()", "#keys"), ("byAnimation()", "#keys"), ("replace()", "#swapped"), ("enable()", "#slow")]
    {
        bench.value(&format!("void {prepare}")).await;
        let got = hit(&bench, selector).await;
        assert!(got.starts_with(&selector[1..]), "{prepare} {selector}: {got}");
    }
    bench.value("void byRequest()").await;
    bench.site.arrived("/hold").await;
    let click = bench.with_session(json!({"selector": "#keys"}));
    let waiting = bench.server.begin("click", click).await;
    bench.site.release();
    assert_eq!(waiting.reply().await.data()["ok"], true, "a cover that goes with a request");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_acted_on_has_a_reason() {
    let bench = Bench::at("/acting-targets.html").await;
    bench.value("void dialog.showModal()").await;
    let covered = json!({"selector": "#under-dialog"});
    let covered = bench.fault("click", covered, "ELEMENT_NOT_ACTIONABLE").await;
    assert!(
        covered["details"]["reason"].as_str().is_some_and(|reason| reason.starts_with("covered by <")),
        "{covered}"
    );
    assert_eq!(hit(&bench, "#in-dialog").await, "in-dialog");
    bench.value("dialog.close()").await;
    for (selector, reason) in [
        ("#endless", "moving"),
        ("#folded", "covered by"),
        ("#through", "it takes no pointer events"),
        ("#fieldset-button", "disabled"),
        ("#aria-button", "disabled"),
        ("#item", "hidden"),
    ] {
        let fault = bench.fault("click", json!({"selector": selector}), "ELEMENT_NOT_ACTIONABLE").await;
        let got = fault["details"]["reason"].as_str().unwrap_or_default();
        assert!(got.starts_with(reason), "{selector}: {got}");
        assert_eq!(fault["details"]["selector"], selector);
    }
    assert_eq!(bench.log().await, Vec::<String>::new(), "nothing was clicked instead");
}

#[tokio::test(flavor = "multi_thread")]
async fn buttons_counts_and_modifiers_are_real() {
    let bench = Bench::at("/acting-targets.html").await;
    let click = |extra: Value| {
        let mut arguments = json!({"selector": "#keys"});
        arguments.as_object_mut().expect("an object").extend(extra.as_object().cloned().unwrap_or_default());
        arguments
    };
    bench.ok("click", click(json!({"click_count": 2}))).await;
    assert_eq!(bench.log().await, ["keys click 1 ", "keys click 2 ", "keys dblclick 2 "]);
    bench.ok("click", click(json!({"button": "right"}))).await;
    let log = bench.log().await;
    assert!(log.iter().any(|line| line.starts_with("keys contextmenu")), "{log:?}");
    bench.ok("click", click(json!({"button": "middle"}))).await;
    assert_eq!(bench.log().await, ["keys auxclick 1 "]);
    bench.ok("click", click(json!({"modifiers": ["Shift", "Control", "Alt", "Meta"]}))).await;
    assert_eq!(bench.log().await, ["keys click 1 shift+ctrl+alt+meta"]);
    bench.ok("click", click(json!({"modifiers": ["ControlOrMeta"]}))).await;
    assert_eq!(bench.log().await, ["keys click 1 ctrl"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_element_that_is_replaced_all_the_time_is_found_as_it_is_now() {
    let bench = Bench::at("/plain.html").await;
    let replace = "window.clicks = 0; document.body.innerHTML = '<div id=place></div>';
        const put = () => { place.innerHTML = '<button onclick=\"clicks++\">Save</button><input aria-label=Name>'; };
        put(); setInterval(put, 30); 1";
    bench.value(replace).await;
    for selector in ["role=button[name=\"Save\"]", "role=button", "#place >> role=button[name=/^save$/i]", "text=Save"]
    {
        let text = bench.ok("wait_for_selector", json!({"selector": selector, "timeout": 5000})).await;
        assert_eq!(text["selector"], selector);
        for _ in 0..3 {
            bench.ok("scroll", json!({"mode": "selector", "selector": selector, "timeout": 10000})).await;
        }
    }
    bench.ok("fill", json!({"selector": "role=textbox[name=\"Name\"]", "value": "a", "timeout": 10000})).await;
    // In a document whose names take longer to work out than an element lives, it is not said to be absent.
    let long = "document.body.insertAdjacentHTML('beforeend', '<p>text <b>b</b></p>'.repeat(3000)); 1";
    bench.value(long).await;
    let asked = json!({"key": "a", "selector": "role=button[name=\"Save\"]", "timeout": 1500});
    let reply = bench.server.call("press_key", bench.with_session(asked)).await;
    assert_ne!(reply.code(), "ELEMENT_NOT_FOUND", "{}", reply.structured);
}

//! Fields of every kind, and the events that pages learn of a change by.

use serde_json::json;

use super::Bench;

#[tokio::test(flavor = "multi_thread")]
async fn options_are_selected_by_value_or_label() {
    let bench = Bench::at("/acting-fields.html").await;
    let select = |selector: &str, values: &[&str]| json!({"selector": selector, "values": values});
    let chosen = bench.ok("select_option", select("#fruit", &["Apple"])).await;
    assert_eq!(chosen["selected"], json!(["a"]));
    assert_eq!(bench.log().await, ["fruit input a", "fruit change a"]);
    let chosen = bench.ok("select_option", select("label=Fruit", &["Blue berry"])).await;
    assert_eq!(chosen["selected"], json!(["b"]), "labels are compared as they show");
    let chosen = bench.ok("select_option", select("text=Fruit", &["a"])).await;
    assert_eq!(chosen["selected"], json!(["a"]), "a label stands for its control");
    let chosen = bench.ok("select_option", select("#many", &["three", "one"])).await;
    assert_eq!(chosen["selected"], json!(["one", "three"]));
    let chosen = bench.ok("select_option", select("#many", &["two"])).await;
    assert_eq!(chosen["selected"], json!(["two"]), "exactly what was asked for");
    let chosen = bench.ok("select_option", select("#loading", &["late"])).await;
    assert_eq!(chosen["selected"], json!(["late"]), "options that are still on their way are waited for");
    for (selector, values, reason) in [
        ("#fruit", &["Mango"][..], "it has no option \"Mango\""),
        ("#fruit", &["c"], "its option \"c\" is disabled"),
        ("#fruit", &["a", "b"], "it takes one option"),
        ("#list", &["a"], "<div#list> is no <select>: click it, then the option"),
    ] {
        let fault = bench.fault("select_option", select(selector, values), "ELEMENT_NOT_ACTIONABLE").await;
        assert_eq!(fault["details"], json!({"selector": selector, "reason": reason}));
    }
    bench.fault("select_option", json!({"selector": "#fruit", "values": []}), "INVALID_ARGUMENTS").await;
    let asks = bench.ok("select_option", select("#asks", &["yes"])).await;
    assert_eq!(asks["dialog"]["message"], "really?", "the choice is made, and a dialog came of it");
    let handled = bench.ok("handle_dialog", json!({"accept": false})).await;
    assert_eq!(handled["action"], "dismissed");
    assert!(bench.log().await.contains(&"asked false".to_owned()));
}

#[tokio::test(flavor = "multi_thread")]
async fn fields_of_every_kind_take_their_values() {
    let bench = Bench::at("/acting-fields.html").await;
    let fill = |selector: &str, value: &str| json!({"selector": selector, "value": value});
    for (selector, value) in [
        ("#date", "2024-02-29"),
        ("#time", "23:59"),
        ("#color", "#ff8800"),
        ("#range", "7"),
        ("#number", "-1.5e3"),
        ("#mail", "a@b.example"),
        ("#controlled", "state"),
    ] {
        bench.ok("fill", fill(selector, value)).await;
        assert_eq!(bench.value(&format!("document.querySelector('{selector}').value")).await, value, "{selector}");
    }
    let mirror = bench.value("document.querySelector('#mirror').textContent").await;
    assert_eq!(mirror, "state", "a framework that tracks the value has seen the change");
    let log = bench.log().await;
    for line in ["date input 2024-02-29", "date change 2024-02-29", "color change #ff8800", "range input 7"] {
        assert!(log.contains(&line.to_owned()), "{line}: {log:?}");
    }
    bench.ok("type_text", json!({"selector": "#controlled", "text": " more"})).await;
    assert_eq!(bench.value("document.querySelector('#mirror').textContent").await, "state more");
    for tool in
        [json!({"selector": "#phone", "value": "5551234567"}), json!({"selector": "#phone", "text": "5551234567"})]
    {
        let name = if tool["text"].is_string() { "type_text" } else { "fill" };
        bench.ok(name, tool).await;
        assert_eq!(bench.value("phone.value").await, "(555) 123-4567", "{name}: the mask has its way");
        bench.ok("fill", fill("#phone", "")).await;
    }
    bench.ok("fill", fill("#short", "more than five")).await;
    assert_eq!(bench.value("document.querySelector('#short').value").await, "more ", "its own limit holds");
    bench.ok("fill", fill("text=Mail", "label@b.example")).await;
    assert_eq!(bench.value("mail.value").await, "label@b.example", "a label stands for its control");
    for (selector, value) in [("#date", "2024-02-30"), ("#date", "tomorrow"), ("#color", "red"), ("#number", "many")] {
        let fault = bench.fault("fill", fill(selector, value), "ELEMENT_NOT_ACTIONABLE").await;
        let reason = fault["details"]["reason"].as_str().unwrap_or_default();
        assert!(reason.contains("not editable"), "{selector} {value}: {reason}");
    }
    assert_eq!(bench.value("document.querySelector('#date').value").await, "2024-02-29", "and nothing is changed");
}

#[tokio::test(flavor = "multi_thread")]
async fn forms_are_filled_in_order_and_say_how_far_they_came() {
    let bench = Bench::at("/acting-fields.html").await;
    let filled = json!({"fields": [
        {"selector": "#mail", "value": "a@b.example"},
        {"selector": "#tick", "value": true},
        {"selector": "#ghost", "value": true},
        {"selector": "#r2", "value": "true"},
        {"selector": "#fruit", "value": "Apple"},
        {"selector": "#many", "value": ["one", "two"]},
        {"selector": "label=Secret", "value": "hunter2-canary"},
        {"selector": "#rich", "value": "rich"},
    ]});
    let filled = bench.ok("fill_form", filled).await;
    let kinds: Vec<&str> =
        filled["fields"].as_array().expect("fields").iter().filter_map(|field| field["kind"].as_str()).collect();
    assert_eq!(kinds, ["text", "checkbox", "checkbox", "radio", "select", "select", "text", "text"]);
    let state = "[mail.value, tick.checked, ghost.checked, r2.checked, fruit.value, [...many.selectedOptions].length, secret.value.length, rich.textContent].join()";
    assert_eq!(bench.value(state).await, "a@b.example,true,true,true,a,2,14,rich");
    bench
        .ok(
            "fill_form",
            json!({"fields": [{"selector": "#tick", "value": true}, {"selector": "#ghost", "value": false}]}),
        )
        .await;
    assert_eq!(bench.value("[tick.checked, ghost.checked].join()").await, "true,false", "what is so already stays");

    let stops = json!({"fields": [
        {"selector": "#mail", "value": "c@d.example"},
        {"selector": "#tick", "value": false},
        {"selector": "#locked", "value": true},
        {"selector": "#area", "value": "never"},
    ]});
    let stopped = bench.fault("fill_form", stops, "ELEMENT_NOT_ACTIONABLE").await;
    let wanted = json!({"selector": "#locked", "reason": "disabled", "failed_field": 2, "done": ["#mail", "#tick"]});
    assert_eq!(stopped["details"], wanted);
    assert_eq!(stopped["operation"]["outcome"], "unknown");
    assert_eq!(bench.value("[mail.value, tick.checked, area.value].join()").await, "c@d.example,false,");
    for (value, selector, reason) in [
        (json!("yes"), "#tick", "a checkbox or radio button takes true or false"),
        (json!(true), "#area", "a text field takes one text"),
        (json!(false), "#fruit", "a select takes a text or several"),
        (json!(false), "#r2", "a radio button is switched off by choosing another"),
    ] {
        let fault = bench
            .fault("fill_form", json!({"fields": [{"selector": selector, "value": value}]}), "ELEMENT_NOT_ACTIONABLE")
            .await;
        assert_eq!((&fault["details"]["reason"], &fault["details"]["failed_field"]), (&json!(reason), &json!(0)));
    }
    let missing = json!({"fields": [{"selector": "#area", "value": "x"}, {"selector": "#nothing", "value": "x"}]});
    let missing = bench.fault("fill_form", missing, "ELEMENT_NOT_FOUND").await;
    assert_eq!(missing["details"]["done"], json!(["#area"]));
    let unparsed = json!({"fields": [{"selector": "#area", "value": "y"}, {"selector": "role=button[", "value": "x"}, {"selector": "#a", "value": 5}]});
    let unparsed = bench.fault("fill_form", unparsed, "INVALID_ARGUMENTS").await;
    assert_eq!(unparsed["details"]["problems"][0]["field"], "fields.2.value", "{unparsed}");
    let unparsed = json!({"fields": [{"selector": "#area", "value": "y"}, {"selector": "role=button[", "value": "x"}]});
    let unparsed = bench.fault("fill_form", unparsed, "INVALID_ARGUMENTS").await;
    assert_eq!(unparsed["details"]["problems"][0]["field"], "fields.1.selector", "{unparsed}");
    assert_eq!(bench.value("area.value").await, "x", "nothing is filled when a selector does not parse");

    let events = json!({"session_id": bench.id});
    let events = crate::support::walk::all(&bench.server, "list_events", "events", events, 500).await;
    let told = serde_json::to_string(&events).expect("JSON");
    assert!(!told.contains("hunter2-canary") && !told.contains("c@d.example"), "what is typed stays out of the log");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_field_that_holds_something_else_is_told_of() {
    let bench = Bench::at("/plain.html").await;
    let page = "document.body.innerHTML = '<input id=plain><input id=short maxlength=3><textarea id=lines></textarea>\
        <input id=loud oninput=\"value = value.toUpperCase()\"><input id=secret type=password maxlength=4>\
        <div id=rich contenteditable></div>'; 1";
    bench.value(page).await;
    for (selector, value, told) in [
        ("#plain", "abc", json!(null)),
        ("#lines", "a\r\nb", json!(null)),
        ("#rich", "abc", json!(null)),
        ("#short", "abcdef", json!(false)),
        ("#loud", "abc", json!(false)),
        ("#secret", "hunter2-canary", json!(false)),
    ] {
        let filled = bench.ok("fill", json!({"selector": selector, "value": value})).await;
        assert_eq!(filled["value_matches"], told, "{selector}: {filled}");
        assert!(!filled.to_string().contains("hunt"), "{filled}");
    }
}

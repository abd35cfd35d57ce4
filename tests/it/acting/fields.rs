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

//! Text of every script, keys and chords.

use serde_json::{Value, json};

use super::Bench;

/// A family of four: seven characters that show as one, each person outside the basic plane.
const FAMILY: &str = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}\u{200d}\u{1f466}";

async fn value_of(bench: &Bench, selector: &str) -> Value {
    bench.value(&format!("(node => node.value ?? node.textContent)(document.querySelector('{selector}'))")).await
}

#[tokio::test(flavor = "multi_thread")]
async fn text_of_every_script_arrives_whole() {
    let bench = Bench::at("/acting-fields.html").await;
    let texts = [
        "na\u{ef}ve \u{e9}t\u{e9} \u{df}",
        "\u{65e5}\u{672c}\u{8a9e}",
        "\u{5e9}\u{5dc}\u{5d5}\u{5dd}",
        "e\u{301} \u{1f1e9}\u{1f1ea} \u{1f600}",
        FAMILY,
        "\u{20bb7}\u{10ffff}",
        "a<b>&\"'\\",
    ];
    for text in texts {
        for selector in ["#area", "#mail", "#rich"] {
            bench.ok("fill", json!({"selector": selector, "value": text})).await;
            if selector != "#mail" {
                assert_eq!(value_of(&bench, selector).await, text, "fill {selector}");
            }
            bench.ok("fill", json!({"selector": selector, "value": ""})).await;
            assert_eq!(value_of(&bench, selector).await, "", "{selector} can be emptied");
            bench.ok("type_text", json!({"selector": selector, "text": text})).await;
            assert_eq!(value_of(&bench, selector).await, text, "type_text {selector}");
        }
    }
    for key in ["\u{e9}", "\u{1f600}", FAMILY, "\u{65e5}"] {
        bench.ok("fill", json!({"selector": "#area", "value": ""})).await;
        bench.ok("press_key", json!({"selector": "#area", "key": key})).await;
        assert_eq!(value_of(&bench, "#area").await, key, "press_key");
    }
    bench.ok("fill", json!({"selector": "#area", "value": "one"})).await;
    bench.ok("type_text", json!({"selector": "#area", "text": "\ntwo\tx"})).await;
    let typed = value_of(&bench, "#area").await;
    assert!(typed.as_str().is_some_and(|text| text.starts_with("one\ntwo")), "{typed}");
    bench.ok("fill", json!({"selector": "#plain", "value": "new\nlines"})).await;
    assert_eq!(bench.value("document.querySelector('#plain').innerText").await, "new\nlines");
}

#[tokio::test(flavor = "multi_thread")]
async fn keys_and_chords_do_what_they_do() {
    let bench = Bench::at("/acting-fields.html").await;
    bench.ok("fill", json!({"selector": "#area", "value": "one two three"})).await;
    let press = async |key: &str| bench.ok("press_key", json!({"key": key, "selector": "#area"})).await;
    press("End").await;
    press("Control+Shift+ArrowLeft").await;
    assert_eq!(bench.value("getSelection().toString()").await, "three");
    press("Backspace").await;
    press("Control+A").await;
    press("Control+C").await;
    press("ArrowRight").await;
    press("Shift+x").await;
    press("Enter").await;
    press("Control+V").await;
    assert_eq!(value_of(&bench, "#area").await, "one two X\none two ");
    press("Control+Z").await;
    assert_eq!(value_of(&bench, "#area").await, "one two X\n", "the chord is the browser's own command");
    bench.ok("press_key", json!({"key": "Tab", "selector": "#date"})).await;
    bench.ok("press_key", json!({"key": "Space", "selector": "#tick"})).await;
    assert_eq!(bench.value("tick.checked").await, true);
    bench.ok("press_key", json!({"key": "ArrowDown", "selector": "#fruit"})).await;
    bench.fault("press_key", json!({"key": "Hyper+x"}), "INVALID_ARGUMENTS").await;
    bench.fault("press_key", json!({"key": "two words"}), "INVALID_ARGUMENTS").await;
}

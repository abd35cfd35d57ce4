//! Remote objects in the shapes that Chromium sends, and what becomes of them.

use serde_json::{Value, json};

use super::{RemoteObject, arguments, called};

fn line(values: Value) -> String {
    let parsed: Vec<RemoteObject> = serde_json::from_value(values).expect("the test writes remote objects");
    arguments(&parsed)
}

#[test]
fn primitives_stand_as_they_are() {
    let text = line(json!([
        {"type": "string", "value": "100%"}, {"type": "number", "value": 1.5}, {"type": "boolean", "value": false},
        {"type": "undefined"}, {"type": "object", "subtype": "null", "value": null},
        {"type": "number", "unserializableValue": "NaN", "description": "NaN"},
        {"type": "bigint", "unserializableValue": "12n"}, {"type": "symbol", "description": "Symbol(a)"}
    ]));
    assert_eq!(text, "100% 1.5 false undefined null NaN 12n Symbol(a)");
}

#[test]
fn format_specifiers_take_their_arguments() {
    let text = line(json!([
        {"type": "string", "value": "%c%s is %d of %i, %f%% %x %s"}, {"type": "string", "value": "color: red"},
        {"type": "string", "value": "it"}, {"type": "number", "value": 4, "description": "4"}, {"type": "string", "value": "x"},
        {"type": "number", "value": 0.5}, {"type": "string", "value": "last"}, {"type": "string", "value": "more"}
    ]));
    assert_eq!(text, "it is 4 of NaN, 0.5% %x last more");
}

#[test]
fn previews_show_what_they_hold() {
    let text = line(json!([
        {"type": "object", "description": "Object", "preview": {"type": "object", "description": "Object", "overflow": true,
            "properties": [{"name": "a", "type": "number", "value": "1"}, {"name": "b", "type": "string", "value": "x"},
                {"name": "c", "type": "object", "value": "Array(2)", "subtype": "array"}]}},
        {"type": "object", "subtype": "array", "description": "Array(2)", "preview": {"type": "object", "subtype": "array",
            "description": "Array(2)", "properties": [{"name": "0", "type": "number", "value": "1"}, {"name": "1", "type": "undefined", "value": "undefined"}]}},
        {"type": "object", "subtype": "map", "description": "Map(1)", "preview": {"type": "object", "subtype": "map", "description": "Map(1)",
            "entries": [{"key": {"type": "string", "description": "k"}, "value": {"type": "number", "description": "2"}}]}},
        {"type": "object", "subtype": "error", "description": "Error: no\n    at f (a.js:1:2)", "preview": {"description": "Error"}}
    ]));
    assert_eq!(
        text,
        "{a: 1, b: \"x\", c: Array(2), ...} [1, undefined] Map(1) {\"k\" => 2} Error: no\n    at f (a.js:1:2)"
    );
}

#[test]
fn methods_that_got_nothing_say_what_they_are() {
    let one = |text: &str| vec![RemoteObject { value: Some(text.into()), ..RemoteObject::default() }];
    assert_eq!(called("assert", &one("console.assert")), "Assertion failed");
    assert_eq!(called("assert", &one("odd")), "Assertion failed: odd");
    assert_eq!(called("clear", &one("console.clear")), "Console was cleared");
    assert_eq!(called("table", &one("no table")), "no table");
    assert_eq!(called("log", &[]), "");
}

#[test]
fn lists_tell_their_holes_and_their_length() {
    let list = |description: &str, overflow: bool, names: &[&str]| {
        let properties: Vec<Value> =
            names.iter().map(|name| json!({"name": name, "type": "number", "value": "7"})).collect();
        line(json!([{"type": "object", "subtype": "array", "description": description, "preview": {
            "subtype": "array", "description": description, "overflow": overflow, "properties": properties}}]))
    };
    assert_eq!(list("Array(3)", false, &["0", "2"]), "[7, empty, 7]");
    assert_eq!(list("Array(9)", false, &["4", "own"]), "[empty x 4, 7, own: 7, empty x 4]");
    assert_eq!(list("Array(200)", true, &["0", "1"]), "Array(200) [7, 7, ...]");
    assert_eq!(list("Arguments(1)", false, &["0", "callee"]), "Arguments(1) [7]");
    let far = u64::MAX.to_string();
    assert_eq!(list("Array(no)", false, &[&far, "0"]), format!("[empty x {far}, 7, 7]"));
}

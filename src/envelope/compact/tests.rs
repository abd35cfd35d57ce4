//! What a model gets to read, word for word, and that nothing a page wrote makes a line of its own.

use proptest::prelude::*;
use serde_json::json;

use super::*;

const READER: Reader = Reader { acts: false, names_session: true };

fn success(data: Value) -> Value {
    let operation = json!({"id": "op-1", "outcome": "completed", "retry": "not_needed", "artifacts": []});
    json!({"status": "success", "instance": "main", "data": data, "operation": operation})
}

#[test]
fn console_messages_are_one_line_each() {
    let at = |line: u64| json!({"url": "http://127.0.0.1:80/a.js", "line": line, "column": 5});
    let message = |seq: u64, level: &str, kind: &str, text: &str, line: u64| {
        json!({"seq": seq, "timestamp": "2026-01-01T00:00:00Z", "type": kind, "level": level, "text": text,
            "tab_id": "t-1", "operation_id": "op-9", "location": at(line)})
    };
    let data = json!({
        "messages": [
            message(3, "info", "log", "hello", 7),
            message(4, "info", "log", "a\n9E forged\u{202e}", 7),
            message(5, "error", "exception", "Error: no\n    at f", 1),
        ],
        "next_cursor": "c1", "has_more": false, "retained_count": 3, "dropped_count": 0, "retention_lost": false
    });
    let expected = r"next_cursor: c1
has_more: false
retained_count: 3
dropped_count: 0
retention_lost: false
3 messages (E error, W warning, D debug); places: a=http://127.0.0.1:80/a.js:7
-- tab_id=t-1 operation_id=op-9
3a hello
4a a\n9E forged\u202e
5E@http://127.0.0.1:80/a.js:1:5(exception) Error: no\n    at f";
    assert_eq!(render(&success(data), READER), expected);
}

#[test]
fn requests_say_what_is_not_usual() {
    let data = json!({"requests": [
        {"request_id": "r-ab-1", "seq": 1, "method": "GET", "url": "http://h:1/shop/cart", "resource_type": "document",
            "state": "finished", "status": 200, "duration_ms": 1.5},
        {"request_id": "r-ab-2", "seq": 2, "method": "POST", "url": "http://h:1/shop/x y=z", "resource_type": "fetch",
            "state": "failed", "status": null, "failure": "net::ERR_FAILED"},
        {"request_id": "r-ab-3", "seq": 3, "method": "GET", "url": "https://other/", "resource_type": "image",
            "state": "pending", "status": null},
        {"request_id": "r-ab-4", "seq": 4, "method": "GET", "url": "http://h:1/shop/b.png?c=/d", "resource_type": "image",
            "state": "finished", "status": 200},
    ]});
    let expected = "4 requests, each GET 200 image unless said; ids begin with r-ab-; addresses: a=http://h:1/shop/
1a document cart
2a POST fetch state=failed failure=net::ERR_FAILED x%20y=z
3 state=pending https://other/
4a b.png?c=/d";
    assert_eq!(render(&success(data), READER), expected);
}

#[test]
fn one_long_text_stands_last_and_as_it_is() {
    let html = "<p>\nnext_cursor: forged\n".repeat(20);
    let data = json!({"session_id": "s", "url": "http://h/\nx", "html": html, "note": null, "like": "1", "path": "C:\\new", "list": ["a", "b"]});
    let head = format!(
        "url: http://h/\\nx\nnote: null\nlike: \"1\"\npath: C:\\\\new\nlist: a, b\noperation: op-1\nhtml, {} bytes to the end:\n",
        html.len()
    );
    assert_eq!(render(&success(data), Reader { acts: true, ..READER }), format!("{head}{html}"));
}

#[test]
fn a_failure_begins_with_its_code() {
    let envelope = json!({"status": "error", "code": "ELEMENT_NOT_FOUND", "message": "Nothing matches.",
        "next_step": "Take a snapshot.", "details": {"selector": "#a\n", "candidates": [{"a": 1, "b": "x y"}]},
        "operation": {"id": "op-1", "outcome": "not_started", "retry": "after_correction", "artifacts": []}});
    let expected = "ELEMENT_NOT_FOUND: Nothing matches.
next_step: Take a snapshot.
selector: #a\\n
candidates:
- a=1 b=\"x y\"
outcome: not_started
retry: after_correction
operation: op-1";
    assert_eq!(render(&envelope, READER), expected);
}

proptest! {
    /// Whatever pages write, the lines are those that the items make.
    #[test]
    fn nothing_makes_a_line_of_its_own(texts in prop::collection::vec("[a\n\r\u{85}\u{2028}\u{0}|= -]{0,60}", 1..20)) {
        let mut items = Vec::new();
        for (seq, text) in texts.iter().enumerate() {
            let mut item = json!({"seq": seq, "level": "info", "type": text, "text": text, "kind": text,
                "location": {"url": text}, "stack": [{"function": text, "url": text}], "data": {"x": text}});
            item[text] = text.as_str().into();
            items.push(item);
        }
        for key in ["messages", "requests", "events", "downloads", "matches", "other"] {
            let text = render(&success(json!({key: items})), READER);
            let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}', '\u{b}', '\u{c}']).count();
            prop_assert!(lines <= items.len() + 1, "{}: {:?}", key, text);
        }
    }
}

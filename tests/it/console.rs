//! Console lines read as a developer reads them, and reading them runs nothing of the page.

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server, walk};

/// What the page says in `script`, up to its end.
async fn said(script: &str) -> Vec<Value> {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/form.html")).await;
    let expression = format!("{{ {script} }} setTimeout(() => console.log('that was all'), 50); 1");
    server.ok("evaluate", json!({"session_id": id, "expression": expression})).await;
    let mut messages = walk::console_with(&server, &id, "that was all").await;
    messages.pop();
    messages
}

/// A script that logs each value, and the lines that are to come of it.
fn cases() -> Vec<(&'static str, &'static str)> {
    vec![
        ("-0, NaN, 1e21, 12n, Symbol('s'), undefined, null", "-0 NaN 1e+21 12n Symbol(s) undefined null"),
        (
            "{a: 1, s: 'x', list: [1], u: undefined, n: null}",
            r#"{a: 1, s: "x", list: Array(1), u: undefined, n: null}"#,
        ),
        ("new Map([['k', {a: 1}], [{o: 1}, [1, 2]]])", r#"Map(2) {"k" => {a: 1}, {o: 1} => [1, 2]}"#),
        ("new Set([1, 'x', {}]), new Set()", r#"Set(3) {1, "x", {}} Set(0) {}"#),
        ("new Date(NaN), /a/g", "Invalid Date /a/g"),
        ("new (class Point { x = 1; #hidden = 2 })", "Point {#hidden: 2, x: 1}"),
        ("function named(a) { return a }, class K {}", "function named(a) { return a } class K {}"),
        ("{}, [], [1,, 3, , ,]", "{} [] [1, empty, 3, empty x 2]"),
        ("Object.assign(Object.create(null), {a: 1})", "{a: 1}"),
        ("(() => { const o = {n: 1}; o.self = o; return o })()", "{n: 1, self: Object}"),
        ("new Proxy({a: 1}, {})", "Proxy(Object) {a: 1}"),
        ("{get x() { throw 1 }}", "{x: (...)}"),
        ("new Uint8Array([1, 2]), new ArrayBuffer(4).byteLength", "Uint8Array(2) [1, 2] 4"),
        ("Promise.resolve({a: 1}), new Promise(() => {})", "Promise {<fulfilled>: Object} Promise {<pending>}"),
        ("Object('boxed')", r#"String {"boxed"}"#),
        ("document.createElement('div')", "div"),
        ("new DOMException('no', 'AbortError')", "AbortError: no"),
        ("'%c%s %d %i %f %o %%', 'color: red', 's', '4.9px', 4.9, '1.5', {a: 1}, 'rest'", "s 4 4 1.5 {a: 1} % rest"),
        ("'%f %d %s', Infinity, 'none', {}, 1", "Infinity NaN [object Object] 1"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
async fn values_read_as_a_developer_reads_them() {
    let cases = cases();
    let script: Vec<String> = cases.iter().map(|(values, _)| format!("console.log({values});")).collect();
    let messages = said(&script.join("\n")).await;
    let wanted: Vec<&str> = cases.iter().map(|(_, line)| *line).collect();
    assert_eq!(walk::texts(&messages), wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn errors_bring_their_stack_their_cause_and_what_they_carry() {
    let messages = said(
        "class Odd extends Error { code = 7 }
         console.error(new Odd('top', {cause: new TypeError('low')}));
         console.error(new AggregateError([new Error('one')], 'many'));
         Promise.reject(new Error('refused', {cause: 'a word'}));
         Promise.reject({code: 5});
         Promise.reject(undefined);
         setTimeout(() => { throw 'a string' });
         document.body.addEventListener('click', () => { throw new RangeError('in a handler') });
         document.body.click();",
    )
    .await;
    let texts = walk::texts(&messages);
    let starting = |start: &str| {
        let found =
            messages.iter().find(|message| message["text"].as_str().is_some_and(|text| text.starts_with(start)));
        found.unwrap_or_else(|| panic!("{start}: {texts:?}"))
    };
    let odd = starting("Odd: top\n    at ");
    let text = odd["text"].as_str().expect("text");
    assert!(text.contains("\n{code: 7}\nCaused by: TypeError: low\n    at "), "{text}");
    assert!(odd["stack"].as_array().is_some_and(|stack| !stack.is_empty()), "{odd}");
    let many = starting("AggregateError: many\n    at ")["text"].as_str().expect("text");
    assert!(many.ends_with("\n{errors: Array(1)}"), "{many}");
    let refused = starting("Uncaught (in promise) Error: refused\n    at ");
    assert!(refused["text"].as_str().is_some_and(|text| text.ends_with("\nCaused by: \"a word\"")), "{refused}");
    starting("Uncaught (in promise) {code: 5}");
    starting("Uncaught (in promise) undefined");
    let thrown = starting("Uncaught a string");
    assert_eq!((&thrown["type"], &thrown["level"]), (&json!("exception"), &json!("error")));
    let handler = starting("Uncaught RangeError: in a handler\n    at HTMLBodyElement.");
    assert!(handler["location"]["line"].is_u64() && handler["stack"].is_array(), "{handler}");
}

#[tokio::test(flavor = "multi_thread")]
async fn tables_groups_asserts_and_counts_say_what_they_are() {
    let messages = said(
        "console.table([{a: 1, b: 'x'}, {a: 2, c: true}]); console.table([[1, 2], [3]]); console.table([5, {a: 1}]);
         console.table(new Map([['k', {z: 1}]])); console.table([{a: 1, b: 2}], ['b']); console.table(5);
         console.group('G %s', 'x'); console.groupEnd(); console.assert(false); console.assert(0, 'of %s', 'x');
         console.count('n'); console.count('n'); console.trace('here'); console.dir({a: 1}); console.clear();",
    )
    .await;
    let rows: Vec<(&str, &str)> = messages
        .iter()
        .map(|row| (row["type"].as_str().unwrap_or_default(), row["text"].as_str().unwrap_or_default()))
        .collect();
    let wanted = [
        ("table", "(index) | a | b | c\n0 | 1 | \"x\" | \n1 | 2 |  | true"),
        ("table", "(index) | 0 | 1\n0 | 1 | 2\n1 | 3 | "),
        ("table", "(index) | a | Value\n0 |  | 5\n1 | 1 | "),
        ("table", "(index) | z\n\"k\" | 1"),
        ("table", "(index) | b\n0 | 2"),
        ("table", "5"),
        ("startgroup", "G x"),
        ("endgroup", "console.groupEnd"),
        ("assert", "Assertion failed"),
        ("assert", "Assertion failed: of x"),
        ("count", "n: 1"),
        ("count", "n: 2"),
        ("trace", "here"),
        ("dir", "{a: 1}"),
        ("clear", "Console was cleared"),
    ];
    assert_eq!(rows, wanted);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hostile_page_is_written_down_and_not_run() {
    let messages = said(
        "globalThis.ran = 0; const trap = () => { ran++; throw 1 };
         const traps = new Proxy({}, {get: () => trap});
         console.log(new Proxy({a: 1}, traps), {get x() { return trap() }, [Symbol.toPrimitive]: trap, toString: trap});
         console.log(Object.fromEntries(Array.from({length: 10000}, (_, at) => ['k' + at, at])));
         console.log('a\\u001b[31mred\\u0000 \\ud800 end');
         console.log(...Array(50000).fill('y'));
         const failure = new Error('real'); Object.defineProperty(failure, 'cause', {get: trap});
         console.error(failure); console.log('traps sprung: ' + ran);",
    )
    .await;
    let texts = walk::texts(&messages);
    assert!(texts[0].starts_with("Proxy(Object) {a: 1} {x: (...), "), "{}", texts[0]);
    assert_eq!(texts[1], "{k0: 0, k1: 1, k2: 2, k3: 3, k4: 4, ...}");
    assert_eq!(texts[2], "a\u{1b}[31mred\0 \u{fffd} end");
    assert!(texts[3].starts_with("y y y ") && messages[3]["text_bytes"] == 99_999, "{}", messages[3]["text_bytes"]);
    assert!(messages[3]["text_artifact"].is_string(), "the whole is kept");
    assert!(texts[4].starts_with("Error: real\n    at "), "{}", texts[4]);
    assert_eq!(texts[5], "traps sprung: 0", "{texts:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_the_browser_says_and_what_nobody_caught_is_told_wherever_it_is() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/entries.html")).await;
    for text in ["thrown in a worker", "rejected in a worker", "of another site", "kept from the page", "404", "a text"]
    {
        walk::console_with(&server, &id, text).await;
    }
    let messages = walk::console(&server, &id).await;
    let wanted = [
        ("browser", "Content Security Policy directive 'style-src 'none''", "/entries.html"),
        ("browser", "responded with a status of 404", "/nothing-of-that-name.png"),
        ("browser", "has been blocked by CORS policy", "/entries.html"),
        ("exception", "Uncaught a text", "/entries.html"),
        ("exception", "Uncaught (in promise) {reason: \"plain\"}", "/entries.html"),
        ("exception", "Uncaught TypeError: thrown by a script of another site", "/throwing.js"),
        ("warning", "warned in a worker", "blob:"),
        ("exception", "Uncaught RangeError: thrown in a worker\n    at blob:", "blob:"),
        ("exception", "Uncaught (in promise) Error: rejected in a worker\n    at blob:", "blob:"),
    ];
    for (kind, text, place) in wanted {
        let fits =
            |message: &&Value| message["type"] == kind && message["text"].as_str().is_some_and(|t| t.contains(text));
        let found: Vec<&Value> = messages.iter().filter(fits).collect();
        let [message] = found[..] else { panic!("{text}, once: {messages:?}") };
        assert!(message["location"]["url"].as_str().is_some_and(|url| url.contains(place)), "{message}");
        assert!(message["tab_id"].is_string(), "{message}");
    }
    let folded = json!({"session_id": id, "repeats": "fold", "text_filter": "^the same"});
    let folded = server.ok("list_console_messages", folded).await;
    let repeats: Vec<(&Value, &Value)> =
        folded["messages"].as_array().expect("a list").iter().map(|row| (&row["text"], &row["repeats"])).collect();
    assert_eq!(repeats, [(&json!("the same"), &json!(3)), (&json!("the same n => n"), &Value::Null)]);
    let above = server.ok("list_console_messages", json!({"session_id": id, "level": "warning"})).await;
    let levels: Vec<&Value> = above["messages"].as_array().expect("a list").iter().map(|row| &row["level"]).collect();
    assert!(levels.len() >= wanted.len() && levels.iter().all(|level| *level == "warning" || *level == "error"));
}

#[tokio::test(flavor = "multi_thread")]
async fn reading_waits_for_no_dialog_and_a_wrong_pattern_is_refused_by_name() {
    let site = Site::start().await;
    let server = Server::start(Options::stdio()).await;
    let id = server.launch_at(&site.url("/plain.html")).await;
    let alert = "console.log('before'); setTimeout(() => alert('it stands'), 0); 1";
    server.ok("evaluate", json!({"session_id": id, "expression": alert})).await;
    let blocked = json!({"session_id": id, "expression": "1"});
    crate::support::wait_for("the dialog", || async {
        let reply = server.call("evaluate", blocked.clone()).await;
        (reply.code() == "MODAL_STATE_BLOCKED").then_some(())
    })
    .await;
    let messages = walk::console(&server, &id).await;
    assert_eq!(walk::texts(&messages).last(), Some(&"before"), "{messages:?}");
    let wrong = json!({"session_id": id, "text_filter": "(open"});
    let fault = server.fault("list_console_messages", wrong, "INVALID_ARGUMENTS").await;
    let told = fault["details"]["problems"].to_string();
    assert!(told.contains("text_filter") && told.contains("unclosed group"), "{told}");
}

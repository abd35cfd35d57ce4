//! What scripts return, and how they end.

use std::time::Instant;

use serde_json::json;

use super::*;

#[tokio::test(flavor = "multi_thread")]
async fn every_value_comes_home_as_json() {
    let bench = Bench::start().await;
    bench.show("<p id=p class='a b'>x").await;
    let cases = [
        ("1 + 1", json!(2)),
        ("'text'", json!("text")),
        ("undefined", json!(null)),
        ("null", json!(null)),
        ("NaN", json!("NaN")),
        ("-0", json!("-0")),
        ("-Infinity", json!("-Infinity")),
        ("10n", json!("10n")),
        ("Symbol('s')", json!("Symbol(s)")),
        ("({a: [1, {b: NaN}], c: undefined})", json!({ "a": [1, { "b": "NaN" }] })),
        ("{a: 1}", json!({ "a": 1 })),
        ("() => 3", json!(3)),
        ("async () => { await null; return 4 }", json!(4)),
        ("(function() { return 5 })", json!(5)),
        ("Promise.resolve(6)", json!(6)),
        ("await Promise.resolve(7)", json!(7)),
        ("return 8", json!(8)),
        ("const twice = 9; twice", json!(9)),
        ("const twice = 10; twice", json!(10)),
        ("document.querySelector('#p')", json!("[Element <p#p.a.b>]")),
        ("document.querySelectorAll('#p')", json!(["[Element <p#p.a.b>]"])),
        ("document", json!("[Document #document]")),
        ("window", json!("[Window]")),
        ("document.querySelector", json!("[Function querySelector]")),
        ("new Map([['k', 1n]])", json!({ "[Map]": [["k", "1n"]] })),
        ("new Set([1])", json!({ "[Set]": [1] })),
        ("new Date(0)", json!("1970-01-01T00:00:00.000Z")),
        ("(() => { const o = {}; o.self = o; return o })()", json!({ "self": "[Circular]" })),
        ("'\\ud800x'", json!("\u{fffd}x")),
        ("({s: '\\ud800'})", json!({ "s": "\u{fffd}" })),
        ("({get x() { throw 'no' }})", json!({ "x": "[Throws no]" })),
    ];
    for (expression, wanted) in cases {
        assert_eq!(bench.value(expression).await, wanted, "{expression}");
    }
    let undefined = bench.page.evaluate("undefined", soon()).await.expect("evaluates");
    assert!(undefined.undefined);
    let large = bench.page.evaluate("({text: 'x'.repeat(5000000)})", soon()).await.expect("evaluates");
    assert_eq!(large.json.get().len(), 5_000_000 + r#"{"text":""}"#.len());
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn scripts_that_throw_or_never_end_are_told_apart() {
    let bench = Bench::start().await;
    bench.show("<p>x").await;
    let page = &bench.page;
    for (expression, text) in [
        ("throw new Error('boom')", "boom"),
        ("((", "SyntaxError"),
        ("nope.x", "nope is not defined"),
        ("throw 'plain'", "plain"),
        ("Promise.reject(new Error('later'))", "later"),
    ] {
        let thrown = page.evaluate(expression, soon()).await;
        assert!(
            matches!(&thrown, Err(PageError::Script { text: said }) if said.contains(text)),
            "{expression}: {thrown:?}"
        );
    }
    for expression in [
        "for (;;);",
        "setTimeout(() => { for (;;); }); new Promise(() => {})",
        "new Promise(() => {})",
        "await null; for (;;);",
        "Promise.resolve().then(() => { for (;;); })",
    ] {
        let began = Instant::now();
        let endless = page.evaluate(expression, Deadline::after(Duration::from_millis(300))).await;
        assert!(matches!(endless, Err(PageError::Timeout)), "{expression}: {endless:?}");
        assert!(began.elapsed() < Duration::from_millis(1500), "{expression}: {:?}", began.elapsed());
        assert_eq!(bench.value("1 + 1").await, 2, "after {expression}");
    }
    bench.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dialog_ends_what_it_holds_up() {
    let bench = Bench::start().await;
    bench.show("<button id=ask onclick=\"window.answer = confirm('sure?')\">Ask</button>").await;
    let page = &bench.page;
    let held = page.evaluate("alert('hi')", soon()).await;
    assert!(matches!(&held, Err(PageError::DialogOpen { dialog }) if dialog.dialog_type == "alert"), "{held:?}");
    let blocked = page.click("#ask", &Default::default(), soon()).await;
    assert!(matches!(blocked, Err(PageError::DialogOpen { .. })), "{blocked:?}");
    page.answer_dialog(true, None, soon()).await.expect("answered");
    let began = Instant::now();
    let done = page.click("#ask", &Default::default(), soon()).await.expect("clicked");
    assert_eq!(done.dialog.map(|dialog| dialog.message), Some("sure?".into()));
    assert!(began.elapsed() < Duration::from_secs(3), "{:?}", began.elapsed());
    page.answer_dialog(false, None, soon()).await.expect("answered");
    assert_eq!(bench.value("window.answer").await, false);
    bench.close().await;
}

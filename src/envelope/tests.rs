//! The promise: no reply is larger than its bound, whatever is in it, and nothing is lost by it.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use futures_util::FutureExt;
use proptest::prelude::*;
use serde_json::json;
use storage::ids::{FrameId, InstanceId, OperationId, PageId};

use super::*;

/// Keeps in memory, or refuses everything.
#[derive(Default)]
struct Shelf {
    refuses: bool,
    kept: Mutex<BTreeMap<String, Vec<u8>>>,
}

impl Keep for Shelf {
    fn keep<'a>(&'a self, _field: &'a str, _media_type: &'static str, bytes: Vec<u8>) -> Keeping<'a> {
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let handle = format!("art-{:032x}", kept.len());
        let result = if self.refuses { Err(Fault::new(Code::DiskLow)) } else { Ok(handle.as_str().into()) };
        kept.insert(handle, bytes);
        async move { result }.boxed()
    }
}

impl Shelf {
    fn bytes(&self, handle: &Value) -> Vec<u8> {
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept[handle.as_str().expect("a handle is text")].clone()
    }
}

fn operation(tool: &str, artifacts: Vec<Reference>) -> Operation {
    Operation {
        id: OperationId::from("0c7e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11"),
        tool: tool.to_owned(),
        instance_id: Some(InstanceId::from("6a0e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11")),
        page_id: Some(PageId::from("t-abc123")),
        frame_id: Some(FrameId::from("9A0E4C1E6A0E4A0B9F570D3F0F6A9B11")),
        started_at_micros: 1_796_040_000_000_000,
        finished_at_micros: 1_796_040_000_250_000,
        duration_ms: 250.000_4,
        entered: true,
        reads: false,
        artifacts,
    }
}

fn settle(operation: &Operation, result: Result<Data, Fault>, bytes_max: usize, shelf: &Shelf) -> Reply {
    reply(Some("main"), operation.clone(), result, Form::default(), bytes_max, shelf)
        .now_or_never()
        .expect("the shelf answers at once")
}

/// The reply as it leaves, with the largest request id and every member a protocol revision adds.
fn on_the_wire(reply: &Reply) -> usize {
    let result = json!({
        "resultType": "complete",
        "content": [{ "type": "text", "text": reply.text }],
        "structuredContent": reply.structured,
        "isError": reply.is_error,
    });
    let message = json!({ "jsonrpc": "2.0", "id": "6a0e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11", "result": result });
    format!("event: message\nid: 18446744073709551615\ndata: {message}\n\n").len()
}

fn arbitrary_text() -> impl Strategy<Value = String> {
    prop_oneof![
        any::<String>(),
        (any::<char>(), 0usize..4000).prop_map(|(character, count)| std::iter::repeat_n(character, count).collect()),
        (0usize..4000).prop_map(|count| "\u{1}\"\\".repeat(count)),
    ]
}

fn arbitrary_json() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        arbitrary_text().prop_map(Value::from),
    ];
    leaf.prop_recursive(6, 200, 20, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..20).prop_map(Value::from),
            prop::collection::vec((any::<String>(), inner), 0..20)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

fn listed(items: Vec<Value>) -> Data {
    let last = items.len().saturating_sub(1);
    let mut rest = Map::new();
    rest.insert("next_cursor".into(), format!("c{last}").into());
    rest.insert("has_more".into(), false.into());
    Data::List(List { field: "events", items, rest, cursor_after: Box::new(|position| format!("c{position}")) })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn no_reply_exceeds_its_bound(
        value in arbitrary_json(),
        as_list in any::<bool>(),
        refuses in any::<bool>(),
        instance in arbitrary_text(),
        tool in arbitrary_text(),
        path in arbitrary_text(),
        bytes_max in 4096usize..20_000,
    ) {
        let shelf = Shelf { refuses, ..Shelf::default() };
        let operation = operation(&tool, vec![Reference::Path(path)]);
        let settled = |bytes_max: usize| {
            let data = match &value {
                Value::Array(items) if as_list => listed(items.clone()),
                value => Data::Value(value.clone()),
            };
            let reply = reply(Some(&instance), operation.clone(), Ok(data), Form::default(), bytes_max, &shelf);
            reply.now_or_never().expect("the shelf answers at once")
        };
        // Just below its own size is where a wrong count would show.
        let whole = on_the_wire(&settled(usize::MAX));
        for bytes_max in [bytes_max, (whole - 1).max(4096), (whole * 3 / 4).max(4096)] {
            let reply = settled(bytes_max);
            prop_assert!(on_the_wire(&reply) <= bytes_max, "{} bytes of {bytes_max}", on_the_wire(&reply));
            prop_assert_eq!(&reply.text, &reply.structured.to_string());
            prop_assert_eq!(&reply.structured["operation"]["instance_id"], "6a0e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11");
        }
    }

    #[test]
    fn no_refusal_exceeds_its_bound(
        problems in prop::collection::vec((arbitrary_text(), arbitrary_text()), 0..100),
        code in 0..FAULTS_COUNT,
        instance in arbitrary_text(),
        path in arbitrary_text(),
        bytes_max in 4096usize..20_000,
    ) {
        let problems: Vec<_> = problems.into_iter().map(|(field, text)| crate::fault::Problem::new(field, text)).collect();
        let facts = &crate::fault::FAULTS[code];
        let plain = facts.details.iter().fold(Fault::new(facts.code), |fault, key| fault.with(key, path.as_str()));
        for fault in [Fault::invalid(&problems), plain] {
            let operation = operation("click", vec![Reference::Path(path.clone())]);
            let shelf = Shelf::default();
            let reply = reply(Some(&instance), operation, Err(fault), Form::default(), bytes_max, &shelf);
            let reply = reply.now_or_never().expect("the shelf answers at once");
            prop_assert!(on_the_wire(&reply) <= bytes_max, "{} bytes of {bytes_max}", on_the_wire(&reply));
        }
    }

    #[test]
    fn walking_a_list_by_its_cursors_gives_every_item_once(
        items in prop::collection::vec(arbitrary_text(), 1..12),
        bytes_max in 4096usize..9_000,
    ) {
        let items: Vec<Value> =
            items.into_iter().enumerate().map(|(seq, text)| json!({ "seq": seq, "text": text })).collect();
        let shelf = Shelf::default();
        let mut next = 0;
        while next < items.len() {
            let offset = next;
            let last = items.len() - 1;
            let mut rest = Map::new();
            rest.insert("next_cursor".into(), last.to_string().into());
            rest.insert("has_more".into(), false.into());
            let cursor_after = Box::new(move |position: usize| (offset + position).to_string());
            let list = List { field: "events", items: items[offset..].to_vec(), rest, cursor_after };
            let reply = settle(&operation("list_events", Vec::new()), Ok(Data::List(list)), bytes_max, &shelf);
            let data = &reply.structured["data"];
            let page = data["events"].as_array().expect("a page is a list");
            prop_assert!(!page.is_empty());
            for (position, item) in page.iter().enumerate() {
                let original = &items[offset + position];
                prop_assert_eq!(&item["seq"], &original["seq"]);
                if item["truncated"] == true {
                    let whole = shelf.bytes(&item["text_artifact"]);
                    prop_assert_eq!(Some(whole.as_slice()), original["text"].as_str().map(str::as_bytes));
                } else {
                    prop_assert_eq!(item, original);
                }
            }
            next = offset + page.len();
            prop_assert_eq!(&data["next_cursor"], &(next - 1).to_string());
            prop_assert_eq!(&data["has_more"], next < items.len());
        }
    }
}

const FAULTS_COUNT: usize = crate::fault::FAULTS.len();

#[test]
fn envelopes_have_their_keys_in_order() {
    let operation = operation("navigate", vec![Reference::Path("shot.png".into()), Reference::Path("shot.png".into())]);
    let shelf = Shelf::default();
    let success = settle(&operation, Ok(Data::Value(json!({ "url": "http://localhost/" }))), 1 << 20, &shelf);
    assert_eq!(
        success.text,
        r#"{"status":"success","instance":"main","data":{"url":"http://localhost/"},"operation":{"id":"0c7e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11","tool":"navigate","instance_id":"6a0e4c1e-6a0e-4a0b-9f57-0d3f0f6a9b11","page_id":"t-abc123","frame_id":"9A0E4C1E6A0E4A0B9F570D3F0F6A9B11","started_at":"2026-11-30T12:00:00.000000Z","finished_at":"2026-11-30T12:00:00.250000Z","duration_ms":250.0,"outcome":"completed","retry":"not_needed","artifacts":[{"path":"shot.png"}]}}"#
    );
    let fault = Fault::new(Code::ElementNotFound).with("selector", "#no");
    let failure = settle(&operation, Err(fault), 1 << 20, &shelf);
    let keys: Vec<&String> = failure.structured.as_object().expect("an envelope is an object").keys().collect();
    assert_eq!(keys, ["status", "instance", "error_type", "code", "message", "next_step", "details", "operation"]);
    assert_eq!(failure.structured["details"], json!({ "selector": "#no" }));
    assert_eq!((failure.outcome, failure.retry), (Outcome::Unknown, Retry::InspectState));
    assert!(failure.is_error && !success.is_error);
}

#[test]
fn a_large_text_is_kept_whole_and_previewed() {
    let html = "<p>\u{e9}\"quoted\"</p>".repeat(10_000);
    for (bytes_max, preview_bytes) in [(65_536, 16_000), (4_096, 500)] {
        let shelf = Shelf::default();
        let data = json!({ "url": "http://localhost/", "html": html, "truncated": false });
        let reply = settle(&operation("get_content", Vec::new()), Ok(Data::Value(data)), bytes_max, &shelf);
        let data = &reply.structured["data"];
        let preview = data["html"].as_str().expect("a text stays a text");
        assert!(html.starts_with(preview) && preview.len() > preview_bytes, "{} bytes", preview.len());
        assert_eq!((&data["html_bytes"], &data["truncated"]), (&json!(html.len()), &json!(true)));
        assert_eq!(shelf.bytes(&data["html_artifact"]), html.as_bytes());
        assert_eq!(reply.kept.len(), 1);
        assert_eq!((reply.outcome, reply.is_error), (Outcome::Completed, false));
    }
}

#[test]
fn a_first_item_that_previews_cannot_help_is_stood_in_for() {
    let crowded: Map<String, Value> = (0..2_000).map(|number| (format!("key-{number}"), number.into())).collect();
    let mut first = json!({ "seq": 1, "kind": "gap" });
    first["data"] = Value::Object(crowded.clone());
    first.as_object_mut().expect("an object").extend(crowded);
    let shelf = Shelf::default();
    let data = listed(vec![first.clone(), json!({ "seq": 2 })]);
    let reply = settle(&operation("list_events", Vec::new()), Ok(data), 4_096, &shelf);
    let data = &reply.structured["data"];
    assert_eq!((&data["next_cursor"], &data["has_more"]), (&json!("c0"), &json!(true)));
    let page = data["events"].as_array().expect("a page is a list");
    assert_eq!((page.len(), &page[0]["seq"], &page[0]["kind"]), (1, &json!(1), &json!("gap")));
    assert_eq!(shelf.bytes(&page[0]["item_artifact"]), first.to_string().as_bytes());
}

/// What storage cut keeps the size and handle it came with.
#[test]
fn a_text_that_was_cut_before_is_not_kept_again() {
    let message = json!({ "text": "x".repeat(16_000), "text_bytes": 5_000_000, "text_artifact": "art-whole" });
    let shelf = Shelf::default();
    let reply = settle(&operation("list_events", Vec::new()), Ok(listed(vec![message])), 8_192, &shelf);
    let item = &reply.structured["data"]["events"][0];
    assert_eq!((&item["text_bytes"], &item["text_artifact"]), (&json!(5_000_000), &json!("art-whole")));
    assert!(reply.kept.is_empty() && item["truncated"] == true);
}

#[test]
fn what_cannot_be_cut_names_its_handle() {
    let cookies: Value = (0..2_000).map(|number| json!({ "name": format!("cookie-{number}") })).collect();
    let shelf = Shelf::default();
    let reply = settle(&operation("get_cookies", Vec::new()), Ok(Data::Value(cookies.clone())), 8_192, &shelf);
    assert_eq!(reply.code, Some(Code::ResultTooLarge));
    assert_eq!((reply.outcome, reply.retry), (Outcome::Completed, Retry::InspectState));
    let details = &reply.structured["details"];
    assert_eq!(shelf.bytes(&details["handle"]), cookies.to_string().as_bytes());
    assert_eq!((&details["size"], &details["limit"]), (&json!(cookies.to_string().len()), &json!(8_192)));
    assert_eq!(reply.data_bytes, cookies.to_string().len() as u64);
}

#[test]
fn one_heavy_item_of_an_array_is_shrunk_in_its_place() {
    let tabs = json!([{ "tab_id": "t-1", "url": "a".repeat(50_000) }, { "tab_id": "t-2", "url": "http://localhost/" }]);
    let shelf = Shelf::default();
    let reply = settle(&operation("list_tabs", Vec::new()), Ok(Data::Value(tabs.clone())), 8_192, &shelf);
    let data = &reply.structured["data"];
    assert_eq!(data[1], tabs[1]);
    assert_eq!((&data[0]["tab_id"], &data[0]["url_bytes"]), (&json!("t-1"), &json!(50_000)));
}

#[test]
fn references_are_dropped_whole() {
    let long = Reference::Path("p".repeat(3_000));
    let operation = operation("screenshot", vec![long, Reference::Artifact("art-1".into())]);
    let reply = settle(&operation, Ok(Data::Value(json!({ "width": 1 }))), 4_096, &Shelf::default());
    let told = &reply.structured["operation"];
    assert_eq!((&told["artifacts"], &told["references_omitted"]), (&json!([]), &json!(true)));
    assert_eq!(reply.structured["data"], json!({ "width": 1 }));
}

#[test]
fn outcome_follows_how_far_the_call_got() {
    assert_eq!(outcome_of(true, true, false), (Outcome::Completed, Retry::NotNeeded));
    assert_eq!(outcome_of(false, false, true), (Outcome::NotStarted, Retry::AfterCorrection));
    assert_eq!(outcome_of(false, true, true), (Outcome::Unknown, Retry::ReadOnly));
    assert_eq!(outcome_of(false, true, false), (Outcome::Unknown, Retry::InspectState));
}

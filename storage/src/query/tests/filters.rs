//! What a filter matches, told event by event, and that its judgement of blocks never rules out a match.

use super::world::{console, entered, entry, failed, of_request, of_session, request, response, thrown};
use crate::event::codec::put_record;
use crate::event::{Draft, EventView, Kind, Level};
use crate::log::{BlockHeader, page_bit};
use crate::query::{EventFilter, FILTER_WORDS_MAX, PATTERN_BYTES_MAX, StatusFilter};

const AT_MICROS: i64 = 1_000;

fn events() -> Vec<(&'static str, Draft)> {
    let here = of_request("ann", "s-1", "r-1");
    let mut there = of_request("ann", "s-1", "r-2");
    there.page_id = Some("t-1".into());
    there.operation_id = Some("op-1".into());
    vec![
        ("debug", console("ann", "s-1", Level::Debug, "starting up")),
        ("error", console("ann", "s-1", Level::Error, "it broke at 12")),
        ("foreign", console("bob", "s-2", Level::Error, "it broke at 99")),
        ("get", request(&here, "http://a.test/x?y=1", "GET", "fetch", 0)),
        ("post", request(&there, "http://b.test/", "POST", "document", 0)),
        ("ok", response(&here, "http://a.test/x", 200)),
        ("missing", response(&there, "http://b.test/", 404)),
        ("failed", failed(&there, "net::ERR_FAILED")),
        ("thrown", thrown("ann", "s-1")),
        ("entry", entry("ann", "s-1", "deprecation")),
        ("call", entered("ann", "s-1")),
    ]
}

fn matched(filter: &EventFilter) -> Vec<&'static str> {
    let compiled = filter.compile().expect("valid");
    let mut names = Vec::new();
    for (name, draft) in events() {
        let mut record = Vec::new();
        put_record(&mut record, 7, AT_MICROS, &draft.body);
        let (view, _) = EventView::split_from(&record).expect("decodes");
        let header = BlockHeader {
            session_id: draft.session_id.clone(),
            first_seq: 7,
            last_seq: 7,
            count: 1,
            first_micros: AT_MICROS,
            last_micros: AT_MICROS,
            kinds: 1 << draft.kind.number(),
            levels: view.get("level").and_then(|level| level.as_u64()).map_or(0, |level| 1 << level),
            pages: view.context(crate::event::codec::ContextField::PageId).map_or(0, page_bit),
            raw_bytes: record.len() as u32,
            end_of_commit: true,
            removed: false,
            chain: [0; 32],
        };
        if compiled.matches(&view) {
            assert!(compiled.matches_block(&header), "{name} would be passed over by {filter:?}");
            names.push(name);
        }
    }
    names
}

#[test]
fn each_condition_matches_what_it_names() {
    let all = EventFilter::default();
    let kinds = |kinds: &[Kind]| EventFilter { kinds: Some(kinds.to_vec()), ..EventFilter::default() };
    let status =
        |text: &str| EventFilter { status: Some(StatusFilter::parse(text).expect("valid")), ..EventFilter::default() };
    let types = |words: &[&str]| EventFilter {
        types: words.iter().map(ToString::to_string).collect(),
        ..EventFilter::default()
    };
    let both = ["error", "foreign", "thrown"];
    let every = ["debug", "error", "foreign", "get", "post", "ok", "missing", "failed", "thrown", "entry", "call"];
    let cases: Vec<(EventFilter, &[&str])> = vec![
        (all.clone(), &every),
        (of_session("s-2"), &["foreign"]),
        (EventFilter { owner: Some("bob".into()), ..all.clone() }, &["foreign"]),
        (kinds(&[Kind::CallEntered, Kind::NetworkFailed]), &["failed", "call"]),
        (kinds(&[]), &[]),
        (EventFilter { level: Some(Level::Debug), ..all.clone() }, &["debug", "error", "foreign", "thrown", "entry"]),
        (EventFilter { level: Some(Level::Warning), ..all.clone() }, &["error", "foreign", "thrown", "entry"]),
        (EventFilter { types: vec!["LOG".into()], ..all.clone() }, &["debug", "error", "foreign"]),
        (EventFilter { types: vec!["table".into()], ..all.clone() }, &[]),
        (types(&["exception"]), &["thrown"]),
        (types(&["Browser", "table"]), &["entry"]),
        (types(&["deprecation", "exception"]), &["thrown", "entry"]),
        (types(&["security"]), &[]),
        (EventFilter { text: Some("^not ".into()), ..types(&["browser", "exception"]) }, &["thrown"]),
        (EventFilter { level: Some(Level::Error), ..types(&["log", "browser", "exception"]) }, &both),
        (EventFilter { text: Some("broke at 1\\d$".into()), ..all.clone() }, &["error"]),
        (EventFilter { url: Some("a\\.test".into()), ..all.clone() }, &["get"]),
        (EventFilter { method: Some("post".into()), ..all.clone() }, &["post"]),
        (status("4xx"), &["missing"]),
        (status("200-403"), &["ok"]),
        (EventFilter { resource_types: vec!["document".into(), "image".into()], ..all.clone() }, &["post"]),
        (EventFilter { failed: Some(true), ..all.clone() }, &["failed"]),
        (EventFilter { failed: Some(false), page_id: Some("t-1".into()), ..all.clone() }, &["post", "missing"]),
        (EventFilter { operation_id: Some("op-1".into()), method: Some("GET".into()), ..all.clone() }, &[]),
        (EventFilter { request_id: Some("r-1".into()), ..all.clone() }, &["get", "ok"]),
        (EventFilter { since_micros: Some(AT_MICROS), until_micros: Some(AT_MICROS), ..all.clone() }, &every),
        (EventFilter { since_micros: Some(AT_MICROS + 1), ..all.clone() }, &[]),
        (EventFilter { until_micros: Some(AT_MICROS - 1), ..all.clone() }, &[]),
    ];
    for (filter, expected) in cases {
        assert_eq!(matched(&filter), expected, "{filter:?}");
    }
}

#[test]
fn blocks_are_ruled_out_by_their_headers() {
    let header = BlockHeader {
        session_id: Some("s-1".into()),
        first_seq: 1,
        last_seq: 9,
        count: 9,
        first_micros: 100,
        last_micros: 200,
        kinds: 1 << Kind::ConsoleMessage.number(),
        levels: 1 << Level::Info as u8,
        pages: page_bit("t-1"),
        raw_bytes: 1,
        end_of_commit: true,
        removed: false,
        chain: [0; 32],
    };
    let out = [
        of_session("s-2"),
        EventFilter { kinds: Some(vec![Kind::CallEntered]), ..EventFilter::default() },
        EventFilter { level: Some(Level::Warning), ..EventFilter::default() },
        EventFilter { url: Some("x".into()), ..EventFilter::default() },
        EventFilter { since_micros: Some(201), ..EventFilter::default() },
        EventFilter { until_micros: Some(99), ..EventFilter::default() },
    ];
    for filter in out {
        assert!(!filter.compile().expect("valid").matches_block(&header), "{filter:?}");
    }
    // Page ids share bits, so one that surely does not is looked for.
    let other =
        (0..999).map(|number| format!("t-{number}")).find(|page| page_bit(page) != page_bit("t-1")).expect("one");
    let filter = EventFilter { page_id: Some(other.as_str().into()), ..EventFilter::default() };
    assert!(!filter.compile().expect("valid").matches_block(&header));
}

#[test]
fn what_cannot_be_understood_is_refused_by_field() {
    let wrong = [
        ("text", EventFilter { text: Some("(".into()), ..EventFilter::default() }),
        ("text", EventFilter { text: Some("(?:a{1000}){1000}{1000}".into()), ..EventFilter::default() }),
        ("url", EventFilter { url: Some("x".repeat(PATTERN_BYTES_MAX + 1)), ..EventFilter::default() }),
        ("types", EventFilter { types: vec!["x".into(); FILTER_WORDS_MAX + 1], ..EventFilter::default() }),
        ("since", EventFilter { since_micros: Some(2), until_micros: Some(1), ..EventFilter::default() }),
    ];
    for (field, filter) in wrong {
        assert_eq!(filter.compile().err().map(|error| error.field), Some(field));
    }
    for text in ["", "4", "40", "4xxx", "xx", "99", "600", "404-", "-404", "499-400", "+40", "4 4", "0404", "1xx2"] {
        assert!(StatusFilter::parse(text).is_err(), "{text}");
    }
    assert_eq!(StatusFilter::parse("5XX"), Ok(StatusFilter { low: 500, high: 599 }));
}

#[test]
fn fingerprints_tell_filters_apart_and_nothing_else() {
    let base = of_session("s-1");
    let differing = [
        EventFilter::default(),
        base.clone(),
        of_session("s-2"),
        EventFilter { owner: Some("s-1".into()), ..EventFilter::default() },
        EventFilter { kinds: Some(Vec::new()), ..base.clone() },
        EventFilter { kinds: Some(vec![Kind::CallEntered]), ..base.clone() },
        EventFilter { types: vec!["a".into(), "b".into()], ..base.clone() },
        EventFilter { types: vec!["ab".into()], ..base.clone() },
        EventFilter { text: Some("x".into()), ..base.clone() },
        EventFilter { url: Some("x".into()), ..base.clone() },
        EventFilter { hide_static: true, ..base.clone() },
        EventFilter { failed: Some(false), ..base.clone() },
        EventFilter { since_micros: Some(0), ..base.clone() },
        EventFilter { until_micros: Some(0), ..base.clone() },
    ];
    for (place, one) in differing.iter().enumerate() {
        for other in &differing[place + 1..] {
            assert_ne!(one.fingerprint(), other.fingerprint(), "{one:?} {other:?}");
        }
    }
    let types = |types: &[&str]| EventFilter { types: types.iter().map(|t| (*t).to_owned()).collect(), ..base.clone() };
    assert_eq!(types(&["Log", "table"]).fingerprint(), types(&["table", "log"]).fingerprint());
}

//! Every kind of event at every version it ever had stays in `tests/fixtures/events.ndjson`: it reads
//! as it did when it was first written, and what is written today is what stands there. Lines are
//! added and never changed.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::catalog::written_anew;
use super::codec::{ContextField, FIRST_FIELD, put_record, put_varint};
use super::{Context, EventView, FieldKind, KINDS, KindFacts};

const RECORDED_AT_MICROS: i64 = 1_764_000_000_123_456;
const BROWSER_TIME_MICROS: i64 = RECORDED_AT_MICROS - 2_500;

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/fixtures/events.ndjson")
}

/// What stands around each event of the fixture.
fn context() -> Context {
    let of = |name: &str| format!("{name}-1");
    Context {
        session_id: Some(of("session").into()),
        instance_id: Some(of("instance").into()),
        owner: Some(of("owner").into()),
        page_id: Some(of("page").into()),
        frame_id: Some(of("frame").into()),
        operation_id: Some(of("operation").into()),
        request_id: Some(of("request").into()),
        browser_time_micros: Some(BROWSER_TIME_MICROS),
    }
}

/// The fixture, by number and version: the record's bytes and the event's JSON.
fn fixtures() -> BTreeMap<(u16, u8), (Vec<u8>, Value)> {
    let lines = std::fs::read_to_string(path()).unwrap_or_default();
    let one = |line: &str| {
        let mut line: Value = serde_json::from_str(line).expect("a line is JSON");
        let digits = line["record"].as_str().expect("a record").as_bytes().to_vec();
        let byte = |pair: &[u8]| {
            let pair = std::str::from_utf8(pair).expect("digits");
            u8::from_str_radix(pair, 16).expect("two hexadecimal digits")
        };
        let record: Vec<u8> = digits.chunks(2).map(byte).collect();
        let view = EventView::split_from(&record).expect("a whole record").0;
        assert_eq!((view.kind().map(|kind| kind.name()), view.version.into()), named(&line), "{line}");
        ((view.kind_number, view.version), (record, line["event"].take()))
    };
    let lines: Vec<_> = lines.lines().map(one).collect();
    let count = lines.len();
    let fixtures = BTreeMap::from_iter(lines);
    assert_eq!(fixtures.len(), count, "one line for each kind and version");
    fixtures
}

fn named(line: &Value) -> (Option<&str>, u64) {
    (line["kind"].as_str(), line["version"].as_u64().unwrap_or_default())
}

/// A record of the kind as this build has it, with every field there: made by the rules of the format
/// and not by the product's writer, which is what is tested.
fn sample(facts: &KindFacts) -> Vec<u8> {
    let mut body = vec![u8::try_from(facts.number).expect("at most 127"), facts.version];
    let text = |body: &mut Vec<u8>, number: u32, text: &str| {
        put_varint(body, u64::from(number) << 3 | 3);
        put_varint(body, text.len() as u64);
        body.extend_from_slice(text.as_bytes());
    };
    for (field, name) in ContextField::TEXTS {
        let word = name.strip_suffix("_id").unwrap_or(name);
        text(&mut body, field as u32, &format!("{word}-1"));
    }
    put_varint(&mut body, (ContextField::BrowserTime as u64) << 3 | 1);
    put_varint(&mut body, BROWSER_TIME_MICROS as u64 * 2);
    for (number, field) in (FIRST_FIELD..).zip(facts.fields) {
        let mut tagged = |wire: u64| put_varint(&mut body, u64::from(number) << 3 | wire);
        match field.kind {
            FieldKind::U64 => {
                tagged(0);
                put_varint(&mut body, 1000 + u64::from(number));
            }
            FieldKind::Level => {
                tagged(0);
                put_varint(&mut body, 2);
            }
            FieldKind::I64 => {
                tagged(1);
                put_varint(&mut body, 5);
            }
            FieldKind::F64 => {
                tagged(2);
                body.extend_from_slice(&12.5_f64.to_le_bytes());
            }
            FieldKind::Bool => tagged(5),
            FieldKind::Symbol => text(&mut body, number, field.name),
            FieldKind::Id | FieldKind::Handle => text(&mut body, number, &format!("{}-7", field.name)),
            FieldKind::Text => text(&mut body, number, &format!("{} \u{e9}\u{1f600}", field.name)),
            FieldKind::Json => text(&mut body, number, &format!("{{\"{}\":[1,null,\"two\"]}}", field.name)),
        }
    }
    let mut record = Vec::new();
    put_record(&mut record, 1_000_000 + u64::from(facts.number), RECORDED_AT_MICROS, &body);
    record
}

/// Adds a line for each kind whose present version has none.
fn add_missing(known: &BTreeMap<(u16, u8), (Vec<u8>, Value)>) {
    let mut lines = std::fs::read_to_string(path()).unwrap_or_default();
    for facts in KINDS.iter().filter(|facts| !known.contains_key(&(facts.number, facts.version))) {
        let record = sample(facts);
        let view = EventView::split_from(&record).expect("a whole record").0;
        let digits = record.iter().fold(String::new(), |digits, byte| digits + &format!("{byte:02x}"));
        let event = super::json::event(&view, "log");
        let line = json!({"kind": facts.name, "version": facts.version, "event": event, "record": digits});
        for character in line.to_string().chars() {
            match character {
                ' '..='~' => lines.push(character),
                // Files are plain ASCII.
                other => other.encode_utf16(&mut [0; 2]).iter().for_each(|unit| {
                    write!(lines, "\\u{unit:04x}").expect("there is memory");
                }),
            }
        }
        lines.push('\n');
    }
    std::fs::write(path(), lines).expect("it can be written");
}

#[test]
fn every_kind_reads_at_every_version_as_when_it_was_written() {
    if std::env::var_os("UPDATE_FIXTURES").is_some() {
        add_missing(&fixtures());
    }
    let fixtures = fixtures();
    for facts in KINDS {
        for version in 1..=facts.version {
            let name = format!("{} at version {version}", facts.name);
            let (record, event) = fixtures
                .get(&(facts.number, version))
                .unwrap_or_else(|| panic!("{name} has no fixture: run the test once with UPDATE_FIXTURES=1"));
            let (view, rest) = EventView::split_from(record).expect("a whole record");
            assert!(rest.is_empty(), "{name}");
            assert_eq!(&super::json::event(&view, "log"), event, "{name}");
            let anew = written_anew(&view, &context()).unwrap_or_else(|error| panic!("{name}: {error}"));
            let mut body = view.body.to_vec();
            body[1] = facts.version;
            assert_eq!(anew.body, body, "{name} is written as it was read");
        }
    }
    let known =
        |(number, version): &(u16, u8)| KINDS.iter().any(|facts| facts.number == *number && *version <= facts.version);
    assert!(fixtures.keys().all(known), "a kind or a version went");
}

#[test]
fn the_fields_of_the_present_version_are_all_in_its_fixture() {
    let fixtures = fixtures();
    for facts in KINDS {
        let Some((_, event)) = fixtures.get(&(facts.number, facts.version)) else { continue };
        for field in facts.fields {
            assert!(!event["data"][field.name].is_null(), "{} has no {}: raise its version", facts.name, field.name);
        }
    }
}

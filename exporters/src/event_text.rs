//! The JSON text of an event, written without building a value first.
//!
//! Law: the text means exactly what `storage::event::json` means, and is always one line. A test
//! holds both to it, because a million events cannot afford a tree of values each.

use std::io::Write as _;

use serde_json::value::RawValue;
use storage::event::codec::{ContextField, FIRST_FIELD};
use storage::event::{EventView, FieldKind, Level, ValueRef};
use storage::time::rfc3339;

/// Appends the whole event as one JSON object.
pub(crate) fn put_event(out: &mut Vec<u8>, view: &EventView<'_>, log_id: &str) {
    out.extend_from_slice(b"{\"seq\":");
    put_number(out, view.seq);
    out.extend_from_slice(b",\"event_id\":");
    put_text(out, &view.event_id(log_id));
    out.extend_from_slice(b",\"recorded_at\":");
    put_text(out, &rfc3339(view.recorded_at_micros));
    out.extend_from_slice(b",\"kind\":");
    match view.kind() {
        Some(kind) => put_text(out, kind.name()),
        None => put_text(out, &storage::event::json::kind_name(view)),
    }
    for (number, value) in view.fields().take_while(|(number, _)| *number < FIRST_FIELD) {
        put_context(out, number, value);
    }
    out.extend_from_slice(b",\"data\":");
    put_payload(out, view);
    out.push(b'}');
}

/// Appends the kind's own fields as one JSON object.
pub(crate) fn put_payload(out: &mut Vec<u8>, view: &EventView<'_>) {
    let fields = view.kind().map_or(&[][..], |kind| kind.facts().fields);
    out.push(b'{');
    let mut first = true;
    for (number, value) in view.payload() {
        if !first {
            out.push(b',');
        }
        first = false;
        let facts = number.checked_sub(FIRST_FIELD).and_then(|position| fields.get(position as usize));
        match facts {
            Some(facts) => {
                put_text(out, facts.name);
                out.push(b':');
                put_field(out, facts.kind, value);
            }
            None => {
                put_text(out, &format!("field_{number}"));
                out.push(b':');
                put_plain(out, value);
            }
        }
    }
    out.push(b'}');
}

fn put_context(out: &mut Vec<u8>, number: u32, value: ValueRef<'_>) {
    let name = match value {
        ValueRef::Text(_) => ContextField::TEXTS.iter().find(|(f, _)| *f as u32 == number).map(|(_, name)| *name),
        ValueRef::I64(_) if number == ContextField::BrowserTime as u32 => Some("browser_time"),
        _ => None,
    };
    let Some(name) = name else { return };
    out.push(b',');
    put_text(out, name);
    out.push(b':');
    match value {
        ValueRef::I64(micros) => put_text(out, &rfc3339(micros)),
        other => put_plain(out, other),
    }
}

fn put_field(out: &mut Vec<u8>, kind: FieldKind, value: ValueRef<'_>) {
    match (kind, value) {
        (FieldKind::Level, ValueRef::U64(number)) => match Level::from_number(number) {
            Some(level) => put_text(out, level.as_str()),
            None => put_number(out, number),
        },
        (FieldKind::Json, ValueRef::Text(text)) => put_json(out, text),
        (_, value) => put_plain(out, value),
    }
}

/// Stored JSON goes in as it is once it has proved to be JSON on one line.
fn put_json(out: &mut Vec<u8>, text: &str) {
    match serde_json::from_str::<&RawValue>(text) {
        Ok(raw) if !text.contains(['\n', '\r']) => out.extend_from_slice(raw.get().as_bytes()),
        Ok(_) => match serde_json::from_str::<serde_json::Value>(text) {
            Ok(value) => out.extend_from_slice(value.to_string().as_bytes()),
            Err(_) => put_text(out, text),
        },
        Err(_) => put_text(out, text),
    }
}

fn put_plain(out: &mut Vec<u8>, value: ValueRef<'_>) {
    match value {
        ValueRef::U64(number) => put_number(out, number),
        ValueRef::I64(number) => {
            let _ = write!(out, "{number}");
        }
        ValueRef::F64(number) => {
            // Not-a-number and the infinities become `null`, as everywhere in JSON.
            let _ = serde_json::to_writer(&mut *out, &number);
        }
        ValueRef::Bool(flag) => out.extend_from_slice(if flag { b"true" } else { b"false" }),
        ValueRef::Text(text) => put_text(out, text),
    }
}

fn put_number(out: &mut Vec<u8>, number: u64) {
    // Writing to memory cannot fail, here and below.
    let _ = write!(out, "{number}");
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    let _ = serde_json::to_writer(out, text);
}

//! The JSON form of an event, as `list_events`, NDJSON and the Parquet payload show it.

use serde_json::{Map, Value};

use crate::event::codec::{ContextField, FIRST_FIELD};
use crate::event::{EventView, FieldKind, Level, ValueRef};
use crate::time::rfc3339;

/// The whole event: `seq`, `event_id`, `recorded_at`, `kind`, the context present, and `data`.
#[must_use]
pub fn event(view: &EventView<'_>, log_id: &str) -> Value {
    let mut out = Map::new();
    out.insert("seq".into(), view.seq.into());
    out.insert("event_id".into(), view.event_id(log_id).into());
    out.insert("recorded_at".into(), rfc3339(view.recorded_at_micros).into());
    out.insert("kind".into(), kind_name(view).into());
    for (number, value) in view.fields().take_while(|(number, _)| *number < FIRST_FIELD) {
        match value {
            ValueRef::Text(text) => {
                if let Some((_, name)) = ContextField::TEXTS.iter().find(|(f, _)| *f as u32 == number) {
                    out.insert((*name).into(), text.into());
                }
            }
            ValueRef::I64(micros) if number == ContextField::BrowserTime as u32 => {
                out.insert("browser_time".into(), rfc3339(micros).into());
            }
            _ => {}
        }
    }
    out.insert("data".into(), payload(view));
    Value::Object(out)
}

/// The kind's dotted name; `unknown.<number>` for a kind of a newer build.
#[must_use]
pub fn kind_name(view: &EventView<'_>) -> String {
    view.kind().map_or_else(|| format!("unknown.{}", view.kind_number), |kind| kind.name().to_owned())
}

/// The kind's own fields. Fields and kinds this build does not know appear as `field_<number>`.
#[must_use]
pub fn payload(view: &EventView<'_>) -> Value {
    let fields = view.kind().map_or(&[][..], |kind| kind.facts().fields);
    let mut out = Map::new();
    for (number, value) in view.payload() {
        let facts = number.checked_sub(FIRST_FIELD).and_then(|position| fields.get(position as usize));
        match facts {
            Some(facts) => out.insert(facts.name.into(), field(facts.kind, value)),
            None => out.insert(format!("field_{number}"), plain(value)),
        };
    }
    Value::Object(out)
}

fn field(kind: FieldKind, value: ValueRef<'_>) -> Value {
    match (kind, value) {
        (FieldKind::Level, ValueRef::U64(number)) => {
            Level::from_number(number).map_or(Value::from(number), |level| level.as_str().into())
        }
        // Stored JSON was valid when written; should it not be, the text itself is still shown.
        (FieldKind::Json, ValueRef::Text(text)) => serde_json::from_str(text).unwrap_or_else(|_| Value::from(text)),
        (_, value) => plain(value),
    }
}

fn plain(value: ValueRef<'_>) -> Value {
    match value {
        ValueRef::U64(number) => number.into(),
        ValueRef::I64(number) => number.into(),
        ValueRef::F64(number) => number.into(),
        ValueRef::Bool(flag) => flag.into(),
        ValueRef::Text(text) => text.into(),
    }
}

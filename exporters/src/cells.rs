//! From an event to the cells of its row, for every format that is a table.
//!
//! What must stay true: a row means the same in each of them; an event that says a field twice fills
//! its cell once, with what came first; `payload` holds everything, whatever the cells could not take.

use std::fmt::Write as _;

use storage::event::codec::{ContextField, FIRST_FIELD};
use storage::event::{Class, EventView, FieldFacts, FieldKind, Level, ValueRef};

use crate::columns::{Common, layout};
use crate::event_text::put_payload;

/// Makes rows; keeps what can be used again from row to row.
pub(crate) struct Cells {
    log_id: String,
    event_id: String,
    payload: Vec<u8>,
}

impl Cells {
    pub(crate) fn new(log_id: &str) -> Self {
        Self { log_id: log_id.to_owned(), event_id: String::new(), payload: Vec::new() }
    }

    /// Hands every filled cell to `put` with the position of its column, the common ones first.
    /// Returns about how many bytes the row is.
    pub(crate) fn of(&mut self, event: &EventView<'_>, put: &mut dyn FnMut(usize, ValueRef<'_>)) -> usize {
        self.common(event, put);
        let kind = event.kind();
        let places = kind.map_or(&[][..], |kind| layout().places(kind));
        let facts = kind.map_or(&[][..], |kind| kind.facts().fields);
        for (number, value) in event.fields() {
            let (place, value) = match number.checked_sub(FIRST_FIELD).map(|position| position as usize) {
                Some(position) => (places.get(position).copied(), shown(facts.get(position), value)),
                None => (context_place(number), value),
            };
            if let Some(place) = place {
                put(place, value);
            }
        }
        self.payload.clear();
        put_payload(&mut self.payload, event);
        // The payload is made of valid text and ASCII marks.
        put(layout().payload(), ValueRef::Text(std::str::from_utf8(&self.payload).unwrap_or("{}")));
        event.body.len() + self.payload.len()
    }

    fn common(&mut self, event: &EventView<'_>, put: &mut dyn FnMut(usize, ValueRef<'_>)) {
        self.event_id.clear();
        // The same identity as `EventView::event_id`, into a string that is kept.
        let _ = write!(self.event_id, "ev-{}-{}", self.log_id, event.seq);
        put(Common::LogId as usize, ValueRef::Text(&self.log_id));
        put(Common::Seq as usize, ValueRef::U64(event.seq));
        put(Common::EventId as usize, ValueRef::Text(&self.event_id));
        put(Common::RecordedAt as usize, ValueRef::I64(event.recorded_at_micros));
        match event.kind() {
            Some(kind) => {
                put(Common::Kind as usize, ValueRef::Text(kind.name()));
                put(Common::Class as usize, ValueRef::Text(class_name(kind.facts().class)));
            }
            None => put(Common::Kind as usize, ValueRef::Text(&storage::event::json::kind_name(event))),
        }
    }
}

/// Severities are numbers in the log and words in the table.
fn shown<'a>(facts: Option<&FieldFacts>, value: ValueRef<'a>) -> ValueRef<'a> {
    match (facts.map(|facts| facts.kind), value) {
        (Some(FieldKind::Level), ValueRef::U64(number)) => {
            Level::from_number(number).map_or(value, |level| ValueRef::Text(level.as_str()))
        }
        _ => value,
    }
}

fn class_name(class: Class) -> &'static str {
    match class {
        Class::Telemetry => "telemetry",
        Class::Evidence => "evidence",
        Class::Audit => "audit",
    }
}

fn context_place(number: u32) -> Option<usize> {
    const PLACES: [(ContextField, Common); 8] = [
        (ContextField::SessionId, Common::SessionId),
        (ContextField::InstanceId, Common::InstanceId),
        (ContextField::Owner, Common::Owner),
        (ContextField::PageId, Common::PageId),
        (ContextField::FrameId, Common::FrameId),
        (ContextField::OperationId, Common::OperationId),
        (ContextField::RequestId, Common::RequestId),
        (ContextField::BrowserTime, Common::BrowserTime),
    ];
    PLACES.iter().find(|(field, _)| *field as u32 == number).map(|(_, common)| *common as usize)
}

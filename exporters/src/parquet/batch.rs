//! Rows gathered column by column.
//!
//! An event fills few of the many columns, so nulls are not written row by row: each column remembers
//! how far it is filled and catches up in one step when it next holds a value, or at the end.

use std::fmt::Write as _;
use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use storage::event::codec::{ContextField, FIRST_FIELD};
use storage::event::{Class, EventView, FieldFacts, FieldKind, Level, ValueRef};

use crate::columns::{ColumnType, Common, layout, schema};
use crate::event_text::put_payload;

enum Values {
    U64(UInt64Builder),
    I64(Int64Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder),
}

struct Cells {
    values: Values,
    filled: usize,
}

impl Cells {
    fn new(holds: ColumnType) -> Self {
        let values = match holds {
            ColumnType::U64 => Values::U64(UInt64Builder::new()),
            ColumnType::I64 => Values::I64(Int64Builder::new()),
            ColumnType::F64 => Values::F64(Float64Builder::new()),
            ColumnType::Bool => Values::Bool(BooleanBuilder::new()),
            ColumnType::Text => Values::Text(StringBuilder::new()),
            ColumnType::Time => Values::Time(TimestampMicrosecondBuilder::new().with_timezone("UTC")),
        };
        Self { values, filled: 0 }
    }

    fn pad(&mut self, row: usize) {
        let missing = row.saturating_sub(self.filled);
        if missing == 0 {
            return;
        }
        match &mut self.values {
            Values::U64(builder) => builder.append_nulls(missing),
            Values::I64(builder) => builder.append_nulls(missing),
            Values::F64(builder) => builder.append_nulls(missing),
            Values::Bool(builder) => builder.append_nulls(missing),
            Values::Text(builder) => builder.append_nulls(missing),
            Values::Time(builder) => builder.append_nulls(missing),
        }
        self.filled = row;
    }

    /// A value of another type than the column's stays in `payload` only.
    fn put(&mut self, row: usize, value: ValueRef<'_>) {
        // A field that occurs twice in one event cannot take two rows; the first one stands.
        if self.filled > row {
            return;
        }
        self.pad(row);
        match (&mut self.values, value) {
            (Values::U64(builder), ValueRef::U64(number)) => builder.append_value(number),
            (Values::I64(builder), ValueRef::I64(number)) => builder.append_value(number),
            (Values::F64(builder), ValueRef::F64(number)) => builder.append_value(number),
            (Values::Bool(builder), ValueRef::Bool(flag)) => builder.append_value(flag),
            (Values::Text(builder), ValueRef::Text(text)) => builder.append_value(text),
            (Values::Time(builder), ValueRef::I64(micros)) => builder.append_value(micros),
            _ => return,
        }
        self.filled += 1;
    }

    fn finish(&mut self, rows: usize) -> ArrayRef {
        self.pad(rows);
        self.filled = 0;
        match &mut self.values {
            Values::U64(builder) => Arc::new(builder.finish()),
            Values::I64(builder) => Arc::new(builder.finish()),
            Values::F64(builder) => Arc::new(builder.finish()),
            Values::Bool(builder) => Arc::new(builder.finish()),
            Values::Text(builder) => Arc::new(builder.finish()),
            Values::Time(builder) => Arc::new(builder.finish()),
        }
    }
}

/// Rows on their way into the file.
pub(super) struct Batch {
    schema: SchemaRef,
    columns: Vec<Cells>,
    log_id: String,
    rows: usize,
    bytes: usize,
    /// Reused from row to row.
    event_id: String,
    payload: Vec<u8>,
}

impl Batch {
    pub(super) fn new(log_id: &str) -> Self {
        Self {
            schema: schema(),
            columns: layout().columns.iter().map(|column| Cells::new(column.holds)).collect(),
            log_id: log_id.to_owned(),
            rows: 0,
            bytes: 0,
            event_id: String::new(),
            payload: Vec::new(),
        }
    }

    pub(super) fn rows(&self) -> usize {
        self.rows
    }

    /// Bytes of text gathered, near enough to bound memory.
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn push(&mut self, event: &EventView<'_>) {
        let row = self.rows;
        self.put_common(row, event);
        let kind = event.kind();
        let places = kind.map_or(&[][..], |kind| layout().places(kind));
        let facts = kind.map_or(&[][..], |kind| kind.facts().fields);
        for (number, value) in event.fields() {
            let (place, value) = match number.checked_sub(FIRST_FIELD).map(|position| position as usize) {
                Some(position) => (places.get(position).copied(), shown(facts.get(position), value)),
                None => (context_place(number), value),
            };
            if let Some(cells) = place.and_then(|place| self.columns.get_mut(place)) {
                cells.put(row, value);
            }
        }
        self.payload.clear();
        put_payload(&mut self.payload, event);
        // The payload is made of valid text and ASCII marks.
        let payload = std::str::from_utf8(&self.payload).unwrap_or("{}");
        self.columns[layout().payload()].put(row, ValueRef::Text(payload));
        self.bytes += event.body.len() + self.payload.len();
        self.rows += 1;
    }

    fn put_common(&mut self, row: usize, event: &EventView<'_>) {
        self.event_id.clear();
        // The same identity as `EventView::event_id`, into a string that is kept.
        let _ = write!(self.event_id, "ev-{}-{}", self.log_id, event.seq);
        let columns = &mut self.columns;
        columns[Common::LogId as usize].put(row, ValueRef::Text(&self.log_id));
        columns[Common::Seq as usize].put(row, ValueRef::U64(event.seq));
        columns[Common::EventId as usize].put(row, ValueRef::Text(&self.event_id));
        columns[Common::RecordedAt as usize].put(row, ValueRef::I64(event.recorded_at_micros));
        match event.kind() {
            Some(kind) => {
                columns[Common::Kind as usize].put(row, ValueRef::Text(kind.name()));
                columns[Common::Class as usize].put(row, ValueRef::Text(class_name(kind.facts().class)));
            }
            None => {
                let name = storage::event::json::kind_name(event);
                columns[Common::Kind as usize].put(row, ValueRef::Text(&name));
            }
        }
    }

    /// Everything gathered, as one batch; afterwards this one is empty.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let columns = self.columns.iter_mut().map(|cells| cells.finish(rows)).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
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

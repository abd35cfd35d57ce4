//! Rows gathered column by column.
//!
//! An event fills few of the many columns, so nulls are not written row by row: each column remembers
//! how far it is filled and catches up in one step when it next holds a value, or at the end.

use std::sync::Arc;

use arrow_array::builder::{
    BooleanBuilder, Float64Builder, Int64Builder, StringBuilder, TimestampMicrosecondBuilder, UInt64Builder,
};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_schema::{ArrowError, SchemaRef};
use storage::event::{EventView, ValueRef};

use crate::cells::Cells;
use crate::columns::{ColumnType, layout, schema};

enum Values {
    U64(UInt64Builder),
    I64(Int64Builder),
    F64(Float64Builder),
    Bool(BooleanBuilder),
    Text(StringBuilder),
    Time(TimestampMicrosecondBuilder),
}

struct Filled {
    values: Values,
    filled: usize,
}

impl Filled {
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
    columns: Vec<Filled>,
    cells: Cells,
    rows: usize,
    bytes: usize,
}

impl Batch {
    pub(super) fn new(log_id: &str) -> Self {
        Self {
            schema: schema(),
            columns: layout().columns.iter().map(|column| Filled::new(column.holds)).collect(),
            cells: Cells::new(log_id),
            rows: 0,
            bytes: 0,
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
        let (row, columns) = (self.rows, &mut self.columns);
        self.bytes += self.cells.of(event, &mut |place, value| {
            if let Some(column) = columns.get_mut(place) {
                column.put(row, value);
            }
        });
        self.rows += 1;
    }

    /// Everything gathered, as one batch; afterwards this one is empty.
    pub(super) fn take(&mut self) -> Result<RecordBatch, ArrowError> {
        let rows = std::mem::take(&mut self.rows);
        self.bytes = 0;
        let columns = self.columns.iter_mut().map(|cells| cells.finish(rows)).collect();
        RecordBatch::try_new(self.schema.clone(), columns)
    }
}

//! Events as CSV: the columns of the Parquet file as RFC 4180 text, a header line first.
//!
//! What must stay true: what a page wrote is never a formula. A cell of text that begins with a sign
//! that spreadsheets take for one, or with the apostrophe that says it is none, gets an apostrophe in
//! front; taking one off the front of each such cell gives the text back. `payload` begins with a
//! brace and is never touched. Times are RFC 3339; a cell without a value is empty, as is an empty
//! text, and `payload` tells the two apart.

use std::io::Write as _;

use csv::{QuoteStyle, Terminator, Writer, WriterBuilder};
use storage::event::{EventView, ValueRef};
use storage::time::rfc3339;

use crate::cells::Cells;
use crate::columns::{ColumnType, layout};
use crate::export::{ExportError, ExportOptions, FormatWriter, Sealed};
use crate::tally::Tally;
use crate::target::{Destination, Target};

/// First characters that spreadsheets take for a formula, and the one that says it is none.
const GUARDED: [char; 7] = ['=', '+', '-', '@', '\t', '\r', '\''];
const GUARD: char = '\'';

/// Bytes of lines gathered before they go to the target.
const GATHERED_BYTES: usize = 256 * 1024;

/// Writes lines; see [`crate::export::Export`] for what holds for every format.
pub(crate) struct CsvWriter {
    out: Target,
    lines: Writer<Vec<u8>>,
    gathered: usize,
    cells: Cells,
    /// The row, cell by cell; kept from row to row.
    row: Vec<Vec<u8>>,
}

impl CsvWriter {
    pub(crate) fn create(target: &Destination, options: &ExportOptions) -> Result<Self, ExportError> {
        let mut made = Self {
            out: Target::create(target, options.bytes_max, options.overwrite)?,
            lines: lines(Vec::new()),
            gathered: 0,
            cells: Cells::new(&options.log_id),
            row: vec![Vec::new(); layout().columns.len()],
        };
        for (cell, column) in made.row.iter_mut().zip(&layout().columns) {
            cell.extend_from_slice(column.name.as_bytes());
        }
        made.line()?;
        Ok(made)
    }

    fn line(&mut self) -> Result<(), ExportError> {
        self.gathered += self.row.iter().map(|cell| cell.len() + 1).sum::<usize>();
        self.lines.write_record(&self.row).map_err(|error| ExportError::Table(error.to_string()))?;
        if self.gathered >= GATHERED_BYTES { self.hand_over() } else { Ok(()) }
    }

    fn hand_over(&mut self) -> Result<(), ExportError> {
        let full = std::mem::replace(&mut self.lines, lines(Vec::new()));
        let mut bytes = full.into_inner().map_err(|error| ExportError::Table(error.to_string()))?;
        self.out.write_all(&bytes).map_err(|error| self.out.error("write", error))?;
        bytes.clear();
        self.lines = lines(bytes);
        self.gathered = 0;
        Ok(())
    }
}

fn lines(into: Vec<u8>) -> Writer<Vec<u8>> {
    WriterBuilder::new().terminator(Terminator::CRLF).quote_style(QuoteStyle::Necessary).from_writer(into)
}

impl FormatWriter for CsvWriter {
    fn push(&mut self, event: &EventView<'_>) -> Result<bool, ExportError> {
        let row = &mut self.row;
        row.iter_mut().for_each(Vec::clear);
        self.cells.of(event, &mut |place, value| {
            if let (Some(cell), Some(column)) = (row.get_mut(place), layout().columns.get(place))
                && cell.is_empty()
            {
                put(cell, column.holds, value);
            }
        });
        self.line()?;
        Ok(true)
    }

    fn seal(&mut self, _options: &ExportOptions, _tally: &Tally) -> Result<Sealed, ExportError> {
        self.hand_over()?;
        let (bytes, sha256) = self.out.prepare()?;
        Ok(Sealed { bytes, sha256, row_groups: 0, unplaced: 0, details: None })
    }

    fn target(&mut self) -> &mut Target {
        &mut self.out
    }
}

/// As in the Parquet file, a value of another type than the column's stays in `payload` only.
fn put(cell: &mut Vec<u8>, holds: ColumnType, value: ValueRef<'_>) {
    let text = match (holds, value) {
        (ColumnType::U64, ValueRef::U64(number)) => number.to_string(),
        (ColumnType::I64, ValueRef::I64(number)) => number.to_string(),
        (ColumnType::F64, ValueRef::F64(number)) => number.to_string(),
        (ColumnType::Bool, ValueRef::Bool(flag)) => flag.to_string(),
        (ColumnType::Time, ValueRef::I64(micros)) => rfc3339(micros),
        (ColumnType::Text, ValueRef::Text(text)) => {
            if text.starts_with(GUARDED) {
                cell.push(GUARD as u8);
            }
            cell.extend_from_slice(text.as_bytes());
            return;
        }
        _ => return,
    };
    cell.extend_from_slice(text.as_bytes());
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;
    use crate::sample::{LOG_ID, Samples, console, context, hostile};
    use crate::{Format, export};

    fn rows(samples: &Samples) -> (String, Vec<csv::StringRecord>) {
        let directory = tempfile::tempdir().expect("a directory");
        let target = directory.path().join("a.csv");
        let options = ExportOptions::new(LOG_ID, "0.1.0");
        export(Format::Csv, &target, &options, &mut |visit| samples.scan(visit)).expect("the export succeeds");
        let text = fs::read_to_string(&target).expect("UTF-8");
        let rows = csv::Reader::from_reader(text.as_bytes()).into_records().map(|row| row.expect("a row")).collect();
        (text, rows)
    }

    fn column(name: &str) -> usize {
        layout().columns.iter().position(|column| column.name == name).expect("a column")
    }

    #[test]
    fn rows_are_those_of_the_table() {
        let samples = hostile();
        let (text, rows) = rows(&samples);
        assert!(text.starts_with("log_id,seq,event_id,recorded_at,") && text.ends_with("\r\n"));
        let views = samples.views();
        assert_eq!(rows.len(), views.len());
        for (row, view) in rows.iter().zip(&views) {
            assert_eq!(row[column("seq")], view.seq.to_string());
            assert_eq!(row[column("recorded_at")], rfc3339(view.recorded_at_micros));
            let payload: serde_json::Value = serde_json::from_str(&row[column("payload")]).expect("JSON");
            assert_eq!(payload, storage::event::json::payload(view));
        }
        assert_eq!((&rows[3][column("status")], &rows[3][column("text")]), ("404", ""));
    }

    #[test]
    fn what_a_page_writes_is_no_formula() {
        let mut samples = Samples::default();
        let written = ["=cmd|' /C calc'!A0", "+1", "-1", "@SUM(A1)", "\tx", "\r=1", "'quoted", "plain", "a=b"];
        for text in written {
            samples.push(&context(0), &console(text));
        }
        let (_, rows) = rows(&samples);
        for (row, text) in rows.iter().zip(written) {
            let cell = &row[column("text")];
            assert!(!cell.starts_with(['=', '+', '-', '@', '\t', '\r']), "{cell:?}");
            assert_eq!(cell.strip_prefix('\'').unwrap_or(cell), text, "taking the apostrophe off gives it back");
        }
    }
}

//! Events as text: one JSON object a line, the same object that `list_events` shows.

use std::io::Write as _;

use storage::event::EventView;

use crate::event_text::put_event;
use crate::export::{ExportError, ExportOptions, FormatWriter, Sealed};
use crate::tally::Tally;
use crate::target::{Destination, Target};

/// Writes lines; see [`crate::export::Export`] for what holds for every format.
pub(crate) struct NdjsonWriter {
    out: Target,
    log_id: String,
    /// Reused from line to line.
    line: Vec<u8>,
}

impl NdjsonWriter {
    pub(crate) fn create(target: &Destination, options: &ExportOptions) -> Result<Self, ExportError> {
        let out = Target::create(target, options.bytes_max, options.overwrite)?;
        Ok(Self { out, log_id: options.log_id.clone(), line: Vec::new() })
    }
}

impl FormatWriter for NdjsonWriter {
    fn push(&mut self, event: &EventView<'_>) -> Result<bool, ExportError> {
        self.line.clear();
        put_event(&mut self.line, event, &self.log_id);
        self.line.push(b'\n');
        self.out.write_all(&self.line).map_err(|error| self.out.error("write", error))?;
        Ok(true)
    }

    fn seal(&mut self, _options: &ExportOptions, _tally: &Tally) -> Result<Sealed, ExportError> {
        let (bytes, sha256) = self.out.prepare()?;
        Ok(Sealed { bytes, sha256, row_groups: 0, unplaced: 0, details: None })
    }

    fn target(&mut self) -> &mut Target {
        &mut self.out
    }
}

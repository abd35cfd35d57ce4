//! `pageledger export`: a session's whole history as a file with its manifest.

use std::io::Write;
use std::ops::ControlFlow;

use exporters::{ExportError, ExportOptions, Format, Written};
use serde_json::{Value, json};
use storage::event::catalog::LogOpened;
use storage::event::{Kind, Payload};
use storage::log::{BlockHeader, Reader};

use super::{CommandError, EXIT_IO, EXIT_NOTHING_THERE, EXIT_UNAVAILABLE, EXIT_USAGE, open_log, session};
use crate::config::{ExportFormat, ExportOrder};

/// Writes the file and tells what it holds.
pub fn export(order: &ExportOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let reader = open_log(&order.config.data_dir)?;
    let Some(session_id) = session::find(&reader, &order.session)? else {
        let message =
            format!("no session of id or name {:?} is on record in {}", order.session, order.config.data_dir.display());
        return Err(CommandError::new(EXIT_NOTHING_THERE, message));
    };
    let format = match order.format {
        ExportFormat::Parquet => Format::Parquet,
        ExportFormat::Ndjson => Format::Ndjson,
    };
    let mut options = ExportOptions::new(reader.log_id(), env!("CARGO_PKG_VERSION"));
    options.filter = json!({ "session_id": session_id.as_str() });
    options.overwrite = true;
    options.sync_interval_ms = sync_interval_ms(&reader)?;
    // A block holds events of one session only, so choosing blocks is choosing events.
    let of_session = |header: &BlockHeader| header.session_id.as_ref() == Some(&session_id);
    let written = exporters::export(format, &order.out, &options, &mut |visit| {
        reader.scan(reader.first_seq(), &of_session, visit)
    })?;
    if order.json {
        writeln!(out, "{}", as_json(&written))?;
        return Ok(());
    }
    writeln!(
        out,
        "{} events of {session_id}, sequence {} to {}, in {} ({} bytes, SHA-256 {})",
        written.events,
        written.first_seq,
        written.last_seq,
        written.path.display(),
        written.bytes,
        written.sha256
    )?;
    writeln!(out, "manifest in {}", written.manifest_path.display())?;
    if written.gap_events > 0 {
        writeln!(out, "{} events are declared as lost by {} gap events", written.lost_events, written.gap_events)?;
    }
    Ok(())
}

/// How the log is synced since it was last opened.
fn sync_interval_ms(reader: &Reader) -> Result<Option<u64>, CommandError> {
    let mut millis = None;
    let opens = |header: &BlockHeader| header.kinds >> Kind::LogOpened.number() & 1 == 1;
    reader.scan(reader.first_seq(), &opens, &mut |event| {
        if let Ok(opened) = LogOpened::take(event) {
            millis = opened.sync_interval_ms;
        }
        ControlFlow::Continue(())
    })?;
    Ok(millis)
}

fn as_json(written: &Written) -> Value {
    json!({
        "format": written.format.as_str(),
        "path": written.path.display().to_string(),
        "manifest_path": written.manifest_path.display().to_string(),
        "events": written.events,
        "first_seq": written.first_seq,
        "last_seq": written.last_seq,
        "bytes": written.bytes,
        "sha256": written.sha256,
        "gap_events": written.gap_events,
        "lost_events": written.lost_events,
    })
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        let message = error.to_string();
        match error {
            ExportError::Storage(error) => error.into(),
            ExportError::Target { .. } => Self::new(EXIT_USAGE, message),
            ExportError::Exists { .. } | ExportError::Io { .. } => Self::new(EXIT_IO, message),
            ExportError::Limit { .. } | ExportError::Order { .. } | ExportError::Spoiled | ExportError::Table(_) => {
                Self::new(EXIT_UNAVAILABLE, message)
            }
        }
    }
}

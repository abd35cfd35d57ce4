//! `pageledger export`: events of a session, an owner or the whole log as a file with its manifest.
//!
//! Beside a running server the export ends at the durable end that it finds when it begins to walk.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use exporters::{Address, Destination, ExportError, ExportOptions, Progress, Scope, Selection, Written};
use serde_json::{Map, Value, json};
use storage::artifact::ArtifactStore;
use storage::event::catalog::LogOpened;
use storage::event::codec::ContextField;
use storage::event::{Kind, Payload};
use storage::ids::Owner;
use storage::log::{BlockHeader, Reader};
use storage::query::EventFilter;
use storage::time::rfc3339;

use super::progress::ProgressLine;
use super::session::{self, kind_bit};
use super::{CommandError, EXIT_IO, EXIT_NOTHING_THERE, EXIT_UNAVAILABLE, EXIT_USAGE, open_log};
use crate::config::{ExportOrder, ExportScope};

/// Writes the file and tells what it holds.
pub fn export(order: &ExportOrder, out: &mut dyn Write) -> Result<(), CommandError> {
    let data_dir = &order.config.data_dir;
    let reader = open_log(data_dir)?;
    let selection = Selection {
        scope: scope(order, &reader)?,
        first_seq: order.first_seq,
        last_seq: order.last_seq.min(reader.durable()?.last_seq),
        filter: order.filter.clone(),
    };
    let mut options = ExportOptions::new(reader.log_id(), env!("CARGO_PKG_VERSION"));
    options.filter = described(order, &selection.scope);
    options.overwrite = true;
    options.sync_interval_ms = sync_interval_ms(&reader)?;
    options.bodies = Some(ArtifactStore::open_read_only(&data_dir.join("artifacts")));
    options.audit_directory = Some(data_dir.join("audit"));
    stays_out(&order.out, data_dir)?;
    let target = Destination::of(&order.out, &order.config.store)?;
    let mut shown = ProgressLine::new();
    let written =
        selection.export(&reader, order.format, target, &options, &mut |Progress { seq, last_seq, events }| {
            shown.show(&|| format!("{:3} %: {events} events", seq.saturating_mul(100) / last_seq.max(1)));
        });
    shown.clear();
    let written = written?;
    if order.json {
        writeln!(out, "{}", as_json(&written))?
    } else {
        describe(&written, &selection.scope, out)?
    }
    Ok(())
}

/// An export is written anywhere but into the data directory, where it would replace what it reads; there
/// `exports` is for it.
fn stays_out(address: &Address, data_dir: &Path) -> Result<(), CommandError> {
    let Address::File(path) = address else { return Ok(()) };
    if path.as_os_str() == "-" {
        let message = "an export needs a file, for its manifest lies beside it; tail --json writes to standard output";
        return Err(CommandError::new(EXIT_USAGE, message));
    }
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // What is not there yet is told when the file is made.
    let (Ok(directory), Ok(data_dir)) = (directory.canonicalize(), data_dir.canonicalize()) else { return Ok(()) };
    if directory.starts_with(&data_dir) && !directory.starts_with(data_dir.join("exports")) {
        let message = format!(
            "{} lies in the data directory that is exported; write elsewhere, or below its exports directory",
            path.display()
        );
        return Err(CommandError::new(EXIT_USAGE, message));
    }
    Ok(())
}

fn scope(order: &ExportOrder, reader: &Reader) -> Result<Scope, CommandError> {
    let nothing = |what: String| {
        let message = format!("{what} is on record in {}", order.config.data_dir.display());
        CommandError::new(EXIT_NOTHING_THERE, message)
    };
    match &order.scope {
        ExportScope::Session(wanted) => match session::find(reader, wanted)? {
            Some(session_id) => Ok(Scope::Session(session_id)),
            None => Err(nothing(format!("no session of id or name {wanted:?}"))),
        },
        ExportScope::Owner(owner) if is_known(reader, owner)? => Ok(Scope::Owner(owner.clone())),
        ExportScope::Owner(owner) => Err(nothing(format!("no owner called {:?}", owner.as_str()))),
        ExportScope::Everything => Ok(Scope::Everything),
    }
}

/// Whether any event names the owner.
fn is_known(reader: &Reader, owner: &Owner) -> Result<bool, CommandError> {
    let mut known = false;
    reader.scan(reader.first_seq(), &|_| true, &mut |event| {
        known = event.context(ContextField::Owner) == Some(owner.as_str());
        if known { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    Ok(known)
}

/// The selection as the command line says it, without what it leaves open.
fn described(order: &ExportOrder, scope: &Scope) -> Value {
    let filter: &EventFilter = order.filter.filter();
    let kinds = filter.kinds.as_ref().map(|kinds| kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>());
    let whose = match scope {
        Scope::Session(session) => ("session_id", Some(session.as_str().into())),
        Scope::Owner(owner) => ("owner", Some(owner.as_str().into())),
        Scope::Everything => ("owner", None),
    };
    let said: [(&str, Option<Value>); 12] = [
        whose,
        ("first_seq", (order.first_seq > 1).then(|| order.first_seq.into())),
        ("last_seq", (order.last_seq < u64::MAX).then(|| order.last_seq.into())),
        ("kinds", kinds.map(Into::into)),
        ("level", filter.level.map(|level| level.as_str().into())),
        ("text_filter", filter.text.as_deref().map(Into::into)),
        ("url_filter", filter.url.as_deref().map(Into::into)),
        ("tab_id", filter.page_id.as_ref().map(|id| id.as_str().into())),
        ("operation_id", filter.operation_id.as_ref().map(|id| id.as_str().into())),
        ("request_id", filter.request_id.as_ref().map(|id| id.as_str().into())),
        ("since", filter.since_micros.map(|micros| rfc3339(micros).into())),
        ("until", filter.until_micros.map(|micros| rfc3339(micros).into())),
    ];
    let present = said.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?)));
    Value::Object(present.collect::<Map<_, _>>())
}

/// How the log is synced since it was last opened.
fn sync_interval_ms(reader: &Reader) -> Result<Option<u64>, CommandError> {
    let mut millis = None;
    let opens = |header: &BlockHeader| header.kinds & kind_bit(Kind::LogOpened) != 0;
    reader.scan(reader.first_seq(), &opens, &mut |event| {
        if let Ok(opened) = LogOpened::take(event) {
            millis = opened.sync_interval_ms;
        }
        ControlFlow::Continue(())
    })?;
    Ok(millis)
}

fn describe(written: &Written, scope: &Scope, out: &mut dyn Write) -> Result<(), CommandError> {
    let of = match scope {
        Scope::Session(session) => session.as_str(),
        Scope::Owner(owner) => owner.as_str(),
        Scope::Everything => "the whole log",
    };
    let Written { events, first_seq, last_seq, target, bytes, sha256, .. } = written;
    writeln!(
        out,
        "{events} events of {of}, sequence {first_seq} to {last_seq}, in {target} ({bytes} bytes, SHA-256 {sha256})"
    )?;
    writeln!(out, "manifest in {}", written.manifest)?;
    if written.excluded > 0 {
        writeln!(out, "{} events were left out by the filter", written.excluded)?;
    }
    if written.unplaced > 0 {
        writeln!(out, "{} events have no place in a file of this form", written.unplaced)?;
    }
    if written.gap_events > 0 {
        writeln!(out, "{} events are declared as lost by {} gap events", written.lost_events, written.gap_events)?;
    }
    match &written.surroundings.removed {
        Some(removed) if removed.events > 0 => {
            let least = if removed.exact { "" } else { "up to " };
            writeln!(out, "{least}{} events were removed by retention or erasure", removed.events)?;
        }
        _ => {}
    }
    if let Some(damage) = &written.surroundings.damage {
        writeln!(out, "{damage}")?;
    }
    Ok(())
}

fn as_json(written: &Written) -> Value {
    json!({
        "format": written.format.as_str(),
        "path": written.target.to_string(),
        "manifest_path": written.manifest.to_string(),
        "events": written.events,
        "excluded": written.excluded,
        "without_place_in_format": written.unplaced,
        "first_seq": written.first_seq,
        "last_seq": written.last_seq,
        "bytes": written.bytes,
        "sha256": written.sha256,
        "gap_events": written.gap_events,
        "lost_events": written.lost_events,
        "removed_events": written.surroundings.removed.as_ref().map(|removed| removed.events),
    })
}

impl From<ExportError> for CommandError {
    fn from(error: ExportError) -> Self {
        let message = error.to_string();
        match error {
            ExportError::Storage(error) => error.into(),
            ExportError::Target { .. } | ExportError::NotReplaceable { .. } | ExportError::NameTooLong { .. } => {
                Self::new(EXIT_USAGE, message)
            }
            ExportError::Exists { .. } | ExportError::Io { .. } => Self::new(EXIT_IO, message),
            ExportError::Limit { .. }
            | ExportError::Order { .. }
            | ExportError::Spoiled
            | ExportError::Store { .. }
            | ExportError::Table(_) => Self::new(EXIT_UNAVAILABLE, message),
        }
    }
}

//! `pageledger export`: events of a session, an owner or the whole log as a file with its manifest.
//!
//! Beside a running server the export ends at the durable end that it finds when it begins to walk.

use std::io::{IsTerminal as _, Write};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use exporters::{Destination, ExportError, ExportOptions, Progress, Scope, Selection, Written};
use serde_json::{Map, Value, json};
use storage::artifact::ArtifactStore;
use storage::event::catalog::LogOpened;
use storage::event::codec::ContextField;
use storage::event::{Kind, Payload};
use storage::ids::Owner;
use storage::log::{BlockHeader, Reader};
use storage::query::EventFilter;
use storage::time::rfc3339;

use super::session::{self, kind_bit};
use super::{CommandError, EXIT_IO, EXIT_NOTHING_THERE, EXIT_UNAVAILABLE, EXIT_USAGE, open_log};
use crate::config::{ExportOrder, ExportScope};

/// How often progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(250);

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
    let target = Destination::of(&order.out, &order.config.store)?;
    let mut shown = Shown { terminal: std::io::stderr().is_terminal(), last: Instant::now(), any: false };
    let written = selection.export(&reader, order.format, target, &options, &mut |progress| shown.show(progress));
    shown.clear();
    let written = written?;
    if order.json {
        writeln!(out, "{}", as_json(&written))?
    } else {
        describe(&written, &selection.scope, out)?
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

/// Progress on a terminal, on a line that is written over.
struct Shown {
    terminal: bool,
    last: Instant,
    any: bool,
}

impl Shown {
    fn show(&mut self, progress: Progress) {
        if !self.terminal || self.last.elapsed() < SHOWN_EVERY {
            return;
        }
        (self.last, self.any) = (Instant::now(), true);
        let Progress { seq, last_seq, events } = progress;
        let share = seq.saturating_mul(100) / last_seq.max(1);
        // Nobody seeing it is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{share:3} %: {events} events");
    }

    fn clear(&self) {
        if self.any {
            let _ = write!(std::io::stderr(), "\r{:40}\r", "");
        }
    }
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
            writeln!(out, "{least}{} events were removed by retention", removed.events)?;
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
            ExportError::Target { .. } => Self::new(EXIT_USAGE, message),
            ExportError::Exists { .. } | ExportError::Io { .. } => Self::new(EXIT_IO, message),
            ExportError::Limit { .. }
            | ExportError::Order { .. }
            | ExportError::Spoiled
            | ExportError::Store { .. }
            | ExportError::Table(_) => Self::new(EXIT_UNAVAILABLE, message),
        }
    }
}

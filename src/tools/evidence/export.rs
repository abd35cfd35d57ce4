//! `export_events`: a session's history, or all of the caller's, as a file: kept as an artifact, under
//! the data directory's `exports`, or below the URL that the operator named.

use std::path::PathBuf;
use std::time::Duration;

use exporters::{Address, Destination, ExportError, ExportOptions, Format, Scope, Selection, Written};
use serde_json::{Value, json};
use storage::StorageError;
use storage::event::catalog::{ExportFinished, ExportStarted};
use storage::event::{Context, Symbol};
use storage::ids::SessionId;
use storage::query::EventFilter;

use super::events::{LEVEL, REQUEST, filter};
use super::paging::{self, OPERATION, SINCE, TAB, UNTIL, pattern, words};
use crate::contract::facts::{INTEGER_MAX, Scalar};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;
use crate::limits::EXPORT_CHECKPOINT_MS;
use crate::metering;
use crate::paths;
use crate::tools::refusals;
use crate::tools::tool::{Call, Output, Tool};

pub static EXPORT_EVENTS: Tool = Tool {
    facts: ToolFacts {
        name: "export_events",
        title: "Export events",
        text: "Write events to a file with a manifest: a session's, or all of yours. Filters as in list_events.",
        pack: Pack::Evidence,
        effect: Effect::SET,
        lane: Lane::Free,
        parameters: &[
            Parameter::new("session_id", Shape::Handle, ""),
            Parameter::new("format", Shape::Choice(&Format::WORDS), "").or(Scalar::Text("parquet")),
            Parameter::text("path", "relative, or below the server's export URL; omit for an artifact"),
            words("kinds", ""),
            LEVEL,
            pattern("text_filter"),
            pattern("url_filter"),
            REQUEST,
            TAB,
            OPERATION,
            SINCE,
            UNTIL,
            number("first_seq"),
            number("last_seq"),
        ],
        returns: Returns::Object(&[
            SESSION_ID.maybe(),
            Field::text("format"),
            Field::integer("events"),
            Field::integer("bytes"),
            Field::text("sha256"),
            Field::text("artifact").maybe(),
            Field::text("path").maybe(),
        ]),
    },
    run: |call| Box::pin(export_events(call)),
};

const fn number(name: &'static str) -> Parameter {
    Parameter::new(name, Shape::Integer { min: 1, max: INTEGER_MAX }, "")
}

async fn export_events(call: Call) -> Result<Output, Fault> {
    let session_id = match call.arguments.optional_text("session_id") {
        Some(_) => Some(paging::history(&call).await?),
        None => None,
    };
    let format = Format::parse(call.arguments.text("format")).unwrap_or(Format::Parquet);
    // Whose events is the scope's to say; the filter chooses among them.
    let filter = filter(&call.arguments, None)?;
    let compiled = paging::compile(&filter)?;
    let asked = |name: &str| call.arguments.integer(name);
    let (first_seq, last_seq) = (asked("first_seq").unwrap_or(1), asked("last_seq").unwrap_or(u64::MAX));
    if first_seq > last_seq {
        return Err(Fault::invalid_argument("first_seq", "is greater than last_seq"));
    }
    let target = target(&call, session_id.as_ref(), format)?;
    let context = context(&call, session_id.as_ref());
    let told = selection(&filter, call.arguments.as_map());
    let started = ExportStarted { format: Symbol::fold(format.as_str()), filter: call.gateway.redactor.json(&told) };
    let end = call.gateway.journal.commit_one(&context, &started).await?.last_seq;
    signed(&call, end).await;
    let scope = session_id.clone().map_or_else(|| Scope::Owner(call.owner.clone()), Scope::Session);
    let selection = Selection { scope, first_seq, last_seq: last_seq.min(end), filter: compiled };
    let options = options(&call, told);
    let reader = call.gateway.journal.log().reader();
    let place = target.place();
    let write = move || Ok::<_, Fault>(selection.export(&reader, format, place, &options, &mut |_| {}));
    let written = keep::blocking(write).await?;
    finished(&call, &context, format, written.as_ref()).await?;
    let written = written.map_err(|error| export_fault(&error))?;
    deliver(&call, &context, session_id.as_ref(), target, written).await
}

/// A checkpoint that covers the export lets an auditor tie the file to the log. Where none can be had
/// in time, the manifest says how far the newest one goes.
async fn signed(call: &Call, end: u64) {
    let limit = Duration::from_millis(EXPORT_CHECKPOINT_MS);
    match tokio::time::timeout(limit, call.gateway.auditor.cover(end)).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => tracing::warn!(%error, "an export goes without a checkpoint of its own"),
        Err(_) => tracing::warn!("an export goes without a checkpoint of its own: none came in time"),
    }
}

fn options(call: &Call, selection: Value) -> ExportOptions {
    let mut options = ExportOptions::new(call.gateway.journal.log().log_id(), env!("CARGO_PKG_VERSION"));
    options.filter = selection;
    options.sync_interval_ms = metering::sync_interval_ms(call.gateway.config.durability);
    options.bodies = Some(call.gateway.artifacts.clone());
    options.audit_directory = Some(call.gateway.config.data_dir.join("audit"));
    options
}

/// The selection as the caller would repeat it.
fn selection(filter: &EventFilter, arguments: &serde_json::Map<String, Value>) -> Value {
    let mut selection = arguments.clone();
    for name in ["format", "path"] {
        selection.shift_remove(name);
    }
    if let Some(kinds) = &filter.kinds {
        selection.insert("kinds".into(), kinds.iter().map(|kind| kind.name()).collect::<Vec<_>>().into());
    }
    Value::Object(selection)
}

/// Where the file is written.
enum Target {
    /// Then moved into the artifact store.
    Artifact {
        directory: PathBuf,
        path: PathBuf,
    },
    Place(Destination),
}

impl Target {
    fn place(&self) -> Destination {
        match self {
            Target::Artifact { path, .. } => path.into(),
            Target::Place(place) => place.clone(),
        }
    }
}

fn target(call: &Call, session_id: Option<&SessionId>, format: Format) -> Result<Target, Fault> {
    let Some(asked) = call.arguments.optional_text("path") else {
        let directory = call.gateway.run_directory(&call.operation_id.as_str().into())?;
        let name = session_id.map_or("events", SessionId::as_str);
        let path = directory.join(format!("{name}.{}", format.as_str()));
        return Ok(Target::Artifact { directory, path });
    };
    if Address::is_url(asked) {
        return elsewhere(call, asked).map(Target::Place);
    }
    let root = call.gateway.config.data_dir.join("exports");
    refusals::below(call, &root, asked).map(|path| Target::Place(path.into()))
}

/// A place below the URL that the operator named.
fn elsewhere(call: &Call, asked: &str) -> Result<Destination, Fault> {
    let refused = || refusals::path(call, asked);
    let config = &call.gateway.config;
    let prefix = config.export_url.as_ref().ok_or_else(refused)?;
    let address = Address::url(asked).map_err(|_| refused())?;
    if !address.is_below(prefix) || !address.names_a_file() {
        return Err(refused());
    }
    if let (Address::File(root), Address::File(path)) = (prefix, &address) {
        let path = path.to_str().ok_or_else(refused)?;
        return paths::below(root, path).map(Destination::from).map_err(|_| refused());
    }
    Destination::of(&address, &config.store).map_err(|error| export_fault(&error))
}

fn context(call: &Call, session_id: Option<&SessionId>) -> Context {
    Context {
        session_id: session_id.cloned(),
        instance_id: call.target.ids().instance_id,
        owner: Some(call.owner.clone()),
        operation_id: Some(call.operation_id.clone()),
        ..Context::default()
    }
}

async fn finished(
    call: &Call,
    context: &Context,
    format: Format,
    written: Result<&Written, &ExportError>,
) -> Result<(), Fault> {
    let redactor = &call.gateway.redactor;
    let event = ExportFinished {
        format: Symbol::fold(format.as_str()),
        events: written.map_or(0, |w| w.events),
        first_seq: written.map_or(0, |w| w.first_seq),
        last_seq: written.map_or(0, |w| w.last_seq),
        bytes: written.map_or(0, |w| w.bytes),
        sha256: redactor.text(written.map_or("", |w| w.sha256.as_str())),
        code: written.err().map(|_| Symbol::fold(Code::ExportFailed.as_str())),
    };
    call.gateway.journal.commit_one(context, &event).await?;
    Ok(())
}

fn export_fault(error: &ExportError) -> Fault {
    let too_long;
    let reason = match error {
        ExportError::Exists { .. } => "a file of that name exists already",
        ExportError::NotReplaceable { .. } => "what stands there is not a regular file",
        ExportError::NameTooLong { bytes_max, .. } => {
            too_long = format!("the name is longer than {bytes_max} bytes");
            &too_long
        }
        ExportError::Target { .. } => "the path does not name a file",
        ExportError::Limit { .. } => "the file would be larger than its bound",
        ExportError::Storage(StorageError::Damaged { .. }) => "the log is damaged in this range",
        ExportError::Store { reason, .. } => reason,
        _ => "the file could not be written",
    };
    Fault::new(Code::ExportFailed).with("reason", reason).caused_by(error)
}

async fn deliver(
    call: &Call,
    context: &Context,
    session_id: Option<&SessionId>,
    target: Target,
    written: Written,
) -> Result<Output, Fault> {
    let mut data = json!({
        "format": written.format.as_str(),
        "events": written.events,
        "excluded": written.excluded,
        "without_place_in_format": written.unplaced,
        "first_seq": written.first_seq,
        "last_seq": written.last_seq,
        "bytes": written.bytes,
        "sha256": written.sha256,
        "gap_events": written.gap_events,
        "lost_events": written.lost_events,
        "removed_events": written.surroundings.removed.as_ref().map_or(0, |removed| removed.events),
    });
    if let Some(session_id) = session_id {
        data["session_id"] = session_id.as_str().into();
    }
    let mut artifacts = Vec::new();
    match target {
        Target::Place(place) => {
            data["path"] = place.to_string().into();
            data["manifest_path"] = written.manifest.to_string().into();
            artifacts.push(Reference::Path(place.to_string()));
        }
        Target::Artifact { directory, path } => {
            let manifest_path = written.manifest.file().map(PathBuf::from).unwrap_or_default();
            let kept = keep::keep_file(&call.gateway, context, "export", written.format.media_type(), path).await?;
            let manifest = keep::keep_file(&call.gateway, context, "export", "application/json", manifest_path).await?;
            data["artifact"] = kept.handle.as_str().into();
            data["manifest_artifact"] = manifest.handle.as_str().into();
            artifacts.extend([keep::reference(&kept.handle), keep::reference(&manifest.handle)]);
            // What could not be removed now is removed at the next start.
            let _ = std::fs::remove_dir_all(directory);
        }
    }
    let mut output = Output::value(data);
    output.artifacts = artifacts;
    Ok(output)
}

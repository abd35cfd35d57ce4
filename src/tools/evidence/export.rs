//! `export_events`: a session's history as a file, made on this machine and kept as an artifact or
//! under the data directory's `exports`.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use exporters::{Export, ExportError, ExportOptions, Format, Written};
use serde_json::{Value, json};
use storage::StorageError;
use storage::event::catalog::{ExportFinished, ExportStarted};
use storage::event::{Context, Symbol};
use storage::ids::SessionId;
use storage::query::{CompiledFilter, EventFilter};

use super::events::kinds;
use super::paging::{self, OPERATION, SINCE, TAB, UNTIL, words};
use crate::contract::facts::{SESSION, Scalar};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, Shape, ToolFacts};
use crate::envelope::Reference;
use crate::fault::{Code, Fault};
use crate::keep;
use crate::metering;
use crate::tools::refusals;
use crate::tools::tool::{Call, Output, Tool};

pub static EXPORT_EVENTS: Tool = Tool {
    facts: ToolFacts {
        name: "export_events",
        title: "Export events",
        text: "Write a session's events to a Parquet or NDJSON file, as an artifact or below the server's exports directory.",
        pack: Pack::Evidence,
        effect: Effect::SET,
        lane: Lane::Free,
        parameters: &[
            SESSION,
            Parameter::new("format", Shape::Choice(&["parquet", "ndjson"]), "").or(Scalar::Text("parquet")),
            Parameter::text("path", "relative; omit for an artifact"),
            words("kinds", "as in list_events"),
            TAB,
            OPERATION,
            SINCE,
            UNTIL,
        ],
        returns: Returns::Object(&[
            SESSION_ID,
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

async fn export_events(call: Call) -> Result<Output, Fault> {
    let session_id = paging::history(&call).await?;
    let format = Format::parse(call.arguments.text("format")).unwrap_or(Format::Parquet);
    let mut filter = paging::common_filter(&call.arguments, session_id.clone())?;
    filter.kinds = kinds(&call.arguments)?;
    let compiled = paging::compile(&filter)?;
    let target = target(&call, &session_id, format)?;
    let context = context(&call, &session_id);
    let selection = selection(&filter, call.arguments.as_map());
    let started =
        ExportStarted { format: Symbol::fold(format.as_str()), filter: call.gateway.redactor.json(&selection) };
    let end = call.gateway.journal.commit_one(&context, &started).await?.last_seq;
    let options = options(&call, selection);
    let reader = call.gateway.journal.log().reader();
    let path = target.path().to_owned();
    let write = move || Ok::<_, Fault>(write(&reader, format, &path, &options, &compiled, end));
    let written = keep::blocking(write).await?;
    finished(&call, &context, format, written.as_ref()).await?;
    let written = written.map_err(|error| export_fault(&error))?;
    deliver(&call, &context, target, written).await
}

fn options(call: &Call, selection: Value) -> ExportOptions {
    let mut options = ExportOptions::new(call.gateway.journal.log().log_id(), env!("CARGO_PKG_VERSION"));
    options.filter = selection;
    options.sync_interval_ms = metering::sync_interval_ms(call.gateway.config.durability);
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
    Path(PathBuf),
}

impl Target {
    fn path(&self) -> &Path {
        match self {
            Target::Artifact { path, .. } | Target::Path(path) => path,
        }
    }
}

fn target(call: &Call, session_id: &SessionId, format: Format) -> Result<Target, Fault> {
    let Some(asked) = call.arguments.optional_text("path") else {
        let directory = call.gateway.run_directory(&call.operation_id.as_str().into())?;
        let path = directory.join(format!("{session_id}.{}", format.as_str()));
        return Ok(Target::Artifact { directory, path });
    };
    let root = call.gateway.config.data_dir.join("exports");
    refusals::below(call, &root, asked).map(Target::Path)
}

fn context(call: &Call, session_id: &SessionId) -> Context {
    Context {
        session_id: Some(session_id.clone()),
        instance_id: call.target.ids().instance_id,
        owner: Some(call.owner.clone()),
        operation_id: Some(call.operation_id.clone()),
        ..Context::default()
    }
}

/// Every event of the selection up to the export's own start.
fn write(
    reader: &storage::log::Reader,
    format: Format,
    path: &Path,
    options: &ExportOptions,
    filter: &CompiledFilter,
    end: u64,
) -> Result<Written, ExportError> {
    let mut export = Export::create(format, path, options)?;
    let mut failed = None;
    let session_id = &filter.filter().session_id;
    reader.scan(reader.first_seq(), &|header| header.session_id == *session_id, &mut |event| {
        if event.seq > end {
            return ControlFlow::Break(());
        }
        if !filter.matches(event) {
            export.exclude(event);
            return ControlFlow::Continue(());
        }
        match export.push(event) {
            Ok(()) => ControlFlow::Continue(()),
            Err(error) => {
                failed = Some(error);
                ControlFlow::Break(())
            }
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => export.finish(),
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
    let reason = match error {
        ExportError::Exists { .. } => "a file of that name exists already",
        ExportError::Target { .. } => "the path does not name a file",
        ExportError::Limit { .. } => "the file would be larger than its bound",
        ExportError::Storage(StorageError::Damaged { .. }) => "the log is damaged in this range",
        _ => "the file could not be written",
    };
    Fault::new(Code::ExportFailed).with("reason", reason).caused_by(error)
}

async fn deliver(call: &Call, context: &Context, target: Target, written: Written) -> Result<Output, Fault> {
    let mut data = json!({
        "session_id": call.arguments.text("session_id"),
        "format": written.format.as_str(),
        "events": written.events,
        "excluded": written.excluded,
        "first_seq": written.first_seq,
        "last_seq": written.last_seq,
        "bytes": written.bytes,
        "sha256": written.sha256,
        "gap_events": written.gap_events,
        "lost_events": written.lost_events,
    });
    let mut artifacts = Vec::new();
    match target {
        Target::Path(path) => {
            data["path"] = path.display().to_string().into();
            data["manifest_path"] = written.manifest_path.display().to_string().into();
            artifacts.push(Reference::Path(path.display().to_string()));
        }
        Target::Artifact { directory, path } => {
            let kept = keep::keep_file(&call.gateway, context, "export", written.format.media_type(), path).await?;
            let manifest =
                keep::keep_file(&call.gateway, context, "export", "application/json", written.manifest_path).await?;
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

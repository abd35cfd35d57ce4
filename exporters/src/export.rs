//! One way to write a file of events, whatever its format.
//!
//! What must stay true: a target exists whole or not at all; events go in by rising `seq`, each once;
//! every event offered is counted as written or excluded; `gap` events are summed up beside the
//! file, so that a reader knows what the log itself could not record.

use std::fmt;
use std::ops::ControlFlow;
use std::path::PathBuf;

use storage::StorageError;
use storage::artifact::ArtifactStore;
use storage::event::EventView;

use crate::csv::CsvWriter;
use crate::har::HarWriter;
use crate::manifest;
use crate::ndjson::NdjsonWriter;
use crate::parquet::ParquetWriter;
use crate::removals::Removed;
use crate::tally::{DeclaredGap, Tally};
use crate::target::{Destination, Target};

/// A file an export writes is at most this long, unless the caller says less.
pub const EXPORT_BYTES_MAX: u64 = 64 * 1024 * 1024 * 1024;
/// What a manifest says about redaction when the caller says nothing else.
pub const REDACTION_NOTE: &str =
    "secrets were replaced before recording; the export removes and alters nothing further";

/// A file format.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    Parquet,
    Ndjson,
    Csv,
    /// Requests alone, as the HTTP Archive 1.2 has them.
    Har,
}

impl Format {
    pub const ALL: [Format; 4] = [Format::Parquet, Format::Ndjson, Format::Csv, Format::Har];
    /// As [`Format::as_str`], for whoever lists what can be asked for.
    pub const WORDS: [&'static str; 4] = ["parquet", "ndjson", "csv", "har"];

    /// The word used in arguments, events and metrics; also the usual file name extension.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Parquet => "parquet",
            Self::Ndjson => "ndjson",
            Self::Csv => "csv",
            Self::Har => "har",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.as_str() == text)
    }

    #[must_use]
    pub fn media_type(self) -> &'static str {
        match self {
            Self::Parquet => "application/vnd.apache.parquet",
            Self::Ndjson => "application/x-ndjson",
            Self::Csv => "text/csv; charset=utf-8; header=present",
            Self::Har => "application/json",
        }
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What an export says about itself and how far it may go.
#[derive(Clone)]
pub struct ExportOptions {
    /// Log the events come from; part of every event's identity.
    pub log_id: String,
    /// Version of the program.
    pub gateway_version: String,
    /// The selection in force, as the caller would repeat it.
    pub filter: serde_json::Value,
    /// How often the gateway syncs, where that does not come with each commit: the last of what was
    /// exported may then be lost to the log in a power cut.
    pub sync_interval_ms: Option<u64>,
    /// What is redacted and when, for the manifest.
    pub redaction: String,
    /// The file is at most this long.
    pub bytes_max: u64,
    /// Whether an existing file may be replaced.
    pub overwrite: bool,
    /// Where bodies are kept, for the formats that hold them.
    pub bodies: Option<ArtifactStore>,
    /// `<data>/audit`, for the checkpoint that ties the file to the log.
    pub audit_directory: Option<PathBuf>,
}

impl ExportOptions {
    #[must_use]
    pub fn new(log_id: &str, gateway_version: &str) -> Self {
        Self {
            log_id: log_id.to_owned(),
            gateway_version: gateway_version.to_owned(),
            filter: serde_json::json!({}),
            sync_interval_ms: None,
            redaction: REDACTION_NOTE.to_owned(),
            bytes_max: EXPORT_BYTES_MAX,
            overwrite: false,
            bodies: None,
            audit_directory: None,
        }
    }
}

/// Why an export could not be finished; nothing of it is left at the target.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    /// The events could not be read.
    #[error(transparent)]
    Storage(#[from] StorageError),
    /// The target exists and may not be replaced.
    #[error("{} exists already", path.display())]
    Exists { path: PathBuf },
    /// The target has no file name, or one that is not UTF-8.
    #[error("{} does not name a file", path.display())]
    Target { path: PathBuf },
    /// The name leaves no room for what is put before and after it.
    #[error("{} is too long a name; use at most {bytes_max} bytes", path.display())]
    NameTooLong { path: PathBuf, bytes_max: usize },
    /// What stands there is a directory, a link, a device: nothing that an export replaces.
    #[error("{} is not a regular file and is not replaced; name another", path.display())]
    NotReplaceable { path: PathBuf },
    /// The file would grow beyond its bound.
    #[error("an export is at most {bytes_max} bytes")]
    Limit { bytes_max: u64 },
    /// Events came out of order.
    #[error("sequence {seq} cannot follow {previous}")]
    Order { previous: u64, seq: u64 },
    /// An event could not be added before, so the file would not be whole.
    #[error("the export failed before and cannot be finished")]
    Spoiled,
    /// The operating system refused.
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },
    /// A store refused or did not answer.
    #[error("{action} {place}: {reason}")]
    Store { action: &'static str, place: String, reason: String },
    /// The table could not be encoded.
    #[error("the table cannot be written: {0}")]
    Table(String),
}

/// What a finished export holds.
#[derive(Debug, Clone)]
pub struct Written {
    pub format: Format,
    pub target: Destination,
    pub manifest: Destination,
    /// Events in the file.
    pub events: u64,
    /// Events offered and left out by the caller's filter.
    pub excluded: u64,
    /// Events that the filter chose and for which the format has no place.
    pub unplaced: u64,
    /// 0 when the file holds no event.
    pub first_seq: u64,
    /// 0 when the file holds no event.
    pub last_seq: u64,
    pub bytes: u64,
    /// Of the whole file, in hexadecimal.
    pub sha256: String,
    /// 0 for formats without them.
    pub row_groups: u64,
    /// `gap` events met, written or excluded.
    pub gap_events: u64,
    /// What these gaps declare as lost, in all.
    pub lost_events: u64,
    /// The first `GAPS_LISTED_MAX` of them.
    pub gaps: Vec<DeclaredGap>,
    pub surroundings: Surroundings,
}

/// What the log says beside the events of a selection.
#[derive(Debug, Clone, Default)]
pub struct Surroundings {
    /// What retention took of the selection, where that was looked for.
    pub removed: Option<Removed>,
    /// `gap` events of no session within the range, which may be of this selection or of another.
    pub nobodys_gap_events: u64,
    pub nobodys_lost_events: u64,
    /// Why the surroundings could not be read whole.
    pub damage: Option<String>,
}

/// What a finished file is, before its manifest is written.
pub(crate) struct Sealed {
    pub bytes: u64,
    pub sha256: String,
    pub row_groups: u64,
    /// Events that were taken, and turned out to have no place.
    pub unplaced: u64,
    /// What the format has to say about itself.
    pub details: Option<serde_json::Value>,
}

/// A file under way. Dropped before `finish`, it leaves nothing behind.
pub struct Export {
    format: Format,
    target: Destination,
    options: ExportOptions,
    tally: Tally,
    /// The last number offered and taken.
    offered_seq: Option<u64>,
    writer: Box<dyn FormatWriter>,
    /// Whether an event that was offered is not in the file.
    spoiled: bool,
}

/// What a format has to do; all are `Send`, so that exports run on a blocking thread.
pub(crate) trait FormatWriter: Send {
    /// Sees every event of the scope, chosen or not, before it is offered.
    fn note(&mut self, _event: &EventView<'_>) {}
    /// Whether an event belongs to something in the file already, whatever the filter says of it.
    fn continues(&self, _event: &EventView<'_>) -> bool {
        false
    }
    /// Adds an event; false when the format has no place for it.
    fn push(&mut self, event: &EventView<'_>) -> Result<bool, ExportError>;
    /// Writes what is left and prepares the file; it has no name yet.
    fn seal(&mut self, options: &ExportOptions, tally: &Tally) -> Result<Sealed, ExportError>;
    /// Where the bytes go.
    fn target(&mut self) -> &mut Target;
}

impl Export {
    /// # Errors
    /// When the target exists and may not be replaced, or cannot be written.
    pub fn create(
        format: Format,
        target: impl Into<Destination>,
        options: &ExportOptions,
    ) -> Result<Self, ExportError> {
        let target = target.into();
        target.is_nameable()?;
        // What cannot be finished is not begun: the file that stands there stays.
        manifest::beside(&target).is_free(options.overwrite)?;
        let writer: Box<dyn FormatWriter> = match format {
            Format::Parquet => Box::new(ParquetWriter::create(&target, options)?),
            Format::Ndjson => Box::new(NdjsonWriter::create(&target, options)?),
            Format::Csv => Box::new(CsvWriter::create(&target, options)?),
            Format::Har => Box::new(HarWriter::create(&target, options)?),
        };
        let (options, tally) = (options.clone(), Tally::default());
        Ok(Self { format, target, options, tally, offered_seq: None, writer, spoiled: false })
    }

    /// Adds an event.
    ///
    /// # Errors
    /// When `seq` does not rise, the bound is reached, or the disk refuses; `finish` then refuses too.
    pub fn push(&mut self, event: &EventView<'_>) -> Result<(), ExportError> {
        let pushed = self.add(event);
        self.spoiled |= pushed.is_err();
        pushed
    }

    fn add(&mut self, event: &EventView<'_>) -> Result<(), ExportError> {
        if let Some(previous) = self.offered_seq.filter(|previous| event.seq <= *previous) {
            return Err(ExportError::Order { previous, seq: event.seq });
        }
        self.offered_seq = Some(event.seq);
        self.writer.note(event);
        if self.writer.push(event)? {
            self.tally.written(event);
        } else {
            self.tally.unplaced += 1;
        }
        self.tally.gap(event);
        Ok(())
    }

    /// Takes an event that the caller's filter leaves out: it is counted, unless it belongs to one that
    /// the file holds.
    ///
    /// # Errors
    /// As [`Export::push`].
    pub fn exclude(&mut self, event: &EventView<'_>) -> Result<(), ExportError> {
        if self.writer.continues(event) {
            return self.push(event);
        }
        self.writer.note(event);
        self.tally.excluded += 1;
        self.tally.gap(event);
        Ok(())
    }

    /// Events in the file so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.tally.events
    }

    /// Makes the file and then its manifest durable under their final names.
    ///
    /// # Errors
    /// When an event could not be added before, or the disk refuses; neither name then holds anything
    /// of this export.
    pub fn finish(mut self, surroundings: Surroundings) -> Result<Written, ExportError> {
        if self.spoiled {
            return Err(ExportError::Spoiled);
        }
        let sealed = self.writer.seal(&self.options, &self.tally)?;
        self.tally.events -= sealed.unplaced;
        self.tally.unplaced += sealed.unplaced;
        let text = manifest::text(&self.target, self.format, &sealed, &self.tally, &surroundings, &self.options)?;
        let place = manifest::beside(&self.target);
        let mut manifest = manifest::prepare(&place, &text, self.options.overwrite)?;
        let turn = self.target.take_turn()?;
        self.writer.target().publish()?;
        if let Err(error) = manifest.publish() {
            // A file without its manifest would pass for a whole export; the first error says why.
            self.target.remove();
            return Err(error);
        }
        drop(turn);
        Ok(Written {
            format: self.format,
            manifest: place,
            target: self.target,
            events: self.tally.events,
            excluded: self.tally.excluded,
            unplaced: self.tally.unplaced,
            first_seq: self.tally.first_seq,
            last_seq: self.tally.last_seq,
            bytes: sealed.bytes,
            sha256: sealed.sha256,
            row_groups: sealed.row_groups,
            gap_events: self.tally.gap_events,
            lost_events: self.tally.lost_events,
            gaps: self.tally.gaps,
            surroundings,
        })
    }
}

/// Takes one event; `Break` stops the walk.
pub type Visit<'v> = &'v mut dyn FnMut(&EventView<'_>) -> ControlFlow<()>;

/// Writes all events that `events` hands to its visitor: `&mut |visit| reader.scan(.., visit)`.
///
/// # Errors
/// When reading or writing fails; nothing is left at the target.
pub fn export(
    format: Format,
    target: impl Into<Destination>,
    options: &ExportOptions,
    events: &mut dyn FnMut(Visit<'_>) -> Result<(), StorageError>,
) -> Result<Written, ExportError> {
    let mut export = Export::create(format, target, options)?;
    let mut failed = None;
    events(&mut |event| match export.push(event) {
        Ok(()) => ControlFlow::Continue(()),
        Err(error) => {
            failed = Some(error);
            ControlFlow::Break(())
        }
    })?;
    match failed {
        Some(error) => Err(error),
        None => export.finish(Surroundings::default()),
    }
}

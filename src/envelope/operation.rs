//! What every envelope says about its call: who, on what, when, with which outcome.
//!
//! The outcome is conservative: once a call has entered, a failure may have had effects.

use serde_json::{Map, Value};
use storage::ids::{ArtifactHandle, FrameId, InstanceId, OperationId, PageId};
use storage::time::rfc3339;

use crate::limits::IDENTIFIER_BYTES_MAX;

/// One call as the envelope tells of it. Outcome and retry are derived, not set.
#[derive(Debug, Clone)]
pub struct Operation {
    pub id: OperationId,
    pub tool: String,
    pub instance_id: Option<InstanceId>,
    pub page_id: Option<PageId>,
    pub frame_id: Option<FrameId>,
    pub started_at_micros: i64,
    pub finished_at_micros: i64,
    /// By the monotonic clock, queue time included.
    pub duration_ms: f64,
    /// Whether the call got as far as where it may have had an effect.
    pub entered: bool,
    /// Whether the tool only reads.
    pub reads: bool,
    pub artifacts: Vec<Reference>,
}

/// Something the result left on the server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reference {
    /// A file, as the result's `path` or `saved_to` names it.
    Path(String),
    /// Kept bytes, for `read_artifact`.
    Artifact(ArtifactHandle),
}

/// How far the call got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    Completed,
    NotStarted,
    Unknown,
}

/// What the caller must know before calling again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Retry {
    NotNeeded,
    AfterCorrection,
    ReadOnly,
    InspectState,
}

/// The rules of outcome and retry.
#[must_use]
pub fn outcome_of(succeeded: bool, entered: bool, reads: bool) -> (Outcome, Retry) {
    match (succeeded, entered, reads) {
        (true, _, _) => (Outcome::Completed, Retry::NotNeeded),
        (false, false, _) => (Outcome::NotStarted, Retry::AfterCorrection),
        (false, true, true) => (Outcome::Unknown, Retry::ReadOnly),
        (false, true, false) => (Outcome::Unknown, Retry::InspectState),
    }
}

impl Outcome {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Outcome::Completed => "completed",
            Outcome::NotStarted => "not_started",
            Outcome::Unknown => "unknown",
        }
    }
}

impl Retry {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Retry::NotNeeded => "not_needed",
            Retry::AfterCorrection => "after_correction",
            Retry::ReadOnly => "read_only",
            Retry::InspectState => "inspect_state",
        }
    }
}

/// How much of the operation is told; less is told only when there is no room.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Told {
    Whole,
    WithoutReferences,
    WithoutTool,
}

impl Operation {
    /// The `operation` member of the envelope.
    pub(super) fn to_json(&self, outcome: Outcome, retry: Retry, told: Told) -> Value {
        let mut out = Map::new();
        out.insert("id".into(), identifier(Some(self.id.as_str())));
        let tool = if told < Told::WithoutTool { self.tool.as_str().into() } else { Value::Null };
        out.insert("tool".into(), tool);
        out.insert("instance_id".into(), identifier(self.instance_id.as_ref().map(InstanceId::as_str)));
        out.insert("page_id".into(), identifier(self.page_id.as_ref().map(PageId::as_str)));
        out.insert("frame_id".into(), identifier(self.frame_id.as_ref().map(FrameId::as_str)));
        out.insert("started_at".into(), rfc3339(self.started_at_micros).into());
        out.insert("finished_at".into(), rfc3339(self.finished_at_micros).into());
        out.insert("duration_ms".into(), ((self.duration_ms * 1000.0).round() / 1000.0).into());
        out.insert("outcome".into(), outcome.as_str().into());
        out.insert("retry".into(), retry.as_str().into());
        let artifacts = if told == Told::Whole { self.references() } else { Vec::new() };
        out.insert("artifacts".into(), artifacts.into());
        if told > Told::Whole {
            out.insert("references_omitted".into(), true.into());
        }
        Value::Object(out)
    }

    /// The references in order, each once.
    fn references(&self) -> Vec<Value> {
        let mut seen: Vec<&Reference> = Vec::new();
        for reference in &self.artifacts {
            if !seen.contains(&reference) {
                seen.push(reference);
            }
        }
        seen.into_iter().map(Reference::to_json).collect()
    }
}

impl Reference {
    pub(super) fn to_json(&self) -> Value {
        let (key, text) = match self {
            Reference::Path(path) => ("path", path.as_str()),
            Reference::Artifact(handle) => ("handle", handle.as_str()),
        };
        let mut out = Map::new();
        out.insert(key.into(), text.into());
        Value::Object(out)
    }
}

/// Identifiers are minted here or by Chromium and short; anything else is left out, never cut.
fn identifier(id: Option<&str>) -> Value {
    id.filter(|id| id.len() <= IDENTIFIER_BYTES_MAX).map_or(Value::Null, Value::from)
}

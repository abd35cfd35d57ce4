//! Which event moves which metric.
//!
//! The match is exhaustive: a new kind of event does not compile until somebody decides here what it
//! means to a monitor. A field that is absent counts as `other` or as nothing, and never fails.

use storage::event::{EventView, Kind, Level, ValueRef};

use crate::metrics::catalog::{Counter, Histogram};
use crate::metrics::expose::Metrics;
use crate::metrics::labels::{LabelName, NONE, OTHER};

const MILLIS_PER_SECOND: f64 = 1_000.0;

impl Metrics {
    /// Counts one durable event. Call it once for each, in any order.
    pub fn observe(&self, event: &EventView<'_>) {
        let kind = event.kind();
        let name = kind.map_or(OTHER, Kind::name);
        self.add(Counter::Events, &[self.position(LabelName::Kind, name)], 1);
        let Some(kind) = kind else { return };
        Fold { metrics: self, event }.kind(kind);
    }
}

struct Fold<'f> {
    metrics: &'f Metrics,
    event: &'f EventView<'f>,
}

impl Fold<'_> {
    fn kind(&self, kind: Kind) {
        match kind {
            Kind::Gap => self.gap(),
            Kind::LogRemoved => {
                let reason = self.position(LabelName::RemovalReason, "reason");
                self.sum(Counter::RemovedEvents, &[reason], "count");
            }
            Kind::LogCheckpoint => self.one(Counter::Checkpoints),
            Kind::LogRecovered => self.by(Counter::LogRecoveries, LabelName::Recovery, "what"),

            Kind::SessionOpened => {
                self.one(Counter::SessionsOpened);
                self.seconds(Histogram::SessionLaunch, &[], "launch_ms");
            }
            Kind::SessionWarning => self.by(Counter::SessionWarnings, LabelName::Warning, "code"),
            Kind::SessionCrashed => self.by(Counter::SessionsCrashed, LabelName::CrashReason, "reason"),
            Kind::SessionClosed => self.by(Counter::SessionsClosed, LabelName::CloseReason, "reason"),

            Kind::PageOpened => self.one(Counter::PagesOpened),
            Kind::PageNavigated => self.one(Counter::PageNavigations),
            Kind::PageClosed => self.one(Counter::PagesClosed),
            Kind::PageCrashed => self.one(Counter::PagesCrashed),
            Kind::WorkerStarted => self.by(Counter::WorkersStarted, LabelName::WorkerType, "worker_type"),

            Kind::CallRejected => self.by(Counter::CallsRejected, LabelName::Code, "code"),
            Kind::CallAccepted => self.by(Counter::CallsAccepted, LabelName::Tool, "tool"),
            Kind::CallEntered => self.seconds(Histogram::CallQueue, &[], "queue_ms"),
            Kind::CallSettled => self.settled(),
            Kind::CallCancelled => self.by(Counter::CallsCancelled, LabelName::Phase, "phase"),

            Kind::ConsoleMessage => self.level(Counter::ConsoleMessages),
            Kind::ConsoleException => self.one(Counter::ConsoleExceptions),
            Kind::LogEntry => self.level(Counter::LogEntries),

            Kind::NetworkRequest => self.by(Counter::NetworkRequests, LabelName::ResourceType, "resource_type"),
            Kind::NetworkRedirect | Kind::NetworkResponse => self.response(),
            Kind::NetworkFinished => {
                self.sum(Counter::NetworkBytes, &[], "encoded_bytes");
                self.seconds(Histogram::NetworkDuration, &[], "duration_ms");
            }
            Kind::NetworkFailed => self.failed(),
            Kind::WebSocketOpened => self.one(Counter::WebSocketsOpened),
            Kind::WebSocketFrame => self.by(Counter::WebSocketFrames, LabelName::Direction, "direction"),

            Kind::DialogOpened => self.by(Counter::DialogsOpened, LabelName::DialogType, "dialog_type"),
            Kind::FileChooserOpened => self.one(Counter::FileChoosersOpened),
            Kind::DownloadStarted => self.one(Counter::DownloadsStarted),
            Kind::DownloadFinished => {
                self.one(Counter::DownloadsFinished);
                self.sum(Counter::DownloadBytes, &[], "bytes");
            }
            Kind::DownloadFailed => self.by(Counter::DownloadsFailed, LabelName::DownloadFailure, "reason"),

            Kind::SnapshotTaken => self.one(Counter::Snapshots),
            Kind::ScreenshotTaken => self.one(Counter::Screenshots),
            Kind::ArtifactKept => {
                self.by(Counter::ArtifactsKept, LabelName::Purpose, "purpose");
                let purpose = self.position(LabelName::Purpose, "purpose");
                self.sum(Counter::ArtifactsBytes, &[purpose], "bytes");
            }
            Kind::PolicyRefused => self.by(Counter::PolicyRefusals, LabelName::Rule, "rule"),
            Kind::ExportFinished => self.exported(),

            // Seen in `events_total` by kind; nothing more to tell a monitor.
            Kind::LogOpened
            | Kind::LogSealed
            | Kind::LogKeyChanged
            | Kind::DiskLevel
            | Kind::SessionLaunching
            | Kind::FrameAttached
            | Kind::FrameNavigated
            | Kind::FrameDetached
            | Kind::WorkerStopped
            | Kind::NetworkBody
            | Kind::NetworkChunk
            | Kind::NetworkHeaders
            | Kind::WebSocketClosed
            | Kind::DialogClosed
            | Kind::DownloadProgress
            | Kind::AuthStateSaved
            | Kind::AuthStateRestored
            | Kind::ExportStarted => {}
        }
    }

    fn gap(&self) {
        let reason = self.position(LabelName::GapReason, "reason");
        self.metrics.add(Counter::Gaps, &[reason], 1);
        self.sum(Counter::LostEvents, &[reason], "count");
    }

    fn settled(&self) {
        let tool = self.position(LabelName::Tool, "tool");
        let outcome = self.position(LabelName::Outcome, "outcome");
        let code = self.text("code").unwrap_or(NONE);
        let code = self.metrics.position(LabelName::Code, code);
        self.metrics.add(Counter::Calls, &[tool, outcome, code], 1);
        self.seconds(Histogram::CallDuration, &[tool], "duration_ms");
        self.sum(Counter::CallResultBytes, &[tool], "result_bytes");
    }

    fn level(&self, counter: Counter) {
        let level = self.number("level").and_then(Level::from_number).map_or(OTHER, Level::as_str);
        self.metrics.add(counter, &[self.metrics.position(LabelName::Level, level)], 1);
    }

    fn response(&self) {
        let class = match self.number("status") {
            Some(100..=199) => "1xx",
            Some(200..=299) => "2xx",
            Some(300..=399) => "3xx",
            Some(400..=499) => "4xx",
            Some(500..=599) => "5xx",
            _ => OTHER,
        };
        self.metrics.add(Counter::NetworkResponses, &[self.metrics.position(LabelName::StatusClass, class)], 1);
    }

    fn failed(&self) {
        let canceled = self.event.get("canceled") == Some(ValueRef::Bool(true));
        let cause = match (canceled, self.text("blocked_reason"), self.text("cors_error")) {
            (_, Some(_), _) => "blocked",
            (_, None, Some(_)) => "cors",
            (true, None, None) => "canceled",
            (false, None, None) => "error",
        };
        self.metrics.add(Counter::NetworkFailed, &[self.metrics.position(LabelName::Failure, cause)], 1);
    }

    fn exported(&self) {
        let format = self.position(LabelName::Format, "format");
        let result = if self.text("code").is_none() { "ok" } else { "failed" };
        let result = self.metrics.position(LabelName::ExportResult, result);
        self.metrics.add(Counter::Exports, &[format, result], 1);
    }

    fn one(&self, counter: Counter) {
        self.metrics.add(counter, &[], 1);
    }

    fn by(&self, counter: Counter, label: LabelName, field: &str) {
        self.metrics.add(counter, &[self.position(label, field)], 1);
    }

    fn sum(&self, counter: Counter, positions: &[usize], field: &str) {
        self.metrics.add(counter, positions, self.number(field).unwrap_or(0));
    }

    fn seconds(&self, histogram: Histogram, positions: &[usize], field: &str) {
        // A clock that jumped may leave nonsense, which would spoil the sum for good.
        if let Some(ValueRef::F64(millis)) = self.event.get(field)
            && millis.is_finite()
            && millis >= 0.0
        {
            self.metrics.record(histogram, positions, millis / MILLIS_PER_SECOND);
        }
    }

    fn position(&self, label: LabelName, field: &str) -> usize {
        self.metrics.position(label, self.text(field).unwrap_or(OTHER))
    }

    fn text(&self, field: &str) -> Option<&str> {
        self.event.get(field).and_then(ValueRef::as_str)
    }

    fn number(&self, field: &str) -> Option<u64> {
        self.event.get(field).and_then(ValueRef::as_u64)
    }
}

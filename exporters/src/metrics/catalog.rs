//! The list of metrics. Read this first.
//!
//! Laws: names begin with `pageledger_` (the two `process_` ones are every monitor's own words),
//! units are base units and end the name, `_total` ends whatever only rises, labels are closed sets
//! of [`crate::metrics::labels`]. A name is never reused for another meaning.

use crate::metrics::labels::LabelName;

/// What a metric is to a monitor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Shape {
    /// Rises only, by whole numbers, moved by events.
    Counter,
    /// Rises and falls, set by the program.
    Gauge,
    /// Observations in buckets, moved by events.
    Histogram,
    /// Rises only, counted elsewhere and set by the program.
    Total,
}

/// What a metric counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    Count,
    Seconds,
    Bytes,
    /// 0 or 1.
    Flag,
}

/// One metric, as data.
#[derive(Debug)]
pub struct MetricFacts {
    pub name: &'static str,
    pub shape: Shape,
    pub unit: Unit,
    pub help: &'static str,
    pub labels: &'static [LabelName],
}

macro_rules! metrics {
    ($(#[doc = $doc:literal])+ $group:ident {
        $($name:ident $text:literal $unit:ident [$($label:ident),*] $help:literal;)*
    }) => {
        $(#[doc = $doc])+
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub enum $group { $($name,)* }

        impl $group {
            pub const ALL: &'static [$group] = &[$($group::$name,)*];

            /// In the order of the variants.
            const FACTS: &'static [MetricFacts] = &[$(MetricFacts {
                name: $text,
                shape: Shape::$group,
                unit: Unit::$unit,
                help: $help,
                labels: &[$(LabelName::$label),*],
            },)*];

            #[must_use]
            pub fn facts(self) -> &'static MetricFacts {
                &Self::FACTS[self as usize]
            }
        }
    };
}

metrics! {
    /// Moved by events alone.
    Counter {
        Events "pageledger_events_total" Count [Kind] "Events recorded.";
        Gaps "pageledger_gaps_total" Count [GapReason] "Gap events: places where something could not be recorded.";
        LostEvents "pageledger_lost_events_total" Count [GapReason] "Events that gap events declare as lost.";
        RemovedEvents "pageledger_removed_events_total" Count [RemovalReason] "Events removed by retention or erasure.";
        Checkpoints "pageledger_checkpoints_total" Count [] "Signed checkpoints recorded.";
        LogRecoveries "pageledger_log_recoveries_total" Count [Recovery] "Things mended when the log was opened.";

        SessionsOpened "pageledger_sessions_opened_total" Count [] "Sessions whose browser answered.";
        SessionsClosed "pageledger_sessions_closed_total" Count [CloseReason] "Sessions that ended.";
        SessionsCrashed "pageledger_sessions_crashed_total" Count [CrashReason] "Sessions whose browser went away by itself.";
        SessionWarnings "pageledger_session_warnings_total" Count [Warning] "Warnings about sessions that went on.";

        CallsAccepted "pageledger_calls_accepted_total" Count [Tool] "Calls that were valid and got a deadline.";
        CallsRejected "pageledger_calls_rejected_total" Count [Code] "Calls refused before anything was done.";
        Calls "pageledger_calls_total" Count [Tool, Outcome, Code] "Calls that ended, by outcome and fault code (`none` on success).";
        CallsCancelled "pageledger_calls_cancelled_total" Count [Phase] "Calls that the client took back.";
        CallResultBytes "pageledger_call_result_bytes_total" Bytes [Tool] "Size of results before bounding.";

        ConsoleMessages "pageledger_console_messages_total" Count [Level] "Console messages of pages and workers.";
        ConsoleExceptions "pageledger_console_exceptions_total" Count [] "Errors nobody caught and rejections nobody handled.";
        LogEntries "pageledger_browser_log_entries_total" Count [Level] "Entries the browser itself wrote to a page's log.";

        NetworkRequests "pageledger_network_requests_total" Count [ResourceType] "Requests that pages sent.";
        NetworkResponses "pageledger_network_responses_total" Count [StatusClass] "Responses and redirects by class of status code.";
        NetworkFailed "pageledger_network_failed_total" Count [Failure] "Requests that failed.";
        NetworkBytes "pageledger_network_bytes_total" Bytes [] "Bytes received for finished requests, headers included.";
        WebSocketsOpened "pageledger_websockets_opened_total" Count [] "WebSockets that pages created.";
        WebSocketFrames "pageledger_websocket_frames_total" Count [Direction] "WebSocket frames.";

        PagesOpened "pageledger_pages_opened_total" Count [] "Tabs and popups.";
        PagesClosed "pageledger_pages_closed_total" Count [] "Tabs and popups that are gone.";
        PagesCrashed "pageledger_pages_crashed_total" Count [] "Pages whose renderer died.";
        PageNavigations "pageledger_page_navigations_total" Count [] "New documents and addresses in main frames.";
        WorkersStarted "pageledger_workers_started_total" Count [WorkerType] "Workers that pages started.";

        DialogsOpened "pageledger_dialogs_opened_total" Count [DialogType] "Dialogs that pages opened.";
        FileChoosersOpened "pageledger_file_choosers_opened_total" Count [] "File choosers that pages opened.";
        DownloadsStarted "pageledger_downloads_started_total" Count [] "Downloads begun.";
        DownloadsFinished "pageledger_downloads_finished_total" Count [] "Downloads complete and kept.";
        DownloadsFailed "pageledger_downloads_failed_total" Count [DownloadFailure] "Downloads that ended without a file.";
        DownloadBytes "pageledger_download_bytes_total" Bytes [] "Size of finished downloads.";

        Snapshots "pageledger_snapshots_total" Count [] "Snapshots of pages.";
        Screenshots "pageledger_screenshots_total" Count [] "Screenshots of pages.";
        ArtifactsKept "pageledger_artifacts_kept_total" Count [Purpose] "Artifacts kept beside the log.";
        ArtifactsBytes "pageledger_artifacts_bytes_total" Bytes [Purpose] "Size of artifacts kept beside the log.";
        PolicyRefusals "pageledger_policy_refusals_total" Count [Rule] "What the operator's rules refused.";
        Exports "pageledger_exports_total" Count [Format, ExportResult] "Exports that ended.";
    }
}

metrics! {
    /// Moved by events alone; observations in seconds.
    Histogram {
        CallDuration "pageledger_call_duration_seconds" Seconds [Tool] "Time from acceptance to end of a call, queue included.";
        CallQueue "pageledger_call_queue_seconds" Seconds [] "Time that calls waited for their session's lane.";
        SessionLaunch "pageledger_session_launch_seconds" Seconds [] "Time from browser start to first answer.";
        NetworkDuration "pageledger_network_request_duration_seconds" Seconds [] "Time from request to end of response.";
    }
}

metrics! {
    /// Set by the running program.
    Gauge {
        SessionsLive "pageledger_sessions_live" Count [] "Sessions that hold a place now.";
        SessionsMax "pageledger_sessions_max" Count [] "Sessions that may hold a place.";
        CallsRunning "pageledger_calls_running" Count [] "Calls accepted and not ended.";
        CallsQueued "pageledger_calls_queued" Count [] "Calls that wait for their session's lane.";
        LogAvailable "pageledger_log_available" Flag [] "1 while the log can record, else 0.";
        LogFull "pageledger_log_full" Flag [] "1 while the log finds no room on the disk, else 0.";
        LogSyncInterval "pageledger_log_sync_interval_seconds" Seconds [] "What a power cut may cost: 0 when each commit is synced, else the longest time between two syncs.";
        LogUnsynced "pageledger_log_unsynced_seconds" Seconds [] "How long the oldest event has been acknowledged without being synced.";
        LogLastSeq "pageledger_log_last_seq" Count [] "Sequence number of the last durable event.";
        LogEpoch "pageledger_log_epoch" Count [] "How often this log has been opened.";
        LogQueueBytes "pageledger_log_queue_bytes" Bytes [] "Bytes that wait for the log's writer.";
        LogQueueBytesMax "pageledger_log_queue_max_bytes" Bytes [] "Bytes that may wait for the log's writer.";
        LogLastFsync "pageledger_log_last_fsync_seconds" Seconds [] "How long the log's last sync took.";
        IndexReachedSeq "pageledger_index_reached_seq" Count [] "Sequence number up to which the index is made.";
        IndexLag "pageledger_index_lag_events" Count [] "Durable events that the index does not cover yet.";
        AuditSigning "pageledger_audit_signing" Flag [] "1 while checkpoints can be signed, else 0.";
        AuditSignedSeq "pageledger_audit_signed_seq" Count [] "Sequence number of the last event that a checkpoint covers.";
        AuditUnsigned "pageledger_audit_unsigned_events" Count [] "Durable events that no checkpoint covers yet.";
        AuditSignedAt "pageledger_audit_signed_timestamp_seconds" Seconds [] "When the last checkpoint was signed, seconds since 1970.";
        LogSegments "pageledger_log_segments" Count [] "Segments of the log.";
        LogPlainBytes "pageledger_log_plain_bytes" Bytes [] "Size of the log's segments as first written.";
        LogCompressedBytes "pageledger_log_compressed_bytes" Bytes [] "Size of the log's segments written anew in less room.";
        LogQuota "pageledger_log_quota_bytes" Bytes [] "Size beyond which the oldest telemetry and evidence go; 0 is unbounded.";
        UpkeepFailing "pageledger_upkeep_failing" Flag [] "1 when compression or retention could not do what was due, else 0.";
        UpkeepOverQuota "pageledger_upkeep_over_quota" Flag [] "1 when the log is larger than its quota and nothing in it may go, else 0.";
        UpkeepLastPass "pageledger_upkeep_last_pass_time_seconds" Seconds [] "When compression and retention last looked over the log, seconds since 1970.";
        ArtifactsStored "pageledger_artifacts_stored_bytes" Bytes [] "Size of the artifact store.";
        ArtifactsQuota "pageledger_artifacts_quota_bytes" Bytes [] "Bound of the artifact store.";
        DiskFree "pageledger_disk_free_bytes" Bytes [] "Free space on the data directory's filesystem.";
        DiskSize "pageledger_disk_size_bytes" Bytes [] "Size of the data directory's filesystem.";
        DiskLevel "pageledger_disk_level" Count [] "0 enough room, 1 low, 2 new sessions are refused, 3 only reading and closing.";
        DiskBallast "pageledger_disk_ballast_bytes" Bytes [] "Room kept in hand for an orderly end; 0 when it was given back.";
        BuildInfo "pageledger_build_info" Flag [Version] "Always 1; the label says which build runs.";
        ProcessStart "process_start_time_seconds" Seconds [] "Start of the process, seconds since 1970.";
        ProcessResident "process_resident_memory_bytes" Bytes [] "Resident memory of the gateway, browsers not included.";
    }
}

metrics! {
    /// Counted elsewhere and set by the running program; a fall is ignored.
    Total {
        LogCommits "pageledger_log_commits_total" Count [] "Commits of the log.";
        LogBytes "pageledger_log_synced_bytes_total" Bytes [] "Bytes that the log synced.";
        LogFsync "pageledger_log_fsync_seconds_total" Seconds [] "Time that the log's syncs took.";
        UpkeepTelemetry "pageledger_upkeep_removed_telemetry_total" Count [] "Telemetry events removed by age or for room.";
        UpkeepEvidence "pageledger_upkeep_removed_evidence_total" Count [] "Evidence events removed by age or for room.";
        UpkeepAudit "pageledger_upkeep_removed_audit_total" Count [] "Audit events removed by age, with their whole segments.";
        UpkeepArtifacts "pageledger_upkeep_removed_artifacts_total" Count [] "Artifacts removed because no event names them any more.";
        UpkeepArtifactBytes "pageledger_upkeep_removed_artifact_bytes_total" Bytes [] "Size of artifacts removed because no event names them any more.";
        ProcessCpu "pageledger_process_cpu_seconds_total" Seconds [] "Processor time of the gateway, browsers not included.";
    }
}

/// Every metric there is.
pub fn catalog() -> impl Iterator<Item = &'static MetricFacts> {
    Counter::FACTS.iter().chain(Histogram::FACTS).chain(Gauge::FACTS).chain(Total::FACTS)
}

//! The list of event kinds. Read this first.
//!
//! Laws: numbers and names are append-only; a field is added at the end of its kind, as an `Option`,
//! with the kind's version raised; a field never changes type or meaning. Codec, JSON, filters, Arrow
//! columns, metrics and the README's table are made from these entries.

use crate::event::codec::{DecodeError, EventView, FIRST_FIELD, FieldWriter};
use crate::event::declare::events;
use crate::event::field::{Clean, Field, FieldFacts, Json, Level, Role, Symbol, plain_name};
use crate::event::{Class, KindFacts, Payload};
use crate::ids::{ArtifactHandle, DownloadId, FrameId, PageId};

events! {
    // ---- 1..9 the log itself -------------------------------------------------------------------

    /// The log was opened; the first event of each epoch.
    1 "log.opened" LogOpened @ 2 Audit {
        /// Counts openings of this log, from 1.
        epoch: u64,
        /// Whether the previous epoch ended by an orderly close.
        clean: bool,
        /// Last sequence number found, 0 for a new log.
        last_seq: u64,
        /// Version of the program that opened it.
        version: Symbol,
        /// When acknowledgements leave: `commit` or `interval`.
        durability: Option<Symbol>,
        /// Longest time between two syncs, with `interval`.
        sync_interval_ms: Option<u64>,
        /// How far the clock stands before the last recorded time, when it was set back.
        clock_back_ms: Option<u64>,
    }
    /// The log was closed in an orderly way; the last event of its epoch.
    2 "log.sealed" LogSealed @ 1 Audit {
        /// Why: `shutdown`.
        reason: Symbol [Filter],
        /// Events appended in this epoch, this one included.
        events: u64,
    }
    /// Opening found something to mend and mended it.
    3 "log.recovered" LogRecovered @ 1 Audit {
        /// What: `torn_tail`, `index_rebuilt`, `leftover_removed`, `checkpoint_torn`,
        /// `unsigned_tail`, `checkpoints_lost`.
        what: Symbol [Filter, Label],
        /// Bytes that were cut off after the last complete commit.
        bytes_cut: Option<u64>,
        /// File name under which the bytes cut were kept.
        kept_as: Option<Clean>,
        /// More, in words.
        detail: Option<Clean>,
    }
    /// Something could not be recorded: how many, of what, why.
    4 "gap" Gap @ 1 Audit {
        /// Kind of event that is missing, or the browser's method name.
        what: Symbol [Filter],
        /// How many are missing.
        count: u64,
        /// Why: `queue_full`, `too_large`, `undecodable`, `browser_lost`, `disk_full`.
        reason: Symbol [Filter, Label],
    }
    /// Events were removed; recorded before they go. What is removed keeps its numbers.
    5 "log.removed" LogRemoved @ 1 Audit {
        /// Why: `age`, `bytes` or `erased`.
        reason: Symbol [Filter, Label],
        /// Segment they were in.
        segment: u64,
        /// Rewriting of the segment that no longer holds them; 4095 when the whole segment goes.
        generation: u64,
        /// First number removed.
        first_seq: u64,
        /// Last number removed; those between may have stayed.
        last_seq: u64,
        /// How many were removed.
        count: u64,
        /// For each kind and level: how many, first and last number.
        kinds: Json,
        /// Who asked for an erasure: the system's user.
        by: Option<Clean>,
        /// Why an erasure was asked for, in words.
        note: Option<Clean>,
        /// What was erased: `session` or `owner` and the SHA-256 of its id in hexadecimal.
        subject: Option<Clean>,
    }
    /// The chain up to here was signed.
    6 "log.checkpoint" LogCheckpoint @ 1 Audit {
        /// Last number the signature covers.
        through_seq: u64,
        /// Chain hash after it, in hexadecimal.
        chain: Clean,
        /// Identity of the key.
        key_id: Clean,
        /// The checkpoint as it was written beside the log: a compact JWS.
        jws: Clean,
    }
    /// The disk holds more or less than before, by levels at which the server behaves differently.
    8 "disk.level" DiskLevel @ 1 Audit {
        /// `ok`, `warn`, `refuse_sessions` or `read_only`.
        level: Symbol [Filter, Label],
        /// Room left for this user, in bytes.
        free_bytes: u64,
        /// Size of the file system, in bytes.
        total_bytes: u64,
        /// Whether the room kept for closing in order is `held` or `released`.
        ballast: Symbol,
    }
    /// Checkpoints are signed by another key from here on.
    9 "log.key_changed" LogKeyChanged @ 1 Audit {
        /// Identity of the key before.
        old_key_id: Clean,
        /// Identity of the key from now on.
        new_key_id: Clean,
        /// The new public key.
        new_public_key: Clean,
        /// The old key's signature on this, as written beside the log: a compact JWS.
        jws: Clean,
    }

    // ---- 10..19 sessions -----------------------------------------------------------------------

    /// A session's browser is about to be started.
    10 "session.launching" SessionLaunching @ 1 Audit {
        /// Name the client gave.
        name: Symbol,
        /// Channel asked for.
        channel: Symbol [Filter],
        /// Whether without a window.
        headless: bool,
        /// Launch options in force.
        options: Json,
    }
    /// A session's browser answers.
    11 "session.opened" SessionOpened @ 1 Audit {
        /// Product and version the browser reports.
        browser: Clean,
        /// Process id of the browser, which leads its own process group.
        process_id: u64,
        /// Whether the browser's own sandbox is on.
        sandbox: bool,
        /// Time from start to first answer.
        launch_ms: f64,
    }
    /// Something about a session is not as it should be, and it goes on.
    12 "session.warning" SessionWarning @ 1 Audit {
        /// Which: `sandbox_off`, `profile_left_behind`, `message_undecodable`; of no session `log_over_quota`.
        code: Symbol [Filter, Label],
        /// The warning in words.
        message: Clean,
    }
    /// A session's browser went away by itself.
    13 "session.crashed" SessionCrashed @ 1 Audit {
        /// Why: `exited`, `killed`, `disconnected`, `interrupted`.
        reason: Symbol [Filter, Label],
        /// Exit code, when it exited.
        exit_code: Option<i64>,
        /// Signal number, when it was killed by one.
        signal: Option<i64>,
    }
    /// A session ended; its process group and profile are gone.
    14 "session.closed" SessionClosed @ 1 Audit {
        /// Why: `requested`, `shutdown`, `crashed`, `launch_failed`, `interrupted`, `lease_expired`.
        reason: Symbol [Filter, Label],
        /// How long it lived.
        duration_ms: f64,
    }

    // ---- 20..29 pages, frames, workers ---------------------------------------------------------

    /// A tab or popup exists.
    20 "page.opened" PageOpened @ 1 Evidence {
        /// Address at that moment.
        url: Clean [Sensitive],
        /// Page that opened it, for popups.
        opener_page_id: Option<PageId>,
    }
    /// A page's main frame shows another document or address.
    21 "page.navigated" PageNavigated @ 1 Evidence {
        /// Address after it.
        url: Clean [Sensitive],
        /// Whether the document stayed (history or fragment change).
        same_document: bool,
        /// The browser's name of the document load.
        loader_id: Option<Clean>,
    }
    /// A page is gone.
    22 "page.closed" PageClosed @ 1 Evidence {
        /// Why: `closed`, `session_closed`, `crashed`.
        reason: Symbol [Filter],
    }
    /// A page's renderer died.
    23 "page.crashed" PageCrashed @ 1 Evidence {
        /// The browser's word for how.
        status: Symbol [Filter],
        /// The browser's error code.
        error_code: Option<i64>,
    }
    /// A frame was added to a page.
    24 "frame.attached" FrameAttached @ 1 Telemetry {
        /// Frame it is in.
        parent_frame_id: Option<FrameId>,
    }
    /// A frame below the main one shows another document or address.
    25 "frame.navigated" FrameNavigated @ 1 Telemetry {
        /// Address after it.
        url: Clean [Sensitive],
        /// Whether the document stayed.
        same_document: bool,
    }
    /// A frame was removed from a page.
    26 "frame.detached" FrameDetached @ 1 Telemetry {
        /// Why: `remove` or `swap` (moved to another process).
        reason: Symbol,
    }
    /// A worker started.
    27 "worker.started" WorkerStarted @ 1 Telemetry {
        /// Which: `worker`, `shared_worker`, `service_worker`.
        worker_type: Symbol [Filter, Label],
        /// Its script.
        url: Clean [Sensitive],
    }
    /// A worker ended.
    28 "worker.stopped" WorkerStopped @ 1 Telemetry {
        /// Which: `worker`, `shared_worker`, `service_worker`.
        worker_type: Symbol [Filter, Label],
    }

    // ---- 30..39 calls --------------------------------------------------------------------------

    /// A call was refused before anything was done.
    30 "call.rejected" CallRejected @ 1 Audit {
        /// Tool that was asked for, `other` when there is none of that name.
        tool: Symbol [Filter, Label],
        /// Fault code.
        code: Symbol [Filter, Label],
        /// What was wrong, by argument name and without values.
        problems: Option<Json>,
    }
    /// A call is valid and has a deadline; it may wait for its lane.
    31 "call.accepted" CallAccepted @ 1 Audit {
        /// Tool.
        tool: Symbol [Filter, Label],
        /// Arguments, redacted and bounded.
        arguments: Json [Sensitive],
        /// Time it may take in all, queue included; absent when unbounded.
        deadline_ms: Option<u64>,
    }
    /// From here on the call may have had an effect.
    32 "call.entered" CallEntered @ 1 Audit {
        /// Tool.
        tool: Symbol [Filter, Label],
        /// Time spent waiting for the lane.
        queue_ms: f64,
    }
    /// A call ended; recorded before anybody hears of it.
    33 "call.settled" CallSettled @ 1 Audit {
        /// Tool.
        tool: Symbol [Filter, Label],
        /// `completed`, `not_started` or `unknown`.
        outcome: Symbol [Filter, Label],
        /// Fault code, when it failed.
        code: Option<Symbol> [Filter, Label],
        /// `not_needed`, `after_correction`, `read_only` or `inspect_state`.
        retry: Symbol,
        /// Time from acceptance to end, queue included.
        duration_ms: f64,
        /// Time spent waiting for the lane.
        queue_ms: f64,
        /// Size of the result's data before bounding.
        result_bytes: u64,
    }
    /// The client took a call back.
    34 "call.cancelled" CallCancelled @ 1 Audit {
        /// Tool.
        tool: Symbol [Filter, Label],
        /// `queued`: the browser was never touched; `running`: it may have been.
        phase: Symbol [Filter, Label],
    }

    // ---- 40..49 console ------------------------------------------------------------------------

    /// A page or worker wrote to its console.
    40 "console.message" ConsoleMessage @ 1 Telemetry {
        /// Severity.
        level: Level [Filter, Label],
        /// Which console method: `log`, `warning`, `table`, `assert`, ...
        r#type: Symbol [Filter],
        /// The arguments as a developer would read them.
        text: Clean [Filter, Sensitive],
        /// Script address.
        url: Option<Clean> [Sensitive],
        /// Line, from 1.
        line: Option<u64>,
        /// Column, from 1.
        column: Option<u64>,
        /// Call frames, outermost last.
        stack: Option<Json> [Sensitive],
        /// Full length of the text in bytes, when it was cut.
        text_bytes: Option<u64>,
        /// The whole text, when it was cut and kept.
        text_artifact: Option<ArtifactHandle>,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// An error nobody caught, or a rejection nobody handled.
    41 "console.exception" ConsoleException @ 1 Evidence {
        /// Always `error`.
        level: Level [Filter, Label],
        /// The error as a developer would read it, stack included.
        text: Clean [Filter, Sensitive],
        /// Script address.
        url: Option<Clean> [Sensitive],
        /// Line, from 1.
        line: Option<u64>,
        /// Column, from 1.
        column: Option<u64>,
        /// Call frames, outermost last.
        stack: Option<Json> [Sensitive],
        /// Full length of the text in bytes, when it was cut.
        text_bytes: Option<u64>,
        /// The whole text, when it was cut and kept.
        text_artifact: Option<ArtifactHandle>,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// The browser itself wrote to the page's log: blocked resources, deprecations, interventions.
    42 "log.entry" LogEntry @ 1 Telemetry {
        /// Severity.
        level: Level [Filter, Label],
        /// Which part of the browser: `network`, `security`, `deprecation`, ...
        source: Symbol [Filter],
        /// What it says.
        text: Clean [Filter, Sensitive],
        /// Address concerned.
        url: Option<Clean> [Sensitive],
        /// Line, from 1.
        line: Option<u64>,
        /// Full length of the text in bytes, when it was cut.
        text_bytes: Option<u64>,
        /// The whole text, when it was cut and kept.
        text_artifact: Option<ArtifactHandle>,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }

    // ---- 50..59 network ------------------------------------------------------------------------

    /// A request is about to be sent.
    50 "network.request" NetworkRequest @ 1 Telemetry {
        /// Address.
        url: Clean [Filter, Sensitive],
        /// Method, as sent.
        method: Clean [Filter],
        /// What for: `document`, `xhr`, `fetch`, `image`, ...
        resource_type: Symbol [Filter, Label],
        /// Headers known at that moment, credentials redacted.
        headers: Json [Sensitive],
        /// What caused it.
        initiator: Option<Json> [Sensitive],
        /// The browser's priority.
        priority: Option<Symbol>,
        /// Length of the request body in bytes, when known.
        body_bytes: Option<u64>,
        /// The request body, when it is text and short.
        body: Option<Clean> [Sensitive],
        /// The request body, when it was kept beside the log.
        body_artifact: Option<ArtifactHandle>,
        /// How many redirects led here.
        redirects: Option<u64>,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// A request was answered by a redirect and goes on under the same id.
    51 "network.redirect" NetworkRedirect @ 2 Telemetry {
        /// Address that redirected.
        url: Clean [Sensitive],
        /// Status code.
        status: u64 [Filter],
        /// Address it leads to.
        location: Clean [Sensitive],
        /// Response headers, credentials redacted.
        headers: Json [Sensitive],
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// The head of a response arrived.
    52 "network.response" NetworkResponse @ 1 Telemetry {
        /// Address that answered.
        url: Clean [Sensitive],
        /// Status code.
        status: u64 [Filter],
        /// Status text.
        status_text: Clean,
        /// Media type.
        mime_type: Clean,
        /// `http/1.1`, `h2`, `h3`, ...
        protocol: Option<Symbol>,
        /// Headers, credentials redacted.
        headers: Json [Sensitive],
        /// Address and port of the peer.
        remote_address: Option<Clean>,
        /// Where it came from when not from the network: `disk`, `memory`, `prefetch`, `service_worker`.
        served_from: Option<Symbol>,
        /// Milliseconds of each phase since the request started.
        timing: Option<Json>,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// A response arrived to its end.
    53 "network.finished" NetworkFinished @ 1 Telemetry {
        /// Bytes on the wire, headers included.
        encoded_bytes: u64,
        /// Bytes after decoding, when known.
        decoded_bytes: Option<u64>,
        /// Time from request to end.
        duration_ms: Option<f64>,
    }
    /// A request failed or was cancelled.
    54 "network.failed" NetworkFailed @ 1 Evidence {
        /// The browser's error name.
        error: Clean [Filter],
        /// Whether the page or the user gave it up.
        canceled: bool,
        /// Why the browser refused it.
        blocked_reason: Option<Symbol>,
        /// Why cross-origin rules refused it.
        cors_error: Option<Symbol>,
        /// Time from request to failure.
        duration_ms: Option<f64>,
    }
    /// A body was kept, or why it was not.
    55 "network.body" NetworkBody @ 2 Telemetry {
        /// `request` or `response`.
        direction: Symbol [Filter],
        /// Length in bytes after decoding.
        bytes: u64,
        /// The body, when it is text and short.
        text: Option<Clean> [Sensitive],
        /// The body, when it was kept beside the log.
        artifact: Option<ArtifactHandle>,
        /// Why it was not kept: `policy`, `too_large`, `quota`, `no_content`, `evicted`,
        /// `request_failed`, `passed_on`, `page_closed`, `unavailable`.
        omitted: Option<Symbol>,
        /// `body` when the response broke off or only its beginning was kept.
        truncated_fields: Option<Clean>,
    }
    /// The headers that really went over the wire.
    56 "network.headers" NetworkHeaders @ 2 Telemetry {
        /// `request` or `response`.
        direction: Symbol [Filter],
        /// Status code, for a response.
        status: Option<u64>,
        /// Headers, credentials redacted.
        headers: Json [Sensitive],
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
    }
    /// A WebSocket was created.
    57 "websocket.opened" WebSocketOpened @ 1 Telemetry {
        /// Address.
        url: Clean [Filter, Sensitive],
    }
    /// One WebSocket frame.
    58 "websocket.frame" WebSocketFrame @ 2 Telemetry {
        /// `sent` or `received`.
        direction: Symbol [Filter],
        /// Opcode of RFC 6455: 1 text, 2 binary, 8 close, 9 ping, 10 pong.
        opcode: u64,
        /// Text as it is, binary as base64.
        payload: Clean [Sensitive],
        /// Length of the payload in bytes.
        bytes: u64,
        /// Names of the fields that were cut, separated by commas.
        truncated_fields: Option<Clean>,
        /// The whole payload, when it was cut and kept beside the log.
        artifact: Option<ArtifactHandle>,
    }
    /// A WebSocket ended or failed.
    59 "websocket.closed" WebSocketClosed @ 1 Telemetry {
        /// The browser's error, when it failed.
        error: Option<Clean>,
    }
    /// More of a response that has not ended: whole lines, from its beginning on.
    49 "network.chunk" NetworkChunk @ 1 Telemetry {
        /// These lines.
        text: Clean [Sensitive],
        /// Their length in bytes.
        bytes: u64,
    }

    // ---- 60..69 dialogs and downloads ----------------------------------------------------------

    /// A page opened a dialog and waits.
    60 "dialog.opened" DialogOpened @ 1 Evidence {
        /// `alert`, `confirm`, `prompt` or `beforeunload`.
        dialog_type: Symbol [Filter, Label],
        /// What it says.
        message: Clean [Sensitive],
        /// What a prompt suggests.
        default_prompt: Option<Clean> [Sensitive],
    }
    /// A dialog was answered.
    61 "dialog.closed" DialogClosed @ 1 Evidence {
        /// Whether by its affirmative button.
        accepted: bool,
    }
    /// A page asked for files.
    62 "filechooser.opened" FileChooserOpened @ 1 Evidence {
        /// `single` or `multiple`.
        mode: Symbol,
    }
    /// A download began.
    65 "download.started" DownloadStarted @ 1 Evidence {
        /// Identity of the download.
        download_id: DownloadId [Filter],
        /// Where from.
        url: Clean [Sensitive],
        /// Name the server or page suggested.
        suggested_name: Clean [Sensitive],
    }
    /// A download goes on; not more often than once a second.
    66 "download.progress" DownloadProgress @ 1 Telemetry {
        /// Identity of the download.
        download_id: DownloadId [Filter],
        /// Bytes so far.
        received_bytes: u64,
        /// Bytes in all, when known.
        total_bytes: Option<u64>,
    }
    /// A download is complete and kept.
    67 "download.finished" DownloadFinished @ 1 Evidence {
        /// Identity of the download.
        download_id: DownloadId [Filter],
        /// Size.
        bytes: u64,
        /// SHA-256 in hexadecimal.
        sha256: Clean,
        /// The file's bytes.
        artifact: ArtifactHandle,
    }
    /// A download ended without a file.
    68 "download.failed" DownloadFailed @ 1 Evidence {
        /// Identity of the download.
        download_id: DownloadId [Filter],
        /// Why: `canceled`, `too_large`, `quota`, `disk_low`, `unreadable`, `session_closed`, `browser_gone`.
        reason: Symbol [Filter, Label],
        /// Bytes received before it ended.
        received_bytes: u64,
    }

    // ---- 70..79 what was taken, what was refused -----------------------------------------------

    /// A snapshot of a page's accessibility tree was taken.
    70 "snapshot.taken" SnapshotTaken @ 1 Evidence {
        /// Elements with a reference.
        references: u64,
        /// Size of the text.
        bytes: u64,
    }
    /// A screenshot was taken.
    71 "screenshot.taken" ScreenshotTaken @ 1 Evidence {
        /// Width in pixels.
        width: u64,
        /// Height in pixels.
        height: u64,
        /// Size of the PNG.
        bytes: u64,
        /// The PNG.
        artifact: ArtifactHandle,
    }
    /// Bytes were kept beside the log and can be read by handle.
    72 "artifact.kept" ArtifactKept @ 1 Evidence {
        /// Handle for `read_artifact`.
        artifact: ArtifactHandle [Filter],
        /// What it is: `result`, `body`, `console_text`, `screenshot`, `pdf`, `download`, `export`.
        purpose: Symbol [Filter, Label],
        /// Media type.
        media_type: Clean,
        /// Size.
        bytes: u64,
        /// SHA-256 in hexadecimal.
        sha256: Clean,
    }
    /// A rule of the operator's refused something.
    75 "policy.refused" PolicyRefused @ 2 Audit {
        /// Which rule: `scheme`, `path`, `launch_argument`, `blocklist`.
        rule: Symbol [Filter, Label],
        /// What was refused.
        what: Clean [Sensitive],
        /// Which of the operator's rules, as it was given, where there may be many.
        matched: Option<Clean>,
    }
    /// A session's login was saved under a name; the log never holds what was saved.
    76 "auth_state.saved" AuthStateSaved @ 1 Audit {
        /// What: `storage`.
        auth_kind: Symbol [Filter, Label],
        /// Name it can be restored by.
        auth_name: Clean [Filter],
        /// Cookies saved.
        cookies: u64,
        /// Origins whose local storage was saved.
        origins: u64,
        /// Size of the file.
        bytes: u64,
    }
    /// A saved login was given to a new session before its first call.
    77 "auth_state.restored" AuthStateRestored @ 1 Audit {
        /// What: `storage`.
        auth_kind: Symbol [Filter, Label],
        /// Name it was saved under; absent when the caller gave its content.
        auth_name: Option<Clean> [Filter],
        /// Cookies restored.
        cookies: u64,
        /// Origins whose local storage was restored.
        origins: u64,
    }

    // ---- 80..89 exports ------------------------------------------------------------------------

    /// An export began.
    80 "export.started" ExportStarted @ 1 Audit {
        /// `parquet`, `ndjson`, `csv` or `har`.
        format: Symbol [Filter, Label],
        /// The selection.
        filter: Json,
    }
    /// An export ended.
    81 "export.finished" ExportFinished @ 1 Audit {
        /// `parquet`, `ndjson`, `csv` or `har`.
        format: Symbol [Filter, Label],
        /// Events written.
        events: u64,
        /// First sequence number written, 0 when none.
        first_seq: u64,
        /// Last sequence number written, 0 when none.
        last_seq: u64,
        /// Size of the file.
        bytes: u64,
        /// SHA-256 of the file in hexadecimal.
        sha256: Clean,
        /// Fault code, when it failed.
        code: Option<Symbol> [Filter, Label],
    }
}

impl Kind {
    /// Identity on disk.
    #[must_use]
    pub fn number(self) -> u16 {
        self as u16
    }

    #[must_use]
    pub fn facts(self) -> &'static KindFacts {
        // `ROWS` is made from the same entries, so the row is always there.
        &KINDS[usize::from(ROWS[usize::from(self.number())])]
    }

    #[must_use]
    pub fn name(self) -> &'static str {
        self.facts().name
    }

    #[must_use]
    pub fn from_number(number: u16) -> Option<Self> {
        let row = *ROWS.get(usize::from(number))?;
        KINDS.get(usize::from(row)).map(|facts| facts.kind)
    }

    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        KINDS.iter().find(|facts| facts.name == name).map(|facts| facts.kind)
    }

    /// The kind of that name, or with a `*` at the end all that begin so; empty when there is none.
    #[must_use]
    pub fn named(pattern: &str) -> Vec<Self> {
        let prefix = pattern.strip_suffix('*');
        let fits = |name: &str| prefix.map_or(name == pattern, |prefix| name.starts_with(prefix));
        KINDS.iter().filter(|facts| fits(facts.name)).map(|facts| facts.kind).collect()
    }
}

/// Kinds up to this number speak of the log itself.
pub const LOG_KIND_NUMBER_MAX: u16 = 9;
/// The set of them: one bit each, as block headers have it.
pub const LOG_KINDS: u128 = (1 << (LOG_KIND_NUMBER_MAX + 1)) - 2;
/// Highest number a kind may have, so that a set of kinds fits a `u128`.
pub const NUMBER_MAX: u16 = 127;

/// Row of `KINDS` by kind number; `NONE` where no kind has that number.
static ROWS: [u8; NUMBER_MAX as usize + 1] = rows();
const NONE: u8 = u8::MAX;

const fn rows() -> [u8; NUMBER_MAX as usize + 1] {
    let mut rows = [NONE; NUMBER_MAX as usize + 1];
    let mut row = 0;
    while row < KINDS.len() {
        let number = KINDS[row].number as usize;
        assert!(number > 0 && number <= NUMBER_MAX as usize, "kind numbers lie within 1..=127");
        assert!(rows[number] == NONE, "two kinds share a number");
        rows[number] = row as u8;
        row += 1;
    }
    rows
}

//! Every number that bounds the gateway, with its unit in its name.
//!
//! Options take their defaults and bounds from here, tool schemas and validators likewise, so that
//! what is advertised and what is enforced cannot drift apart. Storage has its own `limits`.

// ---- replies --------------------------------------------------------------------------------------

/// One reply on the wire: structured form, text copy and frame together.
pub const RESULT_BYTES_DEFAULT: usize = 1024 * 1024;
/// The smallest bound in which every fault, with every identifier, still fits.
pub const RESULT_BYTES_MIN: usize = 4096;
pub const RESULT_BYTES_MAX: usize = 64 * 1024 * 1024;
/// What a reply costs beyond its two JSON copies: JSON-RPC members, the client's request id, the
/// content block, the event-stream frame.
pub const FRAME_BYTES: usize = 384;
/// Longest preview of a value that was kept as an artifact: enough to judge by, small in a context.
pub const PREVIEW_BYTES_MAX: usize = 16 * 1024;
/// Identifiers in a reply; a longer one is none of ours and is left out.
pub const IDENTIFIER_BYTES_MAX: usize = 64;

// ---- faults ---------------------------------------------------------------------------------------

/// One text in a fault's details.
pub const DETAIL_CHARS_MAX: usize = 256;
/// Entries of a list in a fault's details.
pub const DETAIL_ITEMS_MAX: usize = 32;
/// A fault's `message`.
pub const MESSAGE_BYTES_MAX: usize = 160;
/// A fault's `next_step`.
pub const NEXT_STEP_BYTES_MAX: usize = 320;
/// The cause of a fault as it stands in the server's own log.
pub const CAUSE_BYTES_MAX: usize = 4096;

// ---- sessions and calls -----------------------------------------------------------------------------

/// Live sessions when the machine's memory would allow more.
pub const INSTANCES_DEFAULT_MAX: u64 = 20;
pub const INSTANCES_MAX: u64 = 1000;
/// Memory that one session is reckoned with when the default number of sessions is chosen.
pub const INSTANCE_MEMORY_BYTES: u64 = 3 * 512 * 1024 * 1024;
/// Calls that may wait in one session's lane.
pub const LANE_DEPTH_DEFAULT: u64 = 32;
pub const LANE_DEPTH_MAX: u64 = 1024;
/// A whole call, queue time included, when the caller names no time.
pub const OPERATION_TIMEOUT_DEFAULT_SECONDS: u64 = 120;
pub const LAUNCH_TIMEOUT_DEFAULT_SECONDS: u64 = 30;
pub const CLOSE_TIMEOUT_DEFAULT_SECONDS: u64 = 10;
/// Longest of any of the three.
pub const TIMEOUT_SECONDS_MAX: u64 = 3600;
/// Longest time a session may be left alone before it is closed.
pub const IDLE_TTL_SECONDS_MAX: u64 = 30 * 24 * 3600;

/// How much longer than its deadline a tool may take before it is stopped from outside, in milliseconds.
pub const CALL_GRACE_MS: u64 = 2_000;
/// A call that ends waits at most so long for its own events to be on their way to the log, in
/// milliseconds.
pub const CATCH_UP_MS: u64 = 2_000;
/// One text among a call's arguments, as the log shows it, in bytes.
pub const ARGUMENT_TEXT_BYTES_MAX: usize = 1_024;
/// All of a call's arguments, as the log shows them, in bytes.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// A picture takes at most one part in this many of a reply's bound.
pub const IMAGE_SHARE_MAX: usize = 2;

// ---- standard input ---------------------------------------------------------------------------------

/// One line, which is one message; a longer one is passed over and answered with an error.
pub const LINE_BYTES_MAX: usize = 16 * 1024 * 1024;
/// What is kept allocated between lines.
pub const LINE_BYTES_KEPT: usize = 64 * 1024;

// ---- HTTP -------------------------------------------------------------------------------------------

/// One request body.
pub const HTTP_BODY_BYTES_MAX: usize = 4 * 1024 * 1024;
/// MCP sessions over HTTP at one time.
pub const HTTP_SESSIONS_MAX: usize = 256;
/// An MCP session over HTTP without any traffic is dropped after so long: well beyond the longest call.
pub const HTTP_SESSION_IDLE_SECONDS: u64 = 2 * TIMEOUT_SECONDS_MAX;
/// Finished replies stay obtainable for a client that lost its stream for so long.
pub const HTTP_REPLY_KEPT_SECONDS: u64 = 10;
/// Metrics lag the log by at most about this long, in milliseconds.
pub const METRICS_FOLD_MS: u64 = 50;
/// Histogram samples are drained this often.
pub const METRICS_UPKEEP_SECONDS: u64 = 5;

// ---- evidence ---------------------------------------------------------------------------------------

/// One captured body; longer ones are recorded by size alone.
pub const BODY_BYTES_DEFAULT: u64 = 1024 * 1024;
pub const BODY_BYTES_MAX: u64 = 256 * 1024 * 1024;
/// All captured bodies of one session; later ones are recorded by size alone.
pub const SESSION_BODY_BYTES_DEFAULT: u64 = 256 * 1024 * 1024;
pub const SESSION_BODY_BYTES_MAX: u64 = 1 << 50;
/// One address in a list of requests; a request's summary has what was recorded.
pub const ROW_URL_BYTES_MAX: usize = 1024;
/// All artifacts of a data directory.
pub const ARTIFACT_QUOTA_BYTES_DEFAULT: u64 = 10 * 1024 * 1024 * 1024;
pub const ARTIFACT_QUOTA_BYTES_MIN: u64 = 16 * 1024 * 1024;
pub const ARTIFACT_QUOTA_BYTES_MAX: u64 = 1 << 50;
/// How long events of each class are kept.
pub const RETENTION_TELEMETRY_DAYS_DEFAULT: u64 = 30;
pub const RETENTION_EVIDENCE_DAYS_DEFAULT: u64 = 90;
pub const RETENTION_AUDIT_DAYS_DEFAULT: u64 = 400;
pub const RETENTION_DAYS_MAX: u64 = 36_500;
/// All segments of the log together.
pub const LOG_QUOTA_BYTES_DEFAULT: u64 = 16 * 1024 * 1024 * 1024;
pub const LOG_QUOTA_BYTES_MAX: u64 = 1 << 50;

// ---- the disk ---------------------------------------------------------------------------------------

/// Below these percentages of free room: somebody should know, no new sessions, nothing new at all.
pub const DISK_WARN_PERCENT_DEFAULT: u64 = 15;
pub const DISK_REFUSE_PERCENT_DEFAULT: u64 = 10;
pub const DISK_READ_ONLY_PERCENT_DEFAULT: u64 = 5;
pub const DISK_PERCENT_MAX: u64 = 90;
pub const BALLAST_BYTES_MAX: u64 = 1024 * 1024 * 1024;
/// The room on the disk is looked at this often.
pub const DISK_LOOK_SECONDS: u64 = 1;

// ---- a session's own state -------------------------------------------------------------------------

/// Cookies that one call sets.
pub const COOKIES_MAX: usize = 1_000;
/// Headers that one call sets.
pub const HEADERS_MAX: usize = 100;
/// A viewport's longest side, in CSS pixels.
pub const VIEWPORT_SIDE_PIXELS_MAX: u64 = 10_000;
/// Rules of the operator's for addresses, and their text together: Chromium gets them as an argument.
pub const BLOCK_RULES_MAX: usize = 1_000;
pub const BLOCK_RULES_BYTES_MAX: usize = 32 * 1024;
/// Keys of web storage that one call sets or removes.
pub const STORAGE_ITEMS_MAX: usize = 1_000;
/// Saved logins of one owner.
pub const AUTH_STATES_MAX: usize = 100;
/// One saved login, in bytes.
pub const AUTH_STATE_BYTES_MAX: u64 = 16 * 1024 * 1024;

// ---- commands ---------------------------------------------------------------------------------------

/// `tail --follow` looks this often for events of another process, which cannot wake it.
pub const TAIL_LOOK_MS: u64 = 50;
/// How long an export waits for a checkpoint that covers it.
pub const EXPORT_CHECKPOINT_MS: u64 = 2_000;
/// The most that `tail --lines` takes.
pub const TAIL_LINES_MAX: usize = 100_000;
/// One printed line of `tail` in its short form; the JSON form is whole.
pub const TAIL_LINE_BYTES_MAX: usize = 512;

/// The longest beginning of `text` that is at most `bytes_max` long and ends between characters.
#[must_use]
pub fn head(text: &str, bytes_max: usize) -> &str {
    let mut end = bytes_max.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

const _: () = assert!(RESULT_BYTES_MIN <= RESULT_BYTES_DEFAULT && RESULT_BYTES_DEFAULT <= RESULT_BYTES_MAX);
// A fault's fixed texts are sent twice and must leave room for operation and frame.
const _: () = assert!(2 * (MESSAGE_BYTES_MAX + NEXT_STEP_BYTES_MAX) + FRAME_BYTES < RESULT_BYTES_MIN / 2);
const _: () = assert!(PREVIEW_BYTES_MAX < RESULT_BYTES_DEFAULT);
const _: () = assert!(INSTANCES_DEFAULT_MAX <= INSTANCES_MAX);
const _: () = assert!(LANE_DEPTH_DEFAULT <= LANE_DEPTH_MAX);
const _: () = assert!(OPERATION_TIMEOUT_DEFAULT_SECONDS <= TIMEOUT_SECONDS_MAX);
const _: () = assert!(LAUNCH_TIMEOUT_DEFAULT_SECONDS <= OPERATION_TIMEOUT_DEFAULT_SECONDS);
const _: () = assert!(CLOSE_TIMEOUT_DEFAULT_SECONDS <= TIMEOUT_SECONDS_MAX);
const _: () = assert!(BODY_BYTES_DEFAULT <= BODY_BYTES_MAX && BODY_BYTES_MAX <= storage::limits::ARTIFACT_BYTES_MAX);
const _: () = assert!(ARTIFACT_QUOTA_BYTES_MIN <= ARTIFACT_QUOTA_BYTES_DEFAULT);

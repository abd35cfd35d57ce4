//! The table of options. Read this first.
//!
//! A row's names follow one rule: key `data_dir`, flag `--data-dir`, variable
//! `BROWSER_MCP_DATA_DIR`. To add an option: a row here, its numbers in `limits`, a field in `Config`
//! and its line in `resolve`.

use storage::limits::{BALLAST_BYTES_DEFAULT, SYNC_INTERVAL_MILLIS_MAX};

use super::environment::Environment;
use crate::contract::facts::{EVERYTHING, PACKS_OFF, PACKS_ON};
use crate::limits::{
    ARTIFACT_QUOTA_BYTES_DEFAULT, ARTIFACT_QUOTA_BYTES_MAX, ARTIFACT_QUOTA_BYTES_MIN, BALLAST_BYTES_MAX,
    BODY_BYTES_DEFAULT, BODY_BYTES_MAX, CLOSE_TIMEOUT_DEFAULT_SECONDS, DISK_PERCENT_MAX,
    DISK_READ_ONLY_PERCENT_DEFAULT, DISK_REFUSE_PERCENT_DEFAULT, DISK_WARN_PERCENT_DEFAULT, IDLE_TTL_SECONDS_MAX,
    INSTANCE_MEMORY_BYTES, INSTANCES_DEFAULT_MAX, INSTANCES_MAX, LANE_DEPTH_DEFAULT, LANE_DEPTH_MAX,
    LAUNCH_TIMEOUT_DEFAULT_SECONDS, LOG_QUOTA_BYTES_DEFAULT, LOG_QUOTA_BYTES_MAX, OPERATION_TIMEOUT_DEFAULT_SECONDS,
    RESULT_BYTES_DEFAULT, RESULT_BYTES_MAX, RESULT_BYTES_MIN, RETENTION_AUDIT_DAYS_DEFAULT, RETENTION_DAYS_MAX,
    RETENTION_EVIDENCE_DAYS_DEFAULT, RETENTION_TELEMETRY_DAYS_DEFAULT, TIMEOUT_SECONDS_MAX,
};

/// One option, as data.
#[derive(Debug)]
pub struct OptionFacts {
    /// Member of the file, and the name in `config show`.
    pub key: &'static str,
    /// Flag, without its dashes.
    pub flag: &'static str,
    /// Environment variable.
    pub variable: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// Whether every command takes it, or only those that serve or speak about serving.
    pub reach: Reach,
    pub text: &'static str,
}

/// What values an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Address,
    Path,
    Count {
        min: u64,
        max: u64,
    },
    Bytes {
        min: u64,
        max: u64,
    },
    /// Decimals are allowed; `zero` says whether 0 is.
    Seconds {
        zero: bool,
        max: u64,
    },
    /// Decimals are allowed; 0 is for ever.
    Days {
        max: u64,
    },
    Switch,
    /// One of these, in any case.
    Word(&'static [&'static str]),
    /// Any of these, separated by commas.
    Words(&'static [&'static str]),
    /// `commit`, or `interval=` and milliseconds.
    Durability {
        millis_max: u64,
    },
}

/// What holds when nobody says anything.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// No value: the option is off.
    Nothing,
    Number(u64),
    Text(&'static str),
    /// Worked out from the surroundings, and described in words.
    Derived(&'static str, fn(&Environment) -> Option<String>),
}

/// Which commands take an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Every,
    Serving,
}

impl OptionFacts {
    /// What the default is, for people.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.default {
            Default::Nothing => "none".to_owned(),
            Default::Number(number) => number.to_string(),
            Default::Text(text) | Default::Derived(text, _) => text.to_owned(),
        }
    }

    /// What values are taken, for people.
    #[must_use]
    pub fn kind_text(&self) -> String {
        match self.kind {
            Kind::Address => "address:port".to_owned(),
            Kind::Path => "path".to_owned(),
            Kind::Count { min, max } => format!("{min} to {max}"),
            Kind::Bytes { min, max } => format!("bytes, {min} to {max}"),
            Kind::Seconds { zero: true, max } => format!("seconds, 0 to {max}"),
            Kind::Seconds { zero: false, max } => format!("seconds, above 0, up to {max}"),
            Kind::Days { max } => format!("days, 0 to {max}"),
            Kind::Switch => "true or false".to_owned(),
            Kind::Word(words) => words.join(", "),
            Kind::Words(words) => format!("any of {}", words.join(", ")),
            Kind::Durability { millis_max } => format!("commit, or interval=MS with MS from 1 to {millis_max}"),
        }
    }
}

/// Every option, in the order in which help and README show them.
pub static OPTIONS: &[OptionFacts] = &[
    OptionFacts {
        key: "http",
        flag: "http",
        variable: "BROWSER_MCP_HTTP",
        kind: Kind::Address,
        default: Default::Nothing,
        reach: Reach::Serving,
        text: "Serve MCP over HTTP at this address (/mcp, /metrics, /healthz, /readyz) instead of over stdio",
    },
    OptionFacts {
        key: "metrics",
        flag: "metrics",
        variable: "BROWSER_MCP_METRICS",
        kind: Kind::Address,
        default: Default::Nothing,
        reach: Reach::Serving,
        text: "Serve /metrics, /healthz and /readyz at this address while MCP runs over stdio",
    },
    OptionFacts {
        key: "data_dir",
        flag: "data-dir",
        variable: "BROWSER_MCP_DATA_DIR",
        kind: Kind::Path,
        default: Default::Derived("pageledger in the platform's data directory", data_dir),
        reach: Reach::Every,
        text: "Directory of the log, its index and the kept artifacts",
    },
    OptionFacts {
        key: "chromium",
        flag: "chromium",
        variable: "BROWSER_MCP_CHROMIUM",
        kind: Kind::Path,
        default: Default::Nothing,
        reach: Reach::Serving,
        text: "Chromium to run; without it the usual names are looked for on PATH",
    },
    OptionFacts {
        key: "no_chromium_sandbox",
        flag: "no-chromium-sandbox",
        variable: "BROWSER_MCP_NO_CHROMIUM_SANDBOX",
        kind: Kind::Switch,
        default: Default::Text("false"),
        reach: Reach::Serving,
        text: "Run Chromium without its own sandbox; recorded as a warning in every session",
    },
    OptionFacts {
        key: "headless",
        flag: "headless",
        variable: "BROWSER_MCP_HEADLESS",
        kind: Kind::Switch,
        default: Default::Text("true"),
        reach: Reach::Serving,
        text: "Run Chromium without a window unless a launch asks otherwise",
    },
    OptionFacts {
        key: "max_instances",
        flag: "max-instances",
        variable: "BROWSER_MCP_MAX_INSTANCES",
        kind: Kind::Count { min: 1, max: INSTANCES_MAX },
        default: Default::Derived("memory in GiB divided by 1.5, from 1 to 20", max_instances),
        reach: Reach::Serving,
        text: "Sessions that may live at the same time",
    },
    OptionFacts {
        key: "max_result_bytes",
        flag: "max-result-bytes",
        variable: "BROWSER_MCP_MAX_RESULT_BYTES",
        kind: Kind::Bytes { min: RESULT_BYTES_MIN as u64, max: RESULT_BYTES_MAX as u64 },
        default: Default::Number(RESULT_BYTES_DEFAULT as u64),
        reach: Reach::Serving,
        text: "Size of one reply on the wire, structured form and text copy together",
    },
    OptionFacts {
        key: "operation_timeout_seconds",
        flag: "operation-timeout-seconds",
        variable: "BROWSER_MCP_OPERATION_TIMEOUT_SECONDS",
        kind: Kind::Seconds { zero: false, max: TIMEOUT_SECONDS_MAX },
        default: Default::Number(OPERATION_TIMEOUT_DEFAULT_SECONDS),
        reach: Reach::Serving,
        text: "Time for a whole call, waiting in the queue included, when the caller names none",
    },
    OptionFacts {
        key: "launch_timeout_seconds",
        flag: "launch-timeout-seconds",
        variable: "BROWSER_MCP_LAUNCH_TIMEOUT_SECONDS",
        kind: Kind::Seconds { zero: false, max: TIMEOUT_SECONDS_MAX },
        default: Default::Number(LAUNCH_TIMEOUT_DEFAULT_SECONDS),
        reach: Reach::Serving,
        text: "Time for a browser to come up",
    },
    OptionFacts {
        key: "close_timeout_seconds",
        flag: "close-timeout-seconds",
        variable: "BROWSER_MCP_CLOSE_TIMEOUT_SECONDS",
        kind: Kind::Seconds { zero: false, max: TIMEOUT_SECONDS_MAX },
        default: Default::Number(CLOSE_TIMEOUT_DEFAULT_SECONDS),
        reach: Reach::Serving,
        text: "Time for a browser to go by itself before its processes are killed",
    },
    OptionFacts {
        key: "idle_ttl_seconds",
        flag: "idle-ttl-seconds",
        variable: "BROWSER_MCP_IDLE_TTL_SECONDS",
        kind: Kind::Seconds { zero: true, max: IDLE_TTL_SECONDS_MAX },
        default: Default::Number(0),
        reach: Reach::Serving,
        text: "Close a session that had no call for this long; 0 keeps it for ever",
    },
    OptionFacts {
        key: "lane_depth",
        flag: "lane-depth",
        variable: "BROWSER_MCP_LANE_DEPTH",
        kind: Kind::Count { min: 1, max: LANE_DEPTH_MAX },
        default: Default::Number(LANE_DEPTH_DEFAULT),
        reach: Reach::Serving,
        text: "Calls that may wait for one session",
    },
    OptionFacts {
        key: "packs",
        flag: "packs",
        variable: "BROWSER_MCP_PACKS",
        kind: Kind::Words(PACKS_ON),
        default: Default::Text(EVERYTHING),
        reach: Reach::Serving,
        text: "Groups of tools to offer; core is the small set for launching, navigating, acting, looking, console and network",
    },
    OptionFacts {
        key: "no_packs",
        flag: "no-packs",
        variable: "BROWSER_MCP_NO_PACKS",
        kind: Kind::Words(PACKS_OFF),
        default: Default::Nothing,
        reach: Reach::Serving,
        text: "Groups of tools not to offer, whatever else names them",
    },
    OptionFacts {
        key: "capture_bodies",
        flag: "capture-bodies",
        variable: "BROWSER_MCP_CAPTURE_BODIES",
        kind: Kind::Word(&["text", "all", "none"]),
        default: Default::Text("text"),
        reach: Reach::Serving,
        text: "Which request and response bodies are kept",
    },
    OptionFacts {
        key: "body_bytes_max",
        flag: "body-bytes-max",
        variable: "BROWSER_MCP_BODY_BYTES_MAX",
        kind: Kind::Bytes { min: 0, max: BODY_BYTES_MAX },
        default: Default::Number(BODY_BYTES_DEFAULT),
        reach: Reach::Serving,
        text: "Largest body that is kept; of larger ones the size is recorded",
    },
    OptionFacts {
        key: "artifact_quota_bytes",
        flag: "artifact-quota-bytes",
        variable: "BROWSER_MCP_ARTIFACT_QUOTA_BYTES",
        kind: Kind::Bytes { min: ARTIFACT_QUOTA_BYTES_MIN, max: ARTIFACT_QUOTA_BYTES_MAX },
        default: Default::Number(ARTIFACT_QUOTA_BYTES_DEFAULT),
        reach: Reach::Serving,
        text: "All kept artifacts of the data directory together",
    },
    OptionFacts {
        key: "durability",
        flag: "durability",
        variable: "BROWSER_MCP_DURABILITY",
        kind: Kind::Durability { millis_max: SYNC_INTERVAL_MILLIS_MAX },
        default: Default::Text("commit"),
        reach: Reach::Serving,
        text: "commit: what is acknowledged survives a power cut; interval=MS: a power cut may cost the last MS milliseconds",
    },
    OptionFacts {
        key: "disk_warn_percent",
        flag: "disk-warn-percent",
        variable: "BROWSER_MCP_DISK_WARN_PERCENT",
        kind: Kind::Count { min: 0, max: DISK_PERCENT_MAX },
        default: Default::Number(DISK_WARN_PERCENT_DEFAULT),
        reach: Reach::Serving,
        text: "Warn when less of the data directory's disk is free, of which at most 20 GiB count; 0 never",
    },
    OptionFacts {
        key: "disk_refuse_percent",
        flag: "disk-refuse-percent",
        variable: "BROWSER_MCP_DISK_REFUSE_PERCENT",
        kind: Kind::Count { min: 0, max: DISK_PERCENT_MAX },
        default: Default::Number(DISK_REFUSE_PERCENT_DEFAULT),
        reach: Reach::Serving,
        text: "Refuse new sessions when less of it is free; 0 never",
    },
    OptionFacts {
        key: "disk_read_only_percent",
        flag: "disk-read-only-percent",
        variable: "BROWSER_MCP_DISK_READ_ONLY_PERCENT",
        kind: Kind::Count { min: 0, max: DISK_PERCENT_MAX },
        default: Default::Number(DISK_READ_ONLY_PERCENT_DEFAULT),
        reach: Reach::Serving,
        text: "Only read and close when less of it is free; 0 only once a write is refused",
    },
    OptionFacts {
        key: "ballast_bytes",
        flag: "ballast-bytes",
        variable: "BROWSER_MCP_BALLAST_BYTES",
        kind: Kind::Bytes { min: 0, max: BALLAST_BYTES_MAX },
        default: Default::Number(BALLAST_BYTES_DEFAULT),
        reach: Reach::Serving,
        text: "Room kept in hand for an orderly end on a full disk, at most 5 percent of the disk; 0 for none",
    },
    OptionFacts {
        key: "retention_telemetry_days",
        flag: "retention-telemetry-days",
        variable: "BROWSER_MCP_RETENTION_TELEMETRY_DAYS",
        kind: Kind::Days { max: RETENTION_DAYS_MAX },
        default: Default::Number(RETENTION_TELEMETRY_DAYS_DEFAULT),
        reach: Reach::Serving,
        text: "How long telemetry is kept: console output, requests and frames of pages that went well; 0 is for ever",
    },
    OptionFacts {
        key: "retention_evidence_days",
        flag: "retention-evidence-days",
        variable: "BROWSER_MCP_RETENTION_EVIDENCE_DAYS",
        kind: Kind::Days { max: RETENTION_DAYS_MAX },
        default: Default::Number(RETENTION_EVIDENCE_DAYS_DEFAULT),
        reach: Reach::Serving,
        text: "How long evidence is kept: errors, failed requests, pages, downloads, screenshots; 0 is for ever",
    },
    OptionFacts {
        key: "retention_audit_days",
        flag: "retention-audit-days",
        variable: "BROWSER_MCP_RETENTION_AUDIT_DAYS",
        kind: Kind::Days { max: RETENTION_DAYS_MAX },
        default: Default::Number(RETENTION_AUDIT_DAYS_DEFAULT),
        reach: Reach::Serving,
        text: "How long audit events are kept: calls, sessions, refusals, exports, the log's own; 0 is for ever",
    },
    OptionFacts {
        key: "log_quota_bytes",
        flag: "log-quota-bytes",
        variable: "BROWSER_MCP_LOG_QUOTA_BYTES",
        kind: Kind::Bytes { min: 0, max: LOG_QUOTA_BYTES_MAX },
        default: Default::Number(LOG_QUOTA_BYTES_DEFAULT),
        reach: Reach::Serving,
        text: "Size of the log, beyond which the oldest telemetry goes, then the oldest evidence, never audit events; 0 is unbounded",
    },
    OptionFacts {
        key: "log_level",
        flag: "log-level",
        variable: "BROWSER_MCP_LOG_LEVEL",
        kind: Kind::Word(&["off", "error", "warn", "info", "debug", "trace"]),
        default: Default::Text("info"),
        reach: Reach::Every,
        text: "How much the program says on stderr about itself",
    },
    OptionFacts {
        key: "log_format",
        flag: "log-format",
        variable: "BROWSER_MCP_LOG_FORMAT",
        kind: Kind::Word(&["text", "json"]),
        default: Default::Text("text"),
        reach: Reach::Every,
        text: "Form of what it says on stderr",
    },
];

fn data_dir(environment: &Environment) -> Option<String> {
    Some(environment.data_directory.as_ref()?.join("pageledger").display().to_string())
}

fn max_instances(environment: &Environment) -> Option<String> {
    Some((environment.memory_bytes / INSTANCE_MEMORY_BYTES).clamp(1, INSTANCES_DEFAULT_MAX).to_string())
}

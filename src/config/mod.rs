//! The real configuration: typed, checked, and each value with where it came from.
//!
//! Everything about options stands once, in [`options`]; command line, environment, file, help,
//! README section and `config show` are made from those rows. Precedence: flag, environment, file,
//! default. Past this module nobody reads the environment. Values that do not hold stop the start
//! with every problem named, never with the first alone.

mod arguments;
mod auditing;
mod environment;
mod exporting;
mod facts;
pub mod options;
mod resolve;
mod selecting;
mod show;
mod value;

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use exporters::{Address, Format, StoreAccess};
use storage::disk::DiskPolicy;
use storage::ids::Owner;
use storage::log::Durability;
use storage::query::CompiledFilter;
use storage::upkeep::{Policy, Subject};

use crate::blocklist::Blocklist;
use crate::envelope::TextForm;
pub use arguments::parse;
pub use environment::Environment;
pub use options::{OPTIONS, OptionFacts};
pub use show::{Shown, options_markdown};

/// What the command line asks for.
#[derive(Debug)]
pub enum Command {
    /// Serve MCP: the default.
    Serve(Config),
    Export(ExportOrder),
    Tail(TailOrder),
    Erase(EraseOrder),
    Verify(VerifyOrder),
    Audit(AuditOrder),
    /// `config show`.
    ShowConfig {
        config: Config,
        json: bool,
    },
    /// `tools`: their reference.
    Tools {
        config: Config,
        json: bool,
    },
    Doctor(Config),
    /// Help or version: print it and end well.
    Print(String),
}

/// How the server runs.
#[derive(Debug, Clone)]
pub struct Config {
    /// Serve MCP over HTTP here instead of over stdio.
    pub http: Option<SocketAddr>,
    /// Serve metrics and health here beside stdio.
    pub metrics: Option<SocketAddr>,
    pub data_dir: PathBuf,
    pub chromium: Option<PathBuf>,
    pub chromium_sandbox: bool,
    pub headless: bool,
    pub max_instances: usize,
    pub max_result_bytes: usize,
    /// A whole call, queue time included, when the caller names no time.
    pub operation_timeout: Duration,
    pub launch_timeout: Duration,
    pub close_timeout: Duration,
    /// `None`: sessions may be left alone for ever.
    pub idle_ttl: Option<Duration>,
    pub lane_depth: usize,
    /// Names of packs of tools to offer, and of those not to.
    pub packs: Vec<&'static str>,
    pub no_packs: Vec<&'static str>,
    /// What clients get to read that do not ask for a form.
    pub text: TextForm,
    pub capture_bodies: CaptureBodies,
    pub body_bytes_max: u64,
    pub session_body_bytes_max: u64,
    /// Addresses that neither calls nor pages reach.
    pub blocked_origins: Blocklist,
    pub download_bytes_max: u64,
    /// Beside the data directory's own `uploads`.
    pub upload_dir: Option<PathBuf>,
    /// Where exports may go beside the data directory's own `exports`.
    pub export_url: Option<Address>,
    /// For exports to a store.
    pub store: StoreAccess,
    pub artifact_quota_bytes: u64,
    /// When acknowledgements leave.
    pub durability: Durability,
    /// When the disk counts as low, and how much of it is kept in hand.
    pub disk: DiskPolicy,
    pub retention: Policy,
    pub log_level: LogLevel,
    pub log_format: LogFormat,
    /// Every option with its value and where it came from, in the table's order.
    pub shown: Vec<Shown>,
}

/// Which bodies of requests and responses are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CaptureBodies {
    Text,
    All,
    None,
}

/// How much the server says on stderr.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogLevel {
    Off,
    Error,
    Warn,
    Info,
    Debug,
    Trace,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    Text,
    Json,
}

/// `pageledger export`.
#[derive(Debug)]
pub struct ExportOrder {
    pub config: Config,
    pub scope: ExportScope,
    /// Events of these numbers, ends included.
    pub first_seq: u64,
    pub last_seq: u64,
    pub filter: CompiledFilter,
    pub format: Format,
    pub out: Address,
    pub json: bool,
}

/// Whose events `pageledger export` writes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExportScope {
    /// By id, or by the name it was launched under.
    Session(String),
    Owner(Owner),
    Everything,
}

/// `pageledger tail`.
#[derive(Debug)]
pub struct TailOrder {
    pub config: Config,
    pub session: Option<String>,
    pub filter: CompiledFilter,
    pub first_seq: u64,
    pub last_seq: u64,
    /// Of what is there, so many at most: the last ones.
    pub lines: Option<usize>,
    pub follow: bool,
    pub json: bool,
}

/// `pageledger erase`.
#[derive(Debug)]
pub struct EraseOrder {
    pub config: Config,
    pub subject: Subject,
    pub reason: String,
    pub json: bool,
}

/// `pageledger verify`.
#[derive(Debug)]
pub struct VerifyOrder {
    pub data_dir: PathBuf,
    /// Checkpoints, or files of them.
    pub from: Vec<String>,
    /// A public key, or a file that holds one.
    pub key: Option<String>,
    /// Whether to look at what is kept beside the log too.
    pub artifacts: bool,
    pub json: bool,
}

/// `pageledger audit`.
#[derive(Debug)]
pub struct AuditOrder {
    pub data_dir: PathBuf,
    pub question: AuditQuestion,
    pub json: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AuditQuestion {
    Key,
    RotateKey,
    Checkpoints,
    Checkpoint,
}

/// Why the program cannot start as asked: all of it. Exit code 64.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConfigError {
    pub problems: Vec<String>,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, problem) in self.problems.iter().enumerate() {
            let separator = if position == 0 { "" } else { "\n" };
            write!(f, "{separator}{problem}")?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigError {}

#[cfg(test)]
mod tests;

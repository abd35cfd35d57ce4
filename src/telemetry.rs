//! What the program says about itself, on stderr only: stdout belongs to the protocol.
//!
//! Records hold codes, counts and names from closed lists, never what a page or a person wrote.

use tracing::level_filters::LevelFilter;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::config::{Config, LogFormat, LogLevel};

/// Libraries that report the ordinary as news: rmcp logs every notification and every fault reply.
const QUIET: [&str; 1] = ["rmcp"];

/// Starts telemetry for the whole process. A second call changes nothing.
pub fn install(config: &Config) {
    let level = match config.log_level {
        LogLevel::Off => LevelFilter::OFF,
        LogLevel::Error => LevelFilter::ERROR,
        LogLevel::Warn => LevelFilter::WARN,
        LogLevel::Info => LevelFilter::INFO,
        LogLevel::Debug => LevelFilter::DEBUG,
        LogLevel::Trace => LevelFilter::TRACE,
    };
    let quiet = QUIET.map(|target| (target, level.min(LevelFilter::WARN)));
    let filter = Targets::new().with_default(level).with_targets(quiet);
    let lines = tracing_subscriber::fmt::layer().with_writer(std::io::stderr).with_ansi(false);
    let lines = match config.log_format {
        LogFormat::Text => lines.boxed(),
        LogFormat::Json => lines.json().boxed(),
    };
    // Only a second call can fail, and the first one's choice then holds.
    let _ = tracing_subscriber::registry().with(lines.with_filter(filter)).try_init();
}

//! From what flags, environment and file say to one `Config`.
//!
//! Every source is read whole before anything is decided, so that all problems are named at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use exporters::StoreAccess;
use storage::disk::{DiskPolicy, Watermarks};
use storage::log::Durability;
use storage::upkeep::Policy;

use super::environment::{Environment, PREFIX};
use super::options::{Default, Kind, OPTIONS, OptionFacts};
use super::show::Shown;
use super::value::Value;
use super::{CaptureBodies, Config, ConfigError, LogFormat, LogLevel};
use crate::blocklist::Blocklist;
use crate::envelope::TextForm;

/// The variable that names the file; the flag is `--config`.
pub const CONFIG_VARIABLE: &str = "BROWSER_MCP_CONFIG";
/// Where the file is looked for below the platform's configuration directory.
const CONFIG_FILE: &str = "pageledger/config.toml";
/// Names of related servers that stand for an option of another name here.
const ELSEWHERE: [(&str, &str); 4] = [
    ("BROWSER_MCP_TRANSPORT", "BROWSER_MCP_HTTP=ADDRESS:PORT serves over HTTP, without it over stdio"),
    ("BROWSER_MCP_HOST", "use BROWSER_MCP_HTTP=ADDRESS:PORT"),
    ("BROWSER_MCP_PORT", "use BROWSER_MCP_HTTP=ADDRESS:PORT"),
    ("BROWSER_MCP_CHROMIUM_SANDBOX", "use BROWSER_MCP_NO_CHROMIUM_SANDBOX"),
];

/// What the command line said: text by option key, and the file it named.
#[derive(Debug, std::default::Default)]
pub struct Flags {
    pub values: BTreeMap<&'static str, String>,
    pub config: Option<String>,
}

/// Settles every option.
///
/// # Errors
/// Every problem of every source.
pub fn resolve(flags: &Flags, environment: &Environment) -> Result<Config, ConfigError> {
    let mut problems = Vec::new();
    let file = File::find(flags, environment, &mut problems);
    unknown_variables(environment, &mut problems);
    let mut settled = Settled::default();
    for row in OPTIONS {
        match settle(row, flags, environment, &file) {
            Ok((value, source)) => settled.add(row, value, source),
            Err(problem) => problems.push(problem),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError { problems });
    }
    let config = Config { store: environment.store.clone(), ..settled.config() };
    across(&config, &mut problems);
    if problems.is_empty() { Ok(config) } else { Err(ConfigError { problems }) }
}

/// One option's value and source, the highest source first.
fn settle(
    row: &OptionFacts,
    flags: &Flags,
    environment: &Environment,
    file: &File,
) -> Result<(Option<Value>, String), String> {
    let said = if let Some(text) = flags.values.get(row.key) {
        Some((text.clone(), format!("flag --{}", row.flag)))
    } else if let Some(text) = environment.variables.get(row.variable) {
        Some((text.clone(), format!("environment {}", row.variable)))
    } else {
        file.values.get(row.key).map(|text| (file.relative(row, text), format!("file {}", file.path.display())))
    };
    if let Some((text, source)) = said {
        let value = Value::read(&row.kind, &text)
            .map_err(|wanted| format!("{source}: {} {wanted}, not {:?}", row.key, clipped(&text)))?;
        return Ok((Some(value), source));
    }
    let text = match row.default {
        Default::Nothing => return Ok((None, "default".to_owned())),
        Default::Number(number) => number.to_string(),
        Default::Text(text) => text.to_owned(),
        Default::Derived(_, derive) => {
            derive(environment).ok_or_else(|| format!("{} has no default on this platform: name it", row.key))?
        }
    };
    let value = Value::read(&row.kind, &text).map_err(|wanted| format!("default: {} {wanted}", row.key))?;
    Ok((Some(value), "default".to_owned()))
}

/// Rules between options.
fn across(config: &Config, problems: &mut Vec<String>) {
    for (key, address) in [("http", config.http), ("metrics", config.metrics)] {
        if address.is_some_and(|address| !address.ip().is_loopback()) {
            problems.push(format!(
                "{key} must be a loopback address such as 127.0.0.1: callers are not asked who they are"
            ));
        }
    }
    if config.http.is_some() && config.http == config.metrics {
        problems.push("metrics must not be the address of http, which serves /metrics already".to_owned());
    }
    if config.body_bytes_max > config.artifact_quota_bytes {
        problems.push("body_bytes_max must not be more than artifact_quota_bytes".to_owned());
    }
    if crate::tools::offer::Offer::of(config).tools().is_empty() {
        problems.push("packs and no_packs leave no tool to offer".to_owned());
    }
    let Watermarks { warn_percent, refuse_percent, read_only_percent } = config.disk.watermarks;
    for (key, high, name, low) in [
        ("disk_warn_percent", warn_percent, "disk_refuse_percent", refuse_percent),
        ("disk_refuse_percent", refuse_percent, "disk_read_only_percent", read_only_percent),
    ] {
        if high != 0 && high < low {
            problems.push(format!("{key} must not be less than {name}, which is {low}; 0 switches it off"));
        }
    }
    for (lesser, greater) in config.retention.inversions() {
        let (lesser, greater) = (lesser.as_str(), greater.as_str());
        problems.push(format!("retention_{lesser}_days must not be longer than retention_{greater}_days"));
    }
}

fn unknown_variables(environment: &Environment, problems: &mut Vec<String>) {
    for name in environment.variables.keys().filter(|name| name.starts_with(PREFIX)) {
        if name == CONFIG_VARIABLE || OPTIONS.iter().any(|row| row.variable == name) {
            continue;
        }
        let hint = ELSEWHERE.iter().find(|(other, _)| other == name).map(|(_, hint)| format!(": {hint}"));
        problems.push(format!("environment {name}: there is no such option{}", hint.unwrap_or_default()));
    }
}

/// The configuration file, empty when there is none.
#[derive(Default)]
struct File {
    path: PathBuf,
    values: BTreeMap<String, String>,
}

impl File {
    fn find(flags: &Flags, environment: &Environment, problems: &mut Vec<String>) -> Self {
        let named = flags.config.as_ref().or_else(|| environment.variables.get(CONFIG_VARIABLE));
        let path = match (named, &environment.config_directory) {
            (Some(path), _) => PathBuf::from(path),
            (None, Some(directory)) => directory.join(CONFIG_FILE),
            (None, None) => return Self::default(),
        };
        match std::fs::read_to_string(&path) {
            Ok(text) => Self::read(path, &text, problems),
            Err(error) if named.is_none() && error.kind() == std::io::ErrorKind::NotFound => Self::default(),
            Err(error) => {
                problems.push(format!("file {}: {error}", path.display()));
                Self::default()
            }
        }
    }

    fn read(path: PathBuf, text: &str, problems: &mut Vec<String>) -> Self {
        let mut values = BTreeMap::new();
        let table = text.parse::<toml::Table>().unwrap_or_else(|error| {
            problems.push(format!("file {}: {}", path.display(), error.to_string().trim_end()));
            toml::Table::new()
        });
        for (key, value) in table {
            if !OPTIONS.iter().any(|row| row.key == key) {
                problems.push(format!("file {}: there is no option {:?}", path.display(), clipped(&key)));
                continue;
            }
            match value {
                toml::Value::String(text) => values.insert(key, text),
                toml::Value::Integer(number) => values.insert(key, number.to_string()),
                toml::Value::Float(number) => values.insert(key, number.to_string()),
                toml::Value::Boolean(on) => values.insert(key, on.to_string()),
                _ => {
                    problems.push(format!("file {}: {key} must be one value", path.display()));
                    None
                }
            };
        }
        Self { path, values }
    }

    /// Paths in a file are meant from where the file is, not from where the program was started.
    fn relative(&self, row: &OptionFacts, text: &str) -> String {
        if !matches!(row.kind, Kind::Path) || text.trim().is_empty() {
            return text.to_owned();
        }
        self.path.parent().unwrap_or(Path::new("")).join(text).display().to_string()
    }
}

/// Values by key, on their way into the typed struct.
#[derive(Default)]
struct Settled {
    values: BTreeMap<&'static str, Value>,
    shown: Vec<Shown>,
}

impl Settled {
    fn add(&mut self, row: &OptionFacts, value: Option<Value>, source: String) {
        self.shown.push(Shown { key: row.key, value: value.as_ref().map(Value::show), source });
        if let Some(value) = value {
            self.values.insert(row.key, value);
        }
    }

    fn config(mut self) -> Config {
        Config {
            http: self.address("http"),
            metrics: self.address("metrics"),
            data_dir: self.path("data_dir").unwrap_or_default(),
            chromium: self.path("chromium"),
            chromium_sandbox: !self.on("no_chromium_sandbox"),
            headless: self.on("headless"),
            max_instances: self.size("max_instances"),
            max_result_bytes: self.size("max_result_bytes"),
            operation_timeout: self.duration("operation_timeout_seconds"),
            launch_timeout: self.duration("launch_timeout_seconds"),
            close_timeout: self.duration("close_timeout_seconds"),
            idle_ttl: Some(self.duration("idle_ttl_seconds")).filter(|ttl| !ttl.is_zero()),
            lane_depth: self.size("lane_depth"),
            packs: self.words("packs"),
            no_packs: self.words("no_packs"),
            text: TextForm::parse(self.word("text")).unwrap_or_default(),
            capture_bodies: match self.word("capture_bodies") {
                "all" => CaptureBodies::All,
                "none" => CaptureBodies::None,
                _ => CaptureBodies::Text,
            },
            body_bytes_max: self.number("body_bytes_max"),
            session_body_bytes_max: self.number("session_body_bytes_max"),
            blocked_origins: match self.values.get("blocked_origins") {
                Some(Value::Blocklist(rules)) => rules.clone(),
                _ => Blocklist::default(),
            },
            download_bytes_max: self.number("download_bytes_max"),
            upload_dir: self.path("upload_dir"),
            export_url: match self.values.remove("export_url") {
                Some(Value::Prefix(prefix)) => Some(prefix),
                _ => None,
            },
            store: StoreAccess::default(),
            artifact_quota_bytes: self.number("artifact_quota_bytes"),
            durability: match self.values.get("durability") {
                Some(Value::Durability(durability)) => *durability,
                _ => Durability::Commit,
            },
            disk: DiskPolicy {
                watermarks: Watermarks {
                    warn_percent: self.number("disk_warn_percent"),
                    refuse_percent: self.number("disk_refuse_percent"),
                    read_only_percent: self.number("disk_read_only_percent"),
                },
                ballast_bytes: self.number("ballast_bytes"),
            },
            retention: Policy {
                telemetry: self.retention("retention_telemetry_days"),
                evidence: self.retention("retention_evidence_days"),
                audit: self.retention("retention_audit_days"),
                log_bytes_max: Some(self.number("log_quota_bytes")).filter(|bytes| *bytes > 0),
            },
            log_level: match self.word("log_level") {
                "off" => LogLevel::Off,
                "error" => LogLevel::Error,
                "warn" => LogLevel::Warn,
                "debug" => LogLevel::Debug,
                "trace" => LogLevel::Trace,
                _ => LogLevel::Info,
            },
            log_format: if self.word("log_format") == "json" { LogFormat::Json } else { LogFormat::Text },
            shown: std::mem::take(&mut self.shown),
        }
    }

    fn address(&self, key: &str) -> Option<SocketAddr> {
        if let Some(Value::Address(address)) = self.values.get(key) { Some(*address) } else { None }
    }

    fn path(&self, key: &str) -> Option<PathBuf> {
        if let Some(Value::Path(path)) = self.values.get(key) { Some(path.clone()) } else { None }
    }

    fn number(&self, key: &str) -> u64 {
        if let Some(Value::Number(number)) = self.values.get(key) { *number } else { 0 }
    }

    fn size(&self, key: &str) -> usize {
        usize::try_from(self.number(key)).unwrap_or(usize::MAX)
    }

    fn duration(&self, key: &str) -> Duration {
        if let Some(Value::Seconds(duration)) = self.values.get(key) { *duration } else { Duration::ZERO }
    }

    /// `None`: for ever.
    fn retention(&self, key: &str) -> Option<Duration> {
        match self.values.get(key) {
            Some(Value::Days(duration)) if !duration.is_zero() => Some(*duration),
            _ => None,
        }
    }

    fn on(&self, key: &str) -> bool {
        matches!(self.values.get(key), Some(Value::Switch(true)))
    }

    fn words(&self, key: &str) -> Vec<&'static str> {
        if let Some(Value::Words(words)) = self.values.get(key) { words.clone() } else { Vec::new() }
    }

    fn word(&self, key: &str) -> &'static str {
        if let Some(Value::Word(word)) = self.values.get(key) { word } else { "" }
    }
}

/// Enough of a wrong value to recognise it.
fn clipped(text: &str) -> String {
    text.chars().take(80).collect()
}

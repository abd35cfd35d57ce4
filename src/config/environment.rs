//! What the process finds around it, read once, so that everything after is a pure function of it.

use std::collections::BTreeMap;
use std::path::PathBuf;

use exporters::StoreAccess;

/// The prefix of every environment variable of ours.
pub const PREFIX: &str = "BROWSER_MCP_";

/// The surroundings that configuration depends on.
#[derive(Debug, Clone, Default)]
pub struct Environment {
    /// Variables that begin with [`PREFIX`]. Values that are not UTF-8 hold replacement characters
    /// and fail the check of their option.
    pub variables: BTreeMap<String, String>,
    /// The platform's directory for configuration, when it has one.
    pub config_directory: Option<PathBuf>,
    /// The platform's directory for data, when it has one.
    pub data_directory: Option<PathBuf>,
    /// Memory of the machine, 0 when unknown.
    pub memory_bytes: u64,
    /// Access to a store that speaks S3, by the variables that its other clients read.
    pub store: StoreAccess,
}

impl Environment {
    /// The surroundings of this process.
    #[must_use]
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .map(|(name, value)| (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned()))
            .filter(|(name, _)| name.starts_with(PREFIX))
            .collect();
        Self {
            variables,
            config_directory: dirs::config_dir(),
            data_directory: dirs::data_dir(),
            memory_bytes: memory_bytes().unwrap_or(0),
            store: store_access(),
        }
    }
}

fn store_access() -> StoreAccess {
    let said = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    StoreAccess {
        access_key_id: said("AWS_ACCESS_KEY_ID"),
        secret_access_key: said("AWS_SECRET_ACCESS_KEY"),
        session_token: said("AWS_SESSION_TOKEN"),
        region: said("AWS_REGION").or_else(|| said("AWS_DEFAULT_REGION")),
        endpoint: said("AWS_ENDPOINT_URL_S3").or_else(|| said("AWS_ENDPOINT_URL")),
        allow_http: said("AWS_ALLOW_HTTP").is_some_and(|said| said.eq_ignore_ascii_case("true")),
    }
}

/// Linux says so in its first line: `MemTotal:  16384000 kB`.
fn memory_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("MemTotal:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    kibibytes.checked_mul(1024)
}

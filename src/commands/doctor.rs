//! `pageledger doctor`: would serving work here? Chromium found and launched, data directory sound.
//!
//! Every check is made even when an earlier one fails, so that one run tells everything. The launch
//! uses a directory of its own and leaves nothing behind; the data directory is only read.

use std::io::Write;
use std::path::Path;
use std::sync::Arc;

use storage::artifact::ArtifactStore;
use storage::ids::random_uuid;
use storage::log::{Log, LogOptions, Reader};

use super::{CommandError, EXIT_UNAVAILABLE, is_there, open_log};
use crate::browser::{self, BodyRules, Browser, LaunchOptions};
use crate::config::Config;
use crate::deadline::Deadline;
use crate::journal::{Journal, Scope};
use crate::redact::Redactor;

/// Prints one line for each check; fails when one failed, with the exit code of the first.
pub fn doctor(config: &Config, out: &mut dyn Write) -> Result<(), CommandError> {
    let mut failed = None;
    for (what, check) in [("data directory", check_log as Check), ("chromium", check_browser as Check)] {
        match check(config) {
            Ok(finding) => writeln!(out, "ok      {what}: {finding}")?,
            Err(error) => {
                writeln!(out, "failed  {what}: {}", error.message)?;
                failed.get_or_insert(error.code);
            }
        }
    }
    match failed {
        None => Ok(()),
        Some(code) => Err(CommandError::new(code, "not ready to serve; see the lines that begin with failed")),
    }
}

type Check = fn(&Config) -> Result<String, CommandError>;

/// The log reads from its first event to its last, every block by its checksum.
fn check_log(config: &Config) -> Result<String, CommandError> {
    let directory = &config.data_dir;
    if !is_there(&directory.join("log"))? {
        return Ok(format!("{} holds no log yet", directory.display()));
    }
    let reader = open_log(directory)?;
    let events = count(&reader)?;
    let last_seq = reader.durable()?.last_seq;
    Ok(format!(
        "{}: {events} events, sequence {} to {last_seq}, all blocks sound",
        directory.display(),
        reader.first_seq()
    ))
}

fn count(reader: &Reader) -> Result<u64, CommandError> {
    let mut events = 0;
    for block in reader.blocks(reader.start())? {
        events += reader.load(block?.position)?.events().filter(Result::is_ok).count() as u64;
    }
    Ok(events)
}

/// Chromium is there and comes up the way sessions start it.
fn check_browser(config: &Config) -> Result<String, CommandError> {
    let refused = |message: String| CommandError::new(EXIT_UNAVAILABLE, message);
    let executable = browser::find_executable(config.headless, config.chromium.as_deref())
        .map_err(|missing| refused(format!("not found; looked for {}", missing.looked_for.join(", "))))?;
    let directory = tempfile::Builder::new().prefix("pageledger-doctor-").tempdir()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let found = runtime.block_on(launch(config, &executable, directory.path()));
    runtime.shutdown_background();
    found.map(|version| format!("{version} at {} launches", executable.display()))
}

async fn launch(config: &Config, executable: &Path, directory: &Path) -> Result<String, CommandError> {
    let refused = |message: String| CommandError::new(EXIT_UNAVAILABLE, message);
    let log = Log::open(LogOptions::new(directory.join("log")))?;
    let artifacts = ArtifactStore::open(&directory.join("artifacts"), config.artifact_quota_bytes)?;
    let scope = Scope::new("doctor".into(), random_uuid().into(), "local".into());
    let options = LaunchOptions {
        executable: executable.to_owned(),
        headless: config.headless,
        sandbox: config.chromium_sandbox,
        arguments: Vec::new(),
        profile_directory: None,
        run_directory: directory.join("run"),
        window: None,
        bodies: BodyRules::NONE,
        blocklist: crate::blocklist::Blocklist::default(),
        download_bytes_max: storage::limits::ARTIFACT_BYTES_MAX,
    };
    let deadline = Deadline::after(config.launch_timeout);
    let journal = Journal::new(log.clone());
    let browser = Browser::launch(options, scope, journal, artifacts, Arc::new(Redactor::new()), deadline)
        .await
        .map_err(|error| refused(error.to_string()))?;
    let version = browser.version().to_owned();
    let closed = browser.close("closed", Deadline::after(config.close_timeout)).await;
    log.close().await?;
    if !closed.group_gone {
        return Err(refused(format!("{version} launches, but its processes did not end")));
    }
    Ok(version)
}

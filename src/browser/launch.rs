//! From options to a browser that answers and is captured.
//!
//! The order matters: capture is in place before anything but the first, empty page exists, and every
//! file Chromium writes lies inside the run directory, which goes away with it.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use serde_json::{Value, json};
use storage::artifact::ArtifactStore;
use tokio::net::unix::pipe;
use tokio::process::Command;
use tokio::sync::watch;

use super::chromium::flags::{self, NotFound, Wishes};
use super::chromium::process::Process;
use super::chromium::queue::EventQueue;
use super::chromium::{CdpError, Connection, os, reader};
use super::downloads::Downloads;
use super::standing::Standing;
use super::{Browser, Inner, LaunchOptions, Roster, collect, ready};
use crate::deadline::Deadline;
use crate::journal::{Journal, Scope};
use crate::redact::Redactor;

/// Where Chromium keeps temporary files, below the run directory it runs in. It is told the relative
/// name: the path of its socket in there must fit 108 bytes, however long the run directory's is.
const TEMPORARY: &str = "tmp";

/// Why there is no browser.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    #[error("no Chromium was found (looked for {})", looked_for.join(", "))]
    NotFound { looked_for: Vec<String> },
    /// Root cannot use Chromium's sandbox, or the system offers none.
    #[error("Chromium's sandbox is not available: {reason}; --no-chromium-sandbox starts it without one")]
    SandboxUnavailable { reason: &'static str },
    #[error("Chromium did not start: {reason}")]
    Failed { reason: String },
}

impl From<NotFound> for LaunchError {
    fn from(missing: NotFound) -> Self {
        Self::NotFound { looked_for: missing.looked_for }
    }
}

/// Where one browser keeps its files.
#[derive(Debug, Clone)]
pub(super) struct Directories {
    run: PathBuf,
    profile: PathBuf,
    profile_is_private: bool,
    temporary: PathBuf,
    pub(super) downloads: PathBuf,
}

impl Directories {
    fn create(options: &LaunchOptions) -> std::io::Result<Self> {
        let run = std::path::absolute(&options.run_directory)?;
        let profile =
            options.profile_directory.as_ref().map_or_else(|| Ok(run.join("profile")), std::path::absolute)?;
        let directories = Self {
            profile,
            profile_is_private: options.profile_directory.is_none(),
            temporary: run.join(TEMPORARY),
            downloads: run.join("downloads"),
            run: run.clone(),
        };
        for directory in [&run, &directories.profile, &directories.temporary, &directories.downloads] {
            create_private(directory)?;
        }
        Ok(directories)
    }

    /// Removes what belongs to the browser alone; true when it is gone.
    pub(super) async fn remove(&self) -> bool {
        let mut gone: Vec<PathBuf> = vec![self.temporary.clone(), self.downloads.clone()];
        if self.profile_is_private {
            gone.push(self.profile.clone());
        }
        let remove = move || gone.iter().all(|directory| remove_directory(directory));
        tokio::task::spawn_blocking(remove).await.unwrap_or(false)
    }
}

fn create_private(directory: &Path) -> std::io::Result<()> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)
}

fn remove_directory(directory: &Path) -> bool {
    match std::fs::remove_dir_all(directory) {
        Ok(()) => true,
        Err(error) => error.kind() == std::io::ErrorKind::NotFound,
    }
}

impl Browser {
    /// Starts Chromium and waits until its first page can be used.
    ///
    /// # Errors
    /// Nothing runs and nothing is left on disk then.
    pub async fn launch(
        options: LaunchOptions,
        scope: Arc<Scope>,
        journal: Journal,
        artifacts: ArtifactStore,
        redactor: Arc<Redactor>,
        deadline: Deadline,
    ) -> Result<Browser, LaunchError> {
        possible(&options)?;
        let started = Instant::now();
        let directories = Directories::create(&options).map_err(|error| failed("creating its directories", &error))?;
        let (process, connection, queue) = match start(&options, &directories) {
            Ok(parts) => parts,
            Err(error) => {
                directories.remove().await;
                return Err(failed("starting the process", &error));
            }
        };
        let (roster, downloads, standing) =
            (Arc::new(Roster::default()), Arc::<Downloads>::default(), Standing::new(options.blocklist.clone()));
        let (closing, is_closing) = watch::channel(false);
        let progress = collect::start(
            collect::Setting {
                connection: connection.clone(),
                roster: roster.clone(),
                scope,
                journal,
                artifacts,
                redactor,
                bodies: options.bodies,
                downloads: downloads.clone(),
                download_directory: directories.downloads.clone(),
                download_bytes_max: options.download_bytes_max,
                standing: standing.clone(),
                closing: is_closing,
            },
            queue,
        );
        let process_id = process.id();
        let answer = prepare(&connection, &roster, &directories, &process, deadline).await;
        let version =
            answer.as_ref().ok().and_then(|version| version["product"].as_str()).unwrap_or_default().to_owned();
        let launch_ms = started.elapsed().as_secs_f64() * 1000.0;
        let inner = Inner {
            connection,
            version,
            process_id,
            launch_ms,
            roster,
            downloads,
            progress,
            standing,
            process,
            directories,
            closing,
        };
        let browser = Browser { inner: Arc::new(inner) };
        match answer {
            Ok(_) => Ok(browser),
            Err(error) => {
                let tail = browser.inner.process.stderr_tail();
                browser.close("launch_failed", Deadline::after(std::time::Duration::from_secs(5))).await;
                Err(explain(&error, &tail))
            }
        }
    }
}

/// What can be known before anything is started.
fn possible(options: &LaunchOptions) -> Result<(), LaunchError> {
    if !options.executable.is_file() {
        return Err(LaunchError::NotFound { looked_for: vec![options.executable.display().to_string()] });
    }
    if options.sandbox && os::is_root() {
        return Err(LaunchError::SandboxUnavailable { reason: "this process runs as root" });
    }
    Ok(())
}

fn failed(what: &str, error: &std::io::Error) -> LaunchError {
    LaunchError::Failed { reason: format!("{what}: {error}") }
}

fn explain(error: &CdpError, stderr: &str) -> LaunchError {
    if stderr.contains("No usable sandbox") || stderr.contains("without --no-sandbox") {
        return LaunchError::SandboxUnavailable { reason: "the system offers none" };
    }
    LaunchError::Failed { reason: format!("{error}; it last wrote: {stderr}") }
}

fn start(
    options: &LaunchOptions,
    directories: &Directories,
) -> std::io::Result<(Process, Connection, Arc<EventQueue>)> {
    let (commands_read, commands_write) = std::io::pipe()?;
    let (replies_read, replies_write) = std::io::pipe()?;
    let replies = std::os::fd::OwnedFd::from(replies_read);
    os::widen_pipe(&replies);
    let wishes = Wishes {
        headless: options.headless,
        sandbox: options.sandbox,
        window: options.window,
        lookup_rules: options.blocklist.lookup_rules(),
        profile: &directories.profile,
        extra: &options.arguments,
    };
    let mut command = Command::new(std::path::absolute(&options.executable)?);
    command.args(flags::arguments(&wishes)).current_dir(&directories.run).env("TMPDIR", TEMPORARY);
    os::pass_pipes(&mut command, commands_read.into(), replies_write.into());
    let process = Process::start(command)?;
    let input = pipe::Receiver::from_owned_fd(replies)?;
    let output = pipe::Sender::from_owned_fd(commands_write.into())?;
    let queue = Arc::new(EventQueue::default());
    let connection = Connection::start(Box::new(input), Box::new(output), queue.clone(), reader::MESSAGE_BYTES_MAX);
    Ok((process, connection, queue))
}

/// Puts capture in place and waits for the first page. Gives Chromium's own account of itself.
async fn prepare(
    connection: &Connection,
    roster: &Roster,
    directories: &Directories,
    process: &Process,
    deadline: Deadline,
) -> Result<Value, CdpError> {
    let downloads = json!({
        "behavior": "allowAndName",
        "downloadPath": directories.downloads,
        "eventsEnabled": true,
    });
    connection.post(None, "Browser.setDownloadBehavior", downloads);
    let discover = json!({ "discover": true, "filter": [{ "type": "page" }, { "type": "iframe" }] });
    connection.post(None, "Target.setDiscoverTargets", discover);
    connection.post(None, "Target.setAutoAttach", collect::attach_to_top_level());
    let ready = async {
        let version = connection.raw(None, "Browser.getVersion", json!({}), deadline).await?;
        let first = roster.wait(deadline, &|roster| roster.pages().into_iter().next()).await?;
        ready(&first, deadline).await?;
        Ok(version)
    };
    tokio::select! {
        answer = ready => answer,
        () = process.ended() => Err(CdpError::Closed),
    }
}

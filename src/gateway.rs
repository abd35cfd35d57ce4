//! The gateway: the parts every call needs, put together once. Cheap to clone.

use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicUsize;
use std::sync::{Arc, OnceLock};
use std::time::Instant;

use exporters::metrics::Metrics;
use storage::StorageError;
use storage::artifact::ArtifactStore;
use storage::audit::{AuditOptions, Auditor};
use storage::directory;
use storage::disk::{DiskLevel, DiskWatch};
use storage::ids::{InstanceId, Owner};
use storage::index::Index;
use storage::log::{Log, LogOptions};
use storage::query::{CursorKey, Ledger};
use storage::time::SystemClock;
use storage::upkeep::{self, Upkeep};

use crate::aftermath;
use crate::browser;
use crate::config::Config;
use crate::fault::{Code, Fault};
use crate::journal::Journal;
use crate::paths;
use crate::redact::Redactor;
use crate::session::registry::Registry;
use crate::tools;

/// How the gateway is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Transport {
    Stdio,
    Http,
}

impl Transport {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Transport::Stdio => "stdio",
            Transport::Http => "http",
        }
    }
}

/// Everything a call needs.
pub struct Parts {
    pub config: Config,
    pub transport: Transport,
    pub journal: Journal,
    pub index: Index,
    pub ledger: Ledger,
    pub artifacts: ArtifactStore,
    pub disk: DiskWatch,
    pub auditor: Auditor,
    pub upkeep: Upkeep,
    pub registry: Registry,
    pub redactor: Arc<Redactor>,
    pub metrics: Metrics,
    pub started: Instant,
    /// Calls accepted and not ended.
    pub calls_running: AtomicUsize,
    /// The first event this process appended.
    pub first_own_seq: u64,
}

/// The gateway. Dereferences to its parts.
#[derive(Clone)]
pub struct Gateway(Arc<Parts>);

impl std::ops::Deref for Gateway {
    type Target = Parts;
    fn deref(&self) -> &Parts {
        &self.0
    }
}

impl Gateway {
    /// Opens the data directory and everything in it. Blocking; a few milliseconds on a sound log.
    ///
    /// # Errors
    /// When the directory is another process's, cannot be used, or holds a damaged log.
    pub fn open(config: Config, transport: Transport) -> Result<Self, StorageError> {
        let directory = config.data_dir.clone();
        directory::make_private(&directory)?;
        let disk = DiskWatch::open(&directory, config.disk)?;
        storage::audit::expect_log(&directory)?;
        let log = Log::open(LogOptions {
            durability: config.durability,
            disk: Some(disk.clone()),
            ..LogOptions::new(directory.join("log"))
        })?;
        let first_own_seq = log.health().last_seq;
        let auditor = Auditor::start(log.clone(), AuditOptions::new(directory.join("audit")))?;
        let ends = aftermath::ends(&log)?;
        // A queue that was just made has room for them.
        let _ = log.offer(ends);
        clear_leftovers(&directory)?;
        let artifacts =
            ArtifactStore::open_minding(&directory.join("artifacts"), config.artifact_quota_bytes, disk.clone())?;
        let index = Index::start(&directory.join("index"), log.reader(), log.watch());
        let parts = upkeep::Parts {
            log: log.clone(),
            index: Some(index.clone()),
            artifacts: artifacts.clone(),
            policy: config.retention,
            clock: Arc::new(SystemClock),
        };
        let upkeep = Upkeep::start(&directory.join("upkeep"), parts)?;
        let key = CursorKey::load_or_create(&directory.join("cursor.key"))?;
        let ledger = Ledger::new(log.reader(), index.clone(), key);
        let registry = Registry::new(config.max_instances);
        let metrics = Metrics::new(tools::metric_labels());
        let redactor = Arc::new(Redactor::new());
        if config.export_url.is_some() {
            // Whoever may name objects of the store must not find its keys on record.
            for secret in [&config.store.secret_access_key, &config.store.session_token].into_iter().flatten() {
                redactor.declare(secret);
            }
        }
        let started = Instant::now();
        let journal = Journal::new(log).minding(disk.clone());
        Ok(Self(Arc::new(Parts {
            config,
            transport,
            journal,
            index,
            ledger,
            artifacts,
            disk,
            auditor,
            upkeep,
            registry,
            redactor,
            metrics,
            started,
            calls_running: AtomicUsize::new(0),
            first_own_seq,
        })))
    }

    /// The Chromium to start.
    ///
    /// # Errors
    /// `BROWSER_NOT_INSTALLED`.
    pub fn executable(&self, headless: bool, explicit: Option<&Path>) -> Result<PathBuf, Fault> {
        let explicit = explicit.or(self.config.chromium.as_deref());
        browser::find_executable(headless, explicit)
            .map_err(|missing| crate::session::open::launch_fault(missing.into()))
    }

    /// A fresh directory for one browser's profile, temporary files and downloads.
    ///
    /// # Errors
    /// When it cannot be made.
    pub fn run_directory(&self, instance: &InstanceId) -> Result<PathBuf, StorageError> {
        let directory = self.config.data_dir.join("run").join(instance.as_str());
        directory::make_private(&directory)?;
        Ok(directory)
    }

    /// Removes what is left of a browser's directory; what cannot be removed now is at the next start.
    pub fn remove_run_directory(&self, instance: &InstanceId) {
        let _ = std::fs::remove_dir_all(self.config.data_dir.join("run").join(instance.as_str()));
    }

    /// Where a session's own files go, when a tool is asked to write one.
    #[must_use]
    pub fn files_directory(&self, instance: &InstanceId) -> PathBuf {
        self.config.data_dir.join("files").join(instance.as_str())
    }

    /// Whether calls may be accepted, or why not.
    ///
    /// # Errors
    /// `SERVER_SHUTTING_DOWN`, `LOG_UNAVAILABLE` or `DISK_LOW`.
    pub fn ready(&self) -> Result<(), Fault> {
        if self.registry.is_shutting_down() {
            return Err(Fault::new(Code::ServerShuttingDown));
        }
        match self.journal.log().health().unavailable {
            Some(reason) => Err(Fault::new(Code::LogUnavailable).with("reason", reason)),
            None if self.disk.level() == DiskLevel::ReadOnly => Err(self.disk_low()),
            None => Ok(()),
        }
    }

    /// `DISK_LOW` with the room there is.
    #[must_use]
    pub fn disk_low(&self) -> Fault {
        Fault::new(Code::DiskLow).with("free_bytes", self.disk.state().space.free_bytes)
    }
}

/// Whoever calls without having said who they are.
#[must_use]
pub fn local_owner() -> Owner {
    static LOCAL: OnceLock<Owner> = OnceLock::new();
    LOCAL.get_or_init(|| Owner::from("local")).clone()
}

/// Removes what a killed process left: the lock says that nobody else uses it.
fn clear_leftovers(data_dir: &Path) -> Result<(), StorageError> {
    for written_to in ["files", "exports", "auth-states"] {
        paths::clear_unfinished(&data_dir.join(written_to));
    }
    let run = data_dir.join("run");
    match std::fs::remove_dir_all(&run) {
        Ok(()) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(StorageError::io("remove", &run)(error)),
    }
}

//! Storage failures, by what the caller must do next.

use std::path::PathBuf;

use crate::ids::ArtifactHandle;

/// Why storage could not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StorageError {
    /// Another process owns the data directory: stop it or choose another directory.
    #[error("the data directory {} is in use by another process{}; stop that one, or use another data directory", path.display(), holder.map(|pid| format!(" ({pid})")).unwrap_or_default())]
    Locked { path: PathBuf, holder: Option<u32> },

    /// History is missing or altered: restore it from a copy, or move the directory away.
    #[error("the log in {} is damaged: sequence {first_seq} to {last_seq}: {what}", path.display())]
    Damaged { path: PathBuf, first_seq: u64, last_seq: u64, what: String },

    /// The log no longer accepts events; restart the program once the cause is mended.
    #[error("the log cannot record: {reason}")]
    Unavailable { reason: String },

    /// No room on the disk; nothing was written, and the log goes on once there is room again.
    #[error("no room on the disk for {}", path.display())]
    Full { path: PathBuf },

    /// What was at this place in the log was written anew elsewhere, or removed: take a new look.
    #[error("this part of the log was written anew meanwhile")]
    Moved,

    /// The files are of a format this build does not know.
    #[error("{} is of format {found}; this build reads format {known}", path.display())]
    Format { path: PathBuf, found: u32, known: u32 },

    /// The operating system refused.
    #[error("{action} {}: {source}", path.display())]
    Io { action: &'static str, path: PathBuf, source: std::io::Error },

    /// A cursor is forged, foreign, of another filter, or ahead of the log.
    #[error("the cursor does not belong to this {what}")]
    Cursor { what: &'static str },

    /// No such artifact, or another owner's.
    #[error("no artifact of that handle")]
    UnknownHandle,

    /// What is kept under the handle is not what was put: restore it from a copy.
    #[error("what is kept as {handle} was altered on disk")]
    Altered { handle: ArtifactHandle },

    /// A stated bound refuses this.
    #[error("{name} is at most {limit}")]
    Limit { name: &'static str, limit: u64 },
}

impl StorageError {
    /// Whether it was refused for lack of room on the disk: it may go through later.
    #[must_use]
    pub fn is_full(&self) -> bool {
        match self {
            Self::Full { .. } => true,
            Self::Io { source, .. } => crate::disk::is_full(source),
            _ => false,
        }
    }

    /// For `map_err`: what was being done, to which file.
    pub fn io(action: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.into();
        move |source| Self::Io { action, path, source }
    }
}

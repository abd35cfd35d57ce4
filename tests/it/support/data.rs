//! A data directory that outlives the servers that use it and goes with its last user.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use tempfile::TempDir;

/// A directory; clones are the same one.
#[derive(Clone)]
pub struct DataDir {
    path: PathBuf,
    /// Removes it with the last clone.
    _fresh: Option<Arc<TempDir>>,
}

impl DataDir {
    #[must_use]
    pub fn fresh() -> Self {
        let directory = tempfile::Builder::new().prefix("pageledger-it-").tempdir().expect("a temporary directory");
        Self { path: directory.path().to_owned(), _fresh: Some(Arc::new(directory)) }
    }

    /// A directory that stays when the test has ended.
    #[must_use]
    pub fn kept(path: PathBuf) -> Self {
        Self { path, _fresh: None }
    }

    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Every file below it, sorted.
    #[must_use]
    pub fn files(&self) -> Vec<PathBuf> {
        files_below(self.path())
    }

    /// The files in which `needle` stands as it is.
    #[must_use]
    pub fn files_with(&self, needle: &str) -> Vec<PathBuf> {
        let holds = |path: &PathBuf| {
            let bytes = std::fs::read(path).unwrap_or_default();
            bytes.windows(needle.len()).any(|window| window == needle.as_bytes())
        };
        self.files().into_iter().filter(holds).collect()
    }
}

/// Every file below `directory`, sorted; what vanishes meanwhile is left out.
#[must_use]
pub fn files_below(directory: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut left = vec![directory.to_owned()];
    while let Some(directory) = left.pop() {
        for entry in std::fs::read_dir(&directory).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => left.push(entry.path()),
                Ok(_) => files.push(entry.path()),
                Err(_) => {}
            }
        }
    }
    files.sort();
    files
}

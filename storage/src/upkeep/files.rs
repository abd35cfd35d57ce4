//! Files that a session's calls had written: pictures below `files`, exports below `exports`.
//!
//! They go before the events that name them, so that an erasure that was cut short finds them again.

use std::collections::{BTreeSet, HashSet};
use std::path::{Component, Path, PathBuf};

use crate::StorageError;
use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::limits::ERASURE_PATHS_MAX;
use crate::shred::{shred, shred_directory};
use crate::upkeep::erase::Erased;

const EXPORTS: &str = "exports";

/// What the subject's events name.
#[derive(Default)]
pub struct Files {
    instances: HashSet<Box<str>>,
    paths: BTreeSet<String>,
}

impl Files {
    pub fn learn(&mut self, view: &EventView<'_>) {
        if let Some(instance) = view.context(ContextField::InstanceId) {
            self.instances.insert(instance.into());
        }
        if view.kind() != Some(Kind::CallAccepted) {
            return;
        }
        let arguments = view.get("arguments").and_then(ValueRef::as_str).unwrap_or_default();
        let arguments: serde_json::Value = serde_json::from_str(arguments).unwrap_or_default();
        let members = arguments.as_object().into_iter().flatten().filter(|(name, _)| name.ends_with("path"));
        self.paths.extend(members.filter_map(|(_, path)| path.as_str()).map(str::to_owned));
    }

    /// Overwrites and removes what lies in the data directory, and tells what lies elsewhere.
    ///
    /// # Errors
    /// What the operating system refuses.
    pub fn remove(&self, data_dir: &Path, erased: &mut Erased) -> Result<(), StorageError> {
        let exports = data_dir.join(EXPORTS);
        let pictures: Vec<PathBuf> =
            self.instances.iter().filter_map(|instance| self::pictures(data_dir, instance)).collect();
        for asked in &self.paths {
            let relative = Path::new(asked).strip_prefix(&exports).unwrap_or(Path::new(asked));
            let file = exports.join(relative);
            if is_plain(relative) && file.is_file() {
                let mut manifest = file.clone().into_os_string();
                manifest.push(".manifest.json");
                shred(Path::new(&manifest))?;
                shred(&file)?;
                erased.files += 1;
            } else if !pictures.iter().any(|directory| directory.join(asked).is_file())
                && erased.paths.len() < ERASURE_PATHS_MAX
            {
                erased.paths.push(asked.clone());
            }
        }
        for directory in pictures {
            erased.files += std::fs::read_dir(&directory).map_or(0, |entries| entries.count() as u64);
            shred_directory(&directory)?;
        }
        Ok(())
    }
}

/// Where the pictures of one browser's pages are.
fn pictures(data_dir: &Path, instance: &str) -> Option<PathBuf> {
    is_plain(Path::new(instance)).then(|| data_dir.join("files").join(instance))
}

fn is_plain(path: &Path) -> bool {
    path.components().all(|part| matches!(part, Component::Normal(_)))
}

/// Profiles that browsers go on using, saved logins, and exports by others: files that may tell of anybody.
///
/// # Errors
/// What the operating system refuses.
pub fn beside(data_dir: &Path) -> Result<Vec<String>, StorageError> {
    let mut found = Vec::new();
    for directory in ["profiles", "auth-states", EXPORTS].map(|name| data_dir.join(name)) {
        let entries = match std::fs::read_dir(&directory) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => continue,
            entries => entries.map_err(StorageError::io("list", &directory))?,
        };
        for entry in entries {
            found.push(entry.map_err(StorageError::io("list", &directory))?.path().display().to_string());
        }
    }
    found.sort();
    found.truncate(ERASURE_PATHS_MAX);
    Ok(found)
}

//! Bytes kept beside the log by the hash of their content: bodies, screenshots, downloads, exports.
//!
//! `<directory>/ab/<32 hex>` holds the content whose SHA-256 begins with those digits; what is not
//! complete lies in `<directory>/tmp` and is removed when the store is next opened.
//!
//! What must stay true: a handle that was given out reads back as exactly what was put, also after a
//! power cut, or not at all; nothing is kept past the quota; no symbolic link is followed; nobody but the owner of
//! the directory can read it. The store does not know who may read what, nor which handles the log
//! still names: that is the caller's.

mod files;
mod proof;
mod removal;
#[cfg(test)]
mod tests;

pub use removal::{Lying, Removal};

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use sha2::{Digest, Sha256};

use crate::StorageError;
use crate::directory;
use crate::disk::{DiskLevel, DiskWatch};
use crate::ids::{ArtifactHandle, random_suffix};
use crate::limits::ARTIFACT_BYTES_MAX;
use crate::regular;
use crate::shred::shred;

/// The name of the bound on everything kept together.
pub const LIMIT_OF_ALL: &str = "bytes of all artifacts";
const HANDLE_PREFIX: &str = "art-";
const HANDLE_DIGITS: usize = 32;
const UNFINISHED: &str = "tmp";

/// A store of artifacts. Cheap to clone.
#[derive(Clone)]
pub struct ArtifactStore {
    shared: Arc<Shared>,
}

struct Shared {
    directory: PathBuf,
    quota_bytes: u64,
    /// Bytes kept and about to be kept; counted on disk when first needed.
    used_bytes: Mutex<Option<u64>>,
    unfinished: AtomicU64,
    /// Held while a file is marked as wanted and while one is removed: what is wanted again a moment
    /// before its removal stays.
    wanting: Mutex<()>,
    proven: proof::Proven,
    disk: Option<DiskWatch>,
}

/// What was kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    pub handle: ArtifactHandle,
    pub bytes: u64,
    /// SHA-256 of the content in hexadecimal.
    pub sha256: String,
}

impl ArtifactStore {
    /// Opens the store in `directory`, making it when absent, and removes what an earlier process
    /// left unfinished. Only the process that owns the data directory may do this.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn open(directory: &Path, quota_bytes: u64) -> Result<Self, StorageError> {
        files::make_directory(directory)?;
        let unfinished = directory.join(UNFINISHED);
        files::make_directory(&unfinished)?;
        files::shred_files(&unfinished)?;
        Ok(Self::new(directory, quota_bytes, None))
    }

    /// As [`ArtifactStore::open`]; keeps nothing while `disk` is at its lowest level.
    ///
    /// # Errors
    /// When the operating system refuses.
    pub fn open_minding(directory: &Path, quota_bytes: u64, disk: DiskWatch) -> Result<Self, StorageError> {
        Self::open(directory, quota_bytes)?;
        Ok(Self::new(directory, quota_bytes, Some(disk)))
    }

    /// For reading beside the process that owns the store: changes nothing, keeps nothing.
    #[must_use]
    pub fn open_read_only(directory: &Path) -> Self {
        Self::new(directory, 0, None)
    }

    fn new(directory: &Path, quota_bytes: u64, disk: Option<DiskWatch>) -> Self {
        let directory = directory.to_owned();
        let (used_bytes, unfinished, wanting) = (Mutex::new(None), AtomicU64::new(0), Mutex::new(()));
        Self {
            shared: Arc::new(Shared {
                directory,
                quota_bytes,
                used_bytes,
                unfinished,
                wanting,
                proven: proof::Proven::default(),
                disk,
            }),
        }
    }

    /// Size of everything kept, in bytes. Reads the directory when nothing has been kept yet.
    ///
    /// # Errors
    /// When the directory cannot be read.
    pub fn stored_bytes(&self) -> Result<u64, StorageError> {
        self.stored(&mut self.shared.used_bytes())
    }

    fn stored(&self, used: &mut Option<u64>) -> Result<u64, StorageError> {
        match *used {
            Some(bytes) => Ok(bytes),
            None => Ok(*used.insert(files::bytes_below(&self.shared.directory, UNFINISHED)?)),
        }
    }

    /// Keeps `bytes`; blocks until they are durable. Content that is there already is used again.
    ///
    /// # Errors
    /// `StorageError::Limit` when they are too many or the store is full, and what the operating
    /// system refuses.
    pub fn put(&self, bytes: &[u8]) -> Result<Kept, StorageError> {
        let kept = kept(bytes.len() as u64, &Sha256::digest(bytes));
        if self.has(&kept)? {
            return Ok(kept);
        }
        let reserved = self.reserve(kept.bytes)?;
        let unfinished = Unfinished(self.unfinished_path());
        let file = files::create(&unfinished.0)?;
        file.write_all_at(bytes, 0).map_err(StorageError::io("write", &unfinished.0))?;
        self.place(unfinished, &file, kept, reserved)
    }

    /// Keeps the file at `path` and takes it away from there: by moving it, or, from another file
    /// system or when it has another name too, by copying it. On failure it stays where it was.
    ///
    /// # Errors
    /// As [`ArtifactStore::put`]; also when `path` is no regular file.
    pub fn put_file(&self, path: &Path) -> Result<Kept, StorageError> {
        let source = files::open_regular(path)?;
        let reserved = self.reserve(files::length(&source, path)?)?;
        let unfinished = Unfinished(self.unfinished_path());
        if files::has_one_name(&source, path)? && files::moved(path, &unfinished.0)? {
            let outcome = self.adopt(&unfinished, reserved);
            if outcome.is_err() {
                // The refusal is what the caller must hear of; the file goes back if it can.
                let _ = std::fs::rename(&unfinished.0, path);
            }
            return outcome;
        }
        let file = files::create(&unfinished.0)?;
        let (bytes, digest) = files::copy(&source, path, &file, &unfinished.0, reserved.bytes)?;
        let kept = self.place(unfinished, &file, kept(bytes, &digest), reserved)?;
        std::fs::remove_file(path).map_err(StorageError::io("remove", path))?;
        Ok(kept)
    }

    /// Keeps a file that was moved to an unfinished name.
    fn adopt(&self, unfinished: &Unfinished, reserved: Reserved<'_>) -> Result<Kept, StorageError> {
        // Opened again under the new name: what was moved is what is hashed.
        let file = files::open_regular(&unfinished.0)?;
        files::make_private(&file, &unfinished.0)?;
        let (bytes, digest) = files::hash(&file, &unfinished.0, reserved.bytes)?;
        self.place(Unfinished(unfinished.0.clone()), &file, kept(bytes, &digest), reserved)
    }

    /// Gives complete bytes their final name, durably.
    fn place(
        &self,
        unfinished: Unfinished,
        file: &File,
        kept: Kept,
        reserved: Reserved<'_>,
    ) -> Result<Kept, StorageError> {
        if self.has(&kept)? {
            return Ok(kept);
        }
        file.sync_all().map_err(StorageError::io("sync", &unfinished.0))?;
        let path = self.path_of(&kept.handle)?;
        let shard = files::parent(&path);
        files::make_directory(shard)?;
        self.name(file, &unfinished.0, &path)?;
        reserved.keep();
        directory::sync(shard)?;
        Ok(kept)
    }

    /// Whether exactly this content is there already, durably.
    fn has(&self, wanted: &Kept) -> Result<bool, StorageError> {
        let path = self.path_of(&wanted.handle)?;
        let Some(file) = self.want(&path)? else { return Ok(false) };
        // Content that was altered where it lies is put anew.
        if files::length(&file, &path)? != wanted.bytes {
            return Ok(false);
        }
        let (_, digest) = files::hash(&file, &path, wanted.bytes)?;
        if hex(&digest) != wanted.sha256 {
            return Ok(false);
        }
        // Another thread may have given it its name a moment ago and not have synced that yet.
        directory::sync(files::parent(&path))?;
        Ok(true)
    }

    /// Up to `length` bytes from `offset` on; fewer at the end, none behind it.
    ///
    /// # Errors
    /// `StorageError::UnknownHandle` when nothing is kept under the handle, `StorageError::Altered`
    /// when it is not what was put.
    pub fn read(&self, handle: &ArtifactHandle, offset: u64, length: usize) -> Result<Vec<u8>, StorageError> {
        let (file, path) = self.open_kept(handle)?;
        self.prove(handle, &file, &path)?;
        let rest = files::length(&file, &path)?.saturating_sub(offset);
        let mut bytes = vec![0; length.min(usize::try_from(rest).unwrap_or(usize::MAX))];
        file.read_exact_at(&mut bytes, offset).map_err(StorageError::io("read", &path))?;
        // What was removed meanwhile may have been overwritten under the read.
        if files::is_at(&file, &path) { Ok(bytes) } else { Err(StorageError::UnknownHandle) }
    }

    /// Bytes kept under the handle.
    ///
    /// # Errors
    /// `StorageError::UnknownHandle` when nothing is kept under the handle.
    pub fn length(&self, handle: &ArtifactHandle) -> Result<u64, StorageError> {
        let (file, path) = self.open_kept(handle)?;
        files::length(&file, &path)
    }

    /// Where the bytes lie, for whoever must pass on a file.
    ///
    /// # Errors
    /// `StorageError::UnknownHandle` when nothing is kept under the handle, `StorageError::Altered`
    /// when it is not what was put.
    pub fn path(&self, handle: &ArtifactHandle) -> Result<PathBuf, StorageError> {
        let (file, path) = self.open_kept(handle)?;
        self.prove(handle, &file, &path)?;
        Ok(path)
    }

    fn open_kept(&self, handle: &ArtifactHandle) -> Result<(File, PathBuf), StorageError> {
        let path = self.path_of(handle)?;
        match files::open_regular(&path) {
            Ok(file) => Ok((file, path)),
            Err(StorageError::Io { source, .. }) if is_absent(&source) => Err(StorageError::UnknownHandle),
            Err(error) => Err(error),
        }
    }

    /// The place of a handle; handles of another form have none.
    fn path_of(&self, handle: &ArtifactHandle) -> Result<PathBuf, StorageError> {
        let digits = handle.as_str().strip_prefix(HANDLE_PREFIX).ok_or(StorageError::UnknownHandle)?;
        let is_digit = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
        if digits.len() != HANDLE_DIGITS || !digits.bytes().all(is_digit) {
            return Err(StorageError::UnknownHandle);
        }
        Ok(self.shared.directory.join(&digits[..2]).join(digits))
    }

    fn unfinished_path(&self) -> PathBuf {
        let number = self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
        self.shared.directory.join(UNFINISHED).join(format!("{number}-{}", random_suffix(8)))
    }

    /// Whether `bytes` more could be kept at this moment, for whoever is about to gather them.
    ///
    /// # Errors
    /// As [`ArtifactStore::put`] would give.
    pub fn room(&self, bytes: u64) -> Result<(), StorageError> {
        self.reserve(bytes).map(drop)
    }

    fn reserve(&self, bytes: u64) -> Result<Reserved<'_>, StorageError> {
        if bytes > ARTIFACT_BYTES_MAX {
            return Err(StorageError::Limit { name: "bytes of one artifact", limit: ARTIFACT_BYTES_MAX });
        }
        if self.shared.disk.as_ref().is_some_and(|disk| disk.level() == DiskLevel::ReadOnly) {
            let refused = io::ErrorKind::StorageFull.into();
            return Err(StorageError::io("keep an artifact in", &self.shared.directory)(refused));
        }
        let mut used = self.shared.used_bytes();
        let before = self.stored(&mut used)?;
        if before.saturating_add(bytes) > self.shared.quota_bytes {
            return Err(StorageError::Limit { name: LIMIT_OF_ALL, limit: self.shared.quota_bytes });
        }
        *used = Some(before + bytes);
        Ok(Reserved { shared: &self.shared, bytes, kept: false })
    }
}

impl Shared {
    fn used_bytes(&self) -> MutexGuard<'_, Option<u64>> {
        self.used_bytes.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Room in the quota, given back unless it is kept.
struct Reserved<'a> {
    shared: &'a Shared,
    bytes: u64,
    kept: bool,
}

impl Reserved<'_> {
    fn keep(mut self) {
        self.kept = true;
    }
}

impl Drop for Reserved<'_> {
    fn drop(&mut self) {
        if self.kept {
            return;
        }
        if let Some(used) = self.shared.used_bytes().as_mut() {
            *used = used.saturating_sub(self.bytes);
        }
    }
}

/// A file that goes away again unless it was given another name.
struct Unfinished(PathBuf);

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Usually it was renamed and is not there; what does stay is removed at the next opening. The
        // bytes are overwritten, so that no copy outlives the content it is one of.
        let _ = shred(&self.0);
    }
}

fn kept(bytes: u64, digest: &[u8]) -> Kept {
    let sha256 = hex(digest);
    Kept { handle: ArtifactHandle::from(format!("{HANDLE_PREFIX}{}", &sha256[..HANDLE_DIGITS])), bytes, sha256 }
}

fn hex(digest: &[u8]) -> String {
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Nothing of ours is there: no file, or something that is not one.
fn is_absent(error: &io::Error) -> bool {
    let another_kind = error.kind() == io::ErrorKind::InvalidInput || error.raw_os_error() == Some(libc::ELOOP);
    regular::is_absent(error) || another_kind
}

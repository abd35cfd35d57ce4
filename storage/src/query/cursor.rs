//! Where a walk stands, as opaque text that only this data directory's owner can have made.
//!
//! ```text
//! cursor := base64url( version:u8  walk:u8  seq:u64be  log:6  owner:8  filter:8  mac:16 )
//! walk   := list << 1 | order
//! mac    := HMAC-SHA256(key, all before it), cut to 16 bytes
//! ```
//!
//! Log, owner and filter stand in it as short digests: enough to say which of them a cursor does not
//! belong to. The same position always gives the same text. The key lives beside the log, so cursors
//! outlive restarts.

use std::io::{Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit as _, Mac as _};
use sha2::{Digest as _, Sha256};

use crate::StorageError;
use crate::directory;
use crate::ids::Owner;

const VERSION: u8 = 1;
const SIGNED_BYTES: usize = 32;
const MAC_BYTES: usize = 16;
const KEY_BYTES: usize = 32;

/// Which way a walk goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    #[default]
    Oldest,
    Newest,
}

/// What a walk lists; a cursor of one list is refused by another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum List {
    Events,
    Requests,
    Downloads,
}

/// What a cursor is bound to besides its position.
pub(super) struct Binding<'a> {
    pub list: List,
    pub order: Order,
    pub log_id: &'a str,
    pub owner: &'a Owner,
    pub fingerprint: [u8; 16],
}

/// The secret that cursors are signed with. Cheap to clone.
#[derive(Clone)]
pub struct CursorKey(Arc<[u8; KEY_BYTES]>);

impl std::fmt::Debug for CursorKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("CursorKey")
    }
}

impl CursorKey {
    /// Reads the key file, or makes one that only its owner may read.
    ///
    /// # Errors
    /// When the file cannot be read or made, is no plain file of the right length, or is open to others.
    pub fn load_or_create(path: &Path) -> Result<Self, StorageError> {
        match Self::create(path) {
            Err(StorageError::Io { source, .. }) if source.kind() == std::io::ErrorKind::AlreadyExists => {
                Self::load(path)
            }
            other => other,
        }
    }

    /// A key for this process only.
    ///
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn ephemeral() -> Result<Self, StorageError> {
        let mut key = [0; KEY_BYTES];
        getrandom::fill(&mut key).map_err(|error| StorageError::Unavailable { reason: error.to_string() })?;
        Ok(Self(Arc::new(key)))
    }

    fn create(path: &Path) -> Result<Self, StorageError> {
        if path.symlink_metadata().is_ok() {
            return Err(StorageError::io("create", path)(std::io::ErrorKind::AlreadyExists.into()));
        }
        let key = Self::ephemeral()?;
        // Written whole under another name first: a crash never leaves half a key.
        let draft = path.with_extension(format!("draft-{}", crate::ids::random_suffix(8)));
        let mut file = std::fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&draft)
            .map_err(StorageError::io("create", &draft))?;
        let written =
            file.write_all(&*key.0).and_then(|()| file.sync_all()).and_then(|()| std::fs::hard_link(&draft, path));
        let _ = std::fs::remove_file(&draft);
        written.map_err(StorageError::io("create", path))?;
        if let Some(parent) = path.parent() {
            directory::sync(parent)?;
        }
        Ok(key)
    }

    fn load(path: &Path) -> Result<Self, StorageError> {
        let mut file = std::fs::OpenOptions::new()
            .read(true)
            .custom_flags(libc::O_NOFOLLOW)
            .open(path)
            .map_err(StorageError::io("open", path))?;
        let facts = file.metadata().map_err(StorageError::io("read", path))?;
        if !facts.is_file() || facts.len() != KEY_BYTES as u64 || facts.mode() & 0o077 != 0 {
            let wrong =
                std::io::Error::new(std::io::ErrorKind::InvalidData, "is no cursor key that only its owner may read");
            return Err(StorageError::io("read", path)(wrong));
        }
        let mut key = [0; KEY_BYTES];
        file.read_exact(&mut key).map_err(StorageError::io("read", path))?;
        Ok(Self(Arc::new(key)))
    }

    pub(super) fn write(&self, binding: &Binding<'_>, seq: u64) -> String {
        let mut bytes = Vec::with_capacity(SIGNED_BYTES + MAC_BYTES);
        bytes.push(VERSION);
        bytes.push(walk_byte(binding));
        bytes.extend_from_slice(&seq.to_be_bytes());
        bytes.extend_from_slice(&digest(binding.log_id)[..6]);
        bytes.extend_from_slice(&digest(binding.owner.as_str())[..8]);
        bytes.extend_from_slice(&binding.fingerprint[..8]);
        let tag = self.mac(&bytes).finalize().into_bytes();
        bytes.extend_from_slice(&tag[..MAC_BYTES]);
        URL_SAFE_NO_PAD.encode(bytes)
    }

    /// The position in `text`.
    pub(super) fn read(&self, binding: &Binding<'_>, text: &str) -> Result<u64, StorageError> {
        let refuse = |what| Err(StorageError::Cursor { what });
        if text.len() != (SIGNED_BYTES + MAC_BYTES) / 3 * 4 {
            return refuse("server");
        }
        let Ok(bytes) = URL_SAFE_NO_PAD.decode(text) else { return refuse("server") };
        let Some((signed, tag)) = bytes.split_at_checked(SIGNED_BYTES) else { return refuse("server") };
        if self.mac(signed).verify_truncated_left(tag).is_err() || signed[0] != VERSION {
            return refuse("server");
        }
        // The owner first: another owner's cursor tells nothing more.
        if signed[16..24] != digest(binding.owner.as_str())[..8] {
            return refuse("owner");
        }
        if signed[10..16] != digest(binding.log_id)[..6] {
            return refuse("log");
        }
        if signed[1] >> 1 != binding.list as u8 {
            return refuse("list");
        }
        if signed[24..32] != binding.fingerprint[..8] {
            return refuse("filter");
        }
        if signed[1] != walk_byte(binding) {
            return refuse("order");
        }
        let mut seq = [0; 8];
        seq.copy_from_slice(&signed[2..10]);
        Ok(u64::from_be_bytes(seq))
    }

    fn mac(&self, signed: &[u8]) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&*self.0).expect("HMAC takes keys of any length");
        mac.update(signed);
        mac
    }
}

fn walk_byte(binding: &Binding<'_>) -> u8 {
    (binding.list as u8) << 1 | binding.order as u8
}

fn digest(text: &str) -> [u8; 32] {
    Sha256::digest(text.as_bytes()).into()
}

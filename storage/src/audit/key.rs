//! The key that checkpoints are signed with: made at the first start, and never leaving its file.
//!
//! What must stay true: the private half is readable by its owner alone and is never printed; a file
//! that others can read, a link, or one of a wrong length is refused; a crash leaves either the old
//! key or the new one, whole. The public half is also the key's identity: whoever has a checkpoint
//! can check its signature without looking anything up.

use std::fmt;
use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ed25519_dalek::{Signature, Signer as _, SigningKey, VerifyingKey};

use crate::StorageError;
use crate::directory;
use crate::regular;

pub const KEY_FILE: &str = "key";
pub const PUBLIC_KEY_FILE: &str = "key.pub";
/// The key that a rotation is about to put in place.
const NEXT_KEY_FILE: &str = "key.next";
const SECRET_BYTES: usize = 32;
/// What a public key's text begins with.
const ALGORITHM: &str = "ed25519:";
/// A file that is to hold a public key is read no further than this.
const PUBLIC_FILE_BYTES_MAX: u64 = 1024;

/// The public half of a key. Its text is one word: `ed25519:` and 32 bytes as base64url.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PublicKey([u8; 32]);

impl PublicKey {
    /// Reads the text form, with white space around it.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let encoded = text.trim().strip_prefix(ALGORITHM)?;
        let bytes: [u8; 32] = URL_SAFE_NO_PAD.decode(encoded).ok()?.try_into().ok()?;
        let key = VerifyingKey::from_bytes(&bytes).ok()?;
        // A weak key accepts signatures that nobody made.
        (!key.is_weak()).then_some(Self(bytes))
    }

    /// Whether `signature` was made over `message` by the private half.
    #[must_use]
    pub fn verifies(&self, message: &[u8], signature: &[u8; 64]) -> bool {
        let signature = Signature::from_bytes(signature);
        VerifyingKey::from_bytes(&self.0).is_ok_and(|key| key.verify_strict(message, &signature).is_ok())
    }
}

impl fmt::Display for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{ALGORITHM}{}", URL_SAFE_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Both halves. Zeroed in memory when dropped.
pub(super) struct AuditKey(SigningKey);

impl AuditKey {
    /// # Errors
    /// When the operating system has no randomness to give.
    pub fn generate() -> Result<Self, StorageError> {
        let mut secret = [0; SECRET_BYTES];
        getrandom::fill(&mut secret).map_err(|error| StorageError::Unavailable { reason: error.to_string() })?;
        Ok(Self(SigningKey::from_bytes(&secret)))
    }

    #[cfg(test)]
    pub fn from_secret(secret: [u8; SECRET_BYTES]) -> Self {
        Self(SigningKey::from_bytes(&secret))
    }

    pub fn public(&self) -> PublicKey {
        PublicKey(self.0.verifying_key().to_bytes())
    }

    pub fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.0.sign(message).to_bytes()
    }

    fn load(path: &Path) -> Result<Self, StorageError> {
        let mut file =
            regular::open_itself(OpenOptions::new().read(true), path).map_err(StorageError::io("open", path))?;
        let facts = file.metadata().map_err(StorageError::io("read", path))?;
        if facts.len() != SECRET_BYTES as u64 || facts.mode() & 0o077 != 0 {
            return Err(refused(path, "is no signing key that only its owner may read"));
        }
        let mut secret = [0; SECRET_BYTES];
        file.read_exact(&mut secret).map_err(StorageError::io("read", path))?;
        if secret == [0; SECRET_BYTES] {
            return Err(refused(path, "holds a key that was destroyed"));
        }
        Ok(Self(SigningKey::from_bytes(&secret)))
    }

    fn write_to(&self, path: &Path) -> Result<(), StorageError> {
        let mut file = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(path)
            .map_err(StorageError::io("create", path))?;
        file.write_all(self.0.as_bytes()).and_then(|()| file.sync_all()).map_err(StorageError::io("write", path))
    }
}

impl fmt::Debug for AuditKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "AuditKey({})", self.public())
    }
}

/// The key's files in the audit directory.
pub(super) struct KeyFiles {
    directory: PathBuf,
}

impl KeyFiles {
    pub fn new(directory: &Path) -> Self {
        Self { directory: directory.to_owned() }
    }

    pub fn path(&self) -> PathBuf {
        self.directory.join(KEY_FILE)
    }

    /// The key in force. `in_force` is the one that the checkpoints so far end with: without any, a key
    /// is made when there is none.
    ///
    /// # Errors
    /// When the key cannot be read or made, is open to others, or is not the one in force.
    pub fn load(&self, in_force: Option<PublicKey>) -> Result<AuditKey, StorageError> {
        self.end_rotation(in_force)?;
        let path = self.path();
        let key = match AuditKey::load(&path) {
            Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound && in_force.is_none() => {
                let key = AuditKey::generate()?;
                self.put_in_place(&key)?;
                key
            }
            loaded => loaded?,
        };
        if in_force.is_some_and(|expected| expected != key.public()) {
            return Err(refused(&path, "is not the key that the checkpoints so far were signed with"));
        }
        self.publish(key.public())?;
        Ok(key)
    }

    /// Lays the next key beside the one in force; nothing is signed by it yet.
    pub fn prepare(&self, next: &AuditKey) -> Result<(), StorageError> {
        let path = self.directory.join(NEXT_KEY_FILE);
        remove_if_there(&path)?;
        next.write_to(&path)?;
        directory::sync(&self.directory)
    }

    /// Ends a rotation whose statement is on record: the old key is destroyed and the next takes its
    /// place. One whose statement is not leaves the old key in force.
    fn end_rotation(&self, in_force: Option<PublicKey>) -> Result<(), StorageError> {
        let path = self.directory.join(NEXT_KEY_FILE);
        let next = match AuditKey::load(&path) {
            Ok(next) => next,
            Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => return Ok(()),
            // Half written, so nothing was signed about it.
            Err(_) => return remove_if_there(&path),
        };
        if in_force != Some(next.public()) {
            return remove_if_there(&path);
        }
        self.replace_with_next(next.public())
    }

    /// The statement that names the prepared key is durable: from here on it alone signs.
    pub fn replace_with_next(&self, next: PublicKey) -> Result<(), StorageError> {
        let path = self.path();
        match regular::open_itself(OpenOptions::new().write(true), &path) {
            Ok(mut old) => {
                let shredded = old.write_all(&[0; SECRET_BYTES]).and_then(|()| old.sync_all());
                shredded.map_err(StorageError::io("overwrite", &path))?;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(StorageError::io("open", &path)(error)),
        }
        let from = self.directory.join(NEXT_KEY_FILE);
        std::fs::rename(&from, &path).map_err(StorageError::io("rename", &from))?;
        directory::sync(&self.directory)?;
        self.publish(next)
    }

    /// Written whole under another name first, and linked so that a key already there is never replaced.
    fn put_in_place(&self, key: &AuditKey) -> Result<(), StorageError> {
        let draft = self.directory.join(format!("key.draft-{}", crate::ids::random_suffix(8)));
        key.write_to(&draft)?;
        let linked = std::fs::hard_link(&draft, self.path());
        remove_if_there(&draft)?;
        linked.map_err(StorageError::io("create", self.path()))?;
        directory::sync(&self.directory)
    }

    /// The public half as a line of text that anybody may read.
    fn publish(&self, key: PublicKey) -> Result<(), StorageError> {
        let path = self.directory.join(PUBLIC_KEY_FILE);
        let text = format!("{key}\n");
        if read_public_key(&path).is_ok_and(|held| held == key) {
            return Ok(());
        }
        let draft = self.directory.join("key.pub.new");
        let mut file = File::create(&draft).map_err(StorageError::io("create", &draft))?;
        file.write_all(text.as_bytes()).and_then(|()| file.sync_all()).map_err(StorageError::io("write", &draft))?;
        std::fs::rename(&draft, &path).map_err(StorageError::io("rename", &draft))?;
        directory::sync(&self.directory)
    }
}

/// The public key published in an audit directory, or in any file that holds one line of that form.
///
/// # Errors
/// When the file cannot be read or holds something else.
pub fn read_public_key(path: &Path) -> Result<PublicKey, StorageError> {
    read_public_key_of(regular::read(path).map_err(StorageError::io("open", path))?, path)
}

/// As [`read_public_key`], of whatever somebody named and opened: it may be a pipe.
///
/// # Errors
/// When it cannot be read or holds something else.
pub fn read_public_key_of(file: File, path: &Path) -> Result<PublicKey, StorageError> {
    let mut text = String::new();
    file.take(PUBLIC_FILE_BYTES_MAX).read_to_string(&mut text).map_err(StorageError::io("read", path))?;
    PublicKey::parse(&text).ok_or_else(|| refused(path, "holds no public key"))
}

fn refused(path: &Path, what: &'static str) -> StorageError {
    StorageError::io("read", path)(io::Error::new(io::ErrorKind::InvalidData, what))
}

fn remove_if_there(path: &Path) -> Result<(), StorageError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(StorageError::io("remove", path)(error)),
        _ => Ok(()),
    }
}

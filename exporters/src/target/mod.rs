//! Where an export goes: a file or an object of a store, whole or not at all.
//!
//! What must stay true: nothing can be seen under the final name before everything is there; what is
//! given up leaves nothing that a listing shows; length and hash are of exactly the bytes written.
//! [`address`] reads what people type, [`file`](self) and `object` keep the promise each in its way.

mod address;
mod file;
mod object;

use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use sha2::{Digest as _, Sha256};
use storage::audit::hex;

use crate::export::ExportError;
use file::FilePlace;
use object::ObjectUpload;

pub use address::{Address, AddressError};
pub use object::{ObjectPlace, StoreAccess};

/// A place that an export can be written to.
#[derive(Debug, Clone)]
pub enum Destination {
    File(PathBuf),
    Object(ObjectPlace),
}

impl Destination {
    /// What an address means, with the access that the environment gives.
    ///
    /// # Errors
    /// When the address is of a store and the access to it is missing or wrong.
    pub fn of(address: &Address, access: &StoreAccess) -> Result<Self, ExportError> {
        match address {
            Address::File(path) => Ok(Self::File(path.clone())),
            Address::Object { bucket, key } => ObjectPlace::s3(bucket, key, access).map(Self::Object),
        }
    }

    /// The path, where it is a file.
    #[must_use]
    pub fn file(&self) -> Option<&Path> {
        if let Self::File(path) = self { Some(path) } else { None }
    }

    /// The last part of its name.
    #[must_use]
    pub fn name(&self) -> String {
        match self {
            Self::File(path) => path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default(),
            Self::Object(place) => place.name(),
        }
    }

    /// The same place with more at the end of its name.
    #[must_use]
    pub(crate) fn with_suffix(&self, suffix: &str) -> Self {
        match self {
            Self::File(path) => {
                let mut name = path.clone().into_os_string();
                name.push(suffix);
                Self::File(name.into())
            }
            Self::Object(place) => Self::Object(place.with_suffix(suffix)),
        }
    }

    /// Whether the file system takes the name with all that is put around it; a store says so itself.
    pub(crate) fn is_nameable(&self) -> Result<(), ExportError> {
        match self {
            Self::File(path) => file::is_nameable(path),
            Self::Object(_) => Ok(()),
        }
    }

    /// Whether an export may take the name; of an object the store says so later.
    pub(crate) fn is_free(&self, overwrite: bool) -> Result<(), ExportError> {
        match self {
            Self::File(path) => file::is_free(path, overwrite),
            Self::Object(_) => Ok(()),
        }
    }

    /// Exports to one directory take their names one after the other, each with its manifest.
    pub(crate) fn take_turn(&self) -> Result<Option<std::fs::File>, ExportError> {
        match self {
            Self::File(path) => file::take_turn(path).map(Some),
            Self::Object(_) => Ok(None),
        }
    }

    /// Takes back what was written there. Best effort: whoever calls has an error to tell already.
    pub(crate) fn remove(&self) {
        match self {
            Self::File(path) => {
                let _ = std::fs::remove_file(path);
            }
            Self::Object(place) => place.remove(),
        }
    }
}

impl fmt::Display for Destination {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Object(place) => place.fmt(f),
        }
    }
}

impl From<PathBuf> for Destination {
    fn from(path: PathBuf) -> Self {
        Self::File(path)
    }
}

impl From<&Path> for Destination {
    fn from(path: &Path) -> Self {
        Self::File(path.to_owned())
    }
}

impl From<&PathBuf> for Destination {
    fn from(path: &PathBuf) -> Self {
        Self::File(path.clone())
    }
}

enum Place {
    File(FilePlace),
    Object(ObjectUpload),
}

/// An export's bytes under way; dropped before `publish`, they are gone.
pub(crate) struct Target {
    place: Place,
    digest: Sha256,
    bytes: u64,
    bytes_max: u64,
    over_limit: bool,
    /// The operating system's number of the error that a write met.
    refused: Option<i32>,
}

impl Target {
    pub(crate) fn create(destination: &Destination, bytes_max: u64, overwrite: bool) -> Result<Self, ExportError> {
        let place = match destination {
            Destination::File(path) => Place::File(FilePlace::create(path, overwrite)?),
            Destination::Object(place) => Place::Object(ObjectUpload::create(place, overwrite)?),
        };
        Ok(Self { place, digest: Sha256::new(), bytes: 0, bytes_max, over_limit: false, refused: None })
    }

    /// Has all bytes where they will stay, before anybody can see them; returns length and SHA-256.
    pub(crate) fn prepare(&mut self) -> Result<(u64, String), ExportError> {
        if let Place::File(file) = &mut self.place {
            file.prepare()?;
        }
        Ok((self.bytes, hex(&self.digest.clone().finalize())))
    }

    /// Gives what is prepared its final name, durably.
    pub(crate) fn publish(&mut self) -> Result<(), ExportError> {
        match &mut self.place {
            Place::File(file) => file.publish(),
            Place::Object(upload) => upload.publish(),
        }
    }

    /// What a failed write means: the bound, the store, or the operating system.
    pub(crate) fn error(&mut self, action: &'static str, source: io::Error) -> ExportError {
        if let Some(error) = self.failure() {
            return error;
        }
        match &self.place {
            Place::File(file) => file.error(action, source),
            Place::Object(upload) => upload.error(action, &source.to_string()),
        }
    }

    /// Why a write failed, where this knows better than the error that the writer gave.
    pub(crate) fn failure(&mut self) -> Option<ExportError> {
        if self.over_limit {
            return Some(ExportError::Limit { bytes_max: self.bytes_max });
        }
        match &mut self.place {
            Place::File(file) => self.refused.map(|number| file.error("write", io::Error::from_raw_os_error(number))),
            Place::Object(upload) => upload.failure(),
        }
    }
}

impl Write for Target {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.bytes + bytes.len() as u64 > self.bytes_max {
            self.over_limit = true;
            return Err(io::Error::from(io::ErrorKind::FileTooLarge));
        }
        let count = match &mut self.place {
            Place::File(file) => file.write(bytes).inspect_err(|error| self.refused = error.raw_os_error())?,
            Place::Object(upload) => upload.write(bytes)?,
        };
        self.digest.update(&bytes[..count]);
        self.bytes += count as u64;
        Ok(count)
    }

    fn flush(&mut self) -> io::Result<()> {
        match &mut self.place {
            Place::File(file) => file.flush(),
            // Parts have a size of their own; the last one leaves when the object is published.
            Place::Object(_) => Ok(()),
        }
    }
}

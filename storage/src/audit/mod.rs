//! Proof that history was not changed: a signing key, signed checkpoints of the log's chain, and a
//! verifier that needs only the files.
//!
//! Read in this order: [`checkpoint`] (what is signed), [`jws`] (how), [`key`] (by what), [`lines`] and
//! [`trail`] (the files), [`book`] (who writes them), [`auditor`], [`scribe`] and
//! [`arrears`] (when), [`verify`].
//!
//! ```text
//! <data>/audit/key               the private key, 32 bytes, readable by its owner alone
//! <data>/audit/key.pub           the public key, one line of text
//! <data>/audit/checkpoints.jws   signed statements, one a line
//! <data>/audit/trail             two bytes of the chain for each event
//! ```

mod arrears;
mod auditor;
mod book;
mod checkpoint;
mod jws;
mod key;
mod lines;
mod scribe;
#[cfg(test)]
pub(crate) mod tests;
mod trail;
pub mod verify;

use std::path::Path;

use crate::StorageError;

pub use auditor::{AuditHealth, AuditOptions, Auditor, Pace};
pub use checkpoint::{Checkpoint, Digest, KeyChange, SignedLine, Statement, digest, hex};
pub use key::{KEY_FILE, PUBLIC_KEY_FILE, PublicKey, read_public_key, read_public_key_of};
pub use lines::{CHECKPOINTS_FILE, RawLine, RawLines, newest_checkpoint, newest_line};

/// Refuses a data directory whose log is gone while its checkpoints say that there was one: opening it
/// would make a new log and call that history.
///
/// # Errors
/// `StorageError::Damaged` then; else when the checkpoints cannot be read.
pub fn expect_log(data_dir: &Path) -> Result<(), StorageError> {
    let log = data_dir.join("log");
    match std::fs::read_dir(&log) {
        Ok(mut entries) => {
            if entries.next().is_some() {
                return Ok(());
            }
        }
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            return Err(StorageError::io("read", &log)(error));
        }
        Err(_) => {}
    }
    match newest_checkpoint(&data_dir.join("audit").join(CHECKPOINTS_FILE))? {
        None => Ok(()),
        Some(checkpoint) => Err(StorageError::Damaged {
            path: log,
            first_seq: 1,
            last_seq: checkpoint.seq,
            what: "the log is missing, and there are checkpoints of it".into(),
        }),
    }
}

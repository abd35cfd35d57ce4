//! When what is written is synced: with each commit, or every so often.
//!
//! What must stay true: the mark and the chain's progress never run ahead of a sync; a sync that failed
//! is the end, whatever it was for. By interval, whoever waits is answered and readers are told as soon
//! as the commit is written: that survives the death of the process, and a power cut costs at most what
//! came since the last sync.

use std::sync::PoisonError;
use std::time::{Duration, Instant};

use super::chain::Unclaimed;
use super::writer::Writer;
use super::{Durability, Durable};
use crate::StorageError;

/// What is written and not yet synced.
#[derive(Default)]
pub(super) struct Unsynced {
    since: Option<Instant>,
    bytes: u64,
    chain: Unclaimed,
}

impl Writer {
    /// `bytes` of a commit are in the file.
    pub fn written(&mut self, bytes: u64) -> Result<(), StorageError> {
        self.progress.lock().unwrap_or_else(PoisonError::into_inner).commits += 1;
        self.unsynced.bytes += bytes;
        match self.durability {
            Durability::Commit => self.sync(),
            Durability::Interval { .. } => {
                let since = *self.unsynced.since.get_or_insert_with(Instant::now);
                self.progress.lock().unwrap_or_else(PoisonError::into_inner).unsynced_since = Some(since);
                Ok(())
            }
        }
    }

    fn sync(&mut self) -> Result<(), StorageError> {
        let began = Instant::now();
        self.segment.sync()?;
        let took = began.elapsed();
        self.unsynced.since = None;
        let mut progress = self.progress.lock().unwrap_or_else(PoisonError::into_inner);
        progress.synced_bytes += std::mem::take(&mut self.unsynced.bytes);
        progress.fsync_seconds += took.as_secs_f64();
        progress.last_fsync_micros = u64::try_from(took.as_micros()).unwrap_or(u64::MAX);
        progress.unsynced_since = None;
        Ok(())
    }

    /// The events `first_seq` to `last_seq` may be acknowledged: first on record, then known.
    pub fn publish(&mut self, first_seq: u64, last_seq: u64) -> Result<(), StorageError> {
        let durable = Durable { last_seq, end: self.end()?, chain: self.chain.hash };
        match self.durability {
            Durability::Commit => {
                self.marks.advance(durable, false)?;
                self.unclaimed.add(first_seq, last_seq, &self.chain);
            }
            Durability::Interval { .. } => self.unsynced.chain.add(first_seq, last_seq, &self.chain),
        }
        self.durable.send_replace(durable);
        Ok(())
    }

    /// Syncs what is written and not yet synced.
    ///
    /// # Errors
    /// When the operating system refuses: the end of the log.
    pub fn sync_written(&mut self) -> Result<(), StorageError> {
        if self.unsynced.since.is_none() {
            return Ok(());
        }
        self.sync()?;
        let durable = *self.durable.borrow();
        self.marks.advance(durable, false)?;
        self.unclaimed.absorb(&self.unsynced.chain);
        Ok(())
    }

    pub fn sync_due(&self) -> Option<Instant> {
        let Durability::Interval { millis } = self.durability else { return None };
        self.unsynced.since.map(|since| since + Duration::from_millis(millis))
    }
}

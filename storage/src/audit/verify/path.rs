//! The trail, where checkpoints vouch for it.

use std::path::Path;

use sha2::{Digest as _, Sha256};

use super::super::trail::{TRAIL_FILE, TrailReader};
use super::anchors::Anchors;
use super::report::{Findings, Problem};
use crate::StorageError;
use crate::log::chain::TRAIL_STEP_BYTES;

/// Read at a time.
const BYTES: usize = 64 * 1024;

/// Checks the trail between each checkpoint and the one before it, and notes where it holds.
pub(super) fn check(directory: &Path, anchors: &mut Anchors, findings: &mut Findings) -> Result<(), StorageError> {
    let path = directory.join(TRAIL_FILE);
    let Some(trail) = TrailReader::open(&path)? else {
        if anchors.newest_seq > 0 {
            findings.add(Problem::Trail, (1, anchors.newest_seq), TRAIL_FILE, "it is missing");
        }
        return Ok(());
    };
    let mut buffer = vec![0; BYTES];
    let mut bad: Option<(u64, u64)> = None;
    for anchor in &mut anchors.list {
        let mut digest = Sha256::new();
        let mut seq = anchor.since_seq;
        while seq < anchor.seq {
            let entries = usize::try_from(anchor.seq - seq).unwrap_or(BYTES).min(BYTES / TRAIL_STEP_BYTES);
            let wanted = &mut buffer[..entries * TRAIL_STEP_BYTES];
            let count = trail.read(seq + 1, wanted).map_err(StorageError::io("read", &path))?;
            digest.update(&wanted[..count]);
            if count < wanted.len() {
                break;
            }
            seq += entries as u64;
        }
        anchor.trail_holds = seq == anchor.seq && digest.finalize()[..] == anchor.trail;
        match (&mut bad, anchor.trail_holds || anchor.line.is_none()) {
            (_, true) => tell(bad.take(), findings),
            (Some((_, last_seq)), false) => *last_seq = anchor.seq,
            (None, false) => bad = Some((anchor.since_seq + 1, anchor.seq)),
        }
    }
    tell(bad, findings);
    Ok(())
}

fn tell(bad: Option<(u64, u64)>, findings: &mut Findings) {
    if let Some(range) = bad {
        findings.add(Problem::Trail, range, TRAIL_FILE, "it is not what the checkpoints say");
    }
}

/// Reads vouched-for entries in rising order.
pub(super) struct Trail {
    file: Option<TrailReader>,
    /// Entries from this event on.
    first_seq: u64,
    held: Vec<u8>,
}

impl Trail {
    pub fn open(directory: &Path) -> Result<Self, StorageError> {
        Ok(Self { file: TrailReader::open(&directory.join(TRAIL_FILE))?, first_seq: 1, held: Vec::new() })
    }

    /// The entry of event `seq`; `None` when it is not known.
    pub fn entry(&mut self, seq: u64) -> Option<[u8; TRAIL_STEP_BYTES]> {
        let file = self.file.as_ref()?;
        let at = |first_seq: u64| usize::try_from(seq.checked_sub(first_seq)?).ok()?.checked_mul(TRAIL_STEP_BYTES);
        let held = |trail: &Self| {
            let from = at(trail.first_seq)?;
            trail.held.get(from..from.checked_add(TRAIL_STEP_BYTES)?)?.try_into().ok()
        };
        let mut entry: Option<[u8; TRAIL_STEP_BYTES]> = held(self);
        if entry.is_none() {
            let mut bytes = vec![0; BYTES];
            let count = file.read(seq, &mut bytes).unwrap_or(0);
            bytes.truncate(count);
            (self.first_seq, self.held) = (seq, bytes);
            entry = held(self);
        }
        // Zeros stand for a hash that is not known.
        entry.filter(|entry| *entry != [0; TRAIL_STEP_BYTES])
    }
}

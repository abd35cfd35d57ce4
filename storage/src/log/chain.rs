//! The hash chain over all events: what makes a change, a gap or another order show.
//!
//! It runs over the canonical bytes of each event in order of sequence number, so it is the same
//! however events are grouped into blocks and however those are compressed. What must stay true: a
//! reader that knows the hash before an event and the event's bytes gets the hash after it, and there
//! is no other way to get it.

use std::sync::{Mutex, PoisonError};

use sha2::{Digest, Sha256};

use crate::limits::TRAIL_UNCLAIMED_BYTES_MAX;

/// What the first hash is made of, together with the log's id.
const START: &[u8] = b"pageledger chain 2\n";
/// Bytes of each hash that the trail keeps.
pub const TRAIL_STEP_BYTES: usize = 2;

/// The hash before the first event of the log of that id.
#[must_use]
pub fn start(log_id: impl AsRef<[u8]>) -> [u8; 32] {
    Sha256::new().chain_update(START).chain_update(log_id).finalize().into()
}

/// The hash after the event of these canonical bytes, which follows `before`.
#[must_use]
pub fn next(before: &[u8; 32], record: &[u8]) -> [u8; 32] {
    Sha256::new().chain_update(before).chain_update(record).finalize().into()
}

/// How far the chain came since it was last asked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChainProgress {
    pub first_seq: u64,
    pub last_seq: u64,
    /// The hash after `last_seq`.
    pub chain: [u8; 32],
    /// The first bytes of the hash after each event; `None` when more piled up than is kept, and the
    /// events must be read again to know.
    pub trail: Option<Vec<u8>>,
}

/// The chain while a commit is made.
#[derive(Debug, Clone)]
pub(super) struct Chain {
    pub hash: [u8; 32],
    /// The trail of the commit.
    pub trail: Vec<u8>,
}

impl Chain {
    pub fn after(hash: [u8; 32]) -> Self {
        Self { hash, trail: Vec::new() }
    }

    pub fn add(&mut self, record: &[u8]) {
        self.hash = next(&self.hash, record);
        self.trail.extend_from_slice(&self.hash[..TRAIL_STEP_BYTES]);
    }
}

/// What of the chain became durable and nobody has asked for yet.
#[derive(Default)]
pub(super) struct Unclaimed(Mutex<Option<ChainProgress>>);

impl Unclaimed {
    /// The events `first_seq` to `last_seq` became durable; `chain` stands behind them.
    pub fn add(&self, first_seq: u64, last_seq: u64, chain: &Chain) {
        let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let none = || ChainProgress { first_seq, last_seq, chain: chain.hash, trail: Some(Vec::new()) };
        let progress = held.get_or_insert_with(none);
        progress.last_seq = last_seq;
        progress.chain = chain.hash;
        progress.trail = progress.trail.take().filter(|trail| {
            // Beyond the bound nothing is kept: a trail with a hole would be of no use.
            trail.len() + chain.trail.len() <= TRAIL_UNCLAIMED_BYTES_MAX
        });
        if let Some(trail) = &mut progress.trail {
            trail.extend_from_slice(&chain.trail);
        }
    }

    /// What `other` holds became durable.
    pub fn absorb(&self, other: &Self) {
        let Some(ChainProgress { first_seq, last_seq, chain, trail }) = other.take() else { return };
        match trail {
            Some(trail) => self.add(first_seq, last_seq, &Chain { hash: chain, trail }),
            None => {
                let mut held = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                let first_seq = held.as_ref().map_or(first_seq, |before| before.first_seq);
                *held = Some(ChainProgress { first_seq, last_seq, chain, trail: None });
            }
        }
    }

    pub fn take(&self) -> Option<ChainProgress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(bytes: &[u8]) -> String {
        bytes.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Made with `printf | sha256sum`; they hold for ever.
    #[test]
    fn the_hashes_are_those_of_the_format() {
        let zero = start("abcdefghijkl");
        assert_eq!(hex(&zero), "92053f37aff5cc72f0da6aa99fdf302f72b9f419bbb1a4b8694a30cfa095cd9c");
        assert_eq!(hex(&next(&zero, b"record")), "9a610132f7fbba7a4f6e2605b9e23eedaebf8e8839b4231d7a569cc1513f9070");
    }

    #[test]
    fn what_nobody_takes_is_bounded_and_the_hash_goes_on() {
        let unclaimed = Unclaimed::default();
        let mut chain = Chain::after([7; 32]);
        let step = TRAIL_UNCLAIMED_BYTES_MAX / TRAIL_STEP_BYTES / 2;
        let mut seq = 1;
        for round in 0..4 {
            chain.trail = vec![round; step * TRAIL_STEP_BYTES];
            chain.hash = [round; 32];
            unclaimed.add(seq, seq + step as u64 - 1, &chain);
            seq += step as u64;
            if round == 1 {
                let taken = unclaimed.take().expect("there is something");
                assert_eq!((taken.first_seq, taken.last_seq, taken.chain), (1, seq - 1, [1; 32]));
                assert_eq!(taken.trail.map(|trail| trail.len()), Some(TRAIL_UNCLAIMED_BYTES_MAX));
                assert_eq!(unclaimed.take(), None);
            }
        }
        unclaimed.add(seq, seq, &Chain::after([9; 32]));
        chain.trail = vec![9; 2];
        unclaimed.add(seq + 1, seq + 1, &chain);
        let taken = unclaimed.take().expect("there is something");
        assert_eq!((taken.last_seq, taken.chain, taken.trail), (seq + 1, [3; 32], None));
    }
}

//! Random choices that can be made again: everything follows from one seed, which a failing test shows.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Names the seed of a run that is to be repeated.
const SEED: &str = "TORTURE_SEED";

/// One word for another, without any pattern to see (the finaliser of SplitMix64).
#[must_use]
pub fn mix(word: u64) -> u64 {
    let word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

pub struct Dice {
    state: u64,
}

impl Dice {
    /// From the seed that was asked for, else from one never used before.
    #[must_use]
    pub fn cast() -> Self {
        let asked = std::env::var(SEED).ok().and_then(|text| text.parse().ok());
        let state = asked.unwrap_or_else(|| RandomState::new().hash_one(0));
        eprintln!("{SEED}={state}");
        Self { state }
    }

    pub fn word(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number in `range`, which is not empty.
    pub fn within(&mut self, range: Range<u64>) -> u64 {
        range.start + self.word() % (range.end - range.start)
    }

    pub fn index(&mut self, length: usize) -> usize {
        usize::try_from(self.word() % length as u64).expect("it is below a usize")
    }
}

//! A filter that tells most tables that know nothing of an id from those that do.
//!
//! A Bloom filter in sections of 4 KiB, of lines of 64 bytes: all bits of an id lie in one line, so
//! asking costs one section. With 12 bits an id about one in 150 questions is answered "perhaps"
//! in vain.

use crate::index::table::format::SECTION_BYTES;

const BITS_PER_ID: usize = 12;
const PROBES: u32 = 6;
const LINE_BYTES: usize = 64;
const LINES: usize = SECTION_BYTES / LINE_BYTES;

/// Hash of an id; on disk, so it never changes.
#[must_use]
pub fn hash(id: &[u8]) -> u64 {
    const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;
    let mut hash = id.len() as u64;
    for chunk in id.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        hash = (hash ^ u64::from_le_bytes(word)).wrapping_mul(FACTOR);
        hash ^= hash >> 29;
    }
    hash = hash.wrapping_mul(0xbf58_476d_1ce4_e5b9);
    hash ^ hash >> 32
}

/// How many sections hold that many ids.
#[must_use]
pub fn sections_for(ids: usize) -> u32 {
    u32::try_from((ids * BITS_PER_ID).div_ceil(SECTION_BYTES * 8).max(1)).unwrap_or(u32::MAX)
}

/// The section that an id is in.
#[must_use]
pub fn section_of(hash: u64, sections: u32) -> u32 {
    (((hash >> 32) * u64::from(sections)) >> 32) as u32
}

pub fn insert(section: &mut [u8], hash: u64) {
    for (byte, bit) in probes(hash) {
        section[byte] |= bit;
    }
}

#[must_use]
pub fn may_hold(section: &[u8], hash: u64) -> bool {
    probes(hash).all(|(byte, bit)| section.get(byte).is_none_or(|held| held & bit != 0))
}

/// Places of the bits of an id in its section.
fn probes(hash: u64) -> impl Iterator<Item = (usize, u8)> {
    let line = hash as usize % LINES;
    let spread = hash.wrapping_mul(0x94d0_49bb_1331_11eb);
    (0..PROBES).map(move |probe| {
        let bit = (spread >> (10 + 9 * probe)) as usize % (LINE_BYTES * 8);
        (line * LINE_BYTES + bit / 8, 1 << (bit % 8))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_is_never_denied_and_the_rest_mostly() {
        let ids = 40_000;
        let sections = sections_for(ids);
        let mut filter = vec![vec![0; SECTION_BYTES]; sections as usize];
        let id = |number: usize| hash(format!("\x09\0\0\0\rwork-ab12cd34\0\0\0\x0br-a1b2-{number}").as_bytes());
        for number in 0..ids {
            insert(&mut filter[section_of(id(number), sections) as usize], id(number));
        }
        let held = |number: usize| may_hold(&filter[section_of(id(number), sections) as usize], id(number));
        assert!((0..ids).all(held));
        let in_vain = (ids..2 * ids).filter(|number| held(*number)).count();
        assert!(in_vain < ids / 50, "{in_vain} of {ids}");
    }
}

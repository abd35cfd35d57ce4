//! Sets of stretches: runs of 1,024 sequence numbers, by which a walk passes over what cannot match.

use crate::index::wire::{Meaningless, Parts, Taken};

/// A stretch holds this many numbers: two to this power.
const STRETCH_BITS: u32 = 10;

/// The stretch that a number lies in.
#[must_use]
pub fn stretch_of(seq: u64) -> u64 {
    seq >> STRETCH_BITS
}

/// The first number of a stretch.
#[must_use]
pub fn first_seq_of(stretch: u64) -> u64 {
    stretch.checked_shl(STRETCH_BITS).filter(|first| first >> STRETCH_BITS == stretch).unwrap_or(u64::MAX)
}

/// A set, as rising ranges that do not touch each other.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Stretches(Vec<(u64, u64)>);

impl Stretches {
    /// Cheap when stretches come in rising order. True when the set grew by a range.
    pub fn insert(&mut self, stretch: u64) -> bool {
        match self.0.last_mut() {
            Some((first, last)) if stretch >= *first && stretch <= last.saturating_add(1) => {
                *last = stretch.max(*last);
                false
            }
            Some((_, last)) if stretch < *last => {
                self.extend(&Self(vec![(stretch, stretch)]));
                true
            }
            _ => {
                self.0.push((stretch, stretch));
                true
            }
        }
    }

    pub fn extend(&mut self, other: &Self) {
        self.0.extend_from_slice(&other.0);
        self.0.sort_unstable();
        let mut united: Vec<(u64, u64)> = Vec::with_capacity(self.0.len());
        for (first, last) in self.0.drain(..) {
            match united.last_mut() {
                Some((_, end)) if first <= end.saturating_add(1) => *end = last.max(*end),
                _ => united.push((first, last)),
            }
        }
        self.0 = united;
    }

    /// Whether any of the numbers from `first_seq` to `last_seq` may be meant.
    #[must_use]
    pub fn touch(&self, first_seq: u64, last_seq: u64) -> bool {
        let (first, last) = (stretch_of(first_seq), stretch_of(last_seq));
        let next = self.0.partition_point(|(_, end)| *end < first);
        self.0.get(next).is_some_and(|(begin, _)| *begin <= last)
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        let mut next = 0;
        for (first, last) in &self.0 {
            out.number(first - next).number(last - first);
            next = *last;
        }
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Meaningless> {
        let mut input = Taken(bytes);
        let (mut ranges, mut next) = (Vec::new(), 0u64);
        while !input.is_empty() {
            let first = next.checked_add(input.number()?).ok_or(Meaningless)?;
            next = first.checked_add(input.number()?).ok_or(Meaningless)?;
            ranges.push((first, next));
        }
        Ok(Self(ranges))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in_and_reads_back() {
        let mut set = Stretches::default();
        for stretch in [7, 7, 8, 3, 100, 9, 4, 99] {
            set.insert(stretch);
        }
        assert_eq!(set, Stretches(vec![(3, 4), (7, 9), (99, 100)]));
        assert_eq!(Stretches::decode(&set.encode()).ok(), Some(set.clone()));
        let holds = |first: u64, last: u64| set.touch(first_seq_of(first), first_seq_of(last));
        assert_eq!(
            [(0, 2), (0, 3), (4, 6), (5, 6), (9, 98), (101, 500)].map(|(f, l)| holds(f, l)),
            [false, true, true, false, true, false]
        );
        let mut other = Stretches::default();
        other.insert(5);
        other.insert(6);
        set.extend(&other);
        assert_eq!(set, Stretches(vec![(3, 9), (99, 100)]));
    }

    #[test]
    fn stretches_have_ends() {
        assert_eq!((stretch_of(1023), stretch_of(1024), first_seq_of(1)), (0, 1, 1024));
        assert_eq!(first_seq_of(stretch_of(u64::MAX) + 1), u64::MAX);
    }
}

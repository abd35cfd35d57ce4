//! A walk over blocks that is begun once and gone on with now and then, while segments are sealed,
//! written anew and dropped under it: it misses nothing that is there and sees nothing twice.

use super::super::super::BlockWalk;
use super::world::{Running, World};
use crate::StorageError;

/// A walk, and what it must come to next.
pub struct Walk {
    blocks: BlockWalk,
    next_seq: u64,
    /// It goes up to here.
    last_seq: u64,
}

impl World {
    pub fn walk(&mut self, running: &mut Running) {
        let reader = running.log.reader();
        let walk = running.walk.get_or_insert_with(|| Walk {
            blocks: reader.blocks(reader.start()).expect("it is known"),
            next_seq: reader.first_seq(),
            last_seq: reader.durable().expect("it is known").last_seq,
        });
        for _ in 0..=self.dice.below(4) {
            match walk.commit(self.book.first_seq) {
                Ok(true) => {}
                Ok(false) => {
                    running.walk = None;
                    return;
                }
                Err(error) => {
                    running.walk = None;
                    // The file of a segment that was written anew or dropped may have been overwritten.
                    if !matches!(error, StorageError::Moved) {
                        running.excuse(&error);
                    }
                    return;
                }
            }
        }
    }
}

impl Walk {
    /// Comes to the next commit, which may be the first one left; whether there was one.
    fn commit(&mut self, first_seq: u64) -> Result<bool, StorageError> {
        let (mut count, mut begins, mut ends) = (0, u64::MAX, 0);
        for block in &mut self.blocks {
            let header = block?.header;
            count += u64::from(header.count);
            begins = begins.min(header.first_seq);
            ends = ends.max(header.last_seq);
            if header.end_of_commit {
                let skipped = begins > self.next_seq && begins <= first_seq;
                assert!(begins == self.next_seq || skipped, "a walk came from {} to {begins}", self.next_seq);
                assert_eq!(ends - begins + 1, count, "the numbers of a commit");
                self.next_seq = ends + 1;
                return Ok(true);
            }
        }
        assert_eq!(count, 0, "a walk ends within a commit");
        assert!(self.next_seq > self.last_seq || first_seq > self.next_seq, "a walk ended before {}", self.next_seq);
        Ok(false)
    }
}

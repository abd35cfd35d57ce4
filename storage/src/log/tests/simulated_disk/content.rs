//! One file of the simulated disk: what running processes read, and what a power cut would leave.
//!
//! What is modelled, and why: a write is durable after the next sync that succeeds; until then each
//! sector of 512 bytes of it may have reached the disk or not, in any order, as real devices promise
//! no more. `fdatasync` covers data and a length that grew, since data could not be read back without
//! it; a length that shrank needs `fsync`, as POSIX lets it. A length not yet durable may come out as
//! any that the file had meanwhile, and bytes that were never written read as zeros: no file system
//! worth using shows another file's old bytes. A sync that failed gives pages up for good: readers see
//! them until they are dropped from memory, later syncs succeed without them. A write that fails or is
//! cut short ends at the edge of a sector, since what lies within one is copied and stored as a whole.

use super::super::Dice;

pub(super) const SECTOR_BYTES: usize = 512;

#[derive(Clone)]
enum Change {
    Bytes { offset: usize, bytes: Vec<u8> },
    Length(usize),
}

#[derive(Clone, Default)]
pub(super) struct Content {
    /// As processes see it.
    pub live: Vec<u8>,
    /// As it is known to be on the disk.
    disk: Vec<u8>,
    /// Since the last sync, oldest first.
    pending: Vec<Change>,
    /// Given up by syncs that failed, all of it older than what is pending.
    lost: Vec<Change>,
}

impl Change {
    fn apply(&self, to: &mut Vec<u8>) {
        match self {
            Change::Length(length) => to.resize(*length, 0),
            Change::Bytes { offset, bytes } => {
                to.resize(to.len().max(offset + bytes.len()), 0);
                to[*offset..offset + bytes.len()].copy_from_slice(bytes);
            }
        }
    }

    /// The change in pieces, none of which reaches over the edge of a sector.
    fn pieces(&self) -> Vec<Change> {
        let Change::Bytes { offset, bytes } = self else { return vec![self.clone()] };
        let mut pieces = Vec::new();
        let mut at = 0;
        while at < bytes.len() {
            let until = (at + SECTOR_BYTES - (offset + at) % SECTOR_BYTES).min(bytes.len());
            pieces.push(Change::Bytes { offset: offset + at, bytes: bytes[at..until].to_vec() });
            at = until;
        }
        pieces
    }
}

impl Content {
    pub fn write(&mut self, bytes: &[u8], offset: usize) {
        self.supersede_lost(offset, offset + bytes.len());
        self.change(Change::Bytes { offset, bytes: bytes.to_vec() });
    }

    pub fn set_length(&mut self, length: usize) {
        self.supersede_lost(length, usize::MAX);
        self.change(Change::Length(length));
    }

    /// What was given up between `from` and `until` matters no more.
    fn supersede_lost(&mut self, from: usize, until: usize) {
        for change in std::mem::take(&mut self.lost) {
            let Change::Bytes { offset, bytes } = change else { continue };
            let end = offset + bytes.len();
            let (before, behind) = (from.clamp(offset, end), until.clamp(offset, end));
            if before > offset {
                self.lost.push(Change::Bytes { offset, bytes: bytes[..before - offset].to_vec() });
            }
            if behind < end {
                self.lost.push(Change::Bytes { offset: behind, bytes: bytes[behind - offset..].to_vec() });
            }
        }
    }

    fn change(&mut self, change: Change) {
        change.apply(&mut self.live);
        self.pending.push(change);
    }

    /// A sync that succeeds.
    pub fn sync(&mut self, with_length: bool) {
        let before = self.disk.clone();
        for change in self.pending.drain(..) {
            change.apply(&mut self.disk);
        }
        let length = self.disk.len();
        if !with_length && length < before.len() {
            self.disk.extend_from_slice(&before[length..]);
            self.pending.push(Change::Length(length));
        }
    }

    /// A sync that fails: some or all of what it should have written never gets written. The length is
    /// kept in another place and is still to be synced.
    pub fn fail_sync(&mut self, dice: &mut Dice) {
        let all = dice.one_in(2);
        for change in std::mem::take(&mut self.pending) {
            for piece in change.pieces() {
                match piece {
                    Change::Length(_) => {}
                    _ if all || dice.one_in(2) => self.lost.push(piece),
                    _ => piece.apply(&mut self.disk),
                }
            }
        }
        if self.disk.len() != self.live.len() {
            self.pending.push(Change::Length(self.live.len()));
        }
    }

    /// Memory is needed for something else: what a failed sync gave up is read from the disk again.
    pub fn forget_lost(&mut self) {
        if self.lost.is_empty() {
            return;
        }
        self.lost.clear();
        let length = self.live.len();
        self.live.clone_from(&self.disk);
        self.live.resize(length, 0);
        for change in &self.pending {
            change.apply(&mut self.live);
        }
        self.live.resize(length, 0);
    }

    /// The power goes: what was not synced arrived, or did not, or in part and in any order.
    pub fn cut_power(&mut self, dice: &mut Dice) {
        let (lost, pending) = (std::mem::take(&mut self.lost), std::mem::take(&mut self.pending));
        let arrives = match dice.below(4) {
            0 => 0,
            1 => 8,
            _ => 4,
        };
        for change in &lost {
            for piece in change.pieces() {
                if arrives == 4 && dice.one_in(8) {
                    let length = self.disk.len();
                    piece.apply(&mut self.disk);
                    self.disk.truncate(length);
                }
            }
        }
        for change in &pending {
            for piece in change.pieces() {
                if dice.below(8) < arrives {
                    piece.apply(&mut self.disk);
                }
            }
        }
        self.live.clone_from(&self.disk);
    }
}

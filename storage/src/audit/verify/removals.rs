//! Holds the removed events of each segment against the removals on record.
//!
//! Announcements of the same name, segment and generation replace each other, since a process that
//! died in between makes them again; others add up. What was announced since upkeep wrote its note is on
//! its way while the generation that the note names does not hold. The note may outlive several openings
//! of the log, each of which came to its end before upkeep did anything. Without it, a segment that has
//! not come as far as announced is an older copy.

use std::collections::{BTreeMap, HashMap};

use super::parse::Announcement;
use super::report::{Findings, Problem};
use crate::event::removed::WHOLE_SEGMENT;
use crate::limits::SEQ_MAX;
use crate::upkeep::Pending;

#[derive(Debug, Clone, Copy)]
struct Said {
    seq: u64,
    first_seq: u64,
    last_seq: u64,
    count: u64,
}

/// A segment as it was read.
struct Held {
    generation: u64,
    first_seq: u64,
    last_seq: u64,
    removed: u64,
}

/// Counts for the report.
#[derive(Debug, Default)]
pub(super) struct Told {
    /// Removed events whose record no checkpoint covers.
    pub unsigned: u64,
    /// Events whose removal is announced and not done yet.
    pub pending: u64,
}

#[derive(Default)]
pub(super) struct Removals {
    note: Option<Pending>,
    /// What was announced since the note was written, in order.
    noted: Vec<(u64, u64, [u8; 32], Said)>,
    /// Where the log ended when reading began: what was announced later may concern segments that were
    /// read before it.
    began_seq: u64,
    said: HashMap<(u64, u64), HashMap<[u8; 32], Said>>,
    held: BTreeMap<u64, Held>,
}

impl Removals {
    /// Reading began when the log ended with event `began_seq`, and upkeep's note was `note`.
    pub fn since(began_seq: u64, note: Option<Pending>) -> Self {
        Self { began_seq, note, ..Self::default() }
    }

    pub fn announced(&mut self, seq: u64, it: &Announcement) {
        let said = Said { seq, first_seq: it.first_seq, last_seq: it.last_seq, count: it.count };
        if self.note.is_some_and(|note| seq > note.after_seq) {
            self.noted.push((it.segment, it.generation, it.name, said));
        } else {
            self.said.entry((it.segment, it.generation)).or_default().insert(it.name, said);
        }
    }

    /// Whether what was announced since the note was written is on its way; returns how many events that
    /// concerns. Else it counts like everything else.
    fn settle_noted(&mut self) -> u64 {
        let Some(note) = self.note else { return 0 };
        let segment = u64::from(note.segment);
        let to_come = self.held.get(&segment).is_some_and(|held| held.generation < note.generation);
        let noted = std::mem::take(&mut self.noted);
        if to_come {
            let of_note =
                noted.iter().filter(|(number, generation, ..)| (*number, *generation) == (segment, note.generation));
            return total(of_note.map(|(.., said)| said));
        }
        for (number, generation, name, said) in noted {
            self.said.entry((number, generation)).or_default().insert(name, said);
        }
        0
    }

    /// A segment begins; what is counted from now on is in it.
    pub fn segment(&mut self, number: u32, generation: u16, first_seq: u64) {
        let held = Held { generation: u64::from(generation), first_seq, last_seq: first_seq, removed: 0 };
        self.held.insert(u64::from(number), held);
    }

    pub fn removed(&mut self, count: u64) {
        if let Some(held) = self.held.values_mut().next_back() {
            held.removed += count;
        }
    }

    pub fn reached(&mut self, seq: u64) {
        if let Some(held) = self.held.values_mut().next_back() {
            held.last_seq = held.last_seq.max(seq);
        }
    }

    /// Says what does not fit.
    pub fn check(&mut self, signed_through: u64, oldest_seq: u64, findings: &mut Findings) -> Told {
        let mut told = Told { pending: self.settle_noted(), ..Told::default() };
        for (number, held) in &self.held {
            let on_record = self.on_record(*number, |generation| generation <= held.generation);
            let count = total(on_record.iter());
            if count != held.removed {
                let what = format!("{} of its events are removed, and {count} are on record as removed", held.removed);
                let range = (held.first_seq, held.last_seq);
                findings.add(Problem::Removal, range, &format!("segment {number}"), what);
            }
            self.check_coming(*number, held, findings);
            let unsigned = total(on_record.iter().filter(|said| said.seq > signed_through));
            told.unsigned = told.unsigned.saturating_add(unsigned);
        }
        if let Some((oldest, _)) = self.held.first_key_value().filter(|(oldest, _)| **oldest > 1) {
            self.check_dropped(oldest - 1, oldest_seq, findings);
        }
        told
    }

    /// What is announced to go further than the segment has come.
    fn check_coming(&self, number: u64, held: &Held, findings: &mut Findings) {
        let coming =
            self.said.iter().filter(|((segment, generation), _)| *segment == number && *generation > held.generation);
        for (_, said) in coming {
            let count = total(said.values().filter(|said| said.seq <= self.began_seq));
            if count > 0 {
                let what = format!("{count} of its events are on record as removed, and are there");
                findings.add(Problem::Removal, (held.first_seq, held.last_seq), &format!("segment {number}"), what);
            }
        }
    }

    /// All events of the last segment that is gone are on record: those records came after it, and are
    /// there for as long as the segment behind it is.
    fn check_dropped(&self, number: u64, oldest_seq: u64, findings: &mut Findings) {
        let whole = self.on_record(number, |generation| generation == WHOLE_SEGMENT);
        let all = self.on_record(number, |_| true);
        let first_seq = all.iter().filter(|said| said.count > 0).map(|said| said.first_seq).min().unwrap_or(1);
        let last_seq = all.iter().filter(|said| said.count > 0).map(|said| said.last_seq).max().unwrap_or(0);
        let count = total(all.iter());
        let complete = last_seq + 1 == oldest_seq && Some(count) == oldest_seq.checked_sub(first_seq);
        if whole.is_empty() || !complete {
            let what = format!("it is gone, and {count} of its events are on record as removed");
            let range = (first_seq.min(oldest_seq - 1), oldest_seq - 1);
            findings.add(Problem::Removal, range, &format!("segment {number}"), what);
        }
    }

    fn on_record(&self, segment: u64, counts: impl Fn(u64) -> bool) -> Vec<Said> {
        let of_segment = self.said.iter().filter(|((number, generation), _)| *number == segment && counts(*generation));
        of_segment.flat_map(|(_, said)| said.values().copied()).collect()
    }
}

/// Whatever was written: it cannot be more than a log can hold.
fn total<'a>(said: impl Iterator<Item = &'a Said>) -> u64 {
    said.fold(0, |count: u64, said| count.saturating_add(said.count)).min(SEQ_MAX)
}

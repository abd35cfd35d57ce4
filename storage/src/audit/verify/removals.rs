//! Holds the removed events of each segment against the removals on record.
//!
//! Announcements of the same name, segment and generation replace each other, since a process that
//! died in between makes them again; others add up. What was announced for a generation that does not
//! hold yet is on its way, if upkeep's note says so; else an older copy is back. The note may outlive
//! several openings of the log, each of which came to its end before upkeep did anything.

use std::collections::{BTreeMap, HashMap};

use super::parse::Announcement;
use super::report::{Findings, Problem};
use crate::event::removed::WHOLE_SEGMENT;
use crate::limits::SEQ_MAX;

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
    /// Segment and generation of a removal that is on its way, as upkeep's note says.
    pub note: Option<(u32, u64)>,
    /// Where the log ended when reading began: what was announced later may concern segments that were
    /// read before it.
    began_seq: u64,
    said: HashMap<(u64, u64), HashMap<[u8; 32], Said>>,
    held: BTreeMap<u64, Held>,
}

impl Removals {
    /// Reading began when the log ended with event `began_seq`.
    pub fn since(began_seq: u64) -> Self {
        Self { began_seq, ..Self::default() }
    }

    pub fn announced(&mut self, seq: u64, it: &Announcement) {
        let said = Said { seq, first_seq: it.first_seq, last_seq: it.last_seq, count: it.count };
        self.said.entry((it.segment, it.generation)).or_default().insert(it.name, said);
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
    pub fn check(&self, signed_through: u64, oldest_seq: u64, findings: &mut Findings) -> Told {
        let mut told = Told::default();
        for (number, held) in &self.held {
            let on_record = self.on_record(*number, |generation| generation <= held.generation);
            let count = total(on_record.iter());
            if count != held.removed {
                let what = format!("{} of its events are removed, and {count} are on record as removed", held.removed);
                let range = (held.first_seq, held.last_seq);
                findings.add(Problem::Removal, range, &format!("segment {number}"), what);
            }
            self.check_coming(*number, held, &mut told, findings);
            let unsigned = total(on_record.iter().filter(|said| said.seq > signed_through));
            told.unsigned = told.unsigned.saturating_add(unsigned);
        }
        if let Some((oldest, _)) = self.held.first_key_value().filter(|(oldest, _)| **oldest > 1) {
            self.check_dropped(oldest - 1, oldest_seq, findings);
        }
        told
    }

    /// What is announced to go further than the segment has come.
    fn check_coming(&self, number: u64, held: &Held, told: &mut Told, findings: &mut Findings) {
        let coming =
            self.said.iter().filter(|((segment, generation), _)| *segment == number && *generation > held.generation);
        for ((_, generation), said) in coming {
            let known = said.values().filter(|said| said.seq <= self.began_seq);
            let count = total(known);
            let noted = self.note.is_some_and(|(segment, next)| (u64::from(segment), next) == (number, *generation));
            if noted {
                told.pending = told.pending.saturating_add(count);
            } else if count > 0 {
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

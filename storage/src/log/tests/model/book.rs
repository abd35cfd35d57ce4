//! The abstract log: what must be there, what may be there, and what must not.
//!
//! Everything that was acknowledged or that a reader ever showed must be there ever after, byte for
//! byte and under the same number, until its removal was asked for. What was offered, or was in a
//! commit that failed, may turn up: as whole requests, in the order of asking, without one left out.
//! A removal that failed, or that a crash cut short, was either done as a whole or not at all; the
//! next opening tells which, and it stays at that.

use std::collections::{BTreeSet, VecDeque};

use super::super::super::{RemovedRun, chain};
use crate::event::catalog::{Gap, LogOpened, LogRecovered};
use crate::event::{EventView, Kind, Payload};

#[derive(Default)]
pub struct Book {
    /// Canonical record of each event that was seen, from number 1 on, removed ones too.
    records: Vec<Vec<u8>>,
    /// The chain hash before the first event, and after each that was seen.
    chain: Vec<[u8; 32]>,
    /// The highest number that was acknowledged: it survives the death of the process.
    pub acknowledged: u64,
    /// The highest number that is known to be synced: it survives a power cut.
    pub synced: u64,
    /// Records behind those that may have been lost with the power, oldest first.
    unsynced: VecDeque<Vec<u8>>,
    /// Bodies of requests that may be recorded behind all of those, oldest first.
    pub doubtful: VecDeque<Vec<Vec<u8>>>,
    /// Events of the first of them that were seen already.
    seen_of_first: usize,
    /// Numbers that were removed one by one.
    pub removed: BTreeSet<u64>,
    /// Sets of numbers of which each may have been removed.
    pub removals_in_doubt: Vec<BTreeSet<u64>>,
    /// The oldest number that is retained, and what it may be instead.
    pub first_seq: u64,
    pub first_seqs_in_doubt: BTreeSet<u64>,
    pub epoch: u64,
    /// The last number before the last opening.
    pub opened_behind: u64,
    /// Whether the end before the last opening was an orderly one.
    opened_clean: bool,
    /// What the next `log.opened` must say about the end before it, where that is known.
    pub clean: Option<bool>,
    /// Times that the clock showed.
    pub times: BTreeSet<i64>,
}

impl Book {
    pub fn last_seq(&self) -> u64 {
        self.records.len() as u64
    }

    pub fn record(&self, seq: u64) -> &[u8] {
        &self.records[seq as usize - 1]
    }

    /// The chain hash after an event, or before the first.
    pub fn chain_after(&self, seq: u64) -> [u8; 32] {
        self.chain[seq as usize]
    }

    /// How many events may still turn up before anything else does.
    pub fn doubtful_events(&self) -> u64 {
        let events: usize = self.doubtful.iter().map(Vec::len).sum();
        (events - self.seen_of_first) as u64
    }

    /// Everything up to there was acknowledged and synced.
    pub fn ensure(&mut self, last_seq: u64) {
        self.acknowledged = self.acknowledged.max(last_seq);
        self.synced = self.synced.max(last_seq);
    }

    /// What was acknowledged without being synced is in doubt again.
    pub fn doubt_unsynced(&mut self) {
        let unsynced = self.records.split_off((self.synced as usize).min(self.records.len()));
        for record in unsynced.into_iter().rev() {
            self.unsynced.push_front(record);
        }
        self.chain.truncate(self.records.len() + 1);
        self.acknowledged = self.acknowledged.min(self.synced);
        let views = self.records.iter().rev().flat_map(|record| EventView::split_from(record));
        let opened = views.filter_map(|(event, _)| LogOpened::take(&event).ok()).next();
        self.epoch = opened.map_or(0, |opened| opened.epoch);
        (self.clean, self.opened_clean) = (None, false);
    }

    pub fn has_doubts(&self) -> bool {
        !self.removals_in_doubt.is_empty() || !self.first_seqs_in_doubt.is_empty()
    }

    /// A log that has this id was met.
    pub fn meet_log(&mut self, log_id: &str) {
        if self.chain.is_empty() || self.records.is_empty() {
            self.chain = vec![chain::start(log_id)];
            self.first_seq = 1;
        }
        assert_eq!(self.chain[0], chain::start(log_id), "another log is in its place");
    }

    /// Holds an event that a reader shows against what is known; a new one becomes known.
    pub fn meet(&mut self, event: &EventView<'_>) {
        if event.seq <= self.last_seq() {
            assert!(event.record == self.record(event.seq), "event {} is not what it was", event.seq);
            assert!(!self.removed.contains(&event.seq), "event {} is back", event.seq);
            return;
        }
        assert_eq!(event.seq, self.last_seq() + 1, "a number is left out");
        assert!(self.times.contains(&event.recorded_at_micros), "event {} bears a time that never was", event.seq);
        let is_known = self.unsynced.pop_front().is_some_and(|record| record == event.record);
        if !is_known {
            self.unsynced.clear();
        }
        match event.kind() {
            _ if is_known => self.meet_again(event),
            Some(Kind::LogOpened) => self.meet_opening(event),
            Some(Kind::LogSealed) => assert_eq!(self.seen_of_first, 0, "a request is torn"),
            Some(Kind::LogRecovered) => self.meet_recovery(event),
            Some(Kind::Gap) => self.meet_counted(event),
            _ => self.meet_asked_for(event),
        }
        self.chain.push(chain::next(&self.chain_after(self.last_seq()), event.record));
        self.records.push(event.record.to_vec());
    }

    /// What might have been lost was not.
    fn meet_again(&mut self, event: &EventView<'_>) {
        self.opened_clean = false;
        if let Ok(opened) = LogOpened::take(event) {
            self.epoch = opened.epoch;
            self.opened_behind = self.last_seq();
        }
    }

    fn meet_opening(&mut self, event: &EventView<'_>) {
        let opened = LogOpened::take(event).expect("it decodes");
        assert_eq!(self.seen_of_first, 0, "a request is torn");
        assert!(self.last_seq() >= self.acknowledged, "{} of {} are left", self.last_seq(), self.acknowledged);
        assert!(opened.epoch > self.epoch, "epoch {} follows {}", opened.epoch, self.epoch);
        assert_eq!(opened.last_seq, self.last_seq(), "what the opening found");
        self.opened_clean = self.clean == Some(true);
        if let Some(clean) = self.clean {
            assert_eq!(opened.clean, clean, "how the epoch before ended");
        }
        self.epoch = opened.epoch;
        self.opened_behind = self.last_seq();
        self.clean = Some(false);
        // What did not turn up before this opening never will.
        self.doubtful.clear();
    }

    fn meet_recovery(&self, event: &EventView<'_>) {
        let recovered = LogRecovered::take(event).expect("it decodes");
        let torn = recovered.what.as_str() == "torn_tail";
        assert!(!(torn && self.opened_clean), "damage behind an orderly end");
    }

    fn meet_asked_for(&mut self, event: &EventView<'_>) {
        let Some(first) = self.doubtful.front() else { panic!("nobody asked for event {}", event.seq) };
        assert!(first[self.seen_of_first] == event.body, "event {} is another one than was asked for", event.seq);
        self.seen_of_first += 1;
        if self.seen_of_first == first.len() {
            self.seen_of_first = 0;
            self.doubtful.pop_front();
        }
    }

    /// A log that ended on a full disk counts what was offered in place of recording it.
    fn meet_counted(&mut self, event: &EventView<'_>) {
        let gap = Gap::take(event).expect("it decodes");
        assert_eq!((gap.what.as_str(), gap.reason.as_str()), ("console.message", "disk_full"));
        assert!(gap.count <= self.doubtful_events(), "event {} counts too many", event.seq);
        self.seen_of_first += gap.count as usize;
        while self.doubtful.front().is_some_and(|first| self.seen_of_first >= first.len()) {
            self.seen_of_first -= self.doubtful.pop_front().map_or(0, |first| first.len());
        }
    }

    /// Holds what a reader tells of removed events against what is known; who asks for it all decides
    /// later whether they may be.
    pub fn meet_removed(&self, run: &RemovedRun) {
        let last = run.first_seq + run.count - 1;
        assert!(last <= self.last_seq(), "events up to {last} are removed before they were shown");
        assert_eq!(run.chain, self.chain_after(last), "the chain behind the removed event {last}");
    }

    /// All that a reader shows at this moment was met. It may show less than another one did, never
    /// less than was acknowledged.
    pub fn check_met(&self, last_seq: u64) {
        assert_eq!(self.seen_of_first, 0, "a request is torn at the end");
        assert!(last_seq <= self.last_seq(), "only {} of {last_seq} were shown", self.last_seq());
        assert!(last_seq >= self.acknowledged, "{last_seq} of {} are left", self.acknowledged);
    }

    /// A log that was just opened begins with `first_seq` and has `gone` removed behind that: no doubt
    /// is left.
    pub fn resolve(&mut self, first_seq: u64, gone: &BTreeSet<u64>) {
        let in_doubt = std::mem::take(&mut self.first_seqs_in_doubt);
        assert!(
            first_seq == self.first_seq || in_doubt.contains(&first_seq),
            "it begins with {first_seq}, not with {}",
            self.first_seq
        );
        self.first_seq = first_seq;
        // What was not there by now never will be.
        self.unsynced.clear();
        self.doubtful.clear();
        for doubt in std::mem::take(&mut self.removals_in_doubt) {
            let left: BTreeSet<u64> = doubt.range(first_seq..).copied().collect();
            if !left.is_empty() && left.is_subset(gone) {
                self.removed.extend(left);
            }
        }
        let known: BTreeSet<u64> = self.removed.range(first_seq..).copied().collect();
        assert_eq!(known, *gone, "what is removed");
    }
}

//! The abstract log: what must be there, what may be there, and what must not.
//!
//! Everything that was acknowledged or that a reader ever showed must be there ever after, byte for
//! byte and under the same number, until its removal was asked for. What was offered, or was in a
//! commit that failed, may turn up: as whole requests, in the order of asking, without one left out.

use std::collections::{BTreeSet, VecDeque};

use crate::event::catalog::LogOpened;
use crate::event::codec::put_record;
use crate::event::{EventView, Kind, Payload};

#[derive(Default)]
pub struct Book {
    /// Canonical record of each event that was seen, from number 1 on, removed ones too.
    records: Vec<Vec<u8>>,
    /// The highest number that was acknowledged.
    pub acknowledged: u64,
    /// Bodies of requests that may be recorded, oldest first.
    pub doubtful: VecDeque<Vec<Vec<u8>>>,
    /// Events of the first of them that were seen already.
    seen_of_first: usize,
    pub removed: BTreeSet<u64>,
    pub epoch: u64,
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

    /// How many events may still turn up before anything else does.
    pub fn doubtful_events(&self) -> u64 {
        let events: usize = self.doubtful.iter().map(Vec::len).sum();
        (events - self.seen_of_first) as u64
    }

    /// Holds an event that a reader shows against what is known; a new one becomes known.
    pub fn meet(&mut self, event: &EventView<'_>) {
        let mut record = Vec::new();
        put_record(&mut record, event.seq, event.recorded_at_micros, event.body);
        if event.seq <= self.last_seq() {
            assert!(record == self.record(event.seq), "event {} is not what it was", event.seq);
            return;
        }
        assert_eq!(event.seq, self.last_seq() + 1, "a number is left out");
        assert!(self.times.contains(&event.recorded_at_micros), "event {} bears a time that never was", event.seq);
        match event.kind() {
            Some(Kind::LogOpened) => self.meet_opening(event),
            Some(Kind::LogSealed | Kind::LogRecovered) => assert_eq!(self.seen_of_first, 0, "a request is torn"),
            _ => self.meet_asked_for(event),
        }
        self.records.push(record);
    }

    fn meet_opening(&mut self, event: &EventView<'_>) {
        let opened = LogOpened::take(event).expect("it decodes");
        assert_eq!(self.seen_of_first, 0, "a request is torn");
        assert!(self.last_seq() >= self.acknowledged, "{} of {} are left", self.last_seq(), self.acknowledged);
        assert!(opened.epoch > self.epoch, "epoch {} follows {}", opened.epoch, self.epoch);
        assert_eq!(opened.last_seq, self.last_seq(), "what the opening found");
        if let Some(clean) = self.clean {
            assert_eq!(opened.clean, clean, "how the epoch before ended");
        }
        self.epoch = opened.epoch;
        self.clean = Some(false);
        // What did not turn up before this opening never will.
        self.doubtful.clear();
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

    /// All that a reader shows at this moment was met. It may show less than another one did, never
    /// less than was acknowledged.
    pub fn check_met(&self, last_seq: u64) {
        assert_eq!(self.seen_of_first, 0, "a request is torn at the end");
        assert!(last_seq <= self.last_seq(), "only {} of {last_seq} were shown", self.last_seq());
        assert!(last_seq >= self.acknowledged, "{last_seq} of {} are left", self.acknowledged);
    }
}

//! Follows the chain through all events and says where it leaves the path that signatures state.
//!
//! What must stay true: of the events that a signature covers, none can differ without a finding; where
//! the trail is vouched for, the first one that differs is named exactly, else a range that holds it.
//! After a finding the walk finds back by the next hash that is known to be right, so that one change
//! is one finding.

use super::super::checkpoint::Digest;
use super::anchors::Anchors;
use super::path::Trail;
use super::report::{Finding, Findings, Problem};
use crate::log::RemovedRun;
use crate::log::chain::{self, TRAIL_STEP_BYTES};

/// Where the walk stands.
#[derive(Debug)]
pub(super) struct Standing {
    /// The last number taken in.
    pub seq: u64,
    hash: Digest,
    /// `hash` is not known: events before are unreadable or missing.
    blind: bool,
    /// Where the hashes stored beside the events still are, after a change that was told already: as
    /// long as they lead on from there they are no change of their own.
    aside: Option<Digest>,
    /// From here on the hash is known to be wrong.
    astray: Option<Astray>,
    /// Up to here the hash was right.
    confirmed: u64,
    /// The signed place that comes next.
    next: usize,
    /// The last one that agreed, and when it was signed.
    pub signed: (u64, Option<i64>),
}

#[derive(Debug, Clone, Copy)]
struct Astray {
    first_seq: u64,
    exact: bool,
}

impl Standing {
    fn after(seq: u64, hash: Digest) -> Self {
        Self { seq, hash, blind: false, aside: None, astray: None, confirmed: seq, next: 0, signed: (0, None) }
    }
}

pub(super) struct Follower<'a> {
    pub at: Standing,
    pub findings: Findings,
    /// The segment being read.
    pub place: String,
    anchors: &'a Anchors,
    trail: Trail,
}

impl<'a> Follower<'a> {
    pub fn new(anchors: &'a Anchors, trail: Trail, findings: Findings) -> Self {
        Self { at: Standing::after(0, [0; 32]), findings, place: String::new(), anchors, trail }
    }

    /// The walk begins behind event `seq`, where the chain is said to be `claimed`.
    pub fn begin(&mut self, seq: u64, claimed: Digest) {
        self.at = Standing::after(seq, claimed);
        if self.trail_says(seq, &claimed) == Some(false) {
            let (place, what) =
                (self.place.clone(), "the oldest segment's header has another chain hash than was signed");
            self.findings.add(Problem::Misdescribed, (seq + 1, seq + 1), &place, what);
            self.at.blind = true;
        }
        self.meet_anchors(seq);
    }

    /// A segment says that the chain is `claimed` before its first event.
    pub fn joint(&mut self, claimed: Digest) {
        let at = &mut self.at;
        if at.blind {
            (at.hash, at.blind) = (claimed, false);
            at.confirmed = at.seq;
            return;
        }
        if claimed == at.hash {
            at.aside = None;
            return;
        }
        let first_seq = self.at.seq;
        self.disagree(claimed, first_seq, "the segment's header has another chain hash than the events before it");
    }

    /// The next event, by its canonical bytes.
    pub fn event(&mut self, seq: u64, record: &[u8]) {
        self.at.hash = chain::next(&self.at.hash, record);
        if let Some(aside) = &mut self.at.aside {
            *aside = chain::next(aside, record);
        }
        self.reached(seq, seq);
    }

    /// The next events were removed.
    pub fn removed(&mut self, run: &RemovedRun) {
        let last_seq = run.first_seq + run.count - 1;
        // What comes before has to be right by itself: the run's own hash says nothing about it.
        if self.at.astray.is_some() && self.trail_says(last_seq, &run.chain) == Some(true) {
            self.stray_until(run.first_seq - 1);
        }
        (self.at.hash, self.at.blind, self.at.aside) = (run.chain, false, None);
        self.reached(run.first_seq, last_seq);
    }

    /// Everything from `first_seq` to `last_seq` is taken in, and the chain known to be `hash`.
    fn reached(&mut self, first_seq: u64, last_seq: u64) {
        self.at.seq = last_seq;
        if !self.at.blind && self.at.astray.is_none() {
            match self.trail_says(last_seq, &self.at.hash.clone()) {
                Some(true) => self.at.confirmed = last_seq,
                Some(false) => self.at.astray = Some(Astray { first_seq, exact: true }),
                None => {}
            }
        }
        self.meet_anchors(last_seq);
    }

    fn meet_anchors(&mut self, seq: u64) {
        let (mut next, anchors) = (self.next_anchor(seq), self.anchors);
        while let Some(anchor) = anchors.list.get(next).filter(|anchor| anchor.seq == seq) {
            next += 1;
            if self.at.blind {
                (self.at.hash, self.at.blind) = (anchor.chain, false);
            }
            if self.at.hash == anchor.chain {
                self.at.astray = None;
                self.at.signed = (seq, Some(anchor.at_micros));
            } else {
                let first_seq = self.at.confirmed + 1;
                self.at.astray.get_or_insert(Astray { first_seq, exact: false });
                self.stray_until(seq);
                let stored = std::mem::replace(&mut self.at.hash, anchor.chain);
                self.at.aside.get_or_insert(stored);
            }
            self.at.confirmed = seq;
        }
    }

    /// A commit ends here, and says that the chain is `stored`.
    pub fn commit_end(&mut self, first_seq: u64, stored: Digest) {
        let seq = self.at.seq;
        if self.at.blind {
            (self.at.hash, self.at.blind) = (stored, false);
            if self.trail_says(seq, &stored) == Some(false) {
                self.at.astray = Some(Astray { first_seq: self.at.confirmed + 1, exact: false });
            } else {
                self.at.confirmed = seq;
            }
        } else if stored == self.at.hash {
            self.at.aside = None;
        } else {
            self.disagree(stored, first_seq, "the chain hash in the commit's last block is not that of its events");
        }
    }

    /// Something stored says `stored` where the events say otherwise.
    fn disagree(&mut self, stored: Digest, first_seq: u64, what: &str) {
        if self.at.aside == Some(stored) {
            return;
        }
        let seq = self.at.seq;
        let vouched = self.trail_says(seq, &stored) == Some(true);
        if self.at.astray.is_some() {
            if vouched {
                self.stray_until(seq);
                (self.at.hash, self.at.confirmed) = (stored, seq);
            }
        } else if self.at.confirmed == seq {
            // The events are vouched for, so it is the hash beside them that was changed.
            let place = self.place.clone();
            self.findings.add(Problem::Misdescribed, (first_seq, seq), &place, what);
            self.at.aside = Some(stored);
        } else {
            self.at.astray = Some(Astray { first_seq: self.at.confirmed + 1, exact: false });
            self.stray_until(seq);
            (self.at.hash, self.at.confirmed) = (stored, seq);
        }
    }

    /// Numbers up to `seq` could not be read; a finding says so.
    pub fn lose(&mut self, seq: u64) {
        self.stray_until(self.at.seq);
        (self.at.seq, self.at.blind) = (seq, true);
        self.meet_anchors(seq);
    }

    /// An unsigned place says that the chain is `stated` after the last event taken in.
    pub fn agrees_with(&self, stated: &Digest) -> bool {
        self.at.blind || self.at.astray.is_some() || self.at.hash == *stated || self.at.aside == Some(*stated)
    }

    /// What the chain is here, or is stored as; `None` when it is not known.
    pub fn hash(&self) -> Option<Digest> {
        (!self.at.blind).then_some(self.at.aside.unwrap_or(self.at.hash))
    }

    /// Nothing more comes.
    pub fn end(&mut self) {
        self.stray_until(self.at.seq);
    }

    fn stray_until(&mut self, last_seq: u64) {
        let Some(astray) = self.at.astray.take() else { return };
        let detail = if astray.exact {
            "from this event on the events are not those that were signed"
        } else {
            "one of these events, or more, is not what the hash chain was made of"
        };
        self.findings.put(Finding {
            problem: Problem::Changed,
            first_seq: astray.first_seq,
            last_seq: last_seq.max(astray.first_seq),
            exact: astray.exact,
            place: self.place.clone(),
            detail: detail.into(),
        });
    }

    /// Whether the trail, where it is vouched for, has the hash `hash` after event `seq`.
    fn trail_says(&mut self, seq: u64, hash: &Digest) -> Option<bool> {
        let next = self.next_anchor(seq);
        let anchor = self.anchors.list.get(next)?;
        if !anchor.trail_holds || seq <= anchor.since_seq {
            return None;
        }
        let entry = self.trail.entry(seq)?;
        Some(entry == hash[..TRAIL_STEP_BYTES])
    }

    /// The first signed place at or after `seq`, which never falls.
    fn next_anchor(&mut self, seq: u64) -> usize {
        let list = &self.anchors.list;
        while list.get(self.at.next).is_some_and(|anchor| anchor.seq < seq) {
            self.at.next += 1;
        }
        self.at.next
    }
}

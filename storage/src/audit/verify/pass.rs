//! One reading of the whole log, in order.
//!
//! Up to the high-water mark, and up to the newest checkpoint, everything has to be there. What lies
//! behind both is taken in as far as it is whole and leads on: a power cut leaves such a tail, and a
//! running server is writing it.

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::mpsc::Receiver;

use super::Progress;
use super::anchors::Anchors;
use super::follow::Follower;
use super::kept::Kept;
use super::parse::{Content, Parsed, Special, Turn};
use super::path::Trail;
use super::read::Step;
use super::removals::Removals;
use super::report::{Finding, Findings, Problem, Report};
use crate::StorageError;
use crate::log::chain;
use crate::log::inspect::{Look, MarkFacts, SegmentClaims};

/// Lines that the log has on record and the file does not; more are only counted.
const LINES_MISSING_MAX: usize = 1000;

pub(super) enum Ended {
    Whole,
    /// What was read does not fit together any more.
    Stale,
}

pub(super) struct Pass<'a> {
    pub(super) follower: Follower<'a>,
    pub(super) anchors: &'a Anchors,
    pub(super) mark: Option<MarkFacts>,
    segment: Option<Segment>,
    /// Events that could not be reached, and why: up to where is known when the next segment begins.
    pub(super) broken: Option<(Problem, String, &'static str)>,
    pub(super) mark_met: bool,
    /// What follows is not part of the log.
    tail_ended: bool,
    pub(super) removals: Removals,
    /// `None`: not to be looked at.
    pub(super) kept: Option<Kept>,
    pub(super) missing_lines: Vec<(u64, [u8; 32])>,
    /// Who signed the first of them, as the log has it.
    pub(super) missing_key: Option<String>,
    epoch: u64,
    /// The last event taken in, if it is a `log.sealed`.
    pub(super) sealed: Option<u64>,
    pub(super) others: bool,
    pub(super) report: Report,
    bytes_total: u64,
}

/// The segment being read.
struct Segment {
    number: u32,
    name: String,
    /// Known when it was read to its end.
    length: Option<u64>,
    /// Own length and last number, as its header says.
    own: Option<(u64, u64)>,
    /// It is of another log.
    foreign: bool,
}

impl<'a> Pass<'a> {
    pub fn new(anchors: &'a Anchors, trail: Trail, findings: Findings, data_dir: &Path, look: &Look) -> Self {
        let (directory, note) = (data_dir.join("log"), crate::upkeep::pending(&data_dir.join("upkeep")));
        let follower = Follower::new(anchors, trail, findings);
        let size = |(number, generation): &(u32, u16)| {
            let name = crate::log::inspect::segment_file(*number, *generation);
            directory.join(name).metadata().map_or(0, |facts| facts.len())
        };
        let bytes_total = look.segments.iter().map(size).sum();
        Self {
            follower,
            anchors,
            mark: look.mark.clone(),
            segment: None,
            broken: None,
            mark_met: false,
            tail_ended: false,
            removals: Removals::since(look.mark.as_ref().map_or(u64::MAX, |mark| mark.last_seq), note),
            kept: None,
            missing_lines: Vec::new(),
            missing_key: None,
            epoch: 0,
            sealed: None,
            others: false,
            report: Report::default(),
            bytes_total,
        }
    }

    /// Takes in everything that is read.
    pub fn run(&mut self, steps: &Receiver<Step>, progress: &mut dyn FnMut(Progress)) -> Result<Ended, StorageError> {
        for step in steps {
            match step {
                Step::Segment { number, generation, name, claims } => {
                    self.begin(number, generation, name, &claims);
                    // A segment that was just begun holds nothing, and the log ends before its first block.
                    let is_ours = self.segment.as_ref().is_some_and(|segment| !segment.foreign);
                    if is_ours && self.is_marked((number, claims.start)) {
                        self.meet_mark();
                    }
                }
                Step::Commit(parsed) => {
                    if self.tail_ended || self.commit(&parsed).is_break() {
                        self.tail_ended = true;
                    } else if let Some(kept) = &mut self.kept {
                        for (seq, handle) in &parsed.handles {
                            kept.named(*seq, *handle, &mut self.follower.findings)?;
                        }
                    }
                    let bytes = self.report.stored_bytes;
                    progress(Progress { bytes, bytes_total: self.bytes_total.max(bytes) });
                }
                Step::SegmentEnd { offset, length, damage } => self.end_segment(offset, length, damage),
                Step::Unreadable { number, what } => {
                    let problem = if what == "it is missing" { Problem::Missing } else { Problem::Damaged };
                    self.broken.get_or_insert((problem, format!("segment {number}"), what));
                }
                Step::Stale => return Ok(Ended::Stale),
                Step::Failed(error) => return Err(error),
            }
            if self.tail_ended && !self.awaits(self.follower.at.seq) {
                break;
            }
        }
        Ok(Ended::Whole)
    }

    /// Whether something says that the log goes on behind event `seq`.
    fn awaits(&self, seq: u64) -> bool {
        self.mark.as_ref().is_some_and(|mark| mark.last_seq > seq) || self.anchors.newest_seq > seq
    }

    fn begin(&mut self, number: u32, generation: u16, name: String, claims: &SegmentClaims) {
        let foreign = self.mark.as_ref().is_some_and(|mark| mark.log_id != claims.log_id);
        let first = self.segment.is_none() && self.broken.is_none();
        let before =
            self.segment.replace(Segment { number, name: name.clone(), length: None, own: claims.own, foreign });
        self.follower.place.clone_from(&name);
        if foreign {
            self.broken = Some((Problem::Damaged, name, "it belongs to another log"));
            return;
        }
        self.report.segments += 1;
        self.removals.segment(number, generation, claims.first_seq);
        if self.report.log_id.is_empty() {
            self.report.log_id.clone_from(&claims.log_id);
            self.report.first_seq = claims.first_seq;
        }
        if first {
            return self.begin_first(number, claims);
        }
        if let Some(before) = before.filter(|before| before.number + 1 == number && before.own.is_none())
            && let Some(length) = before.length.filter(|length| *length != claims.previous_bytes)
        {
            let what = format!("it is {length} bytes long and was {} when it was sealed", claims.previous_bytes);
            let seq = self.follower.at.seq;
            self.find(Problem::Misdescribed, (seq, seq), &before.name, what);
        }
        let expected = self.follower.at.seq + 1;
        if claims.first_seq > expected {
            let (problem, place, what) =
                self.broken.take().unwrap_or((Problem::Missing, name, "events before it are missing"));
            self.lose(problem, (expected, claims.first_seq - 1), &place, what);
        } else if claims.first_seq < expected {
            self.find(
                Problem::Misplaced,
                (claims.first_seq, expected - 1),
                &name,
                "it begins with numbers that were there before",
            );
        }
        self.broken = None;
        self.follower.joint(claims.chain);
    }

    fn begin_first(&mut self, number: u32, claims: &SegmentClaims) {
        let base = claims.first_seq.saturating_sub(1);
        self.follower.begin(base, claims.chain);
        let place = self.follower.place.clone();
        let range = (claims.first_seq, claims.first_seq);
        if number == 1 && (claims.first_seq != 1 || claims.chain != chain::start(&claims.log_id)) {
            self.find(
                Problem::Misdescribed,
                range,
                &place,
                "the first segment does not begin with the first event of its log",
            );
        }
        if let Some(mark) = self.mark.clone().filter(|mark| mark.oldest_segment == number)
            && mark.oldest_seq != claims.first_seq
        {
            let range = (mark.oldest_seq.min(claims.first_seq), mark.oldest_seq.max(claims.first_seq));
            self.find(Problem::Mark, range, "mark", "the oldest segment begins with another event than it says");
        }
    }

    /// Breaks off where the log ends.
    fn commit(&mut self, parsed: &Parsed) -> ControlFlow<()> {
        let Some(segment) = &self.segment else { return ControlFlow::Continue(()) };
        if segment.foreign {
            return ControlFlow::Continue(());
        }
        let number = segment.number;
        let here = (number, parsed.end);
        let marked = self.mark.as_ref().map(|mark| (mark.segment, mark.offset));
        let strict = marked.is_some_and(|marked| here <= marked) || self.awaits(self.follower.at.seq);
        if !strict && !self.leads_on(parsed) {
            return ControlFlow::Break(());
        }
        let closed_here = |mark: &MarkFacts| mark.clean && mark.last_seq == self.follower.at.seq;
        let opens = parsed.items.first().is_some_and(|item| item.turn == Turn::Opened);
        if !strict && !opens && self.mark.as_ref().is_some_and(closed_here) {
            // Recovery will not take it in either.
            let (seq, place) = (self.follower.at.seq + 1, self.follower.place.clone());
            self.exactly(Problem::Misplaced, (seq, seq), &place, "it lies behind the end of a log that was closed");
            return ControlFlow::Break(());
        }
        self.report.stored_bytes += parsed.stored_bytes;
        self.report.raw_bytes += parsed.raw_bytes;
        let place = self.follower.place.clone();
        for (problem, first_seq, last_seq, what) in &parsed.problems {
            self.find(*problem, (*first_seq, *last_seq), &place, *what);
        }
        let first_seq = self.follower.at.seq + 1;
        self.take_items(parsed, &place);
        if parsed.spoiled {
            let last = parsed.problems.iter().map(|(_, _, last, _)| *last).max().unwrap_or(0);
            self.follower.lose(last.max(self.follower.at.seq));
        }
        self.follower.commit_end(first_seq, parsed.chain);
        self.take_specials(parsed);
        self.removals.reached(self.follower.at.seq);
        if self.is_marked(here) {
            self.meet_mark();
        }
        ControlFlow::Continue(())
    }

    /// Whether a commit that nothing speaks for is the whole next one.
    fn leads_on(&self, parsed: &Parsed) -> bool {
        let (mut seq, Some(mut hash)) = (self.follower.at.seq, self.follower.hash()) else { return false };
        for item in &parsed.items {
            if item.seq != seq + 1 {
                return false;
            }
            match parsed.content(item) {
                Content::Record(record) => (seq, hash) = (item.seq, chain::next(&hash, record)),
                Content::Run(run) => (seq, hash) = (run.first_seq + run.count - 1, run.chain),
            }
        }
        parsed.problems.is_empty() && !parsed.items.is_empty() && hash == parsed.chain
    }

    fn take_items(&mut self, parsed: &Parsed, place: &str) {
        for item in &parsed.items {
            let expected = self.follower.at.seq + 1;
            if item.seq < expected {
                self.exactly(Problem::Misplaced, (item.seq, item.seq), place, "its number was there before");
                continue;
            }
            if item.seq > expected {
                if parsed.spoiled {
                    self.follower.lose(item.seq - 1);
                } else {
                    self.lose(Problem::Missing, (expected, item.seq - 1), place, "no event has these numbers");
                }
            }
            self.turn(item, place);
            match parsed.content(item) {
                Content::Record(record) => {
                    self.report.events += 1;
                    self.follower.event(item.seq, record);
                }
                Content::Run(run) => {
                    self.report.removed += run.count;
                    self.removals.removed(run.count);
                    self.follower.removed(run);
                }
            }
        }
    }

    fn take_specials(&mut self, parsed: &Parsed) {
        self.others |= parsed.others;
        for (seq, special) in &parsed.specials {
            match special {
                Special::Opened { epoch } => {
                    if *epoch <= self.epoch {
                        let place = self.follower.place.clone();
                        self.exactly(Problem::Misplaced, (*seq, *seq), &place, "the log was opened as often before");
                    }
                    self.epoch = *epoch;
                }
                Special::Checkpoint { seq, line, key } => {
                    if !self.anchors.has_line(*seq, line) && self.missing_lines.len() < LINES_MISSING_MAX {
                        self.missing_lines.push((*seq, *line));
                        self.missing_key.get_or_insert_with(|| key.clone());
                    }
                }
                Special::Removed(announcement) => self.removals.announced(*seq, announcement),
            }
        }
    }

    fn is_marked(&self, here: (u32, u64)) -> bool {
        self.mark.as_ref().is_some_and(|mark| (mark.segment, mark.offset) == here)
    }

    fn meet_mark(&mut self) {
        self.mark_met = true;
        let Some(mark) = &self.mark else { return };
        let seq = self.follower.at.seq;
        if mark.last_seq != seq {
            let range = (mark.last_seq.min(seq), mark.last_seq.max(seq));
            self.find(Problem::Mark, range, "mark", "another event ends where it says that the log ends");
        } else if !self.follower.agrees_with(&mark.chain) {
            self.find(Problem::Mark, (seq, seq), "mark", "its chain hash is not that of the log");
        }
    }

    fn end_segment(&mut self, offset: u64, length: u64, damage: Option<&'static str>) {
        let Some(segment) = &mut self.segment else { return };
        segment.length = Some(length);
        let (is_foreign, name, own) = (segment.foreign, segment.name.clone(), segment.own);
        if is_foreign || self.tail_ended {
            return;
        }
        let seq = self.follower.at.seq;
        match damage {
            Some(what) if self.awaits(seq) => self.broken = Some((Problem::Damaged, name, what)),
            Some(_) => self.tail_ended = true,
            None => {
                if own.is_some_and(|own| own != (offset, seq) || own.0 != length) {
                    self.find(Problem::Misdescribed, (seq, seq), &name, "it ends elsewhere than its header says");
                }
            }
        }
    }

    pub(super) fn find(&mut self, problem: Problem, range: (u64, u64), place: &str, detail: impl Into<String>) {
        self.follower.findings.add(problem, range, place, detail);
    }

    pub(super) fn exactly(&mut self, problem: Problem, (first_seq, last_seq): (u64, u64), place: &str, detail: &str) {
        let (place, detail) = (place.to_owned(), detail.to_owned());
        self.follower.findings.put(Finding { problem, first_seq, last_seq, exact: true, place, detail });
    }

    /// Numbers that are not to be had.
    fn lose(&mut self, problem: Problem, range: (u64, u64), place: &str, detail: &str) {
        if problem == Problem::Missing {
            self.exactly(problem, range, place, detail);
        } else {
            self.find(problem, range, place, detail);
        }
        self.follower.lose(range.1);
    }
}

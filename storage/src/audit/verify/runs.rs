//! Where runs of the log end and begin: what may follow an orderly end, and what a run left unsigned that
//! only a later one signed.

use super::parse::{Item, Turn};
use super::pass::Pass;
use super::report::Problem;

impl Pass<'_> {
    /// Notes where a run of the log ends and the next begins.
    pub(super) fn turn(&mut self, item: &Item, place: &str) {
        let behind_seal = self.sealed.take().is_some_and(|sealed| sealed + 1 == item.seq);
        match item.turn {
            Turn::Opened => self.count_late(item.seq, behind_seal),
            _ if behind_seal => {
                let what = "the log was closed in order before it, and not opened";
                self.exactly(Problem::Misplaced, (item.seq, item.seq), place, what);
            }
            _ => {}
        }
        self.sealed = (item.turn == Turn::Sealed).then_some(item.seq);
    }

    /// Counts the events of the run before `opened_seq` that only a later run signed. Until then whoever
    /// could write the files could write them anew.
    fn count_late(&mut self, opened_seq: u64, closed: bool) {
        let list = &self.anchors.list;
        let behind = list.partition_point(|anchor| anchor.seq < opened_seq);
        if behind == list.len() || self.anchors.contradicted {
            return;
        }
        let covered = behind.checked_sub(1).map_or(0, |before| list[before].seq);
        let late = opened_seq.saturating_sub(self.report.first_seq.max(covered + 1));
        self.report.signed_late += late;
        self.report.signed_late_closed += if closed { late } else { 0 };
    }
}

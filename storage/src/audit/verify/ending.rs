//! What can be said only when the whole log was read: what should be there and is not.

use std::path::Path;

use super::super::{CHECKPOINTS_FILE, RawLines};
use super::pass::Pass;
use super::report::{Problem, Report};
use crate::StorageError;

impl Pass<'_> {
    /// Ends the walk and says how it went.
    pub fn report(mut self, data_dir: &Path) -> Result<Report, StorageError> {
        self.follower.end();
        self.end_of_log();
        let last_seq = self.follower.at.seq;
        self.missing_lines(&data_dir.join("audit"))?;
        let signed = self.follower.at.signed;
        let first_seq = self.report.first_seq.max(1);
        let mut findings = std::mem::take(&mut self.follower.findings);
        let told = self.removals.check(signed.0, first_seq, &mut findings);
        (self.report.removed_unsigned, self.report.removed_pending) = (told.unsigned, told.pending);
        let oldest = self.anchors.list.last().map_or(0, |anchor| anchor.oldest_seq);
        if oldest > first_seq && self.report.segments > 0 {
            let what = "events that were removed with their segments are back";
            findings.add(Problem::Removal, (first_seq, oldest - 1), "log", what);
        }
        let newest = self.anchors.newest_seq;
        let trusted = !self.anchors.contradicted && !self.anchors.list.is_empty();
        if self.sealed == Some(last_seq) && newest < last_seq && trusted {
            let what = "the log was closed in order, and the checkpoint of its closing is missing";
            findings.add(Problem::Unsigned, (newest + 1, last_seq), CHECKPOINTS_FILE, what);
            self.report.unsigned_close = true;
        }
        if self.anchors.list.is_empty() && self.others {
            findings.add(Problem::Unsigned, (first_seq, last_seq), "audit", "no checkpoint vouches for this log");
        }
        if let Some(kept) = self.kept.take() {
            kept.end(&mut self.report, &mut findings);
        }
        let mut report = self.report;
        (report.findings, report.findings_left_out) = findings.end();
        report.first_seq = first_seq;
        report.last_seq = last_seq;
        report.checkpoints = self.anchors.checkpoints;
        report.keys.clone_from(&self.anchors.keys);
        report.pinned = self.anchors.pinned;
        (report.signed_through, report.signed_at_micros) = signed;
        report.torn_checkpoint_bytes = self.anchors.torn_bytes;
        Ok(report)
    }

    /// What is said to be there and is not.
    fn end_of_log(&mut self) {
        let seq = self.follower.at.seq;
        let marked = self.mark.as_ref().map_or(0, |mark| mark.last_seq);
        if let Some((problem, place, what)) = self.broken.take() {
            let last_seq = marked.max(self.anchors.newest_seq).max(seq + 1);
            self.find(problem, (seq + 1, last_seq), &place, what);
        } else if self.anchors.newest_seq > seq {
            let range = (seq + 1, self.anchors.newest_seq.max(marked));
            self.exactly(Problem::Cut, range, "log", "the log ends before its newest checkpoint");
        } else if marked > seq {
            self.exactly(Problem::Cut, (seq + 1, marked), "log", "the log ends before its high-water mark");
        }
        if self.mark.is_none() {
            self.find(Problem::Mark, (self.report.first_seq, seq), "mark", "it is missing or unreadable");
        } else if !self.mark_met && marked <= seq {
            self.find(Problem::Mark, (marked, seq), "mark", "no commit ends where it says that the log ends");
        }
    }

    /// Checkpoints that the log has on record and that are not beside it. A running server may have
    /// written them since the file was read.
    fn missing_lines(&mut self, audit: &Path) -> Result<(), StorageError> {
        if self.missing_lines.is_empty() {
            return Ok(());
        }
        let path = audit.join(CHECKPOINTS_FILE);
        if let Some(lines) = RawLines::open(&path)? {
            for line in lines {
                let digest = line.map_err(StorageError::io("read", &path))?.digest();
                self.missing_lines.retain(|(_, missing)| *missing != digest);
            }
        }
        let first = self.missing_lines.iter().map(|(seq, _)| *seq).min();
        let last = self.missing_lines.iter().map(|(seq, _)| *seq).max();
        if let (Some(first), Some(last)) = (first, last) {
            let count = self.missing_lines.len();
            let mut what = format!("{count} checkpoints that the log has on record are not in it");
            let key = self.missing_key.as_deref().unwrap_or("an unknown key");
            if !self.anchors.keys.iter().any(|known| known.to_string() == key) {
                what += ": the audit directory was lost or replaced, and the key with it. They were signed by ";
                what += key;
                what += "; only lines of it that were kept elsewhere (--from) still vouch for what came before";
            }
            self.find(Problem::Checkpoint, (first, last), CHECKPOINTS_FILE, what);
        }
        Ok(())
    }
}

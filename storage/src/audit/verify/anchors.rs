//! Places where the chain is known by a signature: the checkpoints beside the log and those that
//! somebody kept elsewhere.
//!
//! What must stay true: a line counts only when its signature holds, by the key that the lines before
//! it put in force; a line that is missing, moved or foreign is a finding; lines that contradict what was
//! kept elsewhere vouch for nothing behind the last place where they agree with it.

use std::collections::HashSet;
use std::path::Path;

use super::super::checkpoint::{Checkpoint, Digest, SignedLine, Statement};
use super::super::key::{PUBLIC_KEY_FILE, PublicKey, read_public_key};
use super::super::lines::{CHECKPOINTS_FILE, RawLines};
use super::report::{Findings, Pinned, Problem};
use crate::StorageError;

/// A place in the chain that a signature states.
#[derive(Debug, Clone)]
pub(super) struct Anchor {
    pub seq: u64,
    pub chain: Digest,
    /// The trail after this event and up to `seq` has that digest.
    pub since_seq: u64,
    pub trail: Digest,
    /// Whether the trail there is the one that was signed.
    pub trail_holds: bool,
    /// Of the line; `None` for one that was kept elsewhere.
    pub line: Option<Digest>,
    pub at_micros: i64,
    pub oldest_seq: u64,
}

/// What was learned from all lines.
#[derive(Debug, Default)]
pub(super) struct Anchors {
    /// In order of `seq`.
    pub list: Vec<Anchor>,
    pub keys: Vec<PublicKey>,
    pub checkpoints: u64,
    pub torn_bytes: u64,
    pub pinned: Pinned,
    /// The newest sequence number that a trusted signature covers.
    pub newest_seq: u64,
    /// Something that was kept elsewhere is not among the lines.
    pub contradicted: bool,
}

/// Reads the lines while their order is checked.
struct Walk<'a> {
    log_id: Option<&'a str>,
    findings: &'a mut Findings,
    anchors: Anchors,
    in_force: Option<PublicKey>,
    previous: Option<Digest>,
    begun: bool,
    last: (u64, u64),
    /// Lines that were no good since the last one that was.
    bad: Option<(u64, &'static str, Problem)>,
    sought: HashSet<Digest>,
}

impl Anchors {
    /// Reads the audit directory `directory` of the log called `log_id`; `key` and `saved` are what
    /// somebody kept elsewhere.
    pub fn read(
        directory: &Path,
        log_id: Option<&str>,
        key: Option<PublicKey>,
        saved: &[SignedLine],
        findings: &mut Findings,
    ) -> Result<Self, StorageError> {
        let sought = saved.iter().map(|line| line.digest).collect();
        let mut walk = Walk {
            log_id,
            findings,
            anchors: Self::default(),
            in_force: None,
            previous: None,
            begun: false,
            last: (0, 0),
            bad: None,
            sought,
        };
        if let Some(lines) = RawLines::open(&directory.join(CHECKPOINTS_FILE))? {
            for line in lines {
                let line = line.map_err(StorageError::io("read", directory.join(CHECKPOINTS_FILE)))?;
                if line.given_up {
                    walk.note_bad(
                        line.number,
                        "it is longer than a line can be; what is behind it was not read",
                        Problem::Checkpoint,
                    );
                    break;
                }
                if !line.ended {
                    walk.anchors.torn_bytes = line.bytes.len() as u64;
                    break;
                }
                let said = line.read();
                walk.line(line.number, said, line.digest());
            }
        }
        walk.end_bad();
        walk.published_key(directory, key.is_some());
        walk.pin(key, saved);
        Ok(walk.anchors)
    }

    /// Whether a line signs exactly that.
    pub fn has_line(&self, seq: u64, line: &Digest) -> bool {
        let from = self.list.partition_point(|anchor| anchor.seq < seq);
        self.list[from..].iter().take_while(|anchor| anchor.seq == seq).any(|anchor| anchor.line.as_ref() == Some(line))
    }
}

impl Walk<'_> {
    fn line(&mut self, number: u64, said: Result<SignedLine, &'static str>, digest: Digest) {
        let follows = said.as_ref().map(|line| line.statement.previous()) == Ok(self.previous);
        let begins = !std::mem::replace(&mut self.begun, true);
        self.previous = Some(digest);
        self.sought.remove(&digest);
        let line = match said {
            Ok(line) => line,
            Err(what) => return self.note_bad(number, what, Problem::Checkpoint),
        };
        if self.log_id.is_some_and(|log_id| log_id != line.statement.log_id()) {
            return self.note_bad(number, "it is of another log", Problem::Checkpoint);
        }
        if *self.in_force.get_or_insert(line.key) != line.key {
            return self.note_bad(number, "it is signed by a key that no line before it names", Problem::Key);
        }
        if self.anchors.keys.last() != Some(&line.key) {
            self.anchors.keys.push(line.key);
        }
        if !follows {
            let what = if begins { "lines before it are missing" } else { "it does not follow the line before it" };
            let range = (self.last.0 + 1, line.statement.seq());
            self.findings.add(Problem::Checkpoint, range, CHECKPOINTS_FILE, format!("line {number}: {what}"));
        }
        self.end_bad_before(line.statement.seq());
        match line.statement {
            Statement::Checkpoint(checkpoint) => self.checkpoint(number, checkpoint, digest),
            Statement::KeyChange(change) => {
                self.in_force = Some(change.next_key);
                self.anchors.keys.push(change.next_key);
            }
        }
    }

    fn checkpoint(&mut self, number: u64, checkpoint: Checkpoint, digest: Digest) {
        let (last_seq, last_oldest) = self.last;
        let ordered = checkpoint.seq >= last_seq
            && checkpoint.since_seq >= last_seq
            && checkpoint.since_seq <= checkpoint.seq
            && checkpoint.oldest_seq >= last_oldest;
        if !ordered {
            let range = (checkpoint.seq.min(last_seq), checkpoint.seq.max(last_seq));
            let what = format!("line {number}: it goes back behind the line before it");
            return self.findings.add(Problem::Checkpoint, range, CHECKPOINTS_FILE, what);
        }
        self.last = (checkpoint.seq, checkpoint.oldest_seq);
        self.anchors.checkpoints += 1;
        self.anchors.list.push(anchor(&checkpoint, Some(digest)));
    }

    fn note_bad(&mut self, number: u64, what: &'static str, problem: Problem) {
        self.bad.get_or_insert((number, what, problem));
    }

    fn end_bad(&mut self) {
        self.end_bad_before(self.last.0 + 1);
    }

    /// Of lines that are no good in a row the first one says what is wrong.
    fn end_bad_before(&mut self, seq: u64) {
        if let Some((number, what, problem)) = self.bad.take() {
            let range = (self.last.0 + 1, seq);
            self.findings.add(problem, range, CHECKPOINTS_FILE, format!("line {number}: {what}"));
        }
    }

    /// The public key beside the checkpoints is the one in force.
    fn published_key(&mut self, directory: &Path, given: bool) {
        let Some(in_force) = self.in_force else { return };
        let published = read_public_key(&directory.join(PUBLIC_KEY_FILE));
        let what = match published {
            Ok(published) if published == in_force => return,
            Ok(_) => "it is not the key that the checkpoints end with",
            Err(_) if given => return,
            Err(_) => "it is missing or holds no public key",
        };
        self.findings.add(Problem::Key, (1, self.last.0), PUBLIC_KEY_FILE, what);
    }

    /// Holds the lines against what was kept elsewhere. When they contradict it they are worth nothing.
    fn pin(&mut self, key: Option<PublicKey>, saved: &[SignedLine]) {
        let known = |key: &PublicKey| self.anchors.keys.contains(key);
        let last = self.last.0.max(1);
        if let Some(key) = key
            && !known(&key)
        {
            self.findings.add(Problem::Key, (1, last), CHECKPOINTS_FILE, format!("nothing in it is signed by {key}"));
            self.distrust();
        }
        let strangers = saved.iter().filter(|line| !self.anchors.keys.contains(&line.key)).count();
        if strangers > 0 && !self.anchors.keys.is_empty() {
            let what = format!("{strangers} saved checkpoints were signed by a key that signed nothing in it");
            self.findings.add(Problem::Key, (1, last), CHECKPOINTS_FILE, what);
            self.distrust();
        }
        self.distrust_behind_agreement(saved);
        for line in saved {
            let seq = line.statement.seq();
            if self.log_id.is_some_and(|log_id| log_id != line.statement.log_id()) {
                self.findings.add(Problem::Changed, (1, seq), "log", "the saved checkpoint is of another log");
                continue;
            }
            if self.sought.contains(&line.digest) {
                let what = format!("the saved checkpoint of event {seq} is not in it");
                self.findings.add(Problem::Checkpoint, (seq, seq), CHECKPOINTS_FILE, what);
            }
            if let Some(checkpoint) = line.checkpoint() {
                self.anchors.list.push(anchor(checkpoint, None));
            }
        }
        self.anchors.list.sort_by_key(|anchor| anchor.seq);
        self.anchors.newest_seq = self.anchors.list.last().map_or(0, |anchor| anchor.seq);
        let reach_seq = saved.iter().filter_map(SignedLine::checkpoint).map(|checkpoint| checkpoint.seq).max();
        let (key, checkpoints) = (key.is_some(), saved.len() as u64);
        self.anchors.pinned = Pinned { key, checkpoints, reach_seq: reach_seq.unwrap_or(0) };
    }

    /// Each line names the one before it, so a saved line that is there vouches for those before it. One
    /// that is not there means that history was written twice, and that the lines beside the log may be
    /// those of the other one.
    fn distrust_behind_agreement(&mut self, saved: &[SignedLine]) {
        let is_missing = |line: &&SignedLine| self.sought.contains(&line.digest);
        let Some(parted) = saved.iter().filter(is_missing).map(|line| line.statement.seq()).min() else { return };
        let agreed = saved.iter().filter(|line| !is_missing(line)).map(|line| line.statement.seq());
        let agreed = agreed.filter(|seq| *seq < parted).max().unwrap_or(0);
        self.anchors.list.retain(|anchor| anchor.seq <= agreed);
        self.anchors.contradicted = true;
    }

    fn distrust(&mut self) {
        self.anchors.list.clear();
        self.anchors.contradicted = true;
        self.anchors.checkpoints = 0;
    }
}

fn anchor(checkpoint: &Checkpoint, line: Option<Digest>) -> Anchor {
    Anchor {
        seq: checkpoint.seq,
        chain: checkpoint.chain,
        since_seq: checkpoint.since_seq,
        trail: checkpoint.trail,
        trail_holds: false,
        line,
        at_micros: checkpoint.at_micros,
        oldest_seq: checkpoint.oldest_seq,
    }
}

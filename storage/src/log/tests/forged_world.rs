//! The log that is forged: with sessions, several segments, one written anew without some of its events,
//! one dropped, checkpoints over most of it, and copies of all files from before.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use super::forger::{Files, Forgery, read_files, write_files};
use super::{message, options, temporary};
use crate::audit::tests::announcement;
use crate::audit::verify::{Report, VerifyOptions, verify};
use crate::audit::{AuditOptions, Auditor, Pace, PublicKey, RawLines, SignedLine};
use crate::event::removed::{Portion, WHOLE_SEGMENT};
use crate::event::{EventView, Kind};
use crate::log::{Fate, Log, LogOptions};

/// A data directory with everything that a log can hold, and copies of it from before.
pub struct World {
    pub directory: tempfile::TempDir,
    pub whole: Files,
    /// When fewer events were recorded.
    pub older: Files,
    /// Before a segment was written anew.
    pub unremoved: Files,
    pub saved: Vec<SignedLine>,
    pub key: PublicKey,
    pub signed_through: u64,
    /// The segment in which the log ends, and where.
    pub last_segment: String,
    pub last_offset: usize,
    pub hashes: BTreeMap<u64, [u8; 32]>,
}

impl World {
    pub async fn new() -> Self {
        let directory = temporary();
        let data = directory.path();
        let log = Log::open(LogOptions { segment_bytes: 4096, ..options(data) }).expect("the log opens");
        let auditor = start(&log, data);
        let key = auditor.health().key.expect("there is a key");
        fill(&log, &auditor, 30).await;
        let older = read_files(data);
        fill(&log, &auditor, 60).await;
        let unremoved = read_files(data);
        remove(&log, 3, &|event| event.seq % 3 == 0 && event.kind() == Some(Kind::ConsoleMessage)).await;
        drop_first(&log).await;
        fill(&log, &auditor, 20).await;
        auditor.cover(log.health().last_seq).await.expect("it is covered");
        let signed_through = auditor.health().signed_seq;
        for n in 0..10 {
            log.commit(vec![message(Some("tail"), &format!("after {n}"))]).await.expect("it is recorded");
        }
        drop((auditor, log));
        let (whole, saved) = (read_files(data), lines(data));
        let forgery = Forgery::take_apart(data);
        let (hashes, (last_segment, last_offset)) = (forgery.hashes(), forgery.end());
        Self { last_segment, last_offset, whole, older, unremoved, saved, key, signed_through, hashes, directory }
    }

    pub fn data(&self) -> &Path {
        self.directory.path()
    }

    pub fn restore(&self) {
        write_files(&self.whole, self.data());
    }

    pub fn verify(&self) -> Report {
        self.verify_with(None, &[])
    }

    pub fn verify_with(&self, key: Option<PublicKey>, saved: &[SignedLine]) -> Report {
        let options = VerifyOptions { key, saved: saved.to_vec(), ..VerifyOptions::new(self.data()) };
        verify(&options, &mut |_| {}).expect("it can be read")
    }
}

fn start(log: &Log, data: &Path) -> Auditor {
    let hour = Duration::from_secs(3600);
    let pace = Pace { events: u64::MAX, within: hour, apart: Duration::from_millis(1), idle: hour };
    Auditor::start(log.clone(), AuditOptions { pace, ..AuditOptions::new(data.join("audit")) }).expect("it starts")
}

fn lines(data: &Path) -> Vec<SignedLine> {
    let lines = RawLines::open(&data.join("audit/checkpoints.jws")).expect("it opens").expect("it is there");
    lines.map(|line| line.expect("it is read").read().expect("it is sound")).collect()
}

async fn fill(log: &Log, auditor: &Auditor, commits: u64) {
    for n in 0..commits {
        let text = |k: u64| format!("{n} {k} {}", crate::ids::random_suffix(60));
        let session = |k: u64| ["a", "b", "c"].get(k as usize % 4).copied();
        let drafts = (0..1 + n % 5).map(|k| message(session(k), &text(k))).collect();
        log.commit(drafts).await.expect("it is recorded");
        if n % 7 == 0 {
            auditor.cover(log.health().last_seq).await.expect("it is covered");
        }
    }
}

async fn remove(log: &Log, segment: u32, goes: &dyn Fn(&EventView<'_>) -> bool) {
    let mut portions = Vec::new();
    let rewritten = log
        .rewrite(segment, &mut |event| {
            if !goes(event) {
                return Fate::Keep;
            }
            portions.push(Portion::of(event));
            Fate::Remove
        })
        .expect("it is written anew");
    let generation = u64::from(rewritten.facts().generation);
    log.commit(vec![announcement(segment, generation, &portions)]).await.expect("it is recorded");
    rewritten.install(true).expect("it is installed");
}

async fn drop_first(log: &Log) {
    let facts = log.reader().segments().expect("they are known").remove(0);
    let mut portions = Vec::new();
    let reader = log.reader();
    for block in reader.blocks(facts.start).expect("it is whole").map(|block| block.expect("it is whole")) {
        if block.position.segment != facts.number {
            break;
        }
        let block = reader.load(block.position).expect("it is whole");
        portions.extend(block.events().map(|event| Portion::of(&event.expect("it decodes"))));
    }
    log.commit(vec![announcement(facts.number, WHOLE_SEGMENT, &portions)]).await.expect("it is recorded");
    log.drop_before(facts.number + 1).await.expect("it is dropped");
}

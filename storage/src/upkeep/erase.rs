//! Forgetting one session or one owner: no plaintext stays in the data directory, the chain goes on.
//!
//! Nobody else has the log open: the lock says so. Segments are written anew without the events, the
//! files before are overwritten; then goes everything else that may hold a copy: what recovery cut off,
//! the index, what a browser left behind, artifacts that nobody else's event names. It may be stopped on
//! any line, and is done once it was run to its end. What stays on record: that something was erased, by
//! whom, when, why and how much, without a name.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::{Duration, SystemTime};

use crate::StorageError;
use crate::artifact::ArtifactStore;
use crate::event::catalog::LogRemoved;
use crate::event::codec::ContextField;
use crate::event::removed::{Portion, from_json, to_json};
use crate::event::{Clean, Context, Draft, EventView, Payload};
use crate::log::{Log, SegmentFacts};
use crate::shred::{shred, shred_directory};
use crate::upkeep::announced::Announced;
use crate::upkeep::files::{self, Files};
use crate::upkeep::inventory::Inventory;
use crate::upkeep::plan::Reason;
use crate::upkeep::rewriting::Rewriting;
use crate::upkeep::subject::{Search, Subject};
use crate::upkeep::tally::{Grounds, Tally};
use crate::upkeep::unnamed;

/// By how much the clock may have been set back since a file was put.
const CLOCK_SKEW_SECONDS: u64 = 10 * 365 * 86_400;

/// What is asked for, by whom and why.
#[derive(Debug, Clone)]
pub struct Erasure {
    pub subject: Subject,
    pub by: Clean,
    pub note: Clean,
}

/// What was done.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Erased {
    pub events: u64,
    pub segments: u64,
    pub artifacts: u64,
    pub artifact_bytes: u64,
    /// Files that the subject's calls had written in the data directory.
    pub files: u64,
    /// Files that calls of the subject's were asked to write, and that nobody here can vouch for.
    pub paths: Vec<String>,
    /// Browser profiles, saved logins and exports in the data directory, which are left alone.
    pub beside: Vec<String>,
    /// Erasures of the same subject that were on record before: when, and how many events.
    pub earlier: Vec<(i64, u64)>,
}

/// Erases the subject from `log` and from everything beside it in `data_dir`. Blocks.
///
/// # Errors
/// When the log is damaged or the operating system refuses; it is then to be run again.
pub fn erase(data_dir: &Path, log: &Log, erasure: &Erasure) -> Result<Erased, StorageError> {
    let directory = data_dir.join("upkeep");
    let runtime = tokio::runtime::Builder::new_current_thread().build();
    let rewriting = Rewriting {
        log: log.clone(),
        inventory: Inventory::open(&directory)?,
        announced: Announced::within(&directory),
        runtime: runtime.map_err(StorageError::io("prepare erasing in", data_dir))?,
    };
    let artifacts = data_dir.join("artifacts");
    // Opening overwrites what never got its name.
    let artifacts = ArtifactStore::open(&artifacts, u64::MAX)?;
    let mark = erasure.subject.mark(log.log_id());
    let mut eraser = Eraser {
        rewriting,
        erasure,
        mark,
        search: Search::default(),
        latest: HashMap::new(),
        files: Files::default(),
        erased: Erased::default(),
    };
    if !eraser.run(data_dir)? {
        return Ok(eraser.erased);
    }
    for copies in ["index", "run"] {
        shred_directory(&data_dir.join(copies))?;
    }
    remove_torn(&data_dir.join("log"))?;
    eraser.remove_unnamed(&artifacts)?;
    eraser.erased.beside = files::beside(data_dir)?;
    Ok(eraser.erased)
}

struct Eraser<'a> {
    rewriting: Rewriting,
    erasure: &'a Erasure,
    mark: Clean,
    search: Search,
    /// The number of the announcement that counts, of those known by the same.
    latest: HashMap<Known, u64>,
    files: Files,
    erased: Erased,
}

/// What an announcement is known by.
type Known = (Option<Box<str>>, Option<Box<str>>, Option<Box<str>>, u64, u64);
/// Announcements that go, by reason, segment and generation.
type Lost = BTreeMap<(Box<str>, u64, u64), Vec<Portion>>;

/// The events of one segment that go.
#[derive(Default)]
struct Selection {
    seqs: HashSet<u64>,
    lost: Lost,
}

impl Eraser<'_> {
    /// False when nothing of the subject is on record, nor an erasure of it that may have been cut short.
    fn run(&mut self, data_dir: &Path) -> Result<bool, StorageError> {
        let log = self.rewriting.log.clone();
        self.rewriting.announced.settle(&log, &self.rewriting.runtime)?;
        self.rewriting.runtime.block_on(log.roll())?;
        let reader = log.reader();
        reader.scan(reader.first_seq(), &|_| true, &mut |view| {
            if self.search.learn(&self.erasure.subject, view) {
                self.files.learn(view);
            }
            self.learn_announcement(view);
            ControlFlow::Continue(())
        })?;
        if !self.search.found && self.erased.earlier.is_empty() {
            return Ok(false);
        }
        // While the events still say which they are.
        self.files.remove(data_dir, &mut self.erased)?;
        self.search.again();
        for facts in reader.segments()? {
            let Some(last_seq) = facts.last_seq else { break };
            let selection = self.select(&facts, last_seq)?;
            if !selection.seqs.is_empty() {
                self.rewrite(&facts, &selection)?;
            }
        }
        self.rewriting.inventory.tidy(&reader)?;
        Ok(true)
    }

    fn learn_announcement(&mut self, view: &EventView<'_>) {
        let Ok(removed) = LogRemoved::take(view) else { return };
        if removed.subject.as_ref() == Some(&self.mark) && removed.count > 0 {
            self.erased.earlier.push((view.recorded_at_micros, removed.count));
        }
        self.latest.insert(known(view, &removed), view.seq);
    }

    /// Shows the search every event of the segment, and keeps the numbers of those that go.
    fn select(&mut self, facts: &SegmentFacts, last_seq: u64) -> Result<Selection, StorageError> {
        let mut selection = Selection::default();
        let reader = self.rewriting.log.reader();
        reader.scan(facts.first_seq, &|_| true, &mut |view| {
            if view.seq > last_seq {
                return ControlFlow::Break(());
            }
            if self.search.concerns(&self.erasure.subject, view) {
                selection.seqs.insert(view.seq);
                self.keep_count(&mut selection.lost, view);
            }
            ControlFlow::Continue(())
        })?;
        Ok(selection)
    }

    /// What an announcement that goes has counted is to be counted by another, without names.
    fn keep_count(&self, lost: &mut Lost, view: &EventView<'_>) {
        let Ok(removed) = LogRemoved::take(view) else { return };
        if removed.count == 0 || self.latest.get(&known(view, &removed)) != Some(&view.seq) {
            return;
        }
        let place = (removed.reason.as_str().into(), removed.segment, removed.generation);
        let portions = lost.entry(place).or_default();
        for portion in from_json(removed.kinds.as_str()).unwrap_or_default() {
            let alike = |other: &&mut Portion| (other.kind, other.level) == (portion.kind, portion.level);
            match portions.iter_mut().find(alike) {
                Some(known) => known.add(&portion),
                None => portions.push(portion),
            }
        }
    }

    fn rewrite(&mut self, facts: &SegmentFacts, selection: &Selection) -> Result<(), StorageError> {
        let grounds = Grounds {
            reason: Reason::Erased,
            by: Some(self.erasure.by.clone()),
            note: Some(self.erasure.note.clone()),
            subject: Some(self.mark.clone()),
        };
        let (number, mark) = (facts.number, &self.mark);
        let outcome = self.rewriting.rewrite(
            facts,
            &mut |view, _| selection.seqs.contains(&view.seq),
            &|tally: &Tally, generation| {
                let mut drafts: Vec<Draft> = tally.together(&grounds, number, generation).into_iter().collect();
                drafts.extend(said_again(&selection.lost, mark, number, generation));
                drafts
            },
            &|_| {},
        )?;
        self.erased.events += outcome.removed.iter().sum::<u64>();
        self.erased.segments += 1;
        Ok(())
    }

    /// Removes every artifact that no event names any more, whosever it was.
    fn remove_unnamed(&mut self, artifacts: &ArtifactStore) -> Result<(), StorageError> {
        // Nobody else is here who could have put it, so its age does not matter.
        let ever = SystemTime::now() + Duration::from_secs(CLOCK_SKEW_SECONDS);
        for mut candidates in unnamed::batches(artifacts, ever)? {
            self.rewriting.inventory.strike_out_held(&self.rewriting.log.reader(), &mut candidates)?;
            let gone = unnamed::remove(artifacts, &candidates, ever)?;
            self.erased.artifacts += gone.count;
            self.erased.artifact_bytes += gone.bytes;
        }
        Ok(())
    }
}

fn known(view: &EventView<'_>, removed: &LogRemoved) -> Known {
    let text = |field| view.context(field).map(Box::from);
    let (owner, session) = (text(ContextField::Owner), text(ContextField::SessionId));
    let subject = removed.subject.as_ref().map(|subject| subject.as_str().into());
    (owner, session, subject, removed.segment, removed.generation)
}

/// The counts of announcements that go with this generation; told apart from all others by it.
fn said_again(lost: &Lost, mark: &Clean, segment: u32, generation: u64) -> Vec<Draft> {
    let subject = Clean::redacted(format!("{} in {segment}-{generation}", mark.as_str()));
    let draft = |((reason, segment, generation), portions): (&(Box<str>, u64, u64), &Vec<Portion>)| {
        let removed = LogRemoved {
            reason: (&**reason).into(),
            segment: *segment,
            generation: *generation,
            first_seq: portions.iter().map(|portion| portion.first_seq).min().unwrap_or(0),
            last_seq: portions.iter().map(|portion| portion.last_seq).max().unwrap_or(0),
            count: portions.iter().map(|portion| portion.count).sum(),
            kinds: to_json(portions),
            by: None,
            note: None,
            subject: Some(subject.clone()),
        };
        Draft::new(&Context::default(), &removed)
    };
    lost.iter().map(draft).collect()
}

/// Overwrites and removes what recovery cut off and kept aside.
fn remove_torn(directory: &Path) -> Result<(), StorageError> {
    for entry in std::fs::read_dir(directory).map_err(StorageError::io("read", directory))? {
        let path = entry.map_err(StorageError::io("read", directory))?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if name.starts_with("torn-") && name.ends_with(".bin") {
            shred(&path)?;
        }
    }
    Ok(())
}

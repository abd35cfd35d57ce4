//! D05: a bit that flips, or four KiB that turn into zeros, anywhere in a data directory, cost what they
//! hit and nothing else, and never in silence: what is read afterwards is right, what cannot be read is
//! named by its numbers, and whatever of it is history the verifier finds.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::OpenOptions;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use storage::StorageError;
use storage::artifact::ArtifactStore;
use storage::audit::verify::{VerifyOptions, verify};
use storage::ids::{ArtifactHandle, Owner};
use storage::index::Index;
use storage::log::{Log, LogOptions, Reader};
use storage::query::{CursorKey, EventFilter, Ledger, Order, PageRequest};
use tokio::runtime::Handle;

use super::child::digest;
use super::sample::{self, Sample, files};
use crate::support::DataDir;
use crate::support::check::{Check, short_or_long};
use crate::support::dice::Dice;

/// Nothing that is done with a damaged directory takes longer.
const HANG_LIMIT: Duration = Duration::from_secs(10);
const ZEROED_BYTES: usize = 4096;
const QUOTA_BYTES: u64 = 1 << 30;

/// One thing done to one file.
pub struct Harm {
    file: PathBuf,
    offset: u64,
    /// Bytes of the file before the room that is only laid out.
    used: u64,
    was: Vec<u8>,
    is: Vec<u8>,
}

impl fmt::Display for Harm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (was, is) = (self.was[0], self.is[0]);
        write!(f, "{} bytes at {} of {} ({was:#04x} to {is:#04x})", self.is.len(), self.offset, self.file.display())
    }
}

impl Harm {
    /// Flips a bit, or zeroes a page, in a file of one of the kinds, chosen evenly.
    pub fn choose(data: &DataDir, dice: &mut Dice, zeroing: bool) -> Self {
        let mut kinds: BTreeMap<String, Vec<(PathBuf, u64)>> = BTreeMap::new();
        for (kind, file, used) in files(data) {
            kinds.entry(kind).or_default().push((file, used));
        }
        // Most of what matters lies in segments.
        let names: Vec<String> = kinds.keys().cloned().chain(["segment".into(), "segment".into()]).collect();
        loop {
            let of_kind = &kinds[&names[dice.index(names.len())]];
            let (file, used) = &of_kind[dice.index(of_kind.len())];
            let bytes = std::fs::read(file).expect("the file is there");
            if *used == 0 {
                continue;
            }
            let mut at = usize::try_from(dice.within(0..*used)).expect("it is in memory");
            if dice.index(10) == 0 {
                at = dice.index(bytes.len());
            }
            let (offset, was, is) = if zeroing {
                let at = at - at % ZEROED_BYTES;
                let was = bytes[at..bytes.len().min(at + ZEROED_BYTES)].to_vec();
                (at as u64, was.clone(), vec![0; was.len()])
            } else {
                (at as u64, vec![bytes[at]], vec![bytes[at] ^ 1 << dice.index(8)])
            };
            if was != is {
                return Self { file: file.clone(), offset, used: *used, was, is };
            }
        }
    }

    /// Whether it changed what was recorded, or what vouches for it. What else there is can be made
    /// again, or stands twice as the mark does.
    fn is_of_history(&self, data: &Path) -> bool {
        let name = self.file.strip_prefix(data).expect("it lies below");
        let is_segment = name.extension().is_some_and(|extension| extension == "seg");
        (is_segment && self.offset < self.used)
            || name.ends_with("audit/trail")
            || name.ends_with("audit/checkpoints.jws")
    }

    pub fn inflict(&self) {
        let file = OpenOptions::new().write(true).open(&self.file).expect("the file can be harmed");
        file.write_all_at(&self.is, self.offset).expect("the file can be harmed");
    }
}

/// What became of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// The log does not open and says which numbers are concerned.
    Refused,
    /// It opens, and reading names the numbers that are damaged.
    Named,
    /// Everything is there and as it was.
    Whole,
}

/// Verifies the directory; whether anything was found. What was found names numbers.
fn found(data: &Path) -> Result<bool, String> {
    let report = verify(&VerifyOptions::new(data), &mut |_| {}).map_err(|error| format!("not verified: {error}"))?;
    match report.findings.iter().find(|finding| finding.first_seq > finding.last_seq) {
        None => Ok(!report.is_sound()),
        Some(finding) => Err(format!("no numbers are named: {finding:?}")),
    }
}

/// Verifies the directory, opens the log as a server would, and reads everything that can be read.
fn examine(data: &Path, sample: &Sample, harm: &Harm) -> Result<Outcome, String> {
    let found = found(data)?;
    if harm.is_of_history(data) && !found {
        return Err("the verifier finds nothing".into());
    }
    let outcome = open_and_read(data, sample)?;
    if outcome != Outcome::Whole && !found && !harm.file.starts_with(data.join("artifacts")) {
        return Err(format!("{outcome:?}, and the verifier finds nothing"));
    }
    Ok(outcome)
}

fn open_and_read(data: &Path, sample: &Sample) -> Result<Outcome, String> {
    let log = match Log::open(LogOptions::new(data.join("log"))) {
        Ok(log) => log,
        Err(error) => return named(&error).map(|_| Outcome::Refused),
    };
    let reader = log.reader();
    let damaged = read_around(&reader, sample)?;
    ask(data, &log, sample)?;
    if log.health().unavailable.is_some() {
        return Err(format!("the log fails: {:?}", log.health()));
    }
    drop(log);
    let store = ArtifactStore::open(&data.join("artifacts"), QUOTA_BYTES).map_err(|error| error.to_string())?;
    let (handle, original) = &sample.artifact;
    let original = std::fs::read(original).expect("the sample is whole");
    match store.read(&ArtifactHandle::from(handle.as_str()), 0, usize::MAX >> 1) {
        Ok(bytes) if bytes == original => Ok(if damaged { Outcome::Named } else { Outcome::Whole }),
        Ok(_) => Err("an artifact was altered in silence".into()),
        // It is named by its handle, which events name.
        Err(StorageError::Altered { .. }) => Ok(Outcome::Named),
        Err(error) => Err(error.to_string()),
    }
}

/// Asks through the index for a session's whole history, page by page.
fn ask(data: &Path, log: &Log, sample: &Sample) -> Result<(), String> {
    let index = Index::start(&data.join("index"), log.reader(), log.watch());
    let key = CursorKey::load_or_create(&data.join("cursor.key")).map_err(|error| error.to_string())?;
    let ledger = Ledger::new(log.reader(), index, key);
    let filter = EventFilter { session_id: Some(sample::LISTED.into()), ..EventFilter::default() };
    let (filter, owner) = (filter.compile().expect("the filter is valid"), Owner::from("local"));
    let (mut after, mut listed) = (None, BTreeMap::new());
    loop {
        let request =
            PageRequest { filter: &filter, order: Order::Oldest, after: after.as_deref(), limit: 100, owner: &owner };
        let page = match Handle::current().block_on(ledger.page(&request)) {
            Ok(page) => page,
            Err(error) => return named(&error).map(|_| ()),
        };
        listed.extend(page.items.iter().map(|item| (item.seq(), digest(&item.view()))));
        if !page.has_more {
            break;
        }
        after = Some(page.next_cursor);
    }
    ledger.index().close();
    if listed == sample.listed {
        return Ok(());
    }
    Err(format!("{} of {} events are listed, or others", listed.len(), sample.listed.len()))
}

/// The numbers that an error names.
fn named(error: &StorageError) -> Result<(u64, u64), String> {
    match error {
        StorageError::Damaged { first_seq, last_seq, .. } if first_seq <= last_seq => Ok((*first_seq, *last_seq)),
        other => Err(format!("no numbers are named: {other}")),
    }
}

/// Reads the log from end to end, going on behind whatever is damaged. True when something is.
fn read_around(reader: &Reader, sample: &Sample) -> Result<bool, String> {
    let mut missing = sample.events.clone();
    let mut next_seq = reader.first_seq();
    let mut damaged = false;
    while next_seq <= sample.last_seq {
        let mut problem = None;
        let scanned = reader.scan(next_seq, &|_| true, &mut |event| {
            next_seq = event.seq + 1;
            match (missing.remove(&event.seq), event.seq > sample.last_seq) {
                (Some(was), _) if was == digest(event) => ControlFlow::Continue(()),
                (None, true) => ControlFlow::Break(()),
                (was, _) => {
                    problem = Some(format!("event {} was {was:?}: altered, doubled or invented", event.seq));
                    ControlFlow::Break(())
                }
            }
        });
        if let Some(problem) = problem {
            return Err(problem);
        }
        let Err(error) = scanned else { break };
        let (first_seq, last_seq) = named(&error)?;
        damaged = true;
        missing.retain(|seq, _| !(first_seq..=last_seq).contains(seq));
        if last_seq < next_seq {
            return Err(format!("there is no way on behind {next_seq}: {error}"));
        }
        next_seq = last_seq + 1;
    }
    match missing.first_key_value() {
        None => Ok(damaged),
        Some((seq, _)) => Err(format!("{} events from {seq} on are missing in silence", missing.len())),
    }
}

async fn trial(sample: &Arc<Sample>, dice: &mut Dice, zeroing: bool) -> Outcome {
    let data = sample.copy();
    let harm = Arc::new(Harm::choose(&data, dice, zeroing));
    harm.inflict();
    let (at, of, by) = (data.clone(), sample.clone(), harm.clone());
    let examined = tokio::task::spawn_blocking(move || examine(at.path(), &of, &by));
    let examined = tokio::time::timeout(HANG_LIMIT, examined).await;
    let outcome = examined.unwrap_or_else(|_| panic!("it hangs: {harm}"));
    let outcome = outcome.unwrap_or_else(|panic| panic!("it panics: {harm}: {panic}"));
    outcome.unwrap_or_else(|problem| panic!("{harm}: {problem}"))
}

async fn trials(what: &'static str, count: usize, zeroing: bool) {
    let mut check = Check::begin("D05", what);
    let mut dice = Dice::cast();
    let sample = Arc::new(Sample::make().await);
    assert_eq!(found(sample.data.path()), Ok(false), "what nobody harmed is sound");
    let mut outcomes = BTreeMap::new();
    for _ in 0..count {
        *outcomes.entry(trial(&sample, &mut dice, zeroing).await).or_insert(0) += 1;
        check.tried(1);
    }
    for (outcome, count) in outcomes {
        check.figure(&format!("{outcome:?}").to_lowercase(), count);
    }
    check.figure("silent", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flipped_bit_is_never_silent() {
    trials("single flipped bits over all files", short_or_long(60, 500), false).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn zeroed_pages_are_never_silent() {
    trials("4-KiB zeroings over all files", short_or_long(15, 100), true).await;
}

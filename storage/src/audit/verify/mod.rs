//! Verifying: reads everything in a data directory and says whether history is as it was recorded.
//!
//! Read in this order: [`report`] (what can be found), [`anchors`] and [`path`] (what signatures say),
//! [`read`] and [`parse`] (the segments), [`pass`], [`runs`] and [`follow`] (the chain through them),
//! [`removals`], [`kept`], [`ending`].
//!
//! What must stay true: only files are needed, and none is changed, also beside a running server; no
//! file is believed because of what it says of itself; memory does not grow with the log, but for some
//! hundred bytes a checkpoint and a removal.

mod anchors;
mod ending;
mod facts;
mod follow;
mod kept;
mod parse;
mod pass;
mod path;
mod read;
mod removals;
mod report;
mod runs;

use std::path::PathBuf;
use std::sync::mpsc::sync_channel;
use std::time::{Duration, Instant};

use super::checkpoint::SignedLine;
use super::key::PublicKey;
use super::lines::CHECKPOINTS_FILE;
use crate::StorageError;
use crate::artifact::ArtifactStore;
use crate::limits::CLOSING_CHECKPOINT_MILLIS;
use crate::log::inspect::{self, Look};

use anchors::Anchors;
use kept::Kept;
use pass::{Ended, Pass};
use path::Trail;
use report::Findings;
pub use report::{Finding, Pinned, Problem, Report};

/// Times that everything is read again when a running server changed segments meanwhile.
const PASSES_MAX: usize = 4;
/// Where a checkpoint is waited for, the file is looked at this often.
const CLOSING_LOOK: Duration = Duration::from_millis(20);

/// What to verify, and what was kept elsewhere to hold it against.
#[derive(Debug, Clone)]
pub struct VerifyOptions {
    /// The data directory: `log` and `audit` are in it.
    pub data_dir: PathBuf,
    pub key: Option<PublicKey>,
    /// Checkpoints kept elsewhere.
    pub saved: Vec<SignedLine>,
    /// Whether to look at what is kept beside the log too.
    pub artifacts: bool,
}

impl VerifyOptions {
    #[must_use]
    pub fn new(data_dir: impl Into<PathBuf>) -> Self {
        Self { data_dir: data_dir.into(), key: None, saved: Vec::new(), artifacts: true }
    }
}

/// How far verifying has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    pub bytes: u64,
    pub bytes_total: u64,
}

/// Verifies a data directory.
///
/// # Errors
/// When there is no log, another build's format wrote it, or the operating system refuses. What is
/// wrong with a log is no error: it is in the report.
pub fn verify(options: &VerifyOptions, progress: &mut dyn FnMut(Progress)) -> Result<Report, StorageError> {
    let directory = options.data_dir.join("log");
    let began = Instant::now();
    let mut passes = 0;
    // What one pass has proven need not be read again by the next.
    let store = options.artifacts.then(|| ArtifactStore::open_read_only(&options.data_dir.join("artifacts")));
    loop {
        passes += 1;
        let before = Fingerprint::of(options, &inspect::look(&directory)?);
        let anchored = signed(options, &directory)?;
        let look = inspect::look(&directory)?;
        let ended = one_pass(options, store.as_ref(), anchored, look, progress)?;
        let comes = ended.as_ref().is_some_and(|report| report.unsigned_close) && closing_comes(options, &before)?;
        let changed = comes || Fingerprint::of(options, &inspect::look(&directory)?) != before;
        match ended {
            Some(mut report) if report.is_sound() || !changed || passes >= PASSES_MAX => {
                report.seconds = began.elapsed().as_secs_f64();
                return Ok(report);
            }
            None if passes >= PASSES_MAX => {
                let reason = "segments are removed faster than they can be read".into();
                return Err(StorageError::Unavailable { reason });
            }
            _ => {}
        }
    }
}

/// What tells whether a running server did anything that reading may have fallen into.
#[derive(PartialEq, Eq)]
struct Fingerprint {
    segments: Vec<(u32, u16)>,
    /// How far the log goes, and whether it was closed.
    end: Option<(u64, bool)>,
    /// Identity and length of the checkpoints.
    checkpoints: Option<(u64, u64)>,
}

impl Fingerprint {
    fn of(options: &VerifyOptions, look: &Look) -> Self {
        Self {
            segments: look.segments.clone(),
            end: look.mark.as_ref().map(|mark| (mark.last_seq, mark.clean)),
            checkpoints: checkpoints(options),
        }
    }
}

fn checkpoints(options: &VerifyOptions) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt as _;
    let facts = options.data_dir.join("audit").join(CHECKPOINTS_FILE).metadata().ok()?;
    Some((facts.ino(), facts.len()))
}

/// Whether the checkpoint of a closing that was a moment ago is written while we wait: a server that ends
/// seals its log first.
fn closing_comes(options: &VerifyOptions, before: &Fingerprint) -> Result<bool, StorageError> {
    let mark = options.data_dir.join("log").join("mark");
    let sealed_at = mark.metadata().and_then(|facts| facts.modified()).map_err(StorageError::io("read", &mark))?;
    let limit = Duration::from_millis(CLOSING_CHECKPOINT_MILLIS);
    while sealed_at.elapsed().is_ok_and(|passed| passed < limit) {
        if checkpoints(options) != before.checkpoints {
            return Ok(true);
        }
        std::thread::sleep(CLOSING_LOOK);
    }
    Ok(checkpoints(options) != before.checkpoints)
}

/// Read before the log is: what is signed is in the log already.
fn signed(options: &VerifyOptions, log: &std::path::Path) -> Result<(Anchors, Findings), StorageError> {
    let audit = options.data_dir.join("audit");
    let log_id = inspect::look(log)?.mark.map(|mark| mark.log_id);
    let mut findings = Findings::default();
    let mut anchors = Anchors::read(&audit, log_id.as_deref(), options.key, &options.saved, &mut findings)?;
    path::check(&audit, &mut anchors, &mut findings)?;
    Ok((anchors, findings))
}

/// `None`: segments were removed meanwhile.
fn one_pass(
    options: &VerifyOptions,
    store: Option<&ArtifactStore>,
    (anchors, findings): (Anchors, Findings),
    look: Look,
    progress: &mut dyn FnMut(Progress),
) -> Result<Option<Report>, StorageError> {
    let (directory, audit) = (options.data_dir.join("log"), options.data_dir.join("audit"));
    let oldest = look.mark.as_ref().map(|mark| mark.oldest_segment);
    let oldest = oldest.or(look.segments.first().map(|(number, _)| *number)).unwrap_or(1);
    let trail = Trail::open(&audit)?;
    let mut pass = Pass::new(&anchors, trail, findings, &options.data_dir, &look);
    pass.kept = store.map(Kept::read).transpose()?;
    let (sender, steps) = sync_channel(read::STEPS_WAITING_MAX);
    let ended = std::thread::scope(|scope| {
        let for_thread = directory.clone();
        scope.spawn(move || read::read(&for_thread, oldest, look, &sender));
        let ended = pass.run(&steps, progress);
        // Whoever reads on would wait for ever for room.
        drop(steps);
        ended
    })?;
    match ended {
        Ended::Whole => pass.report(&options.data_dir).map(Some),
        Ended::Stale => Ok(None),
    }
}

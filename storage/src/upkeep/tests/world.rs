//! A log with artifacts and a keeper, at a time that the test chooses.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::StorageError;
use crate::artifact::ArtifactStore;
use crate::audit::verify::{VerifyOptions, verify};
use crate::event::catalog::LogRemoved;
use crate::event::codec::ContextField;
use crate::event::removed::{Portion, from_json};
use crate::event::{Draft, EventView, Level, Payload};
use crate::log::tests::faulty_io::FaultyIo;
use crate::log::tests::open_on;
use crate::log::tests::rewrite::{Told, tell};
use crate::log::{Log, LogOptions};
use crate::query::tests::world::{
    console, context, entered, failed, finished, launching, of_request, request, response,
};
use crate::time::{Clock, ManualClock};
use crate::upkeep::{Counts, Keeper, Parts, Policy};

pub const DAY_MICROS: i64 = 86_400_000_000;
const START_MICROS: i64 = 20_000 * DAY_MICROS;

pub struct World {
    pub directory: tempfile::TempDir,
    pub clock: Arc<ManualClock>,
    pub log: Log,
    pub artifacts: ArtifactStore,
    pub runtime: tokio::runtime::Runtime,
}

pub fn days(days: u64) -> Option<Duration> {
    Some(Duration::from_secs(days * 86_400))
}

pub fn policy() -> Policy {
    Policy { telemetry: days(30), evidence: days(90), audit: days(400), log_bytes_max: None }
}

pub fn directory() -> tempfile::TempDir {
    tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a directory")
}

impl World {
    pub fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        clock.set_micros(START_MICROS);
        Self::on(directory(), clock)
    }

    pub fn on(directory: tempfile::TempDir, clock: Arc<ManualClock>) -> Self {
        Self::failing(directory, clock, Arc::default()).expect("the log opens")
    }

    /// On files that fail as `io` says; `None` when the log does not even open.
    pub fn failing(directory: tempfile::TempDir, clock: Arc<ManualClock>, io: Arc<FaultyIo>) -> Option<Self> {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        let log_directory = directory.path().join("log");
        let options = LogOptions { clock: clock.clone(), segment_bytes: 1 << 20, ..LogOptions::new(log_directory) };
        let log = open_on(options, io).ok()?;
        let artifacts = ArtifactStore::open(&directory.path().join("artifacts"), 1 << 30).expect("it opens");
        Some(Self { directory, clock, log, artifacts, runtime })
    }

    /// As after a crash: nothing was closed.
    pub fn reopened(self) -> Self {
        let Self { directory, clock, log, .. } = self;
        drop(log);
        Self::on(directory, clock)
    }

    pub fn upkeep_directory(&self) -> PathBuf {
        self.directory.path().join("upkeep")
    }

    pub fn keeper(&self, policy: Policy) -> Keeper {
        let (log, artifacts, clock) = (self.log.clone(), self.artifacts.clone(), self.clock.clone());
        let parts = Parts { log, index: None, artifacts, policy, clock };
        Keeper::open(&self.upkeep_directory(), parts).expect("it opens")
    }

    pub fn pass(&self, policy: Policy) -> Counts {
        self.try_pass(policy).expect("the pass goes through")
    }

    pub fn try_pass(&self, policy: Policy) -> Result<Counts, StorageError> {
        let mut keeper = self.keeper(policy);
        keeper.pass(&|| false).map(|()| keeper.counts())
    }

    pub fn put(&self, drafts: Vec<Draft>) -> u64 {
        self.runtime.block_on(self.log.commit(drafts)).expect("it is recorded").first_seq
    }

    pub fn roll(&self) {
        self.runtime.block_on(self.log.roll()).expect("a segment is sealed");
    }

    pub fn days_pass(&self, days: i64) {
        self.clock.set_micros(self.clock.now_micros() + days * DAY_MICROS);
    }

    /// Everything that the log tells; the verifier finds nothing wrong with it.
    pub fn told(&self) -> Told {
        let report = verify(&VerifyOptions::new(self.directory.path()), &mut |_| {}).expect("it can be read");
        let findings: Vec<_> = report.findings.iter().filter(|finding| finding.problem.is_of_events()).collect();
        assert!(findings.is_empty(), "{findings:?}");
        tell(&self.log.reader()).expect("the log is whole")
    }

    /// What is left, by number.
    pub fn kinds(&self) -> BTreeMap<u64, String> {
        let mut kinds = BTreeMap::new();
        self.each(&mut |view| {
            kinds.insert(view.seq, view.kind().map_or("unknown", |kind| kind.name()).to_owned());
        });
        kinds
    }

    pub fn each(&self, visit: &mut dyn FnMut(&EventView<'_>)) {
        let scanned = self.log.reader().scan(0, &|_| true, &mut |view| {
            visit(view);
            ControlFlow::Continue(())
        });
        scanned.expect("the log is read");
    }

    /// The announcements, in order: owner and session, and what was said.
    pub fn removals(&self) -> Vec<(String, LogRemoved)> {
        let mut found = Vec::new();
        self.each(&mut |view| {
            let text = |field| view.context(field).unwrap_or("-");
            let whose = format!("{}/{}", text(ContextField::Owner), text(ContextField::SessionId));
            if let Ok(removed) = LogRemoved::take(view) {
                found.push((whose, removed));
            }
        });
        found
    }

    /// One session of everything: what counts as noise, as evidence and as audit, in that order.
    pub fn session(&self, owner: &str, session: &str) -> [Vec<u64>; 3] {
        let first = self.put(vec![launching(owner, session), entered(owner, session)]);
        let (good, bad) = (of_request(owner, session, "r-good"), of_request(owner, session, "r-bad"));
        let console_first = self.put(vec![
            console(owner, session, Level::Info, "fine"),
            console(owner, session, Level::Warning, "hm"),
            console(owner, session, Level::Error, "bad"),
        ]);
        let network_first = self.put(vec![
            request(&good, "http://127.0.0.1/good", "GET", "xhr", 0),
            request(&bad, "http://127.0.0.1/bad", "GET", "xhr", 0),
            response(&good, "http://127.0.0.1/good", 200),
            response(&bad, "http://127.0.0.1/bad", 500),
            finished(&good),
            finished(&bad),
            failed(&of_request(owner, session, "r-broken"), "net::ERR_FAILED"),
        ]);
        let of = |first: u64, places: &[u64]| places.iter().map(move |place| first + place).collect::<Vec<_>>();
        let noise = [of(console_first, &[0, 1]), of(network_first, &[0, 2, 4])].concat();
        let evidence = [of(console_first, &[2]), of(network_first, &[1, 3, 5, 6])].concat();
        [noise, evidence, of(first, &[0, 1])]
    }
}

pub fn portions(removed: &LogRemoved) -> Vec<Portion> {
    from_json(removed.kinds.as_str()).expect("it reads back")
}

/// `gap` events name a session and no owner.
pub fn ownerless(session: &str) -> Draft {
    crate::query::tests::world::gap(session, "console.message", 3)
}

pub fn plain(owner: &str, session: &str, text: &str) -> Draft {
    console(owner, session, Level::Info, text)
}

pub fn of(owner: &str, session: &str) -> crate::event::Context {
    context(owner, session)
}

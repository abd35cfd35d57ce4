//! One process at a time, on one simulated disk: opening, serving, dying, opening again.

use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use super::super::super::queue::Queue;
use super::super::super::writer::Writer;
use super::super::super::{Durability, Log, LogOptions, Reader};
use super::super::Dice;
use super::super::simulated_disk::{Mishap, Plan, Process, SimulatedDisk};
use super::book::Book;
use super::upkeep::Prepared;
use super::walk::Walk;
use crate::StorageError;
use crate::audit::verify::{Finding, Problem, VerifyOptions, verify};
use crate::limits::QUEUE_BYTES_MAX;
use crate::time::{Clock, ManualClock};

/// So long that only steps make it sync.
const BY_INTERVAL: Durability = Durability::Interval { millis: 86_400_000 };

pub struct World {
    pub dice: Dice,
    pub disk: SimulatedDisk,
    pub options: LogOptions,
    /// Small, so that a segment written anew is several groups.
    pub group_bytes: usize,
    pub clock: Arc<ManualClock>,
    pub running: Option<Running>,
    /// A reader in another process.
    pub outside: Option<Reader>,
    pub book: Book,
    /// The power goes when the process is buried.
    pub power_goes: bool,
    pub is_full: bool,
    /// What was done, for who has to find out why it failed.
    pub trace: Vec<String>,
}

/// A log that is open, and the process that has it open.
pub struct Running {
    pub log: Log,
    pub queue: Arc<Queue>,
    /// Gone once it has ended.
    pub writer: Option<Writer>,
    pub process: Arc<Process>,
    pub prepared: Option<Prepared>,
    pub walk: Option<Walk>,
    /// Up to here the chain was claimed.
    pub claimed: u64,
}

impl World {
    pub fn new(seed: u64, scratch: &Path) -> Self {
        let mut dice = Dice::of(seed);
        let clock = Arc::new(ManualClock::default());
        let options = LogOptions {
            segment_bytes: [1024, 2048, 6000][dice.below(3) as usize],
            durability: if dice.one_in(3) { BY_INTERVAL } else { Durability::Commit },
            // Hardly more than the largest request, or more than all of them.
            queue_bytes_max: if dice.one_in(3) { 8000 } else { QUEUE_BYTES_MAX },
            clock: clock.clone(),
            ..LogOptions::new(scratch.join("log"))
        };
        let group_bytes = [200, 1000, 10_000][dice.below(3) as usize];
        let disk = SimulatedDisk::new(dice.below(u64::MAX));
        let (book, trace) = (Book::default(), Vec::new());
        let (running, outside, power_goes, is_full) = (None, None, false, false);
        let mut world =
            Self { dice, disk, options, group_bytes, clock, running, outside, book, power_goes, is_full, trace };
        world.set_clock(1_700_000_000_000_000);
        world
    }

    pub fn set_clock(&mut self, micros: i64) {
        self.clock.set_micros(micros);
        self.book.times.insert(micros);
    }

    pub fn move_clock(&mut self, micros: i64) {
        self.set_clock(self.clock.now_micros() + micros);
    }

    /// Whether what is acknowledged may still not be synced.
    pub fn by_interval(&self) -> bool {
        self.options.durability != Durability::Commit
    }

    pub fn note(&mut self, text: impl Into<String>) {
        self.trace.push(text.into());
    }

    pub fn directory(&self) -> PathBuf {
        self.options.directory.clone()
    }

    /// Opens the log in a process of its own, in which `plan` may go wrong; gives the plan back when it
    /// did not.
    pub fn open(&mut self, plan: Option<Plan>) -> Option<Plan> {
        let process = self.disk.process();
        process.plan(plan);
        let options = self.options.clone();
        let attempt = catch_unwind(AssertUnwindSafe(|| Log::prepare(options, process.clone())));
        let left = process.plan(None);
        let happened = process.happened();
        let problem = match attempt {
            Ok(Ok((mut log, writer))) if !process.is_dead() => {
                self.note(format!("opened {happened:?}"));
                let inner = Arc::get_mut(&mut log.inner).expect("nobody else has it yet");
                inner.rewriter.group_bytes = self.group_bytes;
                let queue = log.inner.queue.clone();
                let mut running =
                    Running { log, queue, writer: Some(writer), process, prepared: None, walk: None, claimed: 0 };
                if running.log.health().full {
                    // It opens on a full disk too, and its first events go in once there is room.
                    self.free();
                    let log = running.log.clone();
                    running.wait(log.sync()).expect("there is room");
                    assert!(!running.log.health().full);
                }
                self.running = Some(running);
                return left;
            }
            Ok(Ok(_)) => "it died".to_owned(),
            Ok(Err(error)) => error.to_string(),
            Err(_) => "it panicked".into(),
        };
        self.note(format!("not opened {happened:?}: {problem}"));
        assert!(!happened.is_empty(), "the log does not open: {problem}");
        // How an opening that got nowhere counts is left open.
        self.book.clean = self.book.clean.filter(|clean| !clean);
        self.bury(&process);
        left
    }

    /// The process dies, or has died; the power goes with it where that was what happened.
    pub fn bury(&mut self, process: &Process) {
        process.kill();
        self.running = None;
        let cut = process.happened().iter().any(|(mishap, _)| *mishap == Mishap::PowerCut);
        if std::mem::take(&mut self.power_goes) || cut {
            self.outside = None;
            self.disk.cut_power();
        } else if self.dice.one_in(3) {
            self.disk.forget_lost();
        } else {
            return;
        }
        if self.by_interval() {
            self.book.doubt_unsynced();
        }
    }
}

impl World {
    /// What lies on the disk verifies, whether or not a process died over it.
    pub fn verify(&mut self, data_dir: &Path) {
        let directory = data_dir.join("log");
        // What an earlier program left there.
        let _ = std::fs::remove_dir_all(data_dir);
        std::fs::create_dir_all(&directory).expect("it can be made");
        for (name, bytes) in self.disk.files() {
            std::fs::write(directory.join(name), bytes).expect("it can be written");
        }
        if self.book.last_seq() == 0 {
            return;
        }
        let report = verify(&VerifyOptions::new(data_dir), &mut |_| {}).expect("it can be read");
        // Nobody here signs anything, or puts removals on record.
        let bad = |finding: &&Finding| !matches!(finding.problem, Problem::Removal | Problem::Unsigned);
        let bad: Vec<&Finding> = report.findings.iter().filter(bad).collect();
        assert!(bad.is_empty(), "it does not verify: {bad:?}");
    }
}

impl Running {
    /// Lets the writer do one piece of work. Whether there is a writer that did.
    pub fn serve(&mut self) -> bool {
        let Some(writer) = &mut self.writer else { return false };
        if !writer.serve(&self.queue, self.queue.take()) {
            self.writer = None;
        }
        true
    }

    /// Waits for what needs the writer.
    pub fn wait<T>(&mut self, what: impl Future<Output = T>) -> T {
        let mut what = pin!(what);
        let mut context = Context::from_waker(Waker::noop());
        loop {
            if let Poll::Ready(outcome) = what.as_mut().poll(&mut context) {
                return outcome;
            }
            assert!(self.serve(), "somebody waits, and nobody works");
        }
    }

    /// Whether a failure now has a reason.
    pub fn is_excused(&self) -> bool {
        !self.process.happened().is_empty()
    }

    pub fn excuse(&self, error: &StorageError) {
        assert!(self.is_excused(), "a failure without a cause: {error}");
    }
}

//! D02 and D12: a power cut at any moment takes nothing that was acknowledged and nothing that a
//! subscriber was shown.
//!
//! The rig is only worth something when it can lose: the same program on a disk that only says it
//! has synced, and sled 0.34 behind its flush, must both lose acknowledged events in it.

use std::path::{Path, PathBuf};
use std::time::Duration;

use storage::log::{Log, LogOptions};

use super::child::{Engine, Orders};
use super::notes::{Held, Notes, Verdict};
use super::program::Program;
use crate::support::check::{Check, short_or_long};
use crate::support::dice::Dice;
use crate::support::loop_disk::LoopDisk;

const DISK_MEBIBYTES: u64 = 128;
/// The file system commits its journal this often by itself; what happens after it is another case.
const JOURNAL_MILLIS: u64 = 5_000;
const INTERVAL_MILLIS: u64 = 300;
/// The interval, and time for a sync on a busy machine.
const INTERVAL_LIMIT: Duration = Duration::from_millis(INTERVAL_MILLIS + 700);
/// Pretends to sync: the call returns at once and says that all is well.
const PRETENDING: [&str; 8] = [
    "strace",
    "-f",
    "--seccomp-bpf",
    "-qq",
    "-o/dev/null",
    "-etrace=fsync,fdatasync,sync_file_range",
    "-einject=fsync,fdatasync:retval=0",
    "--",
];

/// Runs the program on a fresh disk until `instant` and cuts the power; the disk after it, and what
/// had been noted.
async fn cut(orders: &Orders, tracer: &[&str], instant: Duration) -> Result<(LoopDisk, PathBuf, Notes), String> {
    let disk = LoopDisk::fresh(DISK_MEBIBYTES)?;
    let orders = Orders { store: disk.path().join("store"), ..orders.clone() };
    let mut program = Program::behind(tracer, &orders);
    program.opened().await;
    program.has_run_for(instant).await;
    program.freeze().await;
    let after = disk.after_power_cut();
    let notes = program.notes();
    program.kill().await;
    let after = after?;
    let store = after.path().join("store");
    Ok((after, store, notes))
}

/// How the log that a power cut left stands against the notes.
fn verdict(store: &Path, notes: &Notes) -> Result<Verdict, String> {
    let log = Log::open(LogOptions::new(store)).map_err(|error| error.to_string())?;
    Ok(Held::read(&log.reader()).against(notes))
}

fn orders(notes: &tempfile::TempDir, run: u64) -> Orders {
    Orders { run, pause_micros: 5_000, ..Orders::new(notes.path(), notes.path()) }
}

/// Instants from the first moments on to well behind the journal's own commit.
fn instants(count: u64, dice: &mut Dice) -> Vec<Duration> {
    let spans = [0..300, 300..1_000, 1_000..JOURNAL_MILLIS, JOURNAL_MILLIS + 1_000..JOURNAL_MILLIS + 3_000];
    let of_span = |n: u64, dice: &mut Dice| match count {
        // A few of them stand for the extremes and the middle.
        0..4 => dice.within(spans[[0, 2, 3][n as usize % 3]].clone()),
        _ => dice.within(spans[n as usize % 4].clone()),
    };
    (0..count).map(|n| Duration::from_millis(of_span(n, dice))).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_power_cut_takes_nothing_that_was_acknowledged() {
    let mut check = Check::begin("D02", "power cut on ext4, syncing");
    let mut shown = Check::begin("D12", "what two subscribers saw before the power cuts");
    let mut dice = Dice::cast();
    let notes_directory = tempfile::tempdir().expect("a temporary directory");
    let (mut acked, mut seen) = (0, 0);
    for (run, instant) in (0..).zip(instants(short_or_long(3, 20), &mut dice)) {
        let (disk, store, notes) = match cut(&orders(&notes_directory, run), &[], instant).await {
            Ok(cut) => cut,
            Err(why) => {
                let why = format!("{why}; the power cuts of the storage crate's model test stand in");
                check.not_run(&why);
                return shown.not_run(&why);
            }
        };
        assert!(notes.elapsed() >= instant && notes.acked_events() > 0);
        let verdict = verdict(&store, &notes);
        drop(disk);
        assert_eq!(verdict, Ok(Verdict::default()), "cut after {instant:?}, {} acknowledged", notes.acked_events());
        acked += notes.acked_events();
        seen += notes.seen.len();
        check.tried(1);
        shown.tried(1);
    }
    check.figure("acknowledged", acked);
    check.figure("lost", 0);
    shown.figure("shown", seen);
    shown.figure("replaced", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn with_syncs_by_interval_a_power_cut_takes_the_last_interval_at_most() {
    let mut check = Check::begin("D02", "power cut on ext4, durability interval=300");
    let mut dice = Dice::cast();
    let notes_directory = tempfile::tempdir().expect("a temporary directory");
    let (mut acked, mut lost) = (0, 0);
    for (run, instant) in (0..).zip(instants(short_or_long(2, 8), &mut dice)) {
        let orders = Orders {
            sync_interval_millis: Some(INTERVAL_MILLIS),
            // What they are shown is not durable yet, and they are told so.
            subscribers: false,
            ..orders(&notes_directory, run)
        };
        let instant = instant.max(2 * INTERVAL_LIMIT);
        let (disk, store, mut notes) = match cut(&orders, &[], instant).await {
            Ok(cut) => cut,
            Err(why) => return check.not_run(&why),
        };
        acked += notes.acked_events();
        let log = Log::open(LogOptions::new(&store)).expect("the log opens");
        let held = Held::read(&log.reader());
        drop((log, disk));
        lost += held.against(&notes).lost;
        let safe = notes.elapsed().saturating_sub(INTERVAL_LIMIT);
        notes.acked.retain(|acked| acked.elapsed <= safe);
        assert!(notes.acked_events() > 0);
        assert_eq!(held.against(&notes), Verdict::default(), "cut after {instant:?}, synced until {safe:?}");
        check.tried(1);
    }
    check.figure("acknowledged", acked);
    check.figure("lost within the interval", lost);
    check.figure("lost before it", 0);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rig_loses_what_is_only_said_to_be_synced() {
    let mut check = Check::begin("D02", "control: power cut, syncs pretended; must lose");
    let mut dice = Dice::cast();
    let notes_directory = tempfile::tempdir().expect("a temporary directory");
    let (mut acked, mut lost, mut refused) = (0, 0, 0);
    for (run, instant) in (0..).zip(instants(short_or_long(1, 4), &mut dice)) {
        let (disk, store, notes) = match cut(&orders(&notes_directory, run), &PRETENDING, instant).await {
            Ok(cut) => cut,
            Err(why) => return check.not_run(&why),
        };
        acked += notes.acked_events();
        let missing = match std::panic::catch_unwind(|| verdict(&store, &notes)) {
            Ok(Ok(verdict)) => verdict.lost + verdict.altered,
            // What the mark had promised is not there: as good as it can be on such a disk.
            Ok(Err(_)) | Err(_) => {
                refused += 1;
                notes.acked_events()
            }
        };
        drop(disk);
        assert!(missing > 0, "a disk that does not sync must lose: {instant:?}, {} acknowledged", notes.acked_events());
        lost += missing;
        check.tried(1);
    }
    check.figure("acknowledged", acked);
    check.figure("lost or refused", lost);
    check.figure("refused to open", refused);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_rig_loses_what_sled_has_flushed() {
    let mut check = Check::begin("D02", "control: power cut, sled 0.34 behind its flush; must lose");
    let mut dice = Dice::cast();
    let notes_directory = tempfile::tempdir().expect("a temporary directory");
    let (mut acked, mut lost) = (0, 0);
    for (run, instant) in (0..).zip(instants(short_or_long(1, 4), &mut dice)) {
        let orders = Orders { engine: Engine::Sled, ..orders(&notes_directory, run) };
        let (disk, store, notes) = match cut(&orders, &[], instant).await {
            Ok(cut) => cut,
            Err(why) => return check.not_run(&why),
        };
        let last_seq = notes.acked.last().map_or(0, |acked| acked.last_seq);
        // It may refuse, panic, or open as if nothing had been.
        let held =
            std::panic::catch_unwind(|| sled::open(&store).map_or(0, |database| database.iter().flatten().count()));
        let missing = last_seq.saturating_sub(held.unwrap_or(0) as u64);
        drop(disk);
        acked += last_seq;
        lost += missing;
        check.tried(1);
    }
    assert!(lost > 0, "sled's flush is no sync: {acked} acknowledged");
    check.figure("acknowledged", acked);
    check.figure("lost", lost);
}

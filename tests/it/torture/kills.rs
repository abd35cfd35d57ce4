//! D01 and D12: a writing process that is killed at any moment has lost nothing that it acknowledged,
//! and nothing that a subscriber was shown ever becomes something else.

use storage::log::{Log, LogOptions, Reader};

use super::child::Orders;
use super::notes::{Held, Notes, Verdict};
use super::program::Program;
use crate::support::check::{Check, short_or_long};
use crate::support::dice::Dice;

/// Events that are acknowledged before a kill, at the most.
const EVENTS_MAX: u64 = 4_000;

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_writer_has_lost_nothing_it_acknowledged() {
    let mut check = Check::begin("D01", "kill -9 of a process with 8 writers, log level");
    let mut shown = Check::begin("D12", "what two subscribers saw during the kills");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut orders = Orders::new(&directory.path().join("log"), directory.path());
    let mut dice = Dice::cast();
    let kills = short_or_long(5, 50);
    let (mut acked, mut seen) = (0, 0);
    let mut noted = Vec::new();
    for run in 0..kills {
        orders.run = run;
        let mut program = Program::start(&orders);
        program.opened().await;
        program.acknowledged(dice.within(0..EVENTS_MAX)).await;
        program.kill().await;
        noted.push(Notes::read(directory.path(), run));
        let notes = noted.last().expect("it was just put there");
        let (epoch, last_seq) = notes.opened.expect("it was open");
        assert!(epoch > run && last_seq > acked, "{epoch} {last_seq}");
        acked += notes.acked_events();
        seen += notes.seen.len();
    }
    drop(Log::open(LogOptions::new(&orders.store)).expect("the log opens"));
    let held = Held::read(&Reader::open(&orders.store).expect("the log is there"));
    for (run, notes) in noted.iter().enumerate() {
        assert_eq!(held.against(notes), Verdict::default(), "run {run}");
    }
    check.tried(noted.len());
    check.figure("acknowledged", acked);
    check.figure("lost", 0);
    shown.tried(noted.len());
    shown.figure("shown", seen);
    shown.figure("replaced", 0);
}

//! D11: over a hundred restarts, half of them after a kill and the second half with a clock that was
//! set back by an hour, numbers and epochs only rise, none is used twice, and the step of the clock
//! is on record.

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use storage::event::Payload;
use storage::event::catalog::LogOpened;
use storage::log::Reader;

use super::child::Orders;
use super::notes::{Held, Notes, Verdict};
use super::program::Program;
use crate::support::check::Check;
use crate::support::dice::Dice;

const RESTARTS: u64 = 100;
const HOUR_MICROS: i64 = 3_600_000_000;
/// A run's own time comes off the step: this is more than any run takes.
const RUN_MILLIS_MAX: u64 = 120_000;

/// Every opening on record, in order.
fn openings(reader: &Reader) -> Vec<LogOpened> {
    let mut found = Vec::new();
    let scanned = reader.scan(reader.first_seq(), &|_| true, &mut |event| {
        found.extend(LogOpened::take(event));
        ControlFlow::Continue(())
    });
    scanned.expect("the log can be read");
    found
}

#[tokio::test(flavor = "multi_thread")]
async fn numbers_and_epochs_only_rise_whatever_the_clock_does() {
    let mut check = Check::begin("D11", "restarts, half killed, clock set back an hour midway");
    let directory = tempfile::tempdir().expect("a temporary directory");
    let mut orders = Orders::new(&directory.path().join("log"), directory.path());
    orders.subscribers = false;
    orders.segment_bytes = 64 * 1024;
    let mut dice = Dice::cast();
    let mut last_told = 0;
    for run in 0..RESTARTS {
        orders.run = run;
        orders.requests = Some(3).filter(|_| run % 2 == 0);
        orders.clock_behind_micros = if run < RESTARTS / 2 { 0 } else { HOUR_MICROS };
        let mut program = Program::start(&orders);
        if run % 2 == 0 {
            assert!(program.ended().await.success(), "run {run}");
        } else {
            program.opened().await;
            program.acknowledged(dice.within(0..100)).await;
            program.kill().await;
        }
        let notes = Notes::read(directory.path(), run);
        let (epoch, last_seq) = notes.opened.expect("it was open");
        assert_eq!((epoch, notes.closed), (run + 1, run % 2 == 0));
        assert!(last_seq > last_told, "run {run}: {last_told} was told before, and then {last_seq}");
        last_told = notes.acked.iter().map(|acked| acked.last_seq).fold(last_seq, u64::max);
    }
    let reader = Reader::open(&orders.store).expect("the log is there");
    let held = Held::read(&reader);
    let mut numbers = BTreeSet::new();
    for run in 0..RESTARTS {
        let notes = Notes::read(directory.path(), run);
        assert_eq!(held.against(&notes), Verdict::default(), "run {run}");
        let told = notes.acked.iter().flat_map(|acked| acked.first_seq..=acked.last_seq);
        told.for_each(|seq| assert!(numbers.insert(seq), "{seq} was told twice"));
    }
    let openings = openings(&reader);
    let epochs: Vec<u64> = openings.iter().map(|opened| opened.epoch).collect();
    assert_eq!(epochs, (1..=RESTARTS).collect::<Vec<_>>());
    for (run, opened) in (0..).zip(&openings) {
        // What came before the very first opening was nothing, in good order.
        assert_eq!(opened.clean, run == 0 || run % 2 == 1, "run {run}");
        let back_millis = opened.clock_back_ms.unwrap_or(0);
        match run == RESTARTS / 2 {
            true => assert!((3_600_000 - RUN_MILLIS_MAX..=3_600_000).contains(&back_millis), "{back_millis}"),
            false => assert_eq!(back_millis, 0, "run {run}"),
        }
    }
    check.tried(openings.len());
    check.figure("numbers told", numbers.len());
    check.figure("clock steps on record", 1);
}

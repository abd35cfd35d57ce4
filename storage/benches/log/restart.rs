//! What a start costs: opening the log, the index being ready, the first page; and making the index anew.

use std::path::Path;

use crate::grown::Grown;
use crate::questions::all;
use crate::setting;
use crate::table::{both_seconds, directory_bytes, head, median, number, resident_mebibytes, row};

const EVENTS: u64 = 1_000_000;
const STARTS: usize = 7;

pub fn run(place: &Path) {
    let events = EVENTS.min(setting("BENCH_EVENTS_MAX", EVENTS));
    let grown = Grown::of(place, events);
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    rebuild(&runtime, &grown);
    let question = &all()[0];
    let (mut log, mut opened, mut paged, mut ready) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    for _ in 0..STARTS {
        let started = std::time::Instant::now();
        let so_far = || started.elapsed().as_secs_f64() * 1000.0;
        let running = grown.open();
        log.push(running.log_open_millis);
        opened.push(so_far());
        runtime.block_on(question.ask(&running.ledger, &grown.places[0]));
        paged.push(so_far());
        runtime.block_on(running.caught_up());
        ready.push(so_far());
        runtime.block_on(running.close());
    }
    head(&[&format!("start on {events} events, median of {STARTS}"), "ms since the start"]);
    row(&["log open".into(), number(median(&mut log))]);
    row(&["auditor started, index opening".into(), number(median(&mut opened))]);
    row(&["first page of 100".into(), number(median(&mut paged))]);
    row(&["index has seen everything".into(), number(median(&mut ready))]);
}

/// The index from nothing.
fn rebuild(runtime: &tokio::runtime::Runtime, grown: &Grown) {
    if grown.index_directory().exists() {
        std::fs::remove_dir_all(grown.index_directory()).unwrap();
    }
    let before = resident_mebibytes();
    let running = grown.open();
    let ([took, of_processor], ()) = both_seconds(|| runtime.block_on(running.caught_up()));
    let last_seq = running.log.watch().borrow().last_seq;
    let (resident, running_open) = (resident_mebibytes() - before, running.log_open_millis);
    let bytes = directory_bytes(&grown.log_directory());
    runtime.block_on(running.close());
    head(&[
        "index from nothing",
        "events/s",
        "events a processor second",
        "log MB/s",
        "index bytes an event",
        "MiB more",
        "log open ms",
    ]);
    row(&[
        format!("{last_seq} events"),
        number(last_seq as f64 / took),
        number(last_seq as f64 / of_processor),
        number(bytes as f64 / 1e6 / took),
        number(directory_bytes(&grown.index_directory()) as f64 / last_seq as f64),
        number(resident),
        number(running_open),
    ]);
}

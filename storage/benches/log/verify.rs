//! How fast a whole data directory is verified: checksums, hash chain, signatures.

use std::path::Path;

use storage::audit::verify::{VerifyOptions, verify};

use crate::grown::Grown;
use crate::setting;
use crate::table::{both_seconds, head, median, number, row};

const EVENTS: u64 = 1_000_000;
const ROUNDS: usize = 5;

pub fn run(place: &Path) {
    let grown = Grown::of(place, EVENTS.min(setting("BENCH_EVENTS_MAX", EVENTS)));
    let options = VerifyOptions::new(&grown.directory);
    let first = verify(&options, &mut |_| {}).unwrap();
    assert!(first.is_sound(), "a log just made does not verify: {:?}", first.findings);
    let (mut by_clock, mut of_processor) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        let (seconds, _) = both_seconds(|| verify(&options, &mut |_| {}).unwrap());
        by_clock.push(seconds[0]);
        of_processor.push(seconds[1]);
    }
    head(&["verify", "events/s", "MB/s of records", "MB/s of files", "checkpoints"]);
    for (name, mut seconds) in [("by the clock", by_clock), ("by processor time", of_processor)] {
        let seconds = median(&mut seconds);
        row(&[
            format!("{} events, mostly written anew, {name}", first.events),
            number(first.events as f64 / seconds),
            number(first.raw_bytes as f64 / 1e6 / seconds),
            number(first.stored_bytes as f64 / 1e6 / seconds),
            first.checkpoints.to_string(),
        ]);
    }
}

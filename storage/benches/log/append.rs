//! Acknowledged appends against a write and fdatasync of the same events, taking turns.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use storage::event::codec::put_record;
use storage::log::{Log, LogOptions};

use crate::table::{head, median, number, quantile, row};
use crate::workload::Workload;

/// Events in a commit, and how many commits.
const BATCHES: [(usize, usize); 4] = [(1, 400), (10, 300), (100, 200), (1000, 60)];

pub fn run(place: &Path) {
    let scratch = tempfile::tempdir_in(place).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    head(&["acknowledged append", "events/s", "bare", "ratio", "p50 ms", "p99 ms", "bare p99 ms"]);
    for (batch, commits) in BATCHES {
        let log = Log::open(LogOptions::new(scratch.path().join(format!("log-{batch}")))).unwrap();
        let mut workload = Workload::new(batch as u64);
        let bare = File::create(scratch.path().join(format!("plain-{batch}"))).unwrap();
        bare.write_all_at(&vec![0; batch * commits * 1024], 0).unwrap();
        bare.sync_all().unwrap();
        let (mut ours, mut floor, mut end) = (Vec::new(), Vec::new(), 0);
        for _ in 0..commits {
            let drafts = workload.take(batch);
            let mut bytes = Vec::new();
            drafts.iter().for_each(|draft| put_record(&mut bytes, end, workload.micros(), &draft.body));
            let started = Instant::now();
            runtime.block_on(log.commit(drafts)).unwrap();
            ours.push(started.elapsed().as_secs_f64() * 1000.0);
            let started = Instant::now();
            bare.write_all_at(&bytes, end).unwrap();
            bare.sync_data().unwrap();
            floor.push(started.elapsed().as_secs_f64() * 1000.0);
            end += bytes.len() as u64;
        }
        runtime.block_on(log.close()).unwrap();
        let rate = |samples: &mut [f64]| batch as f64 * 1000.0 / median(samples);
        let (ours_rate, floor_rate) = (rate(&mut ours), rate(&mut floor));
        row(&[
            format!("{batch} a commit"),
            number(ours_rate),
            number(floor_rate),
            number(ours_rate / floor_rate),
            number(median(&mut ours)),
            number(quantile(&mut ours, 0.99)),
            number(quantile(&mut floor, 0.99)),
        ]);
    }
}

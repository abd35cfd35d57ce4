//! The Parquet export of a log. What concerns the log alone is in `storage/benches`.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use exporters::{ExportOptions, Format, export};
use storage::log::{Log, LogOptions};

use crate::row;
use crate::workload::Workload;

const EVENTS: u64 = 500_000;

/// Rows per second of an export, reading the log included.
pub fn parquet(scratch: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let log = Log::open(LogOptions::new(scratch.join("parquet-log"))).unwrap();
    let mut workload = Workload::new(1);
    for _ in (0..EVENTS).step_by(1000) {
        runtime.block_on(log.commit(workload.take(1000))).unwrap();
    }
    let reader = log.reader();
    let (mut rates, mut scans, mut bytes) = (Vec::new(), Vec::new(), Vec::new());
    for round in 0..3 {
        let started = Instant::now();
        let options = ExportOptions::new(reader.log_id(), "bench");
        let target = scratch.join(format!("events-{round}.parquet"));
        let written =
            export(Format::Parquet, &target, &options, &mut |visit| reader.scan(reader.first_seq(), &|_| true, visit))
                .unwrap();
        rates.push(written.events as f64 / started.elapsed().as_secs_f64());
        bytes.push(std::fs::metadata(&target).unwrap().len() as f64 / written.events as f64);
        let started = Instant::now();
        let mut events = 0u64;
        reader
            .scan(reader.first_seq(), &|_| true, &mut |event| {
                events += u64::from(event.get("text").is_some() || event.get("url").is_some());
                ControlFlow::Continue(())
            })
            .unwrap();
        assert!(events > EVENTS / 4, "most events have a text or an address");
        scans.push(EVENTS as f64 / started.elapsed().as_secs_f64());
    }
    row("Parquet export", "rows/s", &mut rates, &mut []);
    row("Parquet export", "bytes/row", &mut bytes, &mut []);
    row("reading the log, one field decoded", "events/s", &mut scans, &mut []);
    runtime.block_on(log.close()).unwrap();
}

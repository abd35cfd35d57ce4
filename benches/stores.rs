//! The log against a write and fdatasync of the same bytes, and the Parquet export of it.

use std::fs::File;
use std::ops::ControlFlow;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

use exporters::{ExportOptions, Format, export};
use storage::event::catalog::ConsoleMessage;
use storage::event::{Clean, Context, Draft, Level, Symbol};
use storage::log::{Log, LogOptions};

use crate::{median, row};

/// A console message of about 400 bytes.
fn draft(number: u64) -> Draft {
    let context = Context {
        session_id: Some("bench-00000000".into()),
        instance_id: Some("00000000-0000-4000-8000-000000000000".into()),
        owner: Some("local".into()),
        page_id: Some("t-000000".into()),
        ..Context::default()
    };
    let message = ConsoleMessage {
        level: Level::Info,
        r#type: Symbol::fold("log"),
        text: Clean::redacted(format!(
            "message {number} {:x} {}",
            number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            "lorem ipsum ".repeat(18)
        )),
        url: Some(Clean::fixed("http://127.0.0.1/page")),
        line: Some(number % 500),
        column: Some(7),
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context, &message)
}

fn open(directory: &Path) -> Log {
    Log::open(LogOptions::new(directory)).unwrap()
}

/// Events per second, acknowledged batch by batch, ours and bare taking turns.
pub fn log(scratch: &Path) {
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (batch, rounds) in [(1usize, 400u64), (10, 300), (100, 200), (1000, 60)] {
        let log = open(&scratch.join(format!("log-{batch}")));
        let bare = File::create(scratch.join(format!("plain-{batch}"))).unwrap();
        let drafts: Vec<Draft> = (0..batch as u64).map(draft).collect();
        let bytes: Vec<u8> = drafts.iter().flat_map(|draft| draft.body.clone()).collect();
        let preallocated = vec![0u8; bytes.len() * rounds as usize];
        bare.write_all_at(&preallocated, 0).unwrap();
        bare.sync_all().unwrap();
        let (mut ours, mut floor) = (Vec::new(), Vec::new());
        for round in 0..rounds {
            let batch_drafts = drafts.clone();
            let started = Instant::now();
            runtime.block_on(log.commit(batch_drafts)).unwrap();
            ours.push(started.elapsed().as_secs_f64());
            let started = Instant::now();
            bare.write_all_at(&bytes, round * bytes.len() as u64).unwrap();
            bare.sync_data().unwrap();
            floor.push(started.elapsed().as_secs_f64());
        }
        let rate = |samples: &mut Vec<f64>| vec![batch as f64 / median(samples)];
        row(&format!("append, {batch} a commit"), "events/s", &mut rate(&mut ours), &mut rate(&mut floor));
        runtime.block_on(log.close()).unwrap();
    }
}

/// Rows per second of an export, reading the log included.
pub fn parquet(scratch: &Path) {
    const EVENTS: u64 = 500_000;
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = scratch.join("parquet-log");
    let log = open(&directory);
    for start in (0..EVENTS).step_by(1000) {
        runtime.block_on(log.commit((start..start + 1000).map(draft).collect())).unwrap();
    }
    let reader = log.reader();
    let mut rates = Vec::new();
    let mut scans = Vec::new();
    for round in 0..3 {
        let started = Instant::now();
        let options = ExportOptions::new(reader.log_id(), "bench");
        let target = scratch.join(format!("events-{round}.parquet"));
        let written =
            export(Format::Parquet, &target, &options, &mut |visit| reader.scan(reader.first_seq(), &|_| true, visit))
                .unwrap();
        rates.push(written.events as f64 / started.elapsed().as_secs_f64());
        let started = Instant::now();
        let mut events = 0u64;
        reader
            .scan(reader.first_seq(), &|_| true, &mut |event| {
                events += u64::from(event.get("text").is_some());
                ControlFlow::Continue(())
            })
            .unwrap();
        scans.push(events as f64 / started.elapsed().as_secs_f64());
    }
    row("Parquet export", "rows/s", &mut rates, &mut []);
    row("reading the log, one field decoded", "events/s", &mut scans, &mut []);
    runtime.block_on(log.close()).unwrap();
    let started = Instant::now();
    drop(open(&directory));
    row("reopen 500,000 events", "ms", &mut [started.elapsed().as_secs_f64() * 1000.0], &mut []);
}

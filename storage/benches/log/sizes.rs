//! Bytes an event on disk against compressed NDJSON of the same events, as `list_events` shows them.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use storage::event::json;
use storage::log::{Log, LogOptions, Reader};

use crate::table::{directory_bytes, head, number, row, seconds};
use crate::workload::Workload;

const EVENTS: usize = 100_000;
/// Sizes of commits of the live log: alone, as the window puts them together, and in bulk.
const COMMITS: [usize; 3] = [10, 256, 1000];
const LEVELS: [i32; 2] = [3, 19];

pub fn run(place: &Path) {
    let scratch = tempfile::tempdir_in(place).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    head(&["bytes an event", "bytes", "to NDJSON", "to NDJSON, zstd -3", "to NDJSON, zstd -19"]);
    let mut rows = Vec::new();
    let mut directory = scratch.path().to_owned();
    for commit in COMMITS {
        directory = scratch.path().join(format!("commits-of-{commit}"));
        runtime.block_on(fill(&directory, commit));
        rows.push((format!("log, live, {commit} a commit"), directory_bytes(&directory) as f64 / EVENTS as f64));
    }
    let reader = Reader::open(&directory).unwrap();
    let (records, plain, compressed) = rendered(&reader);
    rows.push(("canonical records, uncompressed".into(), records));
    rows.push(("NDJSON".into(), plain));
    for (level, bytes) in LEVELS.iter().zip(compressed) {
        rows.push((format!("NDJSON, zstd -{level}"), bytes));
    }
    for (name, bytes) in rows {
        let ratios = [plain, compressed[0], compressed[1]].map(|other| number(bytes / other));
        row(&[vec![name, number(bytes)], ratios.to_vec()].concat());
    }
}

async fn fill(directory: &Path, commit: usize) {
    let log = Log::open(LogOptions::new(directory)).unwrap();
    let mut workload = Workload::new(3);
    let mut left = EVENTS;
    while left > 0 {
        let drafts = workload.take(left.min(commit));
        left -= drafts.len();
        log.commit(drafts).await.unwrap();
    }
    log.close().await.unwrap();
}

/// Bytes an event: canonical, as NDJSON, and that compressed at each level.
fn rendered(reader: &Reader) -> (f64, f64, [f64; 2]) {
    let mut encoders = LEVELS.map(|level| zstd::Encoder::new(Vec::new(), level).unwrap());
    let (mut records, mut plain, mut events) = (0, 0, 0u32);
    let (took, outcome) = seconds(|| {
        reader.scan(reader.first_seq(), &|_| true, &mut |event| {
            let mut line = json::event(event, reader.log_id()).to_string();
            line.push('\n');
            records += event.body.len() + 12;
            plain += line.len();
            events += 1;
            encoders.iter_mut().for_each(|encoder| encoder.write_all(line.as_bytes()).unwrap());
            ControlFlow::Continue(())
        })
    });
    outcome.unwrap();
    eprintln!("rendered and compressed {events} events in {} s", number(took));
    let each = |bytes: usize| bytes as f64 / f64::from(events);
    (each(records), each(plain), encoders.map(|encoder| each(encoder.finish().unwrap().len())))
}

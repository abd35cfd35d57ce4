//! Bytes an event on disk, live and written anew, against compressed NDJSON of the same events as
//! `list_events` shows them; and how fast a sealed segment is written anew.

use std::io::Write;
use std::ops::ControlFlow;
use std::path::Path;

use storage::event::json;
use storage::log::{Fate, Log, LogOptions, Reader};

use crate::table::{both_seconds, head, number, row};
use crate::workload::Workload;

const EVENTS: usize = 100_000;
/// Sizes of commits of the live log: few events, as the window puts them together, and in bulk.
const COMMITS: [usize; 3] = [10, 256, 1000];
const LEVELS: [i32; 2] = [3, 19];

/// One segment with all the events.
struct Sealed {
    live_bytes: f64,
    rewritten_bytes: f64,
    /// By the clock and of the processor.
    rewrite_seconds: [f64; 2],
}

pub fn run(place: &Path) {
    let scratch = tempfile::tempdir_in(place).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    let directory = |commit: usize| scratch.path().join(format!("commits-of-{commit}"));
    let sealed = COMMITS.map(|commit| runtime.block_on(fill(&directory(commit), commit)));
    let rendered = Rendered::of(&Reader::open(&directory(COMMITS[0])).unwrap());
    let (plain, compressed) = (rendered.plain, rendered.compressed);
    let mut rows = Vec::new();
    for (commit, sealed) in COMMITS.iter().zip(&sealed) {
        rows.push((format!("log, live, {commit} a commit"), sealed.live_bytes));
        rows.push((format!("log, written anew from {commit} a commit"), sealed.rewritten_bytes));
    }
    rows.push(("canonical records, uncompressed".into(), rendered.records));
    rows.push(("NDJSON".into(), plain));
    rows.push((format!("NDJSON, zstd -{}", LEVELS[0]), compressed[0]));
    rows.push((format!("NDJSON, zstd -{}", LEVELS[1]), compressed[1]));
    head(&["bytes an event", "bytes", "to NDJSON", "to NDJSON, zstd -3", "to NDJSON, zstd -19"]);
    for (name, bytes) in rows {
        let ratios = [plain, compressed[0], compressed[1]].map(|other| number(bytes / other));
        row(&[vec![name, number(bytes)], ratios.to_vec()].concat());
    }
    head(&["writing a sealed segment anew", "MB/s of records", "events/s", "events a processor second"]);
    for (commit, sealed) in COMMITS.iter().zip(&sealed) {
        let [by_clock, of_processor] = sealed.rewrite_seconds.map(|seconds| EVENTS as f64 / seconds);
        row(&[
            format!("from {commit} a commit"),
            number(rendered.records * by_clock / 1e6),
            number(by_clock),
            number(of_processor),
        ]);
    }
}

async fn fill(directory: &Path, commit: usize) -> Sealed {
    let log = Log::open(LogOptions::new(directory)).unwrap();
    let mut workload = Workload::new(3);
    let mut left = EVENTS;
    while left > 0 {
        let drafts = workload.take(left.min(commit));
        left -= drafts.len();
        log.commit(drafts).await.unwrap();
    }
    log.roll().await.unwrap();
    let each = |bytes: u64| bytes as f64 / EVENTS as f64;
    let live_bytes = each(log.reader().segments().unwrap()[0].end);
    let (rewrite_seconds, rewritten) = both_seconds(|| log.rewrite(1, &mut |_| Fate::Keep).unwrap());
    let rewritten_bytes = each(rewritten.stored_bytes());
    rewritten.install(false).unwrap();
    log.close().await.unwrap();
    Sealed { live_bytes, rewritten_bytes, rewrite_seconds }
}

/// The same events in other forms, in bytes an event.
struct Rendered {
    records: f64,
    plain: f64,
    compressed: [f64; 2],
}

impl Rendered {
    fn of(reader: &Reader) -> Self {
        let (mut records, mut lines, mut events) = (0, Vec::new(), 0u32);
        let mut visit = |event: &storage::event::EventView<'_>| {
            serde_json::to_writer(&mut lines, &json::event(event, reader.log_id())).unwrap();
            lines.push(b'\n');
            records += event.body.len() + 12;
            events += 1;
            ControlFlow::Continue(())
        };
        reader.scan(reader.first_seq(), &|_| true, &mut visit).unwrap();
        let each = |bytes: usize| bytes as f64 / f64::from(events);
        let compressed = LEVELS.map(|level| {
            let mut encoder = zstd::Encoder::new(Vec::new(), level).unwrap();
            encoder.write_all(&lines).unwrap();
            each(encoder.finish().unwrap().len())
        });
        Self { records: each(records), plain: each(lines.len()), compressed }
    }
}

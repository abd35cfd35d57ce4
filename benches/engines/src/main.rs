//! The log beside other embedded engines, in one program and one run: who keeps how many events a second
//! safe, at which price on disk, and what "safe" means for each.
//!
//! `make bench-engines` builds and runs it. The engines take turns in rounds, in rotating order, on the
//! same file system and with the same events; medians of rounds count, and the ratio to a bare write and
//! fdatasync of the same bytes. Absolute times are the machine's.

mod engines;
mod traced;
#[path = "../../../storage/benches/workload/mod.rs"]
mod workload;

use std::path::{Path, PathBuf};
use std::time::Instant;

use engines::{Batch, ENGINES, Engine, Outcome, disk_bytes};
use workload::Workload;

/// Events in a commit, and commits in one round.
const BATCHES: [(usize, usize); 4] = [(1, 60), (10, 60), (100, 30), (1000, 12)];
const ROUNDS: usize = 9;
/// Events that the sizes on disk are taken from.
const SIZE_EVENTS: usize = 300_000;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [argument, engine, commits, directory] = arguments.as_slice()
        && argument == traced::ARGUMENT
    {
        return traced::commit(engine, commits.parse()?, Path::new(directory));
    }
    // Beside the program itself: that is on a disk, where a directory for temporary files may be in memory.
    let executable = std::env::current_exe()?;
    let place = arguments.first().map_or_else(|| executable.with_file_name(""), PathBuf::from);
    let scratch = tempfile::tempdir_in(place)?;
    rates(scratch.path())?;
    sizes(scratch.path())?;
    traced::report(scratch.path())
}

struct Runner {
    name: &'static str,
    engine: Box<dyn Engine>,
    /// Events a second of each round.
    rates: Vec<f64>,
    /// Milliseconds of each commit.
    commits: Vec<f64>,
}

fn rates(scratch: &Path) -> Outcome<()> {
    println!("| acknowledged events/s | a commit | median of {ROUNDS} rounds | to bare | commit p50 ms | p99 ms |");
    println!("|---|---|---|---|---|---|");
    for (batch, commits) in BATCHES {
        let mut runners = Vec::new();
        for (number, facts) in ENGINES.iter().enumerate() {
            let directory = scratch.join(format!("rate-{batch}-{number}"));
            std::fs::create_dir(&directory)?;
            let engine = (facts.open)(&directory)?;
            runners.push(Runner { name: facts.name, engine, rates: Vec::new(), commits: Vec::new() });
        }
        let mut workload = Workload::new(batch as u64);
        let mut first_seq = 1;
        // The first round warms up and is not counted.
        for round in 0..=ROUNDS {
            let mut batches = Vec::new();
            for _ in 0..commits {
                batches.push(Batch::new(workload.take(batch), first_seq));
                first_seq += batch as u64;
            }
            for turn in 0..runners.len() {
                let place = (turn + round) % runners.len();
                runners[place].round(batches.clone(), round > 0)?;
            }
        }
        let floor = median(&mut runners[0].rates);
        for runner in &mut runners {
            let rate = median(&mut runner.rates);
            let (p50, p99) = (quantile(&mut runner.commits, 0.5), quantile(&mut runner.commits, 0.99));
            println!("| {} | {batch} | {rate:.0} | {:.2} | {p50:.2} | {p99:.2} |", runner.name, rate / floor);
        }
        for runner in runners {
            runner.engine.close()?;
        }
    }
    Ok(())
}

impl Runner {
    fn round(&mut self, batches: Vec<Batch>, counts: bool) -> Outcome<()> {
        let mut events = 0;
        let began = Instant::now();
        for batch in batches {
            let started = Instant::now();
            events += batch.records.len();
            self.engine.commit(batch)?;
            if counts {
                self.commits.push(started.elapsed().as_secs_f64() * 1000.0);
            }
        }
        if counts {
            self.rates.push(events as f64 / began.elapsed().as_secs_f64());
        }
        Ok(())
    }
}

fn sizes(scratch: &Path) -> Outcome<()> {
    println!("\n| bytes on disk an event, {SIZE_EVENTS} events, after closing | bytes | to the records |");
    println!("|---|---|---|");
    for (number, facts) in ENGINES.iter().enumerate() {
        let directory = scratch.join(format!("size-{number}"));
        std::fs::create_dir(&directory)?;
        let mut engine = (facts.open)(&directory)?;
        let mut workload = Workload::new(1);
        let mut record_bytes = 0;
        for first in (0..SIZE_EVENTS).step_by(1000) {
            let batch = Batch::new(workload.take(1000), first as u64 + 1);
            record_bytes += batch.records.iter().map(|(_, record)| record.len()).sum::<usize>();
            engine.commit(batch)?;
        }
        engine.close()?;
        let bytes = disk_bytes(&directory)? as f64 / SIZE_EVENTS as f64;
        let record = record_bytes as f64 / SIZE_EVENTS as f64;
        println!("| {} | {bytes:.0} | {:.2} |", facts.name, bytes / record);
        std::fs::remove_dir_all(&directory)?;
    }
    Ok(())
}

fn median(samples: &mut [f64]) -> f64 {
    quantile(samples, 0.5)
}

fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * share).round() as usize]
}

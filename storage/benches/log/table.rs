//! Samples and the rows made of them.

use std::path::Path;
use std::time::Instant;

pub fn milliseconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let started = Instant::now();
    let outcome = work();
    (started.elapsed().as_secs_f64() * 1000.0, outcome)
}

pub fn seconds<T>(work: impl FnOnce() -> T) -> (f64, T) {
    let (milliseconds, outcome) = milliseconds(work);
    (milliseconds / 1000.0, outcome)
}

pub fn quantile(samples: &mut [f64], share: f64) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples[((samples.len() - 1) as f64 * share).round() as usize]
}

pub fn median(samples: &mut [f64]) -> f64 {
    quantile(samples, 0.5)
}

/// Begins a table.
pub fn head(columns: &[&str]) {
    println!("\n| {} |\n|{}", columns.join(" | "), "---|".repeat(columns.len()));
}

pub fn row(cells: &[String]) {
    println!("| {} |", cells.join(" | "));
}

/// With as many places as its size calls for.
pub fn number(value: f64) -> String {
    match value.abs() {
        0.0..10.0 => format!("{value:.2}"),
        10.0..100.0 => format!("{value:.1}"),
        _ => format!("{value:.0}"),
    }
}

/// Seconds by the clock and of the processor: the latter count the same on a busy machine.
pub fn both_seconds<T>(work: impl FnOnce() -> T) -> ([f64; 2], T) {
    let before = processor_seconds();
    let (by_clock, outcome) = seconds(work);
    ([by_clock, processor_seconds() - before], outcome)
}

/// User and system time of this process, all its threads, in steps of ten milliseconds.
fn processor_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap();
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = fields[11].parse::<f64>().unwrap() + fields[12].parse::<f64>().unwrap();
    ticks / 100.0
}

/// Memory of this process.
pub fn resident_mebibytes() -> f64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
}

/// What the files below `directory` hold.
pub fn directory_bytes(directory: &Path) -> u64 {
    let mut bytes = 0;
    for entry in std::fs::read_dir(directory).unwrap() {
        let entry = entry.unwrap();
        let metadata = entry.metadata().unwrap();
        bytes += if metadata.is_dir() { directory_bytes(&entry.path()) } else { metadata.len() };
    }
    bytes
}

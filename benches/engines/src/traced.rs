//! What each engine really asks of the operating system for one commit, counted by strace where there is
//! one. An engine that calls nothing which waits for the device has not made anything durable.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::engines::{Batch, ENGINES, Outcome};
use crate::workload::Workload;

/// The argument that makes this program commit so often and end, for strace to watch.
pub const ARGUMENT: &str = "--commits";
const COMMITS: u32 = 200;
const CALLS: [&str; 4] = ["fdatasync", "fsync", "sync_file_range", "msync"];

/// Makes `commits` commits of ten events; the child's side.
pub fn commit(engine: &str, commits: u32, scratch: &Path) -> Outcome<()> {
    let facts = ENGINES.iter().find(|facts| facts.name == engine).ok_or("no such engine")?;
    let mut workload = Workload::new(7);
    let mut open = (facts.open)(scratch)?;
    for number in 0..commits {
        open.commit(Batch::new(workload.take(10), u64::from(number) * 10 + 1))?;
    }
    open.close()
}

/// The rows of the table; nothing where there is no strace.
pub fn report(scratch: &Path) -> Outcome<()> {
    if Command::new("strace").arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_err() {
        println!("\nstrace is not here, so system calls are not counted.");
        return Ok(());
    }
    println!("\n| system calls a commit | {} | acknowledged means |\n|---|---|---|---|---|---|", CALLS.join(" | "));
    for facts in &ENGINES {
        let none = count(facts.name, 0, scratch)?;
        let some = count(facts.name, COMMITS, scratch)?;
        let each = CALLS.map(|call| {
            let of = |counts: &BTreeMap<String, i64>| counts.get(call).copied().unwrap_or_default();
            format!("{:.2}", (of(&some) - of(&none)) as f64 / f64::from(COMMITS))
        });
        println!("| {} | {} | {} |", facts.name, each.join(" | "), facts.acknowledged);
    }
    Ok(())
}

fn count(engine: &str, commits: u32, scratch: &Path) -> Outcome<BTreeMap<String, i64>> {
    let directory = tempfile::tempdir_in(scratch)?;
    let summary = directory.path().join("summary");
    let data = directory.path().join("data");
    std::fs::create_dir(&data)?;
    let status = Command::new("strace")
        .args(["-f", "-c", "-e", &format!("trace={}", CALLS.join(",")), "-o"])
        .arg(&summary)
        .arg(std::env::current_exe()?)
        .args([ARGUMENT, engine, &commits.to_string()])
        .arg(&data)
        .status()?;
    if !status.success() {
        return Err(format!("{engine} under strace: {status}").into());
    }
    let mut counts = BTreeMap::new();
    // Columns: share, seconds, microseconds a call, calls, errors (blank when none), name.
    for line in std::fs::read_to_string(&summary)?.lines() {
        let columns: Vec<&str> = line.split_whitespace().collect();
        if let (Some(name), Some(Ok(calls))) = (columns.last(), columns.get(3).map(|calls| calls.parse())) {
            counts.insert((*name).to_owned(), calls);
        }
    }
    Ok(counts)
}

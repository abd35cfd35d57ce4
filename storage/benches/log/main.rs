//! The figures of the log and of what is derived from it, each beside its floor or beside the same at
//! another size, in one run.
//!
//! `make bench-log` builds for release and runs this; names given as arguments choose among the parts.
//! `BENCH_EVENTS_MAX` (10,000,000) bounds the largest log built, `BENCH_LOAD_SECONDS` (10) the load.
//! The large logs are kept below the target directory and used again. Medians and ratios are what
//! counts; absolute times are the machine's.
#![allow(clippy::print_stdout, clippy::unwrap_used)]

mod append;
mod grown;
mod load;
mod pages;
mod questions;
mod restart;
mod sizes;
mod table;
mod verify;
#[path = "../workload/mod.rs"]
mod workload;

use std::path::{Path, PathBuf};

/// A part by its name.
type Part = (&'static str, fn(&Path));

fn main() {
    let wanted: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    let parts: [Part; 6] = [
        ("append", append::run),
        ("load", load::run),
        ("sizes", sizes::run),
        ("verify", verify::run),
        ("restart", restart::run),
        ("pages", pages::run),
    ];
    let place = place();
    for (name, run) in parts {
        if wanted.is_empty() || wanted.iter().any(|wanted| name.contains(wanted.as_str())) {
            run(&place);
        }
    }
}

/// A directory for logs below the target directory: on a disk, where one for temporary files may be in
/// memory, and kept until the target directory goes.
fn place() -> PathBuf {
    let executable = std::env::current_exe().unwrap();
    let target = executable.ancestors().find(|directory| directory.join("CACHEDIR.TAG").exists());
    let place = target.unwrap_or_else(|| executable.parent().unwrap()).join("bench-logs");
    std::fs::create_dir_all(&place).unwrap();
    place
}

/// A number from the environment.
fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

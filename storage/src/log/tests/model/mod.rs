//! The model test: random programs on a simulated disk, each from one seed, held against an abstract
//! log after every step. `MODEL_SEED=n` runs one seed and tells what it did, `MODEL_SEEDS=n` that many.
//!
//! One seed is one thread and no clock but its own, so what it found once it finds again.

mod book;
mod check;
mod every_call;
mod program;
mod steps;
mod upkeep;
mod walk;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use super::temporary;
use world::World;

const SEEDS: u64 = 300;
const STEPS: u64 = 40;

#[test]
fn random_programs_keep_every_promise() {
    let number = |name: &str| std::env::var(name).ok().map(|text| text.parse::<u64>().expect("a number"));
    if let Some(seed) = number("MODEL_SEED") {
        let problem = run(seed, temporary().path(), true);
        assert!(problem.is_none(), "seed {seed}: {}", problem.unwrap_or_default());
        return;
    }
    let seeds = number("MODEL_SEEDS").unwrap_or(SEEDS);
    let (next, failed) = (AtomicU64::new(1), std::sync::Mutex::new(Vec::new()));
    let work = || {
        let scratch = temporary();
        loop {
            let seed = next.fetch_add(1, Ordering::SeqCst);
            if seed > seeds {
                return;
            }
            if let Some(problem) = run(seed, scratch.path(), false) {
                failed.lock().expect("nobody panics with it").push(format!("MODEL_SEED={seed}: {problem}"));
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        work();
    });
    let failed = failed.into_inner().expect("nobody panics with it");
    assert!(failed.is_empty(), "{} of {seeds} seeds failed:\n{}", failed.len(), failed.join("\n"));
}

/// Runs one seed; what went wrong, if anything did.
fn run(seed: u64, scratch: &Path, tell: bool) -> Option<String> {
    let mut world = World::new(seed, scratch);
    let program = AssertUnwindSafe(|| {
        (0..STEPS).for_each(|_| world.random_step());
        // Each takes as long as the whole program.
        if seed.is_multiple_of(4) {
            world.verify(&scratch.join("verified"));
        }
    });
    let outcome = catch_unwind(program);
    if tell {
        eprintln!("{}", world.trace.join("\n"));
    }
    let panic = outcome.err()?;
    let text = panic.downcast_ref::<String>().cloned();
    Some(text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default())
}

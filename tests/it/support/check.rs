//! One check of the torture: how often it is tried, and the row it adds to the table of `make torture`.
//!
//! The same test is short in `make test` and long in `make torture`, which names the file of the table
//! by a variable. A check that cannot be made on this machine says so on the terminal, past the
//! test runner, which keeps quiet about tests that pass.

use std::fmt::Display;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

/// Names the file that rows are added to; set by `make torture` alone.
const TABLE: &str = "TORTURE_TABLE";

fn table() -> Option<PathBuf> {
    std::env::var_os(TABLE).map(PathBuf::from)
}

/// Whether this is `make torture`.
#[must_use]
pub fn is_long() -> bool {
    table().is_some()
}

/// `short` in `make test`, `long` in `make torture`.
#[must_use]
pub fn short_or_long<T>(short: T, long: T) -> T {
    if is_long() { long } else { short }
}

/// A check under way. Its row is written when it goes, as passed unless the test panics.
pub struct Check {
    id: &'static str,
    what: &'static str,
    trials: u64,
    figures: Vec<String>,
    not_run: bool,
    began: Instant,
}

impl Check {
    #[must_use]
    pub fn begin(id: &'static str, what: &'static str) -> Self {
        Self { id, what, trials: 0, figures: Vec::new(), not_run: false, began: Instant::now() }
    }

    pub fn tried(&mut self, trials: usize) {
        self.trials += trials as u64;
    }

    pub fn figure(&mut self, name: &str, value: impl Display) {
        self.figures.push(format!("{name} {value}"));
    }

    /// The check cannot be made here; another one stands in for it.
    pub fn not_run(&mut self, why: &str) {
        self.not_run = true;
        self.figures.push(why.to_owned());
        let _ = writeln!(std::io::stderr(), "\nNOT RUN: {} {}: {why}\n", self.id, self.what);
    }
}

impl Drop for Check {
    fn drop(&mut self) {
        let result = match (std::thread::panicking(), self.not_run) {
            (true, _) => "FAILED",
            (false, true) => "NOT RUN",
            (false, false) => "passed",
        };
        let seconds = self.began.elapsed().as_secs_f64();
        let figures = self.figures.join(", ");
        let row = format!("{}\t{}\t{}\t{result}\t{seconds:.1}\t{figures}\n", self.id, self.what, self.trials);
        let Some(path) = table() else { return };
        // A row that cannot be written is missed by whoever reads the table.
        let _ =
            OpenOptions::new().append(true).create(true).open(path).and_then(|mut file| file.write_all(row.as_bytes()));
    }
}

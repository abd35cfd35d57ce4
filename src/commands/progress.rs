//! How far a long command has come, on a terminal, on a line that is written over.

use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

/// How often progress is shown.
const SHOWN_EVERY: Duration = Duration::from_millis(250);
/// What clearing the line writes over, in columns.
const COLUMNS: usize = 40;

/// The line; nothing at all where standard error is no terminal.
pub struct ProgressLine {
    terminal: bool,
    last: Instant,
    any: bool,
}

impl ProgressLine {
    #[must_use]
    pub fn new() -> Self {
        Self { terminal: std::io::stderr().is_terminal(), last: Instant::now(), any: false }
    }

    /// Shows `text` when it is time to.
    pub fn show(&mut self, text: &dyn Fn() -> String) {
        if !self.terminal || self.last.elapsed() < SHOWN_EVERY {
            return;
        }
        (self.last, self.any) = (Instant::now(), true);
        // Nobody seeing it is no reason to stop.
        let _ = write!(std::io::stderr(), "\r{}", text());
    }

    pub fn clear(&self) {
        if self.any {
            let _ = write!(std::io::stderr(), "\r{:COLUMNS$}\r", "");
        }
    }
}

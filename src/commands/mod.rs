//! Commands that end by themselves: they read a data directory, print, and say how it went by an exit
//! code of sysexits(3).
//!
//! All but `erase` and `audit key --rotate` only read a data directory, so they work beside a running
//! server. A reader that closes its end of the pipe early has seen enough: that is a good end.

mod audit;
mod doctor;
mod erase;
mod export;
mod printable;
mod progress;
mod session;
mod show_config;
mod tail;
#[cfg(test)]
mod tests;
mod tools;
mod verify;

use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::process::ExitCode;

use storage::StorageError;
use storage::log::Reader;

use crate::config::Command;

const EXIT_USAGE: u8 = 64;
const EXIT_DAMAGED: u8 = 65;
const EXIT_NOTHING_THERE: u8 = 66;
const EXIT_UNAVAILABLE: u8 = 69;
const EXIT_IO: u8 = 74;
const EXIT_IN_USE: u8 = 75;

/// Runs a command other than `serve` and says how the process ends.
#[must_use]
pub fn run(command: Command) -> ExitCode {
    let mut out = BufWriter::new(io::stdout().lock());
    let result = perform(command, &mut out).and_then(|()| out.flush().map_err(CommandError::from));
    match result {
        Ok(()) | Err(CommandError { code: 0, .. }) => {
            // What a closed pipe did not take is not wanted; dropping the writer would try again.
            let _ = out.into_parts();
            ExitCode::SUCCESS
        }
        Err(error) => {
            let _ = writeln!(io::stderr(), "pageledger: {}", error.message);
            ExitCode::from(error.code)
        }
    }
}

fn perform(command: Command, out: &mut dyn Write) -> Result<(), CommandError> {
    match command {
        Command::Print(text) => out.write_all(text.as_bytes()).map_err(CommandError::from),
        Command::ShowConfig { config, json } => show_config::show(&config, json, out),
        Command::Export(order) => export::export(&order, out),
        Command::Erase(order) => erase::erase(&order, out),
        Command::Tail(order) => tail::tail(&order, out),
        Command::Verify(order) => verify::verify(&order, out),
        Command::Audit(order) => audit::audit(&order, out),
        Command::Tools { config, json } => tools::tools(&config, json, out),
        Command::Doctor(config) => doctor::doctor(&config, out),
        Command::Serve(_) => Err(CommandError::new(EXIT_USAGE, "serve is not a command that ends by itself")),
    }
}

/// Why a command failed, and the exit code that says so; code 0 is an early good end.
#[derive(Debug)]
struct CommandError {
    code: u8,
    message: String,
}

impl CommandError {
    fn new(code: u8, message: impl Into<String>) -> Self {
        Self { code, message: message.into() }
    }
}

impl From<io::Error> for CommandError {
    fn from(error: io::Error) -> Self {
        let code = if error.kind() == io::ErrorKind::BrokenPipe { 0 } else { EXIT_IO };
        Self::new(code, error.to_string())
    }
}

impl From<StorageError> for CommandError {
    fn from(error: StorageError) -> Self {
        let code = match &error {
            StorageError::Damaged { .. } | StorageError::Altered { .. } | StorageError::Format { .. } => EXIT_DAMAGED,
            StorageError::Locked { .. } => EXIT_IN_USE,
            StorageError::Io { .. } | StorageError::Full { .. } => EXIT_IO,
            StorageError::UnknownHandle => EXIT_NOTHING_THERE,
            StorageError::Unavailable { .. }
            | StorageError::Moved
            | StorageError::Cursor { .. }
            | StorageError::Limit { .. } => EXIT_UNAVAILABLE,
        };
        Self::new(code, error.to_string())
    }
}

/// Whether there is something at `path`. What may not be looked at is not taken for absent.
fn is_there(path: &Path) -> Result<bool, CommandError> {
    match path.metadata() {
        Ok(_) => Ok(true),
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory) => Ok(false),
        Err(error) => Err(CommandError::new(EXIT_IO, format!("{} cannot be looked at: {error}", path.display()))),
    }
}

/// The log of a data directory, for reading only.
fn open_log(data_dir: &Path) -> Result<Reader, CommandError> {
    match Reader::open(&data_dir.join("log")) {
        Err(StorageError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {
            Err(CommandError::new(EXIT_NOTHING_THERE, format!("there is no log in {}", data_dir.display())))
        }
        opened => opened.map_err(CommandError::from),
    }
}

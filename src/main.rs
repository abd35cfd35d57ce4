//! The program: reads what it was asked, runs it, and alone chooses the exit code.

use std::process::ExitCode;

use pageledger::commands;
use pageledger::config::{self, Command, Environment};
use pageledger::{serve, telemetry};

/// EX_USAGE of sysexits(3).
const EXIT_USAGE: u8 = 64;

fn main() -> ExitCode {
    let command = match config::parse(std::env::args_os().collect(), &Environment::of_process()) {
        Ok(command) => command,
        Err(error) => return fail(EXIT_USAGE, &error.to_string()),
    };
    match command {
        Command::Serve(config) => {
            telemetry::install(&config);
            let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
                Ok(runtime) => runtime,
                Err(error) => return fail(serve::EXIT_UNAVAILABLE, &error.to_string()),
            };
            let served = runtime.block_on(serve::serve(config));
            // A blocked read of standard input must not keep the process alive.
            runtime.shutdown_background();
            match served {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => fail(error.code, &error.message),
            }
        }
        other => commands::run(other),
    }
}

fn fail(code: u8, message: &str) -> ExitCode {
    eprintln!("pageledger: {message}");
    ExitCode::from(code)
}

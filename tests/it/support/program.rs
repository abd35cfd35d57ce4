//! The program under test, run for commands that end by themselves.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

use tokio::process::Command;

use super::LIMIT;

/// The program as it was built with the tests.
#[must_use]
pub fn path() -> PathBuf {
    match option_env!("CARGO_BIN_EXE_pageledger") {
        Some(path) => PathBuf::from(path),
        // An example is built beside the program, in a directory of its own.
        None => {
            let own = std::env::current_exe().expect("this program has a path");
            let directory = own.parent().and_then(Path::parent).expect("examples lie one level deeper");
            directory.join("pageledger")
        }
    }
}

/// A command line on `program`, without what the caller's environment would add.
#[must_use]
pub fn command(program: &Path, arguments: &[String]) -> Command {
    let mut command = Command::new(program);
    command.args(arguments).kill_on_drop(true);
    for (name, _) in std::env::vars_os() {
        if name.to_string_lossy().starts_with("BROWSER_MCP_") {
            command.env_remove(name);
        }
    }
    command
}

/// Runs the program to its end and gives its output.
///
/// # Panics
/// When it does not end in time.
pub async fn run(arguments: &[&str]) -> Output {
    let arguments: Vec<String> = arguments.iter().map(|argument| (*argument).to_owned()).collect();
    run_with(&arguments, &[]).await
}

/// As [`run`], with environment variables.
pub async fn run_with(arguments: &[String], environment: &[(&str, &str)]) -> Output {
    let mut command = command(&path(), arguments);
    command.envs(environment.iter().copied()).stdin(Stdio::null());
    let output = tokio::time::timeout(LIMIT, command.output()).await;
    output.expect("the command ends in time").expect("the program starts")
}

/// Runs this very program in another part, which an ignored test plays, with environment variables.
///
/// # Panics
/// When it does not end well, or not in several times what anything else may take.
pub async fn this(arguments: &[&str], environment: &[(&str, &str)]) {
    let mut command = Command::new(std::env::current_exe().expect("this program has a path"));
    command.args(arguments).envs(environment.iter().copied()).stdin(Stdio::null()).kill_on_drop(true);
    let output = tokio::time::timeout(15 * LIMIT, command.output()).await;
    let output = output.expect("it ends in time").expect("it starts");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

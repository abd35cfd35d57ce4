//! Other people's readers, which `.ci/setup` puts below the target directory.

use std::path::{Path, PathBuf};
use std::process::Stdio;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use crate::support::LIMIT;

fn python() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("it lies in the target directory");
    let python = target.join("readers/bin/python");
    assert!(python.exists(), "{} is missing: run .ci/setup with the same CARGO_TARGET_DIR", python.display());
    python
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/readers").join(name)
}

/// A fixture's path.
pub fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/export").join(name)
}

/// What `tests/readers/read.py` prints.
pub async fn read(arguments: &[&str], input: &str) -> Value {
    run("read.py", arguments, input).await
}

/// How a command line went whose standard error is a terminal: `code`, `stdout`, `stderr`.
pub async fn on_terminal(line: &[&str]) -> Value {
    run("terminal.py", line, "").await
}

async fn run(name: &str, arguments: &[&str], input: &str) -> Value {
    let mut command = Command::new(python());
    command.arg(script(name)).args(arguments).kill_on_drop(true);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("python starts");
    let mut stdin = child.stdin.take().expect("stdin is piped");
    stdin.write_all(input.as_bytes()).await.expect("it reads");
    drop(stdin);
    let output = tokio::time::timeout(LIMIT, child.wait_with_output()).await.expect("it ends in time").expect("output");
    assert!(output.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("it prints JSON")
}

/// A server on loopback that speaks S3.
pub struct Store {
    pub address: String,
    stdin: ChildStdin,
    lines: Lines<BufReader<ChildStdout>>,
    _child: Child,
}

impl Store {
    pub async fn start() -> Self {
        let mut command = Command::new(python());
        command.arg(script("store.py")).stdin(Stdio::piped()).stdout(Stdio::piped()).kill_on_drop(true);
        let mut child = command.spawn().expect("python starts");
        let stdin = child.stdin.take().expect("stdin is piped");
        let mut lines = BufReader::new(child.stdout.take().expect("stdout is piped")).lines();
        let address = tokio::time::timeout(LIMIT, lines.next_line()).await.expect("it comes up in time");
        let address = address.expect("a line").expect("an address");
        Self { address, stdin, lines, _child: child }
    }

    /// What it answers to a line.
    pub async fn ask(&mut self, line: &str) -> Value {
        self.stdin.write_all(format!("{line}\n").as_bytes()).await.expect("it reads");
        let answer = tokio::time::timeout(LIMIT, self.lines.next_line()).await.expect("it answers in time");
        serde_json::from_str(&answer.expect("a line").expect("an answer")).expect("JSON")
    }

    /// The variables that give access to it.
    pub fn environment(&self) -> [(&'static str, &str); 5] {
        [
            ("AWS_ACCESS_KEY_ID", "key-1"),
            ("AWS_SECRET_ACCESS_KEY", "hush-4711"),
            ("AWS_REGION", "us-east-1"),
            ("AWS_ENDPOINT_URL", &self.address),
            ("AWS_ALLOW_HTTP", "true"),
        ]
    }
}

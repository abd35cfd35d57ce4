//! How a test wants its server.

use std::path::PathBuf;

use super::DataDir;

/// Options of one server; a fresh data directory and stdio unless said otherwise.
#[derive(Clone)]
pub struct Options {
    pub http: bool,
    pub data: DataDir,
    /// Whether Chromium's sandbox is waived, as containers and root need.
    pub sandbox_waived: bool,
    pub arguments: Vec<String>,
    pub environment: Vec<(String, String)>,
    /// Another program than the one built with the tests.
    pub program: Option<PathBuf>,
}

impl Options {
    #[must_use]
    pub fn stdio() -> Self {
        Self {
            http: false,
            data: DataDir::fresh(),
            sandbox_waived: true,
            arguments: Vec::new(),
            environment: Vec::new(),
            program: None,
        }
    }

    #[must_use]
    pub fn http() -> Self {
        Self { http: true, ..Self::stdio() }
    }

    /// On a directory that other servers used before.
    #[must_use]
    pub fn on(mut self, data: &DataDir) -> Self {
        self.data = data.clone();
        self
    }

    #[must_use]
    pub fn argument(mut self, flag: &str, value: impl ToString) -> Self {
        self.arguments.extend([flag.to_owned(), value.to_string()]);
        self
    }

    #[must_use]
    pub fn variable(mut self, name: &str, value: impl ToString) -> Self {
        self.environment.push((name.to_owned(), value.to_string()));
        self
    }

    #[must_use]
    pub fn with_sandbox(mut self) -> Self {
        self.sandbox_waived = false;
        self
    }

    /// The whole command line after the program's name.
    #[must_use]
    pub fn command_line(&self) -> Vec<String> {
        let mut line = vec!["serve".to_owned(), "--data-dir".to_owned(), self.data.path().display().to_string()];
        if self.sandbox_waived {
            line.push("--no-chromium-sandbox".to_owned());
        }
        if self.http {
            line.extend(["--http".to_owned(), "127.0.0.1:0".to_owned()]);
        }
        line.extend(self.arguments.iter().cloned());
        line
    }
}

//! Why a call failed: one closed list, three vocabularies, bounded details.
//!
//! What must stay true: `message` and `next_step` are fixed by the code and hold nothing from a page,
//! a path or a cause; details carry only the keys their code allows, cut to a bound and without URL
//! queries; the cause goes to the server's own log and never to a client.

pub mod catalog;
mod detail;

use std::error::Error;
use std::fmt;

use serde_json::{Map, Value};
use storage::StorageError;

pub use catalog::{Code, ErrorType, FAULTS, FaultFacts, RetryClass};

use crate::limits::{CAUSE_BYTES_MAX, DETAIL_ITEMS_MAX, head};

/// What the failure of any code may say about what was done before it.
pub const COMMON_DETAILS: [&str; 3] = ["action_completed", "done", "failed_field"];

/// One failure of one call.
#[derive(Debug, Clone)]
pub struct Fault {
    code: Code,
    details: Map<String, Value>,
    cause: Option<Box<str>>,
}

/// One thing wrong with the arguments, by the name of the argument.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    pub field: String,
    pub problem: String,
}

impl Problem {
    pub fn new(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self { field: field.into(), problem: problem.into() }
    }
}

impl Fault {
    #[must_use]
    pub fn new(code: Code) -> Self {
        Self { code, details: Map::new(), cause: None }
    }

    /// `INVALID_ARGUMENTS` with every problem found, as many as details may hold.
    #[must_use]
    pub fn invalid(problems: &[Problem]) -> Self {
        let shown = if problems.len() > DETAIL_ITEMS_MAX { DETAIL_ITEMS_MAX - 1 } else { problems.len() };
        let mut list: Vec<Value> = problems[..shown].iter().map(Problem::to_json).collect();
        if shown < problems.len() {
            list.push(Problem::new("...", format!("{} more problems", problems.len() - shown)).to_json());
        }
        Self::new(Code::InvalidArguments).with("problems", list)
    }

    /// `INVALID_ARGUMENTS` with one problem.
    #[must_use]
    pub fn invalid_argument(field: impl Into<String>, problem: impl Into<String>) -> Self {
        Self::invalid(&[Problem::new(field, problem)])
    }

    /// Adds a detail. A key that the code's row does not allow is a mistake in the program: it stops
    /// a debug build and is left out otherwise.
    #[must_use]
    pub fn with(mut self, key: &'static str, value: impl Into<Value>) -> Self {
        let allowed = self.code.facts().details.contains(&key) || COMMON_DETAILS.contains(&key);
        debug_assert!(allowed, "{} allows no detail {key}", self.code.as_str());
        if allowed {
            self.details.insert(key.to_owned(), detail::bounded(key, value.into()));
        }
        self
    }

    /// Remembers what was behind it, for the server's own log.
    #[must_use]
    pub fn because(mut self, cause: impl fmt::Display) -> Self {
        let mut text = cause.to_string();
        if let Some(earlier) = &self.cause {
            text = format!("{earlier}: {text}");
        }
        self.cause = Some(head(&text, CAUSE_BYTES_MAX).into());
        self
    }

    /// Remembers an error and everything behind it, for the server's own log.
    #[must_use]
    pub fn caused_by(self, error: &dyn Error) -> Self {
        let mut fault = self.because(error);
        let mut next = error.source();
        while let Some(source) = next {
            fault = fault.because(source);
            next = source.source();
        }
        fault
    }

    /// What happened, for the server's own log and metrics of the operator.
    #[must_use]
    pub fn code(&self) -> Code {
        self.code
    }

    /// What the caller may know: another owner's session looks exactly like one that does not exist.
    /// Events and replies that the caller can read carry this code.
    #[must_use]
    pub fn shown_code(&self) -> Code {
        match self.code {
            Code::SessionAccessDenied => Code::SessionNotFound,
            code => code,
        }
    }

    #[must_use]
    pub fn details(&self) -> &Map<String, Value> {
        &self.details
    }

    /// The cause chain, outermost first; never shown to a client.
    #[must_use]
    pub fn cause(&self) -> Option<&str> {
        self.cause.as_deref()
    }
}

impl Problem {
    fn to_json(&self) -> Value {
        let mut out = Map::new();
        out.insert("field".into(), self.field.as_str().into());
        out.insert("problem".into(), self.problem.as_str().into());
        Value::Object(out)
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.code.as_str(), self.code.facts().message)
    }
}

impl Error for Fault {}

impl From<Code> for Fault {
    fn from(code: Code) -> Self {
        Self::new(code)
    }
}

impl From<StorageError> for Fault {
    fn from(error: StorageError) -> Self {
        let log_unavailable = |reason: &str| Self::new(Code::LogUnavailable).with("reason", reason);
        let fault = match &error {
            StorageError::Unavailable { .. } => log_unavailable("writing failed"),
            StorageError::Damaged { first_seq, last_seq, .. } => {
                Self::new(Code::HistoryDamaged).with("first_seq", *first_seq).with("last_seq", *last_seq)
            }
            // Which events tell of it is for whoever asked to add.
            StorageError::Altered { .. } => Self::new(Code::HistoryDamaged),
            StorageError::Locked { .. } => log_unavailable("the data directory is in use"),
            StorageError::Moved => log_unavailable("it was being written anew"),
            StorageError::Full { .. } => Self::new(Code::DiskLow),
            StorageError::Format { .. } => log_unavailable("the log's format is unknown to this version"),
            error if error.is_full() => Self::new(Code::DiskLow),
            StorageError::Io { .. } => Self::new(Code::InternalError),
            StorageError::Cursor { .. } => Self::new(Code::InvalidCursor),
            StorageError::UnknownHandle => Self::new(Code::UnknownHandle),
            StorageError::Limit { name, limit } => {
                Self::new(Code::LimitExceeded).with("name", *name).with("limit", *limit)
            }
        };
        fault.caused_by(&error)
    }
}

#[cfg(test)]
mod tests;

//! Whose events are erased, and which events those are.
//!
//! A session's events, or those of a person; calls of no session that belong to one of theirs, because
//! it ran under their operation or names the session in its arguments; and what the log announced as
//! removed of theirs, which names them. What the log says of itself alone is nobody's.

use std::collections::{HashMap, HashSet};

use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::event::codec::ContextField;
use crate::event::{Clean, EventView, Kind, ValueRef};
use crate::ids::{Owner, SessionId};

/// What is to be forgotten.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    Session(SessionId),
    Owner(Owner),
}

impl Subject {
    fn parts(&self) -> (&'static str, &str) {
        match self {
            Subject::Session(session) => ("session", session.as_str()),
            Subject::Owner(owner) => ("owner", owner.as_str()),
        }
    }

    /// What stands for the subject in the record: whoever knows its name can tell that it was erased,
    /// and nobody can read the name from it. The SHA-256 is that of
    /// `pageledger erased <session or owner> <log id> <name>`.
    #[must_use]
    pub fn mark(&self, log_id: &str) -> Clean {
        let (what, name) = self.parts();
        let digest = Sha256::digest(format!("pageledger erased {what} {log_id} {name}"));
        let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Clean::redacted(format!("{what} {digest}"))
    }
}

/// Finds the subject's events, when it is shown every event of the log in order, twice: first to learn,
/// then to be asked.
#[derive(Default)]
pub struct Search {
    /// Owner of the latest launch, by session.
    owners: HashMap<Box<str>, Box<str>>,
    /// Calls of the subject's.
    operations: HashSet<Box<str>>,
    /// An event of the subject's own was seen. A word that calls merely used names nobody.
    pub found: bool,
}

impl Search {
    /// Begins with the first event again.
    pub fn again(&mut self) {
        self.owners.clear();
    }

    /// Whether the event is the subject's, as far as is known by now.
    pub fn learn(&mut self, subject: &Subject, view: &EventView<'_>) -> bool {
        let theirs = self.is_theirs(subject, view);
        self.found |= theirs;
        let Some(operation) = view.context(ContextField::OperationId) else { return theirs };
        let concerned = theirs || names(subject, view);
        if concerned {
            self.operations.insert(operation.into());
        }
        concerned
    }

    /// Whether the event goes.
    pub fn concerns(&mut self, subject: &Subject, view: &EventView<'_>) -> bool {
        if self.is_theirs(subject, view) {
            return true;
        }
        let operation = view.context(ContextField::OperationId);
        view.context(ContextField::SessionId).is_none()
            && operation.is_some_and(|operation| self.operations.contains(operation))
    }

    fn is_theirs(&mut self, subject: &Subject, view: &EventView<'_>) -> bool {
        self.follow(view);
        let session = view.context(ContextField::SessionId);
        match subject {
            Subject::Session(wanted) => session == Some(wanted.as_str()),
            Subject::Owner(wanted) => {
                let said = view.context(ContextField::Owner);
                let known = || session.and_then(|session| self.owners.get(session)).map(|owner| &**owner);
                said.or_else(known) == Some(wanted.as_str())
            }
        }
    }

    fn follow(&mut self, view: &EventView<'_>) {
        let (session, owner) = (view.context(ContextField::SessionId), view.context(ContextField::Owner));
        if let (Some(session), Some(owner)) = (session, owner)
            && self.owners.get(session).is_none_or(|known| &**known != owner)
        {
            self.owners.insert(session.into(), owner.into());
        }
    }
}

/// Whether a call of no session has the session's id among its arguments.
fn names(subject: &Subject, view: &EventView<'_>) -> bool {
    let Subject::Session(session) = subject else { return false };
    if view.kind() != Some(Kind::CallAccepted) || view.context(ContextField::SessionId).is_some() {
        return false;
    }
    let arguments = view.get("arguments").and_then(ValueRef::as_str).unwrap_or_default();
    arguments.contains(session.as_str())
        && serde_json::from_str(arguments).is_ok_and(|arguments| holds(&arguments, session.as_str()))
}

fn holds(value: &Value, text: &str) -> bool {
    match value {
        Value::String(found) => found == text,
        Value::Array(members) => members.iter().any(|member| holds(member, text)),
        Value::Object(members) => members.values().any(|member| holds(member, text)),
        _ => false,
    }
}

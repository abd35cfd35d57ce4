//! Events: immutable, numbered facts.
//!
//! [`catalog`] lists every kind once; [`declare`] is the small macro behind it; [`field`] says what a
//! field may hold; [`codec`] turns events into canonical bytes and back; [`json`] renders them;
//! [`removed`] is what events that announce removals hold.

pub mod catalog;
pub mod codec;
mod declare;
pub mod field;
pub mod json;
pub mod removed;
#[cfg(test)]
mod tests;

pub use catalog::{KINDS, Kind};
pub use codec::{Context, DecodeError, Draft, EventView};
pub use field::{Clean, FieldFacts, FieldKind, Json, Level, Role, Symbol, ValueRef};

/// How long a kind of event is worth keeping, rising; retention works by class.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Noise of pages: first to go.
    Telemetry,
    /// What an agent or a person will look for: errors, pages, downloads.
    Evidence,
    /// Who did what: last to go.
    Audit,
}

impl Class {
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Class::Telemetry => "telemetry",
            Class::Evidence => "evidence",
            Class::Audit => "audit",
        }
    }
}

/// Everything known about a kind of event, as data.
#[derive(Debug)]
pub struct KindFacts {
    pub kind: Kind,
    /// Identity on disk, 1..=127; append-only.
    pub number: u16,
    /// Dotted name used by people and filters; append-only.
    pub name: &'static str,
    /// Raised when a field is added.
    pub version: u8,
    pub class: Class,
    pub doc: &'static str,
    /// In wire order: the field at position `i` has number `FIRST_FIELD + i`.
    pub fields: &'static [FieldFacts],
}

/// A typed payload of one kind; implemented only by the catalogue's structs.
pub trait Payload: Sized {
    const KIND: Kind;
    fn put(&self, out: &mut codec::FieldWriter<'_>);
    /// # Errors
    /// When the view is of another kind or a required field is missing.
    fn take(view: &EventView<'_>) -> Result<Self, DecodeError>;
}

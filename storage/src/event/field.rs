//! What a field of an event may hold, and the roles it may play.

use std::sync::Arc;

use crate::ids;

/// The shape of a field, from which JSON, Arrow columns and filters are chosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    U64,
    I64,
    F64,
    Bool,
    /// A short word from a closed alphabet.
    Symbol,
    /// A severity, ordered.
    Level,
    /// An identifier.
    Id,
    /// A handle of bytes kept beside the log: they stay for as long as an event that holds it.
    Handle,
    /// Redacted free text.
    Text,
    /// Redacted JSON text.
    Json,
}

/// What a field may be used for beyond being read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// May appear in a filter.
    Filter,
    /// May label a metric: closed sets only.
    Label,
    /// May hold what a page or a person wrote: never in metrics, never in logs of the server itself.
    Sensitive,
}

/// One field of one kind, as data.
#[derive(Debug)]
pub struct FieldFacts {
    pub name: &'static str,
    pub kind: FieldKind,
    pub optional: bool,
    pub roles: &'static [Role],
    pub doc: &'static str,
}

/// The name of a field as data: a raw identifier such as `r#type` without its mark.
pub(super) const fn plain_name(identifier: &'static str) -> &'static str {
    match identifier.as_bytes() {
        [b'r', b'#', ..] => identifier.split_at(2).1,
        _ => identifier,
    }
}

/// A borrowed field value.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ValueRef<'a> {
    U64(u64),
    I64(i64),
    F64(f64),
    Bool(bool),
    Text(&'a str),
}

impl<'a> ValueRef<'a> {
    #[must_use]
    pub fn as_str(self) -> Option<&'a str> {
        if let ValueRef::Text(text) = self { Some(text) } else { None }
    }

    #[must_use]
    pub fn as_u64(self) -> Option<u64> {
        if let ValueRef::U64(number) = self { Some(number) } else { None }
    }
}

/// A Rust type that can stand in the catalogue.
pub trait Field: Sized {
    const KIND: FieldKind;
    const OPTIONAL: bool = false;
    /// `None` leaves the field out.
    fn value(&self) -> Option<ValueRef<'_>>;
    /// `None` when the value has another shape or a required one is absent.
    fn from_value(value: Option<ValueRef<'_>>) -> Option<Self>;
}

impl<T: Field> Field for Option<T> {
    const KIND: FieldKind = T::KIND;
    const OPTIONAL: bool = true;
    fn value(&self) -> Option<ValueRef<'_>> {
        self.as_ref().and_then(Field::value)
    }
    fn from_value(value: Option<ValueRef<'_>>) -> Option<Self> {
        match value {
            None => Some(None),
            some => T::from_value(some).map(Some),
        }
    }
}

macro_rules! plain_fields {
    ($($ty:ty, $kind:ident, $variant:ident;)*) => {$(
        impl Field for $ty {
            const KIND: FieldKind = FieldKind::$kind;
            fn value(&self) -> Option<ValueRef<'_>> {
                Some(ValueRef::$variant(*self))
            }
            fn from_value(value: Option<ValueRef<'_>>) -> Option<Self> {
                if let Some(ValueRef::$variant(inner)) = value { Some(inner) } else { None }
            }
        }
    )*};
}

plain_fields! {
    u64, U64, U64;
    i64, I64, I64;
    f64, F64, F64;
    bool, Bool, Bool;
}

macro_rules! text_fields {
    ($($ty:ty, $kind:ident, $from:expr;)*) => {$(
        impl Field for $ty {
            const KIND: FieldKind = FieldKind::$kind;
            fn value(&self) -> Option<ValueRef<'_>> {
                Some(ValueRef::Text(self.as_str()))
            }
            fn from_value(value: Option<ValueRef<'_>>) -> Option<Self> {
                value.and_then(ValueRef::as_str).map($from)
            }
        }
    )*};
}

text_fields! {
    Clean, Text, |text| Clean(text.into());
    Json, Json, |text| Json(text.into());
    Symbol, Symbol, Symbol::fold;
    ids::PageId, Id, ids::PageId::from;
    ids::FrameId, Id, ids::FrameId::from;
    ids::DownloadId, Id, ids::DownloadId::from;
    ids::ArtifactHandle, Handle, ids::ArtifactHandle::from;
}

/// Free text that has been through redaction. Only the redactor makes one from raw text, and the
/// tidy test holds that.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Clean(Box<str>);

impl Clean {
    /// For the redactor alone: states that the rules have been applied.
    #[must_use]
    pub fn redacted(text: impl Into<Box<str>>) -> Self {
        Self(text.into())
    }

    /// Text the program itself wrote, which cannot hold a secret.
    #[must_use]
    pub fn fixed(text: &'static str) -> Self {
        Self(text.into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// JSON text whose strings have been through redaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Json(Box<str>);

impl Json {
    /// For the redactor alone: states that the rules have been applied to every string inside.
    #[must_use]
    pub fn redacted(value: &serde_json::Value) -> Self {
        Self(value.to_string().into())
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A short word of `a-z 0-9 _ . - /`, at most 64 bytes: safe as a label and in any file name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Symbol(Arc<str>);

impl Symbol {
    /// Lower-cases; anything outside the alphabet or too long becomes `other`.
    #[must_use]
    pub fn fold(text: &str) -> Self {
        let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.' | '-' | '/');
        if text.is_empty() || text.len() > 64 || !text.chars().all(fits) {
            return Self(Arc::from("other"));
        }
        Self(Arc::from(text.to_ascii_lowercase()))
    }

    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Symbol {
    fn from(text: &str) -> Self {
        Self::fold(text)
    }
}

/// Severity of console output, in rising order; filters treat it as a threshold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Debug = 0,
    Info = 1,
    Warning = 2,
    Error = 3,
}

impl Level {
    pub const ALL: [Level; 4] = [Level::Debug, Level::Info, Level::Warning, Level::Error];

    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Level::Debug => "debug",
            Level::Info => "info",
            Level::Warning => "warning",
            Level::Error => "error",
        }
    }

    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.as_str() == text)
    }

    #[must_use]
    pub fn from_number(number: u64) -> Option<Self> {
        Self::ALL.into_iter().find(|level| *level as u64 == number)
    }
}

impl Field for Level {
    const KIND: FieldKind = FieldKind::Level;
    fn value(&self) -> Option<ValueRef<'_>> {
        Some(ValueRef::U64(*self as u64))
    }
    fn from_value(value: Option<ValueRef<'_>>) -> Option<Self> {
        value.and_then(ValueRef::as_u64).and_then(Level::from_number)
    }
}

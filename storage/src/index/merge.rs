//! Several sorted sources of entries as one. Sources are of neighbouring parts of the log, older ones
//! first, so entries of one key are parts of one fact.

use crate::index::entry::StretchFacts;
use crate::index::leaf::{Entry, Leaf};
use crate::index::rows::{ArtifactRow, SessionRow};
use crate::index::stretches::Stretches;
use crate::index::wire::{Meaningless, Space};

pub type Entries<'a> = Box<dyn Iterator<Item = Result<Entry, String>> + 'a>;

/// The value that stands for both parts of what `key` is about.
pub fn join(key: &[u8], older: &[u8], newer: &[u8]) -> Result<Vec<u8>, Meaningless> {
    match Space::of(key).ok_or(Meaningless)? {
        Space::Session | Space::Owner => {
            let mut row = SessionRow::decode(older)?;
            row.join(&SessionRow::decode(newer)?);
            Ok(row.encode())
        }
        Space::Stretch | Space::TimelineStretch | Space::Span | Space::Whole => {
            let mut facts = StretchFacts::decode(older)?;
            facts.unite(&StretchFacts::decode(newer)?);
            Ok(facts.encode())
        }
        Space::Mention => {
            let mut stretches = Stretches::decode(older)?;
            stretches.extend(&Stretches::decode(newer)?);
            Ok(stretches.encode())
        }
        Space::Artifact if ArtifactRow::stands_in(newer)? => Ok(older.to_vec()),
        // Each of these says all there is to say.
        _ => Ok(newer.to_vec()),
    }
}

/// Entries of all sources in rising order of key, those of one key joined.
pub struct Merged<'a> {
    sources: Vec<Source<'a>>,
}

struct Source<'a> {
    next: Option<Entry>,
    rest: Entries<'a>,
}

/// An entry, with a value of its own when it was joined from several.
pub struct Joined {
    entry: Entry,
    value: Option<Vec<u8>>,
}

impl Joined {
    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.entry.key()
    }

    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.value.as_deref().unwrap_or(self.entry.value())
    }
}

impl<'a> Merged<'a> {
    pub fn of(sources: impl IntoIterator<Item = Entries<'a>>) -> Result<Self, String> {
        let mut opened = Vec::new();
        for mut rest in sources {
            opened.push(Source { next: rest.next().transpose()?, rest });
        }
        Ok(Self { sources: opened })
    }

    /// The next of them; `None` at the end.
    pub fn next_entry(&mut self) -> Result<Option<Joined>, String> {
        let least = self.sources.iter().filter_map(|source| source.next.as_ref()).min_by(|a, b| a.key().cmp(b.key()));
        let Some(least) = least.cloned() else { return Ok(None) };
        let (mut joined, mut first): (Option<Vec<u8>>, Option<Entry>) = (None, None);
        for source in &mut self.sources {
            let Some(entry) = source.next.take_if(|entry| entry.key() == least.key()) else { continue };
            source.next = source.rest.next().transpose()?;
            match &first {
                None => first = Some(entry),
                Some(first) => {
                    let older = joined.as_deref().unwrap_or(first.value());
                    joined = Some(join(least.key(), older, entry.value()).map_err(|_| MEANINGLESS.to_owned())?);
                }
            }
        }
        Ok(Some(Joined { entry: least, value: joined }))
    }

    /// All of it in memory.
    pub fn into_leaf(mut self) -> Result<Leaf, String> {
        let mut leaf = Leaf::default();
        while let Some(joined) = self.next_entry()? {
            leaf.push(joined.key(), joined.value());
        }
        Ok(leaf)
    }
}

pub const MEANINGLESS: &str = "an entry does not decode";

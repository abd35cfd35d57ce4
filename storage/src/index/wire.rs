//! Keys and values of the index: how facts become bytes and back.
//!
//! Keys sort as their parts do, numbers rising; every text in a key stands behind its length, so no
//! text can be the beginning of another's range. Whatever does not decode is damage, and damage means
//! that it is made again. Offsets stand without segment and generation: whoever holds the entries
//! knows which file they are of.

use crate::event::codec::{put_varint, take_varint};

/// Raised whenever keys, values or what is folded into them change; another number means a rebuild.
pub const FORMAT: u32 = 2;

/// The first byte of a key. Those from `Owner` on are made from others when a table is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Space {
    /// (owner, handle) to an artifact's facts.
    Artifact = 1,
    /// (session, first seq) to a block's facts.
    Block = 2,
    /// (session) to the owner of its latest launch.
    Current = 3,
    /// (empty text, first seq) to the last seq of what cannot be read, and why.
    Damage = 4,
    /// (session, download id, first seq) to where its events are.
    Download = 5,
    /// (owner, session, segment, generation) to what retention took.
    Lost = 6,
    /// (what, id, session) to the stretches of numbers in which an event of the session names it.
    Mention = 7,
    /// (session, request id, first seq) to where its events are.
    Request = 8,
    /// (owner, session) to the session's row.
    Session = 9,
    /// (session, number of a stretch) to the facts of the blocks that begin in it.
    Stretch = 10,
    /// (first seq of a commit) to the facts of its blocks.
    Timeline = 11,
    /// (number of a stretch) to the facts of the commits that begin in it.
    TimelineStretch = 12,
    /// (session, first seq of a request that failed or was answered by 400 or above).
    Trouble = 13,
    /// (session, request id) of one whose beginning was not found when that was looked for.
    Unresolved = 14,
    /// (owner) to the sum of the rows of the owner's sessions.
    Owner = 15,
    /// (session) to the facts of all its blocks.
    Span = 16,
    /// To the facts of all blocks.
    Whole = 17,
}

impl Space {
    const ALL: [Space; 17] = [
        Space::Artifact,
        Space::Block,
        Space::Current,
        Space::Damage,
        Space::Download,
        Space::Lost,
        Space::Mention,
        Space::Request,
        Space::Session,
        Space::Stretch,
        Space::Timeline,
        Space::TimelineStretch,
        Space::Trouble,
        Space::Unresolved,
        Space::Owner,
        Space::Span,
        Space::Whole,
    ];

    #[must_use]
    pub fn of(key: &[u8]) -> Option<Self> {
        Self::ALL.get(usize::from(*key.first()?).checked_sub(1)?).copied()
    }

    /// How many texts at the front of a key say what it is about.
    fn identifying(self) -> usize {
        match self {
            Space::Timeline | Space::TimelineStretch | Space::Whole => 0,
            Space::Block | Space::Current | Space::Damage | Space::Stretch | Space::Trouble => 1,
            Space::Unresolved | Space::Owner | Space::Span => 1,
            Space::Artifact | Space::Download | Space::Lost | Space::Mention | Space::Request | Space::Session => 2,
        }
    }
}

/// What a `Mention` is of.
pub const OPERATION: &str = "o";
pub const PAGE: &str = "p";

#[must_use]
pub fn key(space: Space, texts: &[&str], number: Option<u64>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + texts.iter().map(|text| 4 + text.len()).sum::<usize>() + 8);
    out.push(space as u8);
    for text in texts {
        out.extend_from_slice(&(text.len() as u32).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    if let Some(number) = number {
        out.extend_from_slice(&number.to_be_bytes());
    }
    out
}

/// The number at the end of a key that has one.
pub fn number_of(key: &[u8]) -> Result<u64, Meaningless> {
    key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or(Meaningless)
}

/// The texts of a key, in order, as far as they can be told.
pub fn texts_of(key: &[u8]) -> impl Iterator<Item = &str> {
    let mut rest = key.get(1..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (text, behind) = text_at(rest)?;
        rest = behind;
        std::str::from_utf8(text).ok()
    })
}

/// The part of a key that says what it is about; `None` when it is about nothing in particular.
#[must_use]
pub fn identity(key: &[u8]) -> Option<&[u8]> {
    let mut rest = key.get(1..)?;
    let texts = Space::of(key)?.identifying();
    for _ in 0..texts {
        rest = text_at(rest)?.1;
    }
    (texts > 0).then(|| &key[..key.len() - rest.len()])
}

fn text_at(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (length, rest) = bytes.split_first_chunk::<4>()?;
    rest.split_at_checked(u32::from_be_bytes(*length) as usize)
}

/// The first key after all that begin with `prefix`.
#[must_use]
pub fn end_of(prefix: &[u8]) -> Vec<u8> {
    let mut out = prefix.to_vec();
    while let Some(last) = out.pop() {
        if last < u8::MAX {
            out.push(last + 1);
            break;
        }
    }
    out
}

/// Bytes of the index that mean nothing.
#[derive(Debug, Clone, Copy)]
pub struct Meaningless;

/// Writes the parts of a value.
#[derive(Default)]
pub struct Parts(pub Vec<u8>);

impl Parts {
    pub fn number(&mut self, number: u64) -> &mut Self {
        put_varint(&mut self.0, number);
        self
    }

    pub fn signed(&mut self, number: i64) -> &mut Self {
        self.0.extend_from_slice(&number.to_le_bytes());
        self
    }

    pub fn moment(&mut self, moment: Option<i64>) -> &mut Self {
        self.number(u64::from(moment.is_some()));
        if let Some(moment) = moment {
            self.signed(moment);
        }
        self
    }

    pub fn text(&mut self, text: &str) -> &mut Self {
        self.number(text.len() as u64);
        self.0.extend_from_slice(text.as_bytes());
        self
    }

    /// Few bits are set, and mostly low ones.
    pub fn bits(&mut self, bits: u128) -> &mut Self {
        self.number(bits as u64).number((bits >> 64) as u64)
    }

    /// An absent text and an empty one are the same.
    pub fn maybe(&mut self, text: Option<&str>) -> &mut Self {
        self.text(text.unwrap_or_default())
    }
}

/// Reads the parts of a value in the order they were written.
pub struct Taken<'a>(pub &'a [u8]);

impl<'a> Taken<'a> {
    pub fn number(&mut self) -> Result<u64, Meaningless> {
        take_varint(&mut self.0).map_err(|_| Meaningless)
    }

    pub fn small<T: TryFrom<u64>>(&mut self) -> Result<T, Meaningless> {
        T::try_from(self.number()?).map_err(|_| Meaningless)
    }

    pub fn signed(&mut self) -> Result<i64, Meaningless> {
        let (bytes, rest) = self.0.split_first_chunk::<8>().ok_or(Meaningless)?;
        self.0 = rest;
        Ok(i64::from_le_bytes(*bytes))
    }

    pub fn moment(&mut self) -> Result<Option<i64>, Meaningless> {
        if self.number()? == 0 { Ok(None) } else { self.signed().map(Some) }
    }

    pub fn text(&mut self) -> Result<&'a str, Meaningless> {
        let length = self.small()?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Meaningless)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| Meaningless)
    }

    pub fn bits(&mut self) -> Result<u128, Meaningless> {
        Ok(u128::from(self.number()?) | u128::from(self.number()?) << 64)
    }

    pub fn maybe(&mut self) -> Result<Option<&'a str>, Meaningless> {
        self.text().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spaces_are_known_by_their_byte() {
        for space in Space::ALL {
            assert_eq!(Space::of(&[space as u8]), Some(space));
        }
        assert_eq!((Space::of(&[0]), Space::of(&[18]), Space::of(&[])), (None, None, None));
    }

    #[test]
    fn a_key_tells_what_it_is_about() {
        let about = key(Space::Request, &["s-1", "r-1"], None);
        assert_eq!(identity(&key(Space::Request, &["s-1", "r-1"], Some(7))), Some(&about[..]));
        assert_eq!(identity(&key(Space::Timeline, &[], Some(7))), None);
        assert_eq!(texts_of(&about).collect::<Vec<_>>(), ["s-1", "r-1"]);
        assert_eq!(identity(&[Space::Request as u8, 0, 0, 0, 9, 1]), None, "a text that is cut");
    }
}

//! Keys and values of the index: how facts become bytes and back.
//!
//! Keys sort as their parts do, numbers rising; every text in a key stands behind its length, so no
//! text can be the beginning of another's range. Whatever does not decode is damage, and damage means
//! that the index is made again.

use crate::event::codec::{put_varint, take_varint};

/// Raised whenever keys, values or what is folded into them change; another number means a rebuild.
pub const FORMAT: u64 = 1;

/// The first byte of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub enum Space {
    /// (owner, handle) to an artifact's facts.
    Artifact = b'a',
    /// (session, first seq) to a block's facts.
    Block = b'b',
    /// (session) to the owner of its latest launch.
    Current = b'c',
    /// (session, download id, first seq) to where its events are.
    Download = b'd',
    /// What the index stands for and how far it has come.
    Meta = b'm',
    /// (name) to an exporter's sequence number; not derived from the log.
    Checkpoint = b'p',
    /// (session, request id, first seq) to where its events are.
    Request = b'r',
    /// (owner, session) to the session's row.
    Session = b's',
    /// (session, first seq of a request that failed or was answered by 400 or above) to its block.
    Trouble = b'x',
    /// (first seq of a commit) to the facts of its blocks.
    Timeline = b't',
}

#[must_use]
pub fn key(space: Space, texts: &[&str], seq: Option<u64>) -> Vec<u8> {
    let mut out = Vec::with_capacity(1 + texts.iter().map(|text| 4 + text.len()).sum::<usize>() + 8);
    out.push(space as u8);
    for text in texts {
        out.extend_from_slice(&(text.len() as u32).to_be_bytes());
        out.extend_from_slice(text.as_bytes());
    }
    if let Some(seq) = seq {
        out.extend_from_slice(&seq.to_be_bytes());
    }
    out
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

    pub fn bits(&mut self, bits: u128) -> &mut Self {
        self.0.extend_from_slice(&bits.to_le_bytes());
        self
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

    pub fn signed(&mut self) -> Result<i64, Meaningless> {
        self.bytes::<8>().map(i64::from_le_bytes)
    }

    pub fn moment(&mut self) -> Result<Option<i64>, Meaningless> {
        if self.number()? == 0 { Ok(None) } else { self.signed().map(Some) }
    }

    pub fn text(&mut self) -> Result<&'a str, Meaningless> {
        let length = usize::try_from(self.number()?).map_err(|_| Meaningless)?;
        let (text, rest) = self.0.split_at_checked(length).ok_or(Meaningless)?;
        self.0 = rest;
        std::str::from_utf8(text).map_err(|_| Meaningless)
    }

    pub fn bits(&mut self) -> Result<u128, Meaningless> {
        self.bytes::<16>().map(u128::from_le_bytes)
    }

    pub fn maybe(&mut self) -> Result<Option<&'a str>, Meaningless> {
        self.text().map(|text| Some(text).filter(|text| !text.is_empty()))
    }

    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes<const N: usize>(&mut self) -> Result<[u8; N], Meaningless> {
        let (bytes, rest) = self.0.split_first_chunk::<N>().ok_or(Meaningless)?;
        self.0 = rest;
        Ok(*bytes)
    }
}

//! Entries in memory, sorted by key: one block of a table, or what is not in a table yet.

use std::sync::Arc;

use crate::event::codec::put_varint;
use crate::index::wire::Taken;

/// Never changed once it is made, so that whoever holds one sees the same until the end.
#[derive(Debug, Default)]
pub struct Leaf {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

#[derive(Debug, Clone, Copy)]
struct Place {
    key_at: u32,
    value_at: u32,
    end: u32,
}

/// One entry, held together with the leaf it is in.
#[derive(Debug, Clone)]
pub struct Entry {
    leaf: Arc<Leaf>,
    at: usize,
}

impl Leaf {
    /// Keys are pushed in rising order. A leaf holds less than 4 GiB: its maker stops long before.
    pub fn push(&mut self, key: &[u8], value: &[u8]) {
        let key_at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(key);
        let value_at = self.bytes.len() as u32;
        self.bytes.extend_from_slice(value);
        self.places.push(Place { key_at, value_at, end: self.bytes.len() as u32 });
    }

    #[must_use]
    pub fn of(mut pairs: Vec<(Vec<u8>, Vec<u8>)>) -> Self {
        pairs.sort_unstable();
        let mut leaf =
            Self { bytes: Vec::with_capacity(pairs.iter().map(|(k, v)| k.len() + v.len()).sum()), ..Self::default() };
        leaf.places.reserve_exact(pairs.len());
        for (key, value) in &pairs {
            leaf.push(key, value);
        }
        leaf
    }

    /// As it is stored; see [`put_entry`].
    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (mut out, mut last_key) = (Vec::with_capacity(self.bytes.len() / 2), &[][..]);
        for at in 0..self.len() {
            put_entry(&mut out, last_key, self.key(at), self.value(at));
            last_key = self.key(at);
        }
        out
    }

    /// `None` when the bytes are no entries.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let (mut leaf, mut key, mut input) = (Self::default(), Vec::new(), Taken(bytes));
        while !input.is_empty() {
            let (shared, rest, value) = (input.small().ok()?, input.small().ok()?, input.small().ok()?);
            let (rest, behind) = input.0.split_at_checked(rest)?;
            let (value, behind) = behind.split_at_checked(value)?;
            input.0 = behind;
            key.get(shared..)?;
            key.truncate(shared);
            key.extend_from_slice(rest);
            leaf.push(&key, value);
        }
        Some(leaf)
    }

    #[must_use]
    pub fn len(&self) -> usize {
        self.places.len()
    }

    /// Memory it takes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.bytes.len() + self.places.len() * size_of::<Place>()
    }

    #[must_use]
    pub fn key(&self, at: usize) -> &[u8] {
        let place = self.places[at];
        &self.bytes[place.key_at as usize..place.value_at as usize]
    }

    #[must_use]
    pub fn value(&self, at: usize) -> &[u8] {
        let place = self.places[at];
        &self.bytes[place.value_at as usize..place.end as usize]
    }

    /// Place of the first entry that is not below `key`.
    #[must_use]
    pub fn seek(&self, key: &[u8]) -> usize {
        let key_of = |place: &Place| &self.bytes[place.key_at as usize..place.value_at as usize];
        self.places.partition_point(|place| key_of(place) < key)
    }
}

/// Appends an entry: how many bytes its key shares with the one before, how many are its own, how long
/// the value is, then those bytes.
pub fn put_entry(out: &mut Vec<u8>, last_key: &[u8], key: &[u8], value: &[u8]) {
    let shared = shared(last_key, key);
    put_varint(out, shared as u64);
    put_varint(out, (key.len() - shared) as u64);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(&key[shared..]);
    out.extend_from_slice(value);
}

/// How many bytes two keys begin with in common.
#[must_use]
pub fn shared(one: &[u8], other: &[u8]) -> usize {
    one.iter().zip(other).take_while(|(a, b)| a == b).count()
}

impl Entry {
    #[must_use]
    pub fn of(leaf: &Arc<Leaf>, at: usize) -> Self {
        Self { leaf: leaf.clone(), at }
    }

    #[must_use]
    pub fn key(&self) -> &[u8] {
        self.leaf.key(self.at)
    }

    #[must_use]
    pub fn value(&self) -> &[u8] {
        self.leaf.value(self.at)
    }
}

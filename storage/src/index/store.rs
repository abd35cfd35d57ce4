//! The only file that knows sled.
//!
//! sled is never trusted: what is opened is read through once and its checksum compared, because
//! damaged files have been seen to lose entries without an error. Anything unexpected is a text that
//! says why, upon which the caller throws the directory away and begins again from the log.

use std::collections::BTreeMap;
use std::path::Path;

use crate::index::wire::{FORMAT, Meaningless, Parts, Space, Taken};
use crate::log::Position;

/// Memory for pages of the index, in bytes; sled's own default is 1 GiB.
const CACHE_BYTES: u64 = 8 * 1024 * 1024;
/// How often sled writes what it holds, in milliseconds. A crash costs re-reading that much of the log.
const FLUSH_MILLIS: u64 = 500;
const META_KEY: &[u8] = &[Space::Meta as u8];

/// An open index on disk. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    db: sled::Db,
}

/// What the entries stand for; written in one batch with them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Meta {
    pub log_id: String,
    /// Everything up to here is in the index.
    pub reached_seq: u64,
    /// Where the log goes on after it; `None` before the first block.
    pub position: Option<Position>,
    /// Sum over all entries but checkpoints.
    checksum: u64,
}

pub type Pair = (Vec<u8>, Vec<u8>);
pub type Pairs<'a> = Box<dyn Iterator<Item = Result<Pair, String>> + 'a>;

impl Meta {
    #[must_use]
    pub fn empty(log_id: &str) -> Self {
        Self { log_id: log_id.to_owned(), reached_seq: 0, position: None, checksum: 0 }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        out.number(FORMAT).text(&self.log_id).number(self.reached_seq);
        out.number(u64::from(self.position.is_some())).number(self.position.map_or(0, Position::to_u64));
        out.number(self.checksum);
        out.0
    }

    fn decode(bytes: &[u8]) -> Result<Option<Self>, Meaningless> {
        let mut input = Taken(bytes);
        if input.number()? != FORMAT {
            return Ok(None);
        }
        let (log_id, reached_seq) = (input.text()?.to_owned(), input.number()?);
        let (placed, place) = (input.number()?, input.number()?);
        let position = (placed == 1).then(|| Position::from_u64(place));
        Ok(Some(Self { log_id, reached_seq, position, checksum: input.number()? }))
    }
}

impl Store {
    /// Opens or creates. `None` in the second place: there is nothing usable inside.
    pub fn open(directory: &Path) -> Result<(Self, Option<Meta>), String> {
        let config = sled::Config::new().path(directory).cache_capacity(CACHE_BYTES).flush_every_ms(Some(FLUSH_MILLIS));
        let store = Self { db: config.open().map_err(said)? };
        let meta = match store.db.get(META_KEY).map_err(said)? {
            Some(bytes) => Meta::decode(&bytes).map_err(|Meaningless| "its head is unreadable".to_owned())?,
            None => None,
        };
        if let Some(meta) = &meta {
            store.verify(meta)?;
        } else if !store.db.is_empty() {
            return Err("it has entries of another format or no head".into());
        }
        Ok((store, meta))
    }

    fn verify(&self, meta: &Meta) -> Result<(), String> {
        let mut sum = 0u64;
        for pair in self.db.iter() {
            let (key, value) = pair.map_err(said)?;
            if counts(&key) {
                sum = sum.wrapping_add(mark(&key, &value));
            }
        }
        if sum == meta.checksum { Ok(()) } else { Err("its entries do not add up to its checksum".into()) }
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, String> {
        Ok(self.db.get(key).map_err(said)?.map(|value| value.to_vec()))
    }

    /// Entries from `from` up to and without `to`.
    pub fn range(&self, from: &[u8], to: &[u8], backwards: bool) -> Pairs<'_> {
        if from >= to {
            return Box::new(std::iter::empty());
        }
        let entries = self.db.range(from.to_vec()..to.to_vec());
        let own = |pair: sled::Result<(sled::IVec, sled::IVec)>| {
            pair.map(|(key, value)| (key.to_vec(), value.to_vec())).map_err(said)
        };
        if backwards { Box::new(entries.rev().map(own)) } else { Box::new(entries.map(own)) }
    }

    /// All of `puts` and `meta`, or nothing of it, also after a crash.
    pub fn apply(&self, puts: &BTreeMap<Vec<u8>, Vec<u8>>, meta: &mut Meta) -> Result<(), String> {
        let mut batch = sled::Batch::default();
        for (key, value) in puts {
            if let Some(old) = self.db.get(key).map_err(said)? {
                meta.checksum = meta.checksum.wrapping_sub(mark(key, &old));
            }
            meta.checksum = meta.checksum.wrapping_add(mark(key, value));
            batch.insert(key.as_slice(), value.as_slice());
        }
        batch.insert(META_KEY, meta.encode());
        self.db.apply_batch(batch).map_err(said)
    }

    pub fn put_checkpoint(&self, key: &[u8], seq: u64) -> Result<(), String> {
        self.db.insert(key, &seq.to_be_bytes()).map(|_| ()).map_err(said)
    }

    pub fn flush(&self) -> Result<(), String> {
        self.db.flush().map(|_| ()).map_err(said)
    }
}

fn counts(key: &[u8]) -> bool {
    key != META_KEY && key.first() != Some(&(Space::Checkpoint as u8))
}

fn mark(key: &[u8], value: &[u8]) -> u64 {
    let of_key = crc32c::crc32c(key);
    u64::from(of_key) << 32 | u64::from(crc32c::crc32c_append(of_key, value))
}

fn said(error: sled::Error) -> String {
    error.to_string()
}

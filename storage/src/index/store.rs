//! The only file that knows sled.
//!
//! sled is never trusted: what is opened is read through once and its checksum compared, because
//! damaged files have been seen to lose entries without an error. Anything unexpected is a text that
//! says why, upon which the caller throws the directory away and begins again from the log.

use std::collections::BTreeMap;
use std::fs::{File, TryLockError};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::index::wire::{FORMAT, Meaningless, Parts, Space, Taken};
use crate::log::Position;

/// Memory for pages of the index, in bytes; sled's own default is 1 GiB.
const CACHE_BYTES: u64 = 8 * 1024 * 1024;
/// How often sled writes what it holds, in milliseconds. A crash costs re-reading that much of the log.
const FLUSH_MILLIS: u64 = 500;
/// How long an earlier store of this process may take to let go of its files, and how often that is
/// looked at.
const RELEASE_MILLIS_MAX: u64 = 2_000;
const RELEASE_LOOK_MILLIS: u64 = 2;
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
        wait_for_release(&directory.join("db"))?;
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

/// sled lets go of its file lock a moment after its last handle is gone. Only an earlier store of this
/// process can hold it, for the log's lock keeps other processes out. The lock has no wait with a
/// deadline, hence the looks at intervals.
fn wait_for_release(file: &Path) -> Result<(), String> {
    let until = Instant::now() + Duration::from_millis(RELEASE_MILLIS_MAX);
    let Ok(file) = File::open(file) else { return Ok(()) };
    while let Err(TryLockError::WouldBlock) = file.try_lock() {
        if Instant::now() >= until {
            return Err("its files are still held".into());
        }
        std::thread::sleep(Duration::from_millis(RELEASE_LOOK_MILLIS));
    }
    Ok(())
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

#[cfg(test)]
mod tests {
    use super::*;

    /// A store with two entries, changed behind its back by `damage`, opened again.
    fn reopened(damage: impl Fn(&sled::Db)) -> Result<Option<Meta>, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let (store, meta) = Store::open(directory.path()).expect("opens");
        assert_eq!(meta, None);
        let mut meta = Meta::empty("log");
        meta.reached_seq = 9;
        let puts = [(b"b1".to_vec(), b"one".to_vec()), (b"b2".to_vec(), b"two".to_vec())].into();
        store.apply(&puts, &mut meta).expect("written");
        // Writing an entry again replaces its share of the sum.
        store.apply(&puts, &mut meta).expect("written");
        damage(&store.db);
        store.flush().expect("flushed");
        drop(store);
        Store::open(directory.path()).map(|(_, meta)| meta)
    }

    #[test]
    fn entries_that_went_missing_or_changed_are_noticed() {
        let whole = reopened(|db| {
            db.insert(key_of_checkpoint(), &[0; 8]).expect("checkpoints come and go");
        });
        assert_eq!(whole.map(|meta| meta.map(|meta| meta.reached_seq)), Ok(Some(9)));
        let damages: [&dyn Fn(&sled::Db); 4] = [
            &|db| drop(db.remove(b"b1").expect("removed")),
            &|db| drop(db.insert(b"b2", b"2").expect("changed")),
            &|db| drop(db.insert(b"b3", b"three").expect("added")),
            &|db| drop(db.remove(META_KEY).expect("removed")),
        ];
        for (number, damage) in damages.iter().enumerate() {
            let noticed = reopened(damage).expect_err("the damage is noticed");
            assert!(noticed.starts_with("its entries do not") || noticed.ends_with("no head"), "{number}: {noticed}");
        }
    }

    fn key_of_checkpoint() -> Vec<u8> {
        crate::index::wire::key(Space::Checkpoint, &["archive"], None)
    }
}

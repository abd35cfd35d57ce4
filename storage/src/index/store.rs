//! The only file that knows sled.
//!
//! It keeps what would be lost with the process: the layers that are not in a table yet, and the
//! exporters' checkpoints. It is read once, when it is opened, and never to answer a question. It is
//! not trusted: damaged files have been seen to lose entries without an error, so what belongs together
//! bears a length and a checksum. Anything unexpected is a text that says why, upon which the caller
//! throws the directory away.

use std::fs::{File, TryLockError};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::index::layer::{Layer, Source};
use crate::index::leaf::Leaf;
use crate::index::table::Tip;
use crate::index::wire::{FORMAT, Meaningless, Parts, Taken};

/// Memory for pages of sled, in bytes; its own default is 1 GiB.
const CACHE_BYTES: u64 = 1024 * 1024;
/// How often sled writes what it holds, in milliseconds. A crash costs re-reading that much of the log.
const FLUSH_MILLIS: u64 = 500;
/// How long an earlier store of this process may take to let go of its files, and how often that is
/// looked at.
const RELEASE_MILLIS_MAX: u64 = 2_000;
const RELEASE_LOOK_MILLIS: u64 = 2;
/// In the default tree: what the store is of, and checkpoints behind their own byte.
const HEAD_KEY: &[u8] = b"head";
const CHECKPOINT: u8 = b'p';
/// The tree that holds the layers has a new name after each emptying: removing a tree is cheaper than
/// removing its entries.
const TREE_KEY: &[u8] = b"tree";
/// Of each layer: its description under its place, then its entries in chunks of this many bytes.
const CHUNK_BYTES: usize = 2 * 1024;
/// Chunks written at once: sled holds on to memory for each until all are in.
const CHUNKS_AT_ONCE: usize = 32;
const PLACE_BYTES: usize = 8;

/// An open store. Cheap to clone.
#[derive(Clone)]
pub struct Store {
    db: sled::Db,
}

/// What was found when a store was opened.
#[derive(Default)]
pub struct Opened {
    /// Layers in order of their place.
    pub layers: Vec<Layer>,
    /// There was nothing at all.
    pub fresh: bool,
}

impl Store {
    /// Opens or creates.
    pub fn open(directory: &Path, log_id: &str) -> Result<(Self, Opened), String> {
        wait_for_release(&directory.join("db"))?;
        let config = sled::Config::new().path(directory).cache_capacity(CACHE_BYTES).flush_every_ms(Some(FLUSH_MILLIS));
        let store = Self { db: config.open().map_err(said)? };
        let mut head = Parts::default();
        head.number(u64::from(FORMAT)).text(log_id);
        match store.db.get(HEAD_KEY).map_err(said)? {
            Some(found) if found == head.0 => {
                let layers = store.load()?;
                Ok((store, Opened { layers, fresh: false }))
            }
            Some(found) if Taken(&found).number().ok() == Some(u64::from(FORMAT)) => Err(FOREIGN.into()),
            Some(_) => Err("it is of another format".into()),
            None if store.db.is_empty() && store.db.tree_names().len() <= 1 => {
                store.db.insert(HEAD_KEY, head.0).map_err(said)?;
                Ok((store, Opened { layers: Vec::new(), fresh: true }))
            }
            None => Err("it has entries and no head".into()),
        }
    }

    fn tree(&self) -> Result<sled::Tree, String> {
        let number = self.db.get(TREE_KEY).map_err(said)?;
        let number = number.map_or(Ok(0), |bytes| Taken(&bytes).number()).map_err(meaningless)?;
        self.db.open_tree(format!("layers-{number}")).map_err(said)
    }

    fn load(&self) -> Result<Vec<Layer>, String> {
        let (mut layers, mut filling): (Vec<Layer>, Option<Filling>) = (Vec::new(), None);
        for pair in self.tree()?.iter() {
            let (key, value) = pair.map_err(said)?;
            match key.split_first_chunk::<PLACE_BYTES>() {
                Some((place, [])) => {
                    layers.extend(filling.take().map(Filling::done).transpose()?);
                    filling = Some(Filling::begin(*place, &value).map_err(meaningless)?);
                }
                // Without a description it was not kept to its end.
                Some((place, _)) => {
                    if let Some(filling) = filling.as_mut().filter(|filling| filling.place == *place) {
                        filling.bytes.extend_from_slice(&value);
                    }
                }
                None => return Err("a key is too short".into()),
            }
        }
        layers.extend(filling.map(Filling::done).transpose()?);
        Ok(layers)
    }

    /// Keeps a layer: all of it or nothing, also after a crash.
    pub fn keep(&self, layer: &Layer) -> Result<(), String> {
        let Source::Leaf(leaf) = &layer.source else { return Ok(()) };
        let (place, tree, bytes) = (place_of(layer), self.tree()?, leaf.encode());
        let chunks: Vec<&[u8]> = bytes.chunks(CHUNK_BYTES).collect();
        for (round, some) in chunks.chunks(CHUNKS_AT_ONCE).enumerate() {
            let mut batch = sled::Batch::default();
            for (number, chunk) in some.iter().enumerate() {
                let number = (round * CHUNKS_AT_ONCE + number) as u32;
                batch.insert([&place[..], &number.to_be_bytes()].concat(), *chunk);
            }
            tree.apply_batch(batch).map_err(said)?;
        }
        let mut description = Parts::default();
        description.number(u64::from(layer.end)).number(layer.first_seq).number(layer.last_seq);
        description.number(u64::from(layer.tip.block)).number(bytes.len() as u64);
        description.number(u64::from(crc32c::crc32c(&bytes)));
        description.0.extend_from_slice(&layer.tip.chain);
        tree.insert(place, description.0).map(|_| ()).map_err(said)
    }

    /// Lets go of all layers.
    pub fn empty(&self) -> Result<(), String> {
        let tree = self.tree()?;
        if tree.is_empty() {
            return Ok(());
        }
        let name = tree.name();
        let number = self.db.get(TREE_KEY).map_err(said)?;
        let number = number.map_or(Ok(0), |bytes| Taken(&bytes).number()).map_err(meaningless)?;
        let mut next = Parts::default();
        next.number(number.wrapping_add(1));
        self.db.insert(TREE_KEY, next.0).map_err(said)?;
        drop(tree);
        self.db.drop_tree(name).map(|_| ()).map_err(said)
    }

    pub fn checkpoint(&self, name: &str) -> Result<Option<u64>, String> {
        let bytes = self.db.get(checkpoint_key(name)).map_err(said)?;
        Ok(bytes.and_then(|bytes| Some(u64::from_be_bytes(bytes.as_ref().try_into().ok()?))))
    }

    pub fn set_checkpoint(&self, name: &str, seq: u64) -> Result<(), String> {
        self.db.insert(checkpoint_key(name), &seq.to_be_bytes()).map(|_| ()).map_err(said)
    }

    pub fn flush(&self) -> Result<(), String> {
        self.db.flush().map(|_| ()).map_err(said)
    }
}

/// Why a store or table of another log is of no use.
pub const FOREIGN: &str = "it belongs to another log";
const INCOMPLETE: &str = "its entries are not what was kept";

/// A layer being read.
struct Filling {
    place: [u8; PLACE_BYTES],
    layer: Layer,
    bytes: Vec<u8>,
    length: usize,
    checksum: u32,
}

impl Filling {
    fn begin(place: [u8; PLACE_BYTES], description: &[u8]) -> Result<Self, Meaningless> {
        let number = u64::from_be_bytes(place);
        let mut input = Taken(description);
        let mut layer = Layer {
            segment: (number >> 32) as u32,
            generation: 0,
            start: number as u32,
            end: input.small()?,
            first_seq: input.number()?,
            last_seq: input.number()?,
            tip: Tip { block: input.small()?, ..Tip::default() },
            source: Source::Leaf(Arc::default()),
        };
        let (length, checksum) = (input.small()?, input.small()?);
        layer.tip.chain = input.0.try_into().map_err(|_| Meaningless)?;
        Ok(Self { place, layer, bytes: Vec::new(), length, checksum })
    }

    fn done(self) -> Result<Layer, String> {
        let whole = self.bytes.len() == self.length && crc32c::crc32c(&self.bytes) == self.checksum;
        let leaf = Leaf::decode(&self.bytes).filter(|_| whole).ok_or(INCOMPLETE)?;
        Ok(Layer { source: Source::Leaf(Arc::new(leaf)), ..self.layer })
    }
}

fn place_of(layer: &Layer) -> [u8; PLACE_BYTES] {
    (u64::from(layer.segment) << 32 | u64::from(layer.start)).to_be_bytes()
}

fn checkpoint_key(name: &str) -> Vec<u8> {
    [&[CHECKPOINT], name.as_bytes()].concat()
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

fn said(error: sled::Error) -> String {
    error.to_string()
}

fn meaningless(_: Meaningless) -> String {
    "an entry does not decode".into()
}

#[cfg(test)]
mod tests {
    use super::*;

    type Damage<'a> = dyn Fn(&sled::Db, &sled::Tree) + 'a;

    /// A store with two layers, changed behind its back by `damage`, opened again.
    fn reopened(damage: &Damage<'_>) -> Result<Opened, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let (store, opened) = Store::open(directory.path(), "log").expect("opens");
        assert!(opened.fresh);
        for (start, end) in [(128, 300), (300, 400)] {
            let pair = |number: u32| (format!("b{number:09}").into_bytes(), b"something".repeat(20));
            let leaf = Leaf::of((0..2000).map(pair).collect());
            let tip = Tip { block: 200, chain: [7; 32] };
            let source = Source::Leaf(Arc::new(leaf));
            let layer = Layer { segment: 1, generation: 0, start, end, first_seq: 1, last_seq: 9, tip, source };
            store.keep(&layer).expect("kept");
        }
        damage(&store.db, &store.tree().expect("there"));
        store.flush().expect("flushed");
        drop(store);
        Store::open(directory.path(), "log").map(|(_, opened)| opened)
    }

    #[test]
    fn layers_that_went_missing_or_changed_are_noticed() {
        let whole = reopened(&|db, _| drop(db.insert(checkpoint_key("archive"), &[0; 8]).expect("it can be put")));
        let layers = whole.map(|opened| opened.layers).expect("whole");
        assert_eq!(layers.iter().map(|layer| (layer.start, layer.end)).collect::<Vec<_>>(), [(128, 300), (300, 400)]);
        let place = |start: u64| (1u64 << 32 | start).to_be_bytes();
        let first = [&place(128)[..], &[0; 4]].concat();
        let damages: [&Damage<'_>; 4] = [
            &|_, tree| drop(tree.remove(&first).expect("removed")),
            &|_, tree| drop(tree.insert(&first, b"2").expect("changed")),
            &|_, tree| drop(tree.insert([&first[..], b"x"].concat(), b"three").expect("added")),
            &|db, _| drop(db.remove(HEAD_KEY).expect("removed")),
        ];
        for (number, damage) in damages.iter().enumerate() {
            let noticed = reopened(*damage).err().unwrap_or_else(|| panic!("the damage {number} is noticed"));
            assert!(noticed.starts_with("its entries") || noticed.ends_with("no head"), "{number}: {noticed}");
        }
        // As a crash leaves it: the description comes last.
        let cut = reopened(&|_, tree| drop(tree.remove(place(300)).expect("removed"))).expect("opens");
        assert_eq!(cut.layers.iter().map(|layer| layer.start).collect::<Vec<_>>(), [128]);
    }

    #[test]
    fn an_emptied_store_holds_nothing_but_checkpoints() {
        let directory = tempfile::tempdir().expect("a directory");
        let (store, _) = Store::open(directory.path(), "log").expect("opens");
        let leaf = Arc::new(Leaf::of(vec![(b"b1".to_vec(), b"one".to_vec())]));
        let source = Source::Leaf(leaf);
        let tip = Tip::default();
        let layer = Layer { segment: 1, generation: 0, start: 128, end: 300, first_seq: 1, last_seq: 9, tip, source };
        store.keep(&layer).expect("kept");
        store.set_checkpoint("archive", 7).expect("set");
        store.empty().expect("emptied");
        store.flush().expect("flushed");
        drop(store);
        let (store, opened) = Store::open(directory.path(), "log").expect("opens");
        assert_eq!((opened.layers.len(), opened.fresh, store.checkpoint("archive")), (0, false, Ok(Some(7))));
        drop(store);
        assert_eq!(Store::open(directory.path(), "other").err().as_deref(), Some(FOREIGN));
    }
}

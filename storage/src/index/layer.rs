//! One part of the log as the index knows it: a span of blocks of one segment, and its entries.
//!
//! Layers lie one behind the other, so what a session has in them is in order, and an id is looked up
//! by asking each layer that may know it.

use std::sync::Arc;

use crate::index::Failure;
use crate::index::chain::Chain;
use crate::index::leaf::{Entry, Leaf};
use crate::index::merge::{Entries, MEANINGLESS, Merged};
use crate::index::table::{Table, Tip, within};
use crate::index::wire::{Space, end_of, key, number_of};
use crate::log::Position;

#[derive(Clone)]
pub struct Layer {
    pub segment: u32,
    pub generation: u16,
    /// Offset of its first block in the segment, and behind its last one.
    pub start: u32,
    pub end: u32,
    pub first_seq: u64,
    pub last_seq: u64,
    pub tip: Tip,
    pub source: Source,
}

#[derive(Clone)]
pub enum Source {
    Leaf(Arc<Leaf>),
    Table(Arc<Table>),
}

pub type Found<'a> = Box<dyn Iterator<Item = Result<Entry, Failure>> + 'a>;

impl Layer {
    #[must_use]
    pub fn of_table(table: &Arc<Table>) -> Self {
        let origin = &table.origin;
        Self {
            segment: origin.segment,
            generation: origin.generation,
            start: origin.start,
            end: origin.end,
            first_seq: origin.first_seq,
            last_seq: origin.last_seq,
            tip: origin.tip,
            source: Source::Table(table.clone()),
        }
    }

    /// Its first block.
    #[must_use]
    pub fn place(&self) -> Position {
        Position { segment: self.segment, generation: self.generation, offset: self.start }
    }

    /// Whether anything may be known of `id`. False is certain, true is not.
    #[must_use]
    pub fn may_hold(&self, id: &[u8]) -> bool {
        match &self.source {
            Source::Leaf(_) => true,
            Source::Table(table) => table.may_hold(id),
        }
    }

    /// Whether entries that sum up others are there.
    #[must_use]
    pub fn is_table(&self) -> bool {
        self.table().is_some()
    }

    #[must_use]
    pub fn table(&self) -> Option<&Arc<Table>> {
        match &self.source {
            Source::Table(table) => Some(table),
            Source::Leaf(_) => None,
        }
    }

    pub fn get(&self, key: &[u8]) -> Result<Option<Entry>, Failure> {
        match &self.source {
            Source::Leaf(leaf) => {
                let at = leaf.seek(key);
                Ok((at < leaf.len() && leaf.key(at) == key).then(|| Entry::of(leaf, at)))
            }
            Source::Table(table) => table.get(key).map_err(|reason| self.fault(reason)),
        }
    }

    /// As [`Layer::get`], after a look at the filter.
    pub fn find(&self, key: &[u8]) -> Result<Option<Entry>, Failure> {
        if self.may_hold(key) { self.get(key) } else { Ok(None) }
    }

    /// Entries from `from` up to and without `to`.
    pub fn range<'a>(&'a self, from: &[u8], to: &[u8], backwards: bool) -> Found<'a> {
        match &self.source {
            Source::Leaf(leaf) => Box::new(within(leaf, from, to, backwards).map(Ok)),
            Source::Table(table) => {
                let entries = table.range(from, to, backwards, true);
                Box::new(entries.map(|entry| entry.map_err(|reason| self.fault(reason))))
            }
        }
    }

    /// Entries of everything but what a table sums up, for being written anew.
    #[must_use]
    pub fn all(&self) -> Entries<'_> {
        let (from, to) = ([0], [Space::Owner as u8]);
        match &self.source {
            Source::Leaf(leaf) => Box::new(within(leaf, &from, &to, false).map(Ok)),
            Source::Table(table) => table.range(&from, &to, false, false),
        }
    }

    /// Reads all of it.
    pub fn check(&self) -> Result<(), Failure> {
        self.all().find_map(Result::err).map_or(Ok(()), |reason| Err(self.fault(reason)))
    }

    #[must_use]
    pub fn fault(&self, reason: String) -> Failure {
        match &self.source {
            Source::Leaf(_) => Failure::Index(reason),
            Source::Table(table) => Failure::Table(table.clone(), reason),
        }
    }

    /// For `map_err`: an entry of this layer means nothing.
    pub fn meaningless<E>(&self) -> impl Fn(E) -> Failure + '_ {
        |_| self.fault(MEANINGLESS.to_owned())
    }

    /// Adds what this layer knows of a request or download.
    pub fn extend_chain(&self, prefix: &[u8], chain: &mut Chain) -> Result<(), Failure> {
        if !self.may_hold(prefix) {
            return Ok(());
        }
        for entry in self.range(prefix, &end_of(prefix), false) {
            let entry = entry?;
            let first_seq = number_of(entry.key()).map_err(self.meaningless())?;
            chain.extend(self.place(), first_seq, entry.value()).map_err(self.meaningless())?;
        }
        Ok(())
    }
}

/// The events of one request or download in all of `layers`; an empty chain when there are none.
pub fn chain(layers: &[Layer], space: Space, session: &str, id: &str) -> Result<Chain, Failure> {
    let prefix = key(space, &[session, id], None);
    let mut chain = Chain::default();
    for layer in layers {
        layer.extend_chain(&prefix, &mut chain)?;
    }
    Ok(chain)
}

/// Whether `later` begins where `layer` ends.
pub fn adjoin(layer: &Layer, later: &Layer) -> bool {
    (layer.segment, layer.generation, layer.end) == (later.segment, later.generation, later.start)
}

/// The span of layers that adjoin each other, with nothing in it.
pub fn span(layers: &[Layer]) -> Result<Layer, String> {
    let (Some(first), Some(last)) = (layers.first(), layers.last()) else { return Err("there are no layers".into()) };
    if layers.windows(2).any(|pair| !adjoin(&pair[0], &pair[1])) {
        return Err("there is a hole between the layers".into());
    }
    let source = Source::Leaf(Arc::default());
    Ok(Layer { end: last.end, last_seq: last.last_seq, tip: last.tip, source, ..first.clone() })
}

/// Layers that adjoin each other as one, in memory.
pub fn united(layers: &[Layer]) -> Result<Layer, String> {
    let leaf = merged(layers)?.into_leaf()?;
    Ok(Layer { source: Source::Leaf(Arc::new(leaf)), ..span(layers)? })
}

/// Everything in `layers`, joined and in order.
pub fn merged(layers: &[Layer]) -> Result<Merged<'_>, String> {
    Merged::of(layers.iter().map(Layer::all))
}

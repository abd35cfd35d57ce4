//! The blocks that layers name, loaded from the log.

use std::collections::VecDeque;
use std::rc::Rc;

use crate::StorageError;
use crate::index::layer::Layer;
use crate::index::view::View;
use crate::index::wire::{Space, key};
use crate::index::{BlockEntry, Failure};
use crate::log::{Block, Position};

/// What one question remembers of the blocks it loaded, in bytes of events: a page often comes back
/// to those it began with.
const LOADED_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Blocks loaded lately, the latest last.
#[derive(Default)]
pub struct Loaded {
    blocks: VecDeque<(Position, Rc<Block>)>,
    bytes: usize,
}

impl Loaded {
    fn get(&self, position: Position) -> Option<Rc<Block>> {
        let found = self.blocks.iter().rev().find(|(known, _)| *known == position);
        found.map(|(_, block)| block.clone())
    }

    fn put(&mut self, position: Position, block: &Rc<Block>) {
        self.bytes += block.header.raw_bytes as usize;
        self.blocks.push_back((position, block.clone()));
        while self.bytes > LOADED_BYTES_MAX
            && let Some((_, oldest)) = self.blocks.pop_front()
        {
            self.bytes -= oldest.header.raw_bytes as usize;
        }
    }
}

impl View {
    /// The block at a place that a layer named, checked and decompressed.
    pub fn load(&self, position: Position) -> Result<Rc<Block>, Failure> {
        if let Some(block) = self.loaded.borrow().get(position) {
            return Ok(block);
        }
        match self.reader.load(position) {
            Ok(block) => {
                let block = Rc::new(block);
                self.loaded.borrow_mut().put(position, &block);
                Ok(block)
            }
            Err(StorageError::Cursor { .. }) => {
                Err(self.fault_at(position, "an entry points behind the end of the log"))
            }
            Err(StorageError::Damaged { .. }) if self.is_no_block(position) => {
                Err(self.fault_at(position, "an entry points to where no block is"))
            }
            Err(error) => Err(Failure::Storage(error)),
        }
    }

    /// Whether the log, which can be read up to there, has no block there.
    fn is_no_block(&self, position: Position) -> bool {
        let Some(layer) = self.layer_of(position) else { return true };
        let Ok(walk) = self.reader.blocks(layer.place()) else { return false };
        for block in walk {
            match block {
                Ok(block) if block.position < position => {}
                Ok(block) => return block.position > position,
                Err(_) => return false,
            }
        }
        true
    }

    fn layer_of(&self, position: Position) -> Option<&Layer> {
        let holds = |layer: &&Layer| {
            (layer.segment, layer.generation) == (position.segment, position.generation)
                && (layer.start..layer.end).contains(&position.offset)
        };
        self.layers.iter().find(holds)
    }

    /// What a layer says of that place is wrong.
    pub fn fault_at(&self, position: Position, reason: &str) -> Failure {
        match self.layer_of(position) {
            Some(layer) => layer.fault(reason.to_owned()),
            None => Failure::Index(reason.to_owned()),
        }
    }

    /// The block of a session that holds `seq`, if any does.
    pub fn block_holding(&self, session: &str, seq: u64) -> Result<Option<BlockEntry>, Failure> {
        let next = self.layers.partition_point(|layer| layer.last_seq < seq);
        let Some(layer) = self.layers.get(next).filter(|layer| layer.first_seq <= seq) else { return Ok(None) };
        let prefix = key(Space::Block, &[session], None);
        if !layer.may_hold(&prefix) {
            return Ok(None);
        }
        let behind = key(Space::Block, &[session], Some(seq.saturating_add(1)));
        let Some(entry) = layer.range(&prefix, &behind, true).next().transpose()? else { return Ok(None) };
        let block = BlockEntry::decode(layer.place(), session, entry.key(), entry.value());
        Ok(Some(block.map_err(layer.meaningless())?).filter(|block| block.last_seq >= seq))
    }
}

//! The chain's own walk: every event and every run of removed ones after a number, in order.

use std::ops::ControlFlow;

use super::block::{Block, RemovedRun};
use super::chain;
use super::commit::{Item, in_order};
use super::reader::Reader;
use crate::StorageError;
use crate::event::EventView;

/// One step of the chain.
pub(crate) enum Link<'a> {
    Event(&'a EventView<'a>),
    Removed(RemovedRun),
}

impl Reader {
    /// The number before the oldest retained event, and the chain hash there.
    pub(crate) fn base(&self) -> (u64, [u8; 32]) {
        let oldest = self.set().oldest().map(|held| held.header);
        oldest.map_or((0, chain::start(self.log_id())), |header| (header.first_seq.saturating_sub(1), header.chain))
    }

    /// Visits what stands after `after_seq`, up to the durable end at this moment. A run of removed
    /// events that begins before is visited whole.
    ///
    /// # Errors
    /// When the log cannot be read or is damaged on the way; what was visited before is right.
    pub(crate) fn replay(
        &self,
        after_seq: u64,
        visit: &mut dyn FnMut(Link<'_>) -> ControlFlow<()>,
    ) -> Result<(), StorageError> {
        let mut commit: Vec<Block> = Vec::new();
        for block in self.blocks(self.position_before(after_seq.saturating_add(1))?)? {
            let block = block?;
            commit.push(self.load(block.position)?);
            if !block.header.end_of_commit {
                continue;
            }
            let items = in_order(&commit).map_err(|what| self.contradictory(&commit, what))?;
            for item in items {
                let link = match &item {
                    Item::Event(_, event) if event.seq > after_seq => Link::Event(event),
                    Item::Removed(run) if run.first_seq + run.count > after_seq + 1 => Link::Removed(*run),
                    _ => continue,
                };
                if visit(link).is_break() {
                    return Ok(());
                }
            }
            commit.clear();
        }
        Ok(())
    }
}

//! One event that outlives the block it was read from.

use crate::event::EventView;
use crate::event::codec::put_record;

/// An event's canonical record, copied out of its block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedEvent {
    bytes: Box<[u8]>,
}

impl OwnedEvent {
    #[must_use]
    pub fn of(view: &EventView<'_>) -> Self {
        let mut bytes = Vec::with_capacity(view.body.len() + 24);
        put_record(&mut bytes, view.seq, view.recorded_at_micros, view.body);
        Self { bytes: bytes.into() }
    }

    /// # Panics
    /// Never: the bytes were made from a decoded event.
    #[must_use]
    pub fn view(&self) -> EventView<'_> {
        EventView::split_from(&self.bytes).expect("the record was written by put_record").0
    }

    #[must_use]
    pub fn seq(&self) -> u64 {
        self.view().seq
    }

    /// The record as in `event::codec`, length first.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes
    }
}

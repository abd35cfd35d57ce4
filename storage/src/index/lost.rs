//! What retention took: announcements of removals, folded from `log.removed` events.

use crate::event::removed::{self, Portion, WHOLE_SEGMENT};
use crate::event::{EventView, Level, ValueRef};
use crate::index::wire::{Meaningless, Parts, Space, Taken, key};

/// One announcement: of one owner and session, for one generation of one segment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lost {
    pub segment: u32,
    /// The generation that no longer holds the events; `None` when the whole segment goes.
    pub generation: Option<u16>,
    pub portions: Vec<Portion>,
}

impl Lost {
    /// The announcement and its key. `None` for an erasure, which is to look as if what was erased
    /// had never been, and for what cannot be understood.
    #[must_use]
    pub fn of(owner: &str, session: &str, view: &EventView<'_>) -> Option<(Vec<u8>, Self)> {
        let number = |name: &str| view.get(name).and_then(ValueRef::as_u64);
        let text = |name: &str| view.get(name).and_then(ValueRef::as_str);
        if text("reason") == Some("erased") || text("subject").is_some() {
            return None;
        }
        let (segment, generation) = (u32::try_from(number("segment")?).ok()?, number("generation")?);
        let portions = removed::from_json(text("kinds")?)?;
        let place = u64::from(segment) << 32 | generation & 0xffff;
        let generation = (generation != WHOLE_SEGMENT).then(|| u16::try_from(generation)).transpose().ok()?;
        Some((key(Space::Lost, &[owner, session], Some(place)), Self { segment, generation, portions }))
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        out.number(u64::from(self.segment)).number(self.generation.map_or(WHOLE_SEGMENT, u64::from));
        for portion in &self.portions {
            out.number(u64::from(portion.kind)).number(portion.level.map_or(0, |level| level as u64 + 1));
            out.number(portion.count).number(portion.first_seq).number(portion.last_seq);
        }
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Meaningless> {
        let mut input = Taken(bytes);
        let (segment, generation) = (input.small()?, input.number()?);
        let generation = (generation != WHOLE_SEGMENT).then(|| u16::try_from(generation)).transpose();
        let mut lost = Self { segment, generation: generation.map_err(|_| Meaningless)?, portions: Vec::new() };
        while !input.is_empty() {
            let kind = input.small()?;
            let level = match input.number()? {
                0 => None,
                number => Some(Level::from_number(number - 1).ok_or(Meaningless)?),
            };
            let (count, first_seq, last_seq) = (input.number()?, input.number()?, input.number()?);
            lost.portions.push(Portion { kind, level, count, first_seq, last_seq });
        }
        Ok(lost)
    }
}

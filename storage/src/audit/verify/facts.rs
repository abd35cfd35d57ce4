//! Whether a block's header says what its events say: filters skip by it, so a false one hides events.

use crate::event::catalog::NUMBER_MAX;
use crate::event::codec::{ContextField, FIRST_FIELD};
use crate::event::{DecodeError, EventView, FieldKind, KINDS};
use crate::ids::SessionId;
use crate::log::{Block, page_bit};

pub(super) struct Describer {
    /// Number of the field that holds a kind's level, by kind number; 0 where it has none.
    level_fields: Vec<u32>,
}

/// What the events of a block say together.
#[derive(PartialEq, Eq)]
struct Told {
    count: u64,
    first_seq: u64,
    last_seq: u64,
    first_micros: i64,
    last_micros: i64,
    kinds: u128,
    levels: u8,
    pages: u64,
}

impl Describer {
    pub fn new() -> Self {
        let mut level_fields = vec![0; usize::from(NUMBER_MAX) + 1];
        for facts in KINDS {
            if let Some(position) = facts.fields.iter().position(|field| field.kind == FieldKind::Level) {
                level_fields[usize::from(facts.number)] = FIRST_FIELD + position as u32;
            }
        }
        Self { level_fields }
    }

    /// Visits the events of a block; says what its header gets wrong.
    pub fn check<'a>(
        &self,
        block: &'a Block,
        visit: &mut dyn FnMut(&EventView<'a>),
    ) -> Result<Option<&'static str>, DecodeError> {
        let header = &block.header;
        let session = header.session_id.as_ref().map(SessionId::as_str);
        let mut told = Told {
            count: 0,
            first_seq: u64::MAX,
            last_seq: 0,
            first_micros: i64::MAX,
            last_micros: i64::MIN,
            kinds: 0,
            levels: 0,
            pages: 0,
        };
        let (mut stranger, mut unordered) = (false, false);
        for event in block.events() {
            let event = event?;
            unordered |= told.count > 0 && event.seq <= told.last_seq;
            stranger |= self.tell(&event, &mut told) != session;
            visit(&event);
        }
        let said = Told {
            count: u64::from(header.count),
            first_seq: header.first_seq,
            last_seq: header.last_seq,
            first_micros: header.first_micros,
            last_micros: header.last_micros,
            kinds: header.kinds,
            levels: header.levels,
            pages: header.pages,
        };
        Ok(if unordered {
            Some("its events are out of order")
        } else if stranger {
            Some("it holds events of another session")
        } else if said != told {
            Some("its header says something else than its events")
        } else {
            None
        })
    }

    /// Adds one event; returns its session.
    fn tell<'a>(&self, event: &EventView<'a>, told: &mut Told) -> Option<&'a str> {
        told.count += 1;
        told.first_seq = told.first_seq.min(event.seq);
        told.last_seq = told.last_seq.max(event.seq);
        told.first_micros = told.first_micros.min(event.recorded_at_micros);
        told.last_micros = told.last_micros.max(event.recorded_at_micros);
        let number = usize::from(event.kind_number);
        told.kinds |= if number <= usize::from(NUMBER_MAX) { 1 << number } else { 1 };
        let mut fields = event.fields();
        let session = fields.advance_to(ContextField::SessionId as u32).and_then(|value| value.as_str());
        if let Some(page) = fields.advance_to(ContextField::PageId as u32).and_then(|value| value.as_str()) {
            told.pages |= page_bit(page);
        }
        let level_field = self.level_fields.get(number).copied().unwrap_or(0);
        if level_field != 0
            && let Some(level) = fields.advance_to(level_field).and_then(|value| value.as_u64())
        {
            told.levels |= 1u8.checked_shl(level as u32).unwrap_or(0);
        }
        session
    }
}

/// A block of removed events says nothing but their numbers.
pub(super) fn removed_block_is_bare(block: &Block) -> bool {
    let header = &block.header;
    let micros = (header.first_micros, header.last_micros);
    header.session_id.is_none() && (header.kinds, header.levels, header.pages) == (0, 0, 0) && micros == (0, 0)
}

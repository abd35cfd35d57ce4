//! Turns the drafts of one commit into blocks, one per session, and gives each event its number.
//!
//! What must stay true: numbers follow the order of the drafts, without a hole; the last block of the
//! commit, and no other, carries the end flag.

use std::collections::HashMap;

use super::block::{BlockHeader, FIXED_BYTES, page_bit, put_block};
use crate::event::catalog::NUMBER_MAX;
use crate::event::codec::{ContextField, FIRST_FIELD, put_record};
use crate::event::{Draft, EventView, FieldKind, KINDS};
use crate::ids::SessionId;
use crate::limits::BLOCK_BYTES_TARGET;

/// Shorter events are stored as they are: a zstd frame would hardly shrink them.
const COMPRESS_BYTES_MIN: usize = 512;
const COMPRESSION_LEVEL: i32 = 1;

pub(super) struct Encoder {
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Number of the field that holds a kind's level, by kind number; 0 where it has none.
    level_fields: [u32; NUMBER_MAX as usize + 1],
}

/// A block being filled.
struct Open {
    header: BlockHeader,
    raw: Vec<u8>,
}

impl Encoder {
    pub fn new() -> std::io::Result<Self> {
        let mut level_fields = [0; NUMBER_MAX as usize + 1];
        for facts in KINDS {
            if let Some(position) = facts.fields.iter().position(|field| field.kind == FieldKind::Level) {
                level_fields[usize::from(facts.number)] = FIRST_FIELD + position as u32;
            }
        }
        let compressor = zstd::bulk::Compressor::new(COMPRESSION_LEVEL)?;
        Ok(Self { compressor, packed: Vec::new(), level_fields })
    }

    /// Appends the blocks of `drafts` to `out`, numbered from `first_seq` and stamped `now_micros`;
    /// returns the number after the last.
    pub fn commit<'a>(
        &mut self,
        drafts: impl Iterator<Item = &'a Draft>,
        first_seq: u64,
        now_micros: i64,
        out: &mut Vec<u8>,
    ) -> u64 {
        let mut seq = first_seq;
        let mut full = Vec::new();
        let mut open: Vec<Open> = Vec::new();
        let mut places: HashMap<Option<&SessionId>, usize> = HashMap::new();
        for draft in drafts {
            let place = *places.entry(draft.session_id.as_ref()).or_insert_with(|| {
                open.push(Open::new(draft.session_id.clone(), seq, now_micros));
                open.len() - 1
            });
            let block = &mut open[place];
            if block.raw.len() >= BLOCK_BYTES_TARGET {
                full.push(std::mem::replace(block, Open::new(draft.session_id.clone(), seq, now_micros)));
            }
            let start = block.raw.len();
            put_record(&mut block.raw, seq, now_micros, &draft.body);
            block.header.count += 1;
            block.header.last_seq = seq;
            self.note(block, start);
            seq += 1;
        }
        full.append(&mut open);
        if let Some(last) = full.last_mut() {
            last.header.end_of_commit = true;
        }
        for mut block in full {
            block.header.raw_bytes = block.raw.len() as u32;
            self.put(out, &block);
        }
        seq
    }

    /// Adds to the header what filters skip by, looking only at the fields that say it.
    fn note(&self, block: &mut Open, start: usize) {
        let Ok((view, _)) = EventView::split_from(&block.raw[start..]) else { return };
        let mut fields = view.fields();
        if let Some(page_id) = fields.advance_to(ContextField::PageId as u32).and_then(|value| value.as_str()) {
            block.header.pages |= page_bit(page_id);
        }
        let number = usize::from(view.kind_number);
        block.header.kinds |= if number <= usize::from(NUMBER_MAX) { 1 << number } else { 1 };
        let level_field = self.level_fields.get(number).copied().unwrap_or(0);
        if level_field != 0
            && let Some(level) = fields.advance_to(level_field).and_then(|value| value.as_u64())
        {
            block.header.levels |= 1u8.checked_shl(level as u32).unwrap_or(0);
        }
    }

    fn put(&mut self, out: &mut Vec<u8>, block: &Open) {
        let raw = &block.raw;
        out.reserve(raw.len() + FIXED_BYTES);
        if raw.len() > COMPRESS_BYTES_MIN {
            self.packed.clear();
            self.packed.reserve(zstd::zstd_safe::compress_bound(raw.len()));
            let pays = |size: usize| size <= raw.len() - raw.len() / 8;
            if self.compressor.compress_to_buffer(raw, &mut self.packed).is_ok_and(pays) {
                return put_block(out, &block.header, raw, Some(&self.packed));
            }
        }
        put_block(out, &block.header, raw, None);
    }
}

impl Open {
    fn new(session_id: Option<SessionId>, first_seq: u64, now_micros: i64) -> Self {
        let header = BlockHeader {
            session_id,
            first_seq,
            last_seq: first_seq,
            count: 0,
            first_micros: now_micros,
            last_micros: now_micros,
            kinds: 0,
            levels: 0,
            pages: 0,
            raw_bytes: 0,
            end_of_commit: false,
        };
        Self { header, raw: Vec::new() }
    }
}

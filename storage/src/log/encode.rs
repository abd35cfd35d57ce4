//! Turns the events of one commit into blocks, one per session.
//!
//! What must stay true: events are added in order of their numbers, without a hole between what is
//! added and what is told of as removed; the last block of the commit, and no other, carries the end
//! flag and the chain hash. The writer and the rewriter both make their blocks here.

use std::collections::HashMap;

use super::block::{BlockHeader, FIXED_BYTES, RemovedRun, page_bit, put_block, put_runs};
use crate::event::catalog::NUMBER_MAX;
use crate::event::codec::{ContextField, FIRST_FIELD, put_record};
use crate::event::{EventView, FieldKind, KINDS};
use crate::ids::SessionId;
use crate::limits::BLOCK_BYTES_TARGET;

/// Shorter events are stored as they are: a zstd frame would hardly shrink them.
const COMPRESS_BYTES_MIN: usize = 512;
/// Compression of what somebody waits for.
pub(super) const LEVEL_LIVE: i32 = 1;
/// What one run of removed events takes at most: two long varints and a hash.
const RUN_BYTES_MAX: usize = 2 * 10 + 32;

pub(super) struct Encoder {
    compressor: zstd::bulk::Compressor<'static>,
    packed: Vec<u8>,
    /// Number of the field that holds a kind's level, by kind number; 0 where it has none.
    level_fields: [u32; NUMBER_MAX as usize + 1],
    full: Vec<Open>,
    open: Vec<Open>,
    places: HashMap<Option<SessionId>, usize>,
    /// Place of the block that took the last event.
    last: usize,
    runs: Vec<RemovedRun>,
    raw_bytes: usize,
}

/// A block being filled.
struct Open {
    header: BlockHeader,
    raw: Vec<u8>,
}

impl Encoder {
    pub fn new(compression_level: i32) -> std::io::Result<Self> {
        let mut level_fields = [0; NUMBER_MAX as usize + 1];
        for facts in KINDS {
            if let Some(position) = facts.fields.iter().position(|field| field.kind == FieldKind::Level) {
                level_fields[usize::from(facts.number)] = FIRST_FIELD + position as u32;
            }
        }
        Ok(Self {
            compressor: zstd::bulk::Compressor::new(compression_level)?,
            packed: Vec::new(),
            level_fields,
            full: Vec::new(),
            open: Vec::new(),
            places: HashMap::new(),
            last: 0,
            runs: Vec::new(),
            raw_bytes: 0,
        })
    }

    /// Takes the next event; gives its canonical record.
    pub fn add(&mut self, session_id: Option<&SessionId>, seq: u64, micros: i64, body: &[u8]) -> &[u8] {
        let place = self.place(session_id, seq, micros);
        let block = &mut self.open[place];
        let start = block.raw.len();
        put_record(&mut block.raw, seq, micros, body);
        self.note(place, start, seq, micros);
        &self.open[place].raw[start..]
    }

    /// Takes the next event as it was stored before.
    pub fn add_stored(&mut self, session_id: Option<&SessionId>, event: &EventView<'_>) {
        let place = self.place(session_id, event.seq, event.recorded_at_micros);
        let block = &mut self.open[place];
        let start = block.raw.len();
        block.raw.extend_from_slice(event.record);
        self.note(place, start, event.seq, event.recorded_at_micros);
    }

    /// Tells of events removed next.
    pub fn add_removed(&mut self, run: &RemovedRun) {
        match self.runs.last_mut() {
            Some(last) if last.first_seq + last.count == run.first_seq => {
                last.count += run.count;
                last.chain = run.chain;
            }
            _ => self.runs.push(*run),
        }
    }

    /// Bytes of the events added since the last commit ended, before compression.
    pub fn raw_bytes(&self) -> usize {
        self.raw_bytes
    }

    /// Bytes that tell of the events removed since the last commit ended.
    pub fn removed_bytes(&self) -> usize {
        self.runs.len() * RUN_BYTES_MAX
    }

    /// Ends the commit: appends its blocks to `out`. `chain` is the hash after its last event.
    pub fn end_commit(&mut self, chain: [u8; 32], out: &mut Vec<u8>) {
        let mut blocks = std::mem::take(&mut self.full);
        if !self.runs.is_empty() {
            blocks.push(removed_block(&self.runs));
            self.runs.clear();
        }
        blocks.append(&mut self.open);
        self.places.clear();
        (self.last, self.raw_bytes) = (0, 0);
        if let Some(last) = blocks.last_mut() {
            last.header.end_of_commit = true;
            last.header.chain = chain;
        }
        for mut block in blocks {
            block.header.raw_bytes = block.raw.len() as u32;
            self.put(out, &block);
        }
    }

    /// The block that takes the next event of a session.
    fn place(&mut self, session_id: Option<&SessionId>, seq: u64, micros: i64) -> usize {
        let same = |block: &Open| block.header.session_id.as_ref() == session_id;
        if !self.open.get(self.last).is_some_and(same) {
            self.last = *self.places.entry(session_id.cloned()).or_insert(self.open.len());
        }
        match self.open.get_mut(self.last) {
            None => self.open.push(Open::new(session_id.cloned(), seq, micros)),
            Some(block) if block.raw.len() >= BLOCK_BYTES_TARGET => {
                self.full.push(std::mem::replace(block, Open::new(session_id.cloned(), seq, micros)));
            }
            Some(_) => {}
        }
        self.last
    }

    /// Adds to the header what filters skip by, looking only at the fields that say it.
    fn note(&mut self, place: usize, start: usize, seq: u64, micros: i64) {
        let Open { header, raw } = &mut self.open[place];
        self.raw_bytes += raw.len() - start;
        header.count += 1;
        header.last_seq = seq;
        header.first_micros = header.first_micros.min(micros);
        header.last_micros = header.last_micros.max(micros);
        let Ok((view, _)) = EventView::split_from(&raw[start..]) else { return };
        let mut fields = view.fields();
        if let Some(page_id) = fields.advance_to(ContextField::PageId as u32).and_then(|value| value.as_str()) {
            header.pages |= page_bit(page_id);
        }
        let number = usize::from(view.kind_number);
        header.kinds |= if number <= usize::from(NUMBER_MAX) { 1 << number } else { 1 };
        let level_field = self.level_fields.get(number).copied().unwrap_or(0);
        if level_field != 0
            && let Some(level) = fields.advance_to(level_field).and_then(|value| value.as_u64())
        {
            header.levels |= 1u8.checked_shl(level as u32).unwrap_or(0);
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
    fn new(session_id: Option<SessionId>, first_seq: u64, micros: i64) -> Self {
        let header = BlockHeader {
            session_id,
            first_seq,
            last_seq: first_seq,
            count: 0,
            first_micros: micros,
            last_micros: micros,
            kinds: 0,
            levels: 0,
            pages: 0,
            raw_bytes: 0,
            end_of_commit: false,
            removed: false,
            chain: [0; 32],
        };
        Self { header, raw: Vec::new() }
    }
}

/// It says nothing about the events but their numbers.
fn removed_block(runs: &[RemovedRun]) -> Open {
    let first_seq = runs.first().map_or(0, |run| run.first_seq);
    let mut block = Open::new(None, first_seq, 0);
    block.header.removed = true;
    block.header.last_seq = runs.last().map_or(first_seq, |run| run.first_seq + run.count - 1);
    // A segment is too short for more events than a u32 can count.
    block.header.count = runs.iter().map(|run| run.count).sum::<u64>() as u32;
    put_runs(&mut block.raw, runs);
    block
}

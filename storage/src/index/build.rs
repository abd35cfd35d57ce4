//! From spans of the log to layers, and from layers to tables.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use crate::StorageError;
use crate::ids::SessionId;
use crate::index::Failure;
use crate::index::entry::StretchFacts;
use crate::index::fold::{Earlier, Fold};
use crate::index::layer::{self, Layer, Source};
use crate::index::merge::MEANINGLESS;
use crate::index::rows::SessionRow;
use crate::index::shelf::{Hole, Shelf};
use crate::index::table::{Origin, TableWriter};
use crate::index::wire::{Meaningless, Space, key, texts_of};
use crate::log::{Position, Reader, SegmentFacts};

/// A fold is ended once it takes this much memory, in bytes; tests see it often.
pub const FOLD_BYTES_MAX: usize = if cfg!(test) { 32 * 1024 } else { 8 * 1024 * 1024 };

/// Blocks of one generation of a segment that are to be folded.
pub struct Job<'a> {
    pub reader: &'a Reader,
    pub facts: &'a SegmentFacts,
    pub hole: Hole,
    /// Leaves out what is not of this session.
    pub only: Option<&'a SessionId>,
}

/// A part of a job that was folded.
pub struct Piece {
    pub fold: Fold,
    layer: Layer,
}

impl Piece {
    #[must_use]
    pub fn first_seq(&self) -> u64 {
        self.layer.first_seq
    }

    /// As a layer in memory.
    pub fn into_layer(self, earlier: Earlier<'_>) -> Result<Layer, Failure> {
        let source = Source::Leaf(Arc::new(self.fold.finish(earlier)?));
        Ok(Layer { source, ..self.layer })
    }
}

impl Job<'_> {
    /// Folds it piece by piece; `take` says no to end early.
    pub fn run(&self, take: &mut dyn FnMut(Piece) -> Result<bool, Failure>) -> Result<(), Failure> {
        let (mut at, mut next_seq) = (self.hole.start, self.hole.first_seq);
        let mut fold = Fold::default();
        let (mut start, mut first_seq, mut last_seq) = (at, next_seq, next_seq.saturating_sub(1));
        let mut blocks = self.reader.blocks(Position { offset: at, ..self.facts.start })?;
        // The walk is not asked for what lies behind: that may be another segment.
        while at < self.hole.end {
            let block = match blocks.next() {
                Some(Ok(block)) if block.position.segment == self.facts.number => block,
                Some(Err(StorageError::Damaged { what, last_seq, .. })) => {
                    // Whoever comes to these numbers is told; what lies before and behind stays readable.
                    tracing::warn!(first_seq = next_seq, what, "a part of the log cannot be indexed");
                    let last_seq = self.facts.last_seq.unwrap_or(last_seq).max(next_seq);
                    fold.damage(next_seq, last_seq, &what);
                    return take(self.piece(fold, start..self.hole.end, first_seq, last_seq)).map(|_| ());
                }
                Some(Err(error)) => return Err(Failure::Storage(error)),
                Some(Ok(_)) | None => break,
            };
            at = block.next.offset;
            last_seq = last_seq.max(block.header.last_seq);
            if self.only.is_none() || block.header.session_id.as_ref() == self.only {
                fold.block(self.reader, &block)?;
            }
            if block.header.end_of_commit {
                next_seq = last_seq + 1;
                if fold.bytes >= FOLD_BYTES_MAX && at < self.hole.end {
                    if !take(self.piece(std::mem::take(&mut fold), start..at, first_seq, last_seq))? {
                        return Ok(());
                    }
                    (start, first_seq) = (at, next_seq);
                }
            }
        }
        if last_seq >= first_seq {
            take(self.piece(fold, start..at, first_seq, last_seq))?;
        }
        Ok(())
    }

    fn piece(&self, fold: Fold, span: Range<u32>, first_seq: u64, last_seq: u64) -> Piece {
        let layer = Layer {
            segment: self.facts.number,
            generation: self.facts.generation,
            start: span.start,
            end: span.end,
            first_seq,
            last_seq,
            tip: fold.tip,
            source: Source::Leaf(Arc::default()),
        };
        Piece { fold, layer }
    }
}

/// Layers in memory for what nothing is known of yet.
pub fn in_memory(job: &Job<'_>, earlier: Earlier<'_>) -> Result<Vec<Layer>, Failure> {
    let mut layers = Vec::new();
    job.run(&mut |piece| {
        layers.push(piece.into_layer(earlier)?);
        Ok(true)
    })?;
    Ok(layers)
}

/// Writes layers that adjoin each other as one table and puts it on the shelf in their place.
pub fn write(shelf: &Shelf, facts: &SegmentFacts, layers: &[Layer]) -> Result<(), String> {
    let span = layer::span(layers)?;
    let whole = facts.last_seq.is_some() && span.start == facts.start.offset && u64::from(span.end) == facts.end;
    let origin = shelf.origin(facts, &span);
    let path = shelf.path(&origin, whole);
    write_table(&path, &origin, layers)?;
    shelf.take_in(&path)
}

fn write_table(path: &std::path::Path, origin: &Origin, layers: &[Layer]) -> Result<(), String> {
    let said = |error: std::io::Error| error.to_string();
    let mut writer = TableWriter::create(path).map_err(said)?;
    let (mut merged, mut sums) = (layer::merged(layers)?, Sums::default());
    while let Some(joined) = merged.next_entry()? {
        let (key, value) = (joined.key(), joined.value());
        if Space::of(key).is_none_or(|space| space >= Space::Owner) {
            continue;
        }
        sums.note(key, value).map_err(|_| MEANINGLESS.to_owned())?;
        writer.push(key, value).map_err(said)?;
    }
    for (key, row) in &sums.owners {
        writer.push(key, &row.encode()).map_err(said)?;
    }
    for (key, facts) in &sums.spans {
        writer.push(key, &facts.encode()).map_err(said)?;
    }
    if let Some(facts) = &sums.whole {
        writer.push(&key(Space::Whole, &[], None), &facts.encode()).map_err(said)?;
    }
    writer.finish(origin).map_err(said)
}

/// What a table says over and above its layers, by key.
#[derive(Default)]
struct Sums {
    owners: BTreeMap<Vec<u8>, SessionRow>,
    spans: BTreeMap<Vec<u8>, StretchFacts>,
    whole: Option<StretchFacts>,
}

impl Sums {
    fn note(&mut self, from: &[u8], value: &[u8]) -> Result<(), Meaningless> {
        match Space::of(from) {
            Some(Space::Session) => {
                let row = SessionRow::decode(value)?;
                let owner = row.owner.as_str();
                let sum = self.owners.entry(key(Space::Owner, &[owner], None));
                sum.or_insert_with(|| SessionRow::new(owner, "", row.first_seq, row.first_micros)).add(&row);
            }
            Some(Space::Stretch) => {
                let facts = StretchFacts::decode(value)?;
                let session = texts_of(from).next().ok_or(Meaningless)?;
                self.spans.entry(key(Space::Span, &[session], None)).or_insert(facts).unite(&facts);
                self.whole.get_or_insert(facts).unite(&facts);
            }
            _ => {}
        }
        Ok(())
    }
}

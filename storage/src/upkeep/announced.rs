//! A note of the removal that is about to be announced, so that one that was announced and then not
//! done is known to the next run.
//!
//! Order: the note, the announcement in the log, the removal, the note goes. Found at start, the note
//! says where to look: what was announced and not done is taken back by an announcement of nothing
//! (see `event/removed.rs`), except that a whole segment which was announced to go does go.

use std::fs::File;
use std::io::Write;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tokio::runtime::Runtime;

use crate::StorageError;
use crate::directory;
use crate::event::catalog::LogRemoved;
use crate::event::codec::ContextField;
use crate::event::removed::{WHOLE_SEGMENT, to_json};
use crate::event::{Context, Draft, EventView, Kind, Payload};
use crate::ids::{Owner, SessionId};
use crate::limits::COMMIT_WINDOW_BYTES;
use crate::log::Log;

/// The place of the note.
pub struct Announced {
    path: PathBuf,
}

/// A removal on its way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Note {
    segment: u32,
    generation: u64,
    /// The announcement has a higher number than this.
    after_seq: u64,
}

/// A removal that was announced and perhaps not done.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pending {
    pub segment: u32,
    pub generation: u64,
    /// Everything announced behind this event belongs to it.
    pub after_seq: u64,
}

/// What the note in upkeep's directory says.
pub(crate) fn pending(directory: &Path) -> Option<Pending> {
    let text = std::fs::read_to_string(Announced::within(directory).path).ok()?;
    let Note { segment, generation, after_seq } = Note::parse(&text)?;
    Some(Pending { segment, generation, after_seq })
}

impl Announced {
    pub fn within(directory: &Path) -> Self {
        Self { path: directory.join("announced") }
    }

    /// Puts the announcements of a removal on record.
    pub fn announce(
        &self,
        log: &Log,
        runtime: &Runtime,
        segment: u32,
        generation: u64,
        drafts: Vec<Draft>,
    ) -> Result<(), StorageError> {
        if drafts.is_empty() {
            return Ok(());
        }
        let after_seq = log.reader().durable()?.last_seq;
        self.write(&Note { segment, generation, after_seq })?;
        commit(log, runtime, drafts)
    }

    /// The removal was done.
    pub fn done(&self) -> Result<(), StorageError> {
        match std::fs::remove_file(&self.path) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                Err(StorageError::io("remove", &self.path)(error))
            }
            // Should the name come back after a power cut, it tells of something that is done.
            _ => Ok(()),
        }
    }

    /// Settles what was announced and perhaps not done.
    pub fn settle(&self, log: &Log, runtime: &Runtime) -> Result<(), StorageError> {
        let Some(note) = self.read()? else { return Ok(()) };
        let segments = log.reader().segments()?;
        let there = segments.iter().find(|facts| facts.number == note.segment);
        if let Some(facts) = there.filter(|facts| u64::from(facts.generation) < note.generation) {
            let announced = note.find(log)?;
            if note.generation == WHOLE_SEGMENT && !announced.is_empty() {
                runtime.block_on(log.drop_before(facts.number + 1))?;
            } else if !announced.is_empty() {
                tracing::warn!(segment = note.segment, "a removal that was announced was not done; it is taken back");
                commit(log, runtime, announced)?;
            }
        }
        self.done()
    }

    /// Durable before anything is announced.
    fn write(&self, note: &Note) -> Result<(), StorageError> {
        let text = json!({"segment": note.segment, "generation": note.generation, "after_seq": note.after_seq});
        let unfinished = self.path.with_extension("new");
        let written = File::create(&unfinished).and_then(|mut file| {
            file.write_all(text.to_string().as_bytes())?;
            file.sync_all()
        });
        written.map_err(StorageError::io("write", &unfinished))?;
        std::fs::rename(&unfinished, &self.path).map_err(StorageError::io("rename", &unfinished))?;
        directory::sync(self.path.parent().unwrap_or(Path::new(".")))
    }

    fn read(&self) -> Result<Option<Note>, StorageError> {
        let text = match std::fs::read_to_string(&self.path) {
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(StorageError::io("read", &self.path))?,
        };
        let note = Note::parse(&text);
        if note.is_none() {
            // It was written whole before it got its name, so this is damage. Verifying the log finds an
            // announcement that was not done.
            tracing::warn!(path = %self.path.display(), "a note that cannot be read is removed");
            self.done()?;
        }
        Ok(note)
    }
}

impl Note {
    fn parse(text: &str) -> Option<Self> {
        let value: Value = serde_json::from_str(text).ok()?;
        let number = |key: &str| value.get(key)?.as_u64();
        let segment = u32::try_from(number("segment")?).ok()?;
        Some(Self { segment, generation: number("generation")?, after_seq: number("after_seq")? })
    }

    /// Everything announced since the note was written, taken back: one removal is on its way at a time.
    fn find(&self, log: &Log) -> Result<Vec<Draft>, StorageError> {
        let mut found = Vec::new();
        let wanted = 1u128 << Kind::LogRemoved.number();
        log.reader().scan(self.after_seq + 1, &|header| header.kinds & wanted != 0, &mut |view| {
            if let Ok(removed) = LogRemoved::take(view) {
                found.push(Draft::new(&context(view), &LogRemoved { count: 0, kinds: to_json(&[]), ..removed }));
            }
            ControlFlow::Continue(())
        })?;
        Ok(found)
    }
}

fn context(view: &EventView<'_>) -> Context {
    Context {
        session_id: view.context(ContextField::SessionId).map(SessionId::from),
        owner: view.context(ContextField::Owner).map(Owner::from),
        ..Context::default()
    }
}

/// Commits a few at a time: a segment may hold events of very many sessions. On stable storage when
/// this returns, whatever the log promises others.
fn commit(log: &Log, runtime: &Runtime, drafts: Vec<Draft>) -> Result<(), StorageError> {
    let (mut batch, mut bytes) = (Vec::new(), 0);
    for draft in drafts {
        bytes += draft.body.len();
        batch.push(draft);
        if bytes >= COMMIT_WINDOW_BYTES {
            runtime.block_on(log.commit(std::mem::take(&mut batch)))?;
            bytes = 0;
        }
    }
    if !batch.is_empty() {
        runtime.block_on(log.commit(batch))?;
    }
    runtime.block_on(log.sync())
}

//! Promises of the log, one module each, through its public face and the faulty storage beneath it.

mod chain;
mod closing;
mod crash;
mod cuts;
mod damage;
mod drop;
mod durability;
mod faults;
pub(crate) mod faulty_io;
mod forged_world;
mod forger;
mod forgeries;
mod forked;
mod formats;
mod full;
mod model;
mod recording;
pub(crate) mod rewrite;
mod rewrite_faults;
mod rewrite_readers;
mod sharing;
mod simulated_disk;

use std::ops::ControlFlow;
use std::path::Path;
use std::sync::Arc;

use super::{Log, LogOptions, Reader};
use crate::StorageError;
use crate::event::catalog::{ConsoleMessage, LogRecovered};
use crate::event::{Clean, Context, Draft, Level, Payload, Symbol};
use crate::ids::{Owner, PageId, SessionId};

/// A console message of `session` on its page, saying `text`.
fn message(session: Option<&str>, text: &str) -> Draft {
    let context = Context {
        session_id: session.map(SessionId::from),
        owner: Some(Owner::from("local")),
        page_id: session.map(|session| PageId::from(format!("t-{session}"))),
        ..Context::default()
    };
    let level = if text.contains("bad") { Level::Error } else { Level::Info };
    let payload = ConsoleMessage {
        level,
        r#type: Symbol::fold("log"),
        text: Clean::redacted(text),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    };
    Draft::new(&context, &payload)
}

/// Small segments keep copies and scans short.
fn options(directory: &Path) -> LogOptions {
    LogOptions { segment_bytes: 32 * 1024, ..LogOptions::new(directory.join("log")) }
}

/// A log whose files fail as `io` says.
pub(crate) fn open_on(options: LogOptions, io: Arc<faulty_io::FaultyIo>) -> Result<Log, StorageError> {
    Log::open_with(options, io)
}

fn open(directory: &Path) -> Log {
    Log::open(options(directory)).expect("the log opens")
}

/// All events from `from` on, as number and text; an event without text appears as its kind.
fn read_from(reader: &Reader, from: u64) -> Result<Vec<(u64, String)>, StorageError> {
    let mut found = Vec::new();
    reader.scan(from, &|_| true, &mut |event| {
        let text = ConsoleMessage::take(event).map(|message| message.text.as_str().to_owned());
        let kind = event.kind().map_or("unknown", |kind| kind.name());
        found.push((event.seq, text.unwrap_or_else(|_| kind.to_owned())));
        ControlFlow::Continue(())
    })?;
    Ok(found)
}

fn read_all(reader: &Reader) -> Vec<(u64, String)> {
    read_from(reader, 0).expect("the log is whole")
}

/// What openings put on record as mended, oldest first.
fn recoveries(reader: &Reader) -> Vec<LogRecovered> {
    let mut found = Vec::new();
    let mut visit = |event: &crate::event::EventView<'_>| {
        found.extend(LogRecovered::take(event).ok());
        ControlFlow::Continue(())
    };
    reader.scan(0, &|_| true, &mut visit).expect("the log is whole");
    found
}

/// Numbers run from 1 without a hole.
fn assert_gap_free(events: &[(u64, String)]) {
    for (position, (seq, text)) in events.iter().enumerate() {
        assert_eq!(*seq, position as u64 + 1, "at {text}");
    }
}

fn texts(events: &[(u64, String)]) -> Vec<&str> {
    events.iter().map(|(_, text)| text.as_str()).collect()
}

pub(crate) fn copy_directory(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).expect("it can be made");
    for entry in std::fs::read_dir(from).expect("it can be read") {
        let entry = entry.expect("it can be read");
        std::fs::copy(entry.path(), to.join(entry.file_name())).expect("it can be copied");
    }
}

/// In memory where there is such a place: what a sync means is tested by the faulty storage, and
/// thousands of real ones would only take time.
fn temporary() -> tempfile::TempDir {
    let in_memory = tempfile::tempdir_in("/dev/shm");
    in_memory.or_else(|_| tempfile::tempdir()).expect("a temporary directory can be made")
}

/// A small, repeatable source of choices.
#[derive(Clone)]
pub(crate) struct Dice(pub u64);

impl Dice {
    /// From any seed at all, neighbours included.
    fn of(seed: u64) -> Self {
        let mut mixed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        Self((mixed ^ (mixed >> 31)).max(1))
    }

    fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % bound
    }
}

//! Somebody who may write every file and knows every format, but has no private key: takes a log apart
//! into events, changes them, and writes everything anew with all checksums right, and with the hash
//! chain recomputed when asked to.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::block::{Found, RemovedRun, read_header};
use super::super::chain;
use super::super::commit::{CommitWalk, Item, Walked, in_order};
use super::super::encode::Encoder;
use super::super::format::{SEGMENT_HEADER_BYTES, SegmentHeader, segment_name, segment_number};
use super::super::mark::{self, Mark};
use super::super::storage_io::{StorageFile, StorageIo, SystemIo};
use super::Dice;
use crate::event::EventView;
use crate::event::codec::put_record;
use crate::ids::SessionId;

/// The files of a data directory, by their path in it.
pub type Files = BTreeMap<PathBuf, Vec<u8>>;

pub fn read_files(data: &Path) -> Files {
    let mut files = Files::new();
    for part in ["log", "audit"] {
        for entry in std::fs::read_dir(data.join(part)).expect("it can be read") {
            let entry = entry.expect("it can be read");
            files.insert(Path::new(part).join(entry.file_name()), std::fs::read(entry.path()).expect("it can be read"));
        }
    }
    files
}

pub fn write_files(files: &Files, data: &Path) {
    for part in ["log", "audit"] {
        let _ = std::fs::remove_dir_all(data.join(part));
        std::fs::create_dir_all(data.join(part)).expect("it can be made");
    }
    for (path, bytes) in files {
        std::fs::write(data.join(path), bytes).expect("it can be written");
    }
}

#[derive(Debug, Clone)]
pub enum Entry {
    Event { session: Option<SessionId>, seq: u64, micros: i64, body: Vec<u8> },
    Removed(RemovedRun),
}

impl Entry {
    pub fn seq(&self) -> u64 {
        match self {
            Entry::Event { seq, .. } => *seq,
            Entry::Removed(run) => run.first_seq,
        }
    }

    fn move_by(&mut self, by: i64) {
        match self {
            Entry::Event { seq, .. } => *seq = seq.wrapping_add_signed(by),
            Entry::Removed(run) => run.first_seq = run.first_seq.wrapping_add_signed(by),
        }
    }

    fn last_seq(&self) -> u64 {
        match self {
            Entry::Event { seq, .. } => *seq,
            Entry::Removed(run) => run.first_seq + run.count - 1,
        }
    }

    /// The canonical bytes; none of removed events.
    pub fn record(&self) -> Vec<u8> {
        let mut record = Vec::new();
        if let Entry::Event { seq, micros, body, .. } = self {
            put_record(&mut record, *seq, *micros, body);
        }
        record
    }
}

#[derive(Debug, Clone)]
pub struct Commit {
    pub entries: Vec<Entry>,
    chain: [u8; 32],
}

#[derive(Debug, Clone)]
pub struct Segment {
    header: SegmentHeader,
    pub commits: Vec<Commit>,
}

/// A log taken apart.
#[derive(Debug, Clone)]
pub struct Forgery {
    pub segments: Vec<Segment>,
    mark: Mark,
}

impl Forgery {
    pub fn take_apart(data: &Path) -> Self {
        let directory = data.join("log");
        let mark_path = directory.join(mark::FILE_NAME);
        let mark_file = SystemIo.open_read_only(&mark_path).expect("there is a mark");
        let mark = Mark::read(&*mark_file, &mark_path).expect("it is read").expect("it is whole");
        let mut names: Vec<(u32, u16)> = std::fs::read_dir(&directory)
            .expect("it can be read")
            .filter_map(|entry| segment_number(&entry.expect("it can be read").file_name().to_string_lossy()))
            .collect();
        names.sort_unstable();
        let segments = names.into_iter().map(|(number, generation)| segment(&directory, number, generation)).collect();
        Self { segments, mark }
    }

    /// The segment in which the log ends, and where.
    pub fn end(&self) -> (String, usize) {
        let end = self.mark.durable.end;
        (segment_name(end.segment, end.generation), end.offset as usize)
    }

    /// Every place of an event, in order: segment, commit, entry.
    pub fn places(&self) -> Vec<(usize, usize, usize)> {
        let mut places = Vec::new();
        for (s, segment) in self.segments.iter().enumerate() {
            for (c, commit) in segment.commits.iter().enumerate() {
                let events = commit.entries.iter().enumerate();
                let events = events.filter(|(_, entry)| matches!(entry, Entry::Event { .. }));
                places.extend(events.map(|(e, _)| (s, c, e)));
            }
        }
        places
    }

    pub fn entry(&mut self, (s, c, e): (usize, usize, usize)) -> &mut Entry {
        &mut self.segments[s].commits[c].entries[e]
    }

    pub fn commit(&mut self, (s, c, _): (usize, usize, usize)) -> &mut Commit {
        &mut self.segments[s].commits[c]
    }

    /// Gives everything behind a place other numbers.
    pub fn renumber_after(&mut self, (s, c, e): (usize, usize, usize), by: i64) {
        for (at_s, segment) in self.segments.iter_mut().enumerate().skip(s) {
            if at_s > s {
                segment.header.first_seq = segment.header.first_seq.wrapping_add_signed(by);
            }
            for (at_c, commit) in segment.commits.iter_mut().enumerate() {
                for (at_e, entry) in commit.entries.iter_mut().enumerate() {
                    if (at_s, at_c, at_e) > (s, c, e) {
                        entry.move_by(by);
                    }
                }
            }
        }
    }

    /// Drops the last commits until `last_seq` is the last number or before it.
    pub fn cut_after(&mut self, last_seq: u64) {
        for segment in &mut self.segments {
            segment.commits.retain(|commit| commit.entries.last().is_some_and(|last| last.last_seq() <= last_seq));
        }
        let first = self.segments.iter().position(|segment| segment.header.first_seq > last_seq + 1);
        self.segments.truncate(first.unwrap_or(self.segments.len()).max(1));
    }

    /// Writes the log anew. Checksums, lengths and the mark fit; so does the chain, with `chained`.
    pub fn put_together(&mut self, data: &Path, chained: bool) {
        let directory = data.join("log");
        for entry in std::fs::read_dir(&directory).expect("it can be read") {
            let entry = entry.expect("it can be read");
            if segment_number(&entry.file_name().to_string_lossy()).is_some() {
                std::fs::remove_file(entry.path()).expect("it goes");
            }
        }
        if chained {
            self.chain_anew();
        }
        let (mut previous_bytes, mut last_seq, mut last_chain) = (0, 0, [0; 32]);
        for segment in &mut self.segments {
            let mut bytes = vec![0; SEGMENT_HEADER_BYTES as usize];
            for commit in &segment.commits {
                encode(commit, &mut bytes);
                last_seq = commit.entries.last().map_or(last_seq, Entry::last_seq);
                last_chain = commit.chain;
            }
            if segment.header.number > 1 {
                segment.header.previous_bytes = previous_bytes;
            }
            if segment.header.generation > 0 {
                (segment.header.own_bytes, segment.header.last_seq) = (bytes.len() as u64, last_seq);
            }
            bytes[..SEGMENT_HEADER_BYTES as usize].copy_from_slice(&segment.header.to_bytes());
            previous_bytes = bytes.len() as u64;
            let name = segment_name(segment.header.number, segment.header.generation);
            std::fs::write(directory.join(name), &bytes).expect("it is written");
        }
        let last = &self.segments.last().expect("there is one").header;
        self.mark.durable.end.segment = last.number;
        self.mark.durable.end.offset = u32::try_from(previous_bytes).expect("it is short");
        self.mark.durable.last_seq = last_seq;
        if chained {
            self.mark.durable.chain = last_chain;
        }
        self.write_mark(&directory);
    }

    /// One more commit at the end, of one event that says `text`; returns its number.
    pub fn append(&mut self, text: &str) -> u64 {
        let commits = self.segments.iter().flat_map(|segment| &segment.commits);
        let last_seq = commits.flat_map(|commit| &commit.entries).last().map_or(0, Entry::last_seq);
        let draft = super::message(None, text);
        let entry = Entry::Event { session: None, seq: last_seq + 1, micros: 1, body: draft.body.to_vec() };
        let commit = Commit { entries: vec![entry], chain: [0; 32] };
        self.segments.last_mut().expect("there is one").commits.push(commit);
        last_seq + 1
    }

    /// The oldest segment goes, and the mark says so.
    pub fn drop_first_segment(&mut self, data: &Path) {
        let directory = data.join("log");
        let gone = self.segments.remove(0).header;
        std::fs::remove_file(directory.join(segment_name(gone.number, gone.generation))).expect("it goes");
        self.mark.oldest_segment = self.segments[0].header.number;
        self.mark.oldest_seq = self.segments[0].header.first_seq;
        self.write_mark(&directory);
    }

    /// The mark says that the log ends elsewhere or otherwise, or begins elsewhere.
    pub fn forge_mark(&mut self, data: &Path, change: u32) {
        match change {
            0 => self.mark.durable.chain[31] ^= 1,
            1 => self.mark.durable.last_seq += 1,
            2 => self.mark.durable.end.offset += 8,
            _ => self.mark.oldest_seq += 1,
        }
        self.write_mark(&data.join("log"));
    }

    fn write_mark(&mut self, directory: &Path) {
        let path = directory.join(mark::FILE_NAME);
        let file = SystemIo.open(&path).expect("there is a mark");
        for _ in 0..2 {
            self.mark.counter += 1;
            self.mark.write(&*file).expect("it is written");
        }
    }

    fn chain_anew(&mut self) {
        let mut hash = self.segments.first().map_or([0; 32], |first| first.header.chain);
        for segment in &mut self.segments {
            segment.header.chain = hash;
            for commit in &mut segment.commits {
                for entry in &commit.entries {
                    hash = match entry {
                        Entry::Event { .. } => chain::next(&hash, &entry.record()),
                        Entry::Removed(run) => run.chain,
                    };
                }
                commit.chain = hash;
            }
        }
    }

    /// The chain hashes after each event, as this log has them now.
    pub fn hashes(&self) -> BTreeMap<u64, [u8; 32]> {
        let mut hash = self.segments.first().map_or([0; 32], |first| first.header.chain);
        let mut hashes = BTreeMap::new();
        for entry in self.segments.iter().flat_map(|segment| &segment.commits).flat_map(|commit| &commit.entries) {
            hash = match entry {
                Entry::Event { .. } => chain::next(&hash, &entry.record()),
                Entry::Removed(run) => run.chain,
            };
            hashes.insert(entry.last_seq(), hash);
        }
        hashes
    }
}

fn segment(directory: &Path, number: u32, generation: u16) -> Segment {
    let path = directory.join(segment_name(number, generation));
    let file: Arc<dyn StorageFile> = SystemIo.open_read_only(&path).expect("it opens");
    let header = SegmentHeader::read(&*file, number, generation, &path).expect("it is read").expect("it is whole");
    let length = file.length().expect("it has a length");
    let mut walk = CommitWalk::new(file, header.first_seq, length);
    let mut commits = Vec::new();
    while let Walked::Commit(commit) = walk.next_commit().expect("it is read") {
        let blocks = walk.unpack(&commit).expect("it is read").expect("it is whole");
        let entry = |item: Item<'_>| match item {
            Item::Event(session, EventView { seq, recorded_at_micros: micros, body, .. }) => {
                Entry::Event { session: session.cloned(), seq, micros, body: body.to_vec() }
            }
            Item::Removed(run) => Entry::Removed(run),
        };
        let entries = in_order(&blocks).expect("it is in order").into_iter().map(entry).collect();
        commits.push(Commit { entries, chain: commit.chain });
    }
    Segment { header, commits }
}

fn encode(commit: &Commit, out: &mut Vec<u8>) {
    let mut encoder = Encoder::new(1).expect("it can be made");
    for entry in &commit.entries {
        match entry {
            Entry::Event { session, seq, micros, body } => {
                encoder.add(session.as_ref(), *seq, *micros, body);
            }
            Entry::Removed(run) => encoder.add_removed(run),
        }
    }
    encoder.end_commit(commit.chain, out);
}

/// Changes what one block's header says of its events, with its checksum right; returns their numbers.
pub fn misdescribe(data: &Path, dice: &mut Dice) -> (u64, u64) {
    let directory = data.join("log");
    let forgery = Forgery::take_apart(data);
    let header = &forgery.segments[dice.below(forgery.segments.len() as u64) as usize].header;
    let path = directory.join(segment_name(header.number, header.generation));
    let mut bytes = std::fs::read(&path).expect("it is read");
    let mut blocks = Vec::new();
    let mut at = SEGMENT_HEADER_BYTES as usize;
    while let Found::Header(stored) = read_header(&bytes[at..]) {
        let length = stored.stored_bytes;
        blocks.push((at, stored));
        at += length;
    }
    let (at, stored) = &blocks[dice.below(blocks.len() as u64) as usize];
    // Levels, latest time, kinds, pages.
    let places = [11, 48, 56, 60, 72, 79];
    bytes[at + places[dice.below(places.len() as u64) as usize]] ^= 0x10;
    let block = &mut bytes[*at..at + stored.content_at];
    let checksum = crc32c::crc32c_append(crc32c::crc32c(&block[..4]), &block[8..]);
    block[4..8].copy_from_slice(&checksum.to_le_bytes());
    std::fs::write(&path, bytes).expect("it is written");
    (stored.header.first_seq, stored.header.last_seq)
}

//! From blocks of the log to entries of the index.
//!
//! A fold knows nothing but the part of the log it is given; what it makes of neighbouring parts joins
//! into what it would have made of both. It is the only place that looks into events, so what is on
//! disk, what is in memory and what is made for one question cannot differ.

use std::collections::{HashMap, HashSet};

use crate::StorageError;
use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::index::Failure;
use crate::index::chain::{Chain, Link};
use crate::index::entry::{BlockEntry, StretchFacts};
use crate::index::leaf::Leaf;
use crate::index::lost::Lost;
use crate::index::rows::{ArtifactRow, SessionRow};
use crate::index::stretches::{Stretches, stretch_of};
use crate::index::table::Tip;
use crate::index::wire::{OPERATION, PAGE, Parts, Space, key, texts_of};
use crate::log::{BlockRef, Position, Reader};

/// What an entry takes besides its own bytes while it is being folded, roughly.
const ENTRY_OVERHEAD_BYTES: usize = 96;

#[derive(Default)]
pub struct Fold {
    puts: Vec<(Vec<u8>, Vec<u8>)>,
    /// Blocks of the commit that is not complete yet.
    commit: Vec<BlockEntry>,
    rows: Vec<SessionRow>,
    row_places: HashMap<(Box<str>, Box<str>), usize>,
    /// Owner of the latest launch, by session.
    current: HashMap<Box<str>, Box<str>>,
    chains: HashMap<Vec<u8>, Chain>,
    /// Requests that went wrong here.
    troubled: HashSet<Vec<u8>>,
    artifacts: HashMap<Vec<u8>, (bool, ArtifactRow)>,
    lost: HashMap<Vec<u8>, Lost>,
    mentions: HashMap<Vec<u8>, Stretches>,
    /// The latest mention of each sort: neighbouring events mostly repeat it.
    recent: [Recent; 2],
    stretches: HashMap<Vec<u8>, StretchFacts>,
    /// Openings of the log seen.
    pub openings: u64,
    pub blocks: usize,
    /// Memory it takes, roughly.
    pub bytes: usize,
    /// Numbers of the events folded, of removed ones too.
    pub first_seq: Option<u64>,
    pub last_seq: u64,
    /// The last block.
    pub tip: Tip,
}

#[derive(Default)]
struct Recent {
    id: String,
    session: String,
    stretch: u64,
}

/// Finds where a request began in what lies before the part that was folded.
pub type Earlier<'a> = &'a dyn Fn(&str, &str) -> Result<Option<u64>, Failure>;

/// What an event says about itself before its payload.
#[derive(Default)]
struct Surroundings<'a> {
    instance: Option<&'a str>,
    owner: Option<&'a str>,
    page: Option<&'a str>,
    operation: Option<&'a str>,
    request: Option<&'a str>,
}

impl Fold {
    /// Takes one block in. True when it ended its commit, so that the fold may stop here.
    pub fn block(&mut self, reader: &Reader, block: &BlockRef) -> Result<bool, Failure> {
        let header = &block.header;
        self.first_seq = Some(self.first_seq.map_or(header.first_seq, |first| first.min(header.first_seq)));
        self.last_seq = self.last_seq.max(header.last_seq);
        self.blocks += 1;
        self.tip = Tip { block: block.position.offset, chain: header.chain };
        if !header.removed {
            let entry = BlockEntry::of(block.position, header);
            let mut value = Parts::default();
            entry.put(&mut value);
            self.put(entry.key(), value.0);
            let stretch = key(Space::Stretch, &[&entry.session], Some(stretch_of(entry.first_seq)));
            self.stretch(stretch, &StretchFacts::of(&entry));
            let session = entry.session.clone();
            self.commit.push(entry);
            self.read(&session, reader, block)?;
        }
        if header.end_of_commit {
            self.end_commit();
        }
        Ok(header.end_of_commit)
    }

    /// Notes that from `first_seq` to `last_seq` the log cannot be read.
    pub fn damage(&mut self, first_seq: u64, last_seq: u64, what: &str) {
        self.end_commit();
        self.tip = Tip::default();
        self.first_seq.get_or_insert(first_seq);
        self.last_seq = self.last_seq.max(last_seq);
        let mut value = Parts::default();
        value.number(last_seq).text(what);
        self.put(key(Space::Damage, &[""], Some(first_seq)), value.0);
    }

    fn put(&mut self, key: Vec<u8>, value: Vec<u8>) {
        self.bytes += key.len() + value.len() + ENTRY_OVERHEAD_BYTES;
        self.puts.push((key, value));
    }

    fn end_commit(&mut self) {
        let entries = std::mem::take(&mut self.commit);
        let Some(first) = entries.iter().map(|entry| entry.first_seq).min() else { return };
        let mut value = Parts::default();
        for entry in &entries {
            entry.put_in_commit(first, &mut value);
            let stretch = key(Space::TimelineStretch, &[], Some(stretch_of(first)));
            self.stretch(stretch, &StretchFacts::of(entry));
        }
        self.put(key(Space::Timeline, &[], Some(first)), value.0);
    }

    fn stretch(&mut self, key: Vec<u8>, facts: &StretchFacts) {
        match self.stretches.get_mut(&key) {
            Some(known) => known.unite(facts),
            None => {
                self.bytes += key.len() + ENTRY_OVERHEAD_BYTES;
                self.stretches.insert(key, *facts);
            }
        }
    }

    fn read(&mut self, session: &str, reader: &Reader, block: &BlockRef) -> Result<(), Failure> {
        let loaded = match reader.load(block.position) {
            Ok(loaded) => loaded,
            // The log's own damage is told to whoever reads those events; the rest stays readable.
            Err(StorageError::Damaged { what, .. }) => {
                tracing::warn!(first_seq = block.header.first_seq, what, "a block of the log could not be indexed");
                return Ok(());
            }
            Err(error) => return Err(Failure::Storage(error)),
        };
        for view in loaded.events() {
            let Ok(view) = view else {
                tracing::warn!(first_seq = block.header.first_seq, "a block of the log does not decode to its end");
                return Ok(());
            };
            self.event(session, block.position, &view);
        }
        Ok(())
    }

    fn event(&mut self, session: &str, position: Position, view: &EventView<'_>) {
        let around = Surroundings::of(view);
        let owner = around.owner.unwrap_or_default();
        if around.owner.is_some() && !session.is_empty() && self.current.get(session).is_none_or(|o| **o != *owner) {
            self.bytes += session.len() + ENTRY_OVERHEAD_BYTES;
            self.current.insert(session.into(), owner.into());
        }
        self.row(owner, session, view).take_in(view, around.instance);
        self.mention(OPERATION, around.operation, session, view.seq);
        self.mention(PAGE, around.page, session, view.seq);
        match view.kind() {
            Some(Kind::LogOpened) => self.openings += 1,
            Some(Kind::LogRemoved) => {
                if let Some((key, lost)) = Lost::of(owner, session, view) {
                    self.bytes += key.len() + lost.portions.len() * 16 + ENTRY_OVERHEAD_BYTES;
                    self.lost.insert(key, lost);
                }
            }
            Some(Kind::WebSocketFrame | Kind::NetworkChunk) => {
                if let Some(request) = around.request
                    && self.chain(Space::Request, session, request).add_frame(view.seq, position)
                {
                    self.bytes += 8;
                }
            }
            Some(kind) if is_network(kind) => {
                if let Some(request) = around.request {
                    self.link(Space::Request, session, request, position, view);
                }
            }
            Some(kind) if is_download(kind) => {
                if let Some(download) = view.get("download_id").and_then(ValueRef::as_str) {
                    self.link(Space::Download, session, download, position, view);
                }
            }
            _ => {}
        }
        self.artifact(owner, session, view);
    }

    fn chain(&mut self, space: Space, session: &str, id: &str) -> &mut Chain {
        let key = key(space, &[session, id], None);
        self.chains.entry(key).or_insert_with_key(|key| {
            self.bytes += key.len() + ENTRY_OVERHEAD_BYTES;
            Chain::default()
        })
    }

    fn link(&mut self, space: Space, session: &str, id: &str, position: Position, view: &EventView<'_>) {
        let number = |name: &str| view.get(name).and_then(ValueRef::as_u64).unwrap_or(0);
        let note = match view.kind() {
            Some(Kind::WebSocketClosed) => u64::from(view.get("error").is_some()),
            Some(Kind::NetworkRequest) => number("redirects"),
            Some(Kind::NetworkRedirect | Kind::NetworkResponse) => number("status"),
            _ => 0,
        };
        let link = Link { seq: view.seq, position, kind: view.kind_number, note };
        self.bytes += size_of::<Link>();
        self.chain(space, session, id).links.push(link);
        if link.is_trouble() {
            self.troubled.insert(key(Space::Request, &[session, id], None));
        }
    }

    fn mention(&mut self, what: &str, id: Option<&str>, session: &str, seq: u64) {
        let Some(id) = id else { return };
        let stretch = stretch_of(seq);
        let recent = &mut self.recent[usize::from(what == PAGE)];
        if recent.stretch == stretch && recent.id == id && recent.session == session {
            return;
        }
        *recent = Recent { id: id.to_owned(), session: session.to_owned(), stretch };
        let stretches =
            self.mentions.entry(key(Space::Mention, &[what, id, session], None)).or_insert_with_key(|key| {
                self.bytes += key.len() + ENTRY_OVERHEAD_BYTES;
                Stretches::default()
            });
        if stretches.insert(stretch) {
            self.bytes += 16;
        }
    }

    fn artifact(&mut self, owner: &str, session: &str, view: &EventView<'_>) {
        let (purpose, media_type) = match view.kind() {
            Some(Kind::ArtifactKept) => ("", ""),
            Some(Kind::ScreenshotTaken) => ("screenshot", "image/png"),
            Some(Kind::DownloadFinished) => ("download", "application/octet-stream"),
            Some(Kind::NetworkBody | Kind::WebSocketFrame) => ("body", "application/octet-stream"),
            _ => return,
        };
        let text = |name: &str| view.get(name).and_then(ValueRef::as_str);
        let Some(handle) = text("artifact") else { return };
        let place = key(Space::Artifact, &[owner, handle], None);
        // The other kinds only stand in for an `artifact.kept` that was not recorded.
        let stands_in = !purpose.is_empty();
        if stands_in && self.artifacts.contains_key(&place) {
            return;
        }
        let row = ArtifactRow {
            handle: handle.into(),
            owner: owner.into(),
            session_id: Some(session).filter(|session| !session.is_empty()).map(Into::into),
            purpose: text("purpose").unwrap_or(purpose).into(),
            media_type: text("media_type").unwrap_or(media_type).into(),
            bytes: view.get("bytes").and_then(ValueRef::as_u64).unwrap_or(0),
            sha256: text("sha256").unwrap_or_default().into(),
            seq: view.seq,
        };
        self.bytes += 2 * place.len() + row.sha256.len() + ENTRY_OVERHEAD_BYTES;
        self.artifacts.insert(place, (stands_in, row));
    }

    /// The row of what an owner is named as having in a session; an empty owner where none is named.
    fn row(&mut self, owner: &str, session: &str, view: &EventView<'_>) -> &mut SessionRow {
        // Neighbouring events mostly share their row.
        let same = |row: &SessionRow| row.owner.as_str() == owner && row.session_id.as_str() == session;
        let place = match self.rows.last() {
            Some(last) if same(last) => self.rows.len() - 1,
            _ => match self.row_places.get(&(Box::from(owner), Box::from(session))) {
                Some(place) => *place,
                None => {
                    self.bytes += 4 * ENTRY_OVERHEAD_BYTES;
                    self.row_places.insert((owner.into(), session.into()), self.rows.len());
                    self.rows.push(SessionRow::new(owner, session, view.seq, view.recorded_at_micros));
                    self.rows.len() - 1
                }
            },
        };
        &mut self.rows[place]
    }

    /// Where a request that went wrong begins, or that this could not be told.
    fn trouble(&self, request: &[u8], earlier: Earlier<'_>) -> Result<Vec<u8>, Failure> {
        let mut texts = texts_of(request);
        let (session, id) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        let begun_here = self.chains.get(request).and_then(Chain::certain_start).map(|link| link.seq);
        let begun = if begun_here.is_some() { begun_here } else { earlier(session, id)? };
        Ok(match begun {
            Some(seq) => key(Space::Trouble, &[session], Some(seq)),
            None => key(Space::Unresolved, &[session, id], None),
        })
    }

    /// All that is known now.
    pub fn finish(mut self, earlier: Earlier<'_>) -> Result<Leaf, Failure> {
        self.end_commit();
        let troubles: Result<HashSet<Vec<u8>>, Failure> =
            self.troubled.iter().map(|request| self.trouble(request, earlier)).collect();
        let mut puts = self.puts;
        puts.extend(troubles?.into_iter().map(|key| (key, Vec::new())));
        for row in &self.rows {
            puts.push((key(Space::Session, &[row.owner.as_str(), row.session_id.as_str()], None), row.encode()));
        }
        for (session, owner) in &self.current {
            puts.push((key(Space::Current, &[session], None), owner.as_bytes().to_vec()));
        }
        for (mut key, chain) in self.chains {
            key.extend_from_slice(&chain.first_seq().unwrap_or(0).to_be_bytes());
            puts.push((key, chain.encode()));
        }
        puts.extend(self.artifacts.into_iter().map(|(key, (stands_in, row))| (key, row.encode(stands_in))));
        puts.extend(self.lost.into_iter().map(|(key, lost)| (key, lost.encode())));
        puts.extend(self.mentions.into_iter().map(|(key, stretches)| (key, stretches.encode())));
        puts.extend(self.stretches.into_iter().map(|(key, facts)| (key, facts.encode())));
        Ok(Leaf::of(puts))
    }
}

impl<'a> Surroundings<'a> {
    fn of(view: &EventView<'a>) -> Self {
        let mut out = Self::default();
        for (number, value) in view.fields().take_while(|(number, _)| *number <= ContextField::RequestId as u32) {
            let place = match number {
                n if n == ContextField::InstanceId as u32 => &mut out.instance,
                n if n == ContextField::Owner as u32 => &mut out.owner,
                n if n == ContextField::PageId as u32 => &mut out.page,
                n if n == ContextField::OperationId as u32 => &mut out.operation,
                n if n == ContextField::RequestId as u32 => &mut out.request,
                _ => continue,
            };
            *place = value.as_str();
        }
        out
    }
}

impl SessionRow {
    fn take_in(&mut self, view: &EventView<'_>, instance: Option<&str>) {
        (self.last_seq, self.last_micros) = (view.seq, view.recorded_at_micros);
        *self.counts.entry(view.kind().map_or(0, Kind::number)).or_default() += 1;
        let text = |name: &str| view.get(name).and_then(ValueRef::as_str);
        let at = Some(view.recorded_at_micros);
        match view.kind() {
            Some(Kind::SessionLaunching) => {
                self.name = text("name").unwrap_or_default().to_owned();
                self.instance_id = instance.map(Into::into);
                self.launching_micros = at;
                (self.opened_micros, self.crashed_micros, self.closed_micros, self.reason) = (None, None, None, None);
            }
            Some(Kind::SessionOpened) => {
                self.opened_micros = at;
                self.instance_id = instance.map(Into::into).or(self.instance_id.take());
            }
            Some(Kind::SessionCrashed) => {
                self.crashed_micros = at;
                self.reason = text("reason").map(str::to_owned);
            }
            Some(Kind::SessionClosed) => {
                self.closed_micros = at;
                self.reason = text("reason").map(str::to_owned);
            }
            Some(Kind::Gap) => {
                let count = view.get("count").and_then(ValueRef::as_u64).unwrap_or(0);
                self.drop_counted(text("what").unwrap_or("other"), count);
            }
            Some(Kind::NetworkRequest) => {
                let redirects = view.get("redirects").and_then(ValueRef::as_u64).unwrap_or(0);
                self.redirect_legs += u64::from(redirects > 0);
            }
            _ => {}
        }
    }
}

fn is_network(kind: Kind) -> bool {
    (Kind::NetworkRequest..=Kind::WebSocketClosed).contains(&kind)
}

fn is_download(kind: Kind) -> bool {
    (Kind::DownloadStarted..=Kind::DownloadFailed).contains(&kind)
}

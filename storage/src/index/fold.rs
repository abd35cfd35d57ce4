//! From blocks of the log to entries of the index.
//!
//! The same fold feeds the index on disk and, while that is behind, the answer to one question: its
//! result is a set of puts over what `base` holds. Folding a block again changes nothing, so it does
//! not matter when `base` has meanwhile come further than the caller knew.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::StorageError;
use crate::event::codec::ContextField;
use crate::event::{EventView, Kind, ValueRef};
use crate::index::entry::{BlockEntry, Chain, Link};
use crate::index::rows::{ArtifactRow, SessionRow};
use crate::index::store::Store;
use crate::index::wire::{Parts, Space, end_of, key};
use crate::index::{Failure, damaged};
use crate::log::{BlockRef, Position, Reader};

/// Kinds whose events the index looks into. Blocks with one other kind only are not even loaded.
const LOOKED_INTO: &[Kind] = &[
    Kind::LogOpened,
    Kind::Gap,
    Kind::SessionLaunching,
    Kind::SessionOpened,
    Kind::SessionCrashed,
    Kind::SessionClosed,
    Kind::NetworkRequest,
    Kind::NetworkRedirect,
    Kind::NetworkResponse,
    Kind::NetworkFinished,
    Kind::NetworkFailed,
    Kind::NetworkBody,
    Kind::NetworkHeaders,
    Kind::WebSocketOpened,
    Kind::WebSocketFrame,
    Kind::WebSocketClosed,
    Kind::DownloadStarted,
    Kind::DownloadProgress,
    Kind::DownloadFinished,
    Kind::DownloadFailed,
    Kind::ScreenshotTaken,
    Kind::ArtifactKept,
];

pub struct Fold<'a> {
    base: Option<&'a Store>,
    puts: BTreeMap<Vec<u8>, Vec<u8>>,
    /// Blocks of the commit that is not complete yet.
    commit: Vec<BlockEntry>,
    rows: Vec<SessionRow>,
    row_places: HashMap<(Box<str>, Box<str>), usize>,
    /// Owner of the latest launch, by session.
    current: HashMap<Box<str>, Box<str>>,
    chains: HashMap<(u8, Box<str>, Box<str>), Chain>,
    /// Chains of requests, by session and id, that went wrong here.
    troubled: HashSet<(Box<str>, Box<str>)>,
    /// Openings of the log seen.
    pub openings: u64,
    pub blocks: usize,
}

/// What an event says about itself before its payload.
#[derive(Default)]
struct Surroundings<'a> {
    instance: Option<&'a str>,
    owner: Option<&'a str>,
    request: Option<&'a str>,
}

impl<'a> Fold<'a> {
    #[must_use]
    pub fn over(base: Option<&'a Store>) -> Self {
        Self {
            base,
            puts: BTreeMap::new(),
            commit: Vec::new(),
            rows: Vec::new(),
            row_places: HashMap::new(),
            current: HashMap::new(),
            chains: HashMap::new(),
            troubled: HashSet::new(),
            openings: 0,
            blocks: 0,
        }
    }

    /// Takes one block in. True when it ended its commit, so that the fold may stop here.
    pub fn block(&mut self, reader: &Reader, block: &BlockRef) -> Result<bool, Failure> {
        let entry = BlockEntry::of(block.position, &block.header);
        let mut value = Parts::default();
        entry.put(&mut value);
        self.puts.insert(key(Space::Block, &[&entry.session], Some(entry.first_seq)), value.0);
        self.blocks += 1;
        let session = entry.session.clone();
        self.commit.push(entry);
        if !self.count_unread(&session, block)? {
            self.read(&session, reader, block)?;
        }
        if block.header.end_of_commit {
            self.end_commit();
        }
        Ok(block.header.end_of_commit)
    }

    #[must_use]
    pub fn ends_with_a_commit(&self) -> bool {
        self.commit.is_empty()
    }

    fn end_commit(&mut self) {
        let mut value = Parts::default();
        for entry in &self.commit {
            entry.put(&mut value);
        }
        if let Some(first) = self.commit.iter().map(|entry| entry.first_seq).min() {
            self.puts.insert(key(Space::Timeline, &[], Some(first)), value.0);
        }
        self.commit.clear();
    }

    /// A block of one kind that nothing is looked up in is counted by its header.
    fn count_unread(&mut self, session: &str, block: &BlockRef) -> Result<bool, Failure> {
        let header = &block.header;
        let looked_into = LOOKED_INTO.iter().fold(0u128, |set, kind| set | 1 << kind.number());
        if header.kinds.count_ones() != 1 || header.kinds & looked_into != 0 || session.is_empty() {
            return Ok(false);
        }
        let Some(owner) = self.current(session)? else { return Ok(false) };
        let place = self.row(&owner, session, header.first_seq, header.first_micros)?;
        let row = &mut self.rows[place];
        if row.last_seq >= header.last_seq {
            return Ok(true);
        }
        if row.last_seq >= header.first_seq {
            return Ok(false);
        }
        *row.counts.entry(header.kinds.trailing_zeros() as u16).or_default() += u64::from(header.count);
        row.last_seq = header.last_seq;
        row.last_micros = header.last_micros;
        Ok(true)
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
            self.event(session, block.position, &view)?;
        }
        Ok(())
    }

    fn event(&mut self, session: &str, position: Position, view: &EventView<'_>) -> Result<(), Failure> {
        let around = Surroundings::of(view);
        let owner = self.owner(session, around.owner)?;
        let place = self.row(&owner, session, view.seq, view.recorded_at_micros)?;
        let row = &mut self.rows[place];
        if view.seq > row.last_seq {
            row.last_seq = view.seq;
            row.last_micros = view.recorded_at_micros;
            *row.counts.entry(view.kind().map_or(0, Kind::number)).or_default() += 1;
            row.apply(view, around.instance);
        }
        match view.kind() {
            Some(Kind::LogOpened) => self.openings += 1,
            Some(Kind::WebSocketFrame) => {
                if let Some(request) = around.request {
                    self.chain(Space::Request, session, request).add_frame(view.seq, position);
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
        self.artifact(&owner, session, view)
    }

    fn chain(&mut self, space: Space, session: &str, id: &str) -> &mut Chain {
        self.chains.entry((space as u8, session.into(), id.into())).or_default()
    }

    fn link(&mut self, space: Space, session: &str, id: &str, position: Position, view: &EventView<'_>) {
        let note = match view.kind() {
            Some(Kind::WebSocketClosed) => u64::from(view.get("error").is_some()),
            _ => view.get("status").and_then(ValueRef::as_u64).unwrap_or(0),
        };
        let link = Link { seq: view.seq, position, kind: view.kind_number, note };
        if link.is_trouble() {
            self.troubled.insert((session.into(), id.into()));
        }
        self.chain(space, session, id).links.push(link);
    }

    fn artifact(&mut self, owner: &str, session: &str, view: &EventView<'_>) -> Result<(), Failure> {
        let (purpose, media_type) = match view.kind() {
            Some(Kind::ArtifactKept) => ("", ""),
            Some(Kind::ScreenshotTaken) => ("screenshot", "image/png"),
            Some(Kind::DownloadFinished) => ("download", "application/octet-stream"),
            Some(Kind::NetworkBody) => ("body", "application/octet-stream"),
            _ => return Ok(()),
        };
        let text = |name: &str| view.get(name).and_then(ValueRef::as_str);
        let Some(handle) = text("artifact") else { return Ok(()) };
        let place = key(Space::Artifact, &[owner, handle], None);
        // The other kinds only stand in for an `artifact.kept` that was not recorded.
        if !purpose.is_empty() && self.get(&place)?.is_some() {
            return Ok(());
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
        self.puts.insert(place, row.encode());
        Ok(())
    }

    /// Whose an event is: what it says, else the owner of its session's latest launch, else nobody's.
    fn owner(&mut self, session: &str, said: Option<&str>) -> Result<Box<str>, Failure> {
        let known = if session.is_empty() { None } else { self.current(session)? };
        let Some(said) = said else { return Ok(known.unwrap_or_default()) };
        if !session.is_empty() && known.as_deref() != Some(said) {
            self.puts.insert(key(Space::Current, &[session], None), said.as_bytes().to_vec());
            self.current.insert(session.into(), said.into());
        }
        Ok(said.into())
    }

    fn current(&mut self, session: &str) -> Result<Option<Box<str>>, Failure> {
        if let Some(owner) = self.current.get(session) {
            return Ok(Some(owner.clone()));
        }
        let Some(bytes) = self.get(&key(Space::Current, &[session], None))? else { return Ok(None) };
        let owner: Box<str> = String::from_utf8(bytes).map_err(|_| damaged())?.into();
        self.current.insert(session.into(), owner.clone());
        Ok(Some(owner))
    }

    fn row(&mut self, owner: &str, session: &str, seq: u64, micros: i64) -> Result<usize, Failure> {
        // Neighbouring events mostly share their row.
        if let Some(last) = self.rows.last()
            && last.owner.as_str() == owner
            && last.session_id.as_str() == session
        {
            return Ok(self.rows.len() - 1);
        }
        if let Some(place) = self.row_places.get(&(Box::from(owner), Box::from(session))) {
            return Ok(*place);
        }
        let row = match self.get(&key(Space::Session, &[owner, session], None))? {
            Some(bytes) => SessionRow::decode(&bytes).map_err(|_| damaged())?,
            None => SessionRow::new(owner, session, seq, micros),
        };
        self.rows.push(row);
        self.row_places.insert((owner.into(), session.into()), self.rows.len() - 1);
        Ok(self.rows.len() - 1)
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        match (self.puts.get(key), self.base) {
            (Some(value), _) => Ok(Some(value.clone())),
            (None, Some(base)) => base.get(key).map_err(Failure::Index),
            (None, None) => Ok(None),
        }
    }

    /// The event that begins a request's row, which may lie in the base.
    fn start(&self, session: &str, id: &str) -> Result<Option<Link>, Failure> {
        let prefix = key(Space::Request, &[session, id], None);
        for pair in self.base.into_iter().flat_map(|base| base.range(&prefix, &end_of(&prefix), false)) {
            let mut chain = Chain::default();
            chain.extend(&pair.map_err(Failure::Index)?.1).map_err(|_| damaged())?;
            if let Some(start) = chain.start() {
                return Ok(Some(start));
            }
        }
        Ok(self.chains.get(&(Space::Request as u8, session.into(), id.into())).and_then(Chain::start))
    }

    /// All that is to be written.
    pub fn finish(mut self) -> Result<BTreeMap<Vec<u8>, Vec<u8>>, Failure> {
        for (session, id) in &self.troubled {
            if let Some(start) = self.start(session, id)? {
                let mut value = Parts::default();
                value.number(start.position.to_u64());
                self.puts.insert(key(Space::Trouble, &[session], Some(start.seq)), value.0);
            }
        }
        for row in &self.rows {
            self.puts.insert(key(Space::Session, &[row.owner.as_str(), row.session_id.as_str()], None), row.encode());
        }
        for ((space, session, id), chain) in &self.chains {
            let space = if *space == Space::Request as u8 { Space::Request } else { Space::Download };
            self.puts.insert(key(space, &[session, id], chain.first_seq()), chain.encode());
        }
        Ok(self.puts)
    }
}

impl<'a> Surroundings<'a> {
    fn of(view: &EventView<'a>) -> Self {
        let mut out = Self::default();
        for (number, value) in view.fields().take_while(|(number, _)| *number <= ContextField::RequestId as u32) {
            let place = match number {
                n if n == ContextField::InstanceId as u32 => &mut out.instance,
                n if n == ContextField::Owner as u32 => &mut out.owner,
                n if n == ContextField::RequestId as u32 => &mut out.request,
                _ => continue,
            };
            *place = value.as_str();
        }
        out
    }
}

impl SessionRow {
    fn apply(&mut self, view: &EventView<'_>, instance: Option<&str>) {
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

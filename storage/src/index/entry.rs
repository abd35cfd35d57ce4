//! Where things are: blocks of the log, and the events of one request or download.

use crate::event::Kind;
use crate::index::wire::{Meaningless, Parts, Taken};
use crate::log::{BlockHeader, Position};
use crate::query::BlockFacts;

/// Answers from this status on are what people look for.
pub const TROUBLE_STATUS_MIN: u64 = 400;

/// One block: where it is and what its header says.
#[derive(Debug, Clone)]
pub struct BlockEntry {
    pub position: Position,
    /// Empty for events of no session.
    pub session: Box<str>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub facts: BlockFacts,
}

impl BlockEntry {
    #[must_use]
    pub fn of(position: Position, header: &BlockHeader) -> Self {
        Self {
            position,
            session: header.session_id.as_ref().map_or("", |session| session.as_str()).into(),
            first_seq: header.first_seq,
            last_seq: header.last_seq,
            facts: BlockFacts {
                first_micros: header.first_micros,
                last_micros: header.last_micros,
                kinds: header.kinds,
                levels: header.levels,
                pages: header.pages,
            },
        }
    }

    /// A block whose header is not at hand and that no filter may rule out.
    #[must_use]
    pub fn anything(position: Position, session: &str, first_seq: u64, last_seq: u64) -> Self {
        let facts = BlockFacts {
            first_micros: i64::MIN,
            last_micros: i64::MAX,
            kinds: u128::MAX,
            levels: u8::MAX,
            pages: u64::MAX,
        };
        Self { position, session: session.into(), first_seq, last_seq, facts }
    }

    pub fn put(&self, out: &mut Parts) {
        out.number(self.position.to_u64()).text(&self.session).number(self.first_seq).number(self.last_seq);
        out.signed(self.facts.first_micros).signed(self.facts.last_micros);
        out.bits(self.facts.kinds).number(u64::from(self.facts.levels)).number(self.facts.pages);
    }

    pub fn take(input: &mut Taken<'_>) -> Result<Self, Meaningless> {
        Ok(Self {
            position: Position::from_u64(input.number()?),
            session: input.text()?.into(),
            first_seq: input.number()?,
            last_seq: input.number()?,
            facts: BlockFacts {
                first_micros: input.signed()?,
                last_micros: input.signed()?,
                kinds: input.bits()?,
                levels: u8::try_from(input.number()?).map_err(|_| Meaningless)?,
                pages: input.number()?,
            },
        })
    }
}

/// One event of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub seq: u64,
    pub position: Position,
    pub kind: u16,
    /// Status code of a response or redirect; 1 for a WebSocket closed by an error; else 0.
    pub note: u64,
}

impl Link {
    fn begins(&self) -> bool {
        matches!(Kind::from_number(self.kind), Some(Kind::NetworkRequest | Kind::WebSocketOpened))
    }

    /// Whether its request failed, or was answered by a status of 400 or above.
    #[must_use]
    pub fn is_trouble(&self) -> bool {
        match Kind::from_number(self.kind) {
            Some(Kind::NetworkFailed) => true,
            Some(Kind::NetworkResponse) => self.note >= TROUBLE_STATUS_MIN,
            Some(Kind::WebSocketClosed) => self.note == 1,
            _ => false,
        }
    }
}

/// WebSocket frames of one chain in one block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Frames {
    pub first_seq: u64,
    pub position: Position,
    pub count: u64,
}

/// The events of one request, WebSocket or download, in order of seq.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Chain {
    pub links: Vec<Link>,
    pub frames: Vec<Frames>,
}

impl Chain {
    /// The event that begins the row of a request or WebSocket. Chromium sends the headers of a
    /// request before the request itself as often as after it.
    #[must_use]
    pub fn start(&self) -> Option<Link> {
        self.links.iter().copied().find(Link::begins)
    }

    #[must_use]
    pub fn first_seq(&self) -> Option<u64> {
        let link = self.links.first().map(|link| link.seq);
        let frame = self.frames.first().map(|frames| frames.first_seq);
        match (link, frame) {
            (Some(link), Some(frame)) => Some(link.min(frame)),
            (link, frame) => link.or(frame),
        }
    }

    pub fn add_frame(&mut self, seq: u64, position: Position) {
        match self.frames.last_mut().filter(|frames| frames.position == position) {
            Some(frames) => frames.count += 1,
            None => self.frames.push(Frames { first_seq: seq, position, count: 1 }),
        }
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        out.number(self.links.len() as u64);
        for link in &self.links {
            out.number(link.seq).number(link.position.to_u64()).number(u64::from(link.kind)).number(link.note);
        }
        for frames in &self.frames {
            out.number(frames.first_seq).number(frames.position.to_u64()).number(frames.count);
        }
        out.0
    }

    /// Adds a later part of the same chain.
    pub fn extend(&mut self, bytes: &[u8]) -> Result<(), Meaningless> {
        let mut input = Taken(bytes);
        for _ in 0..input.number()? {
            let (seq, position) = (input.number()?, Position::from_u64(input.number()?));
            let kind = u16::try_from(input.number()?).map_err(|_| Meaningless)?;
            self.links.push(Link { seq, position, kind, note: input.number()? });
        }
        while !input.is_empty() {
            let (first_seq, position) = (input.number()?, Position::from_u64(input.number()?));
            self.frames.push(Frames { first_seq, position, count: input.number()? });
        }
        Ok(())
    }

    /// Parts read twice (from the index and from the log's tail) count once.
    pub fn settle(&mut self) {
        self.links.sort_by_key(|link| link.seq);
        self.links.dedup_by_key(|link| link.seq);
        self.frames.sort_by_key(|frames| frames.first_seq);
        self.frames.dedup_by_key(|frames| frames.position);
    }
}

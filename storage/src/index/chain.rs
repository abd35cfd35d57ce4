//! The events of one request, WebSocket or download: where each of them is.

use crate::event::Kind;
use crate::index::wire::{Meaningless, Parts, Taken};
use crate::log::Position;

/// Answers from this status on are what people look for.
pub const TROUBLE_STATUS_MIN: u64 = 400;

/// One event of a chain.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Link {
    pub seq: u64,
    pub position: Position,
    pub kind: u16,
    /// Status code of a response or redirect; how many redirects led to a request; 1 for a WebSocket
    /// closed by an error; else 0.
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

/// WebSocket frames, or parts of a running response, of one chain in one block.
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

    /// As [`Chain::start`], unless an earlier part of the chain may hold the true one.
    #[must_use]
    pub fn certain_start(&self) -> Option<Link> {
        self.start().filter(|link| link.note == 0)
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

    /// True when the frame is the first of its block.
    pub fn add_frame(&mut self, seq: u64, position: Position) -> bool {
        match self.frames.last_mut().filter(|frames| frames.position == position) {
            Some(frames) => {
                frames.count += 1;
                false
            }
            None => {
                self.frames.push(Frames { first_seq: seq, position, count: 1 });
                true
            }
        }
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let (mut out, base) = (Parts::default(), self.first_seq().unwrap_or(0));
        out.number(self.links.len() as u64);
        for link in &self.links {
            out.number(link.seq - base).number(u64::from(link.position.offset));
            out.number(u64::from(link.kind)).number(link.note);
        }
        for frames in &self.frames {
            out.number(frames.first_seq - base).number(u64::from(frames.position.offset)).number(frames.count);
        }
        out.0
    }

    /// Adds a later part of the same chain, whose events are in the file in which `start` is.
    pub fn extend(&mut self, start: Position, first_seq: u64, bytes: &[u8]) -> Result<(), Meaningless> {
        let mut input = Taken(bytes);
        for _ in 0..input.number()? {
            let seq = first_seq.checked_add(input.number()?).ok_or(Meaningless)?;
            let position = Position { offset: input.small()?, ..start };
            self.links.push(Link { seq, position, kind: input.small()?, note: input.number()? });
        }
        while !input.is_empty() {
            let seq = first_seq.checked_add(input.number()?).ok_or(Meaningless)?;
            let position = Position { offset: input.small()?, ..start };
            self.frames.push(Frames { first_seq: seq, position, count: input.number()? });
        }
        Ok(())
    }
}

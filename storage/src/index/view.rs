//! One consistent look at the index for one question.
//!
//! A view is the index on disk with, laid over it, what the log holds beyond: normally nothing. When
//! the index is broken or still being rebuilt the overlay is made from the log itself, which is slow
//! and gives the same answers. Its memory is in proportion to what is not indexed and lives as long
//! as the question.

use std::collections::BTreeMap;

use crate::ids::{ArtifactHandle, Owner, SessionId};
use crate::index::entry::{BlockEntry, Chain};
use crate::index::fold::Fold;
use crate::index::rows::{ArtifactRow, SessionRow};
use crate::index::store::{Meta, Pair, Pairs, Store};
use crate::index::wire::{Space, Taken, end_of, key};
use crate::index::{Failure, damaged};
use crate::log::{Position, Reader};

pub struct View {
    base: Option<Store>,
    over: BTreeMap<Vec<u8>, Vec<u8>>,
    pub reader: Reader,
}

/// The blocks that share a commit, or one block.
pub type Step = Vec<BlockEntry>;
/// First event and block of requests.
pub type Troubles<'a> = Box<dyn Iterator<Item = Result<(u64, Position), Failure>> + 'a>;
pub type Steps<'a> = Box<dyn Iterator<Item = Result<Step, Failure>> + 'a>;

impl View {
    /// Looks at `base` as of `meta`, and at the log for what is durable beyond. With `only`, nothing is
    /// promised but on that session.
    pub fn over(
        base: Option<(Store, Meta)>,
        reader: &Reader,
        last_seq: u64,
        only: Option<&SessionId>,
    ) -> Result<Self, Failure> {
        let (store, reached, from) = match base {
            Some((store, meta)) => (Some(store), meta.reached_seq, meta.position),
            None => (None, 0, None),
        };
        let mut over = BTreeMap::new();
        if reached < last_seq {
            let mut fold = Fold::over(store.as_ref());
            for block in reader.blocks(from.unwrap_or_else(|| reader.start()))? {
                let block = block?;
                if only.is_none() || block.header.session_id.as_ref() == only {
                    fold.block(reader, &block)?;
                }
            }
            over = fold.finish()?;
        }
        Ok(Self { base: store, over, reader: reader.clone() })
    }

    fn get(&self, key: &[u8]) -> Result<Option<Vec<u8>>, Failure> {
        match (self.over.get(key), &self.base) {
            (Some(value), _) => Ok(Some(value.clone())),
            (None, Some(base)) => base.get(key).map_err(Failure::Index),
            (None, None) => Ok(None),
        }
    }

    fn range(&self, from: &[u8], to: &[u8], backwards: bool) -> Layers<'_> {
        let base: Pairs<'_> = match &self.base {
            Some(base) => base.range(from, to, backwards),
            None => Box::new(std::iter::empty()),
        };
        let over: Upper<'_> = if from >= to {
            Box::new(std::iter::empty())
        } else if backwards {
            Box::new(self.over.range(from.to_vec()..to.to_vec()).rev())
        } else {
            Box::new(self.over.range(from.to_vec()..to.to_vec()))
        };
        Layers { base: base.peekable(), over: over.peekable(), backwards }
    }

    pub fn session(&self, owner: &Owner, session: &SessionId) -> Result<Option<SessionRow>, Failure> {
        let bytes = self.get(&key(Space::Session, &[owner.as_str(), session.as_str()], None))?;
        bytes.map(|bytes| SessionRow::decode(&bytes).map_err(|_| damaged())).transpose()
    }

    /// All of an owner's rows in order of their first event. The row of no session comes under an
    /// empty id.
    pub fn sessions(&self, owner: &Owner) -> Result<Vec<SessionRow>, Failure> {
        let prefix = key(Space::Session, &[owner.as_str()], None);
        let mut rows = Vec::new();
        for pair in self.range(&prefix, &end_of(&prefix), false) {
            rows.push(SessionRow::decode(&pair?.1).map_err(|_| damaged())?);
        }
        rows.sort_by_key(|row| row.first_seq);
        Ok(rows)
    }

    /// Whose the latest launch of a session is.
    pub fn owner_of(&self, session: &str) -> Result<Option<Owner>, Failure> {
        let Some(bytes) = self.get(&key(Space::Current, &[session], None))? else { return Ok(None) };
        String::from_utf8(bytes).map(|owner| Some(Owner::from(owner))).map_err(|_| damaged())
    }

    pub fn artifact(&self, owner: &Owner, handle: &ArtifactHandle) -> Result<Option<ArtifactRow>, Failure> {
        let bytes = self.get(&key(Space::Artifact, &[owner.as_str(), handle.as_str()], None))?;
        bytes.map(|bytes| ArtifactRow::decode(&bytes).map_err(|_| damaged())).transpose()
    }

    /// The events of one request or download; an empty chain when there are none.
    pub fn chain(&self, space: Space, session: &str, id: &str) -> Result<Chain, Failure> {
        let prefix = key(space, &[session, id], None);
        let mut chain = Chain::default();
        for pair in self.range(&prefix, &end_of(&prefix), false) {
            chain.extend(&pair?.1).map_err(|_| damaged())?;
        }
        chain.settle();
        Ok(chain)
    }

    /// Where requests begin that went wrong, beyond `after`, nearest first.
    pub fn troubles(&self, session: &str, after: Option<u64>, backwards: bool) -> Troubles<'_> {
        let prefix = key(Space::Trouble, &[session], None);
        let place = |seq| key(Space::Trouble, &[session], Some(seq));
        let pairs = if backwards {
            self.range(&prefix, &after.map_or_else(|| end_of(&prefix), place), true)
        } else {
            let from = after.map_or_else(|| prefix.clone(), |after| place(after.saturating_add(1)));
            self.range(&from, &end_of(&prefix), false)
        };
        Box::new(pairs.map(|pair| {
            let (key, value) = pair?;
            let seq = key.last_chunk::<8>().map(|bytes| u64::from_be_bytes(*bytes)).ok_or_else(damaged)?;
            let position = Taken(&value).number().map_err(|_| damaged())?;
            Ok((seq, Position::from_u64(position)))
        }))
    }

    /// The blocks with events beyond `after`, nearest first: of one session each by itself, or of the
    /// whole log commit by commit.
    pub fn steps(&self, session: Option<&str>, after: Option<u64>, backwards: bool) -> Result<Steps<'_>, Failure> {
        let (prefix, place) = match session {
            Some(session) => (key(Space::Block, &[session], None), move |seq| key(Space::Block, &[session], Some(seq))),
            None => return self.commits(after, backwards),
        };
        let end = end_of(&prefix);
        let pairs = if backwards {
            self.range(&prefix, &after.map_or(end, &place), true)
        } else {
            let from = self.step_holding(&prefix, after, &place)?;
            self.range(&from, &end, false)
        };
        Ok(Box::new(pairs.map(|pair| step(&pair?.1))))
    }

    fn commits(&self, after: Option<u64>, backwards: bool) -> Result<Steps<'_>, Failure> {
        let prefix = key(Space::Timeline, &[], None);
        let place = |seq| key(Space::Timeline, &[], Some(seq));
        let end = end_of(&prefix);
        let pairs = if backwards {
            self.range(&prefix, &after.map_or(end, place), true)
        } else {
            let from = self.step_holding(&prefix, after, &place)?;
            self.range(&from, &end, false)
        };
        Ok(Box::new(pairs.map(|pair| step(&pair?.1))))
    }

    /// Key of the step in which events after `after` begin: it may have begun before them.
    fn step_holding(
        &self,
        prefix: &[u8],
        after: Option<u64>,
        place: &dyn Fn(u64) -> Vec<u8>,
    ) -> Result<Vec<u8>, Failure> {
        let Some(after) = after else { return Ok(prefix.to_vec()) };
        let next = place(after.saturating_add(1));
        match self.range(prefix, &next, true).next().transpose()? {
            Some((key, value)) if step(&value)?.iter().any(|entry| entry.last_seq > after) => Ok(key),
            _ => Ok(next),
        }
    }
}

fn step(bytes: &[u8]) -> Result<Step, Failure> {
    let mut input = Taken(bytes);
    let mut step = Vec::with_capacity(1);
    while !input.is_empty() {
        step.push(BlockEntry::take(&mut input).map_err(|_| damaged())?);
    }
    Ok(step)
}

type Upper<'a> = Box<dyn Iterator<Item = (&'a Vec<u8>, &'a Vec<u8>)> + 'a>;

/// Two sorted runs as one; where both have a key, the upper one counts.
struct Layers<'a> {
    base: std::iter::Peekable<Pairs<'a>>,
    over: std::iter::Peekable<Upper<'a>>,
    backwards: bool,
}

impl Iterator for Layers<'_> {
    type Item = Result<Pair, Failure>;

    fn next(&mut self) -> Option<Self::Item> {
        let order = match (self.base.peek(), self.over.peek()) {
            (Some(Ok((below, _))), Some((above, _))) => below.cmp(above),
            (None, Some(_)) => std::cmp::Ordering::Greater,
            (_, None) | (Some(Err(_)), _) => std::cmp::Ordering::Less,
        };
        let order = if self.backwards && self.both_wait() { order.reverse() } else { order };
        if order == std::cmp::Ordering::Less {
            return self.base.next().map(|pair| pair.map_err(Failure::Index));
        }
        if order == std::cmp::Ordering::Equal {
            self.base.next();
        }
        self.over.next().map(|(key, value)| Ok((key.clone(), value.clone())))
    }
}

impl Layers<'_> {
    fn both_wait(&mut self) -> bool {
        matches!(self.base.peek(), Some(Ok(_))) && self.over.peek().is_some()
    }
}

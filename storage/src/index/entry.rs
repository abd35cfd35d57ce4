//! Where blocks of the log are, and what they say about their events.

use crate::index::wire::{Meaningless, Parts, Space, Taken, key, number_of};
use crate::log::{BlockHeader, Position};
use crate::query::BlockFacts;

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

/// What the blocks of a session say together, of those that begin in one stretch of numbers or of all
/// in a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StretchFacts {
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
        Self { position, session: session.into(), first_seq, last_seq, facts: BlockFacts::ANYTHING }
    }

    #[must_use]
    pub fn key(&self) -> Vec<u8> {
        key(Space::Block, &[&self.session], Some(self.first_seq))
    }

    pub fn put(&self, out: &mut Parts) {
        out.number(u64::from(self.position.offset)).number(self.last_seq - self.first_seq);
        put_facts(&self.facts, out);
    }

    /// As one block of a commit that begins with `commit_seq`.
    pub fn put_in_commit(&self, commit_seq: u64, out: &mut Parts) {
        out.text(&self.session).number(self.first_seq - commit_seq);
        self.put(out);
    }

    /// `start` is any place in the file that the block is in.
    pub fn decode(start: Position, session: &str, key: &[u8], value: &[u8]) -> Result<Self, Meaningless> {
        Self::take(start, session, number_of(key)?, &mut Taken(value))
    }

    /// The blocks of a commit.
    pub fn decode_commit(start: Position, key: &[u8], value: &[u8]) -> Result<Vec<Self>, Meaningless> {
        let (commit_seq, mut input) = (number_of(key)?, Taken(value));
        let mut entries = Vec::with_capacity(1);
        while !input.is_empty() {
            let session = input.text()?;
            let first_seq = commit_seq.checked_add(input.number()?).ok_or(Meaningless)?;
            entries.push(Self::take(start, session, first_seq, &mut input)?);
        }
        Ok(entries)
    }

    fn take(start: Position, session: &str, first_seq: u64, input: &mut Taken<'_>) -> Result<Self, Meaningless> {
        Ok(Self {
            position: Position { offset: input.small()?, ..start },
            session: session.into(),
            first_seq,
            last_seq: first_seq.checked_add(input.number()?).ok_or(Meaningless)?,
            facts: take_facts(input)?,
        })
    }
}

impl StretchFacts {
    #[must_use]
    pub fn of(entry: &BlockEntry) -> Self {
        Self { last_seq: entry.last_seq, facts: entry.facts }
    }

    pub fn unite(&mut self, other: &Self) {
        self.last_seq = self.last_seq.max(other.last_seq);
        self.facts.unite(&other.facts);
    }

    #[must_use]
    pub fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        out.number(self.last_seq);
        put_facts(&self.facts, &mut out);
        out.0
    }

    pub fn decode(bytes: &[u8]) -> Result<Self, Meaningless> {
        let mut input = Taken(bytes);
        Ok(Self { last_seq: input.number()?, facts: take_facts(&mut input)? })
    }
}

fn put_facts(facts: &BlockFacts, out: &mut Parts) {
    out.signed(facts.first_micros).number(facts.last_micros.wrapping_sub(facts.first_micros) as u64);
    // Ids of pages are spread over all 64 bits.
    out.bits(facts.kinds).number(u64::from(facts.levels)).signed(facts.pages as i64);
}

fn take_facts(input: &mut Taken<'_>) -> Result<BlockFacts, Meaningless> {
    let first_micros = input.signed()?;
    Ok(BlockFacts {
        first_micros,
        last_micros: first_micros.wrapping_add(input.number()? as i64),
        kinds: input.bits()?,
        levels: input.small()?,
        pages: input.signed()? as u64,
    })
}

//! One walk over the events an owner may see, in the order asked for, block by block.
//!
//! A block that its header rules out, or that belongs to another owner's session, is neither loaded
//! nor counted as examined. So a walk at rest stays where it is while others go on.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap};
use std::ops::ControlFlow;
use std::time::Instant;

use crate::StorageError;
use crate::event::EventView;
use crate::event::codec::ContextField;
use crate::ids::{OperationId, Owner, PageId, SessionId};
use crate::index::{BlockEntry, Chain, Failure, Sieve, Space, View};
use crate::log::{Block, Position};
use crate::query::cursor::Order;
use crate::query::matching::{BlockFacts, CompiledFilter};
use crate::query::owned::OwnedEvent;

/// Blocks passed over between two looks at the clock.
const SKIPS_PER_LOOK: u32 = 1024;

pub struct Walk<'a> {
    pub view: &'a View,
    /// Rules out blocks by their headers, then events.
    pub filter: &'a CompiledFilter,
    pub owner: &'a Owner,
    pub order: Order,
    /// Only events beyond this one, in the walk's order.
    pub after: Option<u64>,
    /// Only beginnings of requests that went wrong; needs a filter on one session.
    pub troubles: bool,
    /// The moment at which to stop, with at least one block examined.
    pub until: Instant,
}

/// How far a walk came.
#[derive(Debug, Clone, Copy, Default)]
pub struct Walked {
    /// The last event that needs no second look.
    pub examined: Option<u64>,
    /// Whether nothing is left beyond it for now.
    pub complete: bool,
}

pub type Visit<'v> = &'v mut dyn FnMut(&EventView<'_>) -> Result<ControlFlow<()>, Failure>;

impl Walk<'_> {
    /// Visits what matches until there is nothing more, the visitor breaks (that event counts as not examined), or
    /// the time is over.
    pub fn run(&self, visit: Visit<'_>) -> Result<Walked, Failure> {
        let mut walked = Walked::default();
        let mut sight = Sight::new(self.view, self.owner);
        let mut skips = 0;
        let may_match = |facts: &BlockFacts| self.filter.matches_facts(facts);
        let sieve = self.sieve(&may_match);
        for step in self.steps(&sieve)? {
            let step = step?;
            let mut wanted = Vec::with_capacity(step.entries.len());
            for entry in &step.entries {
                if self.filter.matches_facts(&entry.facts) && sight.reaches(&entry.session)? {
                    wanted.push(entry);
                }
            }
            if wanted.is_empty() {
                skips += 1;
                if skips % SKIPS_PER_LOOK == 0 && Instant::now() >= self.until {
                    walked.examined = step_end(&step.entries, self.order).or(walked.examined);
                    return Ok(walked);
                }
                continue;
            }
            if self.step(&mut wanted, &step.only, &mut sight, visit, &mut walked)?.is_break()
                || Instant::now() >= self.until
            {
                return Ok(walked);
            }
        }
        walked.complete = true;
        Ok(walked)
    }

    fn step(
        &self,
        entries: &mut [&BlockEntry],
        only: &Option<Vec<u64>>,
        sight: &mut Sight<'_>,
        visit: Visit<'_>,
        walked: &mut Walked,
    ) -> Result<ControlFlow<()>, Failure> {
        if let ([entry], Order::Oldest) = (&*entries, self.order) {
            let block = self.view.load(entry.position)?;
            return self.stream(&block, only, sight, visit, walked);
        }
        // Blocks of one commit lie side by side: each is loaded only when the walk comes to its first event.
        let (mut waiting, mut seen) = (BTreeMap::new(), None);
        entries.sort_unstable_by_key(|entry| entry.first_seq);
        if self.order == Order::Newest {
            entries.sort_unstable_by_key(|entry| Reverse(entry.last_seq));
        }
        for entry in entries {
            let comes_first = |seq: u64| match self.order {
                Order::Oldest => seq < entry.first_seq,
                Order::Newest => seq > entry.last_seq,
            };
            if self.visit_waiting(&mut waiting, &comes_first, sight, visit, walked)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            let block = self.view.load(entry.position)?;
            for event in block.events() {
                let event = event.map_err(|error| undecodable(&block, &error.to_string()))?;
                if !self.beyond(event.seq) || !asked(only, event.seq) {
                    continue;
                }
                seen = Some(seen.map_or(event.seq, |seen: u64| match self.order {
                    Order::Oldest => seen.max(event.seq),
                    Order::Newest => seen.min(event.seq),
                }));
                if self.filter.matches(&event) {
                    waiting.insert(event.seq, OwnedEvent::of(&event));
                }
            }
        }
        if self.visit_waiting(&mut waiting, &|_| true, sight, visit, walked)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        walked.examined = seen.or(walked.examined);
        Ok(ControlFlow::Continue(()))
    }

    /// Visits those of the matches found that come before all others.
    fn visit_waiting(
        &self,
        waiting: &mut BTreeMap<u64, OwnedEvent>,
        comes_first: &dyn Fn(u64) -> bool,
        sight: &mut Sight<'_>,
        visit: Visit<'_>,
        walked: &mut Walked,
    ) -> Result<ControlFlow<()>, Failure> {
        loop {
            let next = match self.order {
                Order::Oldest => waiting.first_entry(),
                Order::Newest => waiting.last_entry(),
            };
            let Some(next) = next.filter(|next| comes_first(*next.key())) else { return Ok(ControlFlow::Continue(())) };
            let event = next.get().view();
            if sight.sees(&event)? && visit(&event)?.is_break() {
                walked.examined = match self.order {
                    Order::Oldest => event.seq.checked_sub(1),
                    Order::Newest => event.seq.checked_add(1),
                };
                return Ok(ControlFlow::Break(()));
            }
            next.remove();
        }
    }

    /// A block by itself is in order already: reading ends with the page.
    fn stream(
        &self,
        block: &Block,
        only: &Option<Vec<u64>>,
        sight: &mut Sight<'_>,
        visit: Visit<'_>,
        walked: &mut Walked,
    ) -> Result<ControlFlow<()>, Failure> {
        for event in block.events() {
            let event = event.map_err(|error| undecodable(block, &error.to_string()))?;
            if !self.beyond(event.seq) || !asked(only, event.seq) {
                continue;
            }
            if self.filter.matches(&event) && sight.sees(&event)? && visit(&event)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
            walked.examined = Some(event.seq);
        }
        Ok(ControlFlow::Continue(()))
    }

    fn beyond(&self, seq: u64) -> bool {
        match (self.after, self.order) {
            (None, _) => true,
            (Some(after), Order::Oldest) => seq > after,
            (Some(after), Order::Newest) => seq < after,
        }
    }

    fn sieve<'s>(&'s self, may_match: &'s dyn Fn(&BlockFacts) -> bool) -> Sieve<'s> {
        let filter = self.filter.filter();
        Sieve {
            may_match,
            session: filter.session_id.as_ref().map(SessionId::as_str),
            owner: self.owner,
            operation: filter.operation_id.as_ref().map(OperationId::as_str),
            page: filter.page_id.as_ref().map(PageId::as_str),
            after: self.after,
            backwards: self.order == Order::Newest,
        }
    }

    fn steps<'s>(&'s self, sieve: &'s Sieve<'s>) -> Result<Steps<'s>, Failure> {
        let filter = self.filter.filter();
        match (&filter.session_id, &filter.request_id) {
            (Some(session), Some(request)) => self.steps_of_chain(session, request.as_str()),
            (Some(session), None) if self.troubles => self.steps_of_troubles(session.as_str()),
            _ => Ok(Box::new(self.view.steps(sieve).map(|step| step.map(|entries| Step { entries, only: None })))),
        }
    }

    /// Only the blocks that hold events of one request.
    fn steps_of_chain(&self, session: &SessionId, request: &str) -> Result<Steps<'_>, Failure> {
        let chain = self.view.chain(Space::Request, session.as_str(), request)?;
        let mut steps: Vec<Result<Step, Failure>> = Vec::new();
        for (first_seq, last_seq, position) in blocks_of(&chain) {
            if self.beyond(first_seq) || self.beyond(last_seq) {
                let entries = vec![BlockEntry::anything(position, session.as_str(), first_seq, last_seq)];
                steps.push(Ok(Step { entries, only: None }));
            }
        }
        if self.order == Order::Newest {
            steps.reverse();
        }
        Ok(Box::new(steps.into_iter()))
    }

    /// Only the blocks in which requests begin that went wrong, and of their events only those.
    fn steps_of_troubles<'s>(&'s self, session: &'s str) -> Result<Steps<'s>, Failure> {
        let mut troubles = self.view.troubles(session, self.after, self.order == Order::Newest)?.peekable();
        let next_step = move || -> Result<Option<Step>, Failure> {
            while let Some(seq) = troubles.next().transpose()? {
                // The beginning may have been removed since.
                let Some(block) = self.view.block_holding(session, seq)? else { continue };
                let mut seqs = vec![seq];
                let here = |next: &Result<u64, Failure>| {
                    next.as_ref().is_ok_and(|seq| (block.first_seq..=block.last_seq).contains(seq))
                };
                while let Some(Ok(seq)) = troubles.next_if(here) {
                    seqs.push(seq);
                }
                seqs.sort_unstable();
                let (first, last) = (seqs[0], seqs[seqs.len() - 1]);
                let entries = vec![BlockEntry::anything(block.position, session, first, last)];
                return Ok(Some(Step { entries, only: Some(seqs) }));
            }
            Ok(None)
        };
        let mut next_step = next_step;
        Ok(Box::new(std::iter::from_fn(move || next_step().transpose())))
    }
}

/// Blocks read together.
struct Step {
    entries: Vec<BlockEntry>,
    /// In rising order; `None` asks for every event.
    only: Option<Vec<u64>>,
}

type Steps<'a> = Box<dyn Iterator<Item = Result<Step, Failure>> + 'a>;

fn asked(only: &Option<Vec<u64>>, seq: u64) -> bool {
    only.as_ref().is_none_or(|seqs| seqs.binary_search(&seq).is_ok())
}

/// The end of a step that a walk in this order comes to last.
fn step_end(step: &[BlockEntry], order: Order) -> Option<u64> {
    match order {
        Order::Oldest => step.iter().map(|entry| entry.last_seq).max(),
        Order::Newest => step.iter().map(|entry| entry.first_seq).min(),
    }
}

/// First and last event of a chain in each block, in order. Of frames only the first is known; those
/// of the next block end the range.
fn blocks_of(chain: &Chain) -> Vec<(u64, u64, Position)> {
    let links = chain.links.iter().map(|link| (link.seq, link.position));
    let mut all: Vec<_> = links.chain(chain.frames.iter().map(|frames| (frames.first_seq, frames.position))).collect();
    all.sort_unstable();
    all.dedup_by_key(|(_, position)| *position);
    let ends = all.iter().skip(1).map(|(seq, _)| seq - 1).chain(std::iter::once(u64::MAX));
    all.iter().zip(ends).map(|((first, position), last)| (*first, last, *position)).collect()
}

pub fn undecodable(block: &Block, what: &str) -> Failure {
    let (first_seq, last_seq) = (block.header.first_seq, block.header.last_seq);
    Failure::Storage(StorageError::Damaged { path: "log".into(), first_seq, last_seq, what: what.to_owned() })
}

/// Copies events out of their blocks, each block loaded once.
pub fn gather(view: &View, wanted: &[(Position, u64)]) -> Result<HashMap<u64, OwnedEvent>, Failure> {
    let mut wanted = wanted.to_vec();
    wanted.sort_unstable();
    let mut found = HashMap::with_capacity(wanted.len());
    for run in wanted.chunk_by(|(one, _), (other, _)| one == other) {
        let block = view.load(run[0].0)?;
        let mut next = run.iter().map(|(_, seq)| *seq).peekable();
        for event in block.events() {
            let event = event.map_err(|error| undecodable(&block, &error.to_string()))?;
            if next.next_if_eq(&event.seq).is_some() {
                found.insert(event.seq, OwnedEvent::of(&event));
            }
            if next.peek().is_none() {
                break;
            }
        }
        if next.peek().is_some() {
            return Err(view.fault_at(run[0].0, "an entry points to a block without its event"));
        }
    }
    Ok(found)
}

/// What an owner sees: their own events, and those that name no owner but lie in their session or in
/// none.
pub struct Sight<'a> {
    view: &'a View,
    owner: &'a Owner,
    reached: HashMap<Box<str>, bool>,
    owned: HashMap<Box<str>, bool>,
}

impl<'a> Sight<'a> {
    #[must_use]
    pub fn new(view: &'a View, owner: &'a Owner) -> Self {
        Self { view, owner, reached: HashMap::new(), owned: HashMap::new() }
    }

    /// Whether any event of the session can be the owner's.
    pub fn reaches(&mut self, session: &str) -> Result<bool, Failure> {
        if session.is_empty() {
            return Ok(true);
        }
        if let Some(known) = self.reached.get(session) {
            return Ok(*known);
        }
        let reached = self.view.has_session(self.owner, session)?;
        self.reached.insert(session.into(), reached);
        Ok(reached)
    }

    pub fn sees(&mut self, event: &EventView<'_>) -> Result<bool, Failure> {
        if let Some(owner) = event.context(ContextField::Owner) {
            return Ok(owner == self.owner.as_str());
        }
        let Some(session) = event.context(ContextField::SessionId) else { return Ok(true) };
        if let Some(known) = self.owned.get(session) {
            return Ok(*known);
        }
        let owned = self.view.owner_of(session)?.as_ref() == Some(self.owner);
        self.owned.insert(session.into(), owned);
        Ok(owned)
    }
}

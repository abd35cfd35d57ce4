//! Walking blocks layer by layer, past whatever a filter rules out.

use std::rc::Rc;

use crate::ids::Owner;
use crate::index::entry::{BlockEntry, StretchFacts};
use crate::index::layer::Layer;
use crate::index::rows::SessionRow;
use crate::index::stretches::{Stretches, first_seq_of, stretch_of};
use crate::index::view::{Damage, View, damages};
use crate::index::wire::{Space, end_of, key, number_of, texts_of};
use crate::index::{Failure, wire};
use crate::query::BlockFacts;

/// The blocks that share a commit, or one block.
pub type Step = Vec<BlockEntry>;
pub type Steps<'a> = Box<dyn Iterator<Item = Result<Step, Failure>> + 'a>;

/// What blocks must have to be walked to.
pub struct Sieve<'a> {
    /// Whether blocks that say this together may hold a match. False is certain, true is not.
    pub may_match: &'a dyn Fn(&BlockFacts) -> bool,
    pub session: Option<&'a str>,
    /// Whose events are looked for, when it is not for one session.
    pub owner: &'a Owner,
    pub operation: Option<&'a str>,
    pub page: Option<&'a str>,
    /// Only events beyond this one, in the walk's order.
    pub after: Option<u64>,
    pub backwards: bool,
}

impl View {
    /// The blocks with events beyond `after`, nearest first: of one session each by itself, or of the
    /// whole log commit by commit.
    pub fn steps<'a>(&'a self, sieve: &'a Sieve<'a>) -> Steps<'a> {
        let beyond = |layer: &&Layer| match (sieve.after, sieve.backwards) {
            (None, _) => true,
            (Some(after), false) => layer.last_seq > after,
            (Some(after), true) => layer.first_seq < after,
        };
        let of_layer = |layer: &'a Layer| match layer_steps(layer, sieve) {
            Ok(steps) => steps,
            Err(failure) => Box::new(std::iter::once(Err(failure))),
        };
        if sieve.backwards {
            Box::new(self.layers.iter().rev().filter(beyond).flat_map(of_layer))
        } else {
            Box::new(self.layers.iter().filter(beyond).flat_map(of_layer))
        }
    }
}

fn layer_steps<'a>(layer: &'a Layer, sieve: &'a Sieve<'a>) -> Result<Steps<'a>, Failure> {
    let damages = damages(layer)?;
    let steps: Steps<'a> = match walkable(layer, sieve)? {
        Some(mentions) => stretch_steps(layer, sieve, mentions)?,
        None => Box::new(std::iter::empty()),
    };
    Ok(damages.into_iter().fold(steps, |steps, damage| stopped(steps, damage, sieve)))
}

/// The steps up to where the log cannot be read, then the failure.
fn stopped<'a>(steps: Steps<'a>, damage: Damage, sieve: &Sieve<'a>) -> Steps<'a> {
    let passed = match (sieve.after, sieve.backwards) {
        (None, _) => false,
        (Some(after), false) => damage.last_seq <= after,
        (Some(after), true) => damage.first_seq >= after,
    };
    if passed {
        return steps;
    }
    let (first_seq, last_seq, backwards) = (damage.first_seq, damage.last_seq, sieve.backwards);
    let before = steps.take_while(move |step| match step {
        Ok(blocks) if backwards => blocks.iter().all(|block| block.first_seq > last_seq),
        Ok(blocks) => blocks.iter().all(|block| block.first_seq < first_seq),
        Err(_) => true,
    });
    Box::new(before.chain(std::iter::once(Err(damage.failure()))))
}

/// Where in a layer one of the ids that a sieve names is mentioned, by session.
type Mentions = Vec<(Box<str>, Stretches)>;

/// Whether a layer may hold a match at all, and where what the sieve names is mentioned, for each name.
fn walkable(layer: &Layer, sieve: &Sieve<'_>) -> Result<Option<Rc<[Mentions]>>, Failure> {
    let mut named: Vec<Mentions> = Vec::new();
    for (what, id) in [(wire::OPERATION, sieve.operation), (wire::PAGE, sieve.page)] {
        let Some(id) = id else { continue };
        let (about, mut mentions) = (key(Space::Mention, &[what, id], None), Mentions::new());
        if layer.may_hold(&about) {
            for entry in layer.range(&about, &end_of(&about), false) {
                let entry = entry?;
                let session = texts_of(entry.key()).nth(2).unwrap_or_default();
                mentions.push((session.into(), Stretches::decode(entry.value()).map_err(layer.meaningless())?));
            }
        }
        mentions.retain(|(session, _)| sieve.session.is_none_or(|only| only == &**session));
        if mentions.is_empty() {
            return Ok(None);
        }
        named.push(mentions);
    }
    let mentions: Rc<[Mentions]> = named.into();
    if !layer.is_table() {
        return Ok(Some(mentions));
    }
    let facts = match sieve.session {
        Some(session) => {
            let Some(entry) = layer.find(&key(Space::Span, &[session], None))? else { return Ok(None) };
            vec![StretchFacts::decode(entry.value()).map_err(layer.meaningless())?.facts]
        }
        None => {
            let Some(entry) = layer.get(&key(Space::Whole, &[], None))? else { return Ok(None) };
            let whole = StretchFacts::decode(entry.value()).map_err(layer.meaningless())?.facts;
            let mut facts = Vec::new();
            for owner in [sieve.owner.as_str(), ""] {
                if let Some(entry) = layer.find(&key(Space::Owner, &[owner], None))? {
                    let sum = SessionRow::decode(entry.value()).map_err(layer.meaningless())?;
                    facts.push(BlockFacts { kinds: kinds_of(&sum) & whole.kinds, ..whole });
                }
            }
            facts
        }
    };
    Ok(facts.iter().any(sieve.may_match).then_some(mentions))
}

/// As blocks say it: bit 0 stands for kinds of newer builds.
fn kinds_of(sum: &SessionRow) -> u128 {
    sum.counts.keys().fold(0, |set, kind| set | 1u128.checked_shl(u32::from(*kind)).unwrap_or(1))
}

/// Steps of the stretches that may hold a match.
fn stretch_steps<'a>(layer: &'a Layer, sieve: &'a Sieve<'a>, mentions: Rc<[Mentions]>) -> Result<Steps<'a>, Failure> {
    let texts = sieve.session.map(|session| vec![session]).unwrap_or_default();
    let space = if sieve.session.is_some() { Space::Stretch } else { Space::TimelineStretch };
    let prefix = key(space, &texts, None);
    let place = |stretch: u64| key(space, &texts, Some(stretch));
    let (from, to) = match (sieve.after, sieve.backwards) {
        (None, _) => (prefix.clone(), end_of(&prefix)),
        (Some(after), true) => (prefix.clone(), place(stretch_of(after.saturating_sub(1)) + 1)),
        (Some(after), false) => {
            // The block that holds what comes next may begin in an earlier stretch.
            let next = place(stretch_of(after.saturating_add(1)));
            let before = layer.range(&prefix, &next, true).next().transpose()?;
            (before.map_or(next, |entry| entry.key().to_vec()), end_of(&prefix))
        }
    };
    let stretches = layer.range(&from, &to, sieve.backwards);
    let steps = stretches.flat_map(move |entry| {
        let found = entry.and_then(|entry| {
            let stretch = number_of(entry.key()).map_err(layer.meaningless())?;
            let facts = StretchFacts::decode(entry.value()).map_err(layer.meaningless())?;
            Ok((stretch, facts))
        });
        match found {
            Ok((stretch, facts)) if may_hold(stretch, &facts, sieve, &mentions) => {
                blocks_in(layer, sieve, stretch, mentions.clone())
            }
            Ok(_) => Box::new(std::iter::empty()) as Steps<'a>,
            Err(failure) => Box::new(std::iter::once(Err(failure))),
        }
    });
    Ok(Box::new(steps))
}

fn may_hold(stretch: u64, known: &StretchFacts, sieve: &Sieve<'_>, mentions: &[Mentions]) -> bool {
    let passed = !sieve.backwards && sieve.after.is_some_and(|after| known.last_seq <= after);
    let first_seq = first_seq_of(stretch);
    !passed
        && mentions
            .iter()
            .all(|named| named.iter().any(|(_, stretches)| stretches.touch(first_seq, known.last_seq.max(first_seq))))
        && (sieve.may_match)(&known.facts)
}

/// Steps that begin in a stretch.
fn blocks_in<'a>(layer: &'a Layer, sieve: &'a Sieve<'a>, stretch: u64, mentions: Rc<[Mentions]>) -> Steps<'a> {
    let texts = sieve.session.map(|session| vec![session]).unwrap_or_default();
    let space = if sieve.session.is_some() { Space::Block } else { Space::Timeline };
    let (first, behind) = (first_seq_of(stretch), first_seq_of(stretch + 1));
    let behind = if sieve.backwards { sieve.after.map_or(behind, |after| behind.min(after)) } else { behind };
    let (from, to) = (key(space, &texts, Some(first)), key(space, &texts, Some(behind)));
    let entries = layer.range(&from, &to, sieve.backwards);
    let wanted = move |block: &BlockEntry| {
        let beyond = sieve.backwards || sieve.after.is_none_or(|after| block.last_seq > after);
        let named = |mentions: &Mentions| {
            let here = |(session, at): &(Box<str>, Stretches)| {
                **session == *block.session && at.touch(block.first_seq, block.last_seq)
            };
            mentions.iter().any(here)
        };
        beyond && mentions.iter().all(named)
    };
    let steps = entries.map(move |entry| {
        let entry = entry?;
        let step = match sieve.session {
            Some(session) => {
                let block = BlockEntry::decode(layer.place(), session, entry.key(), entry.value());
                block.map(|block| vec![block])
            }
            None => BlockEntry::decode_commit(layer.place(), entry.key(), entry.value()),
        };
        let mut step = step.map_err(layer.meaningless())?;
        step.retain(&wanted);
        Ok(step)
    });
    Box::new(steps.filter(|step| step.as_ref().is_ok_and(|blocks| !blocks.is_empty()) || step.is_err()))
}

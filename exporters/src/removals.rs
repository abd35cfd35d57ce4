//! What retention took of a selection: the `log.removed` events that concern it, added up.
//!
//! What must stay true: of announcements of one place the last counts, as `storage::event::removed`
//! says, and only when what it announces has been done. An erasure is told of only to whoever exports
//! the whole log: to everybody else it is to look as if what was erased had never been, but no count
//! claims to be exact.

use std::collections::BTreeMap;

use storage::event::catalog::LogRemoved;
use storage::event::codec::ContextField;
use storage::event::removed::{Portion, WHOLE_SEGMENT, from_json};
use storage::event::{EventView, Kind, Payload as _};
use storage::log::SegmentFacts;
use storage::query::EventFilter;

/// Announcements told apart; what is beyond is counted as it comes, so perhaps twice.
const ANNOUNCEMENTS_MAX: usize = 65_536;

/// What is missing from a selection because it was removed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Removed {
    pub events: u64,
    pub by_kind: BTreeMap<String, u64>,
    /// Whether that is how many; else there are at most as many.
    pub exact: bool,
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    owner: String,
    session: String,
    subject: String,
    segment: u64,
    generation: u64,
}

/// Gathers announcements.
pub(crate) struct Removals {
    first_seq: u64,
    last_seq: u64,
    kinds: Option<Vec<Kind>>,
    announced: BTreeMap<Place, Vec<(u16, u64)>>,
    beyond: Vec<(u16, u64)>,
    exact: bool,
}

impl Removals {
    pub fn new(first_seq: u64, last_seq: u64, filter: &EventFilter) -> Self {
        // Of what is gone only kinds are known.
        let exact =
            EventFilter { session_id: None, owner: None, kinds: None, ..filter.clone() } == EventFilter::default();
        Self { first_seq, last_seq, kinds: filter.kinds.clone(), announced: BTreeMap::new(), beyond: Vec::new(), exact }
    }

    /// Takes note of an announcement that concerns the selection's sessions or owners.
    pub fn note(&mut self, event: &EventView<'_>, erasures: bool) {
        let Ok(removed) = LogRemoved::take(event) else { return };
        if removed.subject.is_some() && !erasures {
            // Whether it concerns the selection is not told, so no count is exact any more.
            self.exact = false;
            return;
        }
        let Some(portions) = from_json(removed.kinds.as_str()) else { return };
        let text = |field: ContextField| event.context(field).unwrap_or_default().to_owned();
        let place = Place {
            owner: text(ContextField::Owner),
            session: text(ContextField::SessionId),
            subject: removed.subject.map(|subject| subject.as_str().to_owned()).unwrap_or_default(),
            segment: removed.segment,
            generation: removed.generation,
        };
        let counts: Vec<(u16, u64)> = portions.iter().filter_map(|portion| self.of_selection(portion)).collect();
        if self.announced.len() < ANNOUNCEMENTS_MAX || self.announced.contains_key(&place) {
            self.announced.insert(place, counts);
        } else {
            self.exact = false;
            self.beyond.extend(counts);
            self.beyond = added(&self.beyond).into_iter().collect();
        }
    }

    fn of_selection(&mut self, portion: &Portion) -> Option<(u16, u64)> {
        let wanted = self.kinds.as_ref().is_none_or(|kinds| kinds.iter().any(|kind| kind.number() == portion.kind));
        if !wanted || portion.last_seq < self.first_seq || portion.first_seq > self.last_seq {
            return None;
        }
        self.exact &= portion.first_seq >= self.first_seq && portion.last_seq <= self.last_seq;
        Some((portion.kind, portion.count))
    }

    /// Adds up what has been done, going by the segments that there are now.
    pub fn sum(self, segments: &[SegmentFacts]) -> Removed {
        let done = |place: &Place| {
            let now = segments.iter().find(|facts| u64::from(facts.number) == place.segment);
            now.is_none_or(|now| place.generation != WHOLE_SEGMENT && place.generation <= u64::from(now.generation))
        };
        let counts = self.announced.into_iter().filter(|(place, _)| done(place)).flat_map(|(_, counts)| counts);
        let all: Vec<(u16, u64)> = counts.chain(self.beyond).collect();
        let mut removed = Removed { exact: self.exact, ..Removed::default() };
        for (kind, count) in added(&all) {
            let name = Kind::from_number(kind).map_or_else(|| format!("unknown.{kind}"), |kind| kind.name().to_owned());
            removed.events += count;
            removed.by_kind.insert(name, count);
        }
        removed
    }
}

fn added(counts: &[(u16, u64)]) -> BTreeMap<u16, u64> {
    let mut sums = BTreeMap::new();
    for (kind, count) in counts {
        *sums.entry(*kind).or_default() += count;
    }
    sums
}

//! A filter made ready: whole blocks are ruled out by their headers, events by their fields.
//!
//! Which field of which kind a condition looks at comes from the catalogue alone, so a new kind or a
//! new field with `Role::Filter` is filtered without a change here. Only the types of console messages
//! are of several kinds: errors nobody caught have one word for all, entries of the browser's log go by
//! one word and by their source.

use std::sync::Arc;

use regex::Regex;

use crate::event::catalog::NUMBER_MAX;
use crate::event::codec::{ContextField, FIRST_FIELD};
use crate::event::{EventView, KINDS, Kind, KindFacts, Level, Role, ValueRef};
use crate::ids::{OperationId, Owner, PageId, RequestId, SessionId};
use crate::log::{BlockHeader, page_bit};
use crate::query::filter::EventFilter;

/// Names of the fields that conditions look at; the position is the condition's own.
const FIELDS: [&str; 7] = ["level", "type", "text", "url", "method", "status", "resource_type"];
const LEVEL: usize = 0;
const TYPE: usize = 1;
const TEXT: usize = 2;
const URL: usize = 3;
const METHOD: usize = 4;
const STATUS: usize = 5;
const RESOURCE_TYPE: usize = 6;

/// Field number by condition; 0 where the kind has no such field.
type FieldNumbers = [u32; FIELDS.len()];
const NO_FIELDS: FieldNumbers = [0; FIELDS.len()];
/// Kinds without a field `type`, and the word that all of their events go by.
const TYPE_WORDS: [(Kind, &str); 2] = [(Kind::ConsoleException, "exception"), (Kind::LogEntry, "browser")];
const CONTEXT_FIELDS: usize = ContextField::RequestId as usize + 1;

/// A validated filter. Cheap to clone.
#[derive(Debug, Clone)]
pub struct CompiledFilter(Arc<Compiled>);

#[derive(Debug)]
struct Compiled {
    filter: EventFilter,
    text: Option<Regex>,
    url: Option<Regex>,
    fingerprint: [u8; 16],
    active: [bool; FIELDS.len()],
    numbers: Vec<FieldNumbers>,
    /// Text asked for by number of the context field.
    context: [Option<Box<str>>; CONTEXT_FIELDS],
    /// Conditions on fields, all told.
    wanted: usize,
    /// Bit n: kind n can match; bit 0 stands for kinds of newer builds.
    kinds: u128,
    /// Bit n: kind n is asked for by its word, whatever its fields.
    typed: u128,
    /// Bit n: level n passes the threshold; all of them without one.
    levels: u8,
    /// Zero without a page condition.
    page: u64,
}

/// What a block says about its events, from its header or from the index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockFacts {
    pub first_micros: i64,
    pub last_micros: i64,
    pub kinds: u128,
    pub levels: u8,
    pub pages: u64,
}

impl BlockFacts {
    /// What no filter may rule out.
    pub(crate) const ANYTHING: Self =
        Self { first_micros: i64::MIN, last_micros: i64::MAX, kinds: u128::MAX, levels: u8::MAX, pages: u64::MAX };

    /// Takes in what another block says.
    pub(crate) fn unite(&mut self, other: &Self) {
        let (first, last) = (other.first_micros.min(other.last_micros), other.first_micros.max(other.last_micros));
        (self.first_micros, self.last_micros) =
            (self.first_micros.min(self.last_micros).min(first), self.first_micros.max(self.last_micros).max(last));
        self.kinds |= other.kinds;
        self.levels |= other.levels;
        self.pages |= other.pages;
    }
}

impl CompiledFilter {
    pub(super) fn new(filter: EventFilter, text: Option<Regex>, url: Option<Regex>) -> Self {
        let active = [
            filter.level.is_some(),
            !filter.types.is_empty(),
            text.is_some(),
            url.is_some(),
            filter.method.is_some(),
            filter.status.is_some(),
            !filter.resource_types.is_empty(),
        ];
        let asked = |word: &str| filter.types.iter().any(|asked| asked.eq_ignore_ascii_case(word));
        let typed =
            TYPE_WORDS.iter().filter(|(_, word)| asked(word)).map(|(kind, _)| kind_bit(kind.number())).sum::<u128>();
        let mut numbers = vec![[0; FIELDS.len()]; usize::from(NUMBER_MAX) + 1];
        for facts in KINDS {
            numbers[usize::from(facts.number)] = field_numbers(facts, typed);
        }
        let levels = filter.level.map_or(u8::MAX, |threshold| {
            Level::ALL.into_iter().filter(|level| *level >= threshold).map(|level| 1 << level as u8).sum()
        });
        let context = context_wanted(&filter);
        Self(Arc::new(Compiled {
            wanted: active.iter().filter(|active| **active).count() + context.iter().flatten().count(),
            context,
            kinds: possible_kinds(&filter, &active, &numbers, typed),
            typed,
            levels,
            page: filter.page_id.as_ref().map_or(0, |page| page_bit(page.as_str())),
            fingerprint: filter.fingerprint(),
            active,
            numbers,
            filter,
            text,
            url,
        }))
    }

    #[must_use]
    pub fn filter(&self) -> &EventFilter {
        &self.0.filter
    }

    #[must_use]
    pub fn fingerprint(&self) -> [u8; 16] {
        self.0.fingerprint
    }

    pub(super) fn url(&self) -> Option<&Regex> {
        self.0.url.as_ref()
    }

    /// Whether a block may hold a match. False is certain, true is not.
    #[must_use]
    pub fn matches_block(&self, header: &BlockHeader) -> bool {
        if let (Some(wanted), Some(session)) = (&self.0.filter.session_id, &header.session_id)
            && wanted != session
        {
            return false;
        }
        if self.0.filter.session_id.is_some() && header.session_id.is_none() {
            return false;
        }
        self.matches_facts(&BlockFacts {
            first_micros: header.first_micros,
            last_micros: header.last_micros,
            kinds: header.kinds,
            levels: header.levels,
            pages: header.pages,
        })
    }

    /// As [`CompiledFilter::matches_block`], for a block already known to be of the right session.
    pub(crate) fn matches_facts(&self, block: &BlockFacts) -> bool {
        let inner = &*self.0;
        // A block holds events of one commit or of neighbouring ones, so its first and last moment are
        // its extremes in one order or, when the clock was set back between them, in the other.
        let since = inner.filter.since_micros.is_none_or(|since| block.first_micros.max(block.last_micros) >= since);
        let until = inner.filter.until_micros.is_none_or(|until| block.first_micros.min(block.last_micros) <= until);
        block.kinds & inner.kinds != 0
            && (!inner.active[LEVEL] || block.levels & inner.levels != 0)
            && (inner.page == 0 || block.pages & inner.page != 0)
            && since
            && until
    }

    /// Whether an event of that kind and level may match, whatever else is asked.
    #[must_use]
    pub(super) fn admits(&self, kind: u16, level: Option<Level>) -> bool {
        let passes = |level: Level| self.0.levels & (1 << level as u8) != 0;
        self.0.kinds & kind_bit(kind) != 0 && (!self.0.active[LEVEL] || level.is_some_and(passes))
    }

    /// Whether all conditions hold for an event.
    #[must_use]
    pub fn matches(&self, view: &EventView<'_>) -> bool {
        let inner = &*self.0;
        let at = view.recorded_at_micros;
        if inner.kinds & kind_bit(view.kind_number) == 0
            || inner.filter.since_micros.is_some_and(|since| at < since)
            || inner.filter.until_micros.is_some_and(|until| at > until)
        {
            return false;
        }
        let typed = inner.typed & kind_bit(view.kind_number) != 0;
        let mut wanted = inner.wanted - usize::from(typed);
        if wanted == 0 {
            return true;
        }
        // Without a row in the catalogue a kind has no field that a condition could look at.
        let numbers = inner.numbers.get(usize::from(view.kind_number)).unwrap_or(&NO_FIELDS);
        for (number, value) in view.fields() {
            let holds = if number < FIRST_FIELD {
                inner.context_holds(number, value)
            } else {
                inner.holds(numbers, number, value)
            };
            match holds {
                Some(false) => return false,
                Some(true) => wanted -= 1,
                None => {}
            }
            if wanted == 0 {
                return true;
            }
        }
        false
    }
}

impl Compiled {
    /// `None` when nothing is asked of this field.
    fn context_holds(&self, number: u32, value: ValueRef<'_>) -> Option<bool> {
        let wanted = self.context.get(number as usize)?.as_deref()?;
        Some(value.as_str() == Some(wanted))
    }

    /// `None` when nothing is asked of this field.
    fn holds(&self, numbers: &FieldNumbers, number: u32, value: ValueRef<'_>) -> Option<bool> {
        let condition =
            numbers.iter().position(|field| *field == number).filter(|condition| self.active[*condition])?;
        Some(self.condition_holds(condition, value))
    }

    fn condition_holds(&self, condition: usize, value: ValueRef<'_>) -> bool {
        let among = |words: &[String]| {
            value.as_str().is_some_and(|text| words.iter().any(|word| word.eq_ignore_ascii_case(text)))
        };
        let found = |pattern: &Option<Regex>| {
            value.as_str().is_some_and(|text| pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)))
        };
        match condition {
            LEVEL => value.as_u64().is_some_and(|level| level < 8 && self.levels & (1 << level) != 0),
            TYPE => among(&self.filter.types),
            TEXT => found(&self.text),
            URL => found(&self.url),
            METHOD => among(self.filter.method.as_slice()),
            STATUS => value.as_u64().is_some_and(|status| self.filter.status.is_none_or(|range| range.holds(status))),
            RESOURCE_TYPE => among(&self.filter.resource_types),
            _ => false,
        }
    }
}

/// The bit of a kind number in a set of kinds; all that this build cannot tell apart share bit 0.
pub(crate) fn kind_bit(number: u16) -> u128 {
    if number <= NUMBER_MAX { 1 << number } else { 1 }
}

fn context_wanted(filter: &EventFilter) -> [Option<Box<str>>; CONTEXT_FIELDS] {
    let mut wanted = [const { None }; CONTEXT_FIELDS];
    let mut ask = |field: ContextField, text: Option<&str>| wanted[field as usize] = text.map(Box::from);
    ask(ContextField::SessionId, filter.session_id.as_ref().map(SessionId::as_str));
    ask(ContextField::Owner, filter.owner.as_ref().map(Owner::as_str));
    ask(ContextField::PageId, filter.page_id.as_ref().map(PageId::as_str));
    ask(ContextField::OperationId, filter.operation_id.as_ref().map(OperationId::as_str));
    ask(ContextField::RequestId, filter.request_id.as_ref().map(RequestId::as_str));
    wanted
}

fn field_numbers(facts: &KindFacts, typed: u128) -> FieldNumbers {
    FIELDS.map(|name| {
        let name = match name {
            "type" if typed & kind_bit(facts.number) != 0 => return 0,
            "type" if facts.number == Kind::LogEntry.number() => "source",
            name => name,
        };
        let place = facts.fields.iter().position(|field| field.name == name && field.roles.contains(&Role::Filter));
        place.map_or(0, |place| FIRST_FIELD + place as u32)
    })
}

fn possible_kinds(filter: &EventFilter, active: &[bool; FIELDS.len()], numbers: &[FieldNumbers], typed: u128) -> u128 {
    let mut kinds = match &filter.kinds {
        Some(kinds) => kinds.iter().fold(0, |set, kind| set | kind_bit(kind.number())),
        None => u128::MAX,
    };
    for (number, fields) in numbers.iter().enumerate() {
        let bit: u128 = 1 << number;
        let lacks = |condition: usize| fields[condition] == 0 && (condition != TYPE || typed & bit == 0);
        if (0..FIELDS.len()).any(|condition| active[condition] && lacks(condition)) {
            kinds &= !bit;
        }
    }
    let failure = kind_bit(Kind::NetworkFailed.number());
    match filter.failed {
        Some(true) => kinds & failure,
        Some(false) => kinds & !failure,
        None => kinds,
    }
}

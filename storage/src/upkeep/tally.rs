//! Counts what is taken out of one segment, by whose it was, and says it as `log.removed` events.

use std::collections::{BTreeMap, HashMap, HashSet};

use crate::event::catalog::LogRemoved;
use crate::event::codec::ContextField;
use crate::event::removed::{Portion, to_json};
use crate::event::{Class, Clean, Context, Draft, EventView};
use crate::ids::{Owner, SessionId};
use crate::upkeep::contents::{Handle, handle};
use crate::upkeep::plan::Reason;

/// Why events went, as it is recorded.
#[derive(Debug, Clone)]
pub struct Grounds {
    pub reason: Reason,
    pub by: Option<Clean>,
    pub note: Option<Clean>,
    pub subject: Option<Clean>,
}

impl Grounds {
    pub fn plain(reason: Reason) -> Self {
        Self { reason, by: None, note: None, subject: None }
    }
}

#[derive(Default)]
pub struct Tally {
    /// By session and owner; empty where an event names none.
    portions: HashMap<Box<str>, HashMap<Box<str>, Vec<Portion>>>,
    /// The owner that a session's events name, kept ones among them.
    owners: HashMap<Box<str>, Box<str>>,
    /// How many, by class.
    pub removed: [u64; 3],
    /// What the events taken out named.
    pub handles: HashSet<Handle>,
}

impl Tally {
    /// Learns whose a session is. Some events of a session do not say.
    pub fn meet(&mut self, view: &EventView<'_>) {
        let Some(session) = view.context(ContextField::SessionId) else { return };
        if let Some(owner) = view.context(ContextField::Owner)
            && self.owners.get(session).is_none_or(|known| &**known != owner)
        {
            self.owners.insert(session.into(), owner.into());
        }
    }

    pub fn remove(&mut self, class: Class, view: &EventView<'_>) {
        self.removed[class as usize] += 1;
        self.handles.extend(view.handles().filter_map(handle));
        let session = view.context(ContextField::SessionId).unwrap_or_default();
        let owner = view.context(ContextField::Owner).unwrap_or_default();
        let owners = entry(&mut self.portions, session);
        add(entry(owners, owner), Portion::of(view));
    }

    /// One event for each owner and session concerned.
    pub fn by_session(&self, grounds: &Grounds, segment: u32, generation: u64) -> Vec<Draft> {
        let mut whose: BTreeMap<(&str, &str), Vec<Portion>> = BTreeMap::new();
        for (session, owners) in &self.portions {
            for (owner, portions) in owners {
                let known = self.owners.get(session).filter(|_| owner.is_empty());
                let all = whose.entry((known.unwrap_or(owner), session)).or_default();
                portions.iter().for_each(|portion| add(all, *portion));
            }
        }
        let draft = |((owner, session), portions): ((&str, &str), Vec<Portion>)| {
            let context = Context {
                session_id: Some(session).filter(|session| !session.is_empty()).map(SessionId::from),
                owner: Some(owner).filter(|owner| !owner.is_empty()).map(Owner::from),
                ..Context::default()
            };
            Draft::new(&context, &announcement(grounds, segment, generation, portions))
        };
        whose.into_iter().map(draft).collect()
    }

    /// One event for all, which names nobody; none when there is nothing to tell.
    pub fn together(&self, grounds: &Grounds, segment: u32, generation: u64) -> Option<Draft> {
        let mut all = Vec::new();
        let portions = self.portions.values().flat_map(|owners| owners.values().flatten());
        portions.for_each(|portion| add(&mut all, *portion));
        let announced = (!all.is_empty()).then(|| announcement(grounds, segment, generation, all));
        announced.map(|announced| Draft::new(&Context::default(), &announced))
    }
}

fn entry<'a, T: Default>(map: &'a mut HashMap<Box<str>, T>, key: &str) -> &'a mut T {
    if !map.contains_key(key) {
        map.insert(key.into(), T::default());
    }
    map.entry(key.into()).or_default()
}

fn add(portions: &mut Vec<Portion>, portion: Portion) {
    match portions.iter_mut().find(|known| (known.kind, known.level) == (portion.kind, portion.level)) {
        Some(known) => known.add(&portion),
        None => portions.push(portion),
    }
}

fn announcement(grounds: &Grounds, segment: u32, generation: u64, mut portions: Vec<Portion>) -> LogRemoved {
    portions.sort_unstable_by_key(|portion| (portion.kind, portion.level));
    LogRemoved {
        reason: grounds.reason.as_str().into(),
        segment: u64::from(segment),
        generation,
        first_seq: portions.iter().map(|portion| portion.first_seq).min().unwrap_or(0),
        last_seq: portions.iter().map(|portion| portion.last_seq).max().unwrap_or(0),
        count: portions.iter().map(|portion| portion.count).sum(),
        kinds: to_json(&portions),
        by: grounds.by.clone(),
        note: grounds.note.clone(),
        subject: grounds.subject.clone(),
    }
}

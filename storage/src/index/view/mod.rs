//! One consistent look at what is known, for one question.
//!
//! A view takes the segments as they are at one moment, each in one generation, with the layers that
//! are made of exactly those. What is in no layer yet, normally nothing, is folded from the log for
//! this question alone. Rows are joined over layers, oldest first; blocks are walked layer by layer.

mod blocks;
mod steps;
mod troubles;

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};

use crate::StorageError;
use crate::ids::{ArtifactHandle, Owner, SessionId};
use crate::index::Failure;
use crate::index::build::{self, Job};
use crate::index::chain::Chain;
use crate::index::layer::{self, Layer};
use crate::index::lost::Lost;
use crate::index::rows::{ArtifactRow, SessionRow};
use crate::index::shared::Shared;
use crate::index::shelf::{self, Hole};
use crate::index::wire::{Space, Taken, end_of, key, number_of, texts_of};
use crate::log::{Reader, SegmentFacts};

use blocks::Loaded;
pub use steps::Sieve;

pub struct View {
    /// In order of their numbers.
    layers: Vec<Layer>,
    segments: Vec<SegmentFacts>,
    pub reader: Reader,
    loaded: RefCell<Loaded>,
}

impl View {
    /// With `only`, nothing is promised but on that session. Without `shared`, all is folded from the
    /// log.
    pub fn over(
        shared: Option<&Shared>,
        reader: &Reader,
        last_seq: u64,
        only: Option<&SessionId>,
    ) -> Result<Self, Failure> {
        let segments = reader.segments()?;
        let (layers, loaded) = (Vec::new(), RefCell::default());
        let mut view = Self { layers, segments: Vec::new(), reader: reader.clone(), loaded };
        for facts in segments.iter().filter(|facts| facts.first_seq <= last_seq) {
            view.add(shared, facts, only)?;
        }
        view.segments = segments;
        Ok(view)
    }

    fn add(&mut self, shared: Option<&Shared>, facts: &SegmentFacts, only: Option<&SessionId>) -> Result<(), Failure> {
        let on_shelf = |shared: &Shared| shared.shelf.layers(facts.number, facts.generation);
        let mut known = shared.map(on_shelf).unwrap_or_default();
        let mut holes = shelf::holes(facts, &known);
        if let Some(shared) = shared.filter(|_| !holes.is_empty())
            && shared.adopt(&self.reader, facts)?
        {
            known = on_shelf(shared);
            holes = shelf::holes(facts, &known);
        }
        if let Some(shared) = shared.filter(|shared| only.is_none() && shared.is_for_tables(facts) && !holes.is_empty())
        {
            // A whole segment is folded with bounded memory where its table can be written.
            match shared.fill(&self.reader, facts, &|| false) {
                Ok(()) => {
                    known = on_shelf(shared);
                    holes = shelf::holes(facts, &known);
                }
                Err(Failure::Storage(error)) => return Err(Failure::Storage(error)),
                Err(failure) => shared.report(failure),
            }
        }
        let mut known = known.into_iter().peekable();
        for hole in holes {
            while let Some(layer) = known.next_if(|layer| layer.start < hole.start) {
                self.layers.push(layer);
            }
            let folded = self.fold(facts, hole, only)?;
            self.layers.extend(folded);
        }
        self.layers.extend(known);
        Ok(())
    }

    fn fold(&self, facts: &SegmentFacts, hole: Hole, only: Option<&SessionId>) -> Result<Vec<Layer>, Failure> {
        let job = Job { reader: &self.reader, facts, hole, only };
        let earlier = |session: &str, id: &str| {
            let chain = layer::chain(&self.layers, Space::Request, session, id)?;
            Ok(chain.start().map(|link| link.seq))
        };
        build::in_memory(&job, &earlier)
    }

    /// The row of what an owner has in a session, what names no owner included where it is theirs.
    pub fn session(&self, owner: &Owner, session: &SessionId) -> Result<Option<SessionRow>, Failure> {
        let unowned = self.owner_of(session.as_str())?.as_ref() == Some(owner) && !owner.as_str().is_empty();
        let mut row = None;
        for layer in &self.layers {
            for owner in std::iter::once(owner.as_str()).chain(unowned.then_some("")) {
                if let Some(entry) = layer.find(&key(Space::Session, &[owner, session.as_str()], None))? {
                    join(&mut row, SessionRow::decode(entry.value()).map_err(layer.meaningless())?);
                }
            }
        }
        Ok(row.map(|row| SessionRow { owner: owner.clone(), ..row }))
    }

    /// Whether an owner has anything in a session.
    pub fn has_session(&self, owner: &Owner, session: &str) -> Result<bool, Failure> {
        let key = key(Space::Session, &[owner.as_str(), session], None);
        for layer in self.layers.iter().rev() {
            if layer.find(&key)?.is_some() {
                return Ok(true);
            }
        }
        Ok(self.owner_of(session)?.as_ref() == Some(owner))
    }

    /// All of an owner's rows in order of their first event. The row of no session comes under an
    /// empty id.
    pub fn sessions(&self, owner: &Owner) -> Result<Vec<SessionRow>, Failure> {
        let mut rows: HashMap<SessionId, Option<SessionRow>> = HashMap::new();
        let unowned = self.unowned(owner)?;
        for layer in &self.layers {
            let mut take = |row: SessionRow| {
                let place = rows.entry(row.session_id.clone()).or_default();
                join(place, SessionRow { owner: owner.clone(), ..row });
            };
            let known = layer.may_hold(&key(Space::Owner, &[owner.as_str()], None));
            if known || !layer.is_table() {
                rows_of(layer, owner.as_str(), &mut take)?;
            }
            for session in &unowned {
                if let Some(entry) = layer.find(&key(Space::Session, &["", session.as_str()], None))? {
                    take(SessionRow::decode(entry.value()).map_err(layer.meaningless())?);
                }
            }
        }
        let mut rows: Vec<SessionRow> = rows.into_values().flatten().collect();
        rows.sort_by_key(|row| row.first_seq);
        Ok(rows)
    }

    /// What all rows that an owner may see count: the owner's, and those of no session and nobody.
    pub fn totals(&self, owner: &Owner) -> Result<SessionRow, Failure> {
        let mut sum = SessionRow::new(owner.as_str(), "", u64::MAX, 0);
        let nobodys = key(Space::Session, &["", ""], None);
        let unowned = self.unowned(owner)?;
        for layer in &self.layers {
            if layer.is_table() {
                if let Some(entry) = layer.find(&key(Space::Owner, &[owner.as_str()], None))? {
                    sum.add(&SessionRow::decode(entry.value()).map_err(layer.meaningless())?);
                }
            } else {
                rows_of(layer, owner.as_str(), &mut |row| sum.add(&row))?;
            }
            let others = unowned.iter().map(|session| key(Space::Session, &["", session.as_str()], None));
            for key in others.chain(std::iter::once(nobodys.clone())) {
                if let Some(entry) = layer.find(&key)? {
                    sum.add(&SessionRow::decode(entry.value()).map_err(layer.meaningless())?);
                }
            }
        }
        Ok(sum)
    }

    /// Sessions of an owner that have events which name nobody.
    fn unowned(&self, owner: &Owner) -> Result<Vec<SessionId>, Failure> {
        let mut whose: BTreeMap<String, bool> = BTreeMap::new();
        if owner.as_str().is_empty() {
            return Ok(Vec::new());
        }
        for layer in &self.layers {
            if layer.is_table() && !layer.may_hold(&key(Space::Owner, &[""], None)) {
                continue;
            }
            let mut sessions = Vec::new();
            rows_of(layer, "", &mut |row| sessions.push(row.session_id))?;
            for session in sessions.iter().map(SessionId::as_str).filter(|session| !session.is_empty()) {
                if !whose.contains_key(session) {
                    whose.insert(session.to_owned(), self.owner_of(session)?.as_ref() == Some(owner));
                }
            }
        }
        Ok(whose.into_iter().filter(|(_, own)| *own).map(|(session, _)| SessionId::from(session)).collect())
    }

    /// Whose the latest launch of a session is.
    pub fn owner_of(&self, session: &str) -> Result<Option<Owner>, Failure> {
        let key = key(Space::Current, &[session], None);
        for layer in self.layers.iter().rev() {
            if let Some(entry) = layer.find(&key)? {
                let owner = std::str::from_utf8(entry.value()).map_err(layer.meaningless())?;
                return Ok(Some(Owner::from(owner)));
            }
        }
        Ok(None)
    }

    pub fn artifact(&self, owner: &Owner, handle: &ArtifactHandle) -> Result<Option<ArtifactRow>, Failure> {
        let key = key(Space::Artifact, &[owner.as_str(), handle.as_str()], None);
        let mut standing_in = None;
        for layer in self.layers.iter().rev() {
            if let Some(entry) = layer.find(&key)? {
                let row = ArtifactRow::decode(entry.value()).map_err(layer.meaningless())?;
                if !ArtifactRow::stands_in(entry.value()).map_err(layer.meaningless())? {
                    return Ok(Some(row));
                }
                // Of those that stand in for another event, the earliest tells.
                standing_in = Some(row);
            }
        }
        Ok(standing_in)
    }

    /// The events of one request or download; an empty chain when there are none.
    pub fn chain(&self, space: Space, session: &str, id: &str) -> Result<Chain, Failure> {
        layer::chain(&self.layers, space, session, id)
    }

    /// What retention took of an owner's session, or of all that the owner may see.
    pub fn lost(&self, owner: &Owner, session: Option<&SessionId>) -> Result<Vec<Lost>, Failure> {
        let prefixes = [owner.as_str(), ""].map(|owner| match session {
            Some(session) => key(Space::Lost, &[owner, session.as_str()], None),
            None => key(Space::Lost, &[owner], None),
        });
        let mut announced: BTreeMap<Vec<u8>, Lost> = BTreeMap::new();
        for layer in &self.layers {
            for prefix in prefixes.iter().filter(|prefix| session.is_none() || layer.may_hold(prefix)) {
                for entry in layer.range(prefix, &end_of(prefix), false) {
                    let entry = entry?;
                    let lost = Lost::decode(entry.value()).map_err(layer.meaningless())?;
                    announced.insert(entry.key().to_vec(), lost);
                }
            }
        }
        let mut lost = Vec::new();
        for (key, announced) in announced {
            if self.took_place(&announced) && self.is_for(owner, &key)? {
                lost.push(announced);
            }
        }
        Ok(lost)
    }

    /// Whether what was announced is so by now.
    fn took_place(&self, lost: &Lost) -> bool {
        let now = self.segments.iter().find(|facts| facts.number == lost.segment);
        now.is_none_or(|now| lost.generation.is_some_and(|generation| generation <= now.generation))
    }

    /// Whether an announcement concerns an owner: by name, or because it names nobody and is of no
    /// session or of the owner's.
    fn is_for(&self, owner: &Owner, key: &[u8]) -> Result<bool, Failure> {
        let mut texts = texts_of(key);
        let (named, session) = (texts.next().unwrap_or_default(), texts.next().unwrap_or_default());
        Ok(named == owner.as_str() || session.is_empty() || self.owner_of(session)?.as_ref() == Some(owner))
    }

    /// Says so when something between `first_seq` and `last_seq` cannot be read.
    pub fn check_readable(&self, first_seq: u64, last_seq: u64) -> Result<(), Failure> {
        let near = |layer: &&Layer| layer.last_seq >= first_seq && layer.first_seq <= last_seq;
        for layer in self.layers.iter().filter(near) {
            for damage in damages(layer)? {
                if damage.last_seq >= first_seq && damage.first_seq <= last_seq {
                    return Err(damage.failure());
                }
            }
        }
        Ok(())
    }
}

/// Events that cannot be read.
struct Damage {
    first_seq: u64,
    last_seq: u64,
    what: String,
}

impl Damage {
    fn failure(&self) -> Failure {
        let Self { first_seq, last_seq, what } = self;
        Failure::Storage(StorageError::Damaged {
            path: "log".into(),
            first_seq: *first_seq,
            last_seq: *last_seq,
            what: what.clone(),
        })
    }
}

fn damages(layer: &Layer) -> Result<Vec<Damage>, Failure> {
    let prefix = key(Space::Damage, &[""], None);
    let mut found = Vec::new();
    if layer.may_hold(&prefix) {
        for entry in layer.range(&prefix, &end_of(&prefix), false) {
            let entry = entry?;
            let mut input = Taken(entry.value());
            let first_seq = number_of(entry.key()).map_err(layer.meaningless())?;
            let last_seq = input.number().map_err(layer.meaningless())?;
            let what = input.text().map_err(layer.meaningless())?.to_owned();
            found.push(Damage { first_seq, last_seq, what });
        }
    }
    Ok(found)
}

fn rows_of(layer: &Layer, owner: &str, take: &mut dyn FnMut(SessionRow)) -> Result<(), Failure> {
    let prefix = key(Space::Session, &[owner], None);
    for entry in layer.range(&prefix, &end_of(&prefix), false) {
        take(SessionRow::decode(entry?.value()).map_err(layer.meaningless())?);
    }
    Ok(())
}

fn join(row: &mut Option<SessionRow>, later: SessionRow) {
    match row {
        Some(row) => row.join(&later),
        None => *row = Some(later),
    }
}

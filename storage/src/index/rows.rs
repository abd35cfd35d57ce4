//! What the index knows about a session or an artifact: facts folded from events.
//!
//! A row is first folded from one part of the log; rows of neighbouring parts join into the row of
//! both. Everything here can be made again from the log.

use std::collections::BTreeMap;

use crate::event::Kind;
use crate::ids::{ArtifactHandle, InstanceId, Owner, SessionId};
use crate::index::wire::{Meaningless, Parts, Taken};

/// Distinct names of lost things that a session's row tells apart; the rest are summed under `other`.
pub const DROPPED_NAMES_MAX: usize = 64;

/// One session of one owner.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRow {
    pub session_id: SessionId,
    pub owner: Owner,
    /// Name the client gave; empty when no launch is on record.
    pub name: String,
    /// Of the latest launch.
    pub instance_id: Option<InstanceId>,
    pub first_seq: u64,
    pub last_seq: u64,
    pub first_micros: i64,
    pub last_micros: i64,
    /// Moments of the latest launch.
    pub launching_micros: Option<i64>,
    pub opened_micros: Option<i64>,
    pub crashed_micros: Option<i64>,
    pub closed_micros: Option<i64>,
    /// Reason of the latest `session.crashed` or `session.closed`.
    pub reason: Option<String>,
    /// Events held, by kind number; 0 stands for kinds of newer builds.
    pub counts: BTreeMap<u16, u64>,
    /// Events declared missing by `gap` events, by what they were.
    pub dropped: BTreeMap<String, u64>,
    /// `network.request` events that only go on after a redirect.
    pub redirect_legs: u64,
}

impl SessionRow {
    /// Events held of these kinds; of all kinds when `None`.
    #[must_use]
    pub fn count(&self, kinds: Option<&[Kind]>) -> u64 {
        match kinds {
            None => self.counts.values().sum(),
            Some(kinds) => distinct(kinds).filter_map(|kind| self.counts.get(&kind.number())).sum(),
        }
    }

    /// Events declared missing from the stream of these kinds. What is named by no kind (a browser
    /// method, say) may have been of any kind and counts for every stream.
    #[must_use]
    pub fn dropped(&self, kinds: Option<&[Kind]>) -> u64 {
        let concerns = |what: &str| match (kinds, Kind::from_name(what)) {
            (Some(kinds), Some(kind)) => kinds.contains(&kind),
            _ => true,
        };
        self.dropped.iter().filter(|(what, _)| concerns(what)).map(|(_, count)| count).sum()
    }
}

fn distinct(kinds: &[Kind]) -> impl Iterator<Item = Kind> + '_ {
    kinds.iter().enumerate().filter(|(place, kind)| !kinds[..*place].contains(kind)).map(|(_, kind)| *kind)
}

/// One artifact as its owner knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ArtifactRow {
    pub handle: ArtifactHandle,
    pub owner: Owner,
    pub session_id: Option<SessionId>,
    /// `result`, `body`, `console_text`, `screenshot`, `download`, `export`.
    pub purpose: String,
    pub media_type: String,
    pub bytes: u64,
    /// SHA-256 in hexadecimal; empty when the event did not say.
    pub sha256: String,
    /// Event that told of it last.
    pub seq: u64,
}

impl SessionRow {
    pub(super) fn new(owner: &str, session: &str, seq: u64, micros: i64) -> Self {
        Self {
            session_id: session.into(),
            owner: owner.into(),
            name: String::new(),
            instance_id: None,
            first_seq: seq,
            last_seq: 0,
            first_micros: micros,
            last_micros: micros,
            launching_micros: None,
            opened_micros: None,
            crashed_micros: None,
            closed_micros: None,
            reason: None,
            counts: BTreeMap::new(),
            dropped: BTreeMap::new(),
            redirect_legs: 0,
        }
    }

    /// Requests and WebSockets begun: a request that was redirected counts once.
    #[must_use]
    pub fn requests(&self) -> u64 {
        self.count(Some(&[Kind::NetworkRequest, Kind::WebSocketOpened])).saturating_sub(self.redirect_legs)
    }

    pub(super) fn drop_counted(&mut self, what: &str, count: u64) {
        let known = self.dropped.contains_key(what) || self.dropped.len() < DROPPED_NAMES_MAX;
        let sum = self.dropped.entry(if known { what } else { "other" }.to_owned()).or_default();
        *sum = sum.saturating_add(count);
    }

    /// Takes in the row of a later part of the log.
    pub(super) fn join(&mut self, later: &Self) {
        if later.launching_micros.is_some() {
            self.name.clone_from(&later.name);
            (self.launching_micros, self.opened_micros) = (later.launching_micros, later.opened_micros);
            (self.crashed_micros, self.closed_micros) = (later.crashed_micros, later.closed_micros);
            (self.instance_id, self.reason) = (later.instance_id.clone(), later.reason.clone());
        } else {
            self.opened_micros = later.opened_micros.or(self.opened_micros);
            self.crashed_micros = later.crashed_micros.or(self.crashed_micros);
            self.closed_micros = later.closed_micros.or(self.closed_micros);
            self.instance_id = later.instance_id.clone().or(self.instance_id.take());
            self.reason = later.reason.clone().or(self.reason.take());
        }
        self.add(later);
    }

    /// Takes in what the row of another session or owner counts.
    pub(super) fn add(&mut self, other: &Self) {
        if other.first_seq < self.first_seq {
            (self.first_seq, self.first_micros) = (other.first_seq, other.first_micros);
        }
        if other.last_seq > self.last_seq {
            (self.last_seq, self.last_micros) = (other.last_seq, other.last_micros);
        }
        for (kind, count) in &other.counts {
            *self.counts.entry(*kind).or_default() += count;
        }
        for (what, count) in &other.dropped {
            self.drop_counted(what, *count);
        }
        self.redirect_legs += other.redirect_legs;
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = Parts::default();
        out.text(self.session_id.as_str()).text(self.owner.as_str()).text(&self.name);
        out.maybe(self.instance_id.as_ref().map(InstanceId::as_str));
        out.number(self.first_seq).number(self.last_seq).signed(self.first_micros).signed(self.last_micros);
        out.moment(self.launching_micros).moment(self.opened_micros);
        out.moment(self.crashed_micros).moment(self.closed_micros);
        out.maybe(self.reason.as_deref()).number(self.redirect_legs);
        out.number(self.counts.len() as u64);
        for (kind, count) in &self.counts {
            out.number(u64::from(*kind)).number(*count);
        }
        out.number(self.dropped.len() as u64);
        for (what, count) in &self.dropped {
            out.text(what).number(*count);
        }
        out.0
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Meaningless> {
        let mut input = Taken(bytes);
        let mut row = Self {
            session_id: input.text()?.into(),
            owner: input.text()?.into(),
            name: input.text()?.into(),
            instance_id: input.maybe()?.map(InstanceId::from),
            first_seq: input.number()?,
            last_seq: input.number()?,
            first_micros: input.signed()?,
            last_micros: input.signed()?,
            launching_micros: input.moment()?,
            opened_micros: input.moment()?,
            crashed_micros: input.moment()?,
            closed_micros: input.moment()?,
            reason: input.maybe()?.map(str::to_owned),
            redirect_legs: input.number()?,
            counts: BTreeMap::new(),
            dropped: BTreeMap::new(),
        };
        for _ in 0..input.number()? {
            row.counts.insert(input.small()?, input.number()?);
        }
        for _ in 0..input.number()? {
            let what = input.text()?.to_owned();
            row.dropped.insert(what, input.number()?);
        }
        Ok(row)
    }
}

impl ArtifactRow {
    /// `stands_in`: made from an event that only stands in for an `artifact.kept`.
    pub(super) fn encode(&self, stands_in: bool) -> Vec<u8> {
        let mut out = Parts::default();
        out.number(u64::from(stands_in)).text(self.handle.as_str()).text(self.owner.as_str());
        out.maybe(self.session_id.as_ref().map(SessionId::as_str));
        out.text(&self.purpose).text(&self.media_type).number(self.bytes).text(&self.sha256).number(self.seq);
        out.0
    }

    pub(super) fn stands_in(bytes: &[u8]) -> Result<bool, Meaningless> {
        Ok(Taken(bytes).number()? != 0)
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self, Meaningless> {
        let mut input = Taken(bytes);
        input.number()?;
        Ok(Self {
            handle: input.text()?.into(),
            owner: input.text()?.into(),
            session_id: input.maybe()?.map(SessionId::from),
            purpose: input.text()?.into(),
            media_type: input.text()?.into(),
            bytes: input.number()?,
            sha256: input.text()?.into(),
            seq: input.number()?,
        })
    }
}

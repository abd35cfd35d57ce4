//! Which events of a log go into a file, and the walk that finds them.
//!
//! What must stay true: the scope says whose events are counted at all, so that nobody learns from a
//! count about another's; the filter says which of these go in, and what it leaves out is counted as
//! excluded. Damage among events of others does not stop an export.

use std::collections::HashMap;
use std::ops::ControlFlow;

use storage::StorageError;
use storage::event::catalog::Gap;
use storage::event::codec::ContextField;
use storage::event::{EventView, Kind, Payload as _};
use storage::ids::{Owner, SessionId};
use storage::log::{BlockHeader, Reader};
use storage::query::CompiledFilter;

use crate::export::{Export, ExportError, ExportOptions, Format, Surroundings, Written};
use crate::removals::Removals;
use crate::target::Destination;

/// Events between two tellings of progress.
const PROGRESS_EVENTS: u64 = 4_096;

/// Whose events.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    Session(SessionId),
    /// All sessions of an owner, and what is of no session and names the owner.
    Owner(Owner),
    Everything,
}

/// What to export.
#[derive(Debug, Clone)]
pub struct Selection {
    pub scope: Scope,
    /// From this number on.
    pub first_seq: u64,
    /// Up to this number.
    pub last_seq: u64,
    /// Which of these.
    pub filter: CompiledFilter,
}

/// How far an export has come.
#[derive(Debug, Clone, Copy)]
pub struct Progress {
    /// The number reached, of `last_seq`.
    pub seq: u64,
    pub last_seq: u64,
    pub events: u64,
}

/// The scope with what has to be known to decide.
enum Ready<'s> {
    Session(&'s SessionId),
    /// Whether a session is the owner's, for those whose launch is on record.
    Owner(&'s Owner, HashMap<SessionId, bool>),
    Everything,
}

impl Selection {
    /// Writes the file and its manifest.
    ///
    /// # Errors
    /// When reading or writing fails; nothing is left at the target.
    pub fn export(
        &self,
        reader: &Reader,
        format: Format,
        target: impl Into<Destination>,
        options: &ExportOptions,
        progress: &mut dyn FnMut(Progress),
    ) -> Result<Written, ExportError> {
        let ready = self.ready(reader)?;
        let mut export = Export::create(format, target, options)?;
        let mut removals = Removals::new(self.first_seq, self.last_seq, self.filter.filter());
        let last_seq = self.last_seq.min(reader.durable()?.last_seq);
        let (mut failed, mut visited) = (None, 0_u64);
        let wants = |header: &BlockHeader| ready.may_hold(header) && self.is_of_use(header);
        reader.scan(self.first_seq.max(reader.first_seq()), &wants, &mut |event| {
            if !ready.holds(event) {
                return ControlFlow::Continue(());
            }
            if event.kind() == Some(Kind::LogRemoved) {
                removals.note(event, self.scope == Scope::Everything);
            }
            if event.seq > self.last_seq {
                return ControlFlow::Continue(());
            }
            visited += 1;
            if visited.is_multiple_of(PROGRESS_EVENTS) {
                progress(Progress { seq: event.seq, last_seq, events: export.events() });
            }
            let taken = if self.filter.matches(event) { export.push(event) } else { export.exclude(event) };
            match taken {
                Ok(()) => ControlFlow::Continue(()),
                Err(error) => {
                    failed = Some(error);
                    ControlFlow::Break(())
                }
            }
        })?;
        if let Some(error) = failed {
            return Err(error);
        }
        let mut surroundings = self.surroundings(reader)?;
        surroundings.removed = Some(removals.sum(&reader.segments()?));
        progress(Progress { seq: last_seq, last_seq, events: export.events() });
        export.finish(surroundings)
    }

    fn ready(&self, reader: &Reader) -> Result<Ready<'_>, StorageError> {
        Ok(match &self.scope {
            Scope::Session(session) => Ready::Session(session),
            Scope::Everything => Ready::Everything,
            Scope::Owner(owner) => {
                let mut sessions = HashMap::new();
                let launches = |header: &BlockHeader| holds_kind(header, Kind::SessionLaunching);
                reader.scan(reader.first_seq(), &launches, &mut |event| {
                    let of = event.context(ContextField::SessionId);
                    if let (Some(Kind::SessionLaunching), Some(session)) = (event.kind(), of) {
                        let own = event.context(ContextField::Owner) == Some(owner.as_str());
                        sessions.insert(SessionId::from(session), own);
                    }
                    ControlFlow::Continue(())
                })?;
                Ready::Owner(owner, sessions)
            }
        })
    }

    /// Behind the range only announcements of removal matter.
    fn is_of_use(&self, header: &BlockHeader) -> bool {
        header.first_seq <= self.last_seq || holds_kind(header, Kind::LogRemoved)
    }

    /// Gaps that name no session, where the scope leaves them out.
    fn surroundings(&self, reader: &Reader) -> Result<Surroundings, StorageError> {
        let mut found = Surroundings::default();
        if !matches!(self.scope, Scope::Session(_)) {
            return Ok(found);
        }
        let wants = |header: &BlockHeader| {
            header.session_id.is_none() && header.first_seq <= self.last_seq && holds_kind(header, Kind::Gap)
        };
        let read = reader.scan(self.first_seq.max(reader.first_seq()), &wants, &mut |event| {
            if let Ok(gap) = Gap::take(event)
                && event.seq <= self.last_seq
            {
                found.nobodys_gap_events += 1;
                found.nobodys_lost_events = found.nobodys_lost_events.saturating_add(gap.count);
            }
            ControlFlow::Continue(())
        });
        match read {
            Err(StorageError::Damaged { first_seq, last_seq, .. }) => {
                found.damage = Some(format!("events of no session within {first_seq} to {last_seq} cannot be read"));
                Ok(found)
            }
            read => read.map(|()| found),
        }
    }
}

impl Ready<'_> {
    fn may_hold(&self, header: &BlockHeader) -> bool {
        match self {
            Self::Session(session) => header.session_id.as_ref() == Some(*session),
            Self::Owner(_, sessions) => {
                header.session_id.as_ref().and_then(|session| sessions.get(session)).is_none_or(|own| *own)
            }
            Self::Everything => true,
        }
    }

    fn holds(&self, event: &EventView<'_>) -> bool {
        let session = || event.context(ContextField::SessionId);
        match self {
            Self::Session(of) => session() == Some(of.as_str()),
            Self::Owner(owner, sessions) => match event.context(ContextField::Owner) {
                Some(named) => named == owner.as_str(),
                None => session().is_some_and(|session| sessions.get(&SessionId::from(session)) == Some(&true)),
            },
            Self::Everything => true,
        }
    }
}

fn holds_kind(header: &BlockHeader, kind: Kind) -> bool {
    header.kinds >> kind.number() & 1 == 1
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};
    use storage::event::catalog::{LogRemoved, SessionLaunching};
    use storage::event::{Context, Draft, Json, Symbol};
    use storage::log::{Log, LogOptions};
    use storage::query::EventFilter;

    use super::*;
    use crate::sample::{console, gap};

    fn of(session: Option<&str>, owner: Option<&str>) -> Context {
        Context { session_id: session.map(Into::into), owner: owner.map(Into::into), ..Context::default() }
    }

    fn history() -> Vec<Draft> {
        let launching = SessionLaunching {
            name: Symbol::fold("shop"),
            channel: Symbol::fold("chromium"),
            headless: true,
            options: Json::redacted(&json!({})),
        };
        let removed = LogRemoved {
            reason: Symbol::fold("age"),
            segment: 99,
            generation: 1,
            first_seq: 1,
            last_seq: 1,
            count: 7,
            kinds: Json::redacted(&json!([
                {"kind": "console.message", "level": "warning", "count": 7, "first_seq": 1, "last_seq": 3},
            ])),
            by: None,
            note: None,
            subject: None,
        };
        vec![
            Draft::new(&of(Some("a-1"), Some("ann")), &launching),
            Draft::new(&of(Some("b-1"), Some("bob")), &launching),
            Draft::new(&of(Some("a-1"), Some("ann")), &console("of ann")),
            Draft::new(&of(Some("a-1"), None), &console("of her session, without a name")),
            Draft::new(&of(Some("b-1"), Some("bob")), &console("of bob")),
            Draft::new(&of(None, Some("ann")), &console("of ann, of no session")),
            Draft::new(&of(None, Some("bob")), &console("of bob, of no session")),
            Draft::new(&of(None, None), &gap(5, "queue_full")),
            Draft::new(&of(Some("a-1"), Some("ann")), &gap(2, "too_large")),
            Draft::new(&of(Some("a-1"), Some("ann")), &removed),
            Draft::new(&of(Some("b-1"), Some("bob")), &removed),
        ]
    }

    /// What each scope gives: events written and excluded, and the manifest.
    fn exported(scope: Scope, filter: &EventFilter, last_seq: u64) -> (u64, u64, Value) {
        let directory = tempfile::tempdir().expect("a directory");
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime");
        let log = Log::open(LogOptions::new(directory.path().join("log"))).expect("a log");
        runtime.block_on(log.commit(history())).expect("recorded");
        let selection = Selection { scope, first_seq: 2, last_seq, filter: filter.compile().expect("a filter") };
        let options = ExportOptions::new(log.log_id(), "0.1.0");
        let target = directory.path().join("a.ndjson");
        let written = selection.export(&log.reader(), Format::Ndjson, &target, &options, &mut |_| {});
        let written = written.expect("the export succeeds");
        runtime.block_on(log.close()).expect("closed");
        let manifest = std::fs::read(written.manifest.file().expect("a file")).expect("a manifest");
        (written.events, written.excluded, serde_json::from_slice(&manifest).expect("JSON"))
    }

    #[test]
    fn a_scope_counts_nobody_elses_events() {
        let all = EventFilter::default();
        let (events, excluded, manifest) = exported(Scope::Session("a-1".into()), &all, u64::MAX);
        assert_eq!((events, excluded), (5, 0));
        assert_eq!(manifest["gaps"]["lost"], 2);
        assert_eq!(manifest["gaps"]["of_no_session"], json!({"events": 1, "lost": 5}));
        assert_eq!(manifest["retention"], json!({"removed": 7, "by_kind": {"console.message": 7}, "exact": false}));
        let (events, excluded, manifest) = exported(Scope::Owner("ann".into()), &all, u64::MAX);
        assert_eq!((events, excluded, manifest["retention"]["removed"].as_u64()), (6, 0, Some(7)), "{manifest}");
        let (events, _, manifest) = exported(Scope::Everything, &all, u64::MAX);
        assert_eq!((events, manifest["gaps"]["lost"].as_u64()), (11, Some(7)));
    }

    #[test]
    fn a_filter_counts_what_it_leaves_out() {
        let filter = EventFilter { kinds: Some(vec![Kind::ConsoleMessage]), ..EventFilter::default() };
        let (events, excluded, manifest) = exported(Scope::Owner("ann".into()), &filter, u64::MAX);
        assert_eq!((events, excluded), (3, 3));
        assert_eq!(manifest["events"]["read"], 6);
        let (events, excluded, _) = exported(Scope::Session("b-1".into()), &filter, 6);
        assert_eq!((events, excluded), (1, 1), "a range leaves out what it does not count");
    }
}

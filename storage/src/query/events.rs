//! Pages of plain events.

use std::ops::ControlFlow;

use crate::event::EventView;
use crate::index::{Failure, SessionRow, View};
use crate::query::ledger::{Found, Wanted};
use crate::query::owned::OwnedEvent;
use crate::query::walk::{Walk, Walked};

pub(super) fn page(view: &View, wanted: &Wanted) -> Result<Found<OwnedEvent>, Failure> {
    let Some(stream) = Stream::of(view, wanted)? else { return Ok(Found::nothing()) };
    let mut items = Vec::new();
    let mut visit = |event: &EventView<'_>| {
        if items.len() == wanted.limit {
            return Ok(ControlFlow::Break(()));
        }
        items.push(OwnedEvent::of(event));
        Ok(ControlFlow::Continue(()))
    };
    let walked = wanted.walk(view, &wanted.filter).run(&mut visit)?;
    let kinds = wanted.filter.filter().kinds.as_deref();
    let retained = stream.sum(|row| row.count(kinds));
    let dropped = stream.sum(|row| row.dropped(kinds));
    Ok(Found { items, walked, retained: Some(retained), dropped, hidden: 0 })
}

/// The rows of what is read: one session's, or all of an owner's.
pub(super) struct Stream(Vec<SessionRow>);

impl Stream {
    /// `None` when there is no such session, or it is another owner's.
    pub fn of(view: &View, wanted: &Wanted) -> Result<Option<Self>, Failure> {
        match &wanted.filter.filter().session_id {
            Some(session) => Ok(view.session(&wanted.owner, session)?.map(|row| Self(vec![row]))),
            None => {
                let mut rows = view.sessions(&wanted.owner)?;
                // What concerns no session and nobody, such as the log's own events.
                rows.extend(view.session(&"".into(), &"".into())?);
                Ok(Some(Self(rows)))
            }
        }
    }

    pub fn sum(&self, count: impl Fn(&SessionRow) -> u64) -> u64 {
        self.0.iter().map(count).sum()
    }
}

impl<T> Found<T> {
    pub(super) fn nothing() -> Self {
        let walked = Walked { examined: None, complete: true };
        Self { items: Vec::new(), walked, retained: Some(0), dropped: 0, hidden: 0 }
    }
}

impl Wanted {
    /// A walk that passes over the blocks that `filter` rules out.
    pub(super) fn walk<'a>(&'a self, view: &'a View, filter: &'a crate::query::CompiledFilter) -> Walk<'a> {
        Walk {
            view,
            filter,
            owner: &self.owner,
            order: self.order,
            after: self.after,
            troubles: false,
            until: self.until,
        }
    }
}

//! Pages of plain events.

use std::ops::ControlFlow;

use crate::event::EventView;
use crate::event::removed::Portion;
use crate::index::{Failure, SessionRow, View};
use crate::query::ledger::{Found, Wanted};
use crate::query::owned::OwnedEvent;
use crate::query::removed::Removed;
use crate::query::walk::{Walk, Walked};

pub(super) fn page(view: &View, wanted: &Wanted) -> Result<Found<OwnedEvent>, Failure> {
    let kinds = wanted.filter.filter().kinds.as_deref();
    let admits = |portion: &Portion| wanted.filter.admits(portion.kind, portion.level);
    let removed = Removed::of(view, wanted, kinds, &admits)?;
    let Some(stream) = Stream::of(view, wanted)? else { return Ok(Found::nothing(removed)) };
    let mut items = Vec::new();
    let mut visit = |event: &EventView<'_>| {
        if items.len() == wanted.limit {
            return Ok(ControlFlow::Break(()));
        }
        items.push(OwnedEvent::of(event));
        Ok(ControlFlow::Continue(()))
    };
    let walked = wanted.walk(view, &wanted.filter).run(&mut visit)?;
    let (retained, dropped) = (Some(stream.row.count(kinds)), stream.row.dropped(kinds));
    Ok(Found { items, walked, retained, dropped, removed, hidden: 0 })
}

/// What counts of that which is read: one session, or all that an owner may see.
pub(super) struct Stream {
    pub row: SessionRow,
}

impl Stream {
    /// `None` when there is no such session, or it is another owner's.
    pub fn of(view: &View, wanted: &Wanted) -> Result<Option<Self>, Failure> {
        match &wanted.filter.filter().session_id {
            Some(session) => Ok(view.session(&wanted.owner, session)?.map(|row| Self { row })),
            None => Ok(Some(Self { row: view.totals(&wanted.owner)? })),
        }
    }
}

impl<T> Found<T> {
    pub(super) fn nothing(removed: Removed) -> Self {
        let walked = Walked { examined: None, complete: true };
        Self { items: Vec::new(), walked, retained: Some(0), dropped: 0, removed, hidden: 0 }
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

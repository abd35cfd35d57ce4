//! What retention took of that which a page is of.

use crate::event::Kind;
use crate::event::removed::Portion;
use crate::index::{Failure, View};
use crate::query::cursor::Order;
use crate::query::ledger::Wanted;

#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Removed {
    /// Events of the stream, whatever else is filtered.
    pub count: u64,
    /// Whether one that may match lies beyond where the page begins, in its order.
    pub beyond: bool,
}

impl Removed {
    /// `kinds` make the stream; `admits` says which of its events may match.
    pub fn of(
        view: &View,
        wanted: &Wanted,
        kinds: Option<&[Kind]>,
        admits: &dyn Fn(&Portion) -> bool,
    ) -> Result<Self, Failure> {
        let (filter, mut removed) = (wanted.filter.filter(), Self::default());
        if filter.owner.as_ref().is_some_and(|owner| *owner != wanted.owner) {
            return Ok(removed);
        }
        let of_stream =
            |portion: &Portion| kinds.is_none_or(|kinds| kinds.iter().any(|kind| kind.number() == portion.kind));
        for lost in view.lost(&wanted.owner, filter.session_id.as_ref())? {
            for portion in &lost.portions {
                if of_stream(portion) {
                    removed.count += portion.count;
                    removed.beyond |= admits(portion) && is_beyond(portion, wanted);
                }
                // With an announcement that went itself, what it told of is not known any more.
                removed.beyond |= portion.kind == Kind::LogRemoved.number() && is_before_all(view, wanted);
            }
        }
        Ok(removed)
    }
}

fn is_beyond(portion: &Portion, wanted: &Wanted) -> bool {
    match (wanted.after, wanted.order) {
        (None, _) => true,
        (Some(after), Order::Oldest) => portion.last_seq > after,
        (Some(after), Order::Newest) => portion.first_seq < after,
    }
}

/// Whether the page comes from before all that is retained, or goes there.
fn is_before_all(view: &View, wanted: &Wanted) -> bool {
    let first_seq = view.reader.first_seq();
    wanted.order == Order::Newest || wanted.after.is_none_or(|after| after.saturating_add(1) < first_seq)
}

//! Results that end early: as many items, or bytes, as fit, and where to go on after the last of them.
//!
//! A page of a list that has items never comes back empty: were the first item alone too large, it is
//! shrunk like any other value, so that paging always moves on. An item that no page could hold whole is
//! shrunk into what the items before it leave, too.

use serde_json::{Map, Value};

use super::bound::{Bound, Halving};
use super::spill::{Shrinking, Spiller};

/// A page of items, and how to say where it ends.
pub struct List {
    /// Key of the items in `data`, for example `messages`.
    pub field: &'static str,
    pub items: Vec<Value>,
    /// The other members of `data`, in order after the items: `next_cursor`, `has_more`, counts.
    /// `next_cursor` is the cursor after the last of `items`.
    pub rest: Map<String, Value>,
    /// The cursor for "after `items[position]`".
    pub cursor_after: CursorAfter,
}

pub type CursorAfter = Box<dyn Fn(usize) -> String + Send + Sync>;

/// The beginning of something longer, which can be of any length.
pub struct Piece {
    /// How much of it there is to give, in bytes.
    pub length: usize,
    /// `data` with about so much of it, never more, and where to go on.
    pub beginning: Box<dyn Fn(usize) -> Value + Send + Sync>,
}

/// A piece may be as short as this: a character.
const PIECE_BYTES_MIN: usize = 4;
/// The length of a piece is found to within one part in so many.
const PIECE_STEPS: usize = 256;

/// What ending early needs to know beyond the rendered list.
pub(super) struct Ends {
    pub field: &'static str,
    pub cursor_after: CursorAfter,
}

impl List {
    /// The whole list as `data`.
    pub(super) fn into_parts(self) -> (Value, Ends) {
        let mut data = Map::new();
        data.insert(self.field.to_owned(), Value::Array(self.items));
        data.extend(self.rest);
        (Value::Object(data), Ends { field: self.field, cursor_after: self.cursor_after })
    }
}

/// The envelope of the longest piece that fits.
pub(super) fn longest(piece: &Piece, bound: Bound<'_>) -> Option<Value> {
    // No form says a byte in less than a byte.
    let exceeds = piece.length.min(bound.room) + 1;
    let mut halving = Halving::below(exceeds, exceeds / PIECE_STEPS);
    let mut longest = None;
    while let Some(length) = halving.next() {
        let sealed = bound.seal((piece.beginning)(length.max(PIECE_BYTES_MIN)));
        halving.tried(length, sealed.is_some());
        longest = sealed.or(longest);
    }
    longest
}

/// The envelope of as much of a list as fits, or `None` when not even one item can be made to.
pub(super) async fn fit(data: &Value, ends: &Ends, bound: Bound<'_>, spiller: &mut Spiller<'_>) -> Option<Value> {
    let whole = data.as_object()?;
    let items = whole.get(ends.field)?.as_array()?;
    let rest = whole.iter().filter(|(key, _)| *key != ends.field).map(|(key, value)| (key.clone(), value.clone()));
    let mut pages = Pages { ends, items, rest: rest.collect() };
    // What stands beside the items may be large as well, and must not take their place.
    let half = bound.half();
    if half.seal(pages.of(0, None)).is_none() {
        let beside = Value::Object(pages.rest.clone());
        let alone = |rest: Value| Value::Object(rest.as_object().cloned().unwrap_or_default());
        if let Some(Value::Object(smaller)) = spiller.within(Shrinking::Previews, &beside, half, &alone).await {
            pages.rest = smaller;
        }
    }
    let (count, page) = pages.most(bound);
    let next = items.get(count)?;
    let is_whole_alone = || bound.seal(pages.alone(count)).is_some();
    if page.as_ref().is_some_and(|page| !bound.is_sparse(page) || is_whole_alone()) {
        return page;
    }
    let with_next = |small: Value| pages.of(count, Some(small));
    let mut small = spiller.within(Shrinking::Previews, next, bound, &with_next).await;
    if small.is_none() && page.is_none() {
        small = spiller.within(Shrinking::StandIn, next, bound, &with_next).await;
    }
    small.and_then(|small| bound.seal(with_next(small))).or(page)
}

/// The pages that a list can be cut to.
struct Pages<'a> {
    ends: &'a Ends,
    items: &'a [Value],
    /// The members beside the items.
    rest: Map<String, Value>,
}

impl Pages<'_> {
    /// The first `count` items, and what stands for the next.
    fn of(&self, count: usize, next: Option<Value>) -> Value {
        let shown: Vec<Value> = self.items[..count].iter().cloned().chain(next).collect();
        let last = shown.len().checked_sub(1).filter(|_| shown.len() < self.items.len());
        self.page(shown, last)
    }

    /// One item by itself.
    fn alone(&self, position: usize) -> Value {
        self.page(vec![self.items[position].clone()], Some(position))
    }

    fn page(&self, shown: Vec<Value>, last: Option<usize>) -> Value {
        let mut page = Map::new();
        page.insert(self.ends.field.to_owned(), Value::Array(shown));
        page.extend(self.rest.clone());
        if let Some(last) = last {
            page.insert("next_cursor".into(), (self.ends.cursor_after)(last).into());
            page.insert("has_more".into(), true.into());
        }
        Value::Object(page)
    }

    /// How many items fit, fewer than all, and the envelope of their page.
    fn most(&self, bound: Bound<'_>) -> (usize, Option<Value>) {
        let mut halving = Halving::below(self.items.len(), 1);
        let mut most = (0, None);
        while let Some(count) = halving.next() {
            let sealed = bound.seal(self.of(count, None));
            halving.tried(count, sealed.is_some());
            most = sealed.map_or(most, |page| (count, Some(page)));
        }
        most
    }
}

//! Lists that end early: as many items as fit, and a cursor after the last of them.
//!
//! A page of a list that has items never comes back empty: were the first item alone too large, it is
//! shrunk like any other value, so that paging always moves on.

use serde_json::{Map, Value};

use super::budget::weight;
use super::spill::Spiller;

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

/// What ending early needs to know beyond the rendered list.
pub(super) struct Ends {
    pub field: &'static str,
    pub cursor_after: CursorAfter,
}

/// Cost of the comma between two items.
const COMMA: usize = 2;

impl List {
    /// The whole list as `data`.
    pub(super) fn into_parts(self) -> (Value, Ends) {
        let mut data = Map::new();
        data.insert(self.field.to_owned(), Value::Array(self.items));
        data.extend(self.rest);
        (Value::Object(data), Ends { field: self.field, cursor_after: self.cursor_after })
    }
}

/// Cuts a whole list to `budget`, or gives up with `None` when not even one item can be made to fit.
pub(super) async fn fit(data: &Value, ends: &Ends, budget: usize, spiller: &mut Spiller<'_>) -> Option<Value> {
    let whole = data.as_object()?;
    let items = whole.get(ends.field)?.as_array()?;
    let mut rest = Rest::of(whole, ends.field);
    // What stands beside the items may be large as well, and must not take their place.
    if rest.cost_with(ends, None) > budget / 2
        && let Some(Value::Object(smaller)) = spiller.shrink(&Value::Object(rest.0.clone()), budget / 2).await
    {
        rest = Rest(smaller);
    }
    let mut keep = fitting(items, budget.checked_sub(rest.cost_with(ends, None))?);
    while keep > 0 {
        if keep < items.len() {
            rest.end_after(ends, keep - 1);
        }
        let page = rest.with_items(ends.field, items[..keep].to_vec());
        if weight(&page) <= budget {
            return Some(page);
        }
        // The cursor turned out longer than the one reckoned with.
        keep -= 1;
    }
    let first = items.first()?;
    if items.len() > 1 {
        rest.end_after(ends, 0);
    }
    let room = budget.checked_sub(rest.cost_with(ends, (items.len() > 1).then_some(0)))?;
    let small = match spiller.shrink(first, room).await {
        Some(shrunk) => shrunk,
        None => spiller.stand_in(first, room).await?,
    };
    let page = rest.with_items(ends.field, vec![small]);
    (weight(&page) <= budget).then_some(page)
}

/// How many items from the start cost at most `room`.
fn fitting(items: &[Value], room: usize) -> usize {
    let mut spent = 0;
    for (position, item) in items.iter().enumerate() {
        spent += weight(item) + if position == 0 { 0 } else { COMMA };
        if spent > room {
            return position;
        }
    }
    items.len()
}

/// The members beside the items.
struct Rest(Map<String, Value>);

impl Rest {
    fn of(whole: &Map<String, Value>, field: &str) -> Self {
        Self(whole.iter().filter(|(key, _)| *key != field).map(|(key, value)| (key.clone(), value.clone())).collect())
    }

    fn end_after(&mut self, ends: &Ends, position: usize) {
        self.0.insert("next_cursor".into(), (ends.cursor_after)(position).into());
        self.0.insert("has_more".into(), true.into());
    }

    fn with_items(&self, field: &str, items: Vec<Value>) -> Value {
        let mut page = Map::new();
        page.insert(field.to_owned(), Value::Array(items));
        page.extend(self.0.clone());
        Value::Object(page)
    }

    /// Cost of a page without items that ends after `position`.
    fn cost_with(&self, ends: &Ends, position: Option<usize>) -> usize {
        let mut rest = Rest(self.0.clone());
        if let Some(position) = position {
            rest.end_after(ends, position);
        }
        weight(&rest.with_items(ends.field, Vec::new()))
    }
}

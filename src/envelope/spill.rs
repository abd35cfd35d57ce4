//! Large values: the whole is kept as an artifact, the reply carries a preview and the handle.
//!
//! A member `html` that is too large becomes the beginning of itself, beside `html_bytes` (its true
//! size), `html_artifact` (the handle for `read_artifact`) and `truncated`. A text stays a text, a list a
//! list and an object an object, so that a preview is of the type that the tool published. Members that
//! storage cut already keep the size and handle that they came with.

use std::pin::Pin;

use serde_json::{Map, Value};
use storage::ids::ArtifactHandle;

use super::bound::{Bound, Halving};
use super::budget::{json_bytes, prefix_within, weight};
use crate::fault::Fault;
use crate::limits::{PREVIEW_BYTES_MAX, head};

/// The future of [`Keep::keep`].
pub type Keeping<'a> = Pin<Box<dyn Future<Output = Result<ArtifactHandle, Fault>> + Send + 'a>>;

/// Where whole values go. The implementation stores the bytes and records `artifact.kept`.
pub trait Keep: Send + Sync {
    /// Keeps `bytes`, which are the value of `field`.
    fn keep<'a>(&'a self, field: &'a str, media_type: &'static str, bytes: Vec<u8>) -> Keeping<'a>;
}

/// Values cheaper than this are never spilled: the members that tell of it would cost as much.
const SPILL_WEIGHT_MIN: usize = 512;
/// Cost of an empty text, list or the comma before a member, generously.
const EMPTY_WEIGHT: usize = 8;

const TEXT: &str = "text/plain; charset=utf-8";
const JSON: &str = "application/json";

/// How a value is made smaller.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Shrinking {
    /// Its largest members become previews.
    Previews,
    /// Its cheap plain members, and the handle of the whole.
    StandIn,
}

/// In a trial, what handles look like.
const HANDLE_ON_TRIAL: &str = "art-00000000000000000000000000000000";
/// Budgets for shrinking count JSON written twice: no form takes less than one part in so many of that.
const BUDGET_SHARE_MAX: usize = 8;
/// And are found to within one part in so many of a reply's room.
const BUDGET_STEPS: usize = 64;

/// Keeps whole values on behalf of one reply and remembers what was kept.
pub(super) struct Spiller<'a> {
    pub keep: &'a dyn Keep,
    pub kept: Vec<ArtifactHandle>,
    /// Only the size of what would come of it is wanted: nothing is kept.
    on_trial: bool,
}

impl<'a> Spiller<'a> {
    pub fn new(keep: &'a dyn Keep) -> Self {
        Self { keep, kept: Vec::new(), on_trial: false }
    }

    /// `value`, shrunk no more than it takes for the data that `placed` makes of it to keep the bound.
    pub async fn within(
        &mut self,
        how: Shrinking,
        value: &Value,
        bound: Bound<'_>,
        placed: &(dyn Fn(Value) -> Value + Sync),
    ) -> Option<Value> {
        let mut halving = Halving::below(BUDGET_SHARE_MAX * bound.room, bound.room / BUDGET_STEPS);
        let mut best = None;
        while let Some(budget) = halving.next() {
            self.on_trial = true;
            let small = self.shrink_by(how, value, budget).await;
            self.on_trial = false;
            // A budget too small to shrink anything to is no reason for a smaller one.
            let (too_small, fits) = (small.is_none(), small.is_some_and(|small| bound.seal(placed(small)).is_some()));
            if fits {
                best = Some(budget);
            }
            halving.tried(budget, fits || too_small);
        }
        self.shrink_by(how, value, best?).await
    }

    async fn shrink_by(&mut self, how: Shrinking, value: &Value, budget: usize) -> Option<Value> {
        match how {
            Shrinking::Previews => self.shrink(value, budget).await,
            Shrinking::StandIn => self.stand_in(value, budget).await,
        }
    }

    /// Makes an object, or the objects of a list, cost at most `budget`. `None` when previews do not
    /// suffice or the whole cannot be kept.
    async fn shrink(&mut self, value: &Value, budget: usize) -> Option<Value> {
        match value {
            Value::Object(members) => self.shrink_object(members, budget).await.map(Value::Object),
            Value::Array(items) => self.shrink_items(items, budget).await.map(Value::Array),
            _ => None,
        }
    }

    /// What stands for an object that previews cannot make small enough: its cheap plain members, as
    /// many as fit, and the handle of the whole.
    async fn stand_in(&mut self, value: &Value, budget: usize) -> Option<Value> {
        let handle = self.keep_whole("item", value).await?;
        let mut out = Map::new();
        out.insert("item_bytes".into(), json_bytes(value).into());
        out.insert("item_artifact".into(), handle.as_str().into());
        out.insert("truncated".into(), true.into());
        let mut cost = weight_of(&out);
        for (key, member) in value.as_object().into_iter().flatten() {
            let member_cost = member_weight(key, 0) + weight(member);
            let plain = !member.is_array() && !member.is_object() && !out.contains_key(key);
            if plain && cost + member_cost <= budget {
                cost += member_cost;
                out.insert(key.clone(), member.clone());
            }
        }
        (cost <= budget).then_some(Value::Object(out))
    }

    /// Keeps `value` whole.
    pub async fn keep_whole(&mut self, field: &str, value: &Value) -> Option<ArtifactHandle> {
        if self.on_trial {
            return Some(HANDLE_ON_TRIAL.into());
        }
        let (media_type, bytes) = match value {
            Value::String(text) => (TEXT, text.clone().into_bytes()),
            other => (JSON, other.to_string().into_bytes()),
        };
        match self.keep.keep(field, media_type, bytes).await {
            Ok(handle) => {
                self.kept.push(handle.clone());
                Some(handle)
            }
            Err(fault) => {
                tracing::warn!(code = fault.code().as_str(), cause = fault.cause(), "a large result could not be kept");
                None
            }
        }
    }

    /// Every item keeps its place; those above an even share are shrunk to it.
    async fn shrink_items(&mut self, items: &[Value], budget: usize) -> Option<Vec<Value>> {
        let weights: Vec<usize> = items.iter().map(|item| weight(item) + EMPTY_WEIGHT).collect();
        let share = even_share(&weights, budget.checked_sub(EMPTY_WEIGHT)?)?;
        let mut shrunk = Vec::with_capacity(items.len());
        for (item, cost) in items.iter().zip(&weights) {
            let fits = *cost <= share;
            let members = item.as_object().filter(|_| !fits);
            shrunk.push(match members {
                Some(members) => Value::Object(self.shrink_object(members, share.checked_sub(EMPTY_WEIGHT)?).await?),
                None if fits => item.clone(),
                None => return None,
            });
        }
        Some(shrunk)
    }

    async fn shrink_object(&mut self, members: &Map<String, Value>, budget: usize) -> Option<Map<String, Value>> {
        let plan = plan(members, budget)?;
        let previewed = |key: &String, value: &Value| match plan.spilled.contains(key) {
            true => preview(value, plan.preview_weight),
            false => value.clone(),
        };
        let mut out: Map<String, Value> =
            members.iter().map(|(key, value)| (key.clone(), previewed(key, value))).collect();
        for key in &plan.spilled {
            let value = &members[key.as_str()];
            let (bytes_key, handle_key) = (format!("{key}_bytes"), format!("{key}_artifact"));
            let kept_before = members.get(&handle_key).is_some_and(Value::is_string);
            if !kept_before {
                let handle = self.keep_whole(key, value).await?;
                let bytes = value.as_str().map_or_else(|| json_bytes(value), str::len);
                out.insert(bytes_key, bytes.into());
                out.insert(handle_key, handle.as_str().into());
            }
        }
        out.insert("truncated".into(), true.into());
        (weight_of(&out) <= budget).then_some(out)
    }
}

/// Which members become previews, and how much each preview may cost.
struct Plan {
    spilled: Vec<String>,
    preview_weight: usize,
}

/// Spills the heaviest members first, as few as it takes.
fn plan(members: &Map<String, Value>, budget: usize) -> Option<Plan> {
    let mut heavy: Vec<(usize, &String)> =
        members.iter().map(|(key, value)| (weight(value), key)).filter(|(cost, _)| *cost > SPILL_WEIGHT_MIN).collect();
    heavy.sort_by_key(|(cost, _)| std::cmp::Reverse(*cost));
    let mut cost = weight_of(members) + member_weight("truncated", 4);
    let mut spilled = Vec::new();
    for (value_cost, key) in heavy {
        if cost <= budget {
            break;
        }
        cost = (cost - value_cost) + told_weight(key);
        spilled.push(key.clone());
    }
    let room = budget.checked_sub(cost)?;
    let preview_weight = room / spilled.len().max(1);
    Some(Plan { spilled, preview_weight })
}

/// Cost of telling about a spilled member: an empty preview, its size and its handle.
fn told_weight(key: &str) -> usize {
    const DIGITS: usize = 20;
    const HANDLE: usize = 2 + "art-".len() + 32;
    EMPTY_WEIGHT
        + member_weight(&format!("{key}_bytes"), DIGITS)
        + member_weight(&format!("{key}_artifact"), HANDLE + 2)
}

/// Cost of one more member whose value is `value_bytes` of plain JSON.
fn member_weight(key: &str, value_bytes: usize) -> usize {
    weight(&Value::from(key)) + 2 * value_bytes + EMPTY_WEIGHT
}

fn weight_of(members: &Map<String, Value>) -> usize {
    // Borrowing a map as a `Value` is not possible, and members cost what they cost one by one.
    let members_cost: usize = members.iter().map(|(key, value)| member_weight(key, 0) + weight(value)).sum();
    members_cost + EMPTY_WEIGHT
}

/// The beginning of `value`, of its own type where that has a beginning.
fn preview(value: &Value, budget: usize) -> Value {
    match value {
        Value::String(text) => beginning(text, budget).into(),
        Value::Array(items) => {
            let mut spent = 0;
            let fits = |item: &&Value| {
                spent += weight(item) + EMPTY_WEIGHT;
                spent <= budget.min(2 * PREVIEW_BYTES_MAX)
            };
            items.iter().take_while(fits).cloned().collect()
        }
        Value::Object(members) => preview_members(members, budget).into(),
        other => other.clone(),
    }
}

/// The first members, as many as fit, and the beginning of the next.
fn preview_members(members: &Map<String, Value>, budget: usize) -> Map<String, Value> {
    let mut out = Map::new();
    let mut left = budget.min(2 * PREVIEW_BYTES_MAX).saturating_sub(EMPTY_WEIGHT);
    for (key, member) in members {
        let Some(room) = left.checked_sub(member_weight(key, 0) + EMPTY_WEIGHT) else { break };
        let cost = weight(member);
        if cost > room {
            out.insert(key.clone(), preview(member, room));
            break;
        }
        out.insert(key.clone(), member.clone());
        left = room - cost;
    }
    out
}

fn beginning(text: &str, budget: usize) -> &str {
    let longest = head(text, PREVIEW_BYTES_MAX);
    &longest[..prefix_within(longest, budget)]
}

/// The largest cap under which the capped weights together stay within `budget`; `None` when it would
/// be too small to shrink anything to.
fn even_share(weights: &[usize], budget: usize) -> Option<usize> {
    let mut sorted = weights.to_vec();
    sorted.sort_unstable();
    let mut left = budget;
    for (position, cost) in sorted.iter().enumerate() {
        let share = left / (sorted.len() - position);
        if *cost > share {
            return (share > SPILL_WEIGHT_MIN).then_some(share);
        }
        left -= cost;
    }
    Some(usize::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_are_even_among_the_heavy_and_never_exceed_the_budget() {
        assert_eq!(even_share(&[10, 10_000, 10_000], 8_010), Some(4_000));
        assert_eq!(even_share(&[10, 20], 30), Some(usize::MAX));
        assert_eq!(even_share(&[500; 100], 8_000), None);
    }
}

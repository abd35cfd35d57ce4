//! From selector to element: strict, patient while the page still moves, quick once it rests.
//!
//! The chain itself is walked in [`super::walk`]; this side waits, judges how many matches are right,
//! and says what there was when it is not one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::call::COLLECT_WAIT;
use super::error::{PageError, SELECTOR_SHOWN_BYTES_MAX, cut};
use super::kit::KitError;
use super::locator::{Locator, Step};
use super::walk::Walk;
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// A document that has not changed for this long, loaded and with no request in flight, is at rest.
const REST: Duration = Duration::from_millis(500);
/// A request that has been in flight for this long is a stream and no sign of loading.
const STREAM_AGE: Duration = Duration::from_secs(3);
/// Matches of an ambiguous selector that are described.
const CANDIDATES_MAX: usize = 5;
/// Pauses between two looks at a document that changes all the time.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

/// Why an element that was seen again and again was never reached.
const REPLACED: &str = "detached: the page replaces it faster than it can be reached";

/// An element in the hands of its frame's kit.
#[derive(Debug, Clone)]
pub(super) struct Element {
    pub(super) frame_id: FrameId,
    pub(super) id: u64,
    /// What the follow-up action answered.
    pub(super) value: Value,
}

/// What one walk along the chain found.
pub(super) struct Matches {
    /// Where the walk ended.
    pub(super) frame_id: FrameId,
    pub(super) count: u64,
    pub(super) visible: u64,
    pub(super) ids: Vec<u64>,
    pub(super) value: Option<Value>,
    /// Something matched, and went before it could be held.
    pub(super) vanished: bool,
}

/// One of several matches, so that whoever asked can tell them apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    pub element: String,
    pub text: String,
    /// A selector that means this one alone.
    pub reference: Option<String>,
}

pub(super) fn parse(selector: &str) -> Result<Locator, PageError> {
    Locator::parse(selector)
        .map_err(|reason| PageError::InvalidSelector { selector: cut(selector, SELECTOR_SHOWN_BYTES_MAX), reason })
}

impl Page {
    /// Waits for the one element that `selector` means and runs `then` on it.
    pub(super) async fn element(&self, selector: &str, then: &Value, deadline: Deadline) -> Result<Element, PageError> {
        let locator = parse(selector)?;
        let shown = || cut(selector, SELECTOR_SHOWN_BYTES_MAX);
        let (mut missed, mut vanished) = (false, false);
        let absent = |vanished: bool| match vanished {
            true => PageError::not_actionable(selector, REPLACED),
            false => PageError::NotFound { selector: shown() },
        };
        loop {
            let walked = self.matches(selector, &locator, Some(then), false, deadline).await;
            let found = match walked {
                Ok(found) => found,
                // The time ran out over one more look for what was not there before.
                Err(KitError::Page(PageError::Timeout)) if missed => {
                    return Err(absent(vanished));
                }
                Err(KitError::Page(error)) => return Err(error),
                Err(KitError::Lost) => {
                    self.pause(deadline).await?;
                    continue;
                }
            };
            match (found.count, found.ids.first()) {
                (0, _) => {
                    (missed, vanished) = (true, found.vanished);
                    let rests = self.at_rest(&found.frame_id, deadline).await?;
                    if rests || deadline.passed() {
                        return Err(absent(vanished && deadline.passed()));
                    }
                }
                (1, Some(id)) => {
                    let value = found.value.unwrap_or(Value::Null);
                    return Ok(Element { frame_id: found.frame_id, id: *id, value });
                }
                (count, _) => {
                    let candidates = self.candidates(&found, deadline).await;
                    return Err(PageError::Ambiguous { selector: shown(), count, candidates });
                }
            }
        }
    }

    /// Why the browser does not take `selector`, as far as one look shows it: a part that is looked for
    /// below something that is not there yet is not looked at. A page that is busy is asked nothing.
    pub async fn selector_refused(&self, selector: &str, deadline: Deadline) -> Option<String> {
        let mark = self.begin(deadline).await.ok()?;
        let deadline = deadline.within(COLLECT_WAIT);
        let look = async {
            let locator = parse(selector)?;
            match self.matches(selector, &locator, None, false, deadline).await {
                Err(KitError::Page(error)) => Err(error),
                _ => Ok(()),
            }
        };
        match self.race_undone(mark, deadline, look).await {
            Err(PageError::InvalidSelector { reason, .. }) => Some(reason),
            _ => None,
        }
    }

    /// Walks the chain once, without waiting.
    pub(super) async fn matches(
        &self,
        selector: &str,
        locator: &Locator,
        then: Option<&Value>,
        count_visible: bool,
        deadline: Deadline,
    ) -> Result<Matches, KitError> {
        let main_frame_id = self.state().main_frame_id.clone();
        let mut walk = Walk { frame_id: main_frame_id, roots: None, steps: &locator.steps, vanished: false };
        while let Some(first) = walk.steps.first() {
            match first {
                Step::Reference { number } => {
                    let (frame_id, id) = self.referenced(*number, deadline).await?;
                    walk = Walk { frame_id, roots: Some(vec![id]), steps: &walk.steps[1..], vanished: false };
                }
                Step::Role(query) => {
                    if let Some(done) = self.walk_role(selector, &mut walk, query, deadline).await? {
                        return Ok(done);
                    }
                }
                _ => {
                    if let Some(done) = self.walk_script(selector, &mut walk, then, count_visible, deadline).await? {
                        return Ok(done);
                    }
                }
            }
            if walk.roots.as_ref().is_some_and(Vec::is_empty) {
                break;
            }
        }
        self.finish(walk, then, count_visible, deadline).await
    }

    /// Counts, and runs the follow-up when it has not run yet.
    async fn finish(
        &self,
        walk: Walk<'_>,
        then: Option<&Value>,
        count_visible: bool,
        deadline: Deadline,
    ) -> Result<Matches, KitError> {
        let ids = walk.roots.unwrap_or_default();
        let Walk { frame_id, vanished, .. } = walk;
        let mut found = Matches { frame_id, count: ids.len() as u64, visible: 0, ids, value: None, vanished };
        if count_visible {
            let states = self.act_each(&found.frame_id, &found.ids, &json!({ "action": "state" }), deadline).await?;
            found.visible = states.iter().filter(|state| state["visible"] == true).count() as u64;
        }
        if let ([id], Some(then)) = (found.ids.as_slice(), then) {
            found.value = Some(self.act(&found.frame_id, *id, then, deadline).await?);
        }
        Ok(found)
    }

    /// Runs an action of the kit on a kept element.
    pub(super) async fn act(
        &self,
        frame_id: &FrameId,
        id: u64,
        then: &Value,
        deadline: Deadline,
    ) -> Result<Value, KitError> {
        let mut answer = self.ask(frame_id, &json!({ "id": id, "then": then }), deadline).await?;
        if answer["lost"] == true {
            return Err(KitError::Lost);
        }
        Ok(answer["value"].take())
    }

    /// What the first few matches are. Empty where the page is already elsewhere.
    async fn candidates(&self, found: &Matches, deadline: Deadline) -> Vec<Candidate> {
        let ids = &found.ids[..found.ids.len().min(CANDIDATES_MAX)];
        let then = json!({ "action": "identify" });
        let Ok(words) = self.act_each(&found.frame_id, ids, &then, deadline).await else { return Vec::new() };
        let references = self.references_of(&found.frame_id, ids, deadline).await.unwrap_or_default();
        let text = |words: &Value, key: &str| words[key].as_str().unwrap_or_default().to_owned();
        let mut references = references.into_iter();
        let candidate = |words: &Value| Candidate {
            element: text(words, "element"),
            text: text(words, "text"),
            reference: references.next().flatten(),
        };
        words.iter().map(candidate).collect()
    }

    /// Waits until the frame's document changes (`false`) or has come to rest (`true`).
    pub(super) async fn at_rest(&self, frame_id: &FrameId, deadline: Deadline) -> Result<bool, PageError> {
        // What is in flight now and has ended when this is over may yet change the document.
        let rested = network_rests(&self.state());
        let rest_ms = deadline.remaining().min(REST).as_millis();
        let request = json!({ "page": "rest", "ms": u64::try_from(rest_ms).unwrap_or(0) });
        let changed = match self.ask(frame_id, &request, deadline).await {
            Ok(answer) => answer["changed"] == true || answer["complete"] != true,
            Err(KitError::Lost) => true,
            // Time spent waiting for something to appear means that it did not.
            Err(KitError::Page(PageError::Timeout)) => return Ok(true),
            Err(KitError::Page(error)) => return Err(error),
        };
        if changed {
            let _ = self.wait::<()>(deadline.within(LOOK_PAUSE), |_| None).await;
            return Ok(false);
        }
        self.caught_up(deadline.within(COLLECT_WAIT)).await;
        Ok(rested && network_rests(&self.state()))
    }
}

/// Whether the page has loaded and waits for nothing from the network.
pub(super) fn network_rests(state: &PageState) -> bool {
    let now = Instant::now();
    let streams = state.in_flight.values().all(|request| now.duration_since(request.since) > STREAM_AGE);
    streams && state.navigating.is_none() && state.main_frame().reached("load")
}

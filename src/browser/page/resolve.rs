//! From selector to element: strict, patient while the page still moves, quick once it rests.
//!
//! A chain is walked part by part: parts that the kit can do go to it in one piece, roles go to the
//! browser's accessibility engine, and a part that lands on a frame element goes on inside it.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::ax::Nodes;
use super::error::{PageError, SELECTOR_SHOWN_BYTES_MAX, cut};
use super::kit::KitError;
use super::locator::{Locator, RoleQuery, Step};
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// A document that has not changed for this long, loaded and with no request in flight, is at rest.
const REST: Duration = Duration::from_millis(500);
/// A request that has been in flight for this long is a stream and no sign of loading.
const STREAM_AGE: Duration = Duration::from_secs(3);
/// Elements in the middle of a chain that the next part is looked for under.
const SCOPES_MAX: usize = 100;
/// Pauses between two looks at a document that changes all the time.
const LOOK_PAUSE: Duration = Duration::from_millis(20);

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
    ids: Vec<u64>,
    value: Option<Value>,
}

/// A step of the walk.
struct Walk<'a> {
    frame_id: FrameId,
    /// `None`: the frame's whole document.
    roots: Option<Vec<u64>>,
    steps: &'a [Step],
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
        loop {
            let walked = self.matches(selector, &locator, Some(then), false, deadline).await;
            let found = match walked {
                Ok(found) => found,
                Err(KitError::Page(error)) => return Err(error),
                Err(KitError::Lost) => {
                    self.pause(deadline).await?;
                    continue;
                }
            };
            match (found.count, found.ids.first()) {
                (0, _) => {
                    if self.at_rest(&found.frame_id, deadline).await? || deadline.passed() {
                        return Err(PageError::NotFound { selector: shown() });
                    }
                }
                (1, Some(id)) => {
                    let value = found.value.unwrap_or(Value::Null);
                    return Ok(Element { frame_id: found.frame_id, id: *id, value });
                }
                (count, _) => return Err(PageError::Ambiguous { selector: shown(), count }),
            }
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
        let mut walk = Walk { frame_id: main_frame_id, roots: None, steps: &locator.steps };
        while let Some(first) = walk.steps.first() {
            match first {
                Step::Reference { number } => {
                    let (frame_id, id) = self.referenced(*number, deadline).await?;
                    walk = Walk { frame_id, roots: Some(vec![id]), steps: &walk.steps[1..] };
                }
                Step::Role(query) => {
                    if let Some(done) = self.walk_role(&mut walk, query, count_visible, deadline).await? {
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
        let mut found = Matches { frame_id: walk.frame_id, count: ids.len() as u64, visible: 0, ids, value: None };
        let looks = if count_visible { found.ids.as_slice() } else { &[] };
        for id in looks {
            let request = json!({ "id": id, "then": { "action": "state" } });
            let answer = self.ask(&found.frame_id, &request, deadline).await?;
            found.visible += u64::from(answer["value"]["visible"] == true);
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

    /// Gives the kit as many steps as it can do. `Some` when these were the last ones.
    async fn walk_script(
        &self,
        selector: &str,
        walk: &mut Walk<'_>,
        then: Option<&Value>,
        count_visible: bool,
        deadline: Deadline,
    ) -> Result<Option<Matches>, KitError> {
        let scripted =
            walk.steps.iter().take_while(|step| !matches!(step, Step::Role(_) | Step::Reference { .. })).count();
        let last = scripted == walk.steps.len();
        let request = json!({
            "steps": &walk.steps[..scripted],
            "roots": walk.roots,
            "keep": if last { 1 } else { SCOPES_MAX },
            "then": if last { then } else { None },
            "count_visible": count_visible && last,
        });
        let answer = self.ask(&walk.frame_id, &request, deadline).await?;
        if answer["lost"] == true {
            return Err(KitError::Lost);
        }
        if let Some(reason) = answer["invalid"].as_str() {
            let selector = cut(selector, SELECTOR_SHOWN_BYTES_MAX);
            return Err(PageError::InvalidSelector { selector, reason: cut(reason, SELECTOR_SHOWN_BYTES_MAX) }.into());
        }
        if let Some(id) = answer["enter"].as_u64() {
            let consumed = usize::try_from(answer["consumed"].as_u64().unwrap_or(0)).unwrap_or(0).min(scripted);
            walk.steps = &walk.steps[consumed..];
            walk.frame_id = self.frame_held(&walk.frame_id, id, deadline).await?.ok_or(KitError::Lost)?;
            walk.roots = None;
            return Ok(None);
        }
        let ids: Vec<u64> =
            answer["ids"].as_array().map(|ids| ids.iter().filter_map(Value::as_u64).collect()).unwrap_or_default();
        if last {
            let count = answer["count"].as_u64().unwrap_or(0);
            let visible = answer["visible"].as_u64().unwrap_or(0);
            let value = answer.get("value").cloned();
            return Ok(Some(Matches { frame_id: walk.frame_id.clone(), count, visible, ids, value }));
        }
        walk.roots = Some(ids);
        walk.steps = &walk.steps[scripted..];
        Ok(None)
    }

    /// The frame that a kept element holds, when it is a frame's element.
    async fn frame_held(&self, frame_id: &FrameId, id: u64, deadline: Deadline) -> Result<Option<FrameId>, KitError> {
        let kit = self.kit(frame_id, deadline).await?;
        let object_id = self.object_of(frame_id, id, deadline).await?;
        let node = self.kit_call(&kit.session, "DOM.describeNode", json!({ "objectId": object_id }), deadline).await?;
        self.release_objects(frame_id);
        let Some(inside) = node["node"]["frameId"].as_str().filter(|_| is_frame(&node["node"]["nodeName"])) else {
            return Ok(None);
        };
        let inside = FrameId::from(inside);
        let known = self.state().frame(&inside).is_some();
        known.then_some(Some(inside)).ok_or(KitError::Lost)
    }

    /// Does one role part. `Some` when it was the last one and matched several elements: then their
    /// number is all that matters.
    async fn walk_role(
        &self,
        walk: &mut Walk<'_>,
        query: &RoleQuery,
        count_visible: bool,
        deadline: Deadline,
    ) -> Result<Option<Matches>, KitError> {
        if let Some([id]) = walk.roots.as_deref()
            && let Some(inside) = self.frame_held(&walk.frame_id, *id, deadline).await?
        {
            walk.frame_id = inside;
            walk.roots = None;
        }
        let nodes = self.role_nodes(walk, query, deadline).await?;
        let frame_id = walk.frame_id.clone();
        walk.steps = &walk.steps[1..];
        if walk.steps.is_empty() && nodes.len() > 1 && !count_visible {
            let count = nodes.len() as u64;
            return Ok(Some(Matches { frame_id, count, visible: 0, ids: Vec::new(), value: None }));
        }
        let mut ids = Vec::new();
        for node in nodes.into_iter().take(SCOPES_MAX) {
            match self.keep_backend_node(&frame_id, node, deadline).await {
                Ok(id) => ids.push(id),
                // It went while the others were looked at.
                Err(KitError::Lost) => {}
                Err(error) => return Err(error),
            }
        }
        walk.roots = Some(ids);
        Ok(None)
    }

    /// The browser's numbers of the nodes below the walk's roots that `query` matches.
    async fn role_nodes(&self, walk: &Walk<'_>, query: &RoleQuery, deadline: Deadline) -> Result<Vec<i64>, KitError> {
        let mut objects = Vec::new();
        match &walk.roots {
            None => objects.push(self.document_of(&walk.frame_id, deadline).await?),
            Some(ids) => {
                for id in ids {
                    objects.push(self.object_of(&walk.frame_id, *id, deadline).await?);
                }
            }
        }
        let mut nodes = Vec::new();
        let mut seen = HashSet::new();
        for object_id in objects {
            let found = self.query_role(&walk.frame_id, &object_id, query, deadline).await?;
            nodes.extend(found.into_iter().filter(|node| seen.insert(*node)));
        }
        self.release_objects(&walk.frame_id);
        Ok(nodes)
    }

    async fn document_of(&self, frame_id: &FrameId, deadline: Deadline) -> Result<String, KitError> {
        const DOCUMENT: &str = "function() { return document }";
        let object = self.kit_function(frame_id, DOCUMENT, &json!([]), false, deadline).await?;
        object["objectId"].as_str().map(str::to_owned).ok_or(KitError::Lost)
    }

    async fn query_role(
        &self,
        frame_id: &FrameId,
        object_id: &str,
        query: &RoleQuery,
        deadline: Deadline,
    ) -> Result<Vec<i64>, KitError> {
        let kit = self.kit(frame_id, deadline).await?;
        let mut params = json!({ "objectId": object_id, "role": query.native_role() });
        if let Some(name) = query.exact_name() {
            params["accessibleName"] = name.into();
        }
        let answer = self.kit_call(&kit.session, "Accessibility.queryAXTree", params, deadline).await?;
        let nodes: Nodes = serde_json::from_value(answer).map_err(|error| PageError::internal(error.to_string()))?;
        Ok(nodes.nodes.iter().filter(|node| query.matches(node)).filter_map(|node| node.backend_node_id).collect())
    }

    /// The element that a snapshot reference stands for.
    async fn referenced(&self, number: u32, deadline: Deadline) -> Result<(FrameId, u64), KitError> {
        let (node, snapshot_id) = {
            let references = self.memory().references();
            (references.node(number), references.snapshot_id())
        };
        let stale = || {
            KitError::Page(PageError::StaleRef { reference: format!("e{number}"), snapshot_id: snapshot_id.clone() })
        };
        let node = node.ok_or_else(stale)?;
        let holds = self
            .state()
            .frame(&node.frame_id)
            .is_some_and(|frame| frame.loader_id.as_deref() == Some(&*node.loader_id));
        if !holds {
            return Err(stale());
        }
        match self.keep_backend_node(&node.frame_id, node.backend_node_id, deadline).await {
            Ok(id) => Ok((node.frame_id, id)),
            // The kit may be the lost one, not the node: it is made anew, and asked once more.
            Err(KitError::Lost) => match self.keep_backend_node(&node.frame_id, node.backend_node_id, deadline).await {
                Ok(id) => Ok((node.frame_id, id)),
                Err(KitError::Lost) => Err(stale()),
                Err(error) => Err(error),
            },
            Err(error) => Err(error),
        }
    }

    /// Waits until the frame's document changes (`false`) or has come to rest (`true`).
    pub(super) async fn at_rest(&self, frame_id: &FrameId, deadline: Deadline) -> Result<bool, PageError> {
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
        Ok(network_rests(&self.state()))
    }
}

fn is_frame(name: &Value) -> bool {
    matches!(name.as_str(), Some("IFRAME" | "FRAME" | "iframe" | "frame"))
}

/// Whether the page has loaded and waits for nothing from the network.
fn network_rests(state: &PageState) -> bool {
    let now = Instant::now();
    let streams = state.in_flight.values().all(|request| now.duration_since(request.since) > STREAM_AGE);
    streams && state.navigating.is_none() && state.main_frame().reached("load")
}

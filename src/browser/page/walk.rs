//! One walk along a selector's chain, without waiting.
//!
//! Parts that the kit can do go to it in one piece, roles go to the browser's accessibility engine, and
//! a part that lands on a frame element goes on inside it, in whichever process that is.

use std::collections::HashSet;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::ax::Node;
use super::error::{PageError, SELECTOR_SHOWN_BYTES_MAX, cut};
use super::kit::KitError;
use super::locator::{RoleQuery, Step};
use super::resolve::Matches;
use crate::browser::Page;
use crate::deadline::Deadline;

/// Elements in the middle of a chain that the next part is looked for under.
const SCOPES_MAX: usize = 1000;

const QUERY: &str = "Accessibility.queryAXTree";

/// A step of the walk.
pub(super) struct Walk<'a> {
    pub(super) frame_id: FrameId,
    /// `None`: the frame's whole document.
    pub(super) roots: Option<Vec<u64>>,
    pub(super) steps: &'a [Step],
    /// Something matched a role, and went before it could be held.
    pub(super) vanished: bool,
}

/// Looks for what has taken the place of an element that went between being found and being held.
const SUCCESSOR_LOOKS: usize = 8;

impl Page {
    /// Gives the kit as many steps as it can do. `Some` when these were the last ones.
    pub(super) async fn walk_script(
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
            "keep": SCOPES_MAX,
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
        let count = answer["count"].as_u64().unwrap_or(0);
        if last || answer["several"] == true {
            let visible = answer["visible"].as_u64().unwrap_or(0);
            let value = answer.get("value").cloned();
            return Ok(Some(Matches { frame_id: walk.frame_id.clone(), count, visible, ids, value, vanished: false }));
        }
        if count > ids.len() as u64 {
            return Err(too_many(selector, usize::try_from(count).unwrap_or(usize::MAX)));
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

    /// Does one role part. `Some` when it was the last one and matched more elements than are kept:
    /// then their number is all that matters.
    pub(super) async fn walk_role(
        &self,
        selector: &str,
        walk: &mut Walk<'_>,
        query: &RoleQuery,
        deadline: Deadline,
    ) -> Result<Option<Matches>, KitError> {
        if let Some([id]) = walk.roots.as_deref()
            && let Some(inside) = self.frame_held(&walk.frame_id, *id, deadline).await?
        {
            walk.frame_id = inside;
            walk.roots = None;
        }
        let frame_id = walk.frame_id.clone();
        let (mut nodes, mut ids) = (Vec::new(), Vec::new());
        for _ in 0..SUCCESSOR_LOOKS {
            nodes = self.role_nodes(walk, query, deadline).await?;
            let kept = &nodes[..nodes.len().min(SCOPES_MAX)];
            ids = self.keep_backend_nodes(&frame_id, kept, deadline).await?;
            // What was there a moment ago has been replaced. Its successor is looked for at once: after a
            // pause the next replacement would be as near.
            if !ids.is_empty() || nodes.is_empty() {
                break;
            }
        }
        walk.steps = &walk.steps[1..];
        walk.vanished = ids.is_empty() && !nodes.is_empty();
        if nodes.len() <= SCOPES_MAX {
            walk.roots = Some(ids);
            return Ok(None);
        }
        if !walk.steps.is_empty() {
            return Err(too_many(selector, nodes.len()));
        }
        let states = self.act_each(&frame_id, &ids, &json!({ "action": "state" }), deadline).await?;
        let visible = states.iter().filter(|state| state["visible"] == true).count() as u64;
        Ok(Some(Matches { frame_id, count: nodes.len() as u64, visible, ids, value: None, vanished: false }))
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
        let session = self.kit(frame_id, deadline).await?.session.clone();
        let matching = |nodes: Vec<Node>| {
            nodes.iter().filter(|node| query.matches(node)).filter_map(|node| node.backend_node_id).collect::<Vec<_>>()
        };
        // The browser's own comparison sends little, but it leaves out part of what file inputs are called.
        let compares =
            query.role != "button" || self.ask(frame_id, &json!({ "page": "files" }), deadline).await? == false;
        if let Some(name) = query.exact_name().filter(|_| compares) {
            let params = json!({ "objectId": object_id, "accessibleName": name });
            let found = matching(self.ax_nodes(&session, QUERY, params, deadline).await?);
            if !found.is_empty() {
                return Ok(found);
            }
        }
        let mut found = Vec::new();
        for role in query.native_roles() {
            let params = json!({ "objectId": object_id, "role": role });
            found.extend(matching(self.ax_nodes(&session, QUERY, params, deadline).await?));
        }
        Ok(found)
    }

    /// The element that a snapshot reference stands for.
    pub(super) async fn referenced(&self, number: u32, deadline: Deadline) -> Result<(FrameId, u64), KitError> {
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
        let mut kept = self.keep_backend_node(&node.frame_id, node.backend_node_id, deadline).await;
        if let Err(KitError::Lost) = kept {
            // The kit may be the lost one, not the node: it is made anew, and asked once more.
            kept = self.keep_backend_node(&node.frame_id, node.backend_node_id, deadline).await;
        }
        match kept {
            Err(KitError::Lost) => Err(stale()),
            kept => kept.map(|id| (node.frame_id, id)),
        }
    }
}

fn is_frame(name: &Value) -> bool {
    matches!(name.as_str(), Some("IFRAME" | "FRAME" | "iframe" | "frame"))
}

/// A part in the middle of a chain with more matches than the next part can be looked for under.
fn too_many(selector: &str, count: usize) -> KitError {
    let reason = format!("a part before the last matches {count} elements, more than {SCOPES_MAX}; make it narrower");
    PageError::InvalidSelector { selector: cut(selector, SELECTOR_SHOWN_BYTES_MAX), reason }.into()
}

//! Which node each snapshot reference stands for.
//!
//! A reference lives as long as its node in its document: the next snapshot gives the same node the
//! same reference, and a reference is never given to another node.

use std::collections::HashMap;
use std::sync::Arc;

use futures_util::future::join_all;
use serde_json::json;
use storage::ids::FrameId;

use super::kit::KitError;
use crate::browser::{Page, SessionKey};
use crate::deadline::Deadline;

/// References of one page; beyond it those that the latest snapshot does not show are forgotten.
const REFERENCES_MAX: usize = 50_000;

/// A node as the browser numbers it, within one document of one frame.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct NodeKey {
    pub(super) frame_id: FrameId,
    pub(super) loader_id: Arc<str>,
    pub(super) backend_node_id: i64,
}

#[derive(Default)]
pub(super) struct References {
    last: u32,
    by_node: HashMap<NodeKey, u32>,
    nodes: HashMap<u32, NodeKey>,
    /// Number of the latest snapshot.
    snapshots: u64,
}

impl References {
    /// The node's reference, given now when it has none.
    pub(super) fn of(&mut self, node: NodeKey) -> u32 {
        if let Some(number) = self.by_node.get(&node) {
            return *number;
        }
        self.last += 1;
        self.by_node.insert(node.clone(), self.last);
        self.nodes.insert(self.last, node);
        self.last
    }

    pub(super) fn node(&self, number: u32) -> Option<NodeKey> {
        self.nodes.get(&number).cloned()
    }

    /// Begins a snapshot and gives its name. `holds` says whether a node's document is still there.
    pub(super) fn begin(&mut self, holds: &dyn Fn(&NodeKey) -> bool) -> String {
        self.by_node.retain(|node, _| holds(node));
        if self.by_node.len() >= REFERENCES_MAX {
            self.by_node.clear();
        }
        let Self { by_node, nodes, .. } = self;
        nodes.retain(|number, node| by_node.get(node) == Some(number));
        self.snapshots += 1;
        format!("s{}", self.snapshots)
    }

    /// The latest snapshot's name.
    pub(super) fn snapshot_id(&self) -> Option<String> {
        (self.snapshots > 0).then(|| format!("s{}", self.snapshots))
    }
}

impl Page {
    /// The reference of a node in a frame's present document.
    pub(super) fn reference_of_node(&self, frame_id: &FrameId, backend_node_id: i64) -> Option<String> {
        let loader_id = self.state().frame(frame_id)?.loader_id.as_deref().unwrap_or_default().into();
        let node = NodeKey { frame_id: frame_id.clone(), loader_id, backend_node_id };
        Some(format!("e{}", self.memory().references().of(node)))
    }

    /// References of kept elements, in their order; `None` for one that is gone.
    pub(super) async fn references_of(
        &self,
        frame_id: &FrameId,
        ids: &[u64],
        deadline: Deadline,
    ) -> Result<Vec<Option<String>>, KitError> {
        let session: SessionKey =
            self.state().frame(frame_id).map(|frame| frame.session.clone()).ok_or(KitError::Lost)?;
        let node = async |id: &u64| {
            let object_id = self.object_of(frame_id, *id, deadline).await?;
            let params = json!({ "objectId": object_id });
            let node = self.kit_call(&session, "DOM.describeNode", params, deadline).await?;
            node["node"]["backendNodeId"].as_i64().ok_or(KitError::Lost)
        };
        let nodes = join_all(ids.iter().map(node)).await;
        self.release_objects(frame_id);
        Ok(nodes.into_iter().map(|node| self.reference_of_node(frame_id, node.ok()?)).collect())
    }
}

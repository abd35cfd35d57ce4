//! The page as its accessibility tree, with references that actions accept as selectors.
//!
//! The tree is Chromium's own, frame by frame; frames in other processes answer on their sessions.
//! [`render`] makes text of it and knows nothing of a browser.

mod line;
mod render;
mod yaml;

pub(super) use line::squeeze;
#[cfg(test)]
pub(super) use render::plain;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::json;
use storage::ids::FrameId;

use super::ax::Node;
use super::error::PageError;
use super::kit::KitError;
use super::references::NodeKey;
use crate::browser::{Page, SessionKey};
use crate::deadline::Deadline;

/// Frames shown; what lies deeper or further is left out and counted.
const FRAMES_SHOWN_MAX: usize = 200;

/// A page as text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub tree: String,
    /// References in it.
    pub references: u64,
    pub snapshot_id: String,
    pub url: String,
    /// Frames that could not be shown.
    pub frames_omitted: u64,
}

/// One frame's nodes and where the frame hangs.
struct FrameTree {
    frame_id: FrameId,
    loader_id: Arc<str>,
    nodes: Vec<Node>,
}

/// A frame as the state knows it.
struct FrameEntry {
    frame_id: FrameId,
    parent: Option<FrameId>,
    session: SessionKey,
    loader_id: Arc<str>,
}

impl Page {
    /// # Errors
    /// See [`PageError`].
    pub async fn snapshot(&self, deadline: Deadline) -> Result<Snapshot, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.take_snapshot(deadline)).await
    }

    async fn take_snapshot(&self, deadline: Deadline) -> Result<Snapshot, PageError> {
        loop {
            let (frames, omitted) = self.frame_entries();
            let mut trees = Vec::with_capacity(frames.len());
            let mut owners = HashMap::new();
            let mut frames_omitted = omitted;
            for frame in frames {
                match self.frame_tree(&frame, &mut owners, deadline).await {
                    Ok(tree) => trees.push(tree),
                    Err(KitError::Lost) if frame.parent.is_some() => frames_omitted += 1,
                    Err(KitError::Lost) => break,
                    Err(KitError::Page(error)) => return Err(error),
                }
            }
            if trees.is_empty() {
                self.pause(deadline).await?;
                continue;
            }
            return Ok(self.render_snapshot(&trees, &owners, frames_omitted));
        }
    }

    /// The main frame first, then the others; how many there are beyond the bound.
    fn frame_entries(&self) -> (Vec<FrameEntry>, u64) {
        let state = self.state();
        let mut frames: Vec<FrameEntry> = state
            .frames
            .iter()
            .map(|(frame_id, frame)| FrameEntry {
                frame_id: frame_id.clone(),
                parent: frame.parent.clone(),
                session: frame.session.clone(),
                loader_id: frame.loader_id.as_deref().unwrap_or_default().into(),
            })
            .collect();
        frames.sort_by_key(|frame| frame.frame_id != state.main_frame_id);
        let omitted = frames.len().saturating_sub(FRAMES_SHOWN_MAX);
        frames.truncate(FRAMES_SHOWN_MAX);
        (frames, omitted as u64)
    }

    async fn frame_tree(
        &self,
        frame: &FrameEntry,
        owners: &mut HashMap<(FrameId, i64), FrameId>,
        deadline: Deadline,
    ) -> Result<FrameTree, KitError> {
        if let Some(parent) = &frame.parent {
            let session = self.state().frame(parent).map(|parent| parent.session.clone()).ok_or(KitError::Lost)?;
            let owner = self
                .kit_call(&session, "DOM.getFrameOwner", json!({ "frameId": frame.frame_id.as_str() }), deadline)
                .await?;
            let backend_node_id = owner["backendNodeId"].as_i64().ok_or(KitError::Lost)?;
            owners.insert((parent.clone(), backend_node_id), frame.frame_id.clone());
        }
        let params = json!({ "frameId": frame.frame_id.as_str() });
        let nodes = self.ax_nodes(&frame.session, "Accessibility.getFullAXTree", params, deadline).await?;
        Ok(FrameTree { frame_id: frame.frame_id.clone(), loader_id: Arc::clone(&frame.loader_id), nodes })
    }

    fn render_snapshot(
        &self,
        trees: &[FrameTree],
        owners: &HashMap<(FrameId, i64), FrameId>,
        frames_omitted: u64,
    ) -> Snapshot {
        let documents: HashMap<FrameId, Arc<str>> = {
            let state = self.state();
            let known =
                |frame: &crate::browser::state::FrameState| frame.loader_id.as_deref().unwrap_or_default().into();
            state.frames.iter().map(|(frame_id, frame)| (frame_id.clone(), known(frame))).collect()
        };
        let mut references = self.memory().references();
        let snapshot_id = references.begin(&|node| documents.get(&node.frame_id) == Some(&node.loader_id));
        let mut number = |tree: &FrameTree, backend_node_id: i64| {
            let (frame_id, loader_id) = (tree.frame_id.clone(), Arc::clone(&tree.loader_id));
            references.of(NodeKey { frame_id, loader_id, backend_node_id })
        };
        let inside = |frame_id: &FrameId, backend_node_id: i64| {
            let child = owners.get(&(frame_id.clone(), backend_node_id))?;
            trees.iter().position(|tree| tree.frame_id == *child)
        };
        let rendered = render::render(trees, &inside, &mut number);
        Snapshot { tree: rendered.text, references: rendered.references, snapshot_id, url: self.url(), frames_omitted }
    }
}

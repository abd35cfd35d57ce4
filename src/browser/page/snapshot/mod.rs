//! The page as its accessibility tree, with references that actions accept as selectors.
//!
//! The tree is Chromium's own, frame by frame; frames in other processes answer on their sessions.
//! [`render`] makes text of it and knows nothing of a browser.

mod line;
mod render;
mod select;
mod yaml;

pub(super) use line::squeeze;
#[cfg(test)]
pub(super) use render::plain;

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::ax::Node;
use super::error::PageError;
use super::kit::KitError;
use super::references::NodeKey;
use crate::browser::{Page, SessionKey};
use crate::deadline::Deadline;

/// Frames shown; what lies deeper or further is left out and counted.
const FRAMES_SHOWN_MAX: usize = 200;

/// What of a page is shown; everything by default.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SnapshotOptions {
    /// Selector of the element that is shown with what is in it.
    pub scope: Option<String>,
    /// Only what can be acted on, and what says what it is for.
    pub interactive_only: bool,
    /// Levels below the first that are shown.
    pub depth_max: Option<usize>,
}

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
    /// Lines that the options left out.
    pub lines_omitted: u64,
}

/// One frame's nodes and where the frame hangs.
struct FrameTree {
    frame_id: FrameId,
    loader_id: Arc<str>,
    nodes: Vec<Node>,
}

/// Everything that is rendered into one text.
#[derive(Default)]
struct Frames {
    trees: Vec<FrameTree>,
    /// The frame that hangs at a node of another.
    owners: HashMap<(FrameId, i64), FrameId>,
    omitted: u64,
}

/// A frame as the state knows it.
struct FrameEntry {
    frame_id: FrameId,
    session: SessionKey,
    loader_id: Arc<str>,
}

impl Page {
    /// The whole page.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn snapshot(&self, deadline: Deadline) -> Result<Snapshot, PageError> {
        self.snapshot_of(&SnapshotOptions::default(), deadline).await
    }

    /// # Errors
    /// See [`PageError`].
    pub async fn snapshot_of(&self, options: &SnapshotOptions, deadline: Deadline) -> Result<Snapshot, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.take_snapshot(options, deadline)).await
    }

    async fn take_snapshot(&self, options: &SnapshotOptions, deadline: Deadline) -> Result<Snapshot, PageError> {
        loop {
            match self.frame_trees(options, deadline).await {
                Ok(frames) => return Ok(self.render_snapshot(&frames, options)),
                Err(KitError::Page(error)) => return Err(error),
                Err(KitError::Lost) => self.pause(deadline).await?,
            }
        }
    }

    /// The trees of all frames that are shown, the outermost first. `Lost` when that one went.
    async fn frame_trees(&self, options: &SnapshotOptions, deadline: Deadline) -> Result<Frames, KitError> {
        let scope = match &options.scope {
            None => None,
            Some(selector) => {
                let element = self.element(selector, &json!({ "action": "state" }), deadline).await?;
                let object_id = self.object_of(&element.frame_id, element.id, deadline).await?;
                Some((element.frame_id, json!({ "objectId": object_id }), selector))
            }
        };
        let top = scope.as_ref().map_or_else(|| self.state().main_frame_id.clone(), |scope| scope.0.clone());
        let (entries, omitted) = self.frame_entries(&top);
        let mut frames = Frames { omitted, ..Frames::default() };
        for entry in entries {
            let shown = scope.as_ref().filter(|_| entry.frame_id == top);
            let tree = match shown {
                Some((_, element, _)) => self.scoped_tree(&entry, element, deadline).await,
                None => self.frame_tree(&entry, entry.frame_id != top, &mut frames.owners, deadline).await,
            };
            match tree {
                Ok(tree) => frames.trees.push(tree),
                Err(KitError::Lost) if entry.frame_id != top => frames.omitted += 1,
                Err(error) => return Err(error),
            }
        }
        let first = frames.trees.first().ok_or(KitError::Lost)?;
        match &scope {
            Some((frame_id, _, selector)) => {
                self.release_objects(frame_id);
                // What is hidden has no place in the tree.
                let empty = first.nodes.is_empty();
                if empty { Err(PageError::not_actionable(selector, "hidden").into()) } else { Ok(frames) }
            }
            None => Ok(frames),
        }
    }

    /// The frame itself first, then those inside it; how many there are beyond the bound.
    fn frame_entries(&self, top: &FrameId) -> (Vec<FrameEntry>, u64) {
        let state = self.state();
        let within = |frame_id: &FrameId| {
            let mut at = Some(frame_id);
            // Frames tell of their parents; a circle would be the browser's mistake, and ends too.
            for _ in 0..state.frames.len() {
                match at {
                    Some(here) if here == top => return true,
                    Some(here) => at = state.frame(here).and_then(|frame| frame.parent.as_ref()),
                    None => return false,
                }
            }
            at == Some(top)
        };
        let mut frames: Vec<FrameEntry> = state
            .frames
            .iter()
            .filter(|(frame_id, _)| within(frame_id))
            .map(|(frame_id, frame)| FrameEntry {
                frame_id: frame_id.clone(),
                session: frame.session.clone(),
                loader_id: frame.loader_id.as_deref().unwrap_or_default().into(),
            })
            .collect();
        frames.sort_by_key(|frame| frame.frame_id != *top);
        let omitted = frames.len().saturating_sub(FRAMES_SHOWN_MAX);
        frames.truncate(FRAMES_SHOWN_MAX);
        (frames, omitted as u64)
    }

    async fn scoped_tree(
        &self,
        frame: &FrameEntry,
        element: &Value,
        deadline: Deadline,
    ) -> Result<FrameTree, KitError> {
        let nodes = self.ax_nodes(&frame.session, "Accessibility.queryAXTree", element.clone(), deadline).await?;
        Ok(FrameTree { frame_id: frame.frame_id.clone(), loader_id: Arc::clone(&frame.loader_id), nodes })
    }

    async fn frame_tree(
        &self,
        frame: &FrameEntry,
        inner: bool,
        owners: &mut HashMap<(FrameId, i64), FrameId>,
        deadline: Deadline,
    ) -> Result<FrameTree, KitError> {
        if inner && let Some(holder) = self.holder(&frame.frame_id, deadline).await? {
            owners.insert(holder, frame.frame_id.clone());
        }
        let params = json!({ "frameId": frame.frame_id.as_str() });
        let nodes = self.ax_nodes(&frame.session, "Accessibility.getFullAXTree", params, deadline).await?;
        Ok(FrameTree { frame_id: frame.frame_id.clone(), loader_id: Arc::clone(&frame.loader_id), nodes })
    }

    fn render_snapshot(&self, frames: &Frames, options: &SnapshotOptions) -> Snapshot {
        let Frames { trees, owners, omitted } = frames;
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
        let rendered = render::render(trees, options, &inside, &mut number);
        Snapshot {
            tree: rendered.text,
            references: rendered.references,
            snapshot_id,
            url: self.url(),
            frames_omitted: *omitted,
            lines_omitted: rendered.omitted,
        }
    }
}

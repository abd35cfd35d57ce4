//! The frames of a page in a fixed order, with what tells them apart.

use std::collections::HashMap;
use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::error::PageError;
use super::kit::KitError;
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// Frames that are looked into for texts; what lies further is counted.
const FRAMES_SEARCHED_MAX: usize = 200;
/// Texts of all frames together, in bytes; frames after that are counted.
const ANSWERS_BYTES_MAX: usize = 32 * 1024 * 1024;
/// Frames around a frame.
pub(super) const FRAME_DEPTH_MAX: usize = 64;
/// A frame within the page that does not answer for this long is passed over.
const FRAME_WAIT: Duration = Duration::from_secs(2);

/// One frame.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FrameShown {
    pub frame_id: FrameId,
    pub parent: Option<FrameId>,
    pub name: String,
    pub url: String,
    pub depth: usize,
    /// Reference of the element that holds it.
    pub reference: Option<String>,
}

impl Page {
    #[must_use]
    pub fn main_frame_id(&self) -> FrameId {
        self.state().main_frame_id.clone()
    }

    /// Every frame, the main one first, then level by level.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn frames(&self, deadline: Deadline) -> Result<Vec<FrameShown>, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.describe_frames(deadline)).await
    }

    async fn describe_frames(&self, deadline: Deadline) -> Result<Vec<FrameShown>, PageError> {
        let mut frames = shown(&self.state());
        for frame in &mut frames {
            match self.holder(&frame.frame_id, deadline).await {
                Ok(Some((parent, node))) => frame.reference = self.reference_of_node(&parent, node),
                Ok(None) | Err(KitError::Lost) => {}
                Err(KitError::Page(error)) => return Err(error),
            }
        }
        Ok(frames)
    }

    /// The frame around a frame, and the backend node there that holds it; `None` for the main frame.
    pub(super) async fn holder(
        &self,
        frame_id: &FrameId,
        deadline: Deadline,
    ) -> Result<Option<(FrameId, i64)>, KitError> {
        let (parent, session) = {
            let state = self.state();
            let Some(parent) = state.frame(frame_id).ok_or(KitError::Lost)?.parent.clone() else { return Ok(None) };
            let session = state.frame(&parent).ok_or(KitError::Lost)?.session.clone();
            (parent, session)
        };
        let params = json!({ "frameId": frame_id.as_str() });
        let owner = self.kit_call(&session, "DOM.getFrameOwner", params, deadline).await?;
        let backend_node_id = owner["backendNodeId"].as_i64().ok_or(KitError::Lost)?;
        Ok(Some((parent, backend_node_id)))
    }

    /// Asks each frame's kit the same, the main frame first. Frames within that are gone or do not
    /// answer are left out; their number comes with the answers.
    pub(super) async fn ask_frames(
        &self,
        request: &Value,
        deadline: Deadline,
    ) -> Result<(Vec<(FrameId, Value)>, u64), PageError> {
        let frames = shown(&self.state());
        let mut omitted = frames.len().saturating_sub(FRAMES_SEARCHED_MAX) as u64;
        let mut answers = Vec::new();
        let mut bytes = 0;
        for frame in frames.into_iter().take(FRAMES_SEARCHED_MAX) {
            if bytes > ANSWERS_BYTES_MAX {
                omitted += 1;
                continue;
            }
            let inner = frame.parent.is_some();
            let limit = if inner { deadline.within(FRAME_WAIT) } else { deadline };
            match self.ask(&frame.frame_id, request, limit).await {
                Ok(answer) => {
                    bytes += answer["text"].as_str().map_or(0, str::len);
                    answers.push((frame.frame_id, answer));
                }
                Err(KitError::Lost) => omitted += u64::from(inner),
                Err(KitError::Page(PageError::Timeout)) if inner && !deadline.passed() => omitted += 1,
                Err(KitError::Page(error)) => return Err(error),
            }
        }
        Ok((answers, omitted))
    }
}

fn shown(state: &PageState) -> Vec<FrameShown> {
    let mut depths: HashMap<&FrameId, usize> = HashMap::from([(&state.main_frame_id, 0)]);
    // Parents may come after their children here: each turn settles at least one more level.
    loop {
        let known = depths.len();
        for (frame_id, frame) in &state.frames {
            let above = frame.parent.as_ref().and_then(|parent| depths.get(parent)).copied();
            if let Some(above) = above.filter(|_| !depths.contains_key(frame_id)) {
                depths.insert(frame_id, above + 1);
            }
        }
        if depths.len() == known {
            break;
        }
    }
    let mut frames: Vec<FrameShown> = state
        .frames
        .iter()
        .filter_map(|(frame_id, frame)| {
            let depth = *depths.get(frame_id)?;
            Some(FrameShown {
                frame_id: frame_id.clone(),
                parent: frame.parent.clone(),
                name: frame.name.clone().unwrap_or_default(),
                url: frame.url.clone(),
                depth,
                reference: None,
            })
        })
        .collect();
    frames.sort_by(|one, other| (one.depth, one.frame_id.as_str()).cmp(&(other.depth, other.frame_id.as_str())));
    frames
}

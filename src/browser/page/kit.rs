//! The script of ours that runs in an isolated world of each frame, and what is remembered per page.
//!
//! An isolated world shares the document with the page but none of its JavaScript: pages can neither
//! see nor break it. It is made when first needed and made again when its document goes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use serde_json::{Value, json};
use storage::ids::FrameId;

use super::error::PageError;
use super::references::References;
use crate::browser::{CdpError, Page, SessionKey};
use crate::deadline::Deadline;

/// The kit's parts, as one function's body.
const SCRIPT: &str = concat!(
    "(() => {\n",
    include_str!("scripts/find.js"),
    include_str!("scripts/place.js"),
    include_str!("scripts/act.js"),
    include_str!("scripts/look.js"),
    include_str!("scripts/input.js"),
    include_str!("scripts/kit.js"),
    "})()"
);
const WORLD: &str = "pageledger";
/// Objects that the browser holds for one step and no longer.
const OBJECTS: &str = "pageledger-step";
/// Frames whose kit is remembered per page; beyond it all are made afresh.
const KITS_MAX: usize = 256;
/// How long to wait for news of a frame whose document just went, before looking again.
pub(super) const PAUSE: Duration = Duration::from_millis(50);

/// What operations remember about one page.
#[derive(Default)]
pub struct Memory {
    kits: Mutex<HashMap<FrameId, Arc<Kit>>>,
    references: Mutex<References>,
}

/// The kit of one frame's present document.
pub(super) struct Kit {
    pub(super) session: SessionKey,
    pub(super) context_id: i64,
    object_id: String,
}

/// Why the kit gave no answer.
pub(super) enum KitError {
    /// The frame's document is gone; resolve again from the main frame.
    Lost,
    Page(PageError),
}

impl From<PageError> for KitError {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

impl Memory {
    fn kits(&self) -> MutexGuard<'_, HashMap<FrameId, Arc<Kit>>> {
        self.kits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn references(&self) -> MutexGuard<'_, References> {
        self.references.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Page {
    /// The kit of a frame, made when there is none.
    pub(super) async fn kit(&self, frame_id: &FrameId, deadline: Deadline) -> Result<Arc<Kit>, KitError> {
        let known = self.memory().kits().get(frame_id).cloned();
        let session = self.state().frame(frame_id).map(|frame| frame.session.clone()).ok_or(KitError::Lost)?;
        if let Some(kit) = known.filter(|kit| kit.session == session) {
            return Ok(kit);
        }
        let params = json!({ "frameId": frame_id.as_str(), "worldName": WORLD });
        let world = self.kit_call(&session, "Page.createIsolatedWorld", params, deadline).await?;
        let context_id = world["executionContextId"].as_i64().ok_or(KitError::Lost)?;
        let params = json!({ "expression": SCRIPT, "contextId": context_id, "silent": true });
        let made = self.kit_call(&session, "Runtime.evaluate", params, deadline).await?;
        let object_id = match made["result"]["objectId"].as_str() {
            Some(object_id) => object_id.to_owned(),
            None => return Err(PageError::internal("the page's kit did not start").into()),
        };
        let kit = Arc::new(Kit { session, context_id, object_id });
        let mut kits = self.memory().kits();
        if kits.len() >= KITS_MAX {
            kits.clear();
        }
        kits.insert(frame_id.clone(), Arc::clone(&kit));
        Ok(kit)
    }

    /// Asks the kit of a frame. A kit whose document has gone is made anew once.
    pub(super) async fn ask(&self, frame_id: &FrameId, request: &Value, deadline: Deadline) -> Result<Value, KitError> {
        const CALL: &str = "function(request) { return this.run(request) }";
        let arguments = json!([{ "value": request }]);
        let mut again = true;
        loop {
            match self.kit_function(frame_id, CALL, &arguments, true, deadline).await {
                Err(KitError::Lost) if again && request.get("id").is_none() => again = false,
                other => return other.map(|mut answer| answer["value"].take()),
            }
        }
    }

    /// Calls a function with the kit as `this`; gives the remote object that it returns.
    pub(super) async fn kit_function(
        &self,
        frame_id: &FrameId,
        function: &str,
        arguments: &Value,
        by_value: bool,
        deadline: Deadline,
    ) -> Result<Value, KitError> {
        let kit = self.kit(frame_id, deadline).await?;
        let params = json!({
            "objectId": kit.object_id,
            "functionDeclaration": function,
            "arguments": arguments,
            "returnByValue": by_value,
            "awaitPromise": true,
            "silent": true,
            "objectGroup": OBJECTS,
        });
        let mut answer = match self.kit_call(&kit.session, "Runtime.callFunctionOn", params, deadline).await {
            Ok(answer) => answer,
            Err(error) => {
                self.forget_kit(frame_id, &kit);
                return Err(error);
            }
        };
        if let Some(thrown) = answer.get("exceptionDetails") {
            let text =
                thrown["exception"]["description"].as_str().or_else(|| thrown["text"].as_str()).unwrap_or("unknown");
            return Err(PageError::internal(format!("the page's kit failed: {text}")).into());
        }
        Ok(answer["result"].take())
    }

    /// The remote object of a kept element.
    pub(super) async fn object_of(&self, frame_id: &FrameId, id: u64, deadline: Deadline) -> Result<String, KitError> {
        const GET: &str = "function(id) { return this.get(id) }";
        let object = self.kit_function(frame_id, GET, &json!([{ "value": id }]), false, deadline).await?;
        object["objectId"].as_str().map(str::to_owned).ok_or(KitError::Lost)
    }

    /// Lets the browser forget the objects that steps in this frame have asked for.
    pub(super) fn release_objects(&self, frame_id: &FrameId) {
        let session = self.state().frame(frame_id).map(|frame| frame.session.clone());
        if let Some(session) = session {
            self.connection().post(Some(&session), "Runtime.releaseObjectGroup", json!({ "objectGroup": OBJECTS }));
        }
    }

    /// Keeps an element that the browser knows by number, and gives the kit's number for it.
    pub(super) async fn keep_backend_node(
        &self,
        frame_id: &FrameId,
        backend_node_id: i64,
        deadline: Deadline,
    ) -> Result<u64, KitError> {
        let kept = self.keep_backend_nodes(frame_id, &[backend_node_id], deadline).await?;
        kept.first().copied().ok_or(KitError::Lost)
    }

    /// Keeps several; those that are gone, or are only a field's inner parts, are left out.
    pub(super) async fn keep_backend_nodes(
        &self,
        frame_id: &FrameId,
        backend_node_ids: &[i64],
        deadline: Deadline,
    ) -> Result<Vec<u64>, KitError> {
        const KEEP: &str = "function(...nodes) { return this.keepAll(nodes) }";
        let kit = self.kit(frame_id, deadline).await?;
        let resolve = |node: &i64| {
            let params = json!({
                "backendNodeId": node, "executionContextId": kit.context_id, "objectGroup": OBJECTS,
            });
            self.kit_call(&kit.session, "DOM.resolveNode", params, deadline)
        };
        let (mut objects, mut lost) = (Vec::with_capacity(backend_node_ids.len()), false);
        for node in join_all(backend_node_ids.iter().map(resolve)).await {
            match node {
                Ok(node) => objects.extend(node["object"]["objectId"].as_str().map(|id| json!({ "objectId": id }))),
                Err(KitError::Lost) => lost = true,
                Err(error) => return Err(error),
            }
        }
        if objects.is_empty() {
            // The same answer comes when the world of the kit has gone with its document.
            if lost {
                self.forget_kit(frame_id, &kit);
            }
            return Ok(Vec::new());
        }
        let kept = self.kit_function(frame_id, KEEP, &Value::Array(objects), true, deadline).await;
        self.release_objects(frame_id);
        let kept = kept?;
        let ids =
            kept["value"].as_array().map(|ids| ids.iter().filter_map(Value::as_u64).filter(|id| *id > 0).collect());
        ids.ok_or(KitError::Lost)
    }

    /// Runs a kit action on each of several kept elements; null for those that are gone.
    pub(super) async fn act_each(
        &self,
        frame_id: &FrameId,
        ids: &[u64],
        then: &Value,
        deadline: Deadline,
    ) -> Result<Vec<Value>, KitError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        // Asked with an id, so that a kit that has gone is told instead of being made anew.
        let request = json!({ "id": 0, "each": ids, "then": then });
        let mut answer = self.ask(frame_id, &request, deadline).await?;
        match answer["values"].take() {
            Value::Array(values) => Ok(values),
            _ => Err(KitError::Lost),
        }
    }

    pub(super) async fn kit_call(
        &self,
        session: &SessionKey,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Value, KitError> {
        let answer = self.connection().raw(Some(session), method, params, deadline).await;
        answer.map_err(|error| match &error {
            CdpError::Protocol { message, .. } if is_loss(message) => match self.free() {
                Err(end @ (PageError::PageClosed | PageError::PageCrashed | PageError::BrowserGone)) => {
                    KitError::Page(end)
                }
                _ => KitError::Lost,
            },
            // A frame's own process may go while the page lives on.
            CdpError::Closed if session != self.session() => KitError::Lost,
            _ => KitError::Page(self.fault(&error, method)),
        })
    }

    fn forget_kit(&self, frame_id: &FrameId, kit: &Arc<Kit>) {
        let mut kits = self.memory().kits();
        if kits.get(frame_id).is_some_and(|known| Arc::ptr_eq(known, kit)) {
            kits.remove(frame_id);
        }
    }

    /// Waits a moment for news about the page.
    pub(super) async fn pause(&self, deadline: Deadline) -> Result<(), PageError> {
        match self.wait::<()>(deadline.within(PAUSE), |_| None).await {
            Ok(()) => Ok(()),
            Err(crate::browser::WaitError::Passed) if !deadline.passed() => Ok(()),
            Err(error) => Err(self.waited(error)),
        }
    }
}

/// Whether Chromium's refusal means that the document, frame or node is no longer there.
fn is_loss(message: &str) -> bool {
    const LOSSES: [&str; 10] = [
        "Cannot find context",
        "Could not find object",
        "Execution context was destroyed",
        "Inspected target navigated or closed",
        "Session with given id not found",
        "No frame for given id found",
        "No frame with given id found",
        "No node with given id found",
        "Could not find node with given id",
        "Promise was collected",
    ];
    LOSSES.iter().any(|loss| message.contains(loss)) || message.contains("does not belong to the document")
}

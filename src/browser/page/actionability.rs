//! Whether an element can be acted on, and where: shown, enabled, in view, still, not covered.
//!
//! The kit looks from inside the document and waits there for changes; this side walks outward
//! through the frames around it and keeps the deadline.

use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::error::PageError;
use super::frames::FRAME_DEPTH_MAX;
use super::kit::KitError;
use super::resolve::{Element, network_rests};
use crate::browser::Page;
use crate::deadline::Deadline;

/// An obstacle that has stood unchanged for this long, on a page that waits for nothing from the network
/// and ends no animation, is reported.
const OBSTACLE_REST: Duration = Duration::from_millis(2500);
/// An element that keeps moving is reported after this long.
const MOVING_MAX: Duration = Duration::from_secs(5);
/// One wait inside the page, so that the frames around it are looked at again now and then.
const LOOK_MAX: Duration = Duration::from_millis(3000);

/// What an action needs of its element.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Need {
    pub(super) enabled: bool,
    pub(super) pointer: bool,
    /// A hidden control may be worked by its label.
    pub(super) label: bool,
    /// From the element's top left corner, in CSS pixels.
    pub(super) position: Option<(f64, f64)>,
}

/// A point to put the pointer, with what is needed to look again.
#[derive(Debug, Clone)]
pub(super) struct Spot {
    pub(super) element: Element,
    /// In the top document's viewport.
    pub(super) x: f64,
    pub(super) y: f64,
}

impl Need {
    fn request(self, stable: bool, deadline: Deadline) -> Value {
        let mut request = patience(deadline);
        request["action"] = "prepare".into();
        request["enabled"] = self.enabled.into();
        request["pointer"] = self.pointer.into();
        request["label"] = self.label.into();
        request["position"] = self.position.map_or(Value::Null, |(x, y)| json!([x, y]));
        request["stable"] = stable.into();
        request
    }
}

pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// What an answer from the page may take on its way back.
const ANSWER_WAIT: Duration = Duration::from_millis(200);

/// The waiting part of a kit action that needs an element in a certain condition.
pub(super) fn patience(deadline: Deadline) -> Value {
    // The page's answer, with its reason, must be back before the deadline cuts it off.
    let remaining = deadline.remaining();
    let looking = remaining.saturating_sub(ANSWER_WAIT).max(remaining / 2);
    json!({ "ms": millis(looking.min(LOOK_MAX)), "quiet": millis(OBSTACLE_REST) })
}

/// Collects why an element cannot be acted on yet, and says when to stop trying.
pub(super) struct Obstacles {
    selector: String,
    last: Option<String>,
    moving: Deadline,
}

impl Obstacles {
    pub(super) fn new(selector: &str) -> Self {
        Self { selector: selector.to_owned(), last: None, moving: Deadline::after(MOVING_MAX) }
    }

    /// Takes a refusal of the kit. An error when it is final, or when it lasts and the page `rests`.
    fn weigh(&mut self, refusal: &Value, rests: bool, deadline: Deadline) -> Result<(), PageError> {
        let reason = refusal["reason"].as_str().unwrap_or("unknown").to_owned();
        let final_moving = reason == "moving" && self.moving.passed();
        let lasting = refusal["quiet"] == true && rests;
        let over = refusal["final"] == true || lasting || final_moving || deadline.passed();
        self.last = Some(reason);
        if over { Err(self.error()) } else { Ok(()) }
    }

    pub(super) fn error(&self) -> PageError {
        PageError::not_actionable(&self.selector, self.last.clone().unwrap_or_else(|| "unknown".into()))
    }

    /// A deadline that passes over a known obstacle is that obstacle.
    pub(super) fn explain(&self, error: PageError) -> PageError {
        if matches!(error, PageError::Timeout) && self.last.is_some() { self.error() } else { error }
    }
}

impl Page {
    /// As [`Obstacles::weigh`], with what is known of the page.
    pub(super) fn weigh(
        &self,
        obstacles: &mut Obstacles,
        refusal: &Value,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let rests = network_rests(&self.state());
        obstacles.weigh(refusal, rests, deadline)
    }

    /// Runs a kit action that answers `ok` or a reason, until it is `ok`.
    pub(super) async fn element_ready(
        &self,
        selector: &str,
        obstacles: &mut Obstacles,
        request: &(dyn Fn(Deadline) -> Value + Sync),
        deadline: Deadline,
    ) -> Result<Element, PageError> {
        loop {
            let found = self.element(selector, &request(deadline), deadline).await;
            let element = found.map_err(|error| obstacles.explain(error))?;
            if element.value["ok"] == true {
                return Ok(element);
            }
            self.weigh(obstacles, &element.value, deadline)?;
        }
    }

    /// Waits for a point where the pointer reaches the element.
    pub(super) async fn spot(
        &self,
        selector: &str,
        need: Need,
        stable: bool,
        obstacles: &mut Obstacles,
        deadline: Deadline,
    ) -> Result<Spot, PageError> {
        let request = move |deadline: Deadline| need.request(stable, deadline);
        loop {
            let element = self.element_ready(selector, obstacles, &request, deadline).await?;
            let (x, y) = (number(&element.value["x"]), number(&element.value["y"]));
            if element.frame_id == self.state().main_frame_id {
                return Ok(Spot { element, x, y });
            }
            match self.outward(&element.frame_id, x, y, deadline).await {
                Ok(Ok((x, y))) => return Ok(Spot { element, x, y }),
                Ok(Err(refusal)) => {
                    self.weigh(obstacles, &refusal, deadline)?;
                    self.pause(deadline).await.map_err(|error| obstacles.explain(error))?;
                }
                Err(KitError::Lost) => self.pause(deadline).await.map_err(|error| obstacles.explain(error))?,
                Err(KitError::Page(error)) => return Err(obstacles.explain(error)),
            }
        }
    }

    /// Whether the element is still where it was, and still on top. The refusal otherwise.
    pub(super) async fn still(&self, spot: &Spot, deadline: Deadline) -> Result<Option<Value>, PageError> {
        let seen = &spot.element.value;
        let then = json!({ "action": "recheck", "x": seen["x"], "y": seen["y"], "box": seen["box"], "tick": seen["tick"], "label": seen["label"] });
        match self.act(&spot.element.frame_id, spot.element.id, &then, deadline).await {
            Ok(answer) if answer["ok"] == true => Ok(None),
            Ok(refusal) => Ok(Some(refusal)),
            Err(KitError::Lost) => Ok(Some(json!({ "reason": "detached" }))),
            Err(KitError::Page(error)) => Err(error),
        }
    }

    /// Carries a point of a frame's viewport to the top document's, seeing to it that every frame on
    /// the way shows it.
    pub(super) async fn outward(
        &self,
        frame_id: &FrameId,
        x: f64,
        y: f64,
        deadline: Deadline,
    ) -> Result<Result<(f64, f64), Value>, KitError> {
        let (mut frame_id, mut x, mut y) = (frame_id.clone(), x, y);
        for _ in 0..FRAME_DEPTH_MAX {
            let Some((parent, node)) = self.holder(&frame_id, deadline).await? else { return Ok(Ok((x, y))) };
            let id = self.keep_backend_node(&parent, node, deadline).await?;
            let answer = self.act(&parent, id, &json!({ "action": "inside", "x": x, "y": y }), deadline).await?;
            if answer["ok"] != true {
                return Ok(Err(answer));
            }
            (frame_id, x, y) = (parent, number(&answer["x"]), number(&answer["y"]));
        }
        Ok(Err(json!({ "reason": "too many frames around it", "final": true })))
    }
}

pub(super) fn number(value: &Value) -> f64 {
    value.as_f64().unwrap_or(0.0)
}

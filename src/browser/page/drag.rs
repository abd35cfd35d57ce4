//! Dragging: by pointer alone, or with the browser's own data transfer where the page uses that.
//!
//! Which of the two it is shows only after the first moves. A drag with data would go to the desktop,
//! which a headless browser has none of: the browser is told to hand it over, and it is brought to its
//! goal from here. Whatever happens, no button stays down and no drag stays open.

use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::actionability::{Need, Obstacles, number, patience};
use super::call::{ActionDone, COLLECT_WAIT};
use super::error::PageError;
use super::kit::KitError;
use crate::browser::Page;
use crate::browser::state::PageState;
use crate::deadline::Deadline;

/// How far the pointer goes, in CSS pixels, before the goal is brought into view: what is dragged must
/// still be where it was pressed when the drag begins, and links begin only after 40.
const FIRST_MOVES: [f64; 2] = [6.0, 45.0];
/// Moves from there to the goal.
const MOVES: u8 = 4;
/// A drag that has begun inside the page is handed over within this.
const HAND_OVER_WAIT: Duration = Duration::from_secs(2);

/// Where a drag ends.
enum Goal<'a> {
    Element(&'a str),
    Point(f64, f64),
}

/// What is left to undo when a drag is cut short, and how it went.
#[derive(Default)]
struct Open(AtomicU8);

const NOTHING: u8 = 0;
const PRESSED: u8 = 1;
const DRAGGING: u8 = 2;
/// Nothing is left, and data was let go.
const LET_GO: u8 = 3;

impl Open {
    fn set(&self, open: u8) {
        self.0.store(open, Ordering::Relaxed);
    }

    fn get(&self) -> u8 {
        self.0.load(Ordering::Relaxed)
    }
}

impl Page {
    /// Drags the one element that `source` means onto the one that `target` means.
    ///
    /// # Errors
    /// See [`PageError`]; a dialog that the drop opens is no error.
    pub async fn drag_and_drop(&self, source: &str, target: &str, deadline: Deadline) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let need = Need { pointer: true, ..Need::default() };
        let ready = async {
            // A target that shows itself only while something is dragged is waited for later.
            let there = self.element(target, &json!({ "action": "state" }), deadline).await?;
            if there.value["visible"] == true {
                self.spot(target, need, false, &mut Obstacles::new(target), deadline).await?;
            }
            self.approach(source, need, 0, deadline).await
        };
        let from = self.race_undone(mark, deadline, ready).await?;
        let (goal, open) = (Goal::Element(target), Open::default());
        let work = self.drag(&from.element.frame_id, (from.x, from.y), &goal, &open, deadline);
        let done = self.effect(mark, deadline, work).await;
        self.let_go_of(&open, (from.x, from.y));
        self.told_drop(&from.element.frame_id, &open, done?, deadline).await
    }

    /// Drags from one point of the viewport to another.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn mouse_drag(
        &self,
        from: (f64, f64),
        to: (f64, f64),
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let ready = async {
            self.in_viewport(to, deadline).await?;
            self.in_viewport(from, deadline).await?;
            self.move_pointer(from, 0, 0, deadline).await
        };
        self.race_undone(mark, deadline, ready).await?;
        let main_frame_id = self.state().main_frame_id.clone();
        let (goal, open) = (Goal::Point(to.0, to.1), Open::default());
        let work = self.drag(&main_frame_id, from, &goal, &open, deadline);
        let done = self.effect(mark, deadline, work).await;
        self.let_go_of(&open, from);
        self.told_drop(&main_frame_id, &open, done?, deadline).await
    }

    /// From the press to the release. The pointer is at `from` already.
    async fn drag(
        &self,
        frame_id: &FrameId,
        from: (f64, f64),
        goal: &Goal<'_>,
        open: &Open,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let begun = self.state().drags_begun;
        let post = |method: &str, params: Value| self.connection().post(Some(self.session()), method, params);
        post("Input.setInterceptDrags", json!({ "enabled": true }));
        self.watch_drag(frame_id, deadline).await?;
        open.set(PRESSED);
        post("Input.dispatchMouseEvent", button_event("mousePressed", from, 1));
        let (mut at, mut dragged) = (from, None);
        for near in self.first_moves(from, goal, deadline).await? {
            at = near;
            self.move_pointer(at, 0, 1, deadline).await?;
            dragged = self.handed_over(frame_id, begun, deadline).await?;
            if dragged.is_some() {
                break;
            }
        }
        let to = if dragged.is_none() { self.goal_point(goal, deadline).await? } else { at };
        for step in 1..=MOVES {
            if dragged.is_some() {
                break;
            }
            let part = f64::from(step) / f64::from(MOVES);
            self.move_pointer((at.0 + (to.0 - at.0) * part, at.1 + (to.1 - at.1) * part), 0, 1, deadline).await?;
            dragged = self.handed_over(frame_id, begun, deadline).await?;
        }
        match dragged {
            Some(data) => self.drop_data(&data, goal, open, deadline).await?,
            None => {
                // What follows the pointer may have moved the goal.
                let to = self.goal_point(goal, deadline).await?;
                self.move_pointer(to, 0, 1, deadline).await?;
                let released = button_event("mouseReleased", to, 0);
                self.command(self.session(), "Input.dispatchMouseEvent", released, deadline).await?;
                open.set(NOTHING);
            }
        }
        self.echo(deadline).await;
        Ok(())
    }

    /// Points on the way to the goal, wherever that is now, not beyond it and inside the viewport.
    async fn first_moves(
        &self,
        from: (f64, f64),
        goal: &Goal<'_>,
        deadline: Deadline,
    ) -> Result<[(f64, f64); 2], PageError> {
        let to = match goal {
            Goal::Point(x, y) => (*x, *y),
            Goal::Element(selector) => {
                let there = self.element(selector, &json!({ "action": "where" }), deadline).await?;
                (number(&there.value["x"]), number(&there.value["y"]))
            }
        };
        let viewport = self.ask_main(&json!({ "page": "point", "x": 0, "y": 0 }), deadline).await?;
        let (right, bottom) = (number(&viewport["width"]) - 1.0, number(&viewport["height"]) - 1.0);
        let (across, down) = (to.0 - from.0, to.1 - from.1);
        let distance = across.hypot(down).max(1.0);
        Ok(FIRST_MOVES.map(|far| {
            let part = far.min(distance) / distance;
            ((from.0 + across * part).clamp(0.0, right.max(0.0)), (from.1 + down * part).clamp(0.0, bottom.max(0.0)))
        }))
    }

    /// Brings data over its goal and drops it.
    async fn drop_data(&self, data: &Value, goal: &Goal<'_>, open: &Open, deadline: Deadline) -> Result<(), PageError> {
        open.set(DRAGGING);
        let mut to = self.goal_point(goal, deadline).await?;
        for kind in ["dragEnter", "dragOver", "dragOver", "drop"] {
            let params = json!({ "type": kind, "x": to.0, "y": to.1, "data": data, "modifiers": 0 });
            if kind == "drop" {
                open.set(LET_GO);
            }
            self.command(self.session(), "Input.dispatchDragEvent", params, deadline).await?;
            if kind == "dragEnter" {
                // Lists make room for what comes over them.
                to = self.goal_point(goal, deadline).await?;
            }
        }
        Ok(())
    }

    /// Ends what a drag that was cut short has left open.
    fn let_go_of(&self, open: &Open, at: (f64, f64)) {
        let post = |method: &str, params: Value| self.connection().post(Some(self.session()), method, params);
        match open.get() {
            PRESSED => post("Input.dispatchMouseEvent", button_event("mouseReleased", at, 0)),
            DRAGGING => {
                let nothing = json!({ "items": [], "dragOperationsMask": 0 });
                post("Input.dispatchDragEvent", json!({ "type": "dragCancel", "x": at.0, "y": at.1, "data": nothing }));
                post("Input.dispatchMouseEvent", button_event("mouseReleased", at, 0));
            }
            _ => {}
        }
        post("Input.setInterceptDrags", json!({ "enabled": false }));
        self.state().drag = None;
    }

    /// Where the goal is now, scrolled into view when it is not.
    async fn goal_point(&self, goal: &Goal<'_>, deadline: Deadline) -> Result<(f64, f64), PageError> {
        let selector = match goal {
            Goal::Point(x, y) => return Ok((*x, *y)),
            Goal::Element(selector) => *selector,
        };
        let request = |deadline: Deadline| {
            let mut request = patience(deadline);
            request["action"] = "place".into();
            request
        };
        let mut obstacles = Obstacles::new(selector);
        loop {
            let element = self.element_ready(selector, &mut obstacles, &request, deadline).await?;
            let (x, y) = (number(&element.value["x"]), number(&element.value["y"]));
            if element.frame_id == self.state().main_frame_id {
                return Ok((x, y));
            }
            match self.outward(&element.frame_id, x, y, deadline).await {
                Ok(Ok(point)) => return Ok(point),
                Ok(Err(refusal)) => self.weigh(&mut obstacles, &refusal, deadline)?,
                Err(KitError::Lost) => {}
                Err(KitError::Page(error)) => return Err(error),
            }
            self.pause(deadline).await?;
        }
    }

    /// Adds what the dragged element was told of its drop. One that left the document over it is told
    /// nothing, and then nothing is said.
    async fn told_drop(
        &self,
        frame_id: &FrameId,
        open: &Open,
        done: ActionDone,
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        if open.get() != LET_GO || done.dialog.is_some() || done.navigated || done.closed {
            return Ok(done);
        }
        let answer = self.ask(frame_id, &json!({ "page": "dropped" }), deadline.within(COLLECT_WAIT)).await;
        let dropped = answer.ok().and_then(|answer| answer["effect"].as_str().map(|effect| effect != "none"));
        Ok(ActionDone { dropped, ..done })
    }

    async fn watch_drag(&self, frame_id: &FrameId, deadline: Deadline) -> Result<(), PageError> {
        match self.ask(frame_id, &json!({ "page": "watch_drag" }), deadline).await {
            // A frame that is gone by now fails at the first move.
            Ok(_) | Err(KitError::Lost) => Ok(()),
            Err(KitError::Page(error)) => Err(error),
        }
    }

    /// The data of a drag that the page has begun.
    async fn handed_over(
        &self,
        frame_id: &FrameId,
        begun: u64,
        deadline: Deadline,
    ) -> Result<Option<Value>, PageError> {
        let data = |state: &PageState| state.drag.clone().filter(|_| state.drags_begun > begun);
        let started = match self.ask(frame_id, &json!({ "page": "dragged" }), deadline).await {
            Ok(answer) => answer["started"] == true,
            Err(KitError::Lost) => false,
            Err(KitError::Page(error)) => return Err(error),
        };
        if !started {
            return Ok(data(&self.state()));
        }
        Ok(self.wait(deadline.within(HAND_OVER_WAIT), data).await.ok())
    }
}

fn button_event(kind: &str, at: (f64, f64), buttons: u8) -> Value {
    json!({ "type": kind, "x": at.0, "y": at.1, "button": "left", "buttons": buttons, "clickCount": 1 })
}

//! Real mouse input: the browser hit-tests it as it would a person's.
//!
//! The pointer first moves to its place, which takes at least one frame; then the element must still
//! be there and on top. That second look is what makes "stable over two frames" cost no extra wait.

use serde_json::{Value, json};

use super::actionability::{Need, Obstacles, Spot};
use super::call::ActionDone;
use super::error::PageError;
use super::keys::Modifier;
use crate::browser::Page;
use crate::deadline::Deadline;

/// Presses of one click.
pub const CLICK_COUNT_MAX: u8 = 3;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MouseButton {
    #[default]
    Left,
    Right,
    Middle,
}

/// How to click.
#[derive(Debug, Clone, PartialEq)]
pub struct ClickOptions {
    pub button: MouseButton,
    /// 1 to 3.
    pub click_count: u8,
    pub modifiers: Vec<Modifier>,
    /// From the element's top left corner, in CSS pixels; its middle otherwise.
    pub position: Option<(f64, f64)>,
}

impl Default for ClickOptions {
    fn default() -> Self {
        Self { button: MouseButton::Left, click_count: 1, modifiers: Vec::new(), position: None }
    }
}

impl MouseButton {
    fn name(self) -> &'static str {
        match self {
            Self::Left => "left",
            Self::Right => "right",
            Self::Middle => "middle",
        }
    }

    /// The bit it has while it is down.
    fn bit(self) -> u8 {
        match self {
            Self::Left => 1,
            Self::Right => 2,
            Self::Middle => 4,
        }
    }
}

impl Page {
    /// Clicks the one element that `selector` means.
    ///
    /// # Errors
    /// See [`PageError`]; a dialog that the click itself opens is no error.
    pub async fn click(
        &self,
        selector: &str,
        options: &ClickOptions,
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let need = Need { enabled: true, pointer: true, position: options.position, ..Need::default() };
        let bits = Modifier::bits(&options.modifiers);
        let spot = self.race_undone(mark, deadline, self.approach(selector, need, bits, deadline)).await?;
        self.effect(mark, deadline, self.press((spot.x, spot.y), options, bits, deadline)).await
    }

    /// Puts the pointer over the one element that `selector` means.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn hover(&self, selector: &str, deadline: Deadline) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let need = Need { pointer: true, ..Need::default() };
        let work = async { self.approach(selector, need, 0, deadline).await.map(|_| ()) };
        self.effect(mark, deadline, work).await
    }

    /// Moves the pointer onto the element until it stays there.
    pub(super) async fn approach(
        &self,
        selector: &str,
        need: Need,
        modifiers: u8,
        deadline: Deadline,
    ) -> Result<Spot, PageError> {
        let mut obstacles = Obstacles::new(selector);
        let mut stable = false;
        loop {
            let spot = self.spot(selector, need, stable, &mut obstacles, deadline).await?;
            let moved = self.move_pointer((spot.x, spot.y), modifiers, 0, deadline).await;
            moved.map_err(|error| obstacles.explain(error))?;
            match self.still(&spot, deadline).await.map_err(|error| obstacles.explain(error))? {
                None => return Ok(spot),
                Some(refusal) => self.weigh(&mut obstacles, &refusal, deadline)?,
            }
            stable = true;
        }
    }

    /// Presses and releases where the pointer is.
    pub(super) async fn press(
        &self,
        at: (f64, f64),
        options: &ClickOptions,
        modifiers: u8,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let event = |kind: &str, buttons: u8, count: u8| -> Value {
            json!({
                "type": kind, "x": at.0, "y": at.1, "button": options.button.name(), "buttons": buttons,
                "clickCount": count, "modifiers": modifiers,
            })
        };
        let presses = options.click_count.clamp(1, CLICK_COUNT_MAX);
        for count in 1..=presses {
            // Input is delivered in order, so only the last answer is worth waiting for.
            let pressed = event("mousePressed", options.button.bit(), count);
            self.connection().post(Some(self.session()), "Input.dispatchMouseEvent", pressed);
            let released = event("mouseReleased", 0, count);
            if count < presses {
                self.connection().post(Some(self.session()), "Input.dispatchMouseEvent", released);
            } else {
                self.command(self.session(), "Input.dispatchMouseEvent", released, deadline).await?;
            }
        }
        self.echo(deadline).await;
        Ok(())
    }
}

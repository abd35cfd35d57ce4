//! The mouse by coordinates of the viewport, for what has no element: canvases, maps, games.

use serde_json::json;

use super::actionability::number;
use super::call::ActionDone;
use super::error::PageError;
use super::keys::Modifier;
use super::pointer::ClickOptions;
use super::scroll::ScrollOffset;
use crate::browser::Page;
use crate::deadline::Deadline;

impl Page {
    /// Moves the pointer. Says what lies under it.
    ///
    /// # Errors
    /// `OutsideViewport`, and see [`PageError`].
    pub async fn mouse_move(&self, at: (f64, f64), deadline: Deadline) -> Result<(ActionDone, String), PageError> {
        let mark = self.begin(deadline).await?;
        let hit = self.race_undone(mark, deadline, self.in_viewport(at, deadline)).await?;
        let done = self.effect(mark, deadline, self.move_pointer(at, 0, 0, deadline)).await?;
        Ok((done, hit))
    }

    /// Clicks at a point. Says what lay there.
    ///
    /// # Errors
    /// `OutsideViewport`, and see [`PageError`].
    pub async fn mouse_click(
        &self,
        at: (f64, f64),
        options: &ClickOptions,
        deadline: Deadline,
    ) -> Result<(ActionDone, String), PageError> {
        let mark = self.begin(deadline).await?;
        let bits = Modifier::bits(&options.modifiers);
        let ready = async {
            let hit = self.in_viewport(at, deadline).await?;
            self.move_pointer(at, bits, 0, deadline).await.map(|()| hit)
        };
        let hit = self.race_undone(mark, deadline, ready).await?;
        let done = self.effect(mark, deadline, self.press(at, options, bits, deadline)).await?;
        Ok((done, hit))
    }

    /// Turns the wheel at a point, or in the middle. Gives the page's offset right after.
    ///
    /// # Errors
    /// `OutsideViewport`, and see [`PageError`].
    pub async fn mouse_wheel(
        &self,
        at: Option<(f64, f64)>,
        by: (f64, f64),
        deadline: Deadline,
    ) -> Result<(ActionDone, ScrollOffset), PageError> {
        let mark = self.begin(deadline).await?;
        let work = async {
            let at = match at {
                Some(at) => self.in_viewport(at, deadline).await.map(|_| at)?,
                None => self.middle(deadline).await?,
            };
            let params =
                json!({ "type": "mouseWheel", "x": at.0, "y": at.1, "deltaX": by.0, "deltaY": by.1, "modifiers": 0 });
            self.command(self.session(), "Input.dispatchMouseEvent", params, deadline).await?;
            self.echo(deadline).await;
            Ok(())
        };
        let done = self.effect(mark, deadline, work).await?;
        if done.dialog.is_some() {
            return Ok((done, ScrollOffset { x: 0.0, y: 0.0 }));
        }
        let offset = self.ask_main(&json!({ "page": "scroll" }), deadline).await?;
        Ok((done, ScrollOffset { x: number(&offset["x"]), y: number(&offset["y"]) }))
    }

    pub(super) async fn move_pointer(
        &self,
        at: (f64, f64),
        modifiers: u8,
        buttons: u8,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let button = if buttons == 1 { "left" } else { "none" };
        let params = json!({
            "type": "mouseMoved", "x": at.0, "y": at.1, "button": button, "buttons": buttons, "modifiers": modifiers,
        });
        self.command(self.session(), "Input.dispatchMouseEvent", params, deadline).await.map(|_| ())
    }

    /// What lies at a point of the viewport.
    pub(super) async fn in_viewport(&self, at: (f64, f64), deadline: Deadline) -> Result<String, PageError> {
        let seen = self.ask_main(&json!({ "page": "point", "x": at.0, "y": at.1 }), deadline).await?;
        let (width, height) = (number(&seen["width"]), number(&seen["height"]));
        if at.0 < 0.0 || at.1 < 0.0 || at.0 >= width || at.1 >= height {
            return Err(PageError::OutsideViewport { width, height });
        }
        Ok(seen["element"].as_str().unwrap_or_default().to_owned())
    }

    async fn middle(&self, deadline: Deadline) -> Result<(f64, f64), PageError> {
        let seen = self.ask_main(&json!({ "page": "point", "x": 0, "y": 0 }), deadline).await?;
        Ok((number(&seen["width"]) / 2.0, number(&seen["height"]) / 2.0))
    }
}

//! Scrolling the page, or an element of it into view.

use serde_json::{Value, json};

use super::actionability::{Obstacles, number, patience};
use super::error::PageError;
use super::kit::KitError;
use crate::browser::Page;
use crate::deadline::Deadline;

/// Where to scroll.
#[derive(Debug, Clone, PartialEq)]
pub enum ScrollTarget {
    /// By so many CSS pixels.
    By { dx: f64, dy: f64 },
    /// To this offset.
    To { x: f64, y: f64 },
    /// Until the one element that it means is in the middle.
    Selector(String),
}

/// The top document's offset, read right after: a smooth scroll may still be moving.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ScrollOffset {
    pub x: f64,
    pub y: f64,
}

impl Page {
    /// # Errors
    /// See [`PageError`].
    pub async fn scroll(
        &self,
        target: &ScrollTarget,
        smooth: bool,
        deadline: Deadline,
    ) -> Result<ScrollOffset, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.scroll_to(target, smooth, deadline)).await
    }

    async fn scroll_to(
        &self,
        target: &ScrollTarget,
        smooth: bool,
        deadline: Deadline,
    ) -> Result<ScrollOffset, PageError> {
        let behavior = if smooth { "smooth" } else { "instant" };
        let mut request = json!({ "page": "scroll", "behavior": behavior });
        match target {
            ScrollTarget::By { dx, dy } => request["by"] = json!([dx, dy]),
            ScrollTarget::To { x, y } => request["to"] = json!([x, y]),
            ScrollTarget::Selector(selector) => {
                let then = move |deadline: Deadline| {
                    let mut request = patience(deadline);
                    request["action"] = "scroll".into();
                    request["behavior"] = behavior.into();
                    request
                };
                self.element_ready(selector, &mut Obstacles::new(selector), &then, deadline).await?;
            }
        }
        let offset = self.ask_main(&request, deadline).await?;
        Ok(ScrollOffset { x: number(&offset["x"]), y: number(&offset["y"]) })
    }

    /// Asks the main frame's kit, through a change of document when there is one.
    pub(super) async fn ask_main(&self, request: &Value, deadline: Deadline) -> Result<Value, PageError> {
        loop {
            let main_frame_id = self.state().main_frame_id.clone();
            match self.ask(&main_frame_id, request, deadline).await {
                Ok(answer) => return Ok(answer),
                Err(KitError::Page(error)) => return Err(error),
                Err(KitError::Lost) => self.pause(deadline).await?,
            }
        }
    }

    /// The page's whole document as HTML, doctype included.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn content(&self, deadline: Deadline) -> Result<String, PageError> {
        let mark = self.begin(deadline).await?;
        let request = json!({ "page": "content" });
        let html = self.race_undone(mark, deadline, self.ask_main(&request, deadline)).await?;
        match html {
            Value::String(html) => Ok(html),
            _ => Err(PageError::internal("the document could not be read")),
        }
    }
}

//! Replacing the value of a field in one go, with the events that pages listen for.
//!
//! Text goes in as one real insertion, so that frameworks see it as typed. Fields that have no text,
//! such as dates and colours, get their value set and their events sent by the kit.

use serde_json::json;

use super::actionability::{Obstacles, patience};
use super::call::{ActionDone, COLLECT_WAIT};
use super::error::PageError;
use super::keyboard::{key_down, key_event};
use super::keys::Chord;
use super::resolve::Element;
use crate::browser::Page;
use crate::deadline::Deadline;

impl Page {
    /// Sets the value of the one field that `selector` means.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn fill(&self, selector: &str, value: &str, deadline: Deadline) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let request = move |deadline: Deadline| {
            let mut request = patience(deadline);
            request["action"] = "fill".into();
            request["enabled"] = true.into();
            request["editable"] = true.into();
            request["value"] = value.into();
            request
        };
        let ready = async {
            let mut obstacles = Obstacles::new(selector);
            self.element_ready(selector, &mut obstacles, &request, deadline).await
        };
        let element = self.race_undone(mark, deadline, ready).await?;
        let password_field = element.value["password"] == true;
        let done = element.value["done"] == true;
        let work = async {
            match (done, value.is_empty()) {
                (true, _) => Ok(()),
                (false, true) => self.delete_selected(deadline).await,
                (false, false) => {
                    let params = json!({ "text": value });
                    self.command(self.session(), "Input.insertText", params, deadline).await.map(|_| ())
                }
            }
        };
        let done = self.effect(mark, deadline, work).await?;
        // A dialog answers no question, and another document has no such field.
        let is_there = done.dialog.is_none() && !done.navigated && !done.closed;
        let value_matches = if is_there { self.holds(&element, value, deadline).await } else { None };
        Ok(ActionDone { password_field, value_matches, ..done })
    }

    /// Whether the field holds `value`; `None` when it cannot be asked, or has no value to compare.
    async fn holds(&self, element: &Element, value: &str, deadline: Deadline) -> Option<bool> {
        let question = json!({ "action": "holds", "value": value });
        let answer = self.act(&element.frame_id, element.id, &question, deadline.within(COLLECT_WAIT)).await.ok()?;
        answer["holds"].as_bool()
    }

    async fn delete_selected(&self, deadline: Deadline) -> Result<(), PageError> {
        let delete = Chord::parse("Delete").map_err(PageError::internal)?.key;
        self.post_key(key_down(&delete, &[]));
        let released = key_event("keyUp", &delete, &[]);
        self.command(self.session(), "Input.dispatchKeyEvent", released, deadline).await.map(|_| ())
    }
}

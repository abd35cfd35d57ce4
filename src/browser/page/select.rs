//! Choosing options of a `<select>`, by value or by what they show.

use serde_json::{Value, json};

use super::actionability::{Obstacles, patience};
use super::call::ActionDone;
use super::error::PageError;
use super::kit::KitError;
use crate::browser::Page;
use crate::deadline::Deadline;

impl Page {
    /// Selects exactly `values` in the one `<select>` that `selector` means; gives the values of the
    /// options that are selected then.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn select_option(
        &self,
        selector: &str,
        values: &[String],
        deadline: Deadline,
    ) -> Result<(ActionDone, Vec<String>), PageError> {
        let mark = self.begin(deadline).await?;
        let request = move |deadline: Deadline| {
            let mut request = patience(deadline);
            request["action"] = "selectable".into();
            request["enabled"] = true.into();
            request["values"] = values.into();
            request
        };
        let ready = async {
            let mut obstacles = Obstacles::new(selector);
            self.element_ready(selector, &mut obstacles, &request, deadline).await
        };
        let element = self.race_undone(mark, deadline, ready).await?;
        // Where a dialog takes the answer's place, what was asked for is what was done.
        let mut selected = values.to_vec();
        let work = async {
            let then = json!({ "action": "select", "values": values });
            let answer = match self.act(&element.frame_id, element.id, &then, deadline).await {
                Ok(answer) => answer,
                Err(KitError::Lost) => json!({ "reason": "detached" }),
                Err(KitError::Page(error)) => return Err(error),
            };
            if let Some(reason) = answer["reason"].as_str() {
                return Err(PageError::not_actionable(selector, reason));
            }
            let texts = answer["selected"].as_array().into_iter().flatten();
            selected = texts.filter_map(Value::as_str).map(str::to_owned).collect();
            self.echo(deadline).await;
            Ok(())
        };
        let done = self.effect(mark, deadline, work).await?;
        Ok((done, selected))
    }
}

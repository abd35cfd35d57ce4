//! Switching checkboxes, radio buttons and their like, by a real click where one is needed.

use serde_json::json;

use super::actionability::Need;
use super::call::ActionDone;
use super::error::PageError;
use super::pointer::ClickOptions;
use crate::browser::Page;
use crate::deadline::Deadline;

/// What kind of field an element is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FieldKind {
    Text,
    Select,
    Checkbox,
    Radio,
}

/// A field as it is now.
#[derive(Debug, Clone, Copy)]
pub struct FieldState {
    pub kind: FieldKind,
    pub checked: bool,
}

impl FieldKind {
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Select => "select",
            Self::Checkbox => "checkbox",
            Self::Radio => "radio",
        }
    }
}

impl Page {
    /// What the one element that `selector` means is as a field.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn field(&self, selector: &str, deadline: Deadline) -> Result<FieldState, PageError> {
        let mark = self.begin(deadline).await?;
        let then = json!({ "action": "field" });
        let element = self.race_undone(mark, deadline, self.element(selector, &then, deadline)).await?;
        let kind = match element.value["kind"].as_str() {
            Some("select") => FieldKind::Select,
            Some("checkbox") => FieldKind::Checkbox,
            Some("radio") => FieldKind::Radio,
            _ => FieldKind::Text,
        };
        Ok(FieldState { kind, checked: element.value["checked"] == true })
    }

    /// Sees to it that the box or button is checked, or not.
    ///
    /// # Errors
    /// `NotActionable` when a click does not bring it there, and see [`PageError`].
    pub async fn set_checked(&self, selector: &str, wanted: bool, deadline: Deadline) -> Result<ActionDone, PageError> {
        let field = self.field(selector, deadline).await?;
        let refuse = |reason: &str| Err(PageError::not_actionable(selector, reason));
        match field.kind {
            FieldKind::Radio if field.checked && !wanted => {
                return refuse("a radio button is switched off by choosing another");
            }
            FieldKind::Checkbox | FieldKind::Radio => {}
            FieldKind::Text | FieldKind::Select => return refuse("it cannot be checked"),
        }
        if field.checked == wanted {
            return Ok(ActionDone::default());
        }
        let mark = self.begin(deadline).await?;
        let need = Need { enabled: true, pointer: true, label: true, position: None };
        let spot = self.race_undone(mark, deadline, self.approach(selector, need, 0, deadline)).await?;
        let options = ClickOptions::default();
        let done = self.effect(mark, deadline, self.press((spot.x, spot.y), &options, 0, deadline)).await?;
        // A dialog or another document has taken the field's place: the click is done all the same.
        if done.dialog.is_some() || done.navigated {
            return Ok(done);
        }
        match self.field(selector, deadline).await {
            Ok(field) if field.checked != wanted => refuse("a click did not change it"),
            Ok(_) | Err(PageError::NotFound { .. } | PageError::PageClosed) => Ok(done),
            Err(error) => Err(error),
        }
    }
}

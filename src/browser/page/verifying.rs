//! Checks of what a page shows: patient until they hold or time is up, then with what was seen instead.

use serde_json::{Value, json};

use super::error::{PageError, SELECTOR_SHOWN_BYTES_MAX, cut};
use super::kit::KitError;
use super::resolve::{Matches, parse};
use super::texts::TextPattern;
use crate::browser::Page;
use crate::deadline::Deadline;

/// What should be true.
#[derive(Debug, Clone)]
pub enum Check {
    /// An element in a state.
    Element { selector: String, state: ElementState },
    /// A text to be seen, in one element or anywhere.
    Text { pattern: TextPattern, selector: Option<String> },
    /// Texts in this order: those of the elements that match, or the lines of the one that does.
    List { selector: String, items: Vec<String> },
    /// What a field holds, or whether a box is ticked.
    Value { selector: String, value: String },
}

/// A state of an element that can be checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ElementState {
    #[default]
    Visible,
    Hidden,
    Enabled,
    Disabled,
    Checked,
    Unchecked,
}

impl ElementState {
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "visible" => Some(Self::Visible),
            "hidden" => Some(Self::Hidden),
            "enabled" => Some(Self::Enabled),
            "disabled" => Some(Self::Disabled),
            "checked" => Some(Self::Checked),
            "unchecked" => Some(Self::Unchecked),
            _ => None,
        }
    }

    fn holds(self, seen: &Value) -> bool {
        match self {
            Self::Visible => seen["visible"] == true,
            Self::Hidden => seen["visible"] != true,
            Self::Enabled => seen["enabled"] == true,
            Self::Disabled => seen["enabled"] == false,
            Self::Checked => seen["checked"] == true,
            Self::Unchecked => seen["checked"] == false,
        }
    }
}

/// How a check ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    pub passed: bool,
    /// What was seen last.
    pub actual: Value,
}

impl Page {
    /// Checks until `check` holds or the deadline passes.
    ///
    /// # Errors
    /// See [`PageError`]; never because the check fails.
    pub async fn verify(&self, check: &Check, deadline: Deadline) -> Result<Verdict, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.check_until(check, deadline)).await
    }

    async fn check_until(&self, check: &Check, deadline: Deadline) -> Result<Verdict, PageError> {
        let mut last = None;
        loop {
            let looked = match self.look_at(check, deadline).await {
                Ok(verdict) if verdict.passed => return Ok(verdict),
                Ok(verdict) => {
                    last = Some(verdict);
                    self.news(deadline).await
                }
                Err(KitError::Lost) => self.pause(deadline).await,
                Err(KitError::Page(error)) => Err(error),
            };
            match (looked, &mut last) {
                (Ok(()), _) => {}
                (Err(PageError::Timeout), Some(_)) => return last.ok_or(PageError::Timeout),
                (Err(error), _) => return Err(error),
            }
        }
    }

    async fn look_at(&self, check: &Check, deadline: Deadline) -> Result<Verdict, KitError> {
        match check {
            Check::Element { selector, state } => self.look_at_element(selector, *state, deadline).await,
            Check::Text { pattern, selector: None } => {
                let passed = self.sees(pattern, deadline).await?;
                Ok(Verdict { passed, actual: json!({ "visible": passed }) })
            }
            Check::Text { pattern, selector: Some(selector) } => {
                let texts = self.texts_of(selector, deadline).await?;
                Ok(Verdict { passed: pattern.is_in(&texts.join("\n")), actual: json!({ "texts": texts }) })
            }
            Check::List { selector, items } => {
                let texts = self.texts_of(selector, deadline).await?;
                Ok(Verdict { passed: in_order(items, &texts), actual: json!({ "texts": texts }) })
            }
            Check::Value { selector, value } => {
                let found = self.looked_for(selector, deadline).await?;
                let then = json!({ "action": "inspect", "value": value });
                let mut seen = self.act_each(&found.frame_id, self.only(selector, &found)?, &then, deadline).await?;
                let seen = seen.pop().unwrap_or(Value::Null);
                let actual = json!({ "count": found.count, "value": seen["value"] });
                Ok(Verdict { passed: seen["equal"] == true, actual })
            }
        }
    }

    /// Visible and hidden are about any of several matches; other states are about the one there is.
    async fn look_at_element(
        &self,
        selector: &str,
        state: ElementState,
        deadline: Deadline,
    ) -> Result<Verdict, KitError> {
        let found = self.looked_for(selector, deadline).await?;
        if matches!(state, ElementState::Visible | ElementState::Hidden) {
            let shown = json!({ "visible": found.visible > 0 });
            let actual = json!({ "count": found.count, "visible": found.visible });
            return Ok(Verdict { passed: state.holds(&shown), actual });
        }
        let then = json!({ "action": "inspect" });
        let mut seen = self.act_each(&found.frame_id, self.only(selector, &found)?, &then, deadline).await?;
        let mut actual = seen.pop().unwrap_or_else(|| json!({}));
        let passed = state.holds(&actual);
        actual["count"] = found.count.into();
        Ok(Verdict { passed, actual })
    }

    async fn looked_for(&self, selector: &str, deadline: Deadline) -> Result<Matches, KitError> {
        self.matches(selector, &parse(selector)?, None, true, deadline).await
    }

    /// The one match, or none.
    fn only<'a>(&self, selector: &str, found: &'a Matches) -> Result<&'a [u64], KitError> {
        let selector = cut(selector, SELECTOR_SHOWN_BYTES_MAX);
        match found.count {
            0 | 1 => Ok(&found.ids),
            count => Err(PageError::Ambiguous { selector, count, candidates: Vec::new() }.into()),
        }
    }

    /// The texts of several matches, or the lines of one.
    async fn texts_of(&self, selector: &str, deadline: Deadline) -> Result<Vec<String>, KitError> {
        let found = self.looked_for(selector, deadline).await?;
        let lines = self.act_each(&found.frame_id, &found.ids, &json!({ "action": "lines" }), deadline).await?;
        let line = |line: &Value| line.as_str().unwrap_or_default().to_owned();
        let of_one = |seen: &Value| seen["lines"].as_array().into_iter().flatten().map(line).collect::<Vec<_>>();
        match lines.as_slice() {
            [one] => Ok(of_one(one)),
            several => Ok(several.iter().take(TEXTS_MAX).map(|one| of_one(one).join(" ")).collect()),
        }
    }
}

/// Texts of several elements that are looked at.
const TEXTS_MAX: usize = 200;

/// Whether each item stands in some text, in the same order.
fn in_order(items: &[String], texts: &[String]) -> bool {
    let mut left = texts.iter();
    items.iter().all(|item| {
        let item = super::snapshot::squeeze(item);
        left.any(|text| text.contains(&item))
    })
}

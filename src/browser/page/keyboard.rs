//! Real key events, sent to whatever has the focus.

use serde_json::{Value, json};

use super::actionability::{Obstacles, patience};
use super::call::ActionDone;
use super::error::{PageError, cut};
use super::keys::{Chord, Key, Modifier};
use crate::browser::Page;
use crate::deadline::Deadline;

/// A key's name inside an error, in bytes.
const KEY_SHOWN_BYTES_MAX: usize = 64;

impl Page {
    /// Presses a key or a chord such as `Control+A`, on `selector`'s element when there is one.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn press_key(
        &self,
        key: &str,
        selector: Option<&str>,
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        let invalid = |reason| PageError::InvalidKey { key: cut(key, KEY_SHOWN_BYTES_MAX), reason };
        let chord = Chord::parse(key).map_err(invalid)?;
        let mark = self.begin(deadline).await?;
        if let Some(selector) = selector {
            self.race_undone(mark, deadline, self.focus_element(selector, false, deadline)).await?;
        }
        self.effect(mark, deadline, self.press_chord(&chord, deadline)).await
    }

    /// Gives the focus to the one element that `selector` means.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn focus(&self, selector: &str, deadline: Deadline) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let work = async { self.focus_element(selector, false, deadline).await.map(|_| ()) };
        self.effect(mark, deadline, work).await
    }

    /// Focuses; for typing, the element must be editable, and a caret that was not there goes to the
    /// end. Says whether it is a password field.
    pub(super) async fn focus_element(
        &self,
        selector: &str,
        typing: bool,
        deadline: Deadline,
    ) -> Result<bool, PageError> {
        let request = move |deadline: Deadline| {
            let mut request = patience(deadline);
            request["action"] = "focus".into();
            request["enabled"] = typing.into();
            request["editable"] = typing.into();
            request["caret"] = typing.into();
            request
        };
        let mut obstacles = Obstacles::new(selector);
        let element = self.element_ready(selector, &mut obstacles, &request, deadline).await?;
        Ok(element.value["password"] == true)
    }

    async fn press_chord(&self, chord: &Chord, deadline: Deadline) -> Result<(), PageError> {
        let mut held = Vec::with_capacity(chord.modifiers.len());
        for modifier in &chord.modifiers {
            held.push(*modifier);
            self.post_key(key_event("rawKeyDown", &modifier.key(), &held));
        }
        match chord.key.text.as_deref().filter(|text| text.chars().count() > 1) {
            // A key event has room for one character.
            Some(sign) => {
                self.post_key(key_event("rawKeyDown", &chord.key, &held));
                self.connection().post(Some(self.session()), "Input.insertText", json!({ "text": sign }));
            }
            None => self.post_key(key_down(&chord.key, &held)),
        }
        let mut last = key_event("keyUp", &chord.key, &held);
        while let Some(modifier) = held.pop() {
            self.post_key(last);
            last = key_event("keyUp", &modifier.key(), &held);
        }
        // Input is delivered in order: the last answer stands for all.
        self.command(self.session(), "Input.dispatchKeyEvent", last, deadline).await?;
        self.echo(deadline).await;
        Ok(())
    }

    pub(super) fn post_key(&self, event: Value) {
        self.connection().post(Some(self.session()), "Input.dispatchKeyEvent", event);
    }
}

/// The press of a key, typing its text when it has one.
pub(super) fn key_down(key: &Key, held: &[Modifier]) -> Value {
    let kind = if key.text.is_some() { "keyDown" } else { "rawKeyDown" };
    let mut event = key_event(kind, key, held);
    if let Some(text) = &key.text {
        event["text"] = text.as_str().into();
        event["unmodifiedText"] = text.as_str().into();
    }
    event
}

pub(super) fn key_event(kind: &str, key: &Key, held: &[Modifier]) -> Value {
    json!({
        "type": kind,
        "key": key.key,
        "code": key.code,
        "windowsVirtualKeyCode": key.key_code,
        "location": key.location,
        "isKeypad": key.location == 3,
        "modifiers": Modifier::bits(held),
    })
}

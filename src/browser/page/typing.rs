//! Typing text key by key, as a person would, into one element.

use std::time::Duration;

use serde_json::json;

use super::call::ActionDone;
use super::error::PageError;
use super::keyboard::{key_down, key_event};
use super::keys::{Key, Modifier};
use crate::browser::Page;
use crate::deadline::Deadline;

/// Characters sent before the page is waited for.
const AHEAD_MAX: usize = 32;

impl Page {
    /// Types `text` into the one element that `selector` means, after what is there already.
    ///
    /// # Errors
    /// See [`PageError`]. A dialog that the typing opens stops it and is no error.
    pub async fn type_text(
        &self,
        selector: &str,
        text: &str,
        delay: Duration,
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let password_field = self.race_undone(mark, deadline, self.focus_element(selector, true, deadline)).await?;
        let done = self.effect(mark, deadline, self.type_all(text, delay, deadline)).await?;
        Ok(ActionDone { password_field, ..done })
    }

    async fn type_all(&self, text: &str, delay: Duration, deadline: Deadline) -> Result<(), PageError> {
        let count = text.chars().count();
        for (at, character) in text.chars().enumerate() {
            let wait = !delay.is_zero() || at + 1 == count || at % AHEAD_MAX == AHEAD_MAX - 1;
            self.type_one(character, wait, deadline).await?;
            if !delay.is_zero() && at + 1 < count {
                let paused = deadline.bound(tokio::time::sleep(delay)).await;
                paused.map_err(|_| PageError::Timeout)?;
            }
        }
        self.echo(deadline).await;
        Ok(())
    }

    async fn type_one(&self, character: char, wait: bool, deadline: Deadline) -> Result<(), PageError> {
        let (method, last) = match Key::typing(character) {
            Some(key) => {
                let upper = [Modifier::Shift];
                let held = if needs_shift(character) { &upper[..] } else { &[] };
                self.post_key(key_down(&key, held));
                ("Input.dispatchKeyEvent", key_event("keyUp", &key, held))
            }
            None => ("Input.insertText", json!({ "text": character.to_string() })),
        };
        if !wait {
            self.connection().post(Some(self.session()), method, last);
            return Ok(());
        }
        self.command(self.session(), method, last, deadline).await.map(|_| ())
    }
}

fn needs_shift(character: char) -> bool {
    character.is_ascii_uppercase() || "!@#$%^&*()~_+{}|:\"<>?".contains(character)
}

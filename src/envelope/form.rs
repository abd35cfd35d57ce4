//! The forms that a reply comes in, and what it costs on the wire in each: the one place that knows.
//!
//! A JSON reply carries its envelope twice, as `structuredContent` and escaped inside the text; a compact
//! one is its text alone. Whatever is cut to a bound is written as it would be sent, and that is counted.

use serde_json::{Value, json};

use super::budget::{text_bytes, weight, weight_of_json};
use super::compact::{self, Reader};
use crate::limits::FRAME_BYTES;

/// What the text of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// The envelope as JSON, beside the envelope itself.
    #[default]
    Json,
    /// Lines made for a model to read, and nothing beside them.
    Compact,
}

impl TextForm {
    pub const WORDS: &[&str] = &["json", "compact"];

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "json" => Some(Self::Json),
            "compact" => Some(Self::Compact),
            _ => None,
        }
    }
}

/// How the reply to one call is sent.
#[derive(Debug, Clone, Copy, Default)]
pub struct Form {
    pub text: TextForm,
    pub reader: Reader,
}

/// What an envelope takes around its `data`, at most, where the names in it are not yet known.
const JSON_ENVELOPE_BYTES: usize = 1_900;
const COMPACT_ENVELOPE_BYTES: usize = 512;

impl Form {
    /// The text of the reply with this envelope, and what both cost.
    pub(super) fn write(self, envelope: &Value) -> (String, usize) {
        match self.text {
            TextForm::Json => {
                let text = envelope.to_string();
                let cost = weight_of_json(&text);
                (text, cost)
            }
            TextForm::Compact => {
                let text = compact::render(envelope, self.reader);
                let cost = text_bytes(&text);
                (text, cost)
            }
        }
    }

    /// What the reply with this envelope costs, its frame left aside.
    pub(super) fn cost(self, envelope: &Value) -> usize {
        match self.text {
            TextForm::Json => weight(envelope),
            TextForm::Compact => self.write(envelope).1,
        }
    }

    /// Whether a reply of at most `bytes_max` is sure to hold `data`, whatever its envelope will say.
    #[must_use]
    pub fn holds(self, data: &Value, bytes_max: usize) -> bool {
        let around = match self.text {
            TextForm::Json => JSON_ENVELOPE_BYTES,
            TextForm::Compact => COMPACT_ENVELOPE_BYTES,
        };
        self.cost(&json!({"status": "success", "data": data})) + around + FRAME_BYTES <= bytes_max
    }
}

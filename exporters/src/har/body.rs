//! Bodies of messages: from the event itself, or from what is kept beside the log.
//!
//! What must stay true: a body is whole or left out with the reason; one at a time is in memory.

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use storage::artifact::ArtifactStore;
use storage::event::Clean;
use storage::event::catalog::NetworkBody;
use storage::ids::ArtifactHandle;

/// The longest body that goes into an archive; a longer one is named by its handle.
const BODY_BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Reads bodies and counts what became of them.
pub(super) struct Bodies {
    store: Option<ArtifactStore>,
    counts: BTreeMap<&'static str, u64>,
}

/// A body to be written.
pub(super) enum Body {
    Text(String),
    Base64(String),
    /// Why there is none.
    LeftOut(String),
}

impl Bodies {
    pub fn new(store: Option<ArtifactStore>) -> Self {
        Self { store, counts: BTreeMap::new() }
    }

    pub fn counts(&self) -> Value {
        json!(self.counts)
    }

    /// What an event told of a body.
    pub fn of(&mut self, told: &NetworkBody) -> Option<Body> {
        match (&told.text, &told.artifact, &told.omitted) {
            (None, None, Some(reason)) => Some(self.left_out(format!("not kept: {}", reason.as_str()))),
            (text, artifact, _) => self.from(text.as_ref(), artifact.as_ref()),
        }
    }

    /// A body that is text in the event, or kept under a handle.
    pub fn from(&mut self, text: Option<&Clean>, artifact: Option<&ArtifactHandle>) -> Option<Body> {
        if let Some(text) = text {
            *self.counts.entry("text").or_default() += 1;
            return Some(Body::Text(text.as_str().to_owned()));
        }
        let handle = artifact?;
        Some(match self.read(handle) {
            Ok(bytes) => self.encoded(bytes),
            Err(reason) => self.left_out(format!("{reason}; kept as {handle}")),
        })
    }

    fn read(&self, handle: &ArtifactHandle) -> Result<Vec<u8>, &'static str> {
        let store = self.store.as_ref().ok_or("kept bodies were not asked for")?;
        let length = store.length(handle).map_err(|_| "not kept any more")?;
        if length > BODY_BYTES_MAX {
            return Err("longer than a body in an archive may be");
        }
        let length = usize::try_from(length).map_err(|_| "longer than memory")?;
        store.read(handle, 0, length).map_err(|_| "cannot be read")
    }

    fn encoded(&mut self, bytes: Vec<u8>) -> Body {
        let readable = |text: &str| !text.contains('\0');
        match String::from_utf8(bytes) {
            Ok(text) if readable(&text) => {
                *self.counts.entry("text").or_default() += 1;
                Body::Text(text)
            }
            Ok(text) => self.base64(text.as_bytes()),
            Err(error) => self.base64(error.as_bytes()),
        }
    }

    fn base64(&mut self, bytes: &[u8]) -> Body {
        *self.counts.entry("base64").or_default() += 1;
        Body::Base64(STANDARD.encode(bytes))
    }

    fn left_out(&mut self, reason: String) -> Body {
        *self.counts.entry("left_out").or_default() += 1;
        Body::LeftOut(reason)
    }
}

//! Local and session storage of a page's own origin, through the browser's own storage domain: no
//! script of the page sees it or can stand in its way.

use serde_json::{Map, Value, json};
use storage::ids::FrameId;

use super::error::PageError;
use crate::browser::{CdpError, Page, SessionKey};
use crate::deadline::Deadline;

/// Which of the two.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Area {
    Local,
    Session,
}

impl Area {
    #[must_use]
    pub fn parse(text: &str) -> Self {
        if text == "session" { Self::Session } else { Self::Local }
    }
}

/// One origin's storage, and the frame it is reached through.
#[derive(Debug, Clone)]
pub struct StorageArea {
    pub origin: String,
    /// Whether it is the origin's as seen inside another site, which is another than its own.
    pub partitioned: bool,
    session: SessionKey,
    id: Value,
}

impl Page {
    /// The storage of the page's main document.
    ///
    /// # Errors
    /// `Unsupported` for documents that have none, such as about:blank, and see [`PageError`].
    pub async fn web_storage(&self, area: Area, deadline: Deadline) -> Result<StorageArea, PageError> {
        let mark = self.begin(deadline).await?;
        let frame_id = self.state().main_frame_id.clone();
        self.race_undone(mark, deadline, self.frame_storage(&frame_id, area, deadline)).await
    }

    /// The storage of one frame's document.
    ///
    /// # Errors
    /// As [`Page::web_storage`].
    pub async fn frame_storage(
        &self,
        frame_id: &FrameId,
        area: Area,
        deadline: Deadline,
    ) -> Result<StorageArea, PageError> {
        let (session, url) = {
            let state = self.state();
            let frame = state.frame(frame_id).ok_or(PageError::PageClosed)?;
            (frame.session.clone(), frame.url.clone())
        };
        let none = || PageError::Unsupported { what: "storage of a document without an origin of its own".into() };
        let origin = origin_of(&url).ok_or_else(none)?;
        let params = json!({ "frameId": frame_id.as_str() });
        let key = match self.connection().raw(Some(&session), "Storage.getStorageKeyForFrame", params, deadline).await {
            Ok(key) => key,
            Err(CdpError::Protocol { code, .. }) if code != -32001 => return Err(none()),
            Err(error) => return Err(self.fault(&error, "Storage.getStorageKeyForFrame")),
        };
        let partitioned = key["storageKey"].as_str().is_some_and(|key| key.contains('^'));
        let id = json!({ "storageKey": key["storageKey"], "isLocalStorage": area == Area::Local });
        Ok(StorageArea { origin, partitioned, session, id })
    }

    /// Everything in `area`, as pairs of key and value.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn stored(&self, area: &StorageArea, deadline: Deadline) -> Result<Vec<(String, String)>, PageError> {
        let answer = self.on_storage(area, "getDOMStorageItems", json!({}), deadline).await?;
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let entries = answer["entries"].as_array();
        Ok(entries.into_iter().flatten().map(|entry| (text(&entry[0]), text(&entry[1]))).collect())
    }

    /// Sets every one of `items`.
    ///
    /// # Errors
    /// `Unsupported` when the origin's room is used up, and see [`PageError`].
    pub async fn store(
        &self,
        area: &StorageArea,
        items: &Map<String, Value>,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        for (key, value) in items {
            self.on_storage(area, "setDOMStorageItem", json!({ "key": key, "value": value }), deadline).await?;
        }
        // Chromium does not say when the origin has no room for one.
        let stored = self.stored(area, deadline).await?;
        let is_there = |(key, value): (&String, &Value)| stored.iter().any(|(k, v)| k == key && value == v.as_str());
        match items.iter().all(is_there) {
            true => Ok(()),
            false => Err(PageError::Unsupported { what: "more than the origin's storage has room for".into() }),
        }
    }

    /// Removes one key, or everything.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn unstore(&self, area: &StorageArea, key: Option<&str>, deadline: Deadline) -> Result<(), PageError> {
        match key {
            Some(key) => self.on_storage(area, "removeDOMStorageItem", json!({ "key": key }), deadline).await?,
            None => self.on_storage(area, "clear", json!({}), deadline).await?,
        };
        Ok(())
    }

    async fn on_storage(
        &self,
        area: &StorageArea,
        command: &str,
        mut params: Value,
        deadline: Deadline,
    ) -> Result<Value, PageError> {
        params["storageId"] = area.id.clone();
        let method = format!("DOMStorage.{command}");
        let mark = self.free()?;
        let work = async {
            let answer = self.connection().raw(Some(&area.session), &method, params, deadline).await;
            answer.map_err(|error| match error {
                CdpError::Protocol { message, .. } if message.to_ascii_lowercase().contains("quota") => {
                    PageError::Unsupported { what: "more than the origin's storage has room for".into() }
                }
                error => self.fault(&error, &method),
            })
        };
        self.race_undone(mark, deadline, work).await
    }
}

/// Scheme, host and port of what has storage.
#[must_use]
pub fn origin_of(url: &str) -> Option<String> {
    let (scheme, rest) = url.split_once("://")?;
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let host = authority.rsplit('@').next().unwrap_or_default();
    (matches!(scheme, "http" | "https") && !host.is_empty()).then(|| format!("{scheme}://{host}"))
}

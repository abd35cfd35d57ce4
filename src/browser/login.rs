//! Local storage of all origins of a browser at once: read to save a login, written to restore one.

use serde_json::{Map, Value, json};

use super::page::{Area, LoadState, PageError};
use super::{Browser, Page};
use crate::deadline::Deadline;

/// One origin and what it stores.
pub type OriginItems = (String, Map<String, Value>);

impl Browser {
    /// What the origins of all open documents store, each once. Origins that store nothing are left
    /// out; so is what a site stores inside another.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn local_storage(&self, deadline: Deadline) -> Result<Vec<OriginItems>, PageError> {
        let mut found: Vec<OriginItems> = Vec::new();
        for page in self.inner.roster.pages() {
            let mut frames: Vec<_> = page.state().frames.keys().cloned().collect();
            frames.sort();
            for frame_id in frames {
                let area = match page.frame_storage(&frame_id, Area::Local, deadline).await {
                    Ok(area) if !area.partitioned => area,
                    // Frames and pages come and go meanwhile.
                    Ok(_) | Err(PageError::Unsupported { .. } | PageError::PageClosed | PageError::PageCrashed) => {
                        continue;
                    }
                    Err(error) => return Err(error),
                };
                if found.iter().any(|(origin, _)| *origin == area.origin) {
                    continue;
                }
                let stored = page.stored(&area, deadline).await?;
                if !stored.is_empty() {
                    found.push((area.origin, stored.into_iter().map(|(key, value)| (key, value.into())).collect()));
                }
            }
        }
        Ok(found)
    }

    /// Gives origins what they are to store, in a browser that has been nowhere yet. Each is visited
    /// as an empty document of our own making; nothing goes to the network.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn restore_local_storage(&self, origins: &[OriginItems], deadline: Deadline) -> Result<(), PageError> {
        let first = self.inner.roster.pages().into_iter().next();
        let Some(page) = first.filter(|_| !origins.is_empty()) else { return Ok(()) };
        self.inner.standing.set_blank(Some(page.session().clone()));
        let restored = visit(&page, origins, deadline).await;
        self.inner.standing.set_blank(None);
        self.inner.standing.guard(&self.inner.connection, page.session());
        restored
    }
}

async fn visit(page: &Page, origins: &[OriginItems], deadline: Deadline) -> Result<(), PageError> {
    let command = async |method: &str, params: Value| {
        let answer = page.connection().raw(Some(page.session()), method, params, deadline).await;
        answer.map_err(|error| PageError::internal(format!("{method}: {error}")))
    };
    command("Fetch.enable", json!({ "patterns": [{ "urlPattern": "*" }] })).await?;
    for (origin, items) in origins {
        page.navigate(&format!("{origin}/"), LoadState::Load, deadline).await?;
        let area = page.web_storage(Area::Local, deadline).await?;
        page.store(&area, items, deadline).await?;
    }
    page.navigate("about:blank", LoadState::Load, deadline).await?;
    command("Fetch.disable", json!({})).await?;
    command("Page.resetNavigationHistory", json!({})).await?;
    Ok(())
}

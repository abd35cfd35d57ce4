//! How large a page believes its window to be.

use serde_json::json;

use super::error::PageError;
use crate::browser::Page;
use crate::deadline::Deadline;

impl Page {
    /// Gives the page a viewport of so many CSS pixels, until it closes.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn set_viewport(&self, width: u64, height: u64, deadline: Deadline) -> Result<(), PageError> {
        let mark = self.begin(deadline).await?;
        let params = json!({ "width": width, "height": height, "deviceScaleFactor": 0, "mobile": false });
        let work = self.command(self.session(), "Emulation.setDeviceMetricsOverride", params, deadline);
        self.race_undone(mark, deadline, work).await.map(|_| ())
    }
}

//! Requests that are held back before they leave: those of a target that must not reach the network
//! are answered here, with a document that is empty.

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;

use super::super::chromium::SessionKey;
use super::{Collector, Handled, read};

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Held {
    request_id: String,
}

impl Collector {
    pub(super) fn request_held(&mut self, session: &SessionKey, raw: &RawValue) -> Handled {
        let held: Held = read(raw)?;
        let connection = &self.setting.connection;
        if self.setting.standing.is_blank(session) {
            let html = json!([{ "name": "content-type", "value": "text/html" }]);
            let params = json!({ "requestId": held.request_id, "responseCode": 200, "responseHeaders": html });
            connection.post(Some(session), "Fetch.fulfillRequest", params);
        }
        Some(())
    }
}

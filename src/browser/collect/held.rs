//! Requests that are held back before they leave: those of a target that must not reach the network
//! are answered here, with a document that is empty, and those that the operator's rules refuse fail.
//!
//! What must stay true: whatever is held is let go, one way or the other, for a page waits for it.

use std::collections::HashSet;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use storage::event::catalog::PolicyRefused;
use storage::event::{Context, Symbol};

use super::super::chromium::SessionKey;
use super::{Collector, Handled, read};
use crate::limits::BLOCK_RULES_MAX;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Held {
    request_id: String,
    /// What the network's events call it.
    network_id: Option<String>,
    resource_type: String,
    frame_id: String,
    request: Request,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Request {
    url: String,
}

/// Rules that have refused something of a target: a page that tries the same again and again fills no
/// record that is kept for ever.
#[derive(Default)]
pub(super) struct Refusals(HashSet<String>);

impl Refusals {
    fn is_first(&mut self, rule: &str) -> bool {
        self.0.len() < BLOCK_RULES_MAX && self.0.insert(rule.to_owned())
    }
}

impl Collector {
    pub(super) fn request_held(&mut self, session: &SessionKey, raw: &RawValue) -> Handled {
        let held: Held = read(raw)?;
        let connection = self.setting.connection.clone();
        if self.setting.standing.is_blank(session) {
            let html = json!([{ "name": "content-type", "value": "text/html" }]);
            let params = json!({ "requestId": held.request_id, "responseCode": 200, "responseHeaders": html });
            connection.post(Some(session), "Fetch.fulfillRequest", params);
            return Some(());
        }
        let Some(rule) = self.setting.standing.refuses(&held.request.url) else {
            connection.post(Some(session), "Fetch.continueRequest", json!({ "requestId": held.request_id }));
            return Some(());
        };
        let page = self.page_of(session).cloned();
        let is_main =
            |frame_id: &str| page.as_ref().is_some_and(|page| page.state().main_frame_id.as_str() == frame_id);
        let is_navigation = held.resource_type == "Document" && is_main(&held.frame_id);
        if let (Some(page), true) = (&page, is_navigation) {
            self.change(page, |state| state.refused_by = Some(rule.clone()));
        }
        let context = held.network_id.as_deref().and_then(|id| self.flight_context(id, session, 0.0));
        let context = context.unwrap_or_else(|| self.context(session));
        self.refused(&context, session, &rule, &held.request.url, is_navigation);
        let params = json!({ "requestId": held.request_id, "errorReason": "BlockedByClient" });
        connection.post(Some(session), "Fetch.failRequest", params);
        Some(())
    }

    /// A WebSocket that the look-up of hosts refuses.
    pub(super) fn socket_asked(&mut self, context: &Context, session: &SessionKey, url: &str) {
        if let Some(rule) = self.setting.standing.refuses(url) {
            self.refused(context, session, &rule, url, false);
        }
    }

    /// Records a refusal: each of a page's own navigations, and the first of each rule of anything else.
    fn refused(&mut self, context: &Context, session: &SessionKey, rule: &str, url: &str, always: bool) {
        let first = self.targets.get_mut(session).is_some_and(|target| target.refusals.is_first(rule));
        if first || always {
            let what = self.setting.redactor.url(url);
            let matched = Some(self.setting.redactor.text(rule));
            self.record(context, &PolicyRefused { rule: Symbol::fold("blocklist"), what, matched });
        }
    }
}

//! Issues: what the browser tells developers beside its log. Deprecated features and cookies that it did
//! not take are told nowhere else; they become entries of the log. Of the others the log tells as well.

use serde::Deserialize;
use serde_json::value::RawValue;
use storage::event::catalog::LogEntry;
use storage::event::{Level, Symbol};
use storage::ids::FrameId;

use super::super::chromium::SessionKey;
use super::console::from_one;
use super::{Collector, Handled, read};

/// Deprecated features that the log tells of too, in more words: how their names begin.
const ALSO_LOGGED: [&str; 2] = ["XSLT", "CSSValueAppearance"];

#[derive(Default, Deserialize)]
#[serde(default)]
struct Added {
    issue: Issue,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Issue {
    details: Details,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Details {
    deprecation_issue_details: Option<Deprecation>,
    cookie_issue_details: Option<Cookie>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Deprecation {
    affected_frame: Option<AffectedFrame>,
    source_code_location: Place,
    r#type: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AffectedFrame {
    frame_id: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Place {
    url: String,
    line_number: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Cookie {
    cookie: Option<Named>,
    cookie_exclusion_reasons: Vec<String>,
    operation: String,
    cookie_url: Option<String>,
    request: Option<Affected>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Named {
    name: String,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Affected {
    request_id: Option<String>,
    url: String,
}

impl Collector {
    pub(super) fn issue_added(&mut self, session: &SessionKey, raw: &RawValue) -> Handled {
        let details = read::<Added>(raw)?.issue.details;
        if let Some(deprecation) = details.deprecation_issue_details {
            self.deprecated(session, &deprecation);
        }
        if let Some(cookie) = details.cookie_issue_details {
            self.cookie_refused(session, cookie);
        }
        Some(())
    }

    fn deprecated(&mut self, session: &SessionKey, told: &Deprecation) {
        if ALSO_LOGGED.iter().any(|start| told.r#type.starts_with(start)) {
            return;
        }
        let mut context = self.context(session);
        context.frame_id = told.affected_frame.as_ref().map(|frame| FrameId::from(frame.frame_id.as_str()));
        let text = format!("Deprecated feature: {}", told.r#type);
        let place = &told.source_code_location;
        let entry = self.entry("deprecation", &text, &place.url, Some(place.line_number));
        self.record(&context, &entry);
    }

    /// A cookie that was to be set and was not. Those that are not sent are too many to tell of each.
    fn cookie_refused(&mut self, session: &SessionKey, told: Cookie) {
        if told.operation != "SetCookie" || told.cookie_exclusion_reasons.is_empty() {
            return;
        }
        let mut context = self.context(session);
        let request = told.request.unwrap_or_default();
        context.request_id = request.request_id.and_then(|id| self.flights.id_of(&id));
        let reasons = told.cookie_exclusion_reasons.join(", ");
        let text = match told.cookie {
            Some(cookie) => format!("Cookie {:?} was not set: {reasons}", cookie.name),
            None => format!("A cookie was not set: {reasons}"),
        };
        let url = told.cookie_url.unwrap_or(request.url);
        let entry = self.entry("cookie", &text, &url, None);
        self.record(&context, &entry);
    }

    fn entry(&self, source: &str, text: &str, url: &str, line_number: Option<i64>) -> LogEntry {
        let redactor = &self.setting.redactor;
        LogEntry {
            level: Level::Warning,
            source: Symbol::fold(source),
            text: redactor.text(text),
            url: (!url.is_empty()).then(|| redactor.url(url)),
            line: line_number.map(from_one),
            text_bytes: None,
            text_artifact: None,
            truncated_fields: None,
        }
    }
}

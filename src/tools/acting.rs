//! What all acting tools have in common: how they tell what came of the action, what they wait for
//! after it, and the snapshot they may bring back.
//!
//! What must stay true: everything that could be refused is refused before the action; a failure after
//! it says that the action was done.

use std::time::Duration;

use serde_json::{Value, json};

use super::faults;
use super::snapshot;
use super::tool::{Call, Output};
use crate::browser::Page;
use crate::browser::page::{
    ActionDone, Expected, PageError, ResponsePattern, SelectorState, SnapshotOptions, TextPattern, UrlPattern, Watch,
};
use crate::contract::facts::{INTEGER_MAX, SELECTOR_LENGTH_MAX, URL_LENGTH_MAX};
use crate::contract::{Parameter, Shape};
use crate::fault::{Code, Fault, Problem};

/// How long an expected consequence may take when the caller names no time.
const CONSEQUENCE_WAIT_MS_DEFAULT: u64 = 10_000;
/// A snapshot after an action may take so long.
const SNAPSHOT_WAIT: Duration = Duration::from_secs(10);

const fn text(name: &'static str, length_max: usize, text: &'static str) -> Parameter {
    Parameter::new(name, Shape::Text { length_min: 1, length_max }, text)
}

const CONDITION: &[Parameter] = &[
    Parameter::new("kind", Shape::Choice(&["response", "url", "element", "text", "popup", "download"]), "").required(),
    text("pattern", URL_LENGTH_MAX, "URL or glob, for response and url"),
    text("method", 32, ""),
    Parameter::new("status", Shape::Integer { min: 100, max: 599 }, ""),
    Parameter::selector("selector", ""),
    text("text", SELECTOR_LENGTH_MAX, ""),
    Parameter::new("state", Shape::Choice(&["visible", "hidden", "attached", "detached"]), ""),
    Parameter::new("timeout", Shape::Integer { min: 1, max: INTEGER_MAX }, "ms from the action's end, 10000"),
];

/// What must have come before the call ends.
pub(super) const WAIT_FOR: Parameter = Parameter::new(
    "wait_for",
    Shape::Record { fields: CONDITION, open: false },
    "what the action must bring about; watched for from before it",
);
/// The same, where a tool of the same pack has said it.
pub(super) const fn wait_for_as(of: &'static str) -> Parameter {
    Parameter::new("wait_for", Shape::Likewise { fields: CONDITION, of }, "")
}
/// Whether the reply shows the page as it is after the action.
pub(super) const INCLUDE_SNAPSHOT: Parameter = Parameter::flag("include_snapshot", "");

/// What the caller wants to know once the action is done.
pub(super) struct After {
    page: Page,
    wish: Option<Wish>,
}

struct Wish {
    kind: String,
    timeout: Duration,
    watch: Watch,
}

impl After {
    /// Checks the wishes and begins to watch.
    ///
    /// # Errors
    /// `INVALID_ARGUMENTS` for a condition that lacks a part, has one too many, or whose selector the
    /// browser refuses.
    pub(super) async fn watch(call: &Call, page: &Page) -> Result<Self, Fault> {
        let wish = match call.arguments.value("wait_for") {
            None => None,
            Some(condition) => {
                let expected = expected(condition).map_err(|problems| Fault::invalid(&problems))?;
                if let Expected::Element { selector, .. } = &expected
                    && let Some(reason) = page.selector_refused(selector, call.deadline).await
                {
                    return Err(Fault::invalid_argument("wait_for.selector", reason));
                }
                let kind = condition["kind"].as_str().unwrap_or_default().to_owned();
                let timeout_ms = condition["timeout"].as_f64().map_or(CONSEQUENCE_WAIT_MS_DEFAULT, |ms| ms as u64);
                Some(Wish { kind, timeout: Duration::from_millis(timeout_ms), watch: page.watch(expected) })
            }
        };
        Ok(Self { page: page.clone(), wish })
    }

    /// The reply to an action that was done.
    ///
    /// # Errors
    /// When what was waited for does not come; the fault says that the action was done.
    pub(super) async fn tell(self, call: &Call, done: &ActionDone, fields: &[(&str, Value)]) -> Result<Output, Fault> {
        self.finish(call, acted(call, done, fields)).await
    }

    /// Adds what came after the action to its result.
    ///
    /// # Errors
    /// As [`After::tell`].
    pub(super) async fn finish(self, call: &Call, mut data: Value) -> Result<Output, Fault> {
        if let Some(wish) = &self.wish {
            data["action_completed"] = true.into();
            data["observation"] = wish.come(call).await?;
        }
        match call.arguments.flag("include_snapshot") {
            Some(true) => Ok(self.show(call, data).await),
            _ => Ok(Output::value(data)),
        }
    }

    /// Adds a snapshot. The action is done whether or not one can be had.
    async fn show(&self, call: &Call, data: Value) -> Output {
        let (options, deadline) = (SnapshotOptions::default(), call.limit.within(SNAPSHOT_WAIT));
        let beside = data.clone();
        let placed = move |mut shown: Value| {
            shown.as_object_mut().map(|fields| fields.remove("session_id"));
            let mut data = beside.clone();
            data["snapshot"] = shown;
            data
        };
        snapshot::take(call, &self.page, &options, deadline, placed).await.unwrap_or_else(|fault| {
            let mut data = data;
            data["snapshot"] = json!({"code": fault.shown_code().as_str()});
            Output::value(data)
        })
    }
}

impl Wish {
    async fn come(&self, call: &Call) -> Result<Value, Fault> {
        let seen = self.watch.come(call.limit.within(self.timeout)).await.map_err(|error| match error {
            PageError::Timeout | PageError::WaitTimeout { .. } => {
                let timeout_ms = u64::try_from(self.timeout.as_millis()).unwrap_or(u64::MAX);
                Fault::new(Code::ObservationTimeout).with("timeout_ms", timeout_ms).with("kind", self.kind.as_str())
            }
            other => faults::page(call)(other),
        });
        let mut seen = seen.map_err(|fault| fault.with("action_completed", true))?;
        seen["kind"] = self.kind.as_str().into();
        seen["matched"] = true.into();
        Ok(seen)
    }
}

/// The condition, or everything that is wrong with it.
fn expected(condition: &Value) -> Result<Expected, Vec<Problem>> {
    let kind = condition["kind"].as_str().unwrap_or_default();
    let (wanted, allowed): (&[&str], &[&str]) = match kind {
        "response" => (&[], &["pattern", "method", "status"]),
        "url" => (&["pattern"], &[]),
        "element" => (&["selector"], &["state"]),
        "text" => (&["text"], &["state"]),
        _ => (&[], &[]),
    };
    let mut problems = Vec::new();
    let mut wrong = |name: &str, problem: String| problems.push(Problem::new(format!("wait_for.{name}"), problem));
    for parameter in CONDITION {
        let name = parameter.name;
        let given = condition.get(name).is_some_and(|value| !value.is_null());
        let general = name == "kind" || name == "timeout";
        if given && !general && !wanted.contains(&name) && !allowed.contains(&name) {
            wrong(name, format!("does not go with kind {kind}"));
        }
        if !given && wanted.contains(&name) {
            wrong(name, format!("is required with kind {kind}"));
        }
    }
    let text = |name: &str| condition[name].as_str().map(str::to_owned);
    let pattern = text("pattern").map(|pattern| UrlPattern::text(&pattern)).transpose();
    let pattern = pattern.unwrap_or_else(|reason| {
        wrong("pattern", reason);
        None
    });
    let state = text("state").unwrap_or_else(|| "visible".to_owned());
    if kind == "text" && !matches!(state.as_str(), "visible" | "hidden") {
        wrong("state", "is visible or hidden with kind text".to_owned());
    }
    if kind == "element"
        && let Some(Err(reason)) = text("selector").map(|selector| crate::browser::page::Locator::parse(&selector))
    {
        wrong("selector", reason);
    }
    let words = text("text").map(|text| TextPattern::parse(&text)).transpose();
    let words = words.unwrap_or_else(|reason| {
        wrong("text", reason);
        None
    });
    if !problems.is_empty() {
        return Err(problems);
    }
    if let Some(pattern) = words {
        let text = text("text").unwrap_or_default();
        return Ok(Expected::Text { text, pattern, gone: state == "hidden" });
    }
    Ok(match (kind, pattern) {
        ("url", Some(pattern)) => Expected::Url(pattern),
        ("element", _) => Expected::Element {
            selector: text("selector").unwrap_or_default(),
            state: SelectorState::parse(&state).unwrap_or_default(),
        },
        ("popup", _) => Expected::Popup,
        ("download", _) => Expected::Download,
        (_, url) => {
            let status = condition["status"].as_f64().map(|status| status as u64);
            Expected::Response(ResponsePattern { url, method: text("method"), status })
        }
    })
}

/// The contract's answer to an action, with what the caller should know of its consequences.
pub(super) fn acted(call: &Call, done: &ActionDone, fields: &[(&str, Value)]) -> Value {
    let mut data = json!({"session_id": call.arguments.text("session_id")});
    for (name, value) in fields {
        data[*name] = value.clone();
    }
    if done.navigated {
        data["navigated"] = true.into();
        if let Ok(page) = call.page() {
            data["url"] = page.url().into();
        }
    }
    if let Some(dialog) = &done.dialog {
        data["dialog"] = super::dialogs::shown(dialog);
    }
    for (name, told) in [("value_matches", done.value_matches), ("dropped", done.dropped)] {
        // What is as it was asked for needs no words.
        if told == Some(false) {
            data[name] = false.into();
        }
    }
    if !done.popups.is_empty() {
        data["popups"] = super::tabs::popups(call, &done.popups);
    }
    if !done.downloads.is_empty() {
        data["downloads"] = done.downloads.iter().map(|id| id.as_str()).collect::<Vec<_>>().into();
    }
    if done.closed {
        data["tab_closed"] = true.into();
    }
    if let Some(multiple) = done.file_chooser {
        let next_step = "Give it files with upload_file; handle_dialog with accept false closes it.";
        data["file_chooser"] = json!({"multiple": multiple, "next_step": next_step});
    }
    data
}

/// One argument, to be shown again in the answer.
pub(super) fn echo<'a>(call: &Call, name: &'a str) -> (&'a str, Value) {
    (name, call.arguments.value(name).cloned().unwrap_or(Value::Null))
}

/// What every action that succeeded says.
pub(super) fn ok() -> (&'static str, Value) {
    ("ok", true.into())
}

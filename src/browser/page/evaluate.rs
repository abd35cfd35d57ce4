//! Running an agent's JavaScript in the page's own world and bringing the value home as JSON.
//!
//! Whatever the script returns has a JSON form: what JSON cannot hold is named, never an internal
//! error. A script that does not end is ended at the deadline.

use std::time::Duration;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::actionability::millis;
use super::error::{PageError, cut};
use crate::browser::chromium::envelope;
use crate::browser::{CdpError, Page};
use crate::deadline::Deadline;
use crate::surrogates;

const DESCRIBE: &str = include_str!("scripts/describe.js");
/// A thrown error's text and stack, in bytes.
const THROWN_BYTES_MAX: usize = 2000;
/// How long before the deadline Chromium's own limit may strike.
const NEARLY: Duration = Duration::from_millis(100);
/// A page that does not answer for this long after the deadline is stuck in a script.
const STUCK_AFTER: Duration = Duration::from_millis(250);

/// What an evaluation gave.
#[derive(Debug)]
pub struct EvaluateResult {
    /// As JSON text, however large.
    pub json: Box<RawValue>,
    /// The value was `undefined`, which `json` shows as null.
    pub undefined: bool,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    #[serde(default)]
    result: Remote,
    exception_details: Option<Thrown>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Remote {
    r#type: String,
    subtype: String,
    value: Option<Box<RawValue>>,
    unserializable_value: Option<String>,
    description: Option<String>,
    object_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Thrown {
    text: String,
    exception: Option<Remote>,
    stack_trace: Option<Value>,
}

enum Failure {
    /// Did not parse; nothing has run.
    Syntax(String),
    Page(PageError),
}

impl From<PageError> for Failure {
    fn from(error: PageError) -> Self {
        Self::Page(error)
    }
}

impl Page {
    /// Evaluates `expression`; a function is called, a promise awaited.
    ///
    /// # Errors
    /// `Script` when it throws or does not parse, `Timeout` when it does not end, `DialogOpen` when a
    /// dialog it opened holds it up, and see [`PageError`].
    pub async fn evaluate(&self, expression: &str, deadline: Deadline) -> Result<EvaluateResult, PageError> {
        let mark = self.begin(deadline).await?;
        let done = self.race_undone(mark, deadline, self.evaluate_forms(expression, deadline)).await;
        if matches!(done, Err(PageError::Timeout)) {
            self.end_stuck_script();
        }
        done
    }

    /// Tries the expression as it stands, then in the forms that make sense of what it looks like.
    async fn evaluate_forms(&self, expression: &str, deadline: Deadline) -> Result<EvaluateResult, PageError> {
        let trimmed = expression.trim();
        if trimmed.starts_with('{') && trimmed.ends_with('}') {
            match self.evaluate_once(&format!("({trimmed}\n)"), trimmed, deadline).await {
                Err(Failure::Syntax(_)) => {}
                other => return other.map_err(Failure::into_error),
            }
        }
        let first = match self.evaluate_once(expression, trimmed, deadline).await {
            Err(Failure::Syntax(text)) => text,
            other => return other.map_err(Failure::into_error),
        };
        if !first.contains("Illegal return") {
            return Err(PageError::Script { text: first });
        }
        let again = self.evaluate_once(&format!("(async () => {{\n{expression}\n}})()"), "", deadline).await;
        again.map_err(Failure::into_error)
    }

    /// The console's mode allows `await` at the top and declaring a name again.
    async fn evaluate_once(
        &self,
        expression: &str,
        source: &str,
        deadline: Deadline,
    ) -> Result<EvaluateResult, Failure> {
        let params = json!({
            "expression": expression,
            "awaitPromise": true,
            "replMode": true,
            "userGesture": true,
            "timeout": millis(deadline.remaining()).max(1),
        });
        let mut value = self.script("Runtime.evaluate", params, deadline).await?;
        if value.r#type == "function" && looks_like_function(source) {
            value = self.on_object(&value, "function() { return this() }", deadline).await?;
        } else if value.subtype == "promise" {
            value = self.on_object(&value, "function() { return this }", deadline).await?;
        }
        self.bring_home(value, deadline).await
    }

    /// Calls `function` on a remote object and awaits what it gives.
    async fn on_object(&self, object: &Remote, function: &str, deadline: Deadline) -> Result<Remote, Failure> {
        let params = json!({
            "objectId": object.object_id, "functionDeclaration": function, "awaitPromise": true, "userGesture": true,
        });
        self.script("Runtime.callFunctionOn", params, deadline).await
    }

    async fn script(&self, method: &str, params: Value, deadline: Deadline) -> Result<Remote, Failure> {
        let answer = self.connection().raw_text(Some(self.session()), method, params, deadline).await;
        let answer = answer.map_err(|error| match &error {
            CdpError::Protocol { message, .. } if message.contains("was terminated") => PageError::Timeout,
            // So Chromium answers when its own time limit, which is ours, ends a script.
            CdpError::Protocol { message, .. } if message == "Internal error" && deadline.remaining() < NEARLY => {
                PageError::Timeout
            }
            CdpError::Protocol { message, .. } if is_left(message) => match self.free() {
                Err(end) => end,
                Ok(_) => PageError::Script { text: "the page went elsewhere before the script ended".into() },
            },
            _ => self.fault(&error, method),
        })?;
        let answer: Answer =
            envelope::parse(&answer).ok_or_else(|| PageError::internal("the answer is not readable"))?;
        match answer.exception_details {
            None => Ok(answer.result),
            Some(thrown) => Err(thrown.failure()),
        }
    }

    /// Primitive values came with the answer; objects are described where they are.
    async fn bring_home(&self, value: Remote, deadline: Deadline) -> Result<EvaluateResult, Failure> {
        let undefined = value.r#type == "undefined";
        let Some(object_id) = &value.object_id else {
            let json = match (value.value, value.unserializable_value.or(value.description)) {
                (Some(json), _) => match surrogates::mend(json.get()) {
                    None => json,
                    Some(mended) => raw_json(mended)?,
                },
                (None, Some(text)) if !undefined => raw(&text)?,
                (None, _) => raw_json("null".into())?,
            };
            return Ok(EvaluateResult { json, undefined });
        };
        let params = json!({
            "objectId": object_id,
            "functionDeclaration": "function(value) { return (".to_owned() + DESCRIBE + ")(value) }",
            "arguments": [{ "objectId": object_id }],
            "returnByValue": true,
        });
        let described = self.script("Runtime.callFunctionOn", params, deadline).await;
        let json = match described {
            Ok(described) => described.value.and_then(|text| serde_json::from_str::<String>(text.get()).ok()),
            Err(Failure::Page(error @ PageError::Script { .. })) if self.free().is_err() => return Err(error.into()),
            Err(Failure::Page(PageError::Script { .. }) | Failure::Syntax(_)) => None,
            Err(failure) => return Err(failure),
        };
        let json = match json.and_then(|text| RawValue::from_string(text).ok()) {
            Some(json) => json,
            None => self.by_value(object_id, deadline).await?,
        };
        self.connection().post(Some(self.session()), "Runtime.releaseObject", json!({ "objectId": object_id }));
        Ok(EvaluateResult { json, undefined })
    }

    /// The browser's own reading of a value, where the page has changed what ours is built on.
    async fn by_value(&self, object_id: &str, deadline: Deadline) -> Result<Box<RawValue>, Failure> {
        let params = json!({
            "objectId": object_id, "functionDeclaration": "function() { return this }", "returnByValue": true,
        });
        let answer = self.connection().raw(Some(self.session()), "Runtime.callFunctionOn", params, deadline).await;
        match answer {
            Ok(mut answer) if answer["result"].get("value").is_some() => {
                raw_json(answer["result"]["value"].take().to_string())
            }
            Err(error @ (CdpError::Timeout | CdpError::Closed)) => {
                Err(self.fault(&error, "Runtime.callFunctionOn").into())
            }
            _ => raw("[Unreadable]"),
        }
    }

    /// Ends a script that still keeps the page from answering. One that only waits is left alone:
    /// ending would then hit whatever script the page runs next.
    fn end_stuck_script(&self) {
        let page = self.clone();
        tokio::spawn(async move {
            let probe = json!({ "expression": "0" });
            let probed = page
                .connection()
                .raw(Some(page.session()), "Runtime.evaluate", probe, Deadline::after(STUCK_AFTER))
                .await;
            let dialog = page.dialog().is_some();
            if matches!(probed, Err(CdpError::Timeout)) && !dialog {
                page.connection().post(Some(page.session()), "Runtime.terminateExecution", json!({}));
            }
        });
    }
}

impl Failure {
    fn into_error(self) -> PageError {
        match self {
            Self::Syntax(text) => PageError::Script { text },
            Self::Page(error) => error,
        }
    }
}

impl Thrown {
    fn failure(self) -> Failure {
        let described = self.exception.as_ref().and_then(|exception| {
            let value = exception.value.as_ref().map(|value| value.get().to_owned());
            exception.description.clone().or(value).or_else(|| exception.unserializable_value.clone())
        });
        let uncaught = described.unwrap_or(self.text);
        let text = cut(&uncaught, THROWN_BYTES_MAX);
        let compiled = self.stack_trace.is_some() || !uncaught.starts_with("SyntaxError");
        if compiled { PageError::Script { text }.into() } else { Failure::Syntax(text) }
    }
}

fn is_left(message: &str) -> bool {
    [
        "Execution context was destroyed",
        "Inspected target navigated",
        "Cannot find context",
        "Promise was collected",
        "Could not find object",
    ]
    .iter()
    .any(|left| message.contains(left))
}

/// Whether source text is a function on its own, which its author means to be called.
fn looks_like_function(source: &str) -> bool {
    let source = source.trim_start_matches('(').trim_start();
    let after_async = source.strip_prefix("async").map_or(source, str::trim_start);
    if after_async.starts_with("function") || source.starts_with(')') {
        return true;
    }
    let Some(arrow) = after_async.find("=>") else { return false };
    let parameters = after_async[..arrow].trim();
    let plain = |character: char| character.is_alphanumeric() || matches!(character, '_' | '$');
    parameters.ends_with(')') || (!parameters.is_empty() && parameters.chars().all(plain))
}

fn raw(text: &str) -> Result<Box<RawValue>, Failure> {
    raw_json(Value::from(text).to_string())
}

fn raw_json(text: String) -> Result<Box<RawValue>, Failure> {
    RawValue::from_string(text).map_err(|error| PageError::internal(error.to_string()).into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_told_from_expressions() {
        for source in [
            "() => 1",
            "async () => {}",
            "x => x",
            "function() {}",
            "async function f() {}",
            "(function() {})",
            "(a, b) => a",
            "({a}) => a",
        ] {
            assert!(looks_like_function(source), "{source}");
        }
        for source in ["document.querySelector", "alert", "a.map(x => x).at", "class A {}"] {
            assert!(!looks_like_function(source), "{source}");
        }
    }
}

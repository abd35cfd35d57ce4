//! Console lines, uncaught errors and the browser's own log, from pages and workers alike.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use storage::event::catalog::{ConsoleException, ConsoleMessage, LogEntry};
use storage::event::{Clean, Context, Draft, Json, Level, Payload, Symbol};
use storage::ids::{ArtifactHandle, FrameId};
use storage::limits::TEXT_FIELD_BYTES_MAX;

use super::super::chromium::SessionKey;
use super::super::state::ExecutionContext;
use super::outgoing::{Keep, Outgoing, truncated};
use super::render::{self, RemoteObject};
use super::{Collector, Handled, Role, read};

/// Call frames kept of a stack.
const STACK_FRAMES_MAX: usize = 32;
/// Text of one address or function name inside a stack.
const STACK_TEXT_BYTES_MAX: usize = 512;
/// Execution contexts remembered per target.
const CONTEXTS_MAX: usize = 8192;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ApiCalled {
    r#type: String,
    args: Vec<RemoteObject>,
    execution_context_id: i64,
    timestamp: f64,
    stack_trace: Option<Stack>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Stack {
    call_frames: Vec<CallFrame>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct CallFrame {
    function_name: String,
    url: String,
    line_number: i64,
    column_number: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Thrown {
    timestamp: f64,
    exception_details: ExceptionDetails,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ExceptionDetails {
    text: String,
    url: Option<String>,
    line_number: i64,
    column_number: i64,
    stack_trace: Option<Stack>,
    exception: Option<RemoteObject>,
    execution_context_id: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct EntryAdded {
    entry: Entry,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Entry {
    source: String,
    level: String,
    text: String,
    timestamp: f64,
    url: Option<String>,
    line_number: Option<i64>,
    network_request_id: Option<String>,
    worker_id: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ContextEvent {
    context: Created,
    execution_context_id: i64,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Created {
    id: i64,
    name: String,
    unique_id: String,
    aux_data: AuxData,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct AuxData {
    is_default: bool,
    frame_id: Option<String>,
}

impl Collector {
    pub(super) fn console_event(&mut self, name: &str, domain: &str, session: &SessionKey, raw: &RawValue) -> Handled {
        match (domain, name) {
            ("Runtime", "consoleAPICalled") => self.console_message(session, read(raw)?),
            ("Runtime", "exceptionThrown") => self.exception(session, read(raw)?),
            ("Runtime", "executionContextCreated") => self.context_created(session, read::<ContextEvent>(raw)?.context),
            ("Runtime", "executionContextDestroyed") => {
                let id = read::<ContextEvent>(raw)?.execution_context_id;
                self.contexts_gone(session, &|context| context.id == id);
            }
            ("Runtime", "executionContextsCleared") => self.contexts_gone(session, &|_| true),
            ("Log", "entryAdded") => self.log_entry(session, read::<EntryAdded>(raw)?.entry),
            _ => {}
        }
        Some(())
    }

    fn console_message(&mut self, session: &SessionKey, called: ApiCalled) {
        let context = self.script_context(session, Some(called.execution_context_id), called.timestamp);
        let text = self.setting.redactor.bounded(&render::called(&called.r#type, &called.args), TEXT_FIELD_BYTES_MAX);
        let level = level_of(&called.r#type);
        let told = level >= Level::Warning || called.r#type == "trace";
        let frames = called.stack_trace.map(|stack| stack.call_frames).unwrap_or_default();
        let top = frames.first();
        let payload = ConsoleMessage {
            level,
            r#type: Symbol::fold(&called.r#type),
            text: text.clean,
            url: top.filter(|frame| !frame.url.is_empty()).map(|frame| self.setting.redactor.url(&frame.url)),
            line: top.map(|frame| from_one(frame.line_number)),
            column: top.map(|frame| from_one(frame.column_number)),
            stack: if told { self.stack(&frames) } else { None },
            text_bytes: text.whole.as_ref().map(|whole| whole.len() as u64),
            text_artifact: None,
            truncated_fields: self.text_cut(text.whole.is_some()),
        };
        self.record_long(context, text.whole, payload, |payload, handle| payload.text_artifact = handle);
    }

    fn exception(&mut self, session: &SessionKey, thrown: Thrown) {
        let details = thrown.exception_details;
        let context = self.script_context(session, details.execution_context_id, thrown.timestamp);
        let described = details.exception.as_ref().map(|exception| render::arguments(std::slice::from_ref(exception)));
        // "Uncaught" and what was thrown; the browser's own words when nothing was.
        let raw = match described {
            Some(described) if !described.is_empty() => format!("{} {described}", details.text),
            _ => details.text,
        };
        let text = self.setting.redactor.bounded(&raw, TEXT_FIELD_BYTES_MAX);
        let frames = details.stack_trace.map(|stack| stack.call_frames).unwrap_or_default();
        let url = details.url.filter(|url| !url.is_empty()).or_else(|| frames.first().map(|frame| frame.url.clone()));
        let payload = ConsoleException {
            level: Level::Error,
            text: text.clean,
            url: url.map(|url| self.setting.redactor.url(&url)),
            line: Some(from_one(details.line_number)),
            column: Some(from_one(details.column_number)),
            stack: self.stack(&frames),
            text_bytes: text.whole.as_ref().map(|whole| whole.len() as u64),
            text_artifact: None,
            truncated_fields: self.text_cut(text.whole.is_some()),
        };
        self.record_long(context, text.whole, payload, |payload, handle| payload.text_artifact = handle);
    }

    fn log_entry(&mut self, session: &SessionKey, entry: Entry) {
        // A worker's console line comes a second time through its page's log, maybe when the worker is
        // gone. Every worker has a session of its own, and its lines come through that.
        let of_worker = self.targets.get(session).is_some_and(|target| matches!(target.role, Role::Worker(_)));
        if entry.source == "worker" && !of_worker {
            return;
        }
        let worker_captured = entry.worker_id.as_ref().is_some_and(|worker_id| {
            self.targets.values().any(|target| matches!(target.role, Role::Worker(_)) && target.target_id == *worker_id)
        });
        if worker_captured && matches!(entry.source.as_str(), "worker" | "javascript") {
            return;
        }
        let mut context = self.script_context(session, None, entry.timestamp);
        context.request_id = entry.network_request_id.and_then(|id| self.flights.id_of(&id));
        let text = self.setting.redactor.bounded(&entry.text, TEXT_FIELD_BYTES_MAX);
        let payload = LogEntry {
            level: match entry.level.as_str() {
                "verbose" => Level::Debug,
                "warning" => Level::Warning,
                "error" => Level::Error,
                _ => Level::Info,
            },
            source: Symbol::fold(&entry.source),
            text: text.clean,
            url: entry.url.filter(|url| !url.is_empty()).map(|url| self.setting.redactor.url(&url)),
            line: entry.line_number.map(from_one),
            text_bytes: text.whole.as_ref().map(|whole| whole.len() as u64),
            text_artifact: None,
            truncated_fields: self.text_cut(text.whole.is_some()),
        };
        self.record_long(context, text.whole, payload, |payload, handle| payload.text_artifact = handle);
    }

    /// Records `payload`; when its text was cut, after the whole text is kept.
    fn record_long<P: Payload + Send + 'static>(
        &mut self,
        context: Context,
        whole: Option<String>,
        mut payload: P,
        set: fn(&mut P, Option<ArtifactHandle>),
    ) {
        let Some(whole) = whole else { return self.record(&context, &payload) };
        let finish_context = context.clone();
        self.outgoing.push(Outgoing::Keep(Keep {
            bytes: whole.into_bytes(),
            purpose: "console_text",
            media_type: "text/plain".to_owned(),
            context,
            finish: Box::new(move |handle| {
                set(&mut payload, handle);
                Draft::new(&finish_context, &payload)
            }),
        }));
    }

    fn text_cut(&self, was_cut: bool) -> Option<Clean> {
        truncated(&self.setting.redactor, &[("text", was_cut)])
    }

    fn script_context(&self, session: &SessionKey, execution_context: Option<i64>, timestamp_ms: f64) -> Context {
        let mut context = self.context(session);
        let frames = self.targets.get(session).map(|target| &target.contexts);
        context.frame_id = execution_context.and_then(|id| frames?.get(&id).cloned());
        context.browser_time_micros = (timestamp_ms > 0.0).then(|| super::micros(timestamp_ms / 1000.0));
        context
    }

    fn stack(&self, frames: &[CallFrame]) -> Option<Json> {
        if frames.is_empty() {
            return None;
        }
        let short = |text: &str| crate::redact::cut(text, STACK_TEXT_BYTES_MAX).to_owned();
        let shown = frames.iter().take(STACK_FRAMES_MAX).map(|frame| {
            json!({
                "function": short(&frame.function_name),
                "url": short(self.setting.redactor.url(&frame.url).as_str()),
                "line": from_one(frame.line_number),
                "column": from_one(frame.column_number),
            })
        });
        Some(self.setting.redactor.json(&Value::Array(shown.collect())))
    }

    fn context_created(&mut self, session: &SessionKey, created: Created) {
        let Some(target) = self.targets.get_mut(session) else { return };
        let Some(frame_id) = created.aux_data.frame_id.map(FrameId::from) else { return };
        if target.contexts.len() < CONTEXTS_MAX {
            target.contexts.insert(created.id, frame_id.clone());
        }
        let Some(page) = target.page.clone() else { return };
        let context = ExecutionContext { id: created.id, unique_id: created.unique_id, session: session.clone() };
        let world = (!created.aux_data.is_default).then_some(created.name);
        self.change(&page, |state| {
            if let Some(frame) = state.frame_entry(&frame_id, None, session) {
                frame.context_created(world.as_deref(), context);
            }
        });
    }

    fn contexts_gone(&mut self, session: &SessionKey, gone: &dyn Fn(&ExecutionContext) -> bool) {
        let Some(target) = self.targets.get_mut(session) else { return };
        let probe = |id: i64| ExecutionContext { id, unique_id: String::new(), session: session.clone() };
        target.contexts.retain(|id, _| !gone(&probe(*id)));
        let Some(page) = target.page.clone() else { return };
        self.change(&page, |state| {
            for frame in state.frames.values_mut() {
                frame.contexts_destroyed(session, gone);
            }
        });
    }
}

fn level_of(method: &str) -> Level {
    match method {
        "debug" => Level::Debug,
        "warning" => Level::Warning,
        "error" | "assert" => Level::Error,
        _ => Level::Info,
    }
}

/// The browser counts lines and columns from 0, people from 1.
pub(super) fn from_one(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0).saturating_add(1)
}

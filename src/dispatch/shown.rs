//! A call's arguments as the log may show them.

use serde_json::Value;
use storage::event::Json;

use crate::gateway::Gateway;
use crate::limits::{ARGUMENT_TEXT_BYTES_MAX, ARGUMENTS_BYTES_MAX, head};
use crate::redact::Redactor;
use crate::tools::tool::{Call, Tool};

/// The arguments as the log may show them: what is typed by its length alone, secrets out, long texts
/// cut, and nothing at all of what is still too much.
pub(super) fn arguments(gateway: &Gateway, tool: &Tool, call: &Call) -> Json {
    let typed = |name: &str| tool.facts.parameters.iter().any(|parameter| parameter.name == name && parameter.typed);
    let mut shown = Value::Object(call.arguments.as_map().clone());
    for (name, value) in shown.as_object_mut().into_iter().flatten() {
        match value {
            // A key's name tells nothing; a key's character may be one of a password's.
            Value::String(text) if name == "key" && text.chars().count() > 1 => shorten(&gateway.redactor, value),
            // Which fields of a form are filled is no secret, what goes into them may be.
            value if name == "fields" && typed(name) => hide(value),
            Value::String(text) if typed(name) => *text = format!("[{} characters]", text.chars().count()),
            Value::Array(items) if typed(name) => *value = format!("[{} items]", items.len()).into(),
            Value::Object(members) if typed(name) => *value = format!("[{} members]", members.len()).into(),
            // A login that comes with the call is one all the same.
            Value::Object(members) if name == "context_options" => {
                for (_, login) in
                    members.iter_mut().filter(|(name, login)| *name == "storageState" && login.is_object())
                {
                    *login = "[given]".into();
                }
                shorten(&gateway.redactor, value);
            }
            Value::String(text) if name == "url" => *text = gateway.redactor.url(text).as_str().to_owned(),
            value => shorten(&gateway.redactor, value),
        }
    }
    let json = gateway.redactor.json(&shown);
    let bytes = json.as_str().len();
    if bytes <= ARGUMENTS_BYTES_MAX {
        return json;
    }
    gateway.redactor.json(&serde_json::json!({"omitted_bytes": bytes}))
}

/// Replaces what goes into the fields of a form by its length; which fields they are stays.
fn hide(value: &mut Value) {
    match value {
        Value::String(text) => *text = format!("[{} characters]", text.chars().count()),
        Value::Array(items) => items.iter_mut().for_each(hide),
        Value::Object(fields) => {
            fields.iter_mut().filter(|(name, _)| *name != "selector").for_each(|(_, value)| hide(value));
        }
        _ => {}
    }
}

/// Cuts every text inside `value` to what an event may spend on it.
fn shorten(redactor: &Redactor, value: &mut Value) {
    match value {
        Value::String(text) if text.len() > ARGUMENT_TEXT_BYTES_MAX => {
            let whole = text.len();
            // First redacted, then cut: a cut may not leave half of a secret behind.
            *text = redactor.text(text).as_str().to_owned();
            *text = format!("{}... ({whole} bytes)", head(text, ARGUMENT_TEXT_BYTES_MAX));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| shorten(redactor, item)),
        Value::Object(fields) => fields.values_mut().for_each(|field| shorten(redactor, field)),
        _ => {}
    }
}

//! `accept_next_dialog`, `dismiss_next_dialog`: answer the dialog that is open, else the next one.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::state::{Armed, Dialog};
use crate::contract::facts::{SESSION, TAB};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, ToolFacts};
use crate::fault::Fault;

/// How long an answer given beforehand holds.
const ARMED_FOR: Duration = Duration::from_secs(60);

const ARMED: &[Field] = &[SESSION_ID, Field::yes("armed")];

pub static ACCEPT_NEXT_DIALOG: Tool = Tool {
    facts: ToolFacts {
        name: "accept_next_dialog",
        title: "Accept next dialog",
        text: "Accept the open dialog, or the next one within 60 s; prompt_text answers a prompt.",
        pack: Pack::Dialogs,
        effect: Effect::SET,
        lane: Lane::Beside,
        parameters: &[SESSION, Parameter::text("prompt_text", "").typed(), TAB],
        returns: Returns::Object(ARMED),
    },
    run: |call| Box::pin(answer(call, true)),
};

pub static DISMISS_NEXT_DIALOG: Tool = Tool {
    facts: ToolFacts {
        name: "dismiss_next_dialog",
        title: "Dismiss next dialog",
        text: "Dismiss the open dialog, or the next one within 60 s.",
        pack: Pack::Dialogs,
        effect: Effect::SET,
        lane: Lane::Beside,
        parameters: &[SESSION, TAB],
        returns: Returns::Object(ARMED),
    },
    run: |call| Box::pin(answer(call, false)),
};

async fn answer(call: Call, accept: bool) -> Result<Output, Fault> {
    let page = call.page()?;
    let prompt_text = call.arguments.optional_text("prompt_text").map(str::to_owned);
    let mut data = json!({"session_id": call.arguments.text("session_id"), "armed": true});
    match page.dialog() {
        Some(dialog) => {
            page.answer_dialog(accept, prompt_text.as_deref(), call.deadline).await.map_err(faults::cdp(&call))?;
            data["answered"] = shown(&dialog);
        }
        None => page.arm_dialog(Armed { accept, prompt_text, until: Instant::now() + ARMED_FOR }),
    }
    Ok(Output::value(data))
}

/// A dialog as replies show it.
pub(super) fn shown(dialog: &Dialog) -> Value {
    json!({"type": dialog.dialog_type, "message": dialog.message, "default_prompt": dialog.default_prompt})
}

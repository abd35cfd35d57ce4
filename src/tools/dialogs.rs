//! `accept_next_dialog`, `dismiss_next_dialog`: answer the dialog that is open, else the next one.
//! `handle_dialog`: answer the one that is open, and say what came of it.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::acting::acted;
use super::faults;
use super::tool::{Call, Output, Tool};
use crate::browser::Page;
use crate::browser::page::ActionDone;
use crate::browser::state::{Armed, Dialog};
use crate::contract::facts::{SESSION, TAB, TIMEOUT};
use crate::contract::result::SESSION_ID;
use crate::contract::{Effect, Field, Lane, Pack, Parameter, Returns, ToolFacts};
use crate::fault::{Code, Fault};

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

pub static HANDLE_DIALOG: Tool = Tool {
    facts: ToolFacts {
        name: "handle_dialog",
        title: "Handle dialog",
        text: "Answer the open dialog and say what came of it; accept false also closes an open file chooser.",
        pack: Pack::Dialogs,
        effect: Effect::ACT,
        lane: Lane::Beside,
        parameters: &[
            SESSION,
            Parameter::flag("accept", "").required(),
            Parameter::text("prompt_text", "").typed(),
            TIMEOUT,
            TAB,
        ],
        returns: Returns::Object(&[SESSION_ID, Field::choice("action", &["accepted", "dismissed"])]),
    },
    run: |call| Box::pin(handle_dialog(call)),
};

async fn handle_dialog(call: Call) -> Result<Output, Fault> {
    let page = call.page()?;
    let accept = call.arguments.flag("accept") == Some(true);
    let Some(dialog) = page.dialog() else {
        if page.close_file_chooser(accept) {
            return Ok(Output::value(acted(&call, &ActionDone::default(), &[("action", "dismissed".into())])));
        }
        return Err(nothing_open(&page));
    };
    let prompt_text = call.arguments.optional_text("prompt_text");
    let done = page.handle_dialog(&dialog, accept, prompt_text, call.deadline).await.map_err(faults::page(&call))?;
    let action = if accept { "accepted" } else { "dismissed" };
    Ok(Output::value(acted(&call, &done, &[("action", action.into()), ("answered", shown(&dialog))])))
}

/// No dialog; a file chooser is accepted by giving it files.
fn nothing_open(page: &Page) -> Fault {
    let fault = Fault::new(Code::ModalStateBlocked);
    if page.state().file_chooser.is_some() {
        return fault.with("dialog_type", "file_chooser").with("clear_with", "upload_file");
    }
    fault
}

/// A dialog as replies show it.
pub(super) fn shown(dialog: &Dialog) -> Value {
    json!({"type": dialog.dialog_type, "message": dialog.message, "default_prompt": dialog.default_prompt})
}

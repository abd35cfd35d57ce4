//! What stops a page until somebody answers: dialogs and file choosers.
//!
//! An armed answer is given at once; without one the dialog stays open, because answering is the
//! agent's decision.

use std::time::Instant;

use serde::Deserialize;
use serde_json::json;
use serde_json::value::RawValue;
use storage::event::Symbol;
use storage::event::catalog::{DialogClosed, DialogOpened, FileChooserOpened};
use storage::ids::FrameId;

use super::super::chromium::SessionKey;
use super::super::handle::Page;
use super::super::state::{Dialog, FileChooser};
use super::{Collector, Handled, read};
use crate::redact::cut;
use storage::limits::TEXT_FIELD_BYTES_MAX;

/// Data of one drag; more is not carried to its goal.
const DRAG_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Opening {
    url: String,
    frame_id: Option<String>,
    message: String,
    r#type: String,
    default_prompt: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Answered {
    result: bool,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct ChooserOpened {
    frame_id: String,
    mode: String,
    backend_node_id: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct DragBegun {
    data: serde_json::Value,
}

impl Collector {
    /// A drag with data is handed over to whoever drags; it is no event of its own, since what it does
    /// to the page shows in the page.
    pub(super) fn drag_begun(&mut self, session: &SessionKey, raw: &RawValue) -> Handled {
        let Some(page) = self.page_of(session).cloned() else { return Some(()) };
        let fits = raw.get().len() <= DRAG_BYTES_MAX;
        let begun: DragBegun = if fits { read(raw)? } else { DragBegun::default() };
        self.change(&page, |state| {
            state.drags_begun += 1;
            state.drag = Some(begun.data).filter(|data| data.is_object());
        });
        Some(())
    }

    pub(super) fn dialog_opened(&mut self, page: &Page, session: &SessionKey, raw: &RawValue) -> Handled {
        let opening: Opening = read(raw)?;
        let mut context = self.page_context(Some(page));
        context.frame_id = opening.frame_id.map(FrameId::from);
        let redactor = self.setting.redactor.clone();
        // An empty suggestion of anything but a prompt says nothing.
        let default_prompt = opening.default_prompt.filter(|text| opening.r#type == "prompt" || !text.is_empty());
        let payload = DialogOpened {
            dialog_type: Symbol::fold(&opening.r#type),
            message: redactor.text(&opening.message),
            default_prompt: default_prompt.as_deref().map(|text| redactor.text(text)),
        };
        self.record(&context, &payload);
        let armed = page.state().armed.take().filter(|armed| armed.until > Instant::now());
        if let Some(armed) = armed {
            let mut answer = json!({ "accept": armed.accept });
            if let Some(text) = armed.prompt_text {
                answer["promptText"] = text.into();
            }
            self.setting.connection.post(Some(session), "Page.handleJavaScriptDialog", answer);
            self.change(page, |state| state.dialogs_opened += 1);
            return Some(());
        }
        let dialog = Dialog {
            dialog_type: opening.r#type,
            message: cut(&opening.message, TEXT_FIELD_BYTES_MAX).to_owned(),
            default_prompt: default_prompt.map(|text| cut(&text, TEXT_FIELD_BYTES_MAX).to_owned()),
            url: opening.url,
            session: session.clone(),
        };
        self.change(page, |state| {
            state.dialogs_opened += 1;
            state.dialog = Some(dialog);
        });
        Some(())
    }

    pub(super) fn dialog_closed(&mut self, page: &Page, raw: &RawValue) -> Handled {
        let answered: Answered = read(raw)?;
        let context = self.page_context(Some(page));
        self.record(&context, &DialogClosed { accepted: answered.result });
        self.change(page, |state| state.dialog = None);
        Some(())
    }

    /// The page ends with its dialog unanswered; Chromium does not say that the dialog ended with it.
    pub(super) fn dialog_gone(&mut self, page: &Page) {
        let open = page.state().dialog.is_some();
        if open {
            let context = self.page_context(Some(page));
            self.record(&context, &DialogClosed { accepted: false });
            self.change(page, |state| state.dialog = None);
        }
    }

    pub(super) fn file_chooser_opened(&mut self, page: &Page, session: &SessionKey, raw: &RawValue) -> Handled {
        let opened: ChooserOpened = read(raw)?;
        let multiple = opened.mode == "selectMultiple";
        let frame_id = FrameId::from(opened.frame_id);
        let mut context = self.page_context(Some(page));
        context.frame_id = Some(frame_id.clone());
        self.record(&context, &FileChooserOpened { mode: Symbol::fold(if multiple { "multiple" } else { "single" }) });
        let chooser =
            FileChooser { frame_id, multiple, backend_node_id: opened.backend_node_id, session: session.clone() };
        self.change(page, |state| {
            state.file_choosers_opened += 1;
            state.file_chooser = Some(chooser);
        });
        Some(())
    }
}

//! Documents and frames: what a page shows, and what is on its way.

use serde::Deserialize;
use serde_json::value::RawValue;
use storage::event::Symbol;
use storage::event::catalog::{FrameAttached, FrameDetached, FrameNavigated, PageNavigated};
use storage::ids::FrameId;

use super::super::chromium::SessionKey;
use super::super::handle::Page;
use super::super::state::WindowAsked;
use super::{Collector, Handled, read};

/// Parameters of all events about frames; each has some of them.
#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct FrameEvent {
    frame_id: String,
    parent_frame_id: Option<String>,
    loader_id: String,
    name: String,
    url: String,
    reason: String,
    navigation_type: String,
    frame: Frame,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Frame {
    id: String,
    parent_id: Option<String>,
    loader_id: String,
    name: Option<String>,
    url: String,
    url_fragment: String,
    unreachable_url: Option<String>,
}

impl Collector {
    pub(super) fn page_event(&mut self, name: &str, session: &SessionKey, raw: &RawValue) -> Handled {
        let Some(page) = self.page_of(session).cloned() else { return Some(()) };
        match name {
            "frameAttached" => self.frame_attached(&page, session, read(raw)?),
            "frameDetached" => self.frame_detached(&page, session, read(raw)?),
            "frameNavigated" => self.frame_navigated(&page, session, read::<FrameEvent>(raw)?.frame),
            "navigatedWithinDocument" => self.navigated_within(&page, read(raw)?),
            "lifecycleEvent" => self.lifecycle(&page, session, read(raw)?),
            "frameRequestedNavigation" | "frameScheduledNavigation" | "frameStartedNavigating" => {
                self.navigation_coming(&page, name, read(raw)?);
            }
            "windowOpen" => self.window_asked(&page, &read::<FrameEvent>(raw)?.url),
            "javascriptDialogOpening" => return self.dialog_opened(&page, session, raw),
            "javascriptDialogClosed" => return self.dialog_closed(&page, raw),
            "fileChooserOpened" => return self.file_chooser_opened(&page, session, raw),
            _ => {}
        }
        Some(())
    }

    fn window_asked(&mut self, page: &Page, url: &str) {
        let empty = url.is_empty() || url == "about:blank";
        let asked = if empty { WindowAsked::Empty } else { WindowAsked::Document };
        self.change(page, |state| state.windows.add(asked));
    }

    fn frame_attached(&mut self, page: &Page, session: &SessionKey, event: FrameEvent) {
        let frame_id = FrameId::from(event.frame_id);
        let parent_frame_id = event.parent_frame_id.map(FrameId::from);
        let mut context = self.page_context(Some(page));
        context.frame_id = Some(frame_id.clone());
        self.record(&context, &FrameAttached { parent_frame_id: parent_frame_id.clone() });
        self.change(page, |state| {
            if let Some(frame) = state.frame_entry(&frame_id, parent_frame_id.clone(), session) {
                frame.parent = parent_frame_id;
            }
        });
    }

    fn frame_detached(&mut self, page: &Page, session: &SessionKey, event: FrameEvent) {
        let frame_id = FrameId::from(event.frame_id);
        let mut context = self.page_context(Some(page));
        context.frame_id = Some(frame_id.clone());
        let swap = event.reason == "swap";
        self.record(&context, &FrameDetached { reason: Symbol::fold(if swap { "swap" } else { "remove" }) });
        self.change(page, |state| match state.frames.get_mut(&frame_id) {
            // It lives on in another process, under the session attached for it.
            Some(frame) if swap => frame.contexts_destroyed(session, &|_| true),
            _ => state.remove_frame(&frame_id),
        });
    }

    fn frame_navigated(&mut self, page: &Page, session: &SessionKey, frame: Frame) {
        let frame_id = FrameId::from(frame.id);
        let url = frame.unreachable_url.unwrap_or(frame.url) + &frame.url_fragment;
        let is_main = page.state().main_frame_id == frame_id;
        let mut context = self.page_context(Some(page));
        context.frame_id = Some(frame_id.clone());
        let clean = self.setting.redactor.url(&url);
        if is_main {
            let loader_id = (!frame.loader_id.is_empty()).then(|| self.setting.redactor.text(&frame.loader_id));
            self.record(&context, &PageNavigated { url: clean, same_document: false, loader_id });
        } else {
            self.record(&context, &FrameNavigated { url: clean, same_document: false });
        }
        self.document_left(page, session, &frame_id, &frame.loader_id, is_main);
        self.change(page, |state| {
            let parent = frame.parent_id.map(FrameId::from);
            if let Some(known) = state.frame_entry(&frame_id, parent.clone(), session) {
                known.commit(&frame.loader_id);
                known.url.clone_from(&url);
                known.name = frame.name;
                known.session = session.clone();
                known.parent = parent.or(known.parent.take());
            }
            if is_main {
                state.set_address(url);
                state.crashed = false;
                state.main_committed(&frame.loader_id);
            }
        });
    }

    fn navigated_within(&mut self, page: &Page, event: FrameEvent) {
        let frame_id = FrameId::from(event.frame_id);
        let is_main = page.state().main_frame_id == frame_id;
        let mut context = self.page_context(Some(page));
        context.frame_id = Some(frame_id.clone());
        let url = self.setting.redactor.url(&event.url);
        if is_main {
            self.record(&context, &PageNavigated { url, same_document: true, loader_id: None });
        } else {
            self.record(&context, &FrameNavigated { url, same_document: true });
        }
        self.change(page, |state| {
            if let Some(frame) = state.frames.get_mut(&frame_id) {
                frame.url.clone_from(&event.url);
            }
            if is_main {
                state.set_address(event.url);
                state.same_document_navigations += 1;
            }
        });
    }

    fn lifecycle(&mut self, page: &Page, session: &SessionKey, event: FrameEvent) {
        let frame_id = FrameId::from(event.frame_id);
        self.change(page, |state| {
            if let Some(frame) = state.frame_entry(&frame_id, None, session) {
                frame.moment(&event.loader_id, &event.name);
            }
        });
    }

    fn navigation_coming(&mut self, page: &Page, name: &str, event: FrameEvent) {
        let frame_id = FrameId::from(event.frame_id);
        let stays = matches!(event.navigation_type.as_str(), "sameDocument" | "historySameDocument");
        if page.state().main_frame_id != frame_id || stays {
            return;
        }
        self.change(page, |state| {
            state.navigations_requested += 1;
            if name == "frameStartedNavigating" && !event.loader_id.is_empty() {
                state.navigating = Some(event.loader_id);
            }
        });
    }
}

//! Following targets: pages, popups, frames in other processes, workers.
//!
//! A target is paused until its domains are switched on. Commands of one session run in order, so
//! they are sent in one go and nobody waits for their answers; a target that is not ours is resumed
//! all the same, because a forgotten one hangs.

use std::collections::HashMap;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use storage::event::Symbol;
use storage::event::catalog::{PageClosed, PageCrashed, PageOpened, WorkerStarted, WorkerStopped};
use storage::ids::FrameId;

use super::super::chromium::SessionKey;
use super::super::handle::Page;
use super::super::state::PageState;
use super::{Collector, Handled, Role, Target, held, read};

/// Request bodies up to this size come with the request itself.
const POST_DATA_BYTES_MAX: u64 = 64 * 1024;
/// Targets followed at one time; further ones run without being captured, and a gap says so.
const TARGETS_MAX: usize = 10_000;

/// Parameters of the attachment from the root: all pages and the workers that belong to none.
pub(in crate::browser) fn attach_to_top_level() -> Value {
    attach_except(&["browser", "tab", "browser_ui"])
}

fn attach_except(types: &[&str]) -> Value {
    let mut filter: Vec<Value> = types.iter().map(|name| json!({ "type": name, "exclude": true })).collect();
    filter.push(json!({}));
    json!({ "autoAttach": true, "waitForDebuggerOnStart": true, "flatten": true, "filter": filter })
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attached {
    session_id: String,
    target_info: TargetInfo,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct TargetInfo {
    target_id: String,
    r#type: String,
    title: String,
    url: String,
    opener_id: Option<String>,
    subtype: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Ended {
    session_id: String,
    target_id: String,
    status: String,
    error_code: Option<i64>,
}

#[derive(Default, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Changed {
    target_info: TargetInfo,
}

impl Collector {
    pub(super) fn attached(&mut self, parent: Option<&SessionKey>, raw: &RawValue) -> Handled {
        let Attached { session_id, target_info: info } = read(raw)?;
        let session = SessionKey::from(session_id.as_str());
        if self.targets.len() >= TARGETS_MAX {
            *self.losses.entry(("target".to_owned(), "queue_full")).or_default() += 1;
            self.setting.connection.post(Some(&session), "Runtime.runIfWaitingForDebugger", json!({}));
            return Some(());
        }
        let plain = info.subtype.as_deref().is_none_or(str::is_empty);
        let role = match info.r#type.as_str() {
            "page" if plain => Role::Page,
            "iframe" => Role::Frame,
            "worker" => Role::Worker("worker"),
            "shared_worker" => Role::Worker("shared_worker"),
            "service_worker" => Role::Worker("service_worker"),
            _ => Role::Other,
        };
        self.instrument(&session, role);
        let page = match role {
            Role::Page => Some(self.open(&session, &info)),
            _ => parent.and_then(|parent| self.page_of(parent)).cloned(),
        };
        match (role, &page) {
            (Role::Frame, Some(page)) => {
                let frame_id = FrameId::from(info.target_id.as_str());
                self.change(page, |state| {
                    if let Some(frame) = state.frame_entry(&frame_id, None, &session) {
                        frame.session = session.clone();
                    }
                });
            }
            (Role::Worker(worker_type), page) => {
                let context = self.page_context(page.as_ref());
                let url = self.setting.redactor.url(&info.url);
                self.record(&context, &WorkerStarted { worker_type: Symbol::fold(worker_type), url });
            }
            _ => {}
        }
        let target = Target {
            role,
            page,
            target_id: info.target_id,
            parent: parent.cloned(),
            contexts: HashMap::new(),
            refusals: held::Refusals::default(),
        };
        self.targets.insert(session, target);
        Some(())
    }

    fn instrument(&self, session: &SessionKey, role: Role) {
        let post = |method: &str, params: Value| self.setting.connection.post(Some(session), method, params);
        self.setting.standing.guard(&self.setting.connection, session);
        if role != Role::Other {
            let below = attach_except(&["browser", "tab", "page", "service_worker", "shared_worker"]);
            post("Target.setAutoAttach", below);
            post("Runtime.enable", json!({}));
            post("Network.enable", json!({ "maxPostDataSize": POST_DATA_BYTES_MAX }));
            post("Log.enable", json!({}));
            post("Audits.enable", json!({}));
            self.setting.standing.attached(&self.setting.connection, session);
        }
        if matches!(role, Role::Page | Role::Frame) {
            post("Page.enable", json!({}));
            post("Page.setLifecycleEventsEnabled", json!({ "enabled": true }));
            post("Page.setInterceptFileChooserDialog", json!({ "enabled": true }));
        }
        if role == Role::Page {
            // A page in the background behaves like one that is looked at.
            post("Emulation.setFocusEmulationEnabled", json!({ "enabled": true }));
        }
        post("Runtime.runIfWaitingForDebugger", json!({}));
    }

    fn open(&mut self, session: &SessionKey, info: &TargetInfo) -> Page {
        let roster = self.setting.roster.clone();
        let opener = info.opener_id.as_deref().and_then(|target_id| roster.by_target(target_id));
        let state = PageState::new(FrameId::from(info.target_id.as_str()), session.clone(), &info.url);
        let opener_page_id = opener.as_ref().map(|opener| opener.page_id().clone());
        let connection = self.setting.connection.clone();
        let progress = self.progress.clone();
        let page =
            Page::new(connection, progress, session.clone(), info.target_id.clone(), opener_page_id.clone(), state);
        let context = self.page_context(Some(&page));
        let url = self.setting.redactor.url(&info.url);
        self.record(&context, &PageOpened { url, opener_page_id });
        if let Some(opener) = opener {
            self.change(&opener, |state| state.popups.add(page.page_id().clone()));
        }
        roster.add(page.clone());
        self.roster_touched = true;
        page
    }

    pub(super) fn detached(&mut self, raw: &RawValue) -> Handled {
        let ended: Ended = read(raw)?;
        let session = SessionKey::from(ended.session_id.as_str());
        self.setting.standing.detached(&session);
        let Some(target) = self.targets.remove(&session) else { return Some(()) };
        self.target_ended(&session, &target, "closed");
        Some(())
    }

    fn target_ended(&mut self, session: &SessionKey, target: &Target, reason: &str) {
        match (target.role, &target.page) {
            (Role::Page, Some(page)) => {
                let reason = if *self.setting.closing.borrow() { "session_closed" } else { reason };
                self.dialog_gone(page);
                self.cut_off(if reason == "closed" { "page_closed" } else { reason }, |flight| {
                    flight.page.as_ref().is_some_and(|of| of.page_id() == page.page_id())
                });
                let context = self.page_context(Some(page));
                self.record(&context, &PageClosed { reason: Symbol::fold(reason) });
                self.change(page, |state| state.closed = true);
                self.setting.roster.remove(page.page_id());
                self.roster_touched = true;
            }
            (Role::Frame, Some(page)) => {
                // The frame is gone, or lives in its parent's process again; in that case its next
                // document says where, and goes on being told of from there.
                self.cut_off("frame_gone", |flight| flight.session == *session && flight.resource_type != "document");
                let fallback = target.parent.clone().unwrap_or_else(|| page.session().clone());
                self.change(page, |state| {
                    for frame in state.frames.values_mut().filter(|frame| frame.session == *session) {
                        frame.contexts_destroyed(session, &|_| true);
                        frame.session = fallback.clone();
                    }
                });
            }
            (Role::Worker(worker_type), page) => {
                self.cut_off("worker_stopped", |flight| flight.session == *session);
                let context = self.page_context(page.as_ref());
                self.record(&context, &WorkerStopped { worker_type: Symbol::fold(worker_type) });
            }
            _ => {}
        }
    }

    pub(super) fn target_changed(&mut self, raw: &RawValue) -> Handled {
        let Changed { target_info: info } = read(raw)?;
        if let Some(page) = self.setting.roster.by_target(&info.target_id) {
            self.change(&page, |state| state.set_title(&info.title, &info.url));
        }
        Some(())
    }

    pub(super) fn target_crashed(&mut self, raw: &RawValue) -> Handled {
        let ended: Ended = read(raw)?;
        let crashed = |target: &&Target| target.target_id == ended.target_id && target.role == Role::Page;
        let Some(page) = self.targets.values().find(crashed).and_then(|target| target.page.clone()) else {
            return Some(());
        };
        self.dialog_gone(&page);
        self.cut_off("page_crashed", |flight| flight.page.as_ref().is_some_and(|of| of.page_id() == page.page_id()));
        let context = self.page_context(Some(&page));
        self.record(&context, &PageCrashed { status: Symbol::fold(&ended.status), error_code: ended.error_code });
        self.change(&page, |state| {
            state.crashed = true;
            state.in_flight.clear();
        });
        // A dead renderer answers nothing.
        self.setting.connection.end_session(page.session());
        Some(())
    }

    /// Chromium is gone, and everything in it.
    pub(super) fn browser_gone(&mut self) {
        for (session, target) in std::mem::take(&mut self.targets) {
            self.target_ended(&session, &target, "crashed");
        }
        let reason = if *self.setting.closing.borrow() { "session_closed" } else { "browser_gone" };
        self.cut_off(reason, |_| true);
        for guid in self.running_downloads.keys().cloned().collect::<Vec<_>>() {
            self.download_failed(&guid, reason);
        }
    }
}

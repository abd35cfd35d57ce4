//! Promises of the browser layer against real Chromium and a local site.
//!
//! Every wait is for a fact, with a limit. Chromium's sandbox is off here because tests may run as
//! root in a container.

mod capture;
mod ending;
mod hostile;
pub(crate) mod site;

use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use storage::artifact::ArtifactStore;
use storage::event::{Clean, Symbol, catalog::SessionWarning};
use storage::ids::{InstanceId, Owner, SessionId};
use storage::log::{Log, LogOptions};

use super::{Browser, LaunchOptions, Page, find_executable};
use crate::deadline::Deadline;
use crate::journal::{Journal, Scope};
use crate::redact::Redactor;

/// Longer than anything takes on a busy machine.
pub(crate) fn limit() -> Deadline {
    Deadline::after(Duration::from_secs(60))
}

/// A browser with a log of its own.
pub(crate) struct Bench {
    pub browser: Browser,
    pub page: Page,
    pub redactor: Arc<Redactor>,
    journal: Journal,
    artifacts: ArtifactStore,
    pub run_directory: PathBuf,
    _directory: tempfile::TempDir,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        Self::with(&[], true).await
    }

    pub(crate) async fn with(arguments: &[&str], headless_shell: bool) -> Self {
        Self::launch("run", arguments, headless_shell).await
    }

    pub(crate) async fn in_directory(run: &str, headless_shell: bool) -> Self {
        Self::launch(run, &[], headless_shell).await
    }

    async fn launch(run: &str, arguments: &[&str], headless_shell: bool) -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory can be made");
        let path = directory.path();
        let log = Log::open(LogOptions::new(path.join("log"))).expect("a new log opens");
        let artifacts = ArtifactStore::open(&path.join("artifacts"), 1 << 30).expect("a new store opens");
        let journal = Journal::new(log);
        let redactor = Arc::new(Redactor::new());
        let scope = Scope::new(SessionId::from("test"), InstanceId::from("instance"), Owner::from("local"));
        let options = LaunchOptions { run_directory: path.join(run), ..options(path, arguments, headless_shell) };
        let run_directory = options.run_directory.clone();
        let browser = Browser::launch(options, scope, journal.clone(), artifacts.clone(), redactor.clone(), limit())
            .await
            .expect("Chromium starts");
        let first = browser.active().expect("there is a first page");
        let page = browser.page(&first).expect("the active page exists");
        Self { browser, page, redactor, journal, artifacts, run_directory, _directory: directory }
    }

    /// Loads `url` and waits for its `load` event.
    pub(crate) async fn open(&self, url: &str) {
        let params = json!({ "url": url });
        let started = self.command("Page.navigate", params).await;
        let loader_id = started["loaderId"].as_str().expect("a document is loaded").to_owned();
        let loaded = |state: &super::state::PageState| {
            let main = state.main_frame();
            (main.loader_id.as_deref() == Some(&loader_id) && main.reached("load")).then_some(())
        };
        self.page.wait(limit(), loaded).await.expect("the page loads");
    }

    pub(crate) async fn command(&self, method: &str, params: Value) -> Value {
        let session = self.page.session().clone();
        self.browser.connection().raw(Some(&session), method, params, limit()).await.expect(method)
    }

    /// Evaluates and waits for a promise.
    pub(crate) async fn evaluate(&self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        self.command("Runtime.evaluate", params).await["result"]["value"].clone()
    }

    /// Everything recorded by now, as `list_events` shows it, except the log's own events.
    pub(crate) async fn events(&self) -> Vec<Value> {
        self.browser.recorded(limit()).await.expect("the collector keeps up");
        self.browser.bodies_kept(limit()).await.expect("bodies are kept");
        let mark = SessionWarning { code: Symbol::fold("mark"), message: Clean::fixed("mark") };
        self.journal.commit_one(&storage::event::Context::default(), &mark).await.expect("the log records");
        self.recorded()
    }

    fn recorded(&self) -> Vec<Value> {
        let mut events = Vec::new();
        let mut visit = |view: &storage::event::EventView<'_>| {
            let event = storage::event::json::event(view, "log");
            if event["session_id"].is_string() {
                events.push(event);
            }
            ControlFlow::Continue(())
        };
        self.journal.log().reader().scan(1, &|_| true, &mut visit).expect("the log is sound");
        events
    }

    /// Waits until an event is recorded for which `wanted` holds.
    pub(crate) async fn event(&self, wanted: impl Fn(&Value) -> bool) -> Value {
        let deadline = limit();
        let mut durable = self.journal.log().watch();
        loop {
            durable.borrow_and_update();
            if let Some(found) = self.recorded().into_iter().find(&wanted) {
                return found;
            }
            let more = deadline.bound(durable.changed()).await;
            assert!(more.is_ok(), "the event did not come");
        }
    }

    pub(crate) async fn of_kind(&self, kind: &str) -> Vec<Value> {
        self.events().await.into_iter().filter(|event| event["kind"] == kind).collect()
    }

    pub(crate) async fn close(self) -> super::Closed {
        self.browser.close("requested", limit()).await
    }
}

fn options(directory: &std::path::Path, arguments: &[&str], headless_shell: bool) -> LaunchOptions {
    LaunchOptions {
        executable: find_executable(headless_shell, None).expect("Chromium is installed"),
        headless: true,
        sandbox: false,
        arguments: arguments.iter().map(ToString::to_string).collect(),
        profile_directory: None,
        run_directory: directory.join("run"),
        window: None,
        bodies: super::BodyRules {
            policy: super::BodyPolicy::Text,
            bytes_max: crate::limits::BODY_BYTES_DEFAULT,
            session_bytes_max: crate::limits::SESSION_BODY_BYTES_DEFAULT,
        },
        blocklist: crate::blocklist::Blocklist::default(),
        download_bytes_max: storage::limits::ARTIFACT_BYTES_MAX,
    }
}

//! Operations against real Chromium, on pages served from this process.
//!
//! Each test has its own browser and its own server; nothing sleeps.

mod acting;
mod evaluating;
mod going;
mod looking;
mod naming;
mod site;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use storage::artifact::ArtifactStore;
use storage::ids::{InstanceId, Owner, SessionId};
use storage::log::{Log, LogOptions};

use self::site::Site;
use super::{LoadState, PageError};
use crate::browser::{BodyRules, Browser, LaunchOptions, Page, find_executable};
use crate::deadline::Deadline;
use crate::journal::{Journal, Scope};
use crate::redact::Redactor;

/// A browser with one page, and the site it looks at.
struct Bench {
    browser: Browser,
    page: Page,
    site: Site,
    _directory: tempfile::TempDir,
}

fn soon() -> Deadline {
    Deadline::after(Duration::from_secs(20))
}

fn at_once() -> Deadline {
    Deadline::after(Duration::from_millis(1500))
}

impl Bench {
    async fn start() -> Self {
        let directory = tempfile::tempdir().expect("a temporary directory");
        let path = |name: &str| -> PathBuf { directory.path().join(name) };
        let log = Log::open(LogOptions::new(path("log"))).expect("a log");
        let artifacts = ArtifactStore::open(&path("artifacts"), 1 << 30).expect("an artifact store");
        let owner = Owner::from("local");
        let scope = Scope::new(SessionId::from("test"), InstanceId::from("test"), owner);
        let options = LaunchOptions {
            executable: find_executable(true, None).expect("Chromium is installed"),
            headless: true,
            sandbox: false,
            arguments: vec!["--site-per-process".into()],
            profile_directory: None,
            run_directory: path("run"),
            window: Some((1000, 700)),
            bodies: BodyRules::NONE,
            blocklist: crate::blocklist::Blocklist::default(),
            download_bytes_max: storage::limits::ARTIFACT_BYTES_MAX,
        };
        let redactor = Arc::new(Redactor::new());
        let launched = Browser::launch(options, scope, Journal::new(log), artifacts, redactor, soon()).await;
        let browser = launched.expect("Chromium starts");
        let page_id = browser.active().expect("a first page");
        let page = browser.page(&page_id).expect("the active page");
        Self { browser, page, site: Site::start().await, _directory: directory }
    }

    /// Shows a document with this body.
    async fn show(&self, body: &str) {
        let url = self.site.page(body);
        self.page.navigate(&url, LoadState::Load, soon()).await.expect("the page loads");
    }

    async fn value(&self, expression: &str) -> serde_json::Value {
        let result = self.page.evaluate(expression, soon()).await.expect(expression);
        serde_json::from_str(result.json.get()).expect("JSON")
    }

    async fn close(self) {
        self.browser.close("test", soon()).await;
    }
}

fn reason<T>(result: Result<T, PageError>) -> String {
    match result {
        Ok(_) => "no error".into(),
        Err(PageError::NotActionable { reason, .. }) => reason,
        Err(other) => format!("{other:?}"),
    }
}

//! One session from launch to close: calls, and what the pages do by themselves.

use std::collections::VecDeque;

use serde_json::json;
use storage::event::catalog::{
    ArtifactKept, CallAccepted, CallEntered, CallSettled, ConsoleException, ConsoleMessage, DialogClosed, DialogOpened,
    DownloadFinished, DownloadStarted, LogEntry, PageNavigated, PageOpened, ScreenshotTaken, SessionClosed,
    SessionLaunching, SessionOpened, SnapshotTaken,
};
use storage::event::{Clean, Context, Draft, Json, Level};
use storage::ids::ArtifactHandle;

use super::random::Random;
use super::{OWNER, Script, network, words};

/// Steps of one session: from a quick look to a long day.
const STEPS_MAX: u64 = 300;

pub(super) struct Session {
    script: Script,
    pub(super) context: Context,
    pub(super) site: network::Site,
    request_prefix: String,
    requests: u64,
    steps_left: u64,
    launched: bool,
}

impl Session {
    pub(super) fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let site = network::Site::pick(&mut random);
        let owner = if random.chance(800) { OWNER } else { "nightly" };
        let context = Context {
            session_id: Some(format!("{}-{}", random.pick(&["agent", "check", "shop", "qa"]), random.suffix(8)).into()),
            instance_id: Some(random.uuid().into()),
            owner: Some(owner.into()),
            ..Context::default()
        };
        let (request_prefix, steps_left) = (random.suffix(4), random.within(5, STEPS_MAX));
        let script = Script { random, drafts: VecDeque::new(), micros: 0 };
        Self { script, context, site, request_prefix, requests: 0, steps_left, launched: false }
    }

    /// The next event, or `None` once it is closed.
    pub(super) fn next(&mut self, micros: i64) -> Option<Draft> {
        if self.script.drafts.is_empty() {
            self.script.micros = micros;
            match (self.launched, self.steps_left) {
                (false, _) => self.launch(),
                (true, 0) => return None,
                (true, 1) => self.close(),
                (true, _) => self.step(),
            }
            self.steps_left = self.steps_left.saturating_sub(u64::from(self.launched));
            self.launched = true;
        }
        self.script.drafts.pop_front()
    }

    fn step(&mut self) {
        match self.script.random.within(0, 1000) {
            0..180 => self.navigate(),
            180..480 => self.act(),
            480..700 => self.chatter(6, 40),
            700..930 => self.poll(),
            930..980 => self.look(),
            980..990 => self.dialog(),
            990..996 => self.download(),
            _ => self.popup(),
        }
    }

    fn launch(&mut self) {
        let name = self.context.session_id.as_ref().map_or("", |session| session.as_str()).into();
        let options = json!({"arguments": [], "incognito": false, "profile": "ephemeral", "sandbox": true});
        let launching =
            SessionLaunching { name, channel: "chromium".into(), headless: true, options: Json::redacted(&options) };
        self.script.record(&self.context, &launching);
        let opened = SessionOpened {
            browser: Clean::fixed("Chrome/156.0.8078.114"),
            process_id: self.script.random.within(1_000, 60_000),
            sandbox: true,
            launch_ms: self.script.random.milliseconds(180, 900),
        };
        self.script.record(&self.context, &opened);
        self.page();
    }

    fn page(&mut self) {
        self.context.page_id = Some(format!("t-{}", self.script.random.suffix(6)).into());
        self.context.frame_id = Some(self.script.random.hexadecimal(32).to_uppercase().into());
        let opened = PageOpened { url: Clean::fixed("about:blank"), opener_page_id: None };
        self.script.record(&self.context, &opened);
    }

    fn close(&mut self) {
        let closed =
            SessionClosed { reason: "requested".into(), duration_ms: self.script.random.milliseconds(9_000, 900_000) };
        let context = Context { page_id: None, frame_id: None, ..self.context.clone() };
        self.script.record(&context, &closed);
    }

    /// A call around what `work` records; all of it carries the call's id.
    fn call(&mut self, tool: &'static str, arguments: serde_json::Value, work: impl FnOnce(&mut Self)) {
        self.context.operation_id = Some(self.script.random.uuid().into());
        let accepted =
            CallAccepted { tool: tool.into(), arguments: Json::redacted(&arguments), deadline_ms: Some(30_000) };
        self.script.record(&self.context, &accepted);
        let queue_ms = self.script.random.milliseconds(0, 2);
        self.script.record(&self.context, &CallEntered { tool: tool.into(), queue_ms });
        work(self);
        let failed = self.script.random.chance(20);
        let settled = CallSettled {
            tool: tool.into(),
            outcome: "completed".into(),
            code: failed.then(|| "element_not_found".into()),
            retry: if failed { "after_correction".into() } else { "not_needed".into() },
            duration_ms: self.script.random.milliseconds(4, 1_400),
            queue_ms,
            result_bytes: self.script.random.within(40, 9_000),
        };
        self.script.record(&self.context, &settled);
        self.context.operation_id = None;
    }

    fn navigate(&mut self) {
        let path = self.site.path(&mut self.script.random);
        let url = format!("https://{}{path}", self.site.host);
        let arguments = json!({"url": url, "wait_until": "load", "timeout": 30_000});
        self.call("navigate", arguments, |session| {
            session.request(&path, "document");
            let navigated = PageNavigated {
                url: Clean::redacted(url),
                same_document: false,
                loader_id: Some(Clean::redacted(session.script.random.hexadecimal(32).to_uppercase())),
            };
            session.script.record(&session.context, &navigated);
            for _ in 0..session.script.random.within(2, 8) {
                let (path, resource_type) = session.site.asset(&mut session.script.random);
                session.request(&path, resource_type);
            }
            session.chatter(1, 12);
        });
    }

    fn act(&mut self) {
        let tool = self.script.random.pick(&words::TOOLS[1..]);
        let (field, length) = (self.script.random.within(1, 40), self.script.random.within(3, 60));
        let arguments = match tool {
            "fill" => json!({"selector": format!("#field-{field}"), "value_length": length}),
            "evaluate" => json!({"expression": "document.title"}),
            _ => json!({"selector": format!("role=button[name=\"{}\"]", words::function(&mut self.script.random))}),
        };
        self.call(tool, arguments, |session| {
            session.chatter(0, 5);
            if session.script.random.chance(400) {
                session.poll();
            }
        });
    }

    /// Console lines, a few of them complaints.
    fn chatter(&mut self, low: u64, high: u64) {
        for _ in 0..self.script.random.within(low, high) {
            let context = self.script.now(&self.context);
            match self.script.random.within(0, 1000) {
                0..25 => self.complain(&context, Level::Error, "error"),
                25..80 => self.complain(&context, Level::Warning, "warning"),
                80..85 => self.throw(&context),
                85..250 => self.say(&context, Level::Debug, "debug"),
                _ => self.say(&context, Level::Info, "log"),
            }
        }
    }

    fn say(&mut self, context: &Context, level: Level, r#type: &'static str) {
        let text = words::line(&mut self.script.random);
        self.console(context, level, r#type, text, None);
    }

    fn complain(&mut self, context: &Context, level: Level, r#type: &'static str) {
        let (text, stack) = (words::mistake(&mut self.script.random), self.stack());
        self.console(context, level, r#type, text, Some(stack));
    }

    fn console(&mut self, context: &Context, level: Level, r#type: &'static str, text: String, stack: Option<Json>) {
        let message = ConsoleMessage {
            level,
            r#type: r#type.into(),
            text: Clean::redacted(text),
            url: Some(Clean::redacted(self.site.script(&mut self.script.random))),
            line: Some(self.script.random.within(1, 4_000)),
            column: Some(self.script.random.within(1, 120)),
            stack,
            text_bytes: None,
            text_artifact: None,
            truncated_fields: None,
        };
        self.script.record(context, &message);
    }

    fn throw(&mut self, context: &Context) {
        let text = format!("Uncaught {}\n    at {}", words::mistake(&mut self.script.random), self.site.host);
        let exception = ConsoleException {
            level: Level::Error,
            text: Clean::redacted(text),
            url: Some(Clean::redacted(self.site.script(&mut self.script.random))),
            line: Some(self.script.random.within(1, 4_000)),
            column: Some(self.script.random.within(1, 120)),
            stack: Some(self.stack()),
            text_bytes: None,
            text_artifact: None,
            truncated_fields: None,
        };
        self.script.record(context, &exception);
    }

    fn stack(&mut self) -> Json {
        let mut frames = Vec::new();
        for _ in 0..self.script.random.within(2, 7) {
            let random = &mut self.script.random;
            let url = self.site.script(random);
            let (line, column) = (random.within(1, 4_000), random.within(1, 120));
            frames.push(json!({"function": words::function(random), "url": url, "line": line, "column": column}));
        }
        Json::redacted(&frames.into())
    }

    /// What a page asks its server for by itself.
    fn poll(&mut self) {
        for _ in 0..self.script.random.within(1, 4) {
            let path = self.site.interface(&mut self.script.random);
            self.request(&path, "fetch");
        }
    }

    fn request(&mut self, path: &str, resource_type: &'static str) {
        self.requests += 1;
        let id = format!("r-{}-{}", self.request_prefix, self.requests);
        let context = Context { request_id: Some(id.into()), ..self.context.clone() };
        let status = network::chain(&mut self.script, &context, &self.site, path, resource_type);
        if status >= 400 {
            let entry = LogEntry {
                level: Level::Error,
                source: "network".into(),
                text: Clean::redacted(format!(
                    "Failed to load resource: the server responded with a status of {status} ()"
                )),
                url: Some(Clean::redacted(format!("https://{}{path}", self.site.host))),
                line: None,
                text_bytes: None,
                text_artifact: None,
                truncated_fields: None,
            };
            self.script.record(&context, &entry);
        }
    }

    fn look(&mut self) {
        self.call("snapshot", json!({"interactive_only": true}), |session| {
            let random = &mut session.script.random;
            let taken = SnapshotTaken { references: random.within(10, 900), bytes: random.within(2_000, 60_000) };
            session.script.record(&session.context, &taken);
        });
        self.call("screenshot", json!({"full_page": false}), |session| {
            let (artifact, bytes) = session.keep("screenshot", "image/png");
            let taken = ScreenshotTaken { width: 1280, height: 720, bytes, artifact };
            session.script.record(&session.context, &taken);
        });
    }

    fn keep(&mut self, purpose: &'static str, media_type: &'static str) -> (ArtifactHandle, u64) {
        let sha256 = self.script.random.hexadecimal(64);
        let artifact = ArtifactHandle::from(format!("art-{}", &sha256[..32]));
        let kept = ArtifactKept {
            artifact: artifact.clone(),
            purpose: purpose.into(),
            media_type: Clean::fixed(media_type),
            bytes: self.script.random.within(20_000, 900_000),
            sha256: Clean::redacted(sha256),
        };
        self.script.record(&self.context, &kept);
        (artifact, kept.bytes)
    }

    fn dialog(&mut self) {
        let opened = DialogOpened {
            dialog_type: "confirm".into(),
            message: Clean::redacted(words::sentence(&mut self.script.random)),
            default_prompt: None,
        };
        self.script.record(&self.context, &opened);
        self.script.record(&self.context, &DialogClosed { accepted: true });
    }

    fn download(&mut self) {
        let download_id: storage::ids::DownloadId = self.script.random.uuid().into();
        let started = DownloadStarted {
            download_id: download_id.clone(),
            url: Clean::redacted(format!("https://{}/files/{}", self.site.host, self.script.random.uuid())),
            suggested_name: Clean::redacted(format!("report-{}.pdf", self.script.random.within(1, 10_000))),
        };
        self.script.record(&self.context, &started);
        let (artifact, bytes) = self.keep("download", "application/pdf");
        let sha256 = Clean::redacted(self.script.random.hexadecimal(64));
        self.script.record(&self.context, &DownloadFinished { download_id, bytes, sha256, artifact });
    }

    /// Another page takes over.
    fn popup(&mut self) {
        self.page();
        self.navigate();
    }
}

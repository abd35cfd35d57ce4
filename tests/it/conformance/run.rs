//! Runs one case in a session and says what is other than the case has it.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};

use super::case::{Case, Step};
use crate::site::Site;
use crate::support::Server;

/// How long a state may take to come about.
const STATE_LIMIT: Duration = Duration::from_secs(5);
/// How often a state is looked at that nobody announces.
const LOOK: Duration = Duration::from_millis(15);
/// The time of a call that names none, in milliseconds.
const STEP_MS: u64 = 10_000;
/// Resolves when whatever the page still had to do at once is done.
const SETTLED: &str = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(1))))";

/// Where a case runs.
pub struct Run<'a> {
    pub server: &'a Server,
    pub site: &'a Site,
    pub session_id: &'a str,
    pub case: &'a Case,
}

impl Run<'_> {
    /// # Errors
    /// What is other than the case has it.
    pub async fn check(&self) -> Result<(), String> {
        let page = format!("{}/", self.home());
        self.call("navigate", json!({"url": page})).await?;
        for step in &self.case.steps {
            self.step(step).await?;
        }
        self.reaches_state().await?;
        if self.case.tabs.is_some() {
            self.close_other_tabs().await?;
        }
        Ok(())
    }

    fn home(&self) -> String {
        self.site.url(&format!("/conformance/{}/{}", self.case.group, self.case.name))
    }

    async fn step(&self, step: &Step) -> Result<(), String> {
        let mut arguments = step.arguments.clone();
        if let Some(url) = arguments["url"].as_str() {
            arguments["url"] = url.replace("{{here}}", &self.home()).into();
        }
        if let Some(paths) = arguments.get("paths") {
            arguments["paths"] = self.uploaded(paths)?;
        }
        let timed = !matches!(step.tool.as_str(), "accept_next_dialog" | "dismiss_next_dialog" | "evaluate");
        if timed && arguments.get("timeout").is_none() {
            arguments["timeout"] = STEP_MS.into();
        }
        arguments["session_id"] = self.session_id.into();
        let reply = self.server.call(&step.tool, arguments).await;
        let envelope = &reply.structured;
        let told = format!("{} {} gave {envelope}", step.tool, step.arguments);
        let Some(code) = &step.fault else {
            let data = &envelope["data"];
            let as_said = step.gives.iter().all(|(key, wanted)| same(&data[key], wanted));
            return if !reply.is_error && as_said { Ok(()) } else { Err(told) };
        };
        let details = &envelope["details"];
        let reason = step.reason.as_deref().unwrap_or_default();
        let as_said = reply.code() == code
            && details["reason"].as_str().unwrap_or_default().contains(reason)
            && step.count.is_none_or(|count| details["count"] == count);
        if as_said { Ok(()) } else { Err(told) }
    }

    /// Puts the case's files where the server takes uploads from; gives their paths.
    fn uploaded(&self, names: &Value) -> Result<Value, String> {
        let directory: PathBuf = self.server.data_dir().path().join("uploads");
        std::fs::create_dir_all(&directory).map_err(|error| error.to_string())?;
        let mut paths = Vec::new();
        for name in names.as_array().into_iter().flatten().filter_map(Value::as_str) {
            let path = directory.join(name);
            std::fs::write(&path, &self.case.uploads[name]).map_err(|error| error.to_string())?;
            paths.push(path.display().to_string());
        }
        Ok(paths.into())
    }

    /// Every state of the case comes about in time, and is still there once the page has settled.
    async fn reaches_state(&self) -> Result<(), String> {
        let mut look = tokio::time::interval(LOOK);
        let began = tokio::time::Instant::now();
        while let Err(difference) = self.state().await {
            if began.elapsed() > STATE_LIMIT {
                return Err(difference);
            }
            look.tick().await;
        }
        self.evaluate(SETTLED).await?;
        self.state().await.map_err(|difference| format!("it went on: {difference}"))
    }

    async fn state(&self) -> Result<(), String> {
        if let Some(said) = &self.case.said {
            self.holds("said", &json!(said)).await?;
        }
        for expectation in &self.case.expect {
            self.holds(&expectation.evaluate, &expectation.equals).await?;
        }
        let Some(wanted) = self.case.tabs else { return Ok(()) };
        let tabs = self.call("list_tabs", json!({})).await?.as_array().map_or(0, Vec::len);
        if tabs == wanted { Ok(()) } else { Err(format!("{tabs} tabs and not {wanted}")) }
    }

    async fn holds(&self, expression: &str, wanted: &Value) -> Result<(), String> {
        let got = self.evaluate(expression).await?;
        if same(&got, wanted) { Ok(()) } else { Err(format!("{expression} is {got} and not {wanted}")) }
    }

    async fn evaluate(&self, expression: &str) -> Result<Value, String> {
        Ok(self.call("evaluate", json!({"expression": expression})).await?["result"].take())
    }

    async fn close_other_tabs(&self) -> Result<(), String> {
        let tabs = self.call("list_tabs", json!({})).await?;
        for tab in tabs.as_array().into_iter().flatten().filter(|tab| tab["active"] == false) {
            self.call("close_tab", json!({"tab_id": tab["tab_id"]})).await?;
        }
        Ok(())
    }

    async fn call(&self, tool: &str, mut arguments: Value) -> Result<Value, String> {
        arguments["session_id"] = self.session_id.into();
        let mut reply = self.server.call(tool, arguments).await;
        if reply.is_error { Err(format!("{tool}: {}", reply.structured)) } else { Ok(reply.structured["data"].take()) }
    }
}

/// The same value; whole numbers are the same however they are written.
fn same(got: &Value, wanted: &Value) -> bool {
    match (got, wanted) {
        (Value::Array(got), Value::Array(wanted)) => {
            got.len() == wanted.len() && got.iter().zip(wanted).all(|(got, wanted)| same(got, wanted))
        }
        (Value::Number(got), Value::Number(wanted)) => got.as_f64() == wanted.as_f64(),
        _ => got == wanted,
    }
}

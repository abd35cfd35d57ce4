//! Acting on elements of pages that fight back: what must come of each action, and what is said when
//! nothing can.

mod dragging;
mod fields;
mod keys;
mod modal;
mod targets;
mod waiting;

use serde_json::{Value, json};

use crate::site::Site;
use crate::support::{Options, Server};

/// A session on one page of the site.
struct Bench {
    site: Site,
    server: Server,
    id: String,
}

impl Bench {
    async fn at(page: &str) -> Self {
        let site = Site::start().await;
        let server = Server::start(Options::stdio()).await;
        let id = server.launch_at(&site.url(page)).await;
        Self { site, server, id }
    }

    fn with_session(&self, mut arguments: Value) -> Value {
        arguments["session_id"] = self.id.as_str().into();
        arguments
    }

    async fn ok(&self, tool: &str, arguments: Value) -> Value {
        self.server.ok(tool, self.with_session(arguments)).await
    }

    async fn fault(&self, tool: &str, arguments: Value, code: &str) -> Value {
        self.server.fault(tool, self.with_session(arguments), code).await
    }

    async fn click(&self, selector: &str) -> Value {
        self.ok("click", json!({"selector": selector})).await
    }

    async fn value(&self, expression: &str) -> Value {
        self.ok("evaluate", json!({"expression": expression})).await["result"].take()
    }

    /// What the page has noted since it was last asked.
    async fn log(&self) -> Vec<String> {
        let log = self.value("log.splice(0)").await;
        serde_json::from_value(log).expect("a list of texts")
    }
}

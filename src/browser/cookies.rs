//! The cookies of a browser, all sites together, as Chromium keeps them.

use serde_json::{Map, Value, json};

use super::{Browser, CdpError};
use crate::deadline::Deadline;

impl Browser {
    /// Every cookie, as Chromium tells it.
    ///
    /// # Errors
    /// When Chromium is gone or takes longer than the deadline.
    pub async fn cookies(&self, deadline: Deadline) -> Result<Vec<Value>, CdpError> {
        let mut answer = self.connection().raw(None, "Storage.getCookies", json!({}), deadline).await?;
        match answer["cookies"].take() {
            Value::Array(cookies) => Ok(cookies),
            _ => Ok(Vec::new()),
        }
    }

    /// Sets `cookies`, all or none.
    ///
    /// # Errors
    /// `Protocol` when one of them is none that Chromium takes: none is set then.
    pub async fn set_cookies(&self, cookies: &[Value], deadline: Deadline) -> Result<(), CdpError> {
        self.connection().raw(None, "Storage.setCookies", json!({ "cookies": cookies }), deadline).await.map(|_| ())
    }

    /// The positions of those `cookies` that Chromium does not keep, tried in a place of their own so
    /// that the session's cookies stay as they are.
    ///
    /// # Errors
    /// When Chromium is gone or takes longer than the deadline.
    pub async fn cookies_refused(&self, cookies: &[Value], deadline: Deadline) -> Result<Vec<usize>, CdpError> {
        let connection = self.connection();
        let created = connection.raw(None, "Target.createBrowserContext", json!({}), deadline).await?;
        let context = &created["browserContextId"];
        let mut refused = Vec::new();
        let mut failed = None;
        for (position, cookie) in cookies.iter().enumerate() {
            let params = json!({ "cookies": [cookie], "browserContextId": context });
            let kept = match connection.raw(None, "Storage.setCookies", params, deadline).await {
                Ok(_) => is_kept(connection, context, cookie, deadline).await,
                Err(CdpError::Protocol { .. }) => Ok(false),
                Err(error) => Err(error),
            };
            match kept {
                Ok(true) => {}
                Ok(false) => refused.push(position),
                Err(error) => {
                    failed = Some(error);
                    break;
                }
            }
        }
        connection.post(None, "Target.disposeBrowserContext", json!({ "browserContextId": context }));
        failed.map_or(Ok(refused), Err)
    }

    /// From now on every request of every tab carries `headers`; those set before are taken back.
    pub fn set_extra_headers(&self, headers: Map<String, Value>) {
        self.inner.standing.set_headers(self.connection(), headers);
    }
}

async fn is_kept(
    connection: &super::Connection,
    context: &Value,
    cookie: &Value,
    deadline: Deadline,
) -> Result<bool, CdpError> {
    // One that has expired is set in order to be removed.
    let now = storage::time::now_micros() as f64 / 1_000_000.0;
    if cookie["expires"].as_f64().is_some_and(|expires| expires <= now) {
        return Ok(true);
    }
    let params = json!({ "browserContextId": context });
    let kept = connection.raw(None, "Storage.getCookies", params.clone(), deadline).await?;
    connection.raw(None, "Storage.clearCookies", params, deadline).await?;
    Ok(kept["cookies"].as_array().is_some_and(|kept| !kept.is_empty()))
}

//! Calls through a real MCP client.

use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CallToolResult, ClientRequest, JsonObject, NumberOrString, ServerResult,
    Tool as McpTool,
};
use rmcp::service::{PeerRequestOptions, RequestHandle, RunningService, ServiceError};
use rmcp::{Peer, RoleClient};
use serde_json::Value;

use super::reply::Reply;
use super::wire::Wire;

/// One connected client.
pub struct Client {
    running: RunningService<RoleClient, ()>,
    wire: Wire,
}

/// A call on its way.
pub struct Pending {
    handle: RequestHandle<RoleClient>,
    wire: Wire,
}

impl Client {
    #[must_use]
    pub fn new(running: RunningService<RoleClient, ()>, wire: Wire) -> Self {
        Self { running, wire }
    }

    #[must_use]
    pub fn peer(&self) -> &Peer<RoleClient> {
        self.running.peer()
    }

    pub async fn tools(&self) -> Vec<McpTool> {
        self.peer().list_all_tools().await.expect("tools/list answers")
    }

    /// Sends a call and does not wait for its reply.
    pub async fn begin(&self, tool: &str, arguments: Value) -> Pending {
        let Value::Object(arguments) = arguments else { panic!("arguments are an object") };
        let handle = self.send(tool, arguments).await.expect("the server takes the request");
        Pending { handle, wire: self.wire.clone() }
    }

    /// The bare result of a call, in whatever form, and what it took on the wire; 0 where nobody measures.
    pub async fn ask(&self, tool: &str, arguments: Value) -> (CallToolResult, usize) {
        self.begin(tool, arguments).await.answer().await.expect("the call is answered")
    }

    async fn send(&self, tool: &str, arguments: JsonObject) -> Result<RequestHandle<RoleClient>, ServiceError> {
        let params = CallToolRequestParams::new(tool.to_owned()).with_arguments(arguments);
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        self.peer().send_cancellable_request(request, PeerRequestOptions::no_options()).await
    }

    /// Ends the connection in order.
    pub async fn close(self) {
        // How it ended is for the server's own exit status to say.
        let _ = self.running.cancel().await;
    }
}

impl Pending {
    /// The reply, or the protocol's error.
    pub async fn result(self) -> Result<Reply, ServiceError> {
        self.answer().await.map(|(result, wire_bytes)| Reply::new(result, wire_bytes))
    }

    async fn answer(self) -> Result<(CallToolResult, usize), ServiceError> {
        let id = match &self.handle.id {
            NumberOrString::Number(number) => number.to_string(),
            NumberOrString::String(text) => format!("\"{text}\""),
        };
        match self.handle.await_response().await? {
            ServerResult::CallToolResult(result) => Ok((result, self.wire.length(&id))),
            other => panic!("no answer to tools/call: {other:?}"),
        }
    }

    /// # Panics
    /// When the protocol gave an error.
    pub async fn reply(self) -> Reply {
        self.result().await.expect("the call is answered")
    }

    /// Takes the call back, by the protocol's own notification.
    pub async fn cancel(self) {
        self.handle.cancel(Some("the test takes it back".to_owned())).await.expect("the notification is sent");
    }
}

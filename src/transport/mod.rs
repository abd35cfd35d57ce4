//! The MCP handler: translates between the protocol and dispatch, and never decides. The only home
//! of rmcp.

mod guard;
mod http;
mod lines;
mod salvage;
mod stdio;

use std::borrow::Cow;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use axum::http::request::Parts;
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest, CustomResult, Implementation,
    InitializeResult, ListToolsResult, PaginatedRequestParams, ServerCapabilities, Tool as McpTool, ToolAnnotations,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};

pub use http::{bind, serve as serve_http};
pub use stdio::serve as serve_stdio;

use tokio::runtime::Handle;
use tokio::sync::{Mutex, watch};
use tokio::task::JoinHandle;

use crate::contract::schema;
use crate::dispatch;
use crate::envelope::{Form, Reader, TextForm};
use crate::gateway::{Gateway, local_owner};
use crate::tools::offer::Offer;
use crate::tools::tool::Tool;

const INSTRUCTIONS: &str = "Start with launch_session, then navigate. Address elements by the refs of snapshot. \
    list_console_messages, list_network_requests and list_events page through everything that happened; pass next_cursor as after. \
    Every failure carries a next_step.";

/// One client's view of the gateway, which may still be opening its log. Holds nothing of the
/// client's own.
#[derive(Clone)]
pub struct Handler {
    gateway: watch::Receiver<Option<Gateway>>,
    /// Calls that came before the gateway was open go on in the order they came: the lock is fair.
    entrance: Arc<Mutex<()>>,
    /// Where calls run, whatever thread the client is served on.
    runtime: Handle,
    offer: Offer,
    /// The tool list, made once: it does not change while the process runs.
    listed: Arc<[McpTool]>,
    /// The form of replies to a client that does not ask for one.
    text: TextForm,
}

impl Handler {
    /// Calls will run on the runtime that this is called on.
    ///
    /// # Panics
    /// Outside of a runtime.
    #[must_use]
    pub fn new(gateway: watch::Receiver<Option<Gateway>>, offer: Offer, text: TextForm) -> Self {
        let listed = offer.tools().iter().map(|tool| described(tool)).collect();
        Self { gateway, entrance: Arc::default(), runtime: Handle::current(), offer, listed, text }
    }

    /// The gateway, once it is open; at once when it is. It always comes to that: a log that cannot be
    /// opened ends the process.
    async fn gateway(&self) -> Result<Gateway, ErrorData> {
        let mut gateway = self.gateway.clone();
        let _in_turn = self.entrance.lock().await;
        let open = gateway.wait_for(Option::is_some).await;
        let open = open.ok().and_then(|gateway| gateway.clone());
        open.ok_or_else(|| ErrorData::internal_error("the server is stopping", None))
    }

    /// The form that the client's address asks for, as in `/mcp?text=compact`; else the server's.
    fn form(&self, context: &RequestContext<RoleServer>) -> Result<TextForm, ErrorData> {
        let Some(parts) = context.extensions.get::<Parts>() else { return Ok(self.text) };
        let pairs = parts.uri.query().unwrap_or_default().split('&');
        match pairs.filter_map(|pair| pair.strip_prefix("text=")).next_back() {
            None => Ok(self.text),
            Some(word) => TextForm::parse(word).ok_or_else(|| {
                let words = TextForm::WORDS.join(" or ");
                ErrorData::invalid_params(format!("text in the address of /mcp is {words}"), None)
            }),
        }
    }

    /// Starts a call: it takes its place in its session's lane before this returns, so that calls
    /// begun in order stay in order. It goes on in a task of its own: it ends and is on record even
    /// when nobody waits for it any more.
    fn begin(&self, mut call: Pin<Box<dyn Future<Output = dispatch::Answer> + Send>>) -> JoinHandle<dispatch::Answer> {
        // Timers and tasks that the call makes now must be where it goes on.
        let _runtime = self.runtime.enter();
        // The task polls it again at once, with a waker that wakes.
        let mut context = Context::from_waker(Waker::noop());
        match catch_unwind(AssertUnwindSafe(|| call.as_mut().poll(&mut context))) {
            Ok(Poll::Ready(answer)) => self.runtime.spawn(std::future::ready(answer)),
            // What panicked once panics again, and then as the task's outcome.
            Ok(Poll::Pending) | Err(_) => self.runtime.spawn(call),
        }
    }
}

impl ServerHandler for Handler {
    fn get_info(&self) -> InitializeResult {
        let mut implementation = Implementation::from_build_env();
        implementation.name = "pageledger".into();
        implementation.title = Some("Pageledger".into());
        implementation.version = env!("CARGO_PKG_VERSION").into();
        InitializeResult::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(implementation)
            .with_instructions(INSTRUCTIONS)
    }

    async fn list_tools(
        &self,
        _request: Option<PaginatedRequestParams>,
        context: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let mut tools = self.listed.to_vec();
        if self.form(&context)? == TextForm::Compact {
            // Who publishes a result's shape has to send results of that shape (MCP, tools, "Output Schema").
            tools.iter_mut().for_each(|tool| tool.output_schema = None);
        }
        Ok(ListToolsResult::with_all_items(tools))
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        context: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let owner = local_owner();
        let form = self.form(&context)?;
        let gateway = self.gateway().await?;
        let Some(tool) = self.offer.find(&request.name) else {
            dispatch::unknown_tool(&gateway, owner).await;
            return Err(ErrorData::invalid_params("there is no tool of that name; tools/list names them all", None));
        };
        let arguments = request.arguments.unwrap_or_default();
        let names_session = tool.facts.parameters.iter().any(|parameter| parameter.name == "session_id");
        let form = Form { text: form, reader: Reader { acts: !tool.facts.effect.read_only, names_session } };
        let call = self.begin(Box::pin(dispatch::call(gateway, tool, arguments, owner, form, context.ct.clone())));
        match call.await {
            Ok(answer) => Ok(result(answer, form.text).into()),
            Err(panic) => {
                tracing::error!(%panic, "a call ended without an answer");
                Err(ErrorData::internal_error(
                    "the call ended without an answer; call server_status before repeating it",
                    None,
                ))
            }
        }
    }

    /// Requests whose parameters do not parse arrive here; for a method we know, the parameters are
    /// at fault, not the method.
    async fn on_custom_request(
        &self,
        request: CustomRequest,
        _context: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        if request.method == "tools/call" {
            return Err(ErrorData::invalid_params(
                "tools/call needs a name and, when given, an object of arguments",
                None,
            ));
        }
        Err(ErrorData::new(rmcp::model::ErrorCode::METHOD_NOT_FOUND, "there is no such method", None))
    }
}

fn result(answer: dispatch::Answer, form: TextForm) -> CallToolResult {
    let structured = (form == TextForm::Json).then_some(answer.reply.structured);
    let mut content = vec![ContentBlock::text(answer.reply.text)];
    if let Some(image) = answer.image {
        content.push(ContentBlock::image(crate::base64(&image.bytes), image.media_type));
    }
    let mut result =
        if answer.reply.is_error { CallToolResult::error(content) } else { CallToolResult::success(content) };
    result.structured_content = structured;
    result
}

fn described(tool: &Tool) -> McpTool {
    let facts = &tool.facts;
    let effect = facts.effect;
    let annotations = ToolAnnotations::new()
        .read_only(effect.read_only)
        .destructive(effect.destructive)
        .idempotent(effect.idempotent)
        .open_world(effect.open_world);
    let mut described =
        McpTool::new(Cow::Borrowed(facts.name), Cow::Borrowed(facts.text), Arc::new(schema::input(facts)));
    described.title = Some(facts.title.to_owned());
    described.annotations = Some(annotations);
    described.output_schema = Some(Arc::new(facts.returns.schema()));
    described
}

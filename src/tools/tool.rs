//! What a tool is to the dispatcher: its facts and its deed.

use std::future::Future;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use storage::event::Context;
use storage::ids::{FrameId, InstanceId, OperationId, Owner, PageId};
use tokio_util::sync::CancellationToken;

use crate::browser::{Browser, Page};
use crate::contract::{Arguments, ToolFacts};
use crate::deadline::Deadline;
use crate::envelope::{Data, Form, Reference};
use crate::fault::{Code, Fault};
use crate::gateway::Gateway;
use crate::session::Session;

/// One tool.
pub struct Tool {
    pub facts: ToolFacts,
    pub run: fn(Call) -> Deed,
}

/// A tool at work.
pub type Deed = Pin<Box<dyn Future<Output = Result<Output, Fault>> + Send>>;

/// One call, as its tool sees it.
#[derive(Clone)]
pub struct Call {
    pub gateway: Gateway,
    pub arguments: Arguments,
    pub owner: Owner,
    pub operation_id: OperationId,
    pub deadline: Deadline,
    /// The server's own limit, which waiting for the consequences of an action stays within.
    pub limit: Deadline,
    /// Present for the lanes `Session` and `Beside`.
    pub session: Option<Arc<Session>>,
    /// Fires when the client takes the call back.
    pub cancelled: CancellationToken,
    pub target: Target,
    /// How the reply is sent, which says how much it can hold.
    pub form: Form,
}

/// What the call turned out to concern; filled in while it runs, read when it has ended.
#[derive(Clone, Default)]
pub struct Target(Arc<Mutex<TargetIds>>);

/// The ids the envelope shows.
#[derive(Clone, Default)]
pub struct TargetIds {
    /// The session's display name.
    pub instance: Option<String>,
    pub instance_id: Option<InstanceId>,
    pub page_id: Option<PageId>,
    pub frame_id: Option<FrameId>,
}

impl Target {
    pub fn update(&self, change: impl FnOnce(&mut TargetIds)) {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    #[must_use]
    pub fn ids(&self) -> TargetIds {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn set_session(&self, session: &Session) {
        self.update(|ids| {
            ids.instance = Some(session.id.to_string());
            ids.instance_id = Some(session.instance_id.clone());
        });
    }
}

/// What a tool gives back.
pub struct Output {
    pub data: Data,
    /// What the result left on the server.
    pub artifacts: Vec<Reference>,
    /// A picture to show beside the text, where it fits.
    pub image: Option<Image>,
}

/// A picture.
pub struct Image {
    pub media_type: &'static str,
    pub bytes: Vec<u8>,
}

impl Image {
    /// What it takes of a reply: base64, and the content block around it.
    #[must_use]
    pub fn wire_bytes(&self) -> usize {
        self.bytes.len().div_ceil(3) * 4 + 128
    }
}

impl Output {
    /// A result that is one thing.
    #[must_use]
    pub fn value(value: serde_json::Value) -> Self {
        Data::Value(value).into()
    }
}

impl From<Data> for Output {
    fn from(data: Data) -> Self {
        Self { data, artifacts: Vec::new(), image: None }
    }
}

impl Call {
    /// # Errors
    /// `INTERNAL_ERROR` for a tool whose lane gives it no session: a mistake in its facts.
    pub fn session(&self) -> Result<&Arc<Session>, Fault> {
        self.session.as_ref().ok_or_else(|| Fault::new(Code::InternalError).because("the tool's lane has no session"))
    }

    /// # Errors
    /// When the session is not live.
    pub fn browser(&self) -> Result<&Browser, Fault> {
        self.session()?.browser()
    }

    /// Where the session's own files lie.
    ///
    /// # Errors
    /// As [`Call::session`].
    pub fn files_directory(&self) -> Result<PathBuf, Fault> {
        Ok(self.gateway.files_directory(&self.session()?.instance_id))
    }

    /// Context of events about a tab of the session.
    ///
    /// # Errors
    /// As [`Call::session`].
    pub fn page_context(&self, page: &Page) -> Result<Context, Fault> {
        Ok(Context { page_id: Some(page.page_id().clone()), ..self.session()?.scope.context() })
    }

    /// The tab named by `tab_id`, else the active one.
    ///
    /// # Errors
    /// `TAB_NOT_FOUND`.
    pub fn page(&self) -> Result<Page, Fault> {
        let browser = self.browser()?;
        let wanted = match self.arguments.optional_text("tab_id") {
            Some(tab_id) => Some(PageId::from(tab_id)),
            None => browser.active(),
        };
        let page = wanted.as_ref().and_then(|page_id| browser.page(page_id));
        let shown = wanted.map_or_else(|| "<active>".to_owned(), |page_id| page_id.to_string());
        let page = page.ok_or_else(|| Fault::new(Code::TabNotFound).with("tab_id", shown))?;
        self.target.update(|ids| ids.page_id = Some(page.page_id().clone()));
        Ok(page)
    }

    /// The tab to work on; opens one where the session has none and none was named.
    ///
    /// # Errors
    /// As [`Call::page`], and when a tab cannot be opened.
    pub async fn page_or_new(&self) -> Result<Page, Fault> {
        let browser = self.browser()?;
        if self.arguments.optional_text("tab_id").is_none() && browser.active().is_none() {
            let page = browser.open_page(self.deadline).await.map_err(super::faults::cdp(self))?;
            self.target.update(|ids| ids.page_id = Some(page.page_id().clone()));
            return Ok(page);
        }
        self.page()
    }
}

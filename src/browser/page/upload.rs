//! Giving files to a page: to a file input, hidden or not, or to the chooser that a click opens.
//!
//! Inputs are set by the browser itself, which sends the events that pages listen for; a page sees
//! names and contents, never paths. Whether a path may be given is the caller's to say.

use std::path::PathBuf;
use std::time::Duration;

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::actionability::millis;
use super::call::ActionDone;
use super::error::PageError;
use super::kit::KitError;
use super::pointer::ClickOptions;
use crate::browser::state::{FileChooser, PageState};
use crate::browser::{Page, SessionKey};
use crate::deadline::Deadline;

/// A click has opened its chooser by then, or opens none.
const CHOOSER_WAIT: Duration = Duration::from_secs(3);
/// A directory's files are in the page by then, as far as they are told of.
const DIRECTORY_WAIT: Duration = Duration::from_secs(10);

/// The file input that an element is or labels.
const FIND: &str = "function(id) {
  const element = this.get(id);
  const label = element.closest('label');
  const input = label && label.control ? label.control : element;
  if (!(input instanceof HTMLInputElement) || input.type !== 'file') return 0;
  return this.keep(input);
}";
/// What an input takes.
const FACTS: &str = "function() {
  return { multiple: this.multiple, directory: this.webkitdirectory, disabled: this.matches(':disabled') };
}";
/// Resolves when the input has changed, or after so many milliseconds.
const CHANGED: &str = "function(ms) {
  return new Promise((done) => {
    this.addEventListener('change', () => done(true), { once: true });
    setTimeout(() => done(false), ms);
  });
}";

/// Files to give, or one directory.
#[derive(Debug, Clone)]
pub struct Offered {
    pub paths: Vec<PathBuf>,
    pub directory: bool,
}

/// A file input as the browser holds it.
struct Input {
    session: SessionKey,
    object_id: String,
}

impl Page {
    /// Gives files to the input that `selector` means or labels. Of another element it clicks, and the
    /// chooser that this opens gets them; a chooser that is open already gets them without a click.
    ///
    /// # Errors
    /// `UploadFailed` when there is no input or it does not take them, and see [`PageError`].
    pub async fn upload(&self, selector: &str, offered: &Offered, deadline: Deadline) -> Result<ActionDone, PageError> {
        let mark = self.begin(deadline).await?;
        let input = self.race_undone(mark, deadline, self.input_named(selector, deadline)).await;
        let open = self.state().file_chooser.clone();
        let (input, clicked) = match (input, open) {
            (Ok(Some(input)), _) => (input, ActionDone::default()),
            (Ok(None) | Err(PageError::NotFound { .. }), Some(chooser)) => {
                (self.input_of(&chooser, deadline).await?, ActionDone::default())
            }
            (Ok(None), None) => self.chooser_opened_by(selector, deadline).await?,
            (Err(error), _) => return Err(error),
        };
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.check(&input, offered, deadline)).await?;
        let done = self.effect(mark, deadline, self.give(&input, offered, deadline)).await?;
        self.state().file_chooser = None;
        Ok(ActionDone {
            navigated: done.navigated || clicked.navigated,
            popups: [clicked.popups, done.popups].concat(),
            downloads: [clicked.downloads, done.downloads].concat(),
            ..done
        })
    }

    async fn input_named(&self, selector: &str, deadline: Deadline) -> Result<Option<Input>, PageError> {
        loop {
            let element = self.element(selector, &json!({ "action": "state" }), deadline).await?;
            match self.input_kept(&element.frame_id, element.id, deadline).await {
                Ok(input) => return Ok(input),
                Err(KitError::Lost) => self.pause(deadline).await?,
                Err(KitError::Page(error)) => return Err(error),
            }
        }
    }

    async fn input_kept(&self, frame_id: &FrameId, id: u64, deadline: Deadline) -> Result<Option<Input>, KitError> {
        let found = self.kit_function(frame_id, FIND, &json!([{ "value": id }]), true, deadline).await?;
        match found["value"].as_u64() {
            Some(id @ 1..) => {
                let object_id = self.object_of(frame_id, id, deadline).await?;
                let session = self.kit(frame_id, deadline).await?.session.clone();
                Ok(Some(Input { session, object_id }))
            }
            _ => Ok(None),
        }
    }

    async fn chooser_opened_by(&self, selector: &str, deadline: Deadline) -> Result<(Input, ActionDone), PageError> {
        let before = self.state().file_choosers_opened;
        let done = self.click(selector, &ClickOptions::default(), deadline).await?;
        if let Some(dialog) = done.dialog {
            return Err(PageError::DialogOpen { dialog: Box::new(dialog) });
        }
        let opened = |state: &PageState| state.file_chooser.clone().filter(|_| state.file_choosers_opened > before);
        match self.wait(deadline.within(CHOOSER_WAIT), opened).await {
            Ok(chooser) => Ok((self.input_of(&chooser, deadline).await?, done)),
            Err(crate::browser::WaitError::Passed) => {
                Err(PageError::upload_failed("it is no file input, and a click on it opened no file chooser"))
            }
            Err(end) => Err(self.waited(end)),
        }
    }

    /// The input that a chooser belongs to; it need not be in the document.
    async fn input_of(&self, chooser: &FileChooser, deadline: Deadline) -> Result<Input, PageError> {
        let Some(node) = chooser.backend_node_id else {
            return Err(PageError::upload_failed("the page's file chooser belongs to no input"));
        };
        let params = json!({ "backendNodeId": node });
        let resolved = self.command(&chooser.session, "DOM.resolveNode", params, deadline).await;
        let object_id = resolved.ok().and_then(|node| node["object"]["objectId"].as_str().map(str::to_owned));
        match object_id {
            Some(object_id) => Ok(Input { session: chooser.session.clone(), object_id }),
            None => {
                self.state().file_chooser = None;
                Err(PageError::upload_failed("the input that opened the file chooser is gone"))
            }
        }
    }

    /// Whether the input takes what is offered: the browser itself would not say.
    async fn check(&self, input: &Input, offered: &Offered, deadline: Deadline) -> Result<(), PageError> {
        let facts = self.on_input(input, FACTS, &json!([]), deadline).await?;
        let refusal = match (&facts, offered.directory) {
            (facts, _) if facts["disabled"] == true => "the file input is disabled",
            (facts, true) if facts["directory"] != true => "the file input takes files, not a directory",
            (facts, false) if facts["directory"] == true => "the file input takes one directory, not files",
            (facts, false) if facts["multiple"] != true && offered.paths.len() > 1 => "the file input takes one file",
            _ => return Ok(()),
        };
        Err(PageError::upload_failed(refusal))
    }

    async fn give(&self, input: &Input, offered: &Offered, deadline: Deadline) -> Result<(), PageError> {
        let params = json!({ "files": offered.paths, "objectId": input.object_id });
        let set = self.command(&input.session, "DOM.setFileInputFiles", params, deadline);
        if offered.directory {
            // The browser reads a directory in its own time.
            let wait_ms = millis(deadline.remaining().min(DIRECTORY_WAIT));
            let arguments = json!([{ "value": wait_ms }]);
            let (changed, set) = tokio::join!(self.on_input(input, CHANGED, &arguments, deadline), set);
            set.and(changed)?;
        } else {
            set.await?;
        }
        self.echo(deadline).await;
        Ok(())
    }

    async fn on_input(
        &self,
        input: &Input,
        function: &str,
        arguments: &Value,
        deadline: Deadline,
    ) -> Result<Value, PageError> {
        let params = json!({
            "objectId": input.object_id,
            "functionDeclaration": function,
            "arguments": arguments,
            "returnByValue": true,
            "awaitPromise": true,
            "silent": true,
        });
        let mut answer = self.command(&input.session, "Runtime.callFunctionOn", params, deadline).await?;
        Ok(answer["result"]["value"].take())
    }
}

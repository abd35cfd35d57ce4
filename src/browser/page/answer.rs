//! Answering what a page asks, and seeing the answer through.

use super::call::ActionDone;
use super::error::PageError;
use crate::browser::Page;
use crate::browser::state::{Dialog, PageState};
use crate::deadline::Deadline;

impl Page {
    /// Answers `dialog` and waits for what the page does next: another dialog, another document.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn handle_dialog(
        &self,
        dialog: &Dialog,
        accept: bool,
        prompt_text: Option<&str>,
        deadline: Deadline,
    ) -> Result<ActionDone, PageError> {
        let mark = self.mark();
        let leaves = accept && dialog.dialog_type == "beforeunload";
        let work = async {
            let answered = self.answer_dialog(accept, prompt_text, deadline).await;
            answered.map_err(|error| self.fault(&error, "Page.handleJavaScriptDialog"))?;
            if leaves {
                self.left(mark.committed, deadline).await;
            }
            self.echo(deadline).await;
            Ok(())
        };
        let done = self.effect(mark, deadline, work).await?;
        let navigated = done.navigated || self.state().navigations_committed > mark.committed;
        Ok(ActionDone { navigated, ..done })
    }

    /// Waits until the document that was asked whether it may be left is gone. The answer stands
    /// whether or not the next one comes in time.
    async fn left(&self, committed: u64, deadline: Deadline) {
        let left = |state: &PageState| (state.navigations_committed > committed || state.closed).then_some(());
        let _ = self.wait(deadline.within(super::call::COMMIT_WAIT), left).await;
    }

    /// Forgets an open file chooser, unless it is to be accepted. Says whether there was one to forget.
    pub fn close_file_chooser(&self, accept: bool) -> bool {
        !accept && self.state().file_chooser.take().is_some()
    }
}

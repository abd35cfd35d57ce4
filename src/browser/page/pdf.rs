//! A page on paper, as PDF.

use serde_json::json;

use super::error::PageError;
use crate::browser::Page;
use crate::deadline::Deadline;

/// Names of paper with width and height in inches.
const PAPER: [(&str, f64, f64); 7] = [
    ("A3", 11.7, 16.54),
    ("A4", 8.27, 11.69),
    ("A5", 5.83, 8.27),
    ("Letter", 8.5, 11.0),
    ("Legal", 8.5, 14.0),
    ("Tabloid", 11.0, 17.0),
    ("Ledger", 17.0, 11.0),
];
/// The names alone.
pub const PAPER_NAMES: &[&str] = &{
    let mut names = [""; PAPER.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = PAPER[at].0;
        at += 1;
    }
    names
};

#[derive(Debug, Clone, Copy)]
pub struct PdfOptions<'a> {
    /// One of [`PAPER_NAMES`]; A4 where it is none.
    pub paper: &'a str,
    pub landscape: bool,
    /// Colours and pictures behind the text.
    pub background: bool,
}

impl Page {
    /// # Errors
    /// See [`PageError`].
    pub async fn pdf(&self, options: &PdfOptions<'_>, deadline: Deadline) -> Result<Vec<u8>, PageError> {
        let paper = PAPER.iter().find(|(name, ..)| *name == options.paper).unwrap_or(&PAPER[1]);
        let params = json!({
            "paperWidth": paper.1,
            "paperHeight": paper.2,
            "landscape": options.landscape,
            "printBackground": options.background,
        });
        let mark = self.begin(deadline).await?;
        let printing = self.command_for_bytes("Page.printToPDF", params, deadline);
        let pdf = self.race_undone(mark, deadline, printing).await?;
        if pdf.starts_with(b"%PDF-") { Ok(pdf) } else { Err(PageError::internal("the browser printed no PDF")) }
    }
}

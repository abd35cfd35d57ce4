//! A tool's reply, checked for what holds of every reply.

use pageledger::tools::TOOLS;
use pageledger::tools::tool::Tool;
use rmcp::model::{CallToolResult, ContentBlock};
use serde_json::Value;

use super::schema;

/// The tool called `name`.
///
/// # Panics
/// When there is none.
#[must_use]
pub fn tool(name: &str) -> &'static Tool {
    TOOLS.iter().find(|tool| tool.facts.name == name).expect("a tool of ours")
}

/// One reply.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The envelope.
    pub structured: Value,
    pub text: String,
    pub is_error: bool,
    /// Media type and base64 of each picture.
    pub images: Vec<(String, String)>,
    /// What the whole message took on the wire; 0 where nobody could measure it.
    pub wire_bytes: usize,
}

impl Reply {
    /// # Panics
    /// When the reply breaks a rule of all replies.
    #[must_use]
    pub fn new(result: CallToolResult, wire_bytes: usize) -> Self {
        let structured = result.structured_content.expect("every reply has a structured form");
        let mut texts = Vec::new();
        let mut images = Vec::new();
        for block in result.content {
            match block {
                ContentBlock::Text(text) => texts.push(text.text),
                ContentBlock::Image(image) => images.push((image.mime_type, image.data)),
                other => panic!("no reply holds {other:?}"),
            }
        }
        assert_eq!(texts.len(), 1, "one text block: {texts:?}");
        let text = texts.remove(0);
        let copy: Value = serde_json::from_str(&text).expect("the text block is JSON");
        assert_eq!(copy, structured, "the text block is the structured form");
        let is_error = result.is_error == Some(true);
        let reply = Self { structured, text, is_error, images, wire_bytes };
        reply.check_envelope();
        reply
    }

    fn check_envelope(&self) {
        let envelope = &self.structured;
        assert_eq!(self.is_error, envelope["status"] == "error", "isError says what status says: {envelope}");
        let operation = &envelope["operation"];
        for key in ["id", "tool", "started_at", "finished_at", "outcome", "retry"] {
            assert!(operation[key].is_string(), "operation.{key}: {envelope}");
        }
        assert!(operation["duration_ms"].is_number() && operation["artifacts"].is_array(), "{envelope}");
        if self.is_error {
            for key in ["error_type", "code", "message", "next_step"] {
                assert!(envelope[key].as_str().is_some_and(|text| !text.is_empty()), "{key}: {envelope}");
            }
            assert!(envelope["details"].is_object(), "{envelope}");
        } else {
            assert!(envelope.get("data").is_some(), "{envelope}");
        }
        // The contract's own test holds that what is published is this.
        let tool = tool(operation["tool"].as_str().unwrap_or_default());
        let published = Value::Object(tool.facts.returns.schema());
        let problems = schema::problems(&published, envelope);
        assert!(problems.is_empty(), "{} answers other than it says: {problems:?}", tool.facts.name);
        let missing = if self.is_error { Vec::new() } else { tool.facts.returns.missing(&envelope["data"]) };
        assert!(missing.is_empty(), "{} leaves out {missing:?}: {envelope}", tool.facts.name);
    }

    /// What the tool gave.
    ///
    /// # Panics
    /// When it failed.
    #[must_use]
    pub fn data(&self) -> &Value {
        assert!(!self.is_error, "the call failed: {}", self.structured);
        &self.structured["data"]
    }

    #[must_use]
    pub fn code(&self) -> &str {
        self.structured["code"].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn operation(&self, key: &str) -> &str {
        self.structured["operation"][key].as_str().unwrap_or_default()
    }

    #[must_use]
    pub fn operation_id(&self) -> &str {
        self.operation("id")
    }
}

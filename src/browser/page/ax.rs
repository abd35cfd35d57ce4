//! Accessibility nodes as Chromium sends them: everything optional, the rest passed over.

use serde::Deserialize;
use serde_json::Value;

use super::error::PageError;
use super::kit::KitError;
use crate::browser::chromium::envelope;
use crate::browser::{Page, SessionKey};
use crate::deadline::Deadline;

/// The answer of `Accessibility.getFullAXTree` and `queryAXTree`.
#[derive(Debug, Deserialize)]
pub(super) struct Nodes {
    #[serde(default)]
    pub(super) nodes: Vec<Node>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub(super) struct Node {
    pub(super) node_id: String,
    pub(super) ignored: bool,
    pub(super) role: Option<Scalar>,
    pub(super) name: Option<Scalar>,
    pub(super) value: Option<Scalar>,
    pub(super) properties: Vec<Property>,
    pub(super) child_ids: Vec<String>,
    #[serde(rename = "backendDOMNodeId")]
    pub(super) backend_node_id: Option<i64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Property {
    name: String,
    value: Scalar,
}

/// A typed value of the accessibility tree, the type left out.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct Scalar {
    value: Value,
}

impl Scalar {
    pub(super) fn text(&self) -> String {
        match &self.value {
            Value::String(text) => text.clone(),
            Value::Number(number) => number.to_string(),
            Value::Bool(flag) => flag.to_string(),
            _ => String::new(),
        }
    }

    pub(super) fn as_str(&self) -> &str {
        self.value.as_str().unwrap_or_default()
    }
}

impl Node {
    pub(super) fn property(&self, name: &str) -> Option<&Value> {
        self.properties.iter().find(|property| property.name == name).map(|property| &property.value.value)
    }

    /// Whether a property holds: `true`, or the text `true`.
    pub(super) fn flag(&self, name: &str) -> bool {
        matches!(self.property(name), Some(Value::Bool(true)))
            || matches!(self.property(name), Some(Value::String(text)) if text == "true")
    }

    pub(super) fn role(&self) -> &str {
        self.role.as_ref().map(Scalar::as_str).unwrap_or_default()
    }
}

impl Page {
    /// The nodes that a command of the accessibility domain answers with.
    pub(super) async fn ax_nodes(
        &self,
        session: &SessionKey,
        method: &str,
        params: Value,
        deadline: Deadline,
    ) -> Result<Vec<Node>, KitError> {
        let answer = match self.connection().raw_text(Some(session), method, params, deadline).await {
            Ok(answer) => answer,
            Err(error) => {
                let fault = self.fault(&error, method);
                let lost = matches!(fault, PageError::Internal { .. } | PageError::PageClosed) && self.free().is_ok();
                return Err(if lost { KitError::Lost } else { KitError::Page(fault) });
            }
        };
        match envelope::parse::<Nodes>(&answer) {
            Some(answer) => Ok(answer.nodes),
            None => Err(PageError::internal("the accessibility tree is not readable").into()),
        }
    }
}

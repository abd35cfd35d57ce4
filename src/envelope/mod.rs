//! The one shape of every reply, and the promise that none is larger than the operator allows.
//!
//! [`reply`] is the only way out: it settles outcome and retry, renders the envelope in its fixed
//! order of keys, and bounds what goes on the wire. [`budget`] counts, [`page`] ends lists early,
//! [`spill`] keeps large values as artifacts and leaves previews, [`TextForm`] says how the text reads.

pub mod budget;
mod compact;
mod operation;
pub mod page;
pub mod spill;

use serde_json::{Map, Value};
use storage::ids::ArtifactHandle;

use crate::fault::{Code, Fault};
use crate::limits::{FRAME_BYTES, RESULT_BYTES_MIN};
use budget::weight;
use operation::Told;
use page::Ends;
use spill::Spiller;

pub use compact::Reader;
pub use operation::{Operation, Outcome, Reference, Retry, outcome_of};
pub use page::{CursorAfter, List};
pub use spill::{Keep, Keeping};

/// What the text of a reply is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum TextForm {
    /// The envelope as JSON, beside the envelope itself.
    #[default]
    Json,
    /// Lines made for a model to read, and nothing beside them.
    Compact,
}

impl TextForm {
    pub const WORDS: &[&str] = &["json", "compact"];

    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "json" => Some(Self::Json),
            "compact" => Some(Self::Compact),
            _ => None,
        }
    }
}

/// What a tool found, in the contract's shape.
pub enum Data {
    /// A result that is one thing: an object, or an array where the contract says so.
    Value(Value),
    /// A result that may end early with a cursor.
    List(List),
}

/// A bounded reply, and what the log wants to know about it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The envelope.
    pub structured: Value,
    /// The same envelope as JSON text.
    pub text: String,
    pub is_error: bool,
    pub outcome: Outcome,
    pub retry: Retry,
    /// The fault that the caller sees, when there is one.
    pub code: Option<Code>,
    /// Size of the result's data as JSON, before bounding.
    pub data_bytes: u64,
    /// Artifacts that bounding made.
    pub kept: Vec<ArtifactHandle>,
}

impl Reply {
    /// The reply as lines for a model, when these take no more than the envelope would have: it is within
    /// the bound then.
    #[must_use]
    pub fn compact(&self, reader: Reader) -> String {
        let text = compact::render(&self.structured, reader);
        let costs = |text: &str| budget::json_bytes(&Value::from(text));
        // Characters that nobody sees may grow when they are shown.
        if costs(&text) <= weight(&self.structured) { text } else { self.text.clone() }
    }
}

/// Renders and bounds the reply to one call. The lone caller is dispatch.
///
/// `bytes_max` counts the whole reply on the wire; the least it can mean is the smallest bound that
/// the option allows.
pub async fn reply(
    instance: Option<&str>,
    operation: Operation,
    result: Result<Data, Fault>,
    bytes_max: usize,
    keep: &dyn Keep,
) -> Reply {
    let (outcome, retry) = outcome_of(result.is_ok(), operation.entered, operation.reads);
    let room = bytes_max.max(RESULT_BYTES_MIN) - FRAME_BYTES;
    let frame = Frame { instance, operation: &operation, outcome, retry, told: Told::Whole };
    match result {
        Ok(data) => deliver(frame, data, room, keep).await,
        Err(fault) => refuse(frame, &fault, room),
    }
}

/// The fixed part of one envelope.
#[derive(Clone, Copy)]
struct Frame<'a> {
    instance: Option<&'a str>,
    operation: &'a Operation,
    outcome: Outcome,
    retry: Retry,
    told: Told,
}

impl Frame<'_> {
    fn success(self, data: Value) -> Value {
        let mut out = Map::new();
        out.insert("status".into(), "success".into());
        out.insert("instance".into(), self.instance());
        out.insert("data".into(), data);
        out.insert("operation".into(), self.operation());
        Value::Object(out)
    }

    fn failure(self, code: Code, details: Map<String, Value>) -> Value {
        let facts = code.facts();
        let mut out = Map::new();
        out.insert("status".into(), "error".into());
        out.insert("instance".into(), self.instance());
        out.insert("error_type".into(), facts.error_type.as_str().into());
        out.insert("code".into(), facts.name.into());
        out.insert("message".into(), facts.message.into());
        out.insert("next_step".into(), facts.next_step.into());
        out.insert("details".into(), Value::Object(details));
        out.insert("operation".into(), self.operation());
        Value::Object(out)
    }

    fn instance(self) -> Value {
        self.instance.filter(|_| self.told == Told::Whole).map_or(Value::Null, Value::from)
    }

    fn operation(self) -> Value {
        self.operation.to_json(self.outcome, self.retry, self.told)
    }

    /// Tells less until the fixed part leaves half of the room to the data.
    fn leaving_half(mut self, room: usize) -> Self {
        for told in [Told::Whole, Told::WithoutReferences, Told::WithoutTool] {
            self.told = told;
            if weight(&self.success(Value::Null)) <= room / 2 {
                break;
            }
        }
        self
    }

    fn reply(self, structured: Value, code: Option<Code>) -> Reply {
        Reply {
            text: structured.to_string(),
            structured,
            is_error: code.is_some(),
            outcome: self.outcome,
            retry: self.retry,
            code,
            data_bytes: 0,
            kept: Vec::new(),
        }
    }
}

/// The reply to a call that succeeded: whole when it fits, which is the rule; else as much as fits.
async fn deliver(frame: Frame<'_>, data: Data, room: usize, keep: &dyn Keep) -> Reply {
    let (data, ends) = match data {
        Data::Value(value) => (value, None),
        Data::List(list) => {
            let (value, ends) = list.into_parts();
            (value, Some(ends))
        }
    };
    let data_bytes = budget::json_bytes(&data) as u64;
    let mut reply = frame.reply(frame.success(data), None);
    if budget::weight_of_json(&reply.text) > room {
        let data = reply.structured["data"].take();
        let mut spiller = Spiller::new(keep);
        reply = cut(frame.leaving_half(room), &data, ends.as_ref(), room, &mut spiller).await;
        reply.kept = spiller.kept;
        refer(&mut reply, room);
    }
    reply.data_bytes = data_bytes;
    reply
}

/// Names what bounding kept among the operation's artifacts, all of it or none: `data` has each handle
/// beside what it stands for.
fn refer(reply: &mut Reply, room: usize) {
    let mut structured = reply.structured.clone();
    let operation = &mut structured["operation"];
    let Some(artifacts) = operation["artifacts"].as_array_mut() else { return };
    artifacts.extend(reply.kept.iter().map(|handle| Reference::Artifact(handle.clone()).to_json()));
    if !reply.kept.is_empty() && operation.get("references_omitted").is_none() && weight(&structured) <= room {
        reply.text = structured.to_string();
        reply.structured = structured;
    }
}

/// Ends lists early, spills large values, and when neither is enough keeps the whole and says so.
async fn cut(frame: Frame<'_>, data: &Value, ends: Option<&Ends>, room: usize, spiller: &mut Spiller<'_>) -> Reply {
    let fixed = weight(&frame.success(Value::Null)) - weight(&Value::Null);
    let budget = room.saturating_sub(fixed);
    let smaller = match ends {
        Some(ends) => page::fit(data, ends, budget, spiller).await,
        None if weight(data) <= budget => Some(data.clone()),
        None => spiller.shrink(data, budget).await,
    };
    let structured = smaller.map(|data| frame.success(data)).filter(|structured| weight(structured) <= room);
    if let Some(structured) = structured {
        return frame.reply(structured, None);
    }
    let mut fault =
        Fault::new(Code::ResultTooLarge).with("size", budget::json_bytes(data)).with("limit", room + FRAME_BYTES);
    if let Some(handle) = spiller.keep_whole("data", data).await {
        fault = fault.with("handle", handle.as_str());
    }
    // The call was done; what is left to do is to look, not to repeat it.
    let frame = Frame { retry: Retry::InspectState, told: Told::Whole, ..frame };
    refuse(frame, &fault, room)
}

/// The reply to a call that failed. References go before details lose their last entry.
fn refuse(mut frame: Frame<'_>, fault: &Fault, room: usize) -> Reply {
    let code = fault.shown_code();
    for told in [Told::Whole, Told::WithoutReferences, Told::WithoutTool] {
        frame.told = told;
        let mut details = fault.details().clone();
        loop {
            let structured = frame.failure(code, details.clone());
            if weight(&structured) <= room {
                return frame.reply(structured, Some(code));
            }
            if !shorten(&mut details) {
                break;
            }
        }
    }
    // Without details what is left is of fixed size, and `limits` holds that it fits.
    frame.reply(frame.failure(code, Map::new()), Some(code))
}

/// Takes the last entry off the longest list that has more than one.
fn shorten(details: &mut Map<String, Value>) -> bool {
    let lists = details.values_mut().filter_map(Value::as_array_mut).filter(|list| list.len() > 1);
    match lists.max_by_key(|list| list.len()) {
        Some(list) => list.pop().is_some(),
        None => false,
    }
}

#[cfg(test)]
mod tests;

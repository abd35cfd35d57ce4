//! The one shape of every reply, and the promise that none is larger than the operator allows.
//!
//! [`reply`] is the only way out: it settles outcome and retry, renders the envelope in its fixed
//! order of keys, and bounds what goes on the wire. [`form`] writes it and knows what that costs, [`page`]
//! ends lists and long texts early, [`spill`] keeps large values as artifacts and leaves previews.

mod bound;
pub mod budget;
mod compact;
pub mod form;
mod operation;
pub mod page;
pub mod spill;

use serde_json::{Map, Value};
use storage::ids::ArtifactHandle;

use crate::fault::{Code, Fault};
use crate::limits::{FRAME_BYTES, RESULT_BYTES_MIN};
use bound::Bound;
use operation::Told;
use page::Ends;
use spill::{Shrinking, Spiller};

pub use compact::Reader;
pub use form::{Form, TextForm};
pub use operation::{Operation, Outcome, Reference, Retry, outcome_of};
pub use page::{CursorAfter, List, Piece};
pub use spill::{Keep, Keeping};

/// What a tool found, in the contract's shape.
pub enum Data {
    /// A result that is one thing: an object, or an array where the contract says so.
    Value(Value),
    /// A result that may end early with a cursor.
    List(List),
    /// A result with a long text, of which a shorter piece may be given.
    Piece(Piece),
}

/// A bounded reply, and what the log wants to know about it.
#[derive(Debug, Clone)]
pub struct Reply {
    /// The envelope.
    pub structured: Value,
    /// The same envelope as text, in the form that was asked for.
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

/// Renders and bounds the reply to one call. The lone caller is dispatch.
///
/// `bytes_max` counts the whole reply on the wire, in the form it is sent in; the least it can mean is the
/// smallest bound that the option allows.
pub async fn reply(
    instance: Option<&str>,
    operation: Operation,
    result: Result<Data, Fault>,
    form: Form,
    bytes_max: usize,
    keep: &dyn Keep,
) -> Reply {
    let (outcome, retry) = outcome_of(result.is_ok(), operation.entered, operation.reads);
    let room = bytes_max.max(RESULT_BYTES_MIN) - FRAME_BYTES;
    let frame = Frame { instance, operation: &operation, outcome, retry, told: Told::Whole };
    let bound = Bound { frame, form, room };
    match result {
        Ok(data) => deliver(bound, data, keep).await,
        Err(fault) => refuse(bound, &fault),
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

    fn reply(self, structured: Value, text: String, code: Option<Code>) -> Reply {
        Reply {
            text,
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

impl Bound<'_> {
    /// Tells less until the fixed part leaves half of the room to the data.
    fn leaving_half(mut self) -> Self {
        for told in [Told::Whole, Told::WithoutReferences, Told::WithoutTool] {
            self.frame.told = told;
            if self.form.cost(&self.frame.success(Value::Null)) <= self.room / 2 {
                break;
            }
        }
        self
    }
}

/// The reply to a call that succeeded: whole when it fits, which is the rule; else as much as fits.
async fn deliver(bound: Bound<'_>, data: Data, keep: &dyn Keep) -> Reply {
    let (data, cut) = match data {
        Data::Value(value) => (value, Cut::Previews),
        Data::Piece(piece) => ((piece.beginning)(piece.length), Cut::Piece(piece)),
        Data::List(list) => {
            let (value, ends) = list.into_parts();
            (value, Cut::List(ends))
        }
    };
    let data_bytes = budget::json_bytes(&data) as u64;
    let mut structured = bound.frame.success(data);
    let (text, cost) = bound.form.write(&structured);
    let mut reply = if cost <= bound.room {
        bound.frame.reply(structured, text, None)
    } else {
        let data = structured["data"].take();
        let mut spiller = Spiller::new(keep);
        let mut reply = smaller(bound.leaving_half(), &data, &cut, &mut spiller).await;
        reply.kept = spiller.kept;
        refer(&mut reply, bound);
        reply
    };
    reply.data_bytes = data_bytes;
    reply
}

/// How a result is cut that is too large.
enum Cut {
    Previews,
    Piece(Piece),
    List(Ends),
}

/// Names what bounding kept among the operation's artifacts, all of it or none: `data` has each handle
/// beside what it stands for.
fn refer(reply: &mut Reply, bound: Bound<'_>) {
    let mut structured = reply.structured.clone();
    let operation = &mut structured["operation"];
    let Some(artifacts) = operation["artifacts"].as_array_mut() else { return };
    artifacts.extend(reply.kept.iter().map(|handle| Reference::Artifact(handle.clone()).to_json()));
    if !reply.kept.is_empty() && operation.get("references_omitted").is_none() {
        let (text, cost) = bound.form.write(&structured);
        if cost <= bound.room {
            (reply.text, reply.structured) = (text, structured);
        }
    }
}

/// Ends early, spills large values, and when neither is enough keeps the whole and says so.
async fn smaller(bound: Bound<'_>, data: &Value, cut: &Cut, spiller: &mut Spiller<'_>) -> Reply {
    // Telling less of the call may have been enough.
    let mut sealed = bound.seal(data.clone());
    if sealed.is_none() {
        sealed = match cut {
            Cut::List(ends) => page::fit(data, ends, bound, spiller).await,
            Cut::Piece(piece) => page::longest(piece, bound),
            Cut::Previews => None,
        };
    }
    if sealed.is_none() && !matches!(cut, Cut::List(_)) {
        let small = spiller.within(Shrinking::Previews, data, bound, &|small| small).await;
        sealed = small.and_then(|small| bound.seal(small));
    }
    if let Some(structured) = sealed {
        let text = bound.form.write(&structured).0;
        return bound.frame.reply(structured, text, None);
    }
    let mut fault =
        Fault::new(Code::ResultTooLarge).with("size", budget::json_bytes(data)).with("limit", bound.room + FRAME_BYTES);
    if let Some(handle) = spiller.keep_whole("data", data).await {
        fault = fault.with("handle", handle.as_str());
    }
    // The call was done; what is left to do is to look, not to repeat it.
    let frame = Frame { retry: Retry::InspectState, told: Told::Whole, ..bound.frame };
    refuse(Bound { frame, ..bound }, &fault)
}

/// The reply to a call that failed. References go before details lose their last entry.
fn refuse(bound: Bound<'_>, fault: &Fault) -> Reply {
    let code = fault.shown_code();
    let mut frame = bound.frame;
    for told in [Told::Whole, Told::WithoutReferences, Told::WithoutTool] {
        frame.told = told;
        let mut details = fault.details().clone();
        loop {
            let structured = frame.failure(code, details.clone());
            let (text, cost) = bound.form.write(&structured);
            if cost <= bound.room {
                return frame.reply(structured, text, Some(code));
            }
            if !shorten(&mut details) {
                break;
            }
        }
    }
    // Without details what is left is of fixed size, and `limits` holds that it fits.
    let structured = frame.failure(code, Map::new());
    let text = bound.form.write(&structured).0;
    frame.reply(structured, text, Some(code))
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

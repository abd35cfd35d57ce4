//! Lists, one line an item: what the lines share is said once, above them.

use serde_json::{Map, Value};

use super::text::{one_line, pairs, word};

/// Calls shown of a message that does not show them itself.
const STACK_FRAMES_SHOWN: usize = 5;

/// How the items of a list are written.
pub(super) struct Shape {
    /// What stands at the beginning of a line, in this order.
    pub lead: &'static [&'static str],
    /// What several lines share: said on a line that begins with `--`, for the lines below it.
    shared: &'static [&'static str],
    /// What other tools tell of one item, or the item's other members already do.
    left_out: &'static [&'static str],
    /// The text at the end of a line.
    last: Option<&'static str>,
    /// What stands before that text, where it could be taken for what comes before it.
    before_last: &'static str,
}

/// A list that nothing particular is known of.
pub(super) const PLAIN: Shape = Shape { lead: &[], shared: &[], left_out: &[], last: None, before_last: "" };

static MESSAGES: Shape = Shape {
    lead: &["seq", "level"],
    shared: &["tab_id", "operation_id"],
    left_out: &["timestamp", "location", "type", "stack"],
    last: Some("text"),
    before_last: "| ",
};
static REQUESTS: Shape = Shape {
    lead: &["request_id", "method", "status", "resource_type"],
    shared: &["tab_id", "operation_id"],
    left_out: &["seq", "timestamp", "mime_type", "encoded_bytes", "decoded_bytes", "duration_ms", "protocol", "state"],
    last: Some("url"),
    before_last: "",
};
static EVENTS: Shape = Shape {
    lead: &["seq", "recorded_at", "kind"],
    shared: &["page_id", "operation_id"],
    left_out: &["event_id", "browser_time", "version", "data"],
    ..PLAIN
};
static DOWNLOADS: Shape =
    Shape { lead: &["download_id"], shared: &["tab_id", "operation_id"], left_out: &["seq", "timestamp"], ..PLAIN };
static MATCHES: Shape = Shape { lead: &["selector"], ..PLAIN };

impl Shape {
    /// That of the list called `key`, when there is one.
    pub(super) fn of(key: &str) -> Option<&'static Shape> {
        match key {
            "messages" => Some(&MESSAGES),
            "requests" => Some(&REQUESTS),
            "events" => Some(&EVENTS),
            "downloads" => Some(&DOWNLOADS),
            "matches" => Some(&MATCHES),
            _ => None,
        }
    }

    fn names(&self, key: &str) -> bool {
        [self.lead, self.shared, self.left_out].iter().any(|keys| keys.contains(&key)) || self.last == Some(key)
    }
}

/// What is said once for all lines: beginnings that most of them have.
#[derive(Default)]
struct Common {
    origin: String,
    ids: String,
    date: String,
}

pub(super) fn put(out: &mut String, name: &str, items: &[Value], shape: &Shape) {
    let common = Common::of(items);
    out.push_str(&format!("{} {name}", items.len()));
    for (what, beginning) in
        [("addresses begin with", &common.origin), ("ids begin with", &common.ids), ("times begin with", &common.date)]
    {
        if !beginning.is_empty() {
            out.push_str(&format!("; {what} {beginning}"));
        }
    }
    out.push('\n');
    let mut shared_before = String::new();
    let mut place_before = String::new();
    for item in items {
        let Some(members) = item.as_object() else {
            out.push_str(&format!("- {}\n", word(item)));
            continue;
        };
        let shared = shared(members, shape);
        if shared != shared_before {
            out.push_str(&format!("-- {shared}\n"));
            shared_before = shared;
        }
        line(out, members, shape, &common, &mut place_before);
    }
}

fn shared(members: &Map<String, Value>, shape: &Shape) -> String {
    let pairs = shape.shared.iter().filter_map(|key| Some(format!("{key}={}", word(members.get(*key)?))));
    pairs.collect::<Vec<_>>().join(" ")
}

fn line(out: &mut String, members: &Map<String, Value>, shape: &Shape, common: &Common, place_before: &mut String) {
    let mut parts: Vec<String> = Vec::new();
    if shape.lead.is_empty() {
        parts.push("-".to_owned());
    }
    parts.extend(shape.lead.iter().filter_map(|key| common.lead(key, members)));
    let place = members.get("location").map(|place| common.place(place)).unwrap_or_default();
    if shape.left_out.contains(&"location") && !place.is_empty() && place != *place_before {
        parts.push(format!("@{place}"));
        *place_before = place;
    }
    if let Some(stack) = members.get("stack").filter(|_| shape.left_out.contains(&"stack")) {
        parts.push(common.stack(stack, members));
    }
    let others = members.iter().filter(|(key, value)| {
        // What has ended as it should is not said.
        let told = !shape.names(key) || *key == "state" && *value != "finished";
        told && !value.is_null()
    });
    parts.extend(others.map(|(key, value)| format!("{}={}", one_line(key), common.value(key, value))));
    if shape.left_out.contains(&"data")
        && let Some(data) = members.get("data")
    {
        parts.push(pairs(data, &[]));
    }
    if let Some(last) = shape.last.and_then(|key| members.get(key)) {
        let text = last.as_str().map_or_else(|| last.to_string(), |text| common.shortened(text).to_owned());
        parts.push(format!("{}{}", shape.before_last, one_line(&text)));
    }
    parts.retain(|part| !part.is_empty());
    out.push_str(&parts.join(" "));
    out.push('\n');
}

impl Common {
    fn of(items: &[Value]) -> Self {
        let texts = |key: &'static str| items.iter().filter_map(move |item| item[key].as_str());
        let urls = texts("url").chain(items.iter().filter_map(|item| item["location"]["url"].as_str()));
        let origins = urls.filter_map(origin_of);
        let ids = texts("request_id").filter_map(|id| Some(&id[..=id.rfind('-')?]));
        let dates = texts("recorded_at").filter_map(|time| time.get(..=10));
        Self { origin: most_common(origins), ids: of_all(ids, items.len()), date: of_all(dates, items.len()) }
    }

    /// A fact at the beginning of a line, without its name; what is usual is not said.
    fn lead(&self, key: &str, members: &Map<String, Value>) -> Option<String> {
        let value = members.get(key).filter(|value| !value.is_null())?;
        let text = value.as_str();
        match (key, text) {
            ("level", Some(level)) => {
                let kind = members.get("type").and_then(Value::as_str).unwrap_or_default();
                let usual = matches!((level, kind), ("info", "log"));
                let same = kind == level || kind == "log";
                let told = if same || kind.is_empty() { level.to_owned() } else { format!("{level}/{kind}") };
                (!usual).then(|| one_line(&told))
            }
            ("method", Some("GET")) => None,
            ("request_id", Some(id)) => Some(one_line(id.strip_prefix(self.ids.as_str()).unwrap_or(id))),
            ("recorded_at", Some(time)) => Some(time.strip_prefix(self.date.as_str()).unwrap_or(time).to_owned()),
            _ => Some(word(value)),
        }
    }

    fn value(&self, key: &str, value: &Value) -> String {
        match value.as_str() {
            Some(url) if key == "url" => word(&self.shortened(url).into()),
            Some(id) if key == "request_id" => one_line(id.strip_prefix(self.ids.as_str()).unwrap_or(id)),
            _ => word(value),
        }
    }

    /// `path:line:column` of a script.
    fn place(&self, location: &Value) -> String {
        let url = self.shortened(location["url"].as_str().unwrap_or_default());
        let numbers = ["line", "column"].iter().filter_map(|key| location[*key].as_u64());
        let place = numbers.fold(url.to_owned(), |place, number| format!("{place}:{number}"));
        word(&place.into())
    }

    /// Who called whom, unless the text says so.
    fn stack(&self, frames: &Value, members: &Map<String, Value>) -> String {
        let text = members.get("text").and_then(Value::as_str).unwrap_or_default();
        if text.contains("\n    at ") {
            return String::new();
        }
        let frames = frames.as_array().into_iter().flatten().take(STACK_FRAMES_SHOWN);
        let calls = frames.map(|frame| {
            let function = frame["function"].as_str().filter(|name| !name.is_empty()).unwrap_or("(anonymous)");
            word(&format!("{function}@{}", self.place(frame)).into())
        });
        let calls: Vec<String> = calls.collect();
        if calls.is_empty() { String::new() } else { format!("stack={}", calls.join("<")) }
    }

    /// An address below the common origin as its path.
    fn shortened<'a>(&self, url: &'a str) -> &'a str {
        let path = url.strip_prefix(self.origin.as_str()).filter(|path| path.starts_with('/'));
        path.filter(|_| !self.origin.is_empty()).unwrap_or(url)
    }
}

fn origin_of(url: &str) -> Option<&str> {
    let host = url.find("://")? + 3;
    let length = url[host..].find('/')?;
    let plain = |c: char| c.is_ascii_graphic() && !matches!(c, ';' | '"' | '\\');
    Some(&url[..host + length]).filter(|origin| origin.chars().all(plain))
}

/// The one that is met most often, when it is worth a mention.
fn most_common<'a>(texts: impl Iterator<Item = &'a str>) -> String {
    let mut sorted: Vec<&str> = texts.collect();
    sorted.sort_unstable();
    let longest = sorted.chunk_by(|one, other| one == other).max_by_key(|run| run.len());
    longest.filter(|run| run.len() > 1).map(|run| run[0].to_owned()).unwrap_or_default()
}

/// The text that all items have alike, of more than one.
fn of_all<'a>(texts: impl Iterator<Item = &'a str>, count: usize) -> String {
    let texts: Vec<&str> = texts.collect();
    let alike = texts.len() == count && count > 1 && texts.iter().all(|text| *text == texts[0]);
    if alike { texts[0].to_owned() } else { String::new() }
}

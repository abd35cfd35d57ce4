//! Events that are known by three numbers: whoever finds one can tell whether it is the one written.

use std::sync::LazyLock;

use storage::event::catalog::{ConsoleMessage, NetworkRequest};
use storage::event::{Clean, Context, Draft, EventView, Json, Level, Symbol, ValueRef};

use crate::support::dice::mix;

/// Which event of which writer in which run of the writing program.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Origin {
    pub run: u64,
    pub writer: u64,
    pub number: u64,
}

/// The longest filler; one event in 64 has it.
const FILLER_BYTES_MAX: usize = 8 * 1024;

/// Text that compresses about as well as what pages say.
static FILLER: LazyLock<String> = LazyLock::new(|| {
    let words = (0..).map(|n| format!("{:x} ", (mix(n) % 0xfffff) >> (mix(n) % 13)));
    let mut filler = String::new();
    for word in words {
        filler.push_str(&word);
        if filler.len() > 2 * FILLER_BYTES_MAX {
            return filler;
        }
    }
    filler
});

impl Origin {
    /// The event itself, the same each time.
    #[must_use]
    pub fn draft(self) -> Draft {
        let dice = mix(mix(self.run) ^ mix(self.writer + 1_000_000) ^ self.number);
        let length = if dice.is_multiple_of(64) { FILLER_BYTES_MAX } else { 40 + (dice >> 8) as usize % 500 };
        let from = (dice >> 20) as usize % FILLER_BYTES_MAX;
        let text = format!("r{} w{} n{} {}", self.run, self.writer, self.number, &FILLER[from..from + length]);
        let context = Context {
            session_id: Some(format!("w-{}", self.writer).as_str().into()),
            owner: Some("local".into()),
            page_id: Some("t-1".into()),
            ..Context::default()
        };
        if dice % 4 == 1 {
            return Draft::new(&context, &request(text));
        }
        let level = if dice % 16 == 2 { Level::Error } else { Level::Info };
        Draft::new(&context, &message(level, text))
    }

    /// Which event this is; `None` for those that no writer made.
    #[must_use]
    pub fn of(event: &EventView<'_>) -> Option<Self> {
        let text = event.get("text").or_else(|| event.get("url")).and_then(ValueRef::as_str)?;
        let mut words = text.split(' ');
        let mut number = |mark: char| words.next()?.strip_prefix(mark)?.parse().ok();
        Some(Self { run: number('r')?, writer: number('w')?, number: number('n')? })
    }
}

fn message(level: Level, text: String) -> ConsoleMessage {
    ConsoleMessage {
        level,
        r#type: Symbol::fold("log"),
        text: Clean::redacted(text),
        url: None,
        line: None,
        column: None,
        stack: None,
        text_bytes: None,
        text_artifact: None,
        truncated_fields: None,
    }
}

fn request(url: String) -> NetworkRequest {
    NetworkRequest {
        url: Clean::redacted(url),
        method: Clean::fixed("GET"),
        resource_type: Symbol::fold("fetch"),
        headers: Json::redacted(&serde_json::json!({})),
        initiator: None,
        priority: None,
        body_bytes: None,
        body: None,
        body_artifact: None,
        redirects: None,
        truncated_fields: None,
    }
}

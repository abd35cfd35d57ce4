//! The closed sets that label values are taken from.
//!
//! What must stay true: a value that is in no set becomes `other`, so no page, agent or browser can
//! add a series. Tools and fault codes are handed in at start, because they belong to the program.

use storage::event::{KINDS, Level, Symbol};

/// What is not in a set.
pub const OTHER: &str = "other";
/// Fault code of a call that did not fail.
pub const NONE: &str = "none";
/// Tools and fault codes beyond this many are counted as `other`.
pub const NAMES_MAX: usize = 256;

macro_rules! label_names {
    ($($name:ident $text:literal [$($value:literal),*];)*) => {
        /// The labels by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum LabelName { $($name,)* }

        impl LabelName {
            pub const ALL: &'static [LabelName] = &[$(LabelName::$name,)*];

            /// As it stands in the exposition.
            #[must_use]
            pub fn as_str(self) -> &'static str {
                match self { $(LabelName::$name => $text,)* }
            }

            /// Values known here; the rest come from the catalogue of events or from the program.
            fn fixed(self) -> &'static [&'static str] {
                match self { $(LabelName::$name => &[$($value),*],)* }
            }
        }
    };
}

label_names! {
    Kind "kind" [];
    Tool "tool" [];
    Code "code" ["none"];
    Version "version" [];
    Level "level" [];
    Outcome "outcome" ["completed", "not_started", "unknown"];
    Phase "phase" ["queued", "running"];
    GapReason "reason" ["queue_full", "too_large", "undecodable", "browser_lost", "disk_full"];
    RemovalReason "reason" ["age", "bytes", "erased"];
    Recovery "what" ["torn_tail", "index_rebuilt", "leftover_removed", "checkpoint_torn"];
    CloseReason "reason" ["requested", "shutdown", "crashed", "launch_failed", "interrupted", "lease_expired"];
    CrashReason "reason" ["exited", "killed", "disconnected", "interrupted"];
    Warning "warning" ["sandbox_off", "profile_left_behind", "message_undecodable", "log_over_quota"];
    ResourceType "resource_type" [
        "document", "stylesheet", "image", "media", "font", "script", "texttrack", "xhr", "fetch", "prefetch",
        "eventsource", "websocket", "manifest", "signedexchange", "ping", "cspviolationreport", "preflight"
    ];
    StatusClass "status_class" ["1xx", "2xx", "3xx", "4xx", "5xx"];
    Failure "cause" ["canceled", "blocked", "cors", "error"];
    Direction "direction" ["sent", "received"];
    WorkerType "worker_type" ["worker", "shared_worker", "service_worker"];
    DialogType "dialog_type" ["alert", "confirm", "prompt", "beforeunload"];
    DownloadFailure "reason"
        ["canceled", "too_large", "quota", "disk_low", "unreadable", "session_closed", "browser_gone"];
    Purpose "purpose" ["result", "body", "console_text", "screenshot", "pdf", "download", "export"];
    Rule "rule" ["scheme", "path", "launch_argument"];
    Format "format" ["parquet", "ndjson"];
    ExportResult "result" ["ok", "failed"];
}

/// The values of one label, `other` last.
#[derive(Debug, Clone)]
pub(crate) struct Set {
    /// Sorted, so that a look-up is a binary search; without `other`.
    values: Vec<Box<str>>,
}

impl Set {
    fn new<'a>(values: impl Iterator<Item = &'a str>) -> Self {
        let mut values: Vec<Box<str>> = values.filter(|value| *value != OTHER).map(Box::from).collect();
        values.sort_unstable();
        values.dedup();
        Self { values }
    }

    /// How many values there are, `other` included.
    pub(crate) fn len(&self) -> usize {
        self.values.len() + 1
    }

    /// Position of `text`, or of `other`.
    pub(crate) fn position(&self, text: &str) -> usize {
        self.values.binary_search_by(|value| (**value).cmp(text)).unwrap_or(self.values.len())
    }

    pub(crate) fn value(&self, position: usize) -> &str {
        self.values.get(position).map_or(OTHER, |value| value)
    }
}

/// All sets in force, made once at start.
#[derive(Debug, Clone)]
pub struct Labels {
    sets: Vec<Set>,
}

impl Labels {
    /// `tools` and `codes` are the program's own lists; both are folded as events fold them.
    #[must_use]
    pub fn new(tools: &[&str], codes: &[&str]) -> Self {
        let folded =
            |names: &[&str]| -> Vec<Symbol> { names.iter().take(NAMES_MAX).map(|name| Symbol::fold(name)).collect() };
        let (tools, codes) = (folded(tools), folded(codes));
        let sets = LabelName::ALL
            .iter()
            .map(|label| match label {
                LabelName::Kind => Set::new(KINDS.iter().map(|facts| facts.name)),
                LabelName::Tool => Set::new(tools.iter().map(Symbol::as_str)),
                LabelName::Code => Set::new(codes.iter().map(Symbol::as_str).chain([NONE])),
                LabelName::Level => Set::new(Level::ALL.iter().map(|level| level.as_str())),
                LabelName::Version => Set::new([env!("CARGO_PKG_VERSION")].into_iter()),
                fixed => Set::new(fixed.fixed().iter().copied()),
            })
            .collect();
        Self { sets }
    }

    pub(crate) fn set(&self, label: LabelName) -> &Set {
        // `sets` is made from `LabelName::ALL`, in the order of the variants.
        &self.sets[label as usize]
    }
}

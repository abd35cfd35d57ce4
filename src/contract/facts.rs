//! The vocabulary of the tool table, and the parameters that many tools share.

use super::result::Returns;

/// Group of tools that an operator can think of, and switch off, as one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Pack {
    Lifecycle,
    Introspection,
    Navigation,
    Tabs,
    Interaction,
    Inspection,
    Waits,
    Dialogs,
    State,
    Files,
    Auth,
    Attention,
    Vault,
    Instances,
    Evidence,
}

/// Stands for the tools that most work needs, where packs are named.
pub const CORE: &str = "core";
/// Stands for every pack.
pub const EVERYTHING: &str = "all";
/// What may be named to switch packs on.
pub const PACKS_ON: &[&str] = &[
    EVERYTHING,
    CORE,
    "lifecycle",
    "introspection",
    "navigation",
    "tabs",
    "interaction",
    "inspection",
    "waits",
    "dialogs",
    "state",
    "files",
    "auth",
    "attention",
    "vault",
    "instances",
    "evidence",
];
/// What may be named to switch packs off.
pub const PACKS_OFF: &[&str] = PACKS_ON.split_at(2).1;

impl Pack {
    /// In the order in which their tools are listed.
    pub const ALL: [Pack; 15] = [
        Pack::Lifecycle,
        Pack::Introspection,
        Pack::Navigation,
        Pack::Tabs,
        Pack::Interaction,
        Pack::Inspection,
        Pack::Waits,
        Pack::Dialogs,
        Pack::State,
        Pack::Files,
        Pack::Auth,
        Pack::Attention,
        Pack::Vault,
        Pack::Instances,
        Pack::Evidence,
    ];

    /// The name that options use.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        PACKS_OFF[self as usize]
    }
}

/// What a call may do to the world; MCP's four hints are computed from it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Effect {
    pub read_only: bool,
    pub destructive: bool,
    pub idempotent: bool,
    pub open_world: bool,
}

impl Effect {
    /// Reads state; repeating it changes nothing.
    pub const READ: Self = Self::of(true, false, true, false);
    /// Acts on pages, and through them on the world.
    pub const ACT: Self = Self::of(false, false, false, true);
    /// Acts, but twice is as good as once.
    pub const ACT_IDEMPOTENT: Self = Self::of(false, false, true, true);
    /// Changes only the session's own state.
    pub const SET: Self = Self::of(false, false, true, false);
    /// Ends something for good.
    pub const END: Self = Self::of(false, true, true, false);

    const fn of(read_only: bool, destructive: bool, idempotent: bool, open_world: bool) -> Self {
        Self { read_only, destructive, idempotent, open_world }
    }
}

/// Where a call runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lane {
    /// In its session's lane, in order with the session's other calls.
    Session,
    /// Beside the lanes, on a live session: dialogs must be answerable while a call waits on one.
    Beside,
    /// Beside the lanes, without a live session: evidence and health never wait for a browser.
    Free,
}

/// Everything about a tool but what it does.
#[derive(Debug)]
pub struct ToolFacts {
    pub name: &'static str,
    pub title: &'static str,
    /// Shown to models; short, since every client pays for it in every conversation.
    pub text: &'static str,
    pub pack: Pack,
    pub effect: Effect,
    pub lane: Lane,
    pub parameters: &'static [Parameter],
    pub returns: Returns,
}

/// One argument of a tool.
#[derive(Debug, Clone, Copy)]
pub struct Parameter {
    pub name: &'static str,
    pub shape: Shape,
    pub required: bool,
    pub default: Option<Scalar>,
    /// Empty where the name says it all.
    pub text: &'static str,
    /// What a person might type: may be a password, so its length alone goes on record.
    pub typed: bool,
}

/// A default value.
#[derive(Debug, Clone, Copy)]
pub enum Scalar {
    Text(&'static str),
    Integer(u64),
    Flag(bool),
}

/// What values an argument may take.
#[derive(Debug, Clone, Copy)]
pub enum Shape {
    /// Length bounds in characters.
    Text {
        length_min: usize,
        length_max: usize,
    },
    /// An identifier or name: not empty, at most [`NAME_LENGTH_MAX`] long.
    Name,
    /// A name by the slug grammar of the contract.
    Slug,
    Integer {
        min: u64,
        max: u64,
    },
    Number {
        min: Option<f64>,
    },
    Flag,
    Choice(&'static [&'static str]),
    /// An array of choices.
    Choices(&'static [&'static str]),
    /// An array of texts.
    Texts {
        items_min: usize,
        items_max: usize,
    },
    /// An object; an open one takes any further keys.
    Record {
        fields: &'static [Parameter],
        open: bool,
    },
    /// An object that another tool's schema spells out: once is enough for every reader.
    Likewise {
        fields: &'static [Parameter],
        of: &'static str,
    },
    /// What an earlier reply gave, to be given back as it is.
    Handle,
    /// An array of objects.
    Records {
        items_min: usize,
        items_max: usize,
        fields: &'static [Parameter],
        open: bool,
    },
    /// Whatever the caller likes.
    Any,
    /// What a form's field takes: a text, a flag, or several texts.
    FieldValue,
    /// A text, or an object in its place.
    TextOrRecord {
        fields: &'static [Parameter],
    },
    /// A flag, or one of these words in its place.
    FlagOrChoice(&'static [&'static str]),
    /// A flag, or a number in its place.
    FlagOrNumber,
    /// An array of so many whole numbers of at least 1.
    Integers {
        items: usize,
    },
}

/// The longest text argument without a bound of its own, in characters.
pub const TEXT_LENGTH_MAX: usize = 1_000_000;
/// The longest selector, in characters.
pub const SELECTOR_LENGTH_MAX: usize = 8_192;
/// The longest identifier or name, in characters.
pub const NAME_LENGTH_MAX: usize = 256;
/// The longest URL, in characters: Chromium's own limit.
pub const URL_LENGTH_MAX: usize = 2_097_152;
/// The slug grammar of the contract.
pub const SLUG_PATTERN: &str = "^[a-z][a-z0-9-]{1,31}$";
/// The largest whole number every JSON reader keeps exact; stands for "no bound of its own".
pub const INTEGER_MAX: u64 = 9_007_199_254_740_991;

impl Parameter {
    #[must_use]
    pub const fn new(name: &'static str, shape: Shape, text: &'static str) -> Self {
        Self { name, shape, required: false, default: None, text, typed: false }
    }

    #[must_use]
    pub const fn required(mut self) -> Self {
        self.required = true;
        self
    }

    #[must_use]
    pub const fn typed(mut self) -> Self {
        self.typed = true;
        self
    }

    #[must_use]
    pub const fn or(mut self, default: Scalar) -> Self {
        self.default = Some(default);
        self
    }

    #[must_use]
    pub const fn text(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Shape::Text { length_min: 0, length_max: TEXT_LENGTH_MAX }, text)
    }

    #[must_use]
    pub const fn name(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Shape::Name, text)
    }

    #[must_use]
    pub const fn flag(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Shape::Flag, text)
    }

    #[must_use]
    pub const fn selector(name: &'static str, text: &'static str) -> Self {
        Self::new(name, Shape::Text { length_min: 1, length_max: SELECTOR_LENGTH_MAX }, text)
    }
}

/// The session a tool works on; instance names are accepted too.
pub const SESSION: Parameter = Parameter::new("session_id", Shape::Handle, "").required();
/// The tab a tool works on; the active one by default.
pub const TAB: Parameter = Parameter::new("tab_id", Shape::Handle, "");
/// What element a tool works on.
pub const SELECTOR: Parameter = Parameter::selector(
    "selector",
    "CSS, text=, role=button[name=\"Save\"], label=, xpath=, or a snapshot ref like e12",
)
.required();
/// How long the whole call may take, in milliseconds; 0 leaves it to the server's own limit.
pub const TIMEOUT: Parameter =
    Parameter::new("timeout", Shape::Integer { min: 0, max: INTEGER_MAX }, "ms").or(Scalar::Integer(30_000));
/// Which load state a navigation waits for.
pub const WAIT_UNTIL: Parameter =
    Parameter::new("wait_until", Shape::Choice(&["load", "domcontentloaded", "networkidle", "commit"]), "")
        .or(Scalar::Text("load"));

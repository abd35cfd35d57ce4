//! What an option is, as data: its names, what values it takes, what holds when nobody says anything.

use super::environment::Environment;

/// One option, as data.
#[derive(Debug)]
pub struct OptionFacts {
    /// Member of the file, and the name in `config show`.
    pub key: &'static str,
    /// Flag, without its dashes.
    pub flag: &'static str,
    /// Environment variable.
    pub variable: &'static str,
    pub kind: Kind,
    pub default: Default,
    /// Whether every command takes it, or only those that serve or speak about serving.
    pub reach: Reach,
    pub text: &'static str,
}

/// What values an option takes.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    Address,
    Path,
    /// A URL that ends in a directory: `s3://bucket/prefix/` or `file:///directory/`.
    Prefix,
    Count {
        min: u64,
        max: u64,
    },
    Bytes {
        min: u64,
        max: u64,
    },
    /// Decimals are allowed; `zero` says whether 0 is.
    Seconds {
        zero: bool,
        max: u64,
    },
    /// Decimals are allowed; 0 is for ever.
    Days {
        max: u64,
    },
    Switch,
    /// One of these, in any case.
    Word(&'static [&'static str]),
    /// Any of these, separated by commas.
    Words(&'static [&'static str]),
    /// Rules of a blocklist, separated by commas, semicolons or white space.
    Blocklist,
    /// `commit`, or `interval=` and milliseconds.
    Durability {
        millis_max: u64,
    },
}

/// What holds when nobody says anything.
#[derive(Debug, Clone, Copy)]
pub enum Default {
    /// No value: the option is off.
    Nothing,
    Number(u64),
    Text(&'static str),
    /// Worked out from the surroundings, and described in words.
    Derived(&'static str, fn(&Environment) -> Option<String>),
}

/// Which commands take an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reach {
    Every,
    Serving,
}

impl OptionFacts {
    /// What the default is, for people.
    #[must_use]
    pub fn default_text(&self) -> String {
        match self.default {
            Default::Nothing => "none".to_owned(),
            Default::Number(number) => number.to_string(),
            Default::Text(text) | Default::Derived(text, _) => text.to_owned(),
        }
    }

    /// What values are taken, for people.
    #[must_use]
    pub fn kind_text(&self) -> String {
        match self.kind {
            Kind::Address => "address:port".to_owned(),
            Kind::Path => "path".to_owned(),
            Kind::Prefix => "s3://bucket/prefix/ or file:///directory/".to_owned(),
            Kind::Count { min, max } => format!("{min} to {max}"),
            Kind::Bytes { min, max } => format!("bytes, {min} to {max}"),
            Kind::Seconds { zero: true, max } => format!("seconds, 0 to {max}"),
            Kind::Seconds { zero: false, max } => format!("seconds, above 0, up to {max}"),
            Kind::Days { max } => format!("days, 0 to {max}"),
            Kind::Switch => "true or false".to_owned(),
            Kind::Word(words) => words.join(", "),
            Kind::Words(words) => format!("any of {}", words.join(", ")),
            Kind::Blocklist => "hosts and addresses".to_owned(),
            Kind::Durability { millis_max } => format!("commit, or interval=MS with MS from 1 to {millis_max}"),
        }
    }
}

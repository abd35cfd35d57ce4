//! One option's value: read from text by its kind, within its bounds, and shown again.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use exporters::Address;
use storage::log::Durability;

use super::options::Kind;
use crate::blocklist::Blocklist;

/// A value that holds.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    Address(SocketAddr),
    Path(PathBuf),
    Prefix(Address),
    Number(u64),
    Seconds(Duration),
    Days(Duration),
    Switch(bool),
    Word(&'static str),
    Words(Vec<&'static str>),
    Blocklist(Blocklist),
    Durability(Durability),
}

impl Value {
    /// Reads `text` as `kind`.
    ///
    /// # Errors
    /// What is accepted instead, in words that fit after the option's name.
    pub fn read(kind: &Kind, text: &str) -> Result<Self, String> {
        let text = text.trim();
        match kind {
            Kind::Address => text
                .parse()
                .map(Value::Address)
                .map_err(|_| "must be an address and port such as 127.0.0.1:8931".to_owned()),
            Kind::Path if text.is_empty() => Err("must be a path".to_owned()),
            Kind::Path => Ok(Value::Path(PathBuf::from(text))),
            Kind::Prefix => Address::url(text)
                .map(Value::Prefix)
                .map_err(|_| "must be a URL such as s3://bucket/prefix/ or file:///directory/".to_owned()),
            Kind::Count { min, max } => text
                .parse()
                .ok()
                .filter(|number| (*min..=*max).contains(number))
                .map(Value::Number)
                .ok_or_else(|| format!("must be a whole number from {min} to {max}")),
            Kind::Bytes { min, max } => {
                bytes(text).filter(|number| (*min..=*max).contains(number)).map(Value::Number).ok_or_else(|| {
                    format!("must be a number of bytes from {min} to {max}, with or without KiB, MiB or GiB")
                })
            }
            Kind::Seconds { zero, max } => seconds(text, *zero, *max).map(Value::Seconds).ok_or_else(|| {
                format!("must be a number of seconds {} {max}", if *zero { "from 0 to" } else { "above 0 and up to" })
            }),
            Kind::Days { max } => {
                days(text, *max).map(Value::Days).ok_or_else(|| format!("must be a number of days from 0 to {max}"))
            }
            Kind::Switch => switch(text).map(Value::Switch).ok_or_else(|| "must be true or false".to_owned()),
            Kind::Word(words) => words
                .iter()
                .find(|word| word.eq_ignore_ascii_case(text))
                .map(|word| Value::Word(word))
                .ok_or_else(|| format!("must be one of {}", words.join(", "))),
            Kind::Words(words) => {
                listed(text, words).map(Value::Words).ok_or_else(|| format!("must be any of {}", words.join(", ")))
            }
            Kind::Blocklist => Blocklist::read(text).map(Value::Blocklist),
            Kind::Durability { millis_max } => durability(text, *millis_max).map(Value::Durability).ok_or_else(|| {
                format!("must be commit, or interval= and a whole number of milliseconds from 1 to {millis_max}")
            }),
        }
    }

    /// The value as `config show` and a configuration file write it.
    #[must_use]
    pub fn show(&self) -> String {
        match self {
            Value::Address(address) => address.to_string(),
            Value::Path(path) => path.display().to_string(),
            Value::Prefix(Address::File(path)) => format!("file://{}", path.display()),
            Value::Prefix(prefix) => prefix.to_string(),
            Value::Number(number) => number.to_string(),
            Value::Seconds(duration) => duration.as_secs_f64().to_string(),
            Value::Days(duration) => (duration.as_secs_f64() / DAY_SECONDS).to_string(),
            Value::Switch(on) => on.to_string(),
            Value::Word(word) => (*word).to_owned(),
            Value::Words(words) => words.join(","),
            Value::Blocklist(rules) => rules.show(),
            Value::Durability(Durability::Commit) => "commit".to_owned(),
            Value::Durability(Durability::Interval { millis }) => format!("interval={millis}"),
        }
    }
}

fn bytes(text: &str) -> Option<u64> {
    const UNITS: [(&str, u64); 4] = [("kib", 1 << 10), ("mib", 1 << 20), ("gib", 1 << 30), ("b", 1)];
    let lower = text.to_ascii_lowercase();
    let (digits, unit) = UNITS
        .iter()
        .find_map(|(suffix, unit)| Some((lower.strip_suffix(suffix)?.trim_end(), *unit)))
        .unwrap_or((lower.as_str(), 1));
    digits.parse::<u64>().ok()?.checked_mul(unit)
}

fn seconds(text: &str, zero: bool, max: u64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    let duration = Duration::try_from_secs_f64(number).ok()?;
    let fits = duration <= Duration::from_secs(max) && (zero || !duration.is_zero());
    fits.then_some(duration)
}

const DAY_SECONDS: f64 = 86_400.0;

fn days(text: &str, max: u64) -> Option<Duration> {
    let number: f64 = text.parse().ok()?;
    let duration = Duration::try_from_secs_f64(number * DAY_SECONDS).ok()?;
    (duration.as_secs_f64() <= max as f64 * DAY_SECONDS).then_some(duration)
}

fn durability(text: &str, millis_max: u64) -> Option<Durability> {
    let lower = text.to_ascii_lowercase();
    if lower == "commit" {
        return Some(Durability::Commit);
    }
    let millis = lower.strip_prefix("interval=")?.parse().ok()?;
    (1..=millis_max).contains(&millis).then_some(Durability::Interval { millis })
}

/// The words that `text` names, each once; `None` when it names none or one that is not there.
fn listed(text: &str, words: &[&'static str]) -> Option<Vec<&'static str>> {
    let mut found: Vec<&'static str> = Vec::new();
    for part in text.split(',').map(str::trim) {
        let word = words.iter().find(|word| word.eq_ignore_ascii_case(part))?;
        if !found.contains(word) {
            found.push(word);
        }
    }
    (!found.is_empty()).then_some(found)
}

fn switch(text: &str) -> Option<bool> {
    match text.to_ascii_lowercase().as_str() {
        "true" | "1" | "yes" | "on" => Some(true),
        "false" | "0" | "no" | "off" => Some(false),
        _ => None,
    }
}

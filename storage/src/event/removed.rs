//! What `log.removed` says in its field `kinds`, and how several of them add up.
//!
//! An announcement is known by the owner and session of its context, its `subject`, its `segment` and
//! its `generation`. It is recorded before anything goes, so a process that died in between records it
//! again: of several that are known by the same, the last one counts, and one with a count of 0 takes
//! an earlier one back. Announcements that differ in any of these add up, those for a whole segment
//! ([`WHOLE_SEGMENT`]) among them: each counts only what was still there before it.

use serde_json::{Value, json};

use crate::event::{EventView, Json, Kind, Level, ValueRef};

/// The `generation` of an announcement that the whole segment goes.
pub const WHOLE_SEGMENT: u64 = 4095;

/// The removed events of one kind and level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Portion {
    /// Number of the kind; it may be of a newer build.
    pub kind: u16,
    /// `None` for kinds without levels.
    pub level: Option<Level>,
    pub count: u64,
    pub first_seq: u64,
    pub last_seq: u64,
}

impl Portion {
    /// A portion of that one event.
    #[must_use]
    pub fn of(view: &EventView<'_>) -> Self {
        let (kind, level) = kind_and_level(view);
        Self { kind, level, count: 1, first_seq: view.seq, last_seq: view.seq }
    }

    /// Takes in another portion of the same kind and level.
    pub fn add(&mut self, other: &Portion) {
        self.count += other.count;
        self.first_seq = self.first_seq.min(other.first_seq);
        self.last_seq = self.last_seq.max(other.last_seq);
    }
}

/// What tells portions apart.
#[must_use]
pub fn kind_and_level(view: &EventView<'_>) -> (u16, Option<Level>) {
    let level = view.get("level").and_then(ValueRef::as_u64).and_then(Level::from_number);
    (view.kind_number, level)
}

/// The field as it is recorded.
#[must_use]
pub fn to_json(portions: &[Portion]) -> Json {
    let member = |portion: &Portion| {
        let name = Kind::from_number(portion.kind).map_or_else(|| unknown(portion.kind), |kind| kind.name().to_owned());
        json!({
            "kind": name,
            "level": portion.level.map(Level::as_str),
            "count": portion.count,
            "first_seq": portion.first_seq,
            "last_seq": portion.last_seq,
        })
    };
    // Names of kinds and numbers: nothing that a page or a person wrote.
    Json::redacted(&portions.iter().map(member).collect())
}

/// The field read back; `None` when it is not what [`to_json`] wrote.
#[must_use]
pub fn from_json(text: &str) -> Option<Vec<Portion>> {
    let Value::Array(members) = serde_json::from_str(text).ok()? else { return None };
    members.iter().map(portion).collect()
}

fn portion(member: &Value) -> Option<Portion> {
    let number = |key: &str| member.get(key)?.as_u64();
    let name = member.get("kind")?.as_str()?;
    let kind = match name.strip_prefix(UNKNOWN) {
        Some(number) => number.parse().ok()?,
        None => Kind::from_name(name)?.number(),
    };
    let level = match member.get("level")? {
        Value::Null => None,
        level => Some(Level::parse(level.as_str()?)?),
    };
    let (count, first_seq, last_seq) = (number("count")?, number("first_seq")?, number("last_seq")?);
    Some(Portion { kind, level, count, first_seq, last_seq })
}

const UNKNOWN: &str = "unknown.";

fn unknown(kind: u16) -> String {
    format!("{UNKNOWN}{kind}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn portions_read_back() {
        let portions = [
            Portion { kind: 40, level: Some(Level::Warning), count: 3, first_seq: 7, last_seq: 90 },
            Portion { kind: 50, level: None, count: 1, first_seq: 8, last_seq: 8 },
            Portion { kind: 126, level: None, count: u64::MAX, first_seq: 1, last_seq: u64::MAX },
        ];
        assert_eq!(from_json(to_json(&portions).as_str()), Some(portions.to_vec()));
        assert_eq!(from_json("[]"), Some(Vec::new()));
        for text in ["", "{}", "[1]", r#"[{"kind":"no.such","level":null,"count":1,"first_seq":1,"last_seq":1}]"#] {
            assert_eq!(from_json(text), None, "{text}");
        }
    }
}

//! What is signed: how far the log's chain has come, and which key signs from here on.
//!
//! Each text is one line of `checkpoints.jws` and names the line before it by its SHA-256, so a line
//! cannot go or move without all later ones saying so. A payload has one spelling: members in this
//! order, no white space, hexadecimal in lower case, times in RFC 3339 with microseconds.
//!
//! ```text
//! checkpoint  {"format":2,"log_id":...,"seq":...,"chain":...,"epoch":...,"at":...,
//!              "since_seq":...,"trail":...,"oldest_seq":...,"previous":...}
//! key change  {"format":2,"log_id":...,"seq":...,"at":...,"next_key":...,"previous":...}
//! ```
//!
//! `chain` is the chain hash after event `seq`; `trail` the SHA-256 of the trail's bytes for the
//! events after `since_seq`, up to `seq`; `previous` the SHA-256 of the line before, or null.

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::jws;
use super::key::{AuditKey, PublicKey};
use crate::limits::SEQ_MAX;
use crate::time::{parse_rfc3339, rfc3339};

const FORMAT: u64 = 2;
const CHECKPOINT: &str = "pageledger-checkpoint";
const KEY_CHANGE: &str = "pageledger-key-change";

pub type Digest = [u8; 32];

/// The log's state at one moment, as signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkpoint {
    pub log_id: String,
    /// The last event it covers.
    pub seq: u64,
    /// The chain after that event.
    pub chain: Digest,
    pub epoch: u64,
    pub at_micros: i64,
    /// The trail's digest begins after this event.
    pub since_seq: u64,
    pub trail: Digest,
    /// The oldest event retained at that moment.
    pub oldest_seq: u64,
    /// The line before.
    pub previous: Option<Digest>,
}

/// The old key names the next one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyChange {
    pub log_id: String,
    /// The last event when it was signed.
    pub seq: u64,
    pub at_micros: i64,
    pub next_key: PublicKey,
    pub previous: Option<Digest>,
}

/// What a line says, once its signature holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Statement {
    Checkpoint(Checkpoint),
    KeyChange(KeyChange),
}

/// A line whose signature holds by the key it names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SignedLine {
    pub key: PublicKey,
    pub statement: Statement,
    /// What the next line calls this one.
    pub digest: Digest,
}

impl SignedLine {
    /// Reads one line, without its newline.
    ///
    /// # Errors
    /// Says what is wrong with it.
    pub fn read(line: &str) -> Result<Self, &'static str> {
        let signed = jws::read(line)?;
        let value: Value = serde_json::from_slice(&signed.payload).map_err(|_| "its payload is not JSON")?;
        let statement = match signed.kind.as_str() {
            CHECKPOINT => checkpoint(&value).map(Statement::Checkpoint),
            KEY_CHANGE => key_change(&value).map(Statement::KeyChange),
            _ => return Err("it is of a type that this build does not know"),
        };
        if value["format"] != FORMAT {
            return Err("it is of a format that this build does not know");
        }
        let statement = statement.ok_or("its payload is not complete")?;
        if statement.seq() >= SEQ_MAX {
            return Err("it covers more events than a log can have");
        }
        if statement.payload().as_bytes() != signed.payload {
            return Err("its payload is not of the one accepted form");
        }
        Ok(Self { key: signed.key, statement, digest: digest(line.as_bytes()) })
    }

    #[must_use]
    pub fn checkpoint(&self) -> Option<&Checkpoint> {
        if let Statement::Checkpoint(checkpoint) = &self.statement { Some(checkpoint) } else { None }
    }
}

impl Statement {
    /// The line that says this, signed by `key`.
    pub(super) fn sign(&self, key: &AuditKey) -> String {
        let kind = match self {
            Statement::Checkpoint(_) => CHECKPOINT,
            Statement::KeyChange(_) => KEY_CHANGE,
        };
        jws::sign(key, kind, self.payload().as_bytes())
    }

    #[must_use]
    pub fn previous(&self) -> Option<Digest> {
        match self {
            Statement::Checkpoint(checkpoint) => checkpoint.previous,
            Statement::KeyChange(change) => change.previous,
        }
    }

    #[must_use]
    pub fn log_id(&self) -> &str {
        match self {
            Statement::Checkpoint(checkpoint) => &checkpoint.log_id,
            Statement::KeyChange(change) => &change.log_id,
        }
    }

    #[must_use]
    pub fn seq(&self) -> u64 {
        match self {
            Statement::Checkpoint(checkpoint) => checkpoint.seq,
            Statement::KeyChange(change) => change.seq,
        }
    }

    fn payload(&self) -> String {
        let previous =
            |digest: Option<Digest>| digest.map_or("null".to_owned(), |digest| format!("\"{}\"", hex(&digest)));
        match self {
            Statement::Checkpoint(it) => format!(
                concat!(
                    r#"{{"format":{},"log_id":"{}","seq":{},"chain":"{}","epoch":{},"at":"{}","#,
                    r#""since_seq":{},"trail":"{}","oldest_seq":{},"previous":{}}}"#
                ),
                FORMAT,
                it.log_id,
                it.seq,
                hex(&it.chain),
                it.epoch,
                rfc3339(it.at_micros),
                it.since_seq,
                hex(&it.trail),
                it.oldest_seq,
                previous(it.previous),
            ),
            Statement::KeyChange(it) => format!(
                r#"{{"format":{},"log_id":"{}","seq":{},"at":"{}","next_key":"{}","previous":{}}}"#,
                FORMAT,
                it.log_id,
                it.seq,
                rfc3339(it.at_micros),
                it.next_key,
                previous(it.previous),
            ),
        }
    }
}

fn checkpoint(value: &Value) -> Option<Checkpoint> {
    Some(Checkpoint {
        log_id: value["log_id"].as_str()?.to_owned(),
        seq: value["seq"].as_u64()?,
        chain: digest_of(&value["chain"])?,
        epoch: value["epoch"].as_u64()?,
        at_micros: parse_rfc3339(value["at"].as_str()?)?,
        since_seq: value["since_seq"].as_u64()?,
        trail: digest_of(&value["trail"])?,
        oldest_seq: value["oldest_seq"].as_u64()?,
        previous: previous_of(&value["previous"])?,
    })
}

fn key_change(value: &Value) -> Option<KeyChange> {
    Some(KeyChange {
        log_id: value["log_id"].as_str()?.to_owned(),
        seq: value["seq"].as_u64()?,
        at_micros: parse_rfc3339(value["at"].as_str()?)?,
        next_key: PublicKey::parse(value["next_key"].as_str()?)?,
        previous: previous_of(&value["previous"])?,
    })
}

fn previous_of(value: &Value) -> Option<Option<Digest>> {
    if value.is_null() { Some(None) } else { digest_of(value).map(Some) }
}

fn digest_of(value: &Value) -> Option<Digest> {
    let text = value.as_str().filter(|text| text.len() == 64 && text.is_ascii())?;
    let mut digest = [0; 32];
    for (position, byte) in digest.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&text[2 * position..2 * position + 2], 16).ok()?;
    }
    Some(digest)
}

/// SHA-256; of a line, it is what the next line calls it.
#[must_use]
pub fn digest(bytes: &[u8]) -> Digest {
    Sha256::digest(bytes).into()
}

/// Hexadecimal in lower case.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn example() -> Checkpoint {
        Checkpoint {
            log_id: "abcdefghijkl".into(),
            seq: 12_345,
            chain: [7; 32],
            epoch: 3,
            at_micros: 1_764_504_000_000_001,
            since_seq: 2_345,
            trail: [0xab; 32],
            oldest_seq: 1,
            previous: Some([9; 32]),
        }
    }

    fn key() -> AuditKey {
        AuditKey::from_secret([5; 32])
    }

    #[test]
    fn statements_come_back_as_they_were_signed() {
        let first = Checkpoint { previous: None, since_seq: 0, ..example() };
        let change = KeyChange {
            log_id: "abcdefghijkl".into(),
            seq: 4,
            at_micros: 0,
            next_key: AuditKey::from_secret([6; 32]).public(),
            previous: Some([1; 32]),
        };
        for statement in [Statement::Checkpoint(example()), Statement::Checkpoint(first), Statement::KeyChange(change)]
        {
            let line = statement.sign(&key());
            assert_eq!(line, statement.sign(&key()), "the same statement is always the same line");
            let read = SignedLine::read(&line).expect("it is sound");
            assert_eq!((read.key, &read.statement, read.digest), (key().public(), &statement, digest(line.as_bytes())));
            assert!(line.len() < jws::JWS_BYTES_MAX / 2, "{} bytes", line.len());
        }
    }

    #[test]
    fn payloads_have_one_spelling() {
        let payload = Statement::Checkpoint(example()).payload();
        assert_eq!(
            payload,
            format!(
                "{{\"format\":2,\"log_id\":\"abcdefghijkl\",\"seq\":12345,\"chain\":\"{}\",\"epoch\":3,\
                 \"at\":\"2025-11-30T12:00:00.000001Z\",\"since_seq\":2345,\"trail\":\"{}\",\"oldest_seq\":1,\
                 \"previous\":\"{}\"}}",
                "07".repeat(32),
                "ab".repeat(32),
                "09".repeat(32)
            )
        );
        let sound = |payload: &str| SignedLine::read(&jws::sign(&key(), CHECKPOINT, payload.as_bytes())).is_ok();
        assert!(sound(&payload));
        for (from, to) in [
            ("\"format\":2", "\"format\":3"),
            ("12345", "012345"),
            ("12345", "12345.0"),
            ("12345", "-1"),
            ("\"trail\":\"ab", "\"trail\":\"AB"),
            (",\"epoch\":3", ""),
            ("\"epoch\":3", "\"epoch\":3,\"more\":1"),
            ("\"epoch\":3", "\"epoch\":3,\"epoch\":3"),
            ("{\"format", "{ \"format"),
            ("000001Z", "000001+00:00"),
            ("\"seq\":12345", "\"seq\":\"12345\""),
        ] {
            let changed = payload.replacen(from, to, 1);
            assert_ne!(changed, payload);
            assert!(!sound(&changed), "{from} as {to}");
        }
        assert!(SignedLine::read(&jws::sign(&key(), KEY_CHANGE, payload.as_bytes())).is_err());
        assert!(SignedLine::read(&jws::sign(&key(), "other", payload.as_bytes())).is_err());
    }
}

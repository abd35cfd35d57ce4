//! What is counted while events pass: how many went in, what the log says it could not record, and how
//! often something was redacted in what went in.

use std::collections::BTreeMap;

use memchr::memmem;
use storage::event::{EventView, Kind, Payload as _, catalog};

/// Gaps listed one by one in a manifest; the sums count all of them.
pub const GAPS_LISTED_MAX: usize = 1_000;
/// Rules of redaction told apart.
const RULES_MAX: usize = 32;
/// Length of a rule's name.
const RULE_BYTES_MAX: usize = 32;
/// How a replacement begins; the rule's name and a bracket follow.
const MARK: &[u8] = b"[redacted:";

/// Something the log says it could not record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DeclaredGap {
    pub seq: u64,
    pub what: String,
    pub count: u64,
    pub reason: String,
}

/// Counts kept while events pass.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    pub events: u64,
    pub excluded: u64,
    /// Chosen, and of a kind for which the format has no place.
    pub unplaced: u64,
    pub first_seq: u64,
    pub last_seq: u64,
    pub gap_events: u64,
    pub lost_events: u64,
    pub gaps: Vec<DeclaredGap>,
    /// How often each rule's replacement stands in the events that went in.
    pub redactions: BTreeMap<String, u64>,
}

impl Tally {
    pub fn written(&mut self, event: &EventView<'_>) {
        if self.events == 0 {
            self.first_seq = event.seq;
        }
        self.events += 1;
        self.last_seq = event.seq;
        self.redacted(event.body);
    }

    pub fn gap(&mut self, event: &EventView<'_>) {
        if event.kind() != Some(Kind::Gap) {
            return;
        }
        self.gap_events += 1;
        let Ok(gap) = catalog::Gap::take(event) else { return };
        self.lost_events = self.lost_events.saturating_add(gap.count);
        if self.gaps.len() < GAPS_LISTED_MAX {
            self.gaps.push(DeclaredGap {
                seq: event.seq,
                what: gap.what.as_str().to_owned(),
                count: gap.count,
                reason: gap.reason.as_str().to_owned(),
            });
        }
    }

    fn redacted(&mut self, body: &[u8]) {
        for at in memmem::find_iter(body, MARK) {
            let rest = &body[at + MARK.len()..];
            let named = rest.iter().take(RULE_BYTES_MAX + 1).position(|byte| *byte == b']');
            let rule = named.map_or(&b""[..], |end| &rest[..end]);
            let known = !rule.is_empty() && rule.iter().all(|byte| byte.is_ascii_lowercase() || *byte == b'_');
            let rule = if known { String::from_utf8_lossy(rule) } else { "other".into() };
            // A page may write what looks like a replacement, but not as many names as it likes.
            let room = self.redactions.len() < RULES_MAX || self.redactions.contains_key(rule.as_ref());
            let rule = if room { rule.into_owned() } else { "other".to_owned() };
            *self.redactions.entry(rule).or_default() += 1;
        }
    }
}

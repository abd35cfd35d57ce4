//! What a reader may ask for, in words, and its validation.
//!
//! Field conditions (`level`, `type`, `text`, `url`, `method`, `status`, `resource_type`) hold for the
//! field of that name that the catalogue marks with `Role::Filter`. A kind without such a field cannot
//! match, so naming a condition also narrows the kinds. Two equal filters have equal fingerprints,
//! whatever the process, because cursors outlive it.

use regex::{Regex, RegexBuilder};
use sha2::{Digest, Sha256};

use crate::event::{Kind, Level};
use crate::ids::{OperationId, Owner, PageId, RequestId, SessionId};
use crate::query::matching::CompiledFilter;

/// Length of a regular expression, in bytes.
pub const PATTERN_BYTES_MAX: usize = 4 * 1024;
/// Memory one compiled regular expression may take, in bytes.
pub const PATTERN_COMPILED_BYTES_MAX: usize = 2 * 1024 * 1024;
/// How many words a list condition may name.
pub const FILTER_WORDS_MAX: usize = 64;

/// Conditions, all of which must hold. The empty filter matches everything its reader may see.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct EventFilter {
    pub session_id: Option<SessionId>,
    /// Owner written on the event itself; whose history may be read at all is the reader's business.
    pub owner: Option<Owner>,
    /// The stream read; `None` is every kind, those of newer builds included.
    pub kinds: Option<Vec<Kind>>,
    /// Threshold: this level and those above it.
    pub level: Option<Level>,
    /// Any of these in field `type`; `exception` stands for errors nobody caught, `browser` for entries of
    /// the browser's log, which go by their source too.
    pub types: Vec<String>,
    /// Regular expression, matched in linear time, on field `text`.
    pub text: Option<String>,
    /// Regular expression on field `url`.
    pub url: Option<String>,
    /// Request method, whatever its case.
    pub method: Option<String>,
    pub status: Option<StatusFilter>,
    /// Any of these in field `resource_type`; `websocket` stands for WebSockets among requests.
    pub resource_types: Vec<String>,
    /// True: only what failed. False: only what did not.
    pub failed: Option<bool>,
    /// Leaves successful static assets out of request pages, which count them.
    pub hide_static: bool,
    pub page_id: Option<PageId>,
    pub operation_id: Option<OperationId>,
    pub request_id: Option<RequestId>,
    /// Recorded at or after this moment.
    pub since_micros: Option<i64>,
    /// Recorded at or before this moment.
    pub until_micros: Option<i64>,
}

/// Which status codes, ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StatusFilter {
    pub low: u16,
    pub high: u16,
}

/// One condition that cannot be understood.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field}: {reason}")]
pub struct FilterError {
    pub field: &'static str,
    pub reason: String,
}

impl StatusFilter {
    /// `404`, `4xx` or `400-499`.
    ///
    /// # Errors
    /// When the text is none of these, or not within 100 to 599.
    pub fn parse(text: &str) -> Result<Self, FilterError> {
        let wrong = || FilterError {
            field: "status",
            reason: "give a code such as 404, a class such as 4xx, or a range such as 400-499, within 100 to 599"
                .into(),
        };
        let code = |part: &str| {
            let digits = part.len() == 3 && part.bytes().all(|byte| byte.is_ascii_digit());
            part.parse::<u16>().ok().filter(|code| digits && (100..=599).contains(code)).ok_or_else(wrong)
        };
        if let Some((low, high)) = text.split_once('-') {
            let range = Self { low: code(low.trim())?, high: code(high.trim())? };
            return if range.low <= range.high { Ok(range) } else { Err(wrong()) };
        }
        if let Some(class) = text.strip_suffix("xx").or_else(|| text.strip_suffix("XX")) {
            let low = code(&format!("{class}00"))?;
            return Ok(Self { low, high: low + 99 });
        }
        let only = code(text)?;
        Ok(Self { low: only, high: only })
    }

    #[must_use]
    pub fn holds(self, status: u64) -> bool {
        (u64::from(self.low)..=u64::from(self.high)).contains(&status)
    }
}

impl EventFilter {
    /// Checks the conditions and makes them ready to match.
    ///
    /// # Errors
    /// Names the first condition that cannot be understood.
    pub fn compile(&self) -> Result<CompiledFilter, FilterError> {
        words("types", &self.types)?;
        words("resource_types", &self.resource_types)?;
        let text = self.text.as_deref().map(|text| pattern("text", text)).transpose()?;
        let url = self.url.as_deref().map(|text| pattern("url", text)).transpose()?;
        if let (Some(since), Some(until)) = (self.since_micros, self.until_micros)
            && since > until
        {
            return Err(FilterError { field: "since", reason: "is later than until".into() });
        }
        Ok(CompiledFilter::new(self.clone(), text, url))
    }

    /// Stands for the conditions in a cursor.
    #[must_use]
    pub fn fingerprint(&self) -> [u8; 16] {
        let mut hash = Hash(Sha256::new());
        hash.text(self.session_id.as_ref().map(SessionId::as_str));
        hash.text(self.owner.as_ref().map(Owner::as_str));
        hash.number(self.kinds.as_ref().map(|kinds| kinds.len() as i64));
        let mut kinds: Vec<u16> = self.kinds.iter().flatten().map(|kind| kind.number()).collect();
        kinds.sort_unstable();
        for kind in kinds {
            hash.number(Some(i64::from(kind)));
        }
        hash.number(self.level.map(|level| level as i64));
        hash.texts(&self.types);
        hash.text(self.text.as_deref());
        hash.text(self.url.as_deref());
        hash.text(self.method.as_deref().map(str::to_ascii_uppercase).as_deref());
        hash.number(self.status.map(|status| i64::from(status.low)));
        hash.number(self.status.map(|status| i64::from(status.high)));
        hash.texts(&self.resource_types);
        hash.number(self.failed.map(i64::from));
        hash.number(Some(i64::from(self.hide_static)));
        hash.text(self.page_id.as_ref().map(PageId::as_str));
        hash.text(self.operation_id.as_ref().map(OperationId::as_str));
        hash.text(self.request_id.as_ref().map(RequestId::as_str));
        hash.number(self.since_micros);
        hash.number(self.until_micros);
        let digest: [u8; 32] = hash.0.finalize().into();
        let mut out = [0; 16];
        out.copy_from_slice(&digest[..16]);
        out
    }
}

/// Feeds values so that no two different sequences of values hash alike.
struct Hash(Sha256);

impl Hash {
    fn text(&mut self, text: Option<&str>) {
        self.number(text.map(|text| text.len() as i64));
        self.0.update(text.unwrap_or_default());
    }

    /// A set: neither order nor case matters to what matches.
    fn texts(&mut self, texts: &[String]) {
        let mut sorted: Vec<String> = texts.iter().map(|text| text.to_ascii_lowercase()).collect();
        sorted.sort_unstable();
        self.number(Some(sorted.len() as i64));
        for text in &sorted {
            self.text(Some(text));
        }
    }

    fn number(&mut self, number: Option<i64>) {
        self.0.update([u8::from(number.is_some())]);
        self.0.update(number.unwrap_or_default().to_le_bytes());
    }
}

fn words(field: &'static str, words: &[String]) -> Result<(), FilterError> {
    if words.len() > FILTER_WORDS_MAX {
        return Err(FilterError { field, reason: format!("at most {FILTER_WORDS_MAX} words") });
    }
    Ok(())
}

fn pattern(field: &'static str, text: &str) -> Result<Regex, FilterError> {
    if text.len() > PATTERN_BYTES_MAX {
        return Err(FilterError { field, reason: format!("at most {PATTERN_BYTES_MAX} bytes") });
    }
    let mut builder = RegexBuilder::new(text);
    builder.size_limit(PATTERN_COMPILED_BYTES_MAX).dfa_size_limit(PATTERN_COMPILED_BYTES_MAX);
    builder.build().map_err(|error| FilterError { field, reason: last_line(&error.to_string()) })
}

/// The parser's message ends in the reason, after a drawing of the place.
fn last_line(message: &str) -> String {
    let line = message.lines().rev().find(|line| !line.trim().is_empty()).unwrap_or("is no regular expression");
    line.trim().trim_start_matches("error: ").to_owned()
}

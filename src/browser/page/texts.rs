//! Finding text as a person sees it: across inline elements, in all frames, in what fields show.
//!
//! Each frame's kit gathers its text; it is searched here, by an engine whose time is bounded by the
//! text's length, so that no pattern can hold up a page.

use serde_json::{Value, json};
use storage::ids::FrameId;

use super::error::PageError;
use super::kit::KitError;
use super::locator::{pattern_of, unquote};
use crate::browser::Page;
use crate::deadline::Deadline;

/// A pattern's text, in bytes.
const PATTERN_BYTES_MAX: usize = 4096;
/// Matches that are shown; further ones are counted.
const MATCHES_SHOWN_MAX: usize = 1000;
/// What is shown of a match and of what stands beside it, in characters.
const MATCH_CHARACTERS_MAX: usize = 120;
const CONTEXT_CHARACTERS_MAX: usize = 40;

/// A text to look for: plain in any case, quoted as it stands, or `/regular expression/flags`.
#[derive(Debug, Clone)]
pub struct TextPattern(regex::Regex);

/// One place where a text was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TextMatch {
    pub text: String,
    pub before: String,
    pub after: String,
    /// The element that holds it, and a selector for that one.
    pub element: String,
    pub reference: Option<String>,
    pub frame_id: FrameId,
}

/// Where a text was found.
#[derive(Debug, Default)]
pub struct TextFound {
    pub matches: Vec<TextMatch>,
    /// All there are, shown or not.
    pub count: u64,
    /// Frames that could not be looked into.
    pub frames_omitted: u64,
    /// The text of some frame is longer than what was searched.
    pub capped: bool,
}

impl TextPattern {
    /// # Errors
    /// Why `text` is none, in words for its author.
    pub fn parse(text: &str) -> Result<Self, String> {
        let pattern = if let Some((pattern, flags)) = pattern_of(text) {
            if flags.chars().any(|flag| !"imsu".contains(flag)) {
                return Err(format!("unknown regular expression flags {flags}"));
            }
            let flags: String = ["i", "s"].into_iter().filter(|flag| flags.contains(flag)).collect();
            format!("(?m{flags}){pattern}")
        } else {
            let quoted = unquote(text);
            let case = if quoted.is_some() { "" } else { "(?i)" };
            let plain = super::snapshot::squeeze(quoted.as_deref().unwrap_or(text));
            if plain.is_empty() {
                return Err("must say more than white space".into());
            }
            format!("{case}{}", regex::escape(&plain))
        };
        if pattern.len() > PATTERN_BYTES_MAX {
            return Err(format!("is longer than {PATTERN_BYTES_MAX} bytes"));
        }
        regex::Regex::new(&pattern).map(Self).map_err(|error| format!("is not a valid pattern: {error}"))
    }

    #[must_use]
    pub fn is_in(&self, text: &str) -> bool {
        self.0.is_match(text)
    }
}

impl Page {
    /// Finds `pattern` in what is to be seen of the page now.
    ///
    /// # Errors
    /// See [`PageError`].
    pub async fn find_text(&self, pattern: &TextPattern, deadline: Deadline) -> Result<TextFound, PageError> {
        let mark = self.begin(deadline).await?;
        self.race_undone(mark, deadline, self.search(pattern, deadline)).await
    }

    async fn search(&self, pattern: &TextPattern, deadline: Deadline) -> Result<TextFound, PageError> {
        let (answers, frames_omitted) = self.ask_frames(&json!({ "page": "gather" }), deadline).await?;
        let mut found = TextFound { frames_omitted, ..TextFound::default() };
        for (frame_id, gathered) in answers {
            found.capped |= gathered["capped"] == true;
            let text = gathered["text"].as_str().unwrap_or_default();
            let room = MATCHES_SHOWN_MAX - found.matches.len();
            let (spans, count) = spans(pattern, text, room);
            found.count += count;
            match self.describe_matches(&frame_id, &gathered["id"], text, &spans, deadline).await {
                Ok(matches) => found.matches.extend(matches),
                Err(KitError::Lost) => found.frames_omitted += 1,
                Err(KitError::Page(error)) => return Err(error),
            }
        }
        Ok(found)
    }

    async fn describe_matches(
        &self,
        frame_id: &FrameId,
        gathered: &Value,
        text: &str,
        spans: &[Span],
        deadline: Deadline,
    ) -> Result<Vec<TextMatch>, KitError> {
        if spans.is_empty() {
            return Ok(Vec::new());
        }
        let units: Vec<[usize; 2]> = spans.iter().map(|span| span.units).collect();
        // With an id, so that a kit made anew, which has gathered nothing, is not asked.
        let request = json!({ "page": "pick", "id": gathered, "spans": units });
        let answer = self.ask(frame_id, &request, deadline).await?;
        let ids: Vec<u64> = match answer["ids"].as_array() {
            Some(ids) => ids.iter().map(|id| id.as_u64().unwrap_or(0)).collect(),
            None => return Err(KitError::Lost),
        };
        let words = self.act_each(frame_id, &ids, &json!({ "action": "identify" }), deadline).await?;
        let references = self.references_of(frame_id, &ids, deadline).await?;
        let described = spans.iter().zip(words).zip(references).map(|((span, words), reference)| TextMatch {
            text: first(&text[span.start..span.end], MATCH_CHARACTERS_MAX),
            before: last(&text[..span.start], CONTEXT_CHARACTERS_MAX),
            after: first(&text[span.end..], CONTEXT_CHARACTERS_MAX),
            element: words["element"].as_str().unwrap_or_default().to_owned(),
            reference,
            frame_id: frame_id.clone(),
        });
        Ok(described.collect())
    }

    /// Waits until `pattern` is to be seen in some frame, or in none.
    ///
    /// # Errors
    /// `WaitTimeout` at the deadline, and see [`PageError`].
    pub async fn wait_for_text(
        &self,
        pattern: &TextPattern,
        wanted: bool,
        deadline: Deadline,
    ) -> Result<(), PageError> {
        let mark = self.begin(deadline).await?;
        let work = async {
            while self.sees(pattern, deadline).await? != wanted {
                self.news(deadline).await?;
            }
            Ok(())
        };
        let done = self.race_undone(mark, deadline, work).await;
        let state = if wanted { "visible" } else { "hidden" };
        done.map_err(|error| match error {
            PageError::Timeout => PageError::WaitTimeout { what: format!("the text {state}") },
            other => other,
        })
    }

    pub(super) async fn sees(&self, pattern: &TextPattern, deadline: Deadline) -> Result<bool, PageError> {
        let (answers, _) = self.ask_frames(&json!({ "page": "gather" }), deadline).await?;
        Ok(answers.iter().any(|(_, gathered)| pattern.is_in(gathered["text"].as_str().unwrap_or_default())))
    }

    /// Waits until the main frame changes, or a while; an error once the deadline has passed.
    pub(super) async fn news(&self, deadline: Deadline) -> Result<(), PageError> {
        let main_frame_id = self.state().main_frame_id.clone();
        self.at_rest(&main_frame_id, deadline).await?;
        if deadline.passed() { Err(PageError::Timeout) } else { Ok(()) }
    }
}

/// A match in bytes of the text, and in the units that the page counts in.
struct Span {
    start: usize,
    end: usize,
    units: [usize; 2],
}

/// The first `room` matches, and how many there are in all. Empty matches are none.
fn spans(pattern: &TextPattern, text: &str, room: usize) -> (Vec<Span>, u64) {
    let mut spans = Vec::new();
    let mut count = 0;
    let (mut bytes, mut units) = (0, 0);
    let mut units_at = |place: usize| {
        units += text[bytes..place].encode_utf16().count();
        bytes = place;
        units
    };
    for found in pattern.0.find_iter(text).filter(|found| !found.is_empty()) {
        count += 1;
        if spans.len() < room {
            let units = [units_at(found.start()), units_at(found.end())];
            spans.push(Span { start: found.start(), end: found.end(), units });
        }
    }
    (spans, count)
}

fn first(text: &str, characters_max: usize) -> String {
    match text.char_indices().nth(characters_max) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}...", &text[..end]),
    }
}

fn last(text: &str, characters_max: usize) -> String {
    match text.char_indices().rev().nth(characters_max.saturating_sub(1)) {
        Some((start, _)) if start > 0 => format!("...{}", &text[start..]),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_counted_as_the_page_counts() {
        let pattern = TextPattern::parse("needle").expect("valid");
        let text = "\u{1f600} Needle \u{e9}\u{4e00} NEEDLE needle";
        let (found, count) = spans(&pattern, text, 2);
        assert_eq!((found.len(), count), (2, 3));
        let units: Vec<u16> = text.encode_utf16().collect();
        for span in found {
            let cut = String::from_utf16(&units[span.units[0]..span.units[1]]).expect("whole characters");
            assert_eq!(cut, text[span.start..span.end]);
        }
        assert_eq!((first("abc", 2), last("abc", 2)), ("ab...".into(), "...bc".into()));
    }

    #[test]
    fn patterns_say_what_is_wrong() {
        for text in ["  ", "/(/", "/a/x", "\" \""] {
            assert!(TextPattern::parse(text).is_err(), "{text}");
        }
        assert!(TextPattern::parse("a.b").expect("valid").is_in("x A.B"));
        assert!(!TextPattern::parse("\"a.b\"").expect("valid").is_in("A.B"));
        assert!(TextPattern::parse("/^a.b$/").expect("valid").is_in("x\naxb\ny"));
    }
}

//! What many lines of a list have alike, said once above them under a letter.

use std::collections::HashMap;

/// A text is worth a letter when that saves at least this many bytes.
const SAVED_BYTES_MIN: usize = 8;

/// Texts and their letters.
#[derive(Default)]
pub(super) struct Legend(Vec<String>);

impl Legend {
    /// Of the texts that are met often and long enough, those most worth it first.
    pub fn of<'a>(texts: impl Iterator<Item = &'a str>) -> Self {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for text in texts {
            *counts.entry(text).or_default() += 1;
        }
        // Said once with its letter, and then by its letter alone.
        let saved = |text: &str, count: usize| (text.len() * count).saturating_sub(text.len() + 3 + count);
        let mut worth: Vec<(&str, usize)> =
            counts.into_iter().map(|(text, count)| (text, saved(text, count))).collect();
        worth.retain(|(_, saved)| *saved >= SAVED_BYTES_MIN);
        worth.sort_by_key(|(text, saved)| (std::cmp::Reverse(*saved), *text));
        Self(worth.into_iter().map(|(text, _)| text.to_owned()).collect())
    }

    /// The letter of `text`, when it has one.
    pub fn letter(&self, text: &str) -> Option<String> {
        self.0.iter().position(|known| known == text).map(letters)
    }

    /// ` a=... b=...`
    pub fn told(&self) -> String {
        self.0.iter().enumerate().map(|(at, text)| format!(" {}={text}", letters(at))).collect()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// a, b, ... z, aa, ab, ...
fn letters(at: usize) -> String {
    let letter = char::from(b'a' + u8::try_from(at % 26).unwrap_or_default());
    if at < 26 { letter.to_string() } else { format!("{}{letter}", letters(at / 26 - 1)) }
}

/// The text that is met most often, of more than one.
pub(super) fn usual<'a>(texts: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    let mut sorted: Vec<&str> = texts.collect();
    sorted.sort_unstable();
    let longest = sorted.chunk_by(|one, other| one == other).max_by_key(|run| run.len());
    longest.filter(|run| run.len() > 1).map(|run| run[0])
}

/// The text that all `count` items have alike, of more than one.
pub(super) fn of_all<'a>(texts: impl Iterator<Item = &'a str>, count: usize) -> Option<&'a str> {
    let texts: Vec<&str> = texts.collect();
    (texts.len() == count && count > 1 && texts.iter().all(|text| *text == texts[0])).then(|| texts[0])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_saves_most_has_the_first_letter() {
        let texts = ["/a/long/directory/", "/b/", "/a/long/directory/", "/b/", "/c/once/and/never/again/"];
        let legend = Legend::of(texts.into_iter());
        assert_eq!((legend.told().as_str(), legend.letter("/b/")), (" a=/a/long/directory/", None));
        assert_eq!(
            (letters(25), letters(26), letters(701), letters(702)),
            ("z".into(), "aa".into(), "zz".into(), "aaa".into())
        );
    }
}

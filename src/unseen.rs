//! Characters that a reader does not see, or that change what is seen around them.
//!
//! Whatever a page or server wrote is printed, listed and named through this: what stands on one line
//! stays on it, and looks like what it is.

/// Controls of both ranges, line and paragraph separators, marks that turn the text's direction, and what
/// takes no room at all.
#[must_use]
pub fn is_unseen(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{00ad}' | '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

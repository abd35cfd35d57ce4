//! Keys by name: what Chromium needs to hear for each, on a US keyboard.
//!
//! Pure: text in, key out.

/// Keys held during one press.
const MODIFIERS_MAX: usize = 4;
/// Characters that may show as one sign.
const SIGN_CHARACTERS_MAX: usize = 16;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Modifier {
    Alt,
    Control,
    Meta,
    Shift,
}

impl Modifier {
    /// `ControlOrMeta` is the key that shortcuts use on this system.
    #[must_use]
    pub fn parse(name: &str) -> Option<Self> {
        match name {
            "Alt" => Some(Self::Alt),
            "Control" => Some(Self::Control),
            "ControlOrMeta" if cfg!(target_os = "macos") => Some(Self::Meta),
            "ControlOrMeta" => Some(Self::Control),
            "Meta" => Some(Self::Meta),
            "Shift" => Some(Self::Shift),
            _ => None,
        }
    }

    fn bit(self) -> u8 {
        match self {
            Self::Alt => 1,
            Self::Control => 2,
            Self::Meta => 4,
            Self::Shift => 8,
        }
    }

    pub(super) fn bits(modifiers: &[Self]) -> u8 {
        modifiers.iter().fold(0, |bits, modifier| bits | modifier.bit())
    }

    pub(super) fn key(self) -> Key {
        match self {
            Self::Alt => Key::named("Alt", "AltLeft", 18, 1),
            Self::Control => Key::named("Control", "ControlLeft", 17, 1),
            Self::Meta => Key::named("Meta", "MetaLeft", 91, 1),
            Self::Shift => Key::named("Shift", "ShiftLeft", 16, 1),
        }
    }
}

/// One key as the browser's input events name it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Key {
    pub key: String,
    pub code: &'static str,
    /// Windows virtual key code.
    pub key_code: u16,
    /// Where on the keyboard: 1 left, 2 right, 3 keypad.
    pub location: u8,
    /// What it types when nothing but Shift is held.
    pub text: Option<String>,
}

/// Keys held, and the one pressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chord {
    pub modifiers: Vec<Modifier>,
    pub key: Key,
}

impl Key {
    fn named(key: &str, code: &'static str, key_code: u16, location: u8) -> Self {
        Self { key: key.to_owned(), code, key_code, location, text: None }
    }

    /// The key that types `character`; `None` when the keyboard has none.
    #[must_use]
    pub fn typing(character: char) -> Option<Self> {
        if matches!(character, '\n' | '\r') {
            return NAMED.iter().find(|named| named.0 == "Enter").map(Self::from_table);
        }
        let (code, key_code) = code_of(character)?;
        Some(Self { key: character.to_string(), code, key_code, location: 0, text: Some(character.to_string()) })
    }

    fn from_table(row: &(&'static str, &'static str, u16, u8, &'static str)) -> Self {
        let text = (!row.4.is_empty()).then(|| row.4.to_owned());
        Self { key: row.0.to_owned(), code: row.1, key_code: row.2, location: row.3, text }
    }
}

impl Chord {
    /// `a`, `Enter`, `Control+A`, `Shift++`.
    ///
    /// # Errors
    /// Why `text` names no key.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (held, key) = match text.strip_suffix("++") {
            Some(held) => (held, "+"),
            None if text == "+" => ("", "+"),
            None => text.rsplit_once('+').unwrap_or(("", text)),
        };
        let mut modifiers = Vec::new();
        for name in held.split('+').filter(|name| !name.is_empty()) {
            let modifier =
                Modifier::parse(name).ok_or_else(|| format!("{name} is not a modifier: Alt, Control, Meta, Shift"))?;
            if !modifiers.contains(&modifier) {
                modifiers.push(modifier);
            }
            if modifiers.len() > MODIFIERS_MAX {
                return Err("too many modifiers".into());
            }
        }
        let mut key = key_named(key)?;
        let shifted = modifiers.contains(&Modifier::Shift);
        if let Some(text) = key.text.as_deref().filter(|_| shifted) {
            let upper = shift(text);
            if key.key == text {
                key.key.clone_from(&upper);
            }
            key.text = Some(upper);
        }
        if modifiers.iter().any(|modifier| *modifier != Modifier::Shift) {
            key.text = None;
            // A shortcut's letter is the plain one unless Shift is held: Control+A is Control and a.
            if !shifted && key.code.starts_with("Key") {
                key.key = key.key.to_lowercase();
            }
        }
        Ok(Self { modifiers, key })
    }
}

fn key_named(name: &str) -> Result<Key, String> {
    let alias = match name {
        "Esc" => "Escape",
        "Return" => "Enter",
        "Del" => "Delete",
        "Up" => "ArrowUp",
        "Down" => "ArrowDown",
        "Left" => "ArrowLeft",
        "Right" => "ArrowRight",
        "Space" | "Spacebar" => " ",
        other => other,
    };
    if let Some(row) = NAMED.iter().find(|row| row.0 == alias) {
        return Ok(Key::from_table(row));
    }
    if let Some(modifier) = Modifier::parse(alias) {
        return Ok(modifier.key());
    }
    let mut characters = alias.chars();
    if let (Some(character), None) = (characters.next(), characters.next()) {
        let unknown = || Key {
            key: character.to_string(),
            code: "",
            key_code: 0,
            location: 0,
            text: Some(character.to_string()),
        };
        return Ok(Key::typing(character).unwrap_or_else(unknown));
    }
    if is_one_sign(alias) {
        let text = Some(alias.to_owned());
        return Ok(Key { key: alias.to_owned(), code: "", key_code: 0, location: 0, text });
    }
    // The names of keyboard places, such as KeyA and Digit1.
    let typed = match alias.strip_prefix("Key").or_else(|| alias.strip_prefix("Digit")) {
        Some(one) if one.len() == 1 => one.to_ascii_lowercase().chars().next(),
        _ => None,
    };
    typed.and_then(Key::typing).ok_or_else(|| {
        let mut shown: String = alias.chars().take(40).collect();
        if shown.is_empty() {
            shown.push_str("(nothing)");
        }
        format!("{shown} is unknown; examples: Enter, Tab, Escape, ArrowDown, F5, a, Control+A")
    })
}

/// Whether several characters show as one sign: an emoji made of several, a flag, a letter with marks.
fn is_one_sign(text: &str) -> bool {
    let joins = |character: char| matches!(character, '\u{200d}');
    let continues = |character: char| {
        matches!(character, '\u{300}'..='\u{36f}' | '\u{20d0}'..='\u{20ff}' | '\u{200d}' | '\u{fe00}'..='\u{fe0f}'
            | '\u{1f3fb}'..='\u{1f3ff}' | '\u{e0020}'..='\u{e007f}')
    };
    let flag = |character: char| matches!(character, '\u{1f1e6}'..='\u{1f1ff}');
    let characters: Vec<char> = text.chars().take(SIGN_CHARACTERS_MAX + 1).collect();
    let pairs = || characters.windows(2).all(|pair| continues(pair[1]) || joins(pair[0]));
    let fits = (2..=SIGN_CHARACTERS_MAX).contains(&characters.len());
    fits && (pairs() || (characters.len() == 2 && characters.iter().all(|character| flag(*character))))
}

/// Code and virtual key code of the key that types a character.
fn code_of(character: char) -> Option<(&'static str, u16)> {
    const LETTERS: [&str; 26] = [
        "KeyA", "KeyB", "KeyC", "KeyD", "KeyE", "KeyF", "KeyG", "KeyH", "KeyI", "KeyJ", "KeyK", "KeyL", "KeyM", "KeyN",
        "KeyO", "KeyP", "KeyQ", "KeyR", "KeyS", "KeyT", "KeyU", "KeyV", "KeyW", "KeyX", "KeyY", "KeyZ",
    ];
    if character.is_ascii_alphabetic() {
        let upper = character.to_ascii_uppercase();
        let at = u16::try_from(u32::from(upper) - u32::from('A')).unwrap_or(0);
        return Some((LETTERS[usize::from(at)], 65 + at));
    }
    PRINTED.iter().find(|row| row.0 == character || row.1 == character).map(|row| (row.2, row.3))
}

fn shift(text: &str) -> String {
    let plain = |character: char| PRINTED.iter().find(|row| row.0 == character).map(|row| row.1);
    let upper = |character: char| plain(character).unwrap_or(character.to_ascii_uppercase());
    text.chars().map(upper).collect()
}

/// Character, with Shift, code, virtual key code.
const PRINTED: [(char, char, &str, u16); 22] = [
    ('1', '!', "Digit1", 49),
    ('2', '@', "Digit2", 50),
    ('3', '#', "Digit3", 51),
    ('4', '$', "Digit4", 52),
    ('5', '%', "Digit5", 53),
    ('6', '^', "Digit6", 54),
    ('7', '&', "Digit7", 55),
    ('8', '*', "Digit8", 56),
    ('9', '(', "Digit9", 57),
    ('0', ')', "Digit0", 48),
    (' ', ' ', "Space", 32),
    ('`', '~', "Backquote", 192),
    ('-', '_', "Minus", 189),
    ('=', '+', "Equal", 187),
    ('[', '{', "BracketLeft", 219),
    (']', '}', "BracketRight", 221),
    ('\\', '|', "Backslash", 220),
    (';', ':', "Semicolon", 186),
    ('\'', '"', "Quote", 222),
    (',', '<', "Comma", 188),
    ('.', '>', "Period", 190),
    ('/', '?', "Slash", 191),
];

/// Key, code, virtual key code, location, typed text.
const NAMED: [(&str, &str, u16, u8, &str); 38] = [
    ("Enter", "Enter", 13, 0, "\r"),
    ("NumpadEnter", "NumpadEnter", 13, 3, "\r"),
    ("Tab", "Tab", 9, 0, ""),
    ("Backspace", "Backspace", 8, 0, ""),
    ("Escape", "Escape", 27, 0, ""),
    ("Delete", "Delete", 46, 0, ""),
    ("Insert", "Insert", 45, 0, ""),
    ("Home", "Home", 36, 0, ""),
    ("End", "End", 35, 0, ""),
    ("PageUp", "PageUp", 33, 0, ""),
    ("PageDown", "PageDown", 34, 0, ""),
    ("ArrowLeft", "ArrowLeft", 37, 0, ""),
    ("ArrowUp", "ArrowUp", 38, 0, ""),
    ("ArrowRight", "ArrowRight", 39, 0, ""),
    ("ArrowDown", "ArrowDown", 40, 0, ""),
    ("CapsLock", "CapsLock", 20, 0, ""),
    ("NumLock", "NumLock", 144, 0, ""),
    ("ScrollLock", "ScrollLock", 145, 0, ""),
    ("Pause", "Pause", 19, 0, ""),
    ("PrintScreen", "PrintScreen", 44, 0, ""),
    ("ContextMenu", "ContextMenu", 93, 0, ""),
    ("F1", "F1", 112, 0, ""),
    ("F2", "F2", 113, 0, ""),
    ("F3", "F3", 114, 0, ""),
    ("F4", "F4", 115, 0, ""),
    ("F5", "F5", 116, 0, ""),
    ("F6", "F6", 117, 0, ""),
    ("F7", "F7", 118, 0, ""),
    ("F8", "F8", 119, 0, ""),
    ("F9", "F9", 120, 0, ""),
    ("F10", "F10", 121, 0, ""),
    ("F11", "F11", 122, 0, ""),
    ("F12", "F12", 123, 0, ""),
    ("Clear", "NumLock", 12, 0, ""),
    ("Help", "Help", 47, 0, ""),
    ("AltGraph", "AltRight", 18, 2, ""),
    ("BrowserBack", "BrowserBack", 166, 0, ""),
    ("BrowserForward", "BrowserForward", 167, 0, ""),
];

#[cfg(test)]
mod tests {
    use super::*;

    fn chord(text: &str) -> Chord {
        Chord::parse(text).expect(text)
    }

    #[test]
    fn chords_name_modifiers_and_key() {
        let all = chord("Control+A");
        assert_eq!((all.modifiers.as_slice(), all.key.key.as_str()), ([Modifier::Control].as_slice(), "a"));
        assert_eq!((all.key.code, all.key.key_code, all.key.text), ("KeyA", 65, None));
        assert_eq!(chord("Control++").key.key, "+");
        assert_eq!(chord("+").key.code, "Equal");
        assert_eq!(chord("Shift+a").key.text.as_deref(), Some("A"));
        assert_eq!(chord("Shift+1").key.key, "!");
        assert_eq!(chord("A").key.text.as_deref(), Some("A"));
        assert_eq!(chord("Control+Shift+Z").key.key, "Z");
        assert_eq!(chord("Enter").key.text.as_deref(), Some("\r"));
        assert_eq!(chord("Esc").key.code, "Escape");
        assert_eq!(chord("Shift").key.code, "ShiftLeft");
    }

    #[test]
    fn signs_of_several_characters_are_keys() {
        for sign in
            ["\u{1f468}\u{200d}\u{1f467}", "e\u{301}", "\u{1f1e9}\u{1f1ea}", "\u{1f44d}\u{1f3fd}", "1\u{fe0f}\u{20e3}"]
        {
            assert_eq!(chord(sign).key.text.as_deref(), Some(sign));
        }
        for text in ["ab", "\u{65e5}\u{672c}", "\u{1f600}\u{1f600}"] {
            assert!(Chord::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn unknown_keys_are_refused_with_examples() {
        assert!(Chord::parse("Foo").expect_err("no key").contains("examples"));
        assert!(Chord::parse("Hyper+a").expect_err("no modifier").contains("Shift"));
        assert!(Chord::parse("").is_err());
        assert!(Chord::parse("Control+").is_err());
    }

    #[test]
    fn characters_without_a_key_are_told_apart() {
        assert!(Key::typing('\u{e9}').is_none());
        assert_eq!(Key::typing('?').expect("on the keyboard").code, "Slash");
    }
}

//! Conversion of untrusted text (labels, targets, notes, file names) to text that is safe on a
//! terminal.
//!
//! A terminal obeys control characters, and bidirectional characters change the order of the text
//! that it shows. An unsafe label could clear the screen, or make a slow run look fast.

use std::borrow::Cow;

/// Returns text with each control or bidirectional character replaced by its code point, such as
/// `\u001b`. Line ends (LF and CR LF) stay.
///
/// A JSON document keeps its value: such characters occur only in its strings, where the escape
/// means the character.
pub fn escape_unprintable(text: &str) -> Cow<'_, str> {
    escape_unless(text, |character, next| {
        character == '\n' || (character == '\r' && next == Some('\n'))
    })
}

/// Returns text made printable on one line, for a table cell or a name within a sentence.
pub fn escape_unprintable_line(text: &str) -> Cow<'_, str> {
    escape_unless(text, |_, _| false)
}

/// Reports whether a character is an instruction to a terminal instead of text: a control
/// character, a line end, or a character that changes the order of others.
pub fn is_terminal_instruction(character: char) -> bool {
    character.is_control()
        || matches!(
            character,
            '\u{061c}'
                | '\u{200e}'
                | '\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2066}'..='\u{2069}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
        )
}

/// Reports whether a character is invisible, or only joins its neighbours. A name with such a
/// character looks like the name without it. Spaces do not count.
pub fn is_invisible_character(character: char) -> bool {
    matches!(
        character,
        '\u{00ad}'
            | '\u{034f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{200b}'..='\u{200d}'
            | '\u{2060}'..='\u{2065}'
            | '\u{206a}'..='\u{206f}'
            | '\u{2800}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}'
            | '\u{1bca0}'..='\u{1bca3}'
            | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Escapes the instruction characters for which `is_kept` is false. `is_kept` receives the character
/// and its successor.
fn escape_unless(text: &str, is_kept: impl Fn(char, Option<char>) -> bool) -> Cow<'_, str> {
    if !text.chars().any(is_terminal_instruction) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    let mut characters = text.chars().peekable();
    while let Some(character) = characters.next() {
        if is_terminal_instruction(character) && !is_kept(character, characters.peek().copied()) {
            out += &format!("\\u{:04x}", u32::from(character));
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_instruction_stays() {
        for (text, all, line) in [
            (
                "plain, ü and 日本",
                "plain, ü and 日本",
                "plain, ü and 日本",
            ),
            (
                "\u{1b}[2J\u{9b}31m\u{7f}",
                "\\u001b[2J\\u009b31m\\u007f",
                "\\u001b[2J\\u009b31m\\u007f",
            ),
            (
                "a\nb\r\nc\rd",
                "a\nb\r\nc\\u000dd",
                "a\\u000ab\\u000d\\u000ac\\u000dd",
            ),
            (
                "\u{202e}wols\u{2066}",
                "\\u202ewols\\u2066",
                "\\u202ewols\\u2066",
            ),
            ("\t\u{feff}", "\\u0009\\ufeff", "\\u0009\\ufeff"),
        ] {
            assert_eq!(escape_unprintable(text), all, "{text:?}");
            assert_eq!(escape_unprintable_line(text), line, "{text:?}");
            assert_eq!(
                escape_unprintable(&escape_unprintable(text)),
                all,
                "twice: {text:?}"
            );
        }
    }

    #[test]
    fn json_stays_the_same_value() {
        let label = "\u{1b}]0;owned\u{7}\u{9d}\u{202e}\u{7f}\r\n\t";
        let text = serde_json::to_string_pretty(&[label, "ü"]).unwrap();
        let shown = escape_unprintable(&text);
        assert!(
            !shown
                .chars()
                .any(|c| is_terminal_instruction(c) && c != '\n')
        );
        let read: Vec<String> = serde_json::from_str(&shown).unwrap();
        assert_eq!(read, [label, "ü"]);
    }
}

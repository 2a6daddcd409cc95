//! Escaping of arbitrary text for use in HTML.

use diskperf_timeline::printable::is_terminal_instruction;

/// Escapes text for the content of an element or the value of a quoted attribute.
pub(super) fn escape_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => out += "&amp;",
            '<' => out += "&lt;",
            '>' => out += "&gt;",
            '"' => out += "&quot;",
            '\'' => out += "&#39;",
            // Others no HTML may hold, or they turn text round.
            '\n' | '\r' | '\t' => out.push(character),
            _ if is_terminal_instruction(character) => out.push('\u{fffd}'),
            _ => out.push(character),
        }
    }
    out
}

/// Escapes JSON for a `script` element, which only `</script` and `<!--` can end. Both begin with a
/// character that occurs in JSON only within strings.
pub(super) fn escape_json(value: &serde_json::Value) -> String {
    let mut out = String::new();
    for character in value.to_string().chars() {
        match character {
            '<' | '>' | '&' => out += &format!("\\u{:04x}", u32::from(character)),
            _ if is_terminal_instruction(character) => {
                out += &format!("\\u{:04x}", u32::from(character));
            }
            _ => out.push(character),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    #[test]
    fn nothing_ends_an_element_or_an_attribute() {
        assert_eq!(
            super::escape_text("<script>alert('a & \"b\"')</script>\u{1}"),
            "&lt;script&gt;alert(&#39;a &amp; &quot;b&quot;&#39;)&lt;/script&gt;\u{fffd}"
        );
        assert_eq!(super::escape_text("\u{202e}\u{9b}\n"), "\u{fffd}\u{fffd}\n");
    }

    #[test]
    fn json_stays_the_same_value() {
        let value = json!({"</script><!--": ["<![CDATA[", "&amp;", "\u{2028}", "a\"b\\"]});
        let text = super::escape_json(&value);
        assert!(!text.contains(['<', '>', '&', '\u{2028}']), "{text}");
        assert_eq!(serde_json::from_str::<Value>(&text).unwrap(), value);
    }
}

//! Labels: the user's own names for runs. A label must not be confused with anything else that can
//! stand in place of a run.

use crate::error::LaboratoryError;
use diskperf_battery::{Medium, Program, Suite};
use diskperf_catalogue::{Catalogue, Component};
use diskperf_timeline::escape_unprintable_line;
use diskperf_timeline::printable::{is_invisible_character, is_terminal_instruction};

const LABEL_LENGTH_MAX: usize = 100;

/// Verifies that a run with this label can be found by it.
///
/// # Errors
///
/// Returns the reason why it cannot, with a remedy.
pub fn check_label(label: &str) -> Result<(), LaboratoryError> {
    match describe_obstacle(label) {
        None => Ok(()),
        Some(why) => Err(LaboratoryError::Request(format!(
            "--label {}: {why}; write another name, as `before-the-upgrade`",
            match label {
                "" => "\"\"".into(),
                label => escape_unprintable_line(label),
            }
        ))),
    }
}

fn describe_obstacle(label: &str) -> Option<String> {
    let is = |what: &str| Some(what.to_owned());
    if label.is_empty() || label.trim() != label {
        return is("a label has text, and no space at its ends");
    }
    if label.chars().any(is_terminal_instruction) {
        return is("it has a character that cannot be printed");
    }
    if let Some(hidden) = label.chars().find(|one| is_invisible_character(*one)) {
        return Some(format!(
            "it has a character that cannot be seen, U+{:04X}, without which it would look the same",
            u32::from(hidden)
        ));
    }
    if label.chars().count() > LABEL_LENGTH_MAX {
        return Some(format!("it is longer than {LABEL_LENGTH_MAX} characters"));
    }
    if label == "last" {
        return is("`last` is always the newest run");
    }
    if label.starts_with('-') {
        return is("it would be taken for an option");
    }
    if label.contains('/') || label.ends_with(".json") || label.ends_with(".toml") {
        return is("it would be taken for the name of a file");
    }
    if label
        .bytes()
        .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    {
        return is(
            "it could be the beginning of a run's id, which has the digits 0 to 9 and a to f",
        );
    }
    reserved_entry(label)
        .map(|kind| format!("it is the name of a {kind}, which `show` and `explain` take it for"))
}

fn reserved_entry(label: &str) -> Option<&'static str> {
    if Suite::from_name(label, Medium::Directory).is_some() {
        return Some("suite");
    }
    if Program::from_name(label).is_some() {
        return Some("program");
    }
    let catalogue = Catalogue::embedded();
    let base = label.split(':').next().unwrap_or(label);
    if catalogue.system_names().iter().any(|system| system == base) {
        return Some("modelled system");
    }
    let mut components = Component::ALL.into_iter();
    let has = |component: &Component| {
        let names = catalogue.component_names(*component);
        names.iter().any(|name| name == label)
    };
    components.find(has).map(Component::name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_names_something_else_is_no_label() {
        for (label, why) in [
            ("\u{200b}", "cannot be seen, U+200B"),
            ("before\u{200b}", "cannot be seen, U+200B"),
            ("be\u{200d}fore", "cannot be seen, U+200D"),
            ("before\u{2060}", "cannot be seen, U+2060"),
            ("before\u{00ad}", "cannot be seen, U+00AD"),
            ("\u{3164}", "cannot be seen, U+3164"),
            ("\u{2800}", "cannot be seen, U+2800"),
            ("before\u{fe0f}", "cannot be seen, U+FE0F"),
            ("before\u{e0061}", "cannot be seen, U+E0061"),
            ("\u{feff}", "cannot be printed"),
            ("before\u{200e}", "cannot be printed"),
            ("\u{3000}before", "no space at its ends"),
            ("", "a label has text"),
            (" x", "a label has text"),
            ("last", "always the newest run"),
            ("-", "an option"),
            ("-q", "an option"),
            ("a/b", "a file"),
            ("x.json", "a file"),
            ("my.toml", "a file"),
            ("3fa8", "beginning of a run's id"),
            ("a", "beginning of a run's id"),
            ("3fa85f6457", "beginning of a run's id"),
            ("ffs83", "name of a suite"),
            ("write_8192", "name of a program"),
            ("vax780-sc780-eagle", "name of a modelled system"),
            ("vax780-sc780-eagle:4k", "name of a modelled system"),
            ("eagle", "name of a drive"),
            ("a\nb", "cannot be printed"),
            ("\u{1b}[31mred", "cannot be printed"),
            ("fast\u{202e}wols", "cannot be printed"),
        ] {
            let error = check_label(label).expect_err(label).to_string();
            assert!(error.contains(why), "{label:?}: {error}");
            assert!(!error.contains(is_terminal_instruction), "{error:?}");
        }
        assert!(check_label(&"x".repeat(LABEL_LENGTH_MAX + 1)).is_err());
        for label in [
            "before",
            "vax",
            "run 2",
            "=1+1",
            "größer",
            "A",
            "after the new firmware, 3fa8",
        ] {
            assert!(check_label(label).is_ok(), "{label}");
        }
    }
}

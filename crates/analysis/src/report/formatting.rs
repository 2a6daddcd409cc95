//! Durations of formatting and verifying, as a table, JSON and CSV.

use super::csv::{Field, format_records, number};
use super::document::{Block, Column, Grid, Group};
use super::json::pretty;
use crate::formatting::Formatting;
use diskperf_timeline::Nanoseconds;

/// Returns the parts of formatting and verifying, each with its name, its duration and its passes.
fn formatting_parts(formatting: &Formatting) -> [(String, Nanoseconds, u32); 3] {
    let passes = formatting.passes;
    [
        ("format".to_owned(), formatting.format, 1),
        (
            match passes {
                1 => "1 verify pass".to_owned(),
                passes => format!("{passes} verify passes"),
            },
            formatting.verify(),
            passes,
        ),
        ("both".to_owned(), formatting.total(), 1 + passes),
    ]
}

fn minutes(span: Nanoseconds) -> f64 {
    span.0 as f64 / 60e9
}

pub(super) fn blocks(formatting: &Formatting) -> Vec<Block> {
    let parts = formatting_parts(formatting);
    let column =
        |of: &dyn Fn(&(String, Nanoseconds, u32)) -> String| parts.iter().map(of).collect();
    let each = |part: &(String, Nanoseconds, u32)| formatting.revolutions(part.1, part.2);
    vec![
        Block::Heading(format!(
            "Formatting {}: {} tracks",
            formatting.what, formatting.tracks
        )),
        Block::Grid(Grid {
            key: Column::words("work", column(&|part| part.0.clone())),
            groups: vec![Group::of(
                "",
                vec![
                    Column::figures("minutes", column(&|part| format!("{:.1}", minutes(part.1)))),
                    Column::figures(
                        "revolutions of each track",
                        column(&|part| format!("{:.2}", each(part))),
                    ),
                ],
            )],
        }),
    ]
}

pub(super) fn json(formatting: &Formatting) -> String {
    pretty(formatting)
}

/// Formats the durations as CSV, one line for each of formatting, verifying and the total.
pub(super) fn csv(formatting: &Formatting) -> String {
    let record = |(name, span, passes): &(String, Nanoseconds, u32)| -> Vec<Field> {
        vec![
            ("work", name.clone()),
            ("minutes", number(minutes(*span))),
            (
                "revolutions_per_track",
                number(formatting.revolutions(*span, *passes)),
            ),
        ]
    };
    let records: Vec<Vec<Field>> = formatting_parts(formatting).iter().map(record).collect();
    format_records(&records)
}

/// Quotes a word of a command line for a shell, where necessary.
pub(super) fn shell_word(word: &str) -> String {
    let plain = |one: char| one.is_ascii_alphanumeric() || "-_./=:,+@%".contains(one);
    if !word.is_empty() && word.chars().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_those_of_a_shell() {
        assert_eq!(shell_word("--set"), "--set");
        assert_eq!(shell_word("a b"), "'a b'");
        assert_eq!(shell_word("it's"), r"'it'\''s'");
        assert_eq!(shell_word(""), "''");
    }
}

//! Durations of formatting and verifying, as a table, JSON and CSV.

use super::csv::{CsvField, format_number, format_records};
use super::document::{Column, ColumnGroup, DocumentBlock, Grid};
use super::json::render_pretty;
use crate::formatting::FormattingTime;
use diskperf_timeline::Nanoseconds;

struct FormattingPart {
    name: String,
    duration: Nanoseconds,
    pass_count: u32,
}

fn list_formatting_parts(formatting: &FormattingTime) -> [FormattingPart; 3] {
    let passes = formatting.verify_pass_count;
    [
        FormattingPart {
            name: "format".to_owned(),
            duration: formatting.format_time,
            pass_count: 1,
        },
        FormattingPart {
            name: match passes {
                1 => "1 verify pass".to_owned(),
                passes => format!("{passes} verify passes"),
            },
            duration: formatting.verify_time(),
            pass_count: passes,
        },
        FormattingPart {
            name: "both".to_owned(),
            duration: formatting.total_time(),
            pass_count: 1 + passes,
        },
    ]
}

fn to_minutes(span: Nanoseconds) -> f64 {
    span.0 as f64 / 60e9
}

pub(super) fn build_blocks(formatting: &FormattingTime) -> Vec<DocumentBlock> {
    let parts = list_formatting_parts(formatting);
    let column = |of: &dyn Fn(&FormattingPart) -> String| parts.iter().map(of).collect();
    let each =
        |part: &FormattingPart| formatting.revolutions_per_track(part.duration, part.pass_count);
    vec![
        DocumentBlock::Heading(format!(
            "Formatting {}: {} tracks",
            formatting.drive_name, formatting.track_count
        )),
        DocumentBlock::Grid(Grid {
            key_column: Column::left_aligned("work", column(&|part| part.name.clone())),
            groups: vec![ColumnGroup::new(
                "",
                vec![
                    Column::right_aligned(
                        "minutes",
                        column(&|part| format!("{:.1}", to_minutes(part.duration))),
                    ),
                    Column::right_aligned(
                        "revolutions of each track",
                        column(&|part| format!("{:.2}", each(part))),
                    ),
                ],
            )],
        }),
    ]
}

pub(super) fn render_json(formatting: &FormattingTime) -> String {
    render_pretty(formatting)
}

/// Formats the durations as CSV, one line for each of formatting, verifying and the total.
pub(super) fn render_csv(formatting: &FormattingTime) -> String {
    let record = |part: &FormattingPart| -> Vec<CsvField> {
        let revolutions = formatting.revolutions_per_track(part.duration, part.pass_count);
        vec![
            ("work", part.name.clone()),
            ("minutes", format_number(to_minutes(part.duration))),
            ("revolutions_per_track", format_number(revolutions)),
        ]
    };
    let records: Vec<Vec<CsvField>> = list_formatting_parts(formatting)
        .iter()
        .map(record)
        .collect();
    format_records(&records)
}

/// Quotes a word of a command line for a shell, where necessary.
pub(super) fn quote_shell_word(word: &str) -> String {
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
        assert_eq!(quote_shell_word("--set"), "--set");
        assert_eq!(quote_shell_word("a b"), "'a b'");
        assert_eq!(quote_shell_word("it's"), r"'it'\''s'");
        assert_eq!(quote_shell_word(""), "''");
    }
}

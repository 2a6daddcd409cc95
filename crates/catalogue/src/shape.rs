//! Declared types of values, and their checks.

use std::ops::RangeInclusive;

use super::names;
use super::parameter::key_unit;
use super::setting::SETTINGS_TEXT_NAME;
use super::value::{Value, ValueContent};
use diskperf_diagnostics::Problem;

/// Declared type and range of a key's value.
#[derive(Debug, Clone)]
pub(crate) enum ValueKind {
    Integer(RangeInclusive<u64>),
    Number(RangeInclusive<f64>),
    Integers(RangeInclusive<u64>),
    IntegerPairs([RangeInclusive<u64>; 2]),
    /// Table columns with their names and ranges.
    NumberRows(Vec<(&'static str, RangeInclusive<f64>)>),
    Boolean,
    Choice(Vec<String>),
    Text,
}

/// Value that was read for a key, by its declared type.
#[derive(Debug, Clone)]
pub(crate) enum ParsedValue {
    Integer(u64),
    Number(f64),
    Integers(Vec<u64>),
    IntegerPairs(Vec<[u64; 2]>),
    NumberRows(Vec<Vec<f64>>),
    Boolean(bool),
    /// Choice, as an index into the list of choices.
    ChoiceIndex(usize),
    Text(String),
}

impl ValueKind {
    /// Describes the allowed values as the end of a sentence.
    pub(crate) fn describe_allowed(&self, key: &str) -> String {
        let unit = match key_unit(key) {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        match self {
            ValueKind::Integer(range) => {
                format!("a whole number from {}{unit}", format_range(range))
            }
            ValueKind::Number(range) => format!("a number from {}{unit}", format_range(range)),
            ValueKind::Integers(range) => {
                format!(
                    "a list of whole numbers, each from {}{unit}",
                    format_range(range)
                )
            }
            ValueKind::IntegerPairs([first, second]) => format!(
                "a list of pairs of whole numbers, the first from {}, the second from {}",
                format_range(first),
                format_range(second)
            ),
            ValueKind::NumberRows(columns) => {
                let columns: Vec<String> = columns
                    .iter()
                    .map(|(name, range)| format!("{name} from {}", format_range(range)))
                    .collect();
                format!("a list of rows of numbers [{}]", columns.join(", "))
            }
            ValueKind::Boolean => "true or false".to_string(),
            ValueKind::Choice(choices) => {
                format!(
                    "one of {}",
                    names::format_list(choices.iter().map(String::as_str))
                )
            }
            ValueKind::Text => "text".to_string(),
        }
    }

    /// Formats the range for lists, such as `1..=100` or `fifo | nearest_names`.
    pub(crate) fn format_allowed_range(&self) -> String {
        match self {
            ValueKind::Integer(range) | ValueKind::Integers(range) => format_range(range),
            ValueKind::Number(range) => format_range(range),
            ValueKind::IntegerPairs([first, second]) => {
                format!("[{}, {}]", format_range(first), format_range(second))
            }
            ValueKind::NumberRows(columns) => {
                let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
                format!("[{}]", names.join(", "))
            }
            ValueKind::Boolean => "true | false".to_string(),
            ValueKind::Choice(choices) => choices.join(" | "),
            ValueKind::Text => "text".to_string(),
        }
    }

    /// Reads a value of this type, or returns the reason why it is invalid.
    pub(crate) fn parse(&self, key: &str, value: &Value) -> Result<ParsedValue, Problem> {
        let mismatch = || self.mismatch_problem(key, value);
        match self {
            ValueKind::Integer(range) => self
                .parse_integer(key, value, range)
                .map(ParsedValue::Integer),
            ValueKind::Number(range) => self
                .parse_number(key, value, range)
                .map(ParsedValue::Number),
            ValueKind::Integers(range) => {
                let integers: Result<_, _> = as_list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.parse_integer(key, item, range))
                    .collect();
                integers.map(ParsedValue::Integers)
            }
            ValueKind::IntegerPairs(ranges) => {
                let pairs: Result<_, _> = as_list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.parse_pair(key, item, ranges))
                    .collect();
                pairs.map(ParsedValue::IntegerPairs)
            }
            ValueKind::NumberRows(columns) => {
                let rows: Result<_, _> = as_list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.parse_row(key, item, columns))
                    .collect();
                rows.map(ParsedValue::NumberRows)
            }
            ValueKind::Boolean => match value.value_content {
                ValueContent::Boolean(flag) => Ok(ParsedValue::Boolean(flag)),
                _ => Err(mismatch()),
            },
            ValueKind::Choice(choices) => {
                let chosen = as_text(value).ok_or_else(mismatch)?;
                match choices.iter().position(|choice| *choice == chosen) {
                    Some(index) => Ok(ParsedValue::ChoiceIndex(index)),
                    None => Err(self.unknown_choice_problem(key, value, &chosen, choices)),
                }
            }
            ValueKind::Text => as_text(value).map(ParsedValue::Text).ok_or_else(mismatch),
        }
    }

    fn parse_integer(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, Problem> {
        let ValueContent::Integer(integer) = value.value_content else {
            return Err(self.mismatch_problem(key, value));
        };
        u64::try_from(integer)
            .ok()
            .filter(|integer| range.contains(integer))
            .ok_or_else(|| self.out_of_range_problem(key, value))
    }

    fn parse_number(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<f64>,
    ) -> Result<f64, Problem> {
        let number = match value.value_content {
            // No range reaches where this would round.
            ValueContent::Integer(integer) => integer as f64,
            ValueContent::Float(number) => number,
            _ => return Err(self.mismatch_problem(key, value)),
        };
        // False for not-a-number, too.
        match range.contains(&number) {
            true => Ok(number),
            false => Err(self.out_of_range_problem(key, value)),
        }
    }

    fn parse_row(
        &self,
        key: &str,
        value: &Value,
        columns: &[(&'static str, RangeInclusive<f64>)],
    ) -> Result<Vec<f64>, Problem> {
        match as_list(value) {
            Some(items) if items.len() == columns.len() => items
                .iter()
                .zip(columns)
                .map(|(item, (_, range))| self.parse_number(key, item, range))
                .collect(),
            _ => Err(self.mismatch_problem(key, value)),
        }
    }

    fn parse_pair(
        &self,
        key: &str,
        value: &Value,
        ranges: &[RangeInclusive<u64>; 2],
    ) -> Result<[u64; 2], Problem> {
        match as_list(value) {
            Some([first, second]) => Ok([
                self.parse_integer(key, first, &ranges[0])?,
                self.parse_integer(key, second, &ranges[1])?,
            ]),
            _ => Err(self.mismatch_problem(key, value)),
        }
    }

    fn mismatch_problem(&self, key: &str, value: &Value) -> Problem {
        let problem = Problem::error(format!(
            "`{key}` cannot be {}",
            value.value_content.kind_name()
        ))
        .at(
            &value.span,
            format!("must be {}", self.describe_allowed(key)),
        );
        let unit = key_unit(key);
        if let (ValueContent::Text(written), ValueKind::Integer(_) | ValueKind::Number(_)) =
            (&value.value_content, self)
            && !unit.is_empty()
            && parse_leading_number(written).is_some()
        {
            return problem.help(format!(
                "write the number alone: `{key}` is in {unit}, as its name says"
            ));
        }
        problem
    }

    fn out_of_range_problem(&self, key: &str, value: &Value) -> Problem {
        let written = shorten(value.span.as_str());
        Problem::error(format!("`{key}` is out of range: {written}")).at(
            &value.span,
            format!("must be {}", self.describe_allowed(key)),
        )
    }

    fn unknown_choice_problem(
        &self,
        key: &str,
        value: &Value,
        chosen: &str,
        choices: &[String],
    ) -> Problem {
        let near = names::find_similar_names(chosen, choices.iter().map(String::as_str));
        let problem = Problem::error(format!("`{key}` cannot be `{}`", shorten(chosen))).at(
            &value.span,
            format!("must be {}", self.describe_allowed(key)),
        );
        match near.first() {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    }
}

fn as_list(value: &Value) -> Option<&[Value]> {
    match &value.value_content {
        ValueContent::List(items) => Some(items),
        _ => None,
    }
}

/// Returns a value as text. A setting needs no quotes, so a date or a number also counts as text
/// there.
fn as_text(value: &Value) -> Option<String> {
    match &value.value_content {
        ValueContent::Text(text) => Some(text.clone()),
        ValueContent::Integer(_) | ValueContent::Float(_)
            if value.span.file() == SETTINGS_TEXT_NAME =>
        {
            Some(value.span.as_str().to_string())
        }
        _ => None,
    }
}

fn parse_leading_number(text: &str) -> Option<f64> {
    let number = text.trim_start();
    let end = number
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(number.len());
    number[..end].parse().ok()
}

fn shorten(written: &str) -> String {
    const LENGTH_MAX: usize = 40;
    if written.chars().count() <= LENGTH_MAX {
        written.to_string()
    } else {
        format!(
            "{}...",
            written.chars().take(LENGTH_MAX).collect::<String>()
        )
    }
}

fn format_range<T: std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}

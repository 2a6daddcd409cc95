//! Declared types of values, and their checks.

use std::ops::RangeInclusive;

use super::names;
use super::parameter::unit_of;
use super::setting::SETTING_NAME;
use super::value::{Content, Value};
use diskperf_diagnostics::Problem;

/// Declared type and range of a key's value.
#[derive(Debug, Clone)]
pub(crate) enum ValueShape {
    Integer(RangeInclusive<u64>),
    Number(RangeInclusive<f64>),
    Integers(RangeInclusive<u64>),
    Pairs([RangeInclusive<u64>; 2]),
    /// Table columns with their names and ranges.
    Rows(Vec<(&'static str, RangeInclusive<f64>)>),
    Flag,
    ComponentChoice(Vec<String>),
    Text,
}

/// Value that was read for a key, by its declared type.
#[derive(Debug, Clone)]
pub(crate) enum ParsedValue {
    Integer(u64),
    Number(f64),
    Integers(Vec<u64>),
    Pairs(Vec<[u64; 2]>),
    Rows(Vec<Vec<f64>>),
    Flag(bool),
    /// Choice, as an index into the list of choices.
    ComponentChoice(usize),
    Text(String),
}

impl ValueShape {
    /// Describes the allowed values as the end of a sentence.
    pub(crate) fn allowed(&self, key: &str) -> String {
        let unit = match unit_of(key) {
            "" => String::new(),
            unit => format!(" {unit}"),
        };
        match self {
            ValueShape::Integer(range) => {
                format!("a whole number from {}{unit}", format_range(range))
            }
            ValueShape::Number(range) => format!("a number from {}{unit}", format_range(range)),
            ValueShape::Integers(range) => {
                format!(
                    "a list of whole numbers, each from {}{unit}",
                    format_range(range)
                )
            }
            ValueShape::Pairs([first, second]) => format!(
                "a list of pairs of whole numbers, the first from {}, the second from {}",
                format_range(first),
                format_range(second)
            ),
            ValueShape::Rows(columns) => {
                let columns: Vec<String> = columns
                    .iter()
                    .map(|(name, range)| format!("{name} from {}", format_range(range)))
                    .collect();
                format!("a list of rows of numbers [{}]", columns.join(", "))
            }
            ValueShape::Flag => "true or false".to_string(),
            ValueShape::ComponentChoice(choices) => {
                format!(
                    "one of {}",
                    names::list_names(choices.iter().map(String::as_str))
                )
            }
            ValueShape::Text => "text".to_string(),
        }
    }

    /// Formats the range for lists, such as `1..=100` or `fifo | nearest_names`.
    pub(crate) fn range(&self) -> String {
        match self {
            ValueShape::Integer(range) | ValueShape::Integers(range) => format_range(range),
            ValueShape::Number(range) => format_range(range),
            ValueShape::Pairs([first, second]) => {
                format!("[{}, {}]", format_range(first), format_range(second))
            }
            ValueShape::Rows(columns) => {
                let names: Vec<&str> = columns.iter().map(|(name, _)| *name).collect();
                format!("[{}]", names.join(", "))
            }
            ValueShape::Flag => "true | false".to_string(),
            ValueShape::ComponentChoice(choices) => choices.join(" | "),
            ValueShape::Text => "text".to_string(),
        }
    }

    /// Reads a value of this type, or returns the reason why it is invalid.
    pub(crate) fn read(&self, key: &str, value: &Value) -> Result<ParsedValue, Problem> {
        let mismatch = || self.mismatch(key, value);
        match self {
            ValueShape::Integer(range) => self.integer(key, value, range).map(ParsedValue::Integer),
            ValueShape::Number(range) => self.number(key, value, range).map(ParsedValue::Number),
            ValueShape::Integers(range) => {
                let integers: Result<_, _> = list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.integer(key, item, range))
                    .collect();
                integers.map(ParsedValue::Integers)
            }
            ValueShape::Pairs(ranges) => {
                let pairs: Result<_, _> = list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.pair(key, item, ranges))
                    .collect();
                pairs.map(ParsedValue::Pairs)
            }
            ValueShape::Rows(columns) => {
                let rows: Result<_, _> = list(value)
                    .ok_or_else(mismatch)?
                    .iter()
                    .map(|item| self.row(key, item, columns))
                    .collect();
                rows.map(ParsedValue::Rows)
            }
            ValueShape::Flag => match value.content {
                Content::Flag(flag) => Ok(ParsedValue::Flag(flag)),
                _ => Err(mismatch()),
            },
            ValueShape::ComponentChoice(choices) => {
                let chosen = text(value).ok_or_else(mismatch)?;
                match choices.iter().position(|choice| *choice == chosen) {
                    Some(index) => Ok(ParsedValue::ComponentChoice(index)),
                    None => Err(self.unknown_choice(key, value, &chosen, choices)),
                }
            }
            ValueShape::Text => text(value).map(ParsedValue::Text).ok_or_else(mismatch),
        }
    }

    fn integer(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<u64>,
    ) -> Result<u64, Problem> {
        let Content::Integer(integer) = value.content else {
            return Err(self.mismatch(key, value));
        };
        u64::try_from(integer)
            .ok()
            .filter(|integer| range.contains(integer))
            .ok_or_else(|| self.out_of_range(key, value))
    }

    fn number(
        &self,
        key: &str,
        value: &Value,
        range: &RangeInclusive<f64>,
    ) -> Result<f64, Problem> {
        let number = match value.content {
            // No range reaches where this would round.
            Content::Integer(integer) => integer as f64,
            Content::Number(number) => number,
            _ => return Err(self.mismatch(key, value)),
        };
        // False for not-a-number, too.
        match range.contains(&number) {
            true => Ok(number),
            false => Err(self.out_of_range(key, value)),
        }
    }

    fn row(
        &self,
        key: &str,
        value: &Value,
        columns: &[(&'static str, RangeInclusive<f64>)],
    ) -> Result<Vec<f64>, Problem> {
        match list(value) {
            Some(items) if items.len() == columns.len() => items
                .iter()
                .zip(columns)
                .map(|(item, (_, range))| self.number(key, item, range))
                .collect(),
            _ => Err(self.mismatch(key, value)),
        }
    }

    fn pair(
        &self,
        key: &str,
        value: &Value,
        ranges: &[RangeInclusive<u64>; 2],
    ) -> Result<[u64; 2], Problem> {
        match list(value) {
            Some([first, second]) => Ok([
                self.integer(key, first, &ranges[0])?,
                self.integer(key, second, &ranges[1])?,
            ]),
            _ => Err(self.mismatch(key, value)),
        }
    }

    fn mismatch(&self, key: &str, value: &Value) -> Problem {
        let problem = Problem::error(format!("`{key}` cannot be {}", value.content.kind()))
            .at(&value.place, format!("must be {}", self.allowed(key)));
        let unit = unit_of(key);
        if let (Content::Text(written), ValueShape::Integer(_) | ValueShape::Number(_)) =
            (&value.content, self)
            && !unit.is_empty()
            && leading_number(written).is_some()
        {
            return problem.help(format!(
                "write the number alone: `{key}` is in {unit}, as its name says"
            ));
        }
        problem
    }

    fn out_of_range(&self, key: &str, value: &Value) -> Problem {
        let written = shorten(value.place.as_str());
        Problem::error(format!("`{key}` is out of range: {written}"))
            .at(&value.place, format!("must be {}", self.allowed(key)))
    }

    fn unknown_choice(
        &self,
        key: &str,
        value: &Value,
        chosen: &str,
        choices: &[String],
    ) -> Problem {
        let near = names::nearest_names(chosen, choices.iter().map(String::as_str));
        let problem = Problem::error(format!("`{key}` cannot be `{}`", shorten(chosen)))
            .at(&value.place, format!("must be {}", self.allowed(key)));
        match near.first() {
            Some(near) => problem.help(format!("did you mean `{near}`?")),
            None => problem,
        }
    }
}

fn list(value: &Value) -> Option<&[Value]> {
    match &value.content {
        Content::List(items) => Some(items),
        _ => None,
    }
}

/// Returns a value as text. A setting needs no quotes, so a date or a number also counts as text
/// there.
fn text(value: &Value) -> Option<String> {
    match &value.content {
        Content::Text(text) => Some(text.clone()),
        Content::Integer(_) | Content::Number(_) if value.place.file() == SETTING_NAME => {
            Some(value.place.as_str().to_string())
        }
        _ => None,
    }
}

fn leading_number(text: &str) -> Option<f64> {
    let number = text.trim_start();
    let end = number
        .find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-'))
        .unwrap_or(number.len());
    number[..end].parse().ok()
}

fn shorten(written: &str) -> String {
    const LONGEST: usize = 40;
    if written.chars().count() <= LONGEST {
        written.to_string()
    } else {
        format!("{}...", written.chars().take(LONGEST).collect::<String>())
    }
}

fn format_range<T: std::fmt::Display>(range: &RangeInclusive<T>) -> String {
    format!("{} to {}", range.start(), range.end())
}

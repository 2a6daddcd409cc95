//! Value of one option, with readers for numbers, lists and choices.

use std::cell::RefCell;
use std::ops::{Bound, Range, RangeBounds};

use crate::expression::{self, ExpressionGrammar};
use crate::number::{self, SuffixSurprise, Unit, UnitBase};
use crate::reader::shorten_text;
use diskperf_diagnostics::Problem;
use diskperf_diagnostics::SourceSpan;

/// Option as written in the job file: its key, and its value after substitution.
#[derive(Debug)]
pub(crate) struct WrittenOption<'w> {
    /// fio's name of the option, even if the job file uses an alias.
    pub(crate) key: &'w str,
    pub(crate) key_place: &'w SourceSpan,
    /// Value after substitution; `None` for an option without a value.
    pub(crate) text: Option<&'w str>,
    pub(crate) place: &'w SourceSpan,
    /// Whether the value equals the text of the file, so that error markers can point into it.
    pub(crate) is_exact: bool,
    pub(crate) unit_base: UnitBase,
    pub(crate) warnings: &'w RefCell<Vec<Problem>>,
}

/// Value of an option, or a part of such a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OptionValue<'w> {
    written: &'w WrittenOption<'w>,
    text: &'w str,
    /// Byte offset of this part in the option's value.
    start: usize,
}

/// Unit of a time without a suffix.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultTimeUnit {
    Seconds,
    Microseconds,
}

impl DefaultTimeUnit {
    fn unit_us(self) -> u64 {
        match self {
            DefaultTimeUnit::Seconds => 1_000_000,
            DefaultTimeUnit::Microseconds => 1,
        }
    }
}

impl<'w> WrittenOption<'w> {
    /// Returns the value of the option.
    ///
    /// # Errors
    ///
    /// An option without a value.
    pub(crate) fn value(&'w self) -> Result<OptionValue<'w>, Problem> {
        match self.text {
            Some(text) if !text.is_empty() => Ok(OptionValue {
                written: self,
                text,
                start: 0,
            }),
            Some(_) => Err(Problem::error(format!("`{}=` has no value", self.key))
                .at(self.key_place, "fio drops the job")
                .help("write the value, or remove the line")),
            None => Err(Problem::error(format!("`{}` needs a value", self.key))
                .at(self.key_place, "fio drops the job")
                .help(format!("write `{}=VALUE`", self.key))),
        }
    }

    /// Reads a flag: an option without a value is on, and `=0` is off.
    pub(crate) fn parse_flag(&'w self) -> Result<bool, Problem> {
        if self.text.is_none() {
            return Ok(true);
        }
        let value = self.value()?;
        value.parse_zero_or_one("takes it as 1")
    }
}

impl<'w> OptionValue<'w> {
    pub(crate) fn text(&self) -> &'w str {
        self.text
    }

    pub(crate) fn key(&self) -> &'w str {
        self.written.key
    }

    /// Returns the option value without leading and trailing blanks.
    pub(crate) fn trimmed(&self) -> OptionValue<'w> {
        let start = self.text.len() - self.text.trim_start().len();
        self.subvalue(start..self.text.len()).trimmed_end()
    }

    /// Returns the option value without trailing blanks.
    pub(crate) fn trimmed_end(&self) -> OptionValue<'w> {
        self.subvalue(0..self.text.trim_end().len())
    }

    pub(crate) fn subvalue(&self, part: Range<usize>) -> OptionValue<'w> {
        OptionValue {
            written: self.written,
            text: &self.text[part.clone()],
            start: self.start + part.start,
        }
    }

    /// Splits the value at separators. Separators inside parentheses do not count.
    pub(crate) fn split(&self, separators: &[char]) -> Vec<OptionValue<'w>> {
        let (mut parts, mut start, mut depth) = (Vec::new(), 0, 0usize);
        for (at, letter) in self.text.char_indices() {
            match letter {
                '(' => depth += 1,
                ')' => depth = depth.saturating_sub(1),
                _ if depth == 0 && separators.contains(&letter) => {
                    parts.push(self.subvalue(start..at));
                    start = at + letter.len_utf8();
                }
                _ => {}
            }
        }
        parts.push(self.subvalue(start..self.text.len()));
        parts
    }

    /// Returns the text before and after the first of the separators.
    pub(crate) fn split_once(
        &self,
        separators: &[char],
    ) -> (OptionValue<'w>, Option<OptionValue<'w>>) {
        let first = self.split(separators)[0];
        if first.text.len() == self.text.len() {
            return (first, None);
        }
        // A separator is a byte.
        let rest = self.subvalue(first.text.len() + 1..self.text.len());
        (first, Some(rest))
    }

    pub(crate) fn error(&self, title: impl Into<String>, label: impl Into<String>) -> Problem {
        Problem::error(title).at(&self.place(), label)
    }

    pub(crate) fn warn(&self, title: impl Into<String>, label: impl Into<String>) {
        let warning = Problem::warning(title).at(&self.place(), label);
        self.written.warnings.borrow_mut().push(warning);
    }

    fn place(&self) -> SourceSpan {
        if self.written.is_exact {
            let end = self.start + self.text.len();
            self.written.place.subspan(self.start..end)
        } else {
            self.written.place.clone()
        }
    }

    fn bytes_unit(&self) -> Unit {
        Unit::Bytes {
            base: self.written.unit_base,
        }
    }

    /// Reads a number of bytes, or a plain count. fio accepts the suffix `k` for both.
    pub(crate) fn parse_number_in(&self, range: impl RangeBounds<u64>) -> Result<u64, Problem> {
        let value = self.parse_integer(self.bytes_unit())?;
        self.check_range(value, range, |value| value.to_string())
    }

    /// Reads a count that fio stores in 32 bits.
    pub(crate) fn parse_count(&self, range: impl RangeBounds<u32>) -> Result<u32, Problem> {
        let widened = (
            range.start_bound().map(|&bound| u64::from(bound)),
            match range.end_bound() {
                Bound::Unbounded => Bound::Included(u64::from(u32::MAX)),
                bound => bound.map(|&bound| u64::from(bound)),
            },
        );
        let value = self
            .parse_number_in(widened)
            .map_err(|problem| self.explain_32_bits(problem))?;
        Ok(u32::try_from(value).expect("bounded to 32 bits"))
    }

    /// Adds to an error the number that fio would store for a count that is too large.
    fn explain_32_bits(&self, problem: Problem) -> Problem {
        match number::parse_strict(self.text, self.bytes_unit()) {
            Some(number) if number.value > i128::from(u32::MAX) => {
                let kept = number.value % (i128::from(u32::MAX) + 1);
                problem.help(format!("fio keeps 32 bits of it, which are {kept}"))
            }
            _ => problem,
        }
    }

    /// Reads a time and returns it in microseconds.
    pub(crate) fn parse_time_us(&self, bare: DefaultTimeUnit) -> Result<u64, Problem> {
        let value = self.parse_integer(Unit::Time {
            default_us: bare.unit_us(),
        })?;
        self.check_range(value, .., |value| format!("{value} us"))
    }

    pub(crate) fn parse_signed(&self) -> Result<i64, Problem> {
        let value = self.parse_integer(self.bytes_unit())?;
        Ok(i64::try_from(value).expect("a number is in 64 bits"))
    }

    fn check_range(
        &self,
        value: i128,
        range: impl RangeBounds<u64>,
        show: impl Fn(u64) -> String,
    ) -> Result<u64, Problem> {
        let fits = u64::try_from(value)
            .ok()
            .filter(|value| range.contains(value));
        fits.ok_or_else(|| {
            let low = match range.start_bound() {
                Bound::Included(&low) | Bound::Excluded(&low) => low,
                Bound::Unbounded => 0,
            };
            let allowed = match range.end_bound() {
                Bound::Included(&high) | Bound::Excluded(&high) => {
                    format!("from {} to {}", show(low), show(high))
                }
                Bound::Unbounded => format!("at least {}", show(low)),
            };
            let title = format!("{} is {allowed}", self.written.key);
            self.error(title, format!("this is {value}"))
        })
    }

    /// Reads a whole number or an arithmetic expression.
    fn parse_integer(&self, unit: Unit) -> Result<i128, Problem> {
        if self.text.starts_with('(') {
            return self.parse_expression(unit);
        }
        let number = number::parse_strict(self.text, unit);
        if let Some(number) = number.or_else(|| number::parse_with_blanks(self.text, unit)) {
            self.warn_of_surprise(number, unit);
            return Ok(number.value);
        }
        Err(self.not_whole_problem(unit))
    }

    fn parse_expression(&self, unit: Unit) -> Result<i128, Problem> {
        let value =
            expression::evaluate(self.text, ExpressionGrammar::Fio(unit)).map_err(|fault| {
                let title = format!("`{}` has no value", shorten_text(self.text));
                self.subvalue(fault.span).error(title, fault.message)
            })?;
        self.warn(
            "not every fio works out an expression",
            format!("{value}; Debian's fio is built without this and drops the job"),
        );
        Ok(value)
    }

    fn warn_of_surprise(&self, number: number::Number, unit: Unit) {
        let Some(surprise) = number.suffix_surprise else {
            return;
        };
        let text = shorten_text(self.text);
        let written = self.text.trim();
        let digits = written.trim_end_matches(|letter: char| letter.is_ascii_alphabetic());
        let letter = &written[digits.len()..digits.len() + 1];
        let title = match surprise {
            SuffixSurprise::BinaryUnit => format!("fio reads `{text}` as a power of 1000"),
            SuffixSurprise::KiWithoutB => format!("fio reads `{text}` as `{digits}{letter}`"),
        };
        let power = number::parse_strict(&format!("{digits}{letter}"), unit);
        let power = power.map_or(String::new(), |number| {
            format!("; `{digits}{letter}` is {}", number.value)
        });
        self.warn(title, format!("{} bytes{power}", number.value));
    }

    /// Creates the error for a text that is not a number, with the number that fio would read from
    /// it.
    fn not_whole_problem(&self, unit: Unit) -> Problem {
        let text = shorten_text(self.text);
        let title = match unit {
            _ if self.text.is_empty() => format!("{} has an empty part", self.written.key),
            Unit::Bytes { .. } => format!("`{text}` is not a number"),
            Unit::Time { .. } => format!("`{text}` is not a time"),
        };
        let label = match (number::parse_as_fio(self.text, unit), unit) {
            // fio keeps a percentage as a number from the top down, for any option.
            (Some(value), Unit::Bytes { .. }) if self.text.ends_with('%') => {
                let value = u64::MAX.wrapping_sub(value as u64);
                format!("fio reads {value} and says nothing")
            }
            (Some(value), Unit::Bytes { .. }) => format!("fio reads {value} and says nothing"),
            (Some(value), Unit::Time { .. }) => format!("fio reads {value} us and says nothing"),
            (None, _) => "fio drops the job".to_owned(),
        };
        let help = match unit {
            Unit::Bytes { .. } => "write a whole number, with k, m, g, t or p directly after it",
            Unit::Time { .. } => {
                "write a whole number, with us, ms, s, m, h or d directly after it"
            }
        };
        let trimmed = self.text.trim();
        if trimmed != self.text && number::parse_strict(trimmed, unit).is_some() {
            let key = self.written.key;
            let whole = self.written.text.unwrap_or(trimmed);
            let whole: String = whole.split([' ', '\t']).collect();
            return self
                .error("a blank before a value", label)
                .help(format!("write `{key}={whole}` without blanks"));
        }
        self.error(title, label).help(help)
    }

    /// Reads a flag that must be 0 or 1.
    pub(crate) fn parse_boolean(&self) -> Result<bool, Problem> {
        self.parse_zero_or_one("drops the job")
    }

    /// Reads a flag that must be 0 or 1. The text `beyond` describes what fio does with a number
    /// above 1; fio takes a negative number as on.
    fn parse_zero_or_one(&self, beyond: &str) -> Result<bool, Problem> {
        match self.text.trim() {
            "0" | "0x0" => return Ok(false),
            "1" | "0x1" => return Ok(true),
            _ => {}
        }
        let digits = self.text.trim_end_matches('z');
        let label = match number::parse_as_fio(digits, self.bytes_unit()) {
            Some(value) if value > 1 => format!("fio reads {value} and {beyond}"),
            Some(value) => format!("fio reads {value} and says nothing"),
            None => "fio drops the job".to_owned(),
        };
        let key = self.written.key;
        let help = format!("write `{key}=0` or `{key}=1`");
        Err(self.error(format!("{key} is 0 or 1"), label).help(help))
    }

    pub(crate) fn parse_float(&self, range: impl RangeBounds<f64>) -> Result<f64, Problem> {
        // Rust reads `inf`, `nan` and exponents too; people who write them do not mean it.
        let plain = |byte: u8| byte.is_ascii_digit() || b".-".contains(&byte);
        // fio skips blanks on both sides of it.
        let text = self.text.trim();
        let value = text.bytes().all(plain).then(|| text.parse().ok());
        let Some(value) = value.flatten() else {
            let title = format!("`{}` is not a number", shorten_text(self.text));
            let help = "write digits, with a point before a fraction";
            return Err(self.error(title, "for instance 99.9").help(help));
        };
        if range.contains(&value) {
            return Ok(value);
        }
        let title = format!("{} is out of range", self.written.key);
        Err(self.error(title, format!("this is {value}")))
    }

    /// Reads the decimal number at the start of the value, as strtod(3) does, and ignores the rest.
    pub(crate) fn parse_leading_float(&self) -> Option<f64> {
        let text = self.text.trim_start();
        let is_digit = |byte: u8| byte.is_ascii_digit() || b".-".contains(&byte);
        let end = text.bytes().position(|byte| !is_digit(byte));
        text[..end.unwrap_or(text.len())].parse().ok()
    }

    /// Reads one of the listed words and returns its meaning.
    pub(crate) fn parse_choice<T: Copy>(&self, choices: &[(&str, T)]) -> Result<T, Problem> {
        let found = choices.iter().find(|(word, _)| *word == self.text);
        if let Some((_, choice)) = found {
            return Ok(*choice);
        }
        let words = choices.iter().map(|(word, _)| *word);
        let title = format!("{} is not `{}`", self.written.key, shorten_text(self.text));
        let list: Vec<&str> = words.clone().collect();
        let problem = match find_nearest_name(self.text, words) {
            Some(near) => self.error(title, format!("is `{near}` meant?")),
            None => self.error(title, "not known here"),
        };
        Err(problem.help(format!("it is one of {}", list.join(", "))))
    }

    /// Returns the only part of a value, or an error if more parts follow. fio silently ignores
    /// further parts.
    pub(crate) fn require_single(&self) -> Result<OptionValue<'w>, Problem> {
        let parts = self.split(&[',']);
        if parts.len() == 1 {
            return Ok(*self);
        }
        let title = format!("{} takes one value", self.written.key);
        let first = shorten_text(parts[0].text);
        Err(self.error(title, format!("fio takes `{first}` and says nothing")))
    }

    /// Splits a value into parts for reads, writes and trims. The last part also applies to missing
    /// ones, and an empty part keeps the default.
    pub(crate) fn split_per_direction(&self) -> Result<Vec<OptionValue<'w>>, Problem> {
        let parts = self.split(&[',']);
        if parts.len() > 3 {
            let title = format!("{} takes at most three values", self.written.key);
            return Err(parts[3].error(title, "reads, writes, trims, and then?"));
        }
        Ok(parts)
    }

    /// Splits a list of numbers at commas. fio accepts `:` and `-` as separators, too.
    pub(crate) fn split_numbers(&self) -> Result<Vec<OptionValue<'w>>, Problem> {
        let parts = self.split_per_direction()?;
        let odd = parts.iter().find(|part| {
            let text = part.text.strip_prefix('-').unwrap_or(part.text);
            !text.starts_with('(') && text.contains([':', '-'])
        });
        let Some(odd) = odd else { return Ok(parts) };
        let title = format!("{} is a comma-separated list", self.written.key);
        let listed = odd.text.replace([':', '-'], ",");
        let label = format!("fio reads `{}`", shorten_text(&listed));
        let pair = self.split(&[':', '-']);
        let is_pair = parts.len() == 1 && pair.len() == 2;
        if self.written.key == "bs" && is_pair && !pair.iter().any(|part| part.text.is_empty()) {
            self.warn("bs is a list for reads and writes, not a range", label);
            return Ok(pair);
        }
        let problem = odd.error(title, label);
        Err(match self.written.key {
            "bs" => problem.help("use commas, or `bsrange=` for a range"),
            _ => problem.help("use commas"),
        })
    }
}

/// Returns the known name that is most similar to the given one, if any is similar enough.
fn find_nearest_name<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    known
        .into_iter()
        .map(|candidate| (strsim::jaro_winkler(name, candidate), candidate))
        .filter(|(similarity, _)| *similarity > 0.7)
        .max_by(|(left, _), (right, _)| left.total_cmp(right))
        .map(|(_, candidate)| candidate)
}

//! Arithmetic expressions in option values, such as `(2m+4k)` or terms with `$ncpus`.
//!
//! fio has two calculators. It evaluates a value in parentheses itself, if it was built with lex:
//! numbers with suffixes, `+ - * / % ^`, and a suffix after a parenthesis. It passes a value with
//! `$pagesize`, `$mb_memory` or `$ncpus` to `bc`, which knows no suffixes. Here one grammar covers
//! both, with integers only. fio drops the fraction of `1.5` and returns 1 for a division by zero;
//! both are errors here.

use std::ops::Range;

use crate::number::{self, Unit};

/// Maximum nesting of parentheses in an expression.
const DEPTH_MAX: usize = 64;

/// Reason why an expression has no value, and the position in bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) span: Range<usize>,
    pub(crate) message: String,
}

/// Grammar of an arithmetic expression: that of fio or that of `bc`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum ExpressionGrammar {
    /// fio's own grammar with suffixes. A number without a suffix is in the default unit.
    Fio(Unit),
    /// Grammar of `bc`, without suffixes.
    Arithmetic,
}

/// Evaluates a text that must be an arithmetic expression from end to end.
pub(crate) fn evaluate(text: &str, grammar: ExpressionGrammar) -> Result<i128, SyntaxError> {
    let mut parser = ExpressionParser {
        text,
        cursor: 0,
        depth: 0,
        grammar,
        has_units: false,
    };
    let value = parser.parse_sum()?;
    parser.skip_blanks();
    if parser.cursor < text.len() {
        return Err(parser.error_at_cursor("an operator or the end"));
    }
    match grammar {
        ExpressionGrammar::Fio(Unit::Time { default_us }) if !parser.has_units => {
            parser.check_overflow(value.checked_mul(default_us.into()), 0)
        }
        _ => Ok(value),
    }
}

struct ExpressionParser<'t> {
    text: &'t str,
    cursor: usize,
    depth: usize,
    grammar: ExpressionGrammar,
    /// Whether any number so far had a suffix; the result then has that unit.
    has_units: bool,
}

impl ExpressionParser<'_> {
    fn parse_sum(&mut self) -> Result<i128, SyntaxError> {
        let start = self.cursor;
        let mut left = self.parse_product()?;
        while let Some(operator) = self.take_operator("+-") {
            let right = self.parse_product()?;
            let value = match operator {
                '+' => left.checked_add(right),
                _ => left.checked_sub(right),
            };
            left = self.check_overflow(value, start)?;
        }
        Ok(left)
    }

    fn parse_product(&mut self) -> Result<i128, SyntaxError> {
        let start = self.cursor;
        let mut left = self.parse_signed()?;
        while let Some(operator) = self.take_operator("*/%") {
            let right = self.parse_signed()?;
            if right == 0 && operator != '*' {
                return Err(SyntaxError {
                    span: start..self.cursor,
                    message: "division by zero".to_owned(),
                });
            }
            let value = match operator {
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            left = self.check_overflow(value, start)?;
        }
        Ok(left)
    }

    fn parse_signed(&mut self) -> Result<i128, SyntaxError> {
        let mut negative = false;
        while self.take_operator("-").is_some() {
            negative = !negative;
        }
        let value = self.parse_power()?;
        Ok(if negative { -value } else { value })
    }

    fn parse_power(&mut self) -> Result<i128, SyntaxError> {
        let start = self.cursor;
        let mut factors = vec![self.parse_operand()?];
        while self.take_operator("^").is_some() {
            factors.push(self.parse_operand()?);
        }
        // From the right: 2^3^2 is 2^9.
        let mut value = factors.pop().unwrap_or(1);
        while let Some(base) = factors.pop() {
            let exponent = u32::try_from(value).ok();
            value = self.check_overflow(
                exponent.and_then(|exponent| base.checked_pow(exponent)),
                start,
            )?;
        }
        Ok(value)
    }

    fn parse_operand(&mut self) -> Result<i128, SyntaxError> {
        self.skip_blanks();
        let start = self.cursor;
        if self.take_operator("(").is_some() {
            self.depth += 1;
            if self.depth > DEPTH_MAX {
                return Err(self.error_at_cursor("fewer parentheses"));
            }
            let value = self.parse_sum()?;
            if self.take_operator(")").is_none() {
                return Err(self.error_at_cursor("`)`"));
            }
            self.depth -= 1;
            return self.apply_suffix(value, start);
        }
        let rest = &self.text[start..];
        let word = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
        let word = &rest[..word.unwrap_or(rest.len())];
        let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let value = match hexadecimal {
            Some(digits) => {
                self.cursor += word.len();
                i128::from_str_radix(digits, 16).ok()
            }
            None => {
                let digits =
                    word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                self.cursor += digits;
                word[..digits].parse().ok()
            }
        };
        if self.text[self.cursor..].starts_with('.') {
            return Err(self.error_at_cursor("a whole number (fio drops the fraction)"));
        }
        let Some(value) = value else {
            self.cursor = start;
            return Err(self.error_at_cursor("a number"));
        };
        self.apply_suffix(value, start)
    }

    fn apply_suffix(&mut self, value: i128, start: usize) -> Result<i128, SyntaxError> {
        let rest = &self.text[self.cursor..];
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic());
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.is_empty() {
            return Ok(value);
        }
        let factor = match self.grammar {
            ExpressionGrammar::Fio(unit) => number::parse_suffix(word, unit),
            ExpressionGrammar::Arithmetic => None,
        };
        let Some((factor, _)) = factor else {
            return Err(SyntaxError {
                span: self.cursor..self.cursor + word.len(),
                message: format!("`{word}` is no unit here"),
            });
        };
        self.has_units = true;
        self.cursor += word.len();
        self.check_overflow(value.checked_mul(factor.into()), start)
    }

    fn skip_blanks(&mut self) {
        let rest = &self.text[self.cursor..];
        self.cursor += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn take_operator(&mut self, operators: &str) -> Option<char> {
        self.skip_blanks();
        let next = self.text[self.cursor..].chars().next()?;
        if !operators.contains(next) {
            return None;
        }
        self.cursor += next.len_utf8();
        Some(next)
    }

    fn check_overflow(&self, value: Option<i128>, start: usize) -> Result<i128, SyntaxError> {
        let fits = value.filter(|&value| i64::try_from(value).is_ok());
        fits.ok_or_else(|| SyntaxError {
            span: start..self.cursor,
            message: "beyond 64 bits".to_owned(),
        })
    }

    fn error_at_cursor(&self, wanted: &str) -> SyntaxError {
        let next = self.text[self.cursor..].chars().next();
        SyntaxError {
            span: self.cursor..self.cursor + next.map_or(0, char::len_utf8),
            message: format!("{wanted} is wanted here"),
        }
    }
}

#[cfg(test)]
mod tests;

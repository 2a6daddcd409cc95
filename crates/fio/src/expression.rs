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
const DEEPEST: usize = 64;

/// Reason why an expression has no value, and the position in bytes of the text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) at: Range<usize>,
    pub(crate) why: String,
}

/// Grammar of an arithmetic expression: that of fio or that of `bc`.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Grammar {
    /// fio's own grammar with suffixes. A number without a suffix is in the default unit.
    Fio(Unit),
    /// Grammar of `bc`, without suffixes.
    Plain,
}

/// Evaluates a text that must be an arithmetic expression from end to end.
pub(crate) fn evaluate(text: &str, grammar: Grammar) -> Result<i128, Fault> {
    let mut parser = Parser {
        text,
        at: 0,
        depth: 0,
        grammar,
        has_units: false,
    };
    let value = parser.sum()?;
    parser.blanks();
    if parser.at < text.len() {
        return Err(parser.fault("an operator or the end"));
    }
    match grammar {
        Grammar::Fio(Unit::Time { bare_us }) if !parser.has_units => {
            parser.checked(value.checked_mul(bare_us.into()), 0)
        }
        _ => Ok(value),
    }
}

struct Parser<'t> {
    text: &'t str,
    at: usize,
    depth: usize,
    grammar: Grammar,
    /// Whether any number so far had a suffix; the result then has that unit.
    has_units: bool,
}

impl Parser<'_> {
    fn sum(&mut self) -> Result<i128, Fault> {
        let start = self.at;
        let mut left = self.product()?;
        while let Some(operator) = self.next_of("+-") {
            let right = self.product()?;
            let value = match operator {
                '+' => left.checked_add(right),
                _ => left.checked_sub(right),
            };
            left = self.checked(value, start)?;
        }
        Ok(left)
    }

    fn product(&mut self) -> Result<i128, Fault> {
        let start = self.at;
        let mut left = self.signed()?;
        while let Some(operator) = self.next_of("*/%") {
            let right = self.signed()?;
            if right == 0 && operator != '*' {
                return Err(Fault {
                    at: start..self.at,
                    why: "division by zero".to_owned(),
                });
            }
            let value = match operator {
                '*' => left.checked_mul(right),
                '/' => left.checked_div(right),
                _ => left.checked_rem(right),
            };
            left = self.checked(value, start)?;
        }
        Ok(left)
    }

    fn signed(&mut self) -> Result<i128, Fault> {
        let mut negative = false;
        while self.next_of("-").is_some() {
            negative = !negative;
        }
        let value = self.power()?;
        Ok(if negative { -value } else { value })
    }

    fn power(&mut self) -> Result<i128, Fault> {
        let start = self.at;
        let mut factors = vec![self.operand()?];
        while self.next_of("^").is_some() {
            factors.push(self.operand()?);
        }
        // From the right: 2^3^2 is 2^9.
        let mut value = factors.pop().unwrap_or(1);
        while let Some(base) = factors.pop() {
            let exponent = u32::try_from(value).ok();
            value = self.checked(
                exponent.and_then(|exponent| base.checked_pow(exponent)),
                start,
            )?;
        }
        Ok(value)
    }

    fn operand(&mut self) -> Result<i128, Fault> {
        self.blanks();
        let start = self.at;
        if self.next_of("(").is_some() {
            self.depth += 1;
            if self.depth > DEEPEST {
                return Err(self.fault("fewer parentheses"));
            }
            let value = self.sum()?;
            if self.next_of(")").is_none() {
                return Err(self.fault("`)`"));
            }
            self.depth -= 1;
            return self.with_suffix(value, start);
        }
        let rest = &self.text[start..];
        let word = rest.find(|letter: char| !letter.is_ascii_alphanumeric() && letter != '.');
        let word = &rest[..word.unwrap_or(rest.len())];
        let hexadecimal = word.strip_prefix("0x").or_else(|| word.strip_prefix("0X"));
        let value = match hexadecimal {
            Some(digits) => {
                self.at += word.len();
                i128::from_str_radix(digits, 16).ok()
            }
            None => {
                let digits =
                    word.len() - word.trim_start_matches(|c: char| c.is_ascii_digit()).len();
                self.at += digits;
                word[..digits].parse().ok()
            }
        };
        if self.text[self.at..].starts_with('.') {
            return Err(self.fault("a whole number (fio drops the fraction)"));
        }
        let Some(value) = value else {
            self.at = start;
            return Err(self.fault("a number"));
        };
        self.with_suffix(value, start)
    }

    fn with_suffix(&mut self, value: i128, start: usize) -> Result<i128, Fault> {
        let rest = &self.text[self.at..];
        let end = rest.find(|letter: char| !letter.is_ascii_alphabetic());
        let word = &rest[..end.unwrap_or(rest.len())];
        if word.is_empty() {
            return Ok(value);
        }
        let factor = match self.grammar {
            Grammar::Fio(unit) => number::suffix(word, unit),
            Grammar::Plain => None,
        };
        let Some((factor, _)) = factor else {
            return Err(Fault {
                at: self.at..self.at + word.len(),
                why: format!("`{word}` is no unit here"),
            });
        };
        self.has_units = true;
        self.at += word.len();
        self.checked(value.checked_mul(factor.into()), start)
    }

    fn blanks(&mut self) {
        let rest = &self.text[self.at..];
        self.at += rest.len() - rest.trim_start_matches([' ', '\t']).len();
    }

    fn next_of(&mut self, operators: &str) -> Option<char> {
        self.blanks();
        let next = self.text[self.at..].chars().next()?;
        if !operators.contains(next) {
            return None;
        }
        self.at += next.len_utf8();
        Some(next)
    }

    fn checked(&self, value: Option<i128>, start: usize) -> Result<i128, Fault> {
        let fits = value.filter(|&value| i64::try_from(value).is_ok());
        fits.ok_or_else(|| Fault {
            at: start..self.at,
            why: "beyond 64 bits".to_owned(),
        })
    }

    fn fault(&self, wanted: &str) -> Fault {
        let next = self.text[self.at..].chars().next();
        Fault {
            at: self.at..self.at + next.map_or(0, char::len_utf8),
            why: format!("{wanted} is wanted here"),
        }
    }
}

#[cfg(test)]
mod tests;

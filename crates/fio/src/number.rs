//! Numbers in fio's notation: sizes, counts and times.
//!
//! Two readers exist. [`parse_strict`] accepts only text that is a number from end to end; job values
//! come from it. [`parse_as_fio`] imitates fio's own reader, which silently stops at the first
//! character that it does not know; messages quote its result. Where both give a number, the
//! numbers are equal. A test compares both readers with each other and with fio.

/// Quantity that a number measures; it determines the valid suffixes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Number of bytes, or a plain count. fio accepts the suffix `k` for both.
    Bytes {
        /// Meaning of the suffix `k`: 1000 or 1024.
        base: UnitBase,
    },
    /// Duration, read as whole microseconds.
    Time {
        /// Microseconds per unit of a number without a suffix.
        default_us: u64,
    },
}

/// Meaning of the suffixes `k` and `KiB` (`kb_base`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnitBase {
    /// fio's default: `k` is 1024 and `KiB` is 1000.
    #[default]
    Inverted,
    /// SI units: `k` is 1000 and `KiB` is 1024.
    Si,
}

impl UnitBase {
    /// Returns the factor of the suffix `k`.
    pub fn kilo(self) -> u64 {
        match self {
            UnitBase::Inverted => 1024,
            UnitBase::Si => 1000,
        }
    }

    fn kibi(self) -> u64 {
        match self {
            UnitBase::Inverted => 1000,
            UnitBase::Si => 1024,
        }
    }
}

/// Number read from text, with a warning about its suffix where fio's reading is unexpected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: i128,
    pub(crate) suffix_surprise: Option<SuffixSurprise>,
}

/// Suffix that fio reads differently from common usage.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SuffixSurprise {
    /// Suffix `KiB`, which fio reads as 1000.
    BinaryUnit,
    /// Suffix `Ki` without B, which fio reads as `k` and not as `KiB`.
    KiWithoutB,
}

/// Reads text that is a number from end to end; `None` for any other text.
pub(crate) fn parse_strict(text: &str, unit: Unit) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let plain = |value: i128, surprise| Number {
        value: if negative { -value } else { value },
        suffix_surprise: surprise,
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    if let Some(hexadecimal) = hexadecimal {
        if !hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        // fio takes the x for a suffix that it does not know: a microsecond.
        if default_factor(unit) != 1 {
            return None;
        }
        let value = i128::from_str_radix(hexadecimal, 16).ok()?;
        return require_64_bits(plain(value, None));
    }
    let end = digits
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(digits.len());
    let value: i128 = digits[..end].parse().ok()?;
    let (factor, surprise) = parse_suffix(&digits[end..], unit)?;
    require_64_bits(plain(value.checked_mul(factor.into())?, surprise))
}

/// Reads a number with blanks around it or before its suffix as if the blanks were absent. fio
/// skips blanks before the digits, but then finds no suffix.
pub(crate) fn parse_with_blanks(text: &str, unit: Unit) -> Option<Number> {
    let joined: String = text.split([' ', '\t']).collect();
    let number = parse_strict(&joined, unit)?;
    let reading = parse_as_fio(text, unit).map(i128::from);
    (reading == Some(number.value)).then_some(number)
}

/// Returns the number if it fits into a signed 64-bit integer, as fio keeps it.
fn require_64_bits(number: Number) -> Option<Number> {
    i64::try_from(number.value).ok().map(|_| number)
}

fn default_factor(unit: Unit) -> u64 {
    match unit {
        Unit::Bytes { .. } => 1,
        Unit::Time { default_us } => default_us,
    }
}

/// Returns the factor of a complete suffix, or `None` if the suffix is unknown.
pub(crate) fn parse_suffix(text: &str, unit: Unit) -> Option<(u64, Option<SuffixSurprise>)> {
    let lower = text.to_ascii_lowercase();
    match unit {
        Unit::Time { default_us } => {
            let us = match lower.as_str() {
                "" => default_us,
                "us" | "usec" => 1,
                "ms" | "msec" => 1_000,
                "s" => 1_000_000,
                "m" => 60_000_000,
                "h" => 3_600_000_000,
                "d" => 86_400_000_000,
                _ => return None,
            };
            Some((us, None))
        }
        Unit::Bytes { base } => {
            if matches!(lower.as_str(), "" | "b") {
                return Some((1, None));
            }
            let mut letters = lower.chars();
            let power = "kmgtp".find(letters.next()?)? as u32 + 1;
            match letters.as_str() {
                "" | "b" => Some((base.kilo().pow(power), None)),
                "i" => Some((base.kilo().pow(power), Some(SuffixSurprise::KiWithoutB))),
                "ib" => {
                    let surprise =
                        (base == UnitBase::Inverted).then_some(SuffixSurprise::BinaryUnit);
                    Some((base.kibi().pow(power), surprise))
                }
                _ => None,
            }
        }
    }
}

/// Returns the number that fio reads from a text, even if only its start is a number. Overflow
/// wraps in 64 bits as in fio. `None` means that fio rejects the text, too.
pub(crate) fn parse_as_fio(text: &str, unit: Unit) -> Option<i64> {
    // A size in zones, which few options have.
    if text.ends_with('z') {
        return None;
    }
    let hexadecimal = text.contains("0x") || text.contains("0X");
    let value = parse_strtoll(text, if hexadecimal { 16 } else { 10 })?;
    let suffix = leading_suffix(text);
    let factor = match unit {
        Unit::Bytes { base } => bytes_factor(suffix, base),
        Unit::Time { default_us } => time_factor(suffix, default_us),
    };
    Some(value.wrapping_mul(factor as i64))
}

/// Imitates C's `strtoll`: skips leading blanks and stops at the end of the number. Returns `None`
/// if there is no number or it does not fit.
fn parse_strtoll(text: &str, radix: u32) -> Option<i64> {
    let blank = |letter: char| letter == ' ' || ('\t'..='\r').contains(&letter);
    let text = text.trim_start_matches(blank);
    let (negative, text) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    let after = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
    let text = match after {
        Some(after)
            if radix == 16 && after.starts_with(|letter: char| letter.is_ascii_hexdigit()) =>
        {
            after
        }
        _ => text,
    };
    let mut digits = text
        .chars()
        .map_while(|letter| letter.to_digit(radix))
        .peekable();
    digits.peek()?;
    let value = digits.try_fold(0i128, |value, digit| {
        let value = value * i128::from(radix) + i128::from(digit);
        (value <= i128::from(u64::MAX)).then_some(value)
    });
    match value {
        Some(value) if negative => Some(i64::try_from(-value).unwrap_or(i64::MIN)),
        Some(value) => i64::try_from(value).ok(),
        None if negative => Some(i64::MIN),
        None => None,
    }
}

/// Returns the part of the text in which fio looks for a suffix. It starts at the first letter or
/// `%` after a sign and digits.
fn leading_suffix(text: &str) -> &str {
    let start = text
        .bytes()
        .enumerate()
        .position(|(at, byte)| !(byte.is_ascii_digit() || at == 0 && b"+-".contains(&byte)));
    let rest = start.map_or("", |start| text.get(start..).unwrap_or(""));
    if rest.starts_with(|letter: char| letter.is_ascii_alphabetic()) {
        rest
    } else {
        ""
    }
}

/// Returns the factor of a size suffix by its first letters, as fio does; it ignores the remaining
/// letters.
fn bytes_factor(suffix: &str, base: UnitBase) -> u64 {
    let lower = suffix.to_ascii_lowercase();
    let power = lower.chars().next().and_then(|first| "kmgtp".find(first));
    match power {
        Some(power) if lower[1..].starts_with("ib") => base.kibi().pow(power as u32 + 1),
        Some(power) => base.kilo().pow(power as u32 + 1),
        None => 1,
    }
}

/// Returns the factor of a time suffix: s, m, h or d. An unknown suffix means microseconds.
fn time_factor(suffix: &str, default_us: u64) -> u64 {
    let lower = suffix.to_ascii_lowercase();
    match lower.as_str() {
        "" => default_us,
        "s" => 1_000_000,
        "m" => 60_000_000,
        "h" => 3_600_000_000,
        "d" => 86_400_000_000,
        other if other.starts_with("ms") => 1_000,
        _ => 1,
    }
}

#[cfg(test)]
mod tests;

//! Numbers as fio writes them: sizes, counts and times.
//!
//! There are two readers. [`strict`] takes what is a number from end to end; it is what a
//! job gets. [`fio_reads`] is fio's own reader, which stops at the first thing that it does
//! not know and says nothing: messages name what it would have made of the text. Where
//! both give a number it is the same one; a test holds them to that, and both to fio.

/// What a number counts, and so which suffixes it takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes, or a plain count: fio takes `k` for both.
    Bytes {
        /// What `k` stands for.
        base: Base,
    },
    /// Microseconds.
    Time {
        /// What one stands for without a suffix.
        bare_us: u64,
    },
}

/// `kb_base`: what `k` and `KiB` stand for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Base {
    /// `k` is 1024 and `KiB` is 1000: fio's default.
    #[default]
    Inverted,
    /// `k` is 1000 and `KiB` is 1024.
    Si,
}

impl Base {
    /// What `k` stands for.
    pub fn kilo(self) -> u64 {
        match self {
            Base::Inverted => 1024,
            Base::Si => 1000,
        }
    }

    /// What `KiB` stands for.
    fn kibi(self) -> u64 {
        match self {
            Base::Inverted => 1000,
            Base::Si => 1024,
        }
    }
}

/// A number, and what its author may not expect of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Number {
    pub(crate) value: i128,
    pub(crate) surprise: Option<Surprise>,
}

/// A suffix that fio reads other than the world does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Surprise {
    /// `KiB` is 1000.
    Kibi,
    /// `Ki` without the B is `k`, and not `KiB`.
    KiWithoutB,
}

/// A number that is one from end to end, or nothing.
pub(crate) fn strict(text: &str, unit: Unit) -> Option<Number> {
    let (negative, digits) = match text.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, text),
    };
    let plain = |value: i128, surprise| Number {
        value: if negative { -value } else { value },
        surprise,
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"));
    if let Some(hexadecimal) = hexadecimal {
        if !hexadecimal.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        // fio takes the x for a suffix that it does not know: a microsecond.
        if bare(unit) != 1 {
            return None;
        }
        let value = i128::from_str_radix(hexadecimal, 16).ok()?;
        return within(plain(value, None));
    }
    let end = digits
        .bytes()
        .position(|byte| !byte.is_ascii_digit())
        .unwrap_or(digits.len());
    let value: i128 = digits[..end].parse().ok()?;
    let (factor, surprise) = suffix(&digits[end..], unit)?;
    within(plain(value.checked_mul(factor.into())?, surprise))
}

/// A number with blanks around it or before its suffix, where fio reads it as if they were
/// not there: it skips those in front of digits, but then finds no suffix.
pub(crate) fn with_blanks(text: &str, unit: Unit) -> Option<Number> {
    let joined: String = text.split([' ', '\t']).collect();
    let number = strict(&joined, unit)?;
    let reading = fio_reads(text, unit).map(i128::from);
    (reading == Some(number.value)).then_some(number)
}

/// fio keeps numbers in 64 bits with a sign.
fn within(number: Number) -> Option<Number> {
    i64::try_from(number.value).ok().map(|_| number)
}

fn bare(unit: Unit) -> u64 {
    match unit {
        Unit::Bytes { .. } => 1,
        Unit::Time { bare_us } => bare_us,
    }
}

/// What a whole suffix multiplies by.
pub(crate) fn suffix(text: &str, unit: Unit) -> Option<(u64, Option<Surprise>)> {
    let lower = text.to_ascii_lowercase();
    match unit {
        Unit::Time { bare_us } => {
            let us = match lower.as_str() {
                "" => bare_us,
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
                "i" => Some((base.kilo().pow(power), Some(Surprise::KiWithoutB))),
                "ib" => {
                    let surprise = (base == Base::Inverted).then_some(Surprise::Kibi);
                    Some((base.kibi().pow(power), surprise))
                }
                _ => None,
            }
        }
    }
}

/// What fio makes of a text, however little of it is a number: in 64 bits, with what does
/// not fit lost as fio loses it. Nothing if fio refuses it too.
pub(crate) fn fio_reads(text: &str, unit: Unit) -> Option<i64> {
    // A size in zones, which few options have.
    if text.ends_with('z') {
        return None;
    }
    let hexadecimal = text.contains("0x") || text.contains("0X");
    let value = strtoll(text, if hexadecimal { 16 } else { 10 })?;
    let suffix = fio_suffix(text);
    let factor = match unit {
        Unit::Bytes { base } => bytes_factor(suffix, base),
        Unit::Time { bare_us } => time_factor(suffix, bare_us),
    };
    Some(value.wrapping_mul(factor as i64))
}

/// C's `strtoll`, which skips blanks and stops where the number does. Nothing if there is
/// no number or if it does not fit.
fn strtoll(text: &str, radix: u32) -> Option<i64> {
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

/// Where fio looks for the suffix: after a sign and digits, and only at a letter or `%`.
fn fio_suffix(text: &str) -> &str {
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

/// By its first letters, whatever follows.
fn bytes_factor(suffix: &str, base: Base) -> u64 {
    let lower = suffix.to_ascii_lowercase();
    let power = lower.chars().next().and_then(|first| "kmgtp".find(first));
    match power {
        Some(power) if lower[1..].starts_with("ib") => base.kibi().pow(power as u32 + 1),
        Some(power) => base.kilo().pow(power as u32 + 1),
        None => 1,
    }
}

/// The whole suffix for s, m, h and d; what it does not know is a microsecond.
fn time_factor(suffix: &str, bare_us: u64) -> u64 {
    let lower = suffix.to_ascii_lowercase();
    match lower.as_str() {
        "" => bare_us,
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

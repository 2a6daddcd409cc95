//! Parsers of numbers in a line, without a copy of the text.

/// Parses a whole number. Returns `None` for other text and for numbers of 2^64 and above.
#[inline]
pub(crate) fn parse_decimal(text: &[u8]) -> Option<u64> {
    if text.is_empty() || text.len() > 20 {
        return None;
    }
    let mut number: u64 = 0;
    for digit in text {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(number)
}

/// Parses a hexadecimal number with or without `0x`.
pub(crate) fn parse_hexadecimal(text: &[u8]) -> Option<u64> {
    let digits = text.strip_prefix(b"0x").unwrap_or(text);
    let digits = std::str::from_utf8(digits).ok()?;
    u64::from_str_radix(digits, 16)
        .ok()
        .filter(|_| !digits.starts_with('+'))
}

/// Parses a decimal number of a time unit and converts it to nanoseconds. The unit is 10^`digits`
/// ns, and `digits` is negative for a finer unit. Finer fractions are cut off.
#[inline]
pub(crate) fn parse_nanoseconds(text: &[u8], digits: i32) -> Option<u64> {
    let point = text.iter().position(|byte| *byte == b'.');
    let (left, right) = match point {
        Some(at) => (&text[..at], &text[at + 1..]),
        None => (text, &text[..0]),
    };
    if left.is_empty() && right.is_empty() {
        return None;
    }
    let mut number = match left.is_empty() {
        true => 0,
        false => parse_decimal(left)?,
    };
    if digits < 0 {
        right.iter().all(u8::is_ascii_digit).then_some(())?;
        return Some(number / 10u64.pow(digits.unsigned_abs()));
    }
    let mut taken = 0;
    for digit in right {
        let digit = digit.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        if taken < digits {
            number = number.checked_mul(10)?.checked_add(u64::from(digit))?;
            taken += 1;
        }
    }
    number.checked_mul(10u64.checked_pow((digits - taken) as u32)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_exact_and_cut_off() {
        for (text, digits, ns) in [
            ("0.551706", 9, Some(551_706_000)),
            ("1945.251028", 9, Some(1_945_251_028_000)),
            ("12.345", 6, Some(12_345_000)),
            (".5", 3, Some(500)),
            ("7", 3, Some(7000)),
            ("1.0000000019", 9, Some(1_000_000_001)),
            ("1999", -3, Some(1)),
            ("18446744073709551615", 0, Some(u64::MAX)),
            ("18446744073709551616", 0, None),
            ("99999999999999999", 9, None),
            ("", 9, None),
            (".", 9, None),
            ("-1", 9, None),
            ("1e3", 9, None),
            ("1.5x", 9, None),
        ] {
            assert_eq!(parse_nanoseconds(text.as_bytes(), digits), ns, "{text}");
        }
        assert_eq!(parse_hexadecimal(b"0x2a"), Some(42));
        assert_eq!(parse_hexadecimal(b"+2a"), None);
    }
}

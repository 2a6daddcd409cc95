//! Byte pattern that `verify_pattern` repeats over a block.

/// Maximum length of a pattern, in bytes.
pub const PATTERN_BYTES_MAX: usize = 512;
/// Bytes that `%o` occupies in a pattern.
const OFFSET_BYTES: usize = 8;

/// Byte pattern, which may contain the offset of the I/O.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BytePattern {
    /// Pattern bytes, with zeroes in place of offsets.
    bytes: Vec<u8>,
    /// Positions of the I/O offset in the pattern, in bytes.
    offset_field_positions: Vec<usize>,
}

/// Reason why a text is not a valid pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PatternError {
    /// Text that is empty or represents no bytes.
    #[error("a pattern needs at least one byte")]
    Empty,
    /// Pattern with more bytes than fio supports.
    #[error("a pattern has at most {PATTERN_BYTES_MAX} bytes")]
    TooLong,
    /// Part of the text that is neither a number, nor quoted text, nor `%o`.
    #[error("a pattern is a number, hexadecimal digits after 0x, a quoted text, or %o")]
    InvalidSyntax,
    /// Number that exceeds 32 bits with sign.
    #[error("a decimal number is from -2147483648 to 2147483647; write it as 0x and digits")]
    TooLarge,
    /// Reference to the contents of a file.
    #[error("patterns from files are not read here; write hexadecimal digits after 0x")]
    File,
}

impl BytePattern {
    /// Parses a sequence of pattern parts, with or without blanks between them: `0xdeadbeef`,
    /// `255`, `"text"` without escapes, and `%o` for the offset of the I/O.
    ///
    /// # Errors
    ///
    /// A text that represents no bytes to fio, or a reference to a file.
    pub fn parse(text: &str) -> Result<Self, PatternError> {
        let mut pattern = Self::default();
        let mut rest = text.trim_start();
        while !rest.is_empty() {
            rest = pattern.parse_part(rest)?.trim_start();
            if pattern.bytes.len() > PATTERN_BYTES_MAX {
                return Err(PatternError::TooLong);
            }
        }
        match pattern.bytes.is_empty() {
            true => Err(PatternError::Empty),
            false => Ok(pattern),
        }
    }

    fn parse_part<'t>(&mut self, text: &'t str) -> Result<&'t str, PatternError> {
        if let Some(rest) = text.strip_prefix('"') {
            let (letters, rest) = rest.split_once('"').ok_or(PatternError::InvalidSyntax)?;
            self.bytes.extend_from_slice(letters.as_bytes());
            return Ok(rest);
        }
        if text.starts_with('\'') {
            return Err(PatternError::File);
        }
        if let Some(rest) = text.strip_prefix("%o") {
            self.offset_field_positions.push(self.bytes.len());
            self.bytes.extend_from_slice(&[0; OFFSET_BYTES]);
            return Ok(rest);
        }
        let hexadecimal = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        match hexadecimal {
            Some(digits) => self.read_hexadecimal(digits),
            None => self.parse_decimal(text),
        }
    }

    /// Parses hexadecimal digits in pairs. If their number is odd, the first digit forms a byte of
    /// its own.
    fn read_hexadecimal<'t>(&mut self, text: &'t str) -> Result<&'t str, PatternError> {
        let end = text.find(|letter: char| !letter.is_ascii_hexdigit());
        let (digits, rest) = text.split_at(end.unwrap_or(text.len()));
        if digits.is_empty() {
            return Err(PatternError::InvalidSyntax);
        }
        let (alone, pairs) = digits.split_at(digits.len() % 2);
        let value = |digits: &str| u8::from_str_radix(digits, 16).expect("hexadecimal digits");
        if !alone.is_empty() {
            self.bytes.push(value(alone));
        }
        let starts = (0..pairs.len()).step_by(2);
        self.bytes
            .extend(starts.map(|start| value(&pairs[start..start + 2])));
        Ok(rest)
    }

    /// Parses a signed 32-bit number, stored with the least significant byte first and without
    /// trailing zeroes.
    fn parse_decimal<'t>(&mut self, text: &'t str) -> Result<&'t str, PatternError> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let end = unsigned.find(|letter: char| !letter.is_ascii_digit());
        let digits = end.unwrap_or(unsigned.len());
        if digits == 0 {
            return Err(PatternError::InvalidSyntax);
        }
        let (number, rest) = text.split_at(text.len() - unsigned.len() + digits);
        let value: i64 = number.parse().map_err(|_| PatternError::TooLarge)?;
        let value = i32::try_from(value).map_err(|_| PatternError::TooLarge)?;
        let bytes = value.to_le_bytes();
        let last = bytes.iter().rposition(|byte| *byte != 0).unwrap_or(0);
        self.bytes.extend_from_slice(&bytes[..=last]);
        Ok(rest)
    }

    pub(super) fn fill_pattern(&self, block: &mut [u8], offset_bytes: u64) {
        let mut bytes = self.bytes.clone();
        for at in &self.offset_field_positions {
            bytes[*at..at + OFFSET_BYTES].copy_from_slice(&offset_bytes.to_le_bytes());
        }
        for part in block.chunks_mut(bytes.len()) {
            part.copy_from_slice(&bytes[..part.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_the_bytes_that_fio_writes() {
        for (text, bytes) in [
            ("1", &[1][..]),
            ("256", &[0, 1]),
            ("65536", &[0, 0, 1]),
            ("-1", &[255; 4]),
            ("2147483647", &[255, 255, 255, 127]),
            ("0", &[0]),
            ("010", &[10]),
            ("0xf", &[15]),
            ("0xfff", &[15, 255]),
            ("0xABCdef", &[0xab, 0xcd, 0xef]),
            ("0x1 2", &[1, 2]),
            (r#""a\n"3"#, b"a\\n\x03"),
            (r#"-5"x""#, &[0xfb, 255, 255, 255, b'x']),
            (r#""a"%o0x07"#, &[b'a', 0, 16, 0, 0, 0, 0, 0, 0, 7]),
        ] {
            let pattern =
                BytePattern::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let mut block = vec![0; 2 * bytes.len() + 1];
            pattern.fill_pattern(&mut block, 4096);
            let expected: Vec<u8> = bytes.iter().copied().cycle().take(block.len()).collect();
            assert_eq!(block, expected, "{text}");
        }
    }

    #[test]
    fn what_fio_does_not_read_is_an_error() {
        for (text, error) in [
            ("", PatternError::Empty),
            (r#""""#, PatternError::Empty),
            ("abc", PatternError::InvalidSyntax),
            ("0x", PatternError::InvalidSyntax),
            (r#""ab"#, PatternError::InvalidSyntax),
            ("%x", PatternError::InvalidSyntax),
            ("2147483648", PatternError::TooLarge),
            ("-2147483649", PatternError::TooLarge),
            ("'/etc/hostname'", PatternError::File),
        ] {
            assert_eq!(BytePattern::parse(text), Err(error), "{text}");
        }
        let long = format!("0x{}", "ab".repeat(PATTERN_BYTES_MAX + 1));
        assert_eq!(BytePattern::parse(&long), Err(PatternError::TooLong));
    }
}

//! Units: nanoseconds as a newtype, and sizes and times in the notation of users.

use crate::Nanoseconds;
use std::time::{Duration, UNIX_EPOCH};

/// One kibibyte: 1024 bytes, the KB of the historic tables.
pub const KIB: u64 = 1 << 10;
/// One mebibyte: 1024 KiB.
pub const MIB: u64 = 1 << 20;
/// One gibibyte: 1024 MiB.
pub const GIB: u64 = 1 << 30;

/// Error for a text that is not a size.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "`{text}` is not a size: write a whole number of bytes, or one with K, M, G or T for powers of 1024 (4096, 8K, 8MiB), KB, MB, GB or TB for powers of 1000"
)]
pub struct SizeError {
    text: String,
}

/// Parses a size in bytes: `4096`, `8K`, `8KiB` (powers of 1024, as `K` in `dd`), `8KB` (powers of
/// 1000). Case does not matter. Single underscores may stand between digits, as in TOML.
///
/// # Errors
///
/// The text has no whole number or an unknown suffix, or the size exceeds 64 bits.
pub fn parse_size(text: &str) -> Result<u64, SizeError> {
    let error = || SizeError {
        text: text.to_owned(),
    };
    let trimmed = text.trim();
    let digits = trimmed
        .find(|c: char| !c.is_ascii_digit() && c != '_')
        .unwrap_or(trimmed.len());
    let (number, suffix) = trimmed.split_at(digits);
    let (base, power) = match suffix.trim().to_ascii_lowercase().as_str() {
        "" | "b" => (1, 0),
        "k" | "kib" => (1024, 1),
        "m" | "mib" => (1024, 2),
        "g" | "gib" => (1024, 3),
        "t" | "tib" => (1024, 4),
        "kb" => (1000, 1),
        "mb" => (1000, 2),
        "gb" => (1000, 3),
        "tb" => (1000, 4),
        _ => return Err(error()),
    };
    let number = parse_count(number).ok_or_else(error)?;
    number.checked_mul(u64::pow(base, power)).ok_or_else(error)
}

/// Parses a whole number. Single underscores may stand between its digits, as in TOML. `None` for
/// anything else.
pub fn parse_count(text: &str) -> Option<u64> {
    let is_digits = |group: &str| !group.is_empty() && group.bytes().all(|b| b.is_ascii_digit());
    match text.split('_').all(is_digits) {
        true => text.replace('_', "").parse().ok(),
        false => None,
    }
}

/// Formats a size in the notation of [`parse_size`], with the binary unit that keeps the number
/// short: `8 MiB`, `512`, `1.5 GiB`.
pub fn format_size(bytes: u64) -> String {
    for (unit, name) in [(1 << 40, "TiB"), (GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")] {
        if bytes >= unit {
            return if bytes.is_multiple_of(unit) {
                format!("{} {name}", bytes / unit)
            } else {
                format!("{:.1} {name}", bytes as f64 / unit as f64)
            };
        }
    }
    format!("{bytes} B")
}

/// Formats a duration with three digits and a suitable unit: `850 ns`, `12.3 µs`, `4.56 ms`, `1.23
/// s`.
pub fn format_nanoseconds(span: Nanoseconds) -> String {
    let ns = span.0 as f64;
    let (value, unit) = match span.0 {
        0..1_000 => return format!("{} ns", span.0),
        1_000..1_000_000 => (ns / 1e3, "µs"),
        1_000_000..1_000_000_000 => (ns / 1e6, "ms"),
        _ => (ns / 1e9, "s"),
    };
    let digits = if value < 10.0 {
        2
    } else if value < 100.0 {
        1
    } else {
        0
    };
    format!("{value:.digits$} {unit}")
}

/// First millisecond of Unix time after the year 9999. Calendar dates stop there.
pub const CALENDAR_END_UNIX_MS: u64 = 253_402_300_800_000;

/// Formats a time as `2026-11-21 02:20:00`, in UTC. A time past the year 9999 is described as such.
pub fn format_utc(unix_ms: u64) -> String {
    if unix_ms >= CALENDAR_END_UNIX_MS {
        return format!("{unix_ms} ms of Unix time");
    }
    let moment = UNIX_EPOCH + Duration::from_millis(unix_ms);
    humantime::format_rfc3339_seconds(moment)
        .to_string()
        .replace('T', " ")
        .replace('Z', "")
}

/// Parses a past time and returns it in milliseconds of Unix time. It accepts a date (`2026-11-20`)
/// or date and time (`2026-11-20 14:00:00`) in UTC, or an age before `now_unix_ms` (`2h`, `3days`).
/// `None` for anything else.
pub fn parse_point_in_time(text: &str, now_unix_ms: u64) -> Option<u64> {
    if let Ok(ago) = humantime::parse_duration(text) {
        return now_unix_ms.checked_sub(ago.as_millis().try_into().ok()?);
    }
    let midnight = humantime::parse_rfc3339_weak(&format!("{text} 00:00:00"));
    let moment = humantime::parse_rfc3339_weak(text).or(midnight).ok()?;
    let since_1970 = moment.duration_since(UNIX_EPOCH).ok()?;
    since_1970.as_millis().try_into().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_powers_of_1024_or_with_b_alone_of_1000() {
        for (text, bytes) in [
            ("0", 0),
            ("512", 512),
            ("8k", 8192),
            ("8K", 8192),
            ("8KiB", 8192),
            ("8M", 8 * MIB),
            (" 8 MB ", 8_000_000),
            ("10kb", 10_000),
            ("10GB", 10_000_000_000),
            ("2TB", 2_000_000_000_000),
            ("1gib", GIB),
            ("1G", GIB),
            ("1T", 1 << 40),
            ("1TiB", 1 << 40),
            ("64_000_000", 64_000_000),
            ("4_096K", 4_096 << 10),
        ] {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in [
            "",
            "M",
            "8X",
            "-8",
            "8.5M",
            "99999999999G",
            "8iB",
            "8KBi",
            "_8",
            "8_",
            "8__0",
            "_",
        ] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn moments_are_read_as_dates_or_as_times_ago() {
        let now = 1_709_164_800_000;
        for (text, moment) in [
            ("2024-02-29", Some(now)),
            ("2024-02-29 00:00:01", Some(now + 1000)),
            ("2024-02-29T00:00:01Z", Some(now + 1000)),
            ("2h", Some(now - 7_200_000)),
            ("1day", Some(now - 86_400_000)),
            ("100years", None),
            ("yesterday", None),
            ("2024-02-30", None),
            ("", None),
        ] {
            assert_eq!(parse_point_in_time(text, now), moment, "{text}");
        }
    }

    #[test]
    fn moments_are_on_the_calendar() {
        assert_eq!(format_utc(0), "1970-01-01 00:00:00");
        assert_eq!(format_utc(1_709_164_800_999), "2024-02-29 00:00:00");
        assert_eq!(format_utc(1_795_229_830_000), "2026-11-21 02:57:10");
        assert_eq!(format_utc(CALENDAR_END_UNIX_MS - 1), "9999-12-31 23:59:59");
        for beyond in [CALENDAR_END_UNIX_MS, 1 << 63, u64::MAX] {
            assert_eq!(format_utc(beyond), format!("{beyond} ms of Unix time"));
        }
    }

    #[test]
    fn sizes_and_spans_read_back() {
        assert_eq!(format_size(8 * MIB), "8 MiB");
        assert_eq!(format_size(1536), "1.5 KiB");
        assert_eq!(format_size(511), "511 B");
        assert_eq!(format_nanoseconds(Nanoseconds(850)), "850 ns");
        assert_eq!(format_nanoseconds(Nanoseconds(12_340)), "12.3 µs");
        assert_eq!(format_nanoseconds(Nanoseconds(4_560_000)), "4.56 ms");
    }
}

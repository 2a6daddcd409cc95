//! Formatting of single figures: rates, times, shares and intervals.

use super::unwritten;
use super::view::ResultRow;
use crate::cache::CacheVerdict;
use crate::quantity::Quantity;
use crate::statistics::{ConfidenceInterval, IntervalMethod, shape};
use crate::summary::ResultSummary;
use diskperf_timeline::units::format_nanoseconds;
use diskperf_timeline::{Nanoseconds, ProgramResult};

pub(super) const GENERATOR_LIMITED_MARK: &str = "§";

/// Text in place of a figure that was not measured, as in 1983.
pub(super) const NOT_MEASURED: &str = "n.m.";

/// Formats a rate in KB/s: whole, except for slow devices.
pub(super) fn format_kb_per_s(kb_per_s: f64) -> String {
    if kb_per_s < 9.95 {
        format!("{kb_per_s:.1}")
    } else {
        format!("{kb_per_s:.0}")
    }
}

/// Formats a rate in requests per second: whole, except for slow devices; two digits for very slow
/// ones.
pub(super) fn format_iops(per_s: f64) -> String {
    if !(per_s > 0.0 && per_s < 0.095) {
        return format_kb_per_s(per_s);
    }
    // One request in three years is the least that is told apart from none.
    let digits = (1.0 - per_s.log10().floor()).clamp(0.0, 8.0) as usize;
    format!("{per_s:.digits$}")
}

/// Formats a rate in MB/s with about three digits.
pub(super) fn format_mb_per_s(mb_per_s: f64) -> String {
    match mb_per_s {
        small if small < 9.995 => format!("{small:.2}"),
        middling if middling < 99.95 => format!("{middling:.1}"),
        large => format!("{large:.0}"),
    }
}

/// Formats microseconds in the unit that leaves three digits.
pub(super) fn format_us(us: f64) -> String {
    format_nanoseconds(Nanoseconds((us * 1e3).round() as u64))
}

/// Formats a number with at most one decimal, without trailing zeros.
pub(super) fn format_by_magnitude(value: f64) -> String {
    let text = format!("{value:.1}");
    text.strip_suffix(".0").map_or(text.clone(), str::to_owned)
}

/// Formats a CPU share in whole percent, as in 1983.
pub(super) fn format_cpu_percent(percent: f64) -> String {
    format!("({percent:.0}%)")
}

/// Formats a share in percent. 0 % and 100 % are printed only for exactly none and all.
pub(super) fn format_share(share: f64) -> String {
    let percent = 100.0 * share;
    if (percent > 0.0 && percent < 1.0) || (percent > 99.0 && percent < 100.0) {
        format!("{:.1}%", percent.clamp(0.1, 99.9))
    } else {
        format!("{percent:.0}%")
    }
}

/// Returns the two halves of a historic table cell: `490` and `(69%)` with its marks.
pub(super) fn format_cell(row: &ResultRow) -> (String, String) {
    if row.summary.kept_count == 0 {
        return (NOT_MEASURED.to_owned(), String::new());
    }
    let generator = row.generator_share.map_or("", |_| GENERATOR_LIMITED_MARK);
    let mark = row.summary.cache.table_mark();
    (
        format_kb_per_s(row.summary.kb_per_s),
        format!(
            "{}{mark}{generator}{}",
            format_cpu_percent(row.summary.cpu_percent),
            unwritten::mark_of_share(row.summary.unwritten_share)
        ),
    )
}

/// Formats half an interval as a share of its figure, the larger half: `±1.2%`; for a very wide
/// interval only `>±50%`.
pub(super) fn format_plus_minus(interval: &ConfidenceInterval, point: f64) -> String {
    if point <= 0.0 || interval.min <= 0.0 {
        return String::new();
    }
    let percent = 100.0 * (interval.max / point - 1.0).max(1.0 - interval.min / point);
    if percent >= 50.0 {
        ">±50%".to_owned()
    } else if percent < 9.95 {
        format!("±{percent:.1}%")
    } else {
        format!("±{percent:.0}%")
    }
}

/// Formats the interval of a summary's KB/s, unless it only repeats the figure.
pub(super) fn format_relative_half_width(summary: &ResultSummary) -> String {
    let interval = summary
        .speed_interval
        .filter(|one| one.method != IntervalMethod::ExactValue);
    interval.map_or_else(String::new, |interval| {
        format_plus_minus(&interval, summary.kb_per_s)
    })
}

/// Formats nanoseconds as microseconds with about three digits, and the noise with as many
/// decimals: `55.4` and `±1.4`.
pub(super) fn format_microseconds(ns: f64, noise_ns: Option<f64>) -> (String, String) {
    let us = ns / 1e3;
    let decimals = match us.abs() {
        size if size < 0.9995 => 3,
        size if size < 9.995 => 2,
        size if size < 99.95 => 1,
        _ => 0,
    };
    let noise = noise_ns.map(|noise| format!("±{:.decimals$}", noise / 1e3));
    (format!("{us:.decimals$}"), noise.unwrap_or_default())
}

/// Formats a time in seconds with about three digits.
pub(super) fn format_seconds(seconds: f64) -> String {
    match seconds {
        s if s < 0.9995 => format!("{:.3} s", s),
        s if s < 99.95 => format!("{s:.2} s"),
        s => format!("{s:.0} s"),
    }
}

/// Lists the meaning of every mark that occurs in the given table rows.
pub(super) fn list_legend<'a>(
    rows: impl Iterator<Item = &'a ResultRow<'a>> + Clone,
) -> Vec<String> {
    let mut verdicts: Vec<CacheVerdict> = rows.clone().map(|row| row.summary.cache).collect();
    verdicts.sort_unstable();
    verdicts.dedup();
    let mut lines: Vec<String> = verdicts
        .into_iter()
        .rev()
        .filter(|verdict| !verdict.table_mark().is_empty())
        .map(|verdict| format!("{} {}", verdict.table_mark(), verdict.meaning()))
        .collect();
    lines.extend(unwritten::format_legend(
        rows.clone().map(|row| row.summary.unwritten_share),
    ));
    let limited = rows
        .filter_map(|row| row.generator_share)
        .fold(0.0, f64::max);
    if limited > 0.0 {
        lines.push(format!(
            "{GENERATOR_LIMITED_MARK} a call on /dev/null takes up to {} of such a call: diskperf itself is the limit here, not the storage",
            format_share(limited)
        ));
    }
    lines
}

/// Draws the kept repetitions as a strip of bars in the order of running, by the quantity that they
/// are judged by.
pub(super) fn render_strip(result: &ProgramResult) -> String {
    let rate = |one| {
        Quantity::primary_quantity(one)
            .speed_of_repetition(one)
            .unwrap_or(0.0)
    };
    let rates: Vec<f64> = result.kept_repetitions().map(rate).collect();
    shape::render_strip(&rates)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slow_speeds_are_not_shown_as_zero() {
        for (per_s, written) in [
            (0.0, "0.0"),
            (0.000_012_3, "0.000012"),
            (0.034, "0.034"),
            (0.0999, "0.1"),
            (0.25, "0.2"),
            (9.94, "9.9"),
            (12_345.6, "12346"),
        ] {
            assert_eq!(format_iops(per_s), written);
        }
    }
}

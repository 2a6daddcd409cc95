//! An entry of the catalogue as text.

use super::check::made_of;
use diskperf_device::disk::layout::MOST_CYLINDERS;
use std::fmt::Write;
use std::ops::RangeInclusive;

/// Longest time of a part of a modelled drive, in milliseconds.
const TIME_MS_MAX: f64 = 1000.0;
/// Largest buffer of a modelled drive.
const BUFFER_BYTES_MAX: f64 = 1e12;

/// Values that a modelled drive takes, of keys for which DiskSim accepts others.
const LIMITS: [(&str, RangeInclusive<f64>); 25] = [
    ("cylinders", 1.0..=MOST_CYLINDERS as f64),
    ("spindle_rpm", 60.0..=30_000.0),
    ("seek_constant_ms", 0.0..=TIME_MS_MAX),
    ("seek_minimum_ms", 0.0..=TIME_MS_MAX),
    ("seek_average_ms", 0.0..=TIME_MS_MAX),
    ("seek_maximum_ms", 0.0..=TIME_MS_MAX),
    ("head_switch_ms", 0.0..=TIME_MS_MAX),
    ("write_settle_ms", -TIME_MS_MAX..=TIME_MS_MAX),
    ("read_hit_ms", 0.0..=TIME_MS_MAX),
    ("read_hit_after_write_ms", 0.0..=TIME_MS_MAX),
    ("read_miss_ms", 0.0..=TIME_MS_MAX),
    ("read_miss_after_write_ms", 0.0..=TIME_MS_MAX),
    ("write_ms", 0.0..=TIME_MS_MAX),
    ("write_after_write_ms", 0.0..=TIME_MS_MAX),
    ("read_completion_ms", 0.0..=TIME_MS_MAX),
    ("write_completion_ms", 0.0..=TIME_MS_MAX),
    ("link_overhead_ms", 0.0..=TIME_MS_MAX),
    ("link_reconnect_ms", 0.0..=TIME_MS_MAX),
    ("aged_sptf_ms_per_s", 0.0..=1e9),
    ("queue_depth", 1.0..=65_536.0),
    ("cache_segments", 0.0..=65_536.0),
    ("segment_bytes", 0.0..=BUFFER_BYTES_MAX),
    ("write_cache_bytes", 512.0..=BUFFER_BYTES_MAX),
    ("write_cache_extents", 1.0..=1e7),
    ("destage_bytes", 512.0..=BUFFER_BYTES_MAX),
];

/// An entry while it is written.
#[derive(Clone, Debug)]
pub(super) struct Entry {
    text: String,
    /// Whether values beyond [`LIMITS`] become the nearest ones within.
    is_limited: bool,
    /// Values that became others.
    notes: Vec<String>,
}

impl Entry {
    /// A drive, by what it is and where its numbers are from.
    pub(super) fn of_drive(description: &str, source: &str) -> Self {
        let text = format!(
            "description = {}\nsource = {}\nkind = \"drive\"\n\n",
            quoted(description),
            quoted(source)
        );
        Self::new(text, true)
    }

    fn new(text: String, is_limited: bool) -> Self {
        Self {
            text,
            is_limited,
            notes: Vec::new(),
        }
    }

    /// A drive that has the numbers of another one where it has none itself.
    pub(super) fn over(of: &str, description: &str, source: &str) -> Self {
        let text = format!(
            "extends = {}\ndescription = {}\nsource = {}\n\n",
            quoted(of),
            quoted(description),
            quoted(source)
        );
        Self::new(text, false)
    }

    fn line(&mut self, key: &str, value: &str) {
        writeln!(self.text, "{key} = {value}").expect("memory takes text");
    }

    /// A word of a list of choices.
    pub(super) fn word(&mut self, key: &str, value: &str) {
        self.line(key, &quoted(value));
    }

    /// Yes or no.
    pub(super) fn flag(&mut self, key: &str, value: bool) {
        self.line(key, if value { "true" } else { "false" });
    }

    /// A whole number, or the nearest one that a modelled drive takes.
    pub(super) fn integer(&mut self, key: &str, value: u64) {
        let value = self
            .limited(key, value as f64)
            .map_or(value, |near| near as u64);
        self.line(key, &value.to_string());
    }

    /// A number with all its digits, or the nearest one that a modelled drive takes.
    pub(super) fn number(&mut self, key: &str, value: f64) {
        let value = self.limited(key, value).unwrap_or(value);
        self.line(key, &format!("{value:?}"));
    }

    /// The nearest value that a modelled drive takes, if it does not take this one.
    fn limited(&mut self, key: &str, value: f64) -> Option<f64> {
        let (_, range) = LIMITS.iter().find(|(name, _)| *name == key)?;
        if !self.is_limited || range.contains(&value) {
            return None;
        }
        // Infinite overheads of a scale of 0 are none.
        let number = if value.is_nan() { 0.0 } else { value };
        let near = number.clamp(*range.start(), *range.end());
        let keys = made_of(key).first().copied().unwrap_or_default();
        let (low, high) = (range.start(), range.end());
        self.notes.push(format!(
            "{keys}: the files make it {value}, and `{key}` of a modelled drive is from {low} to {high}; taken as {near}"
        ));
        Some(near)
    }

    /// The values that became others, since this was called last.
    pub(super) fn take_notes(&mut self) -> Vec<String> {
        std::mem::take(&mut self.notes)
    }

    /// Why the number before this line is what it is.
    pub(super) fn source(&mut self, key: &str, why: &str) {
        self.line(&format!("{key}_source"), &quoted(why));
    }

    /// Rows of numbers, a line each; nothing of no rows.
    pub(super) fn rows(&mut self, key: &str, columns: &str, rows: &[Vec<f64>]) {
        if rows.is_empty() {
            return;
        }
        writeln!(self.text, "# {columns}\n{key} = [").expect("memory takes text");
        for row in rows {
            let row: Vec<String> = row.iter().map(|number| plain(*number)).collect();
            writeln!(self.text, "    [{}],", row.join(", ")).expect("memory takes text");
        }
        self.text.push_str("]\n");
    }

    /// An empty line.
    pub(super) fn gap(&mut self) {
        self.text.push('\n');
    }

    pub(super) fn text(self) -> String {
        self.text
    }
}

/// A whole number without a point, another with all its digits.
fn plain(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => format!("{number:.0}"),
        false => format!("{number:?}"),
    }
}

/// Text of TOML's basic strings.
fn quoted(text: &str) -> String {
    let mut all = String::from("\"");
    for one in text.chars() {
        match one {
            '"' | '\\' => all.extend(['\\', one]),
            _ if one.is_control() => write!(all, "\\u{:04X}", one as u32).expect("memory"),
            _ => all.push(one),
        }
    }
    all.push('"');
    all
}

/// The system with nothing but a drive.
pub(super) fn rig(drive: &str, source: &str) -> String {
    format!(
        "description = {}\nsource = {}\ndrives = 1\n\n[components]\ndrive = {}\n",
        quoted(&format!("The drive {drive} and nothing else.")),
        quoted(source),
        quoted(drive)
    )
}

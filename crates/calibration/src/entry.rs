//! Catalogue entry of a drive from DiskSim's files, and the disk that such an entry specifies.

mod electronics;
mod geometry;
mod keys;

pub use geometry::BLOCK_BYTES;
pub use keys::source_keys;

use crate::CalibrationError;
use diskperf_catalogue::Catalogue;
use diskperf_device::DeviceSpecification;
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::SpecifiedDrive;
use std::fmt::Write;

/// Catalogue entry made from a drive's files.
#[derive(Clone, Debug)]
pub struct DriveEntry {
    /// TOML text of the entry.
    pub text: String,
    /// Number of zones, or of extents of a layout without zones.
    pub zone_count: usize,
    /// Differences between the drive's files and the modelled drive, as readable notes.
    pub differences: Vec<String>,
}

impl DriveEntry {
    /// Translates a drive that was read from a file.
    ///
    /// # Errors
    ///
    /// A layout with more extents than an entry can list.
    pub fn new(drive: &SpecifiedDrive, file: &str) -> Result<DriveEntry, String> {
        let name = match drive.name.is_empty() {
            true => &drive.model.name,
            false => &drive.name,
        };
        let description = format!("{name}, as DiskSim's {file} has it.");
        let mut entry = EntryWriter::for_drive(&description, file);
        let mut differs = Vec::new();
        let zones = geometry::write_geometry(&mut entry, drive, &mut differs)?;
        electronics::write_electronics(&mut entry, drive, &mut differs);
        differs.append(&mut entry.notes);
        Ok(DriveEntry {
            text: entry.into_text(),
            zone_count: zones,
            differences: differs,
        })
    }
}

pub(crate) fn drive_specification(
    drive: &SpecifiedDrive,
) -> Result<DiskSpecification, CalibrationError> {
    const NAME: &str = "imported";
    let refused = |why: String| CalibrationError::InvalidDrive { why };
    let entry = DriveEntry::new(drive, NAME).map_err(refused)?;
    let path = format!("drives/{NAME}.toml");
    let catalogue = Catalogue::embedded().with_file(&path, &entry.text);
    let found = DeviceSpecification::from_catalogue(&catalogue, NAME);
    let found = found.map_err(|errors| refused(errors.to_string()))?;
    let disk = found.disk().cloned();
    disk.ok_or_else(|| refused("the entry does not describe a disk".to_owned()))
}

/// Column heading of `zone_table`.
pub(crate) const ZONE_COLUMNS: &str = "first cylinder, last cylinder, sectors per track, origin, track skew, cylinder skew and range skew in revolutions, dead sectors, spares";

/// Builder for the text of a catalogue entry.
#[derive(Clone, Debug)]
pub(crate) struct EntryWriter {
    text: String,
    /// Whether values outside the range of a modelled drive are clamped.
    are_values_limited: bool,
    notes: Vec<String>,
}

impl EntryWriter {
    pub(crate) fn for_drive(description: &str, source: &str) -> Self {
        let text = format!(
            "description = {}\nsource = {}\nkind = \"drive\"\n\n",
            quote_text(description),
            quote_text(source)
        );
        Self::new(text, true)
    }

    fn new(text: String, is_limited: bool) -> Self {
        Self {
            text,
            are_values_limited: is_limited,
            notes: Vec::new(),
        }
    }

    /// Starts an entry that inherits the numbers of another drive and overrides some.
    pub(crate) fn new_layer(of: &str, description: &str, source: &str) -> Self {
        let text = format!(
            "extends = {}\ndescription = {}\nsource = {}\n\n",
            quote_text(of),
            quote_text(description),
            quote_text(source)
        );
        Self::new(text, false)
    }

    fn write_line(&mut self, key: &str, value: &str) {
        writeln!(self.text, "{key} = {value}").expect("memory takes text");
    }

    pub(crate) fn write_word(&mut self, key: &str, value: &str) {
        self.write_line(key, &quote_text(value));
    }

    /// Writes a key whose value is true or false.
    pub(crate) fn write_flag(&mut self, key: &str, value: bool) {
        self.write_line(key, if value { "true" } else { "false" });
    }

    /// Writes an integer, clamped to the range of a modelled drive.
    pub(crate) fn write_integer(&mut self, key: &str, value: u64) {
        let near = self.limit_to_range(key, value as f64);
        let value = near.map_or(value, |near| near as u64);
        self.write_line(key, &value.to_string());
    }

    /// Writes a number in full precision, clamped to the range of a modelled drive.
    pub(crate) fn write_number(&mut self, key: &str, value: f64) {
        let value = self.limit_to_range(key, value).unwrap_or(value);
        self.write_line(key, &format!("{value:?}"));
    }

    /// Returns the nearest value that a modelled drive accepts, or `None` if it accepts the given
    /// one.
    fn limit_to_range(&mut self, key: &str, value: f64) -> Option<f64> {
        let range = keys::key_range(key)?;
        if !self.are_values_limited || range.contains(&value) {
            return None;
        }
        // Infinite overheads of a scale of 0 are none.
        let number = if value.is_nan() { 0.0 } else { value };
        let near = number.clamp(*range.start(), *range.end());
        let keys = source_keys(key).first().copied().unwrap_or_default();
        let (low, high) = (range.start(), range.end());
        self.notes.push(format!(
            "{keys}: the files make it {value}, and `{key}` of a modelled drive is from {low} to {high}; taken as {near}"
        ));
        Some(near)
    }

    /// Writes the source of the preceding number.
    pub(crate) fn write_source(&mut self, key: &str, why: &str) {
        self.write_line(&format!("{key}_source"), &quote_text(why));
    }

    /// Writes a table of numbers, one line per row; writes nothing for an empty table.
    pub(crate) fn write_rows(&mut self, key: &str, columns: &str, rows: &[Vec<f64>]) {
        if rows.is_empty() {
            return;
        }
        writeln!(self.text, "# {columns}\n{key} = [").expect("memory takes text");
        for row in rows {
            let row: Vec<String> = row.iter().map(|number| to_plain_decimal(*number)).collect();
            writeln!(self.text, "    [{}],", row.join(", ")).expect("memory takes text");
        }
        self.text.push_str("]\n");
    }

    /// Writes an empty line into the entry.
    pub(crate) fn blank_line(&mut self) {
        self.text.push('\n');
    }

    pub(crate) fn into_text(self) -> String {
        self.text
    }
}

/// Formats a whole number without a decimal point, and any other number in full precision.
fn to_plain_decimal(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 9e15 {
        true => format!("{number:.0}"),
        false => format!("{number:?}"),
    }
}

/// Quotes text as a TOML basic string.
pub fn quote_text(text: &str) -> String {
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

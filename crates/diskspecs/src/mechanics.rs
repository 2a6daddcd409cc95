//! Mechanics of a drive (`dm_mech_g1`): actuator and spindle.

use diskperf_diagnostics::Problem;

use crate::files::SpecificationFiles;
use crate::keys::{ImportFindings, KeyReader, to_number};
use crate::seek::{SeekCurve, SeekTable};
use crate::text::{ParameterBlock, ParameterEntry, shorten_text};

/// Mechanics as in the file: actuator and spindle.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// Seek time by distance.
    pub seek_curve: SeekCurve,
    /// Additional settling time of a write compared with a read after any head movement, in
    /// milliseconds. It may be negative, because other overheads of the file assume it.
    pub write_settle_ms: f64,
    /// Time to switch to another head of the cylinder, in milliseconds.
    pub head_switch_ms: f64,
    /// Rotation speed in the file, in revolutions per minute. The actual speed may differ by
    /// thousands of parts per million.
    pub rotation_rpm: f64,
}

impl Mechanics {
    /// Returns the rotation period at the speed in the file, in milliseconds.
    pub fn nominal_period_ms(&self) -> f64 {
        60_000.0 / self.rotation_rpm
    }
}

/// Keys for the different kinds of seek curves; a drive uses one kind.
const SEEK_TYPES: [&str; 7] = [
    "Constant seek time",
    "Average seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "HPL seek equation values",
    "First ten seek times",
];

pub(crate) fn parse_mechanics(
    block: &ParameterBlock,
    files: &SpecificationFiles,
    findings: &ImportFindings,
) -> Option<Mechanics> {
    let keys = KeyReader::new(block, findings);
    if let Some((entry, kind)) = keys.read_word("Access time type")
        && kind != "trackSwitchPlusRotation"
    {
        let title = format!(
            "access times of type `{}` are not modelled",
            shorten_text(kind)
        );
        let label = "`trackSwitchPlusRotation` is used";
        let warning = Problem::warning(title).at(&entry.value.span, label);
        findings.report_warning(warning);
    }
    let seek = parse_seek(&keys, files);
    let write_settle_ms = keys.read_number("Add. write settling delay");
    let head_switch_ms = keys.read_number("Head switch time");
    let rotation_rpm = keys.read_number("Rotation speed (in rpms)");
    Some(Mechanics {
        seek_curve: seek?,
        write_settle_ms: write_settle_ms?,
        head_switch_ms: head_switch_ms?,
        rotation_rpm: rotation_rpm?,
    })
}

fn seek_keys(kind: &str) -> &'static [&'static str] {
    match kind {
        "constant" => &SEEK_TYPES[..1],
        "curve" => &SEEK_TYPES[1..4],
        "extracted" => &SEEK_TYPES[4..5],
        "hpl" => &SEEK_TYPES[5..6],
        "hplplus10" => &SEEK_TYPES[5..],
        _ => &SEEK_TYPES,
    }
}

fn parse_seek(keys: &KeyReader<'_>, files: &SpecificationFiles) -> Option<SeekCurve> {
    let time = |key: &str| keys.read_number(key);
    let (entry, kind) = keys.read_word("Seek type")?;
    let used = seek_keys(kind);
    let unused = SEEK_TYPES.iter().filter(|key| !used.contains(key));
    let unused: Vec<&str> = unused.copied().collect();
    keys.ignore_keys(&unused, "another seek type is used");
    Some(match kind {
        "constant" => SeekCurve::Constant {
            time_ms: time("Constant seek time")?,
        },
        "curve" => {
            let single = time("Single cylinder seek time");
            let (average, full) = (time("Average seek time"), time("Full strobe seek time"));
            SeekCurve::ThreePoints {
                single_ms: single?,
                average_ms: average?,
                full_ms: full?,
            }
        }
        "hpl" => SeekCurve::HplFormula {
            values: parse_numbers(keys, "HPL seek equation values")?,
            first_ten_ms: None,
        },
        "hplplus10" => {
            let values = parse_numbers(keys, "HPL seek equation values");
            let first_ten = parse_numbers(keys, "First ten seek times");
            SeekCurve::HplFormula {
                values: values?,
                first_ten_ms: Some(first_ten?),
            }
        }
        "extracted" => SeekCurve::Table(read_seek_table(keys, files)?),
        _ => {
            let label = "of `constant`, `curve`, `hpl`, `hplplus10` and `extracted`, none";
            keys.reject_value(entry, label);
            return None;
        }
    })
}

fn parse_numbers<const N: usize>(keys: &KeyReader<'_>, key: &str) -> Option<[f64; N]> {
    let (entry, values) = keys.read_list(key)?;
    let numbers: Option<Vec<f64>> = values.iter().map(to_number).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    if numbers.is_none() {
        keys.reject_value(entry, format!("a list of {N} numbers"));
    }
    numbers
}

fn read_seek_table(keys: &KeyReader<'_>, files: &SpecificationFiles) -> Option<SeekTable> {
    let (entry, name) = keys.read_word("Full seek curve")?;
    let (path, content) = read_named_file(keys, entry, name, files)?;
    match SeekTable::parse(&path, &content) {
        Ok(table) => Some(table),
        Err(errors) => {
            for problem in errors.problems() {
                keys.findings.report_error(problem.clone());
            }
            None
        }
    }
}

/// Maximum size of a seek curve or a map of extents in bytes; real ones have some kilobytes.
const SEEK_FILE_BYTES_MAX: usize = 8 << 20;

/// Opens the file that a key names, and returns its path and its text.
pub(crate) fn read_named_file(
    keys: &KeyReader<'_>,
    entry: &ParameterEntry,
    name: &str,
    files: &SpecificationFiles,
) -> Option<(String, String)> {
    let beside = entry.value.span.file();
    let opened = files.read_file(name, beside, SEEK_FILE_BYTES_MAX);
    let opened = opened.and_then(
        |(path, content)| match content.len() > SEEK_FILE_BYTES_MAX {
            true => Err(format!("it exceeds {SEEK_FILE_BYTES_MAX} bytes")),
            false => Ok((path, content)),
        },
    );
    match opened {
        Ok(found) => Some(found),
        Err(why) => {
            let title = format!("cannot read `{}`", crate::text::shorten_text(name));
            let help = "diskperf searches this file's directory, then the search directories";
            let problem = Problem::error(title).at(&entry.value.span, why);
            keys.findings.report_error(problem.help(help));
            None
        }
    }
}

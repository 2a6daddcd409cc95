//! `dm_mech_g1`: the arm and the spindle.

use diskperf_diagnostics::Problem;

use crate::files::Files;
use crate::keys::{Findings, Keys, LONGEST_MS, Missing, real};
use crate::seek::{Seek, SeekTable};
use crate::text::{Block, Entry, Value, excerpt};

/// The arm and the spindle, as the file has them.
#[derive(Clone, Debug, PartialEq)]
pub struct Mechanics {
    /// How long the arm moves.
    pub seek: Seek,
    /// What a write waits longer than a read when something moved, in milliseconds. It
    /// may be negative: overheads of the same file count on it.
    pub write_settle_ms: f64,
    /// To another head of the cylinder, in milliseconds.
    pub head_switch_ms: f64,
    /// Revolutions per minute, as the file has them; the drive's own may differ by
    /// thousands of parts per million.
    pub rotation_rpm: f64,
}

impl Mechanics {
    /// A revolution, in milliseconds, if the speed is what the file says.
    pub fn nominal_period_ms(&self) -> f64 {
        60_000.0 / self.rotation_rpm
    }
}

/// The keys of the kinds of seek, of which a drive has one.
const OF_SEEKS: [&str; 7] = [
    "Constant seek time",
    "Average seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "HPL seek equation values",
    "First ten seek times",
];

pub(crate) fn read(block: &Block, files: &Files, findings: &Findings) -> Option<Mechanics> {
    let keys = Keys::new(block, findings, Missing::Refuse);
    if let Some((entry, kind)) = keys.word("Access time type")
        && kind != "trackSwitchPlusRotation"
    {
        let title = format!(
            "access times of the kind `{}` are not modelled",
            excerpt(kind)
        );
        let label = "`trackSwitchPlusRotation` is taken";
        let warning = Problem::warning(title).at(&entry.value.place, label);
        findings.warning(warning);
    }
    let whole = "the time of an access is that of its parts";
    keys.ignore(&["Constant access time"], whole);
    let seek = seek(&keys, files);
    let write_settle_ms = keys.real("Add. write settling delay", -LONGEST_MS..=LONGEST_MS);
    let head_switch_ms = keys.real("Head switch time", 0.0..=LONGEST_MS);
    let rotation_rpm = keys.real("Rotation speed (in rpms)", 1.0..=1e6);
    let percent = "DiskSim 4.0 does not use it: the true speed is found in a trace";
    keys.ignore(&["Percent error in rpms"], percent);
    keys.ignore_unused(&OF_SEEKS, "another kind of seek is used");
    keys.finish();
    Some(Mechanics {
        seek: seek?,
        write_settle_ms: write_settle_ms?,
        head_switch_ms: head_switch_ms?,
        rotation_rpm: rotation_rpm?,
    })
}

fn seek(keys: &Keys<'_>, files: &Files) -> Option<Seek> {
    let time = |key: &str| keys.real(key, 0.0..=LONGEST_MS);
    let (entry, kind) = keys.word("Seek type")?;
    Some(match kind {
        "constant" => Seek::Constant {
            time_ms: time("Constant seek time")?,
        },
        "curve" => {
            let single = time("Single cylinder seek time");
            let (average, full) = (time("Average seek time"), time("Full strobe seek time"));
            Seek::ThreePoints {
                single_ms: single?,
                average_ms: average?,
                full_ms: full?,
            }
        }
        "hpl" => Seek::Hpl {
            values: numbers(keys, "HPL seek equation values")?,
            first_ten_ms: None,
        },
        "hplplus10" => {
            let values = numbers(keys, "HPL seek equation values");
            let first_ten = numbers(keys, "First ten seek times");
            Seek::Hpl {
                values: values?,
                first_ten_ms: Some(first_ten?),
            }
        }
        "extracted" => Seek::Table(table(keys, files)?),
        _ => {
            let label = "of `constant`, `curve`, `hpl`, `hplplus10` and `extracted`, none";
            keys.refuse(entry, label);
            return None;
        }
    })
}

/// As many numbers as there must be.
fn numbers<const N: usize>(keys: &Keys<'_>, key: &str) -> Option<[f64; N]> {
    let (entry, values) = keys.list(key)?;
    let legal = |value: &Value| real(value).filter(|number| number.abs() <= LONGEST_MS);
    let numbers: Option<Vec<f64>> = values.iter().map(legal).collect();
    let numbers = numbers.and_then(|numbers| numbers.try_into().ok());
    if numbers.is_none() {
        keys.refuse(entry, format!("a list of {N} numbers"));
    }
    numbers
}

fn table(keys: &Keys<'_>, files: &Files) -> Option<SeekTable> {
    let (entry, name) = keys.word("Full seek curve")?;
    let (path, content) = named_file(keys, entry, name, files)?;
    match SeekTable::parse(&path, &content) {
        Ok(table) => Some(table),
        Err(errors) => {
            for problem in errors.problems() {
                keys.findings.error(problem.clone());
            }
            None
        }
    }
}

/// A seek curve and a map of a drive are some kilobytes.
const LONGEST_BYTES: usize = 8 << 20;

/// The file that a key names: its path and its text.
pub(crate) fn named_file(
    keys: &Keys<'_>,
    entry: &Entry,
    name: &str,
    files: &Files,
) -> Option<(String, String)> {
    let beside = entry.value.place.file();
    let opened = files.open(name, beside, LONGEST_BYTES);
    let opened = opened.and_then(|(path, content)| match content.len() > LONGEST_BYTES {
        true => Err(format!("it has more than {LONGEST_BYTES} bytes")),
        false => Ok((path, content)),
    });
    match opened {
        Ok(found) => Some(found),
        Err(why) => {
            let title = format!("cannot read `{}`", crate::text::excerpt(name));
            let help = "it is looked for beside this file, then in the folders of the search";
            let problem = Problem::error(title).at(&entry.value.place, why);
            keys.findings.error(problem.help(help));
            None
        }
    }
}

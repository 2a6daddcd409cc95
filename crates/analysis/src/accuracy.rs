//! The accuracy card: every published number beside the modelled one.
//!
//! This is data, and the arithmetic of errors and bars; who runs the models
//! fills it in.

mod bars;
mod summary;

pub use bars::{Bar, Share, bars};
pub use summary::{Summary, summaries};

use serde::Serialize;

/// What a number measures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Quantity {
    /// KB of 1024 bytes per second, the sum of all drives.
    KbPerS,
    /// Percent of elapsed time, the sum of all programs.
    CpuPercent,
    /// Elapsed seconds.
    Seconds,
    /// Elapsed minutes.
    Minutes,
    /// Blocks of the file system per second.
    BlocksPerS,
    /// One figure over another.
    Ratio,
}

impl Quantity {
    /// The name in JSON and CSV.
    pub fn name(self) -> &'static str {
        match self {
            Self::KbPerS => "kb_per_s",
            Self::CpuPercent => "cpu_percent",
            Self::Seconds => "seconds",
            Self::Minutes => "minutes",
            Self::BlocksPerS => "blocks_per_s",
            Self::Ratio => "ratio",
        }
    }

    /// The words of a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::KbPerS => "KB/s",
            Self::CpuPercent => "CPU %",
            Self::Seconds => "s",
            Self::Minutes => "min",
            Self::BlocksPerS => "blocks/s",
            Self::Ratio => "ratio",
        }
    }
}

/// Whether a number was looked at when the parameters were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// A free parameter of the system was calibrated on it.
    Calibration,
    /// None was.
    Prediction,
}

impl Role {
    /// The words of a table.
    pub fn words(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Prediction => "prediction",
        }
    }
}

/// A CPU share, in percent, without its fraction (4.2BSD sh.time.c: `%d` of hundredths
/// of seconds times 100 over the elapsed ones).
pub(crate) fn as_csh_prints(percent: f64) -> f64 {
    percent.floor()
}

/// The least and the most over all phases, or all seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Spread {
    /// The least.
    pub low: f64,
    /// The most.
    pub high: f64,
}

/// One published number.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Cell {
    /// Its name for good; a CPU share has that of its cell and `#cpu`.
    pub id: String,
    /// The document: `kridle-mckusick-1983`.
    pub published: String,
    /// The table in it.
    pub table: String,
    /// The system that it is a test of; absent where the catalogue has none.
    pub target: Option<String>,
    /// The file system as printed: `8K/1K`.
    pub filesystem: Option<String>,
    /// The program as printed.
    pub test: Option<String>,
    /// Drives that ran it at once.
    pub drives: u32,
    /// What it measures.
    pub quantity: Quantity,
    /// As printed; absent where nothing was measured, or only a range printed.
    pub printed: Option<f64>,
    /// The least that the words allow.
    pub printed_low: Option<f64>,
    /// The most.
    pub printed_high: Option<f64>,
    /// What the model gives: the mean over phases, or seeds. Absent where there is
    /// no model.
    pub modelled: Option<f64>,
    /// Modelled over printed, less 1; of a CPU share, modelled less printed, in
    /// points, both without the fraction; 0 within a printed range.
    pub error: Option<f64>,
    /// Whether it counts.
    pub scored: bool,
    /// The id under which the same measurement counts.
    pub same_as: Option<String>,
    /// Whether a parameter was calibrated on it.
    pub role: Role,
    /// Relative phases of the drives that the mean is over.
    pub phases: u32,
    /// Seeds that the mean is over, where data come late by chance.
    pub seeds: u32,
    /// The least and the most of them; absent of one.
    pub spread: Option<Spread>,
    /// Whether the authors suspect their hardware.
    pub suspect: bool,
    /// Whether no model explains it.
    pub unexplained: bool,
    /// What was tried where it cannot be explained, or what else must be said.
    pub note: Option<String>,
}

impl Cell {
    /// Whether a value is within the range that was printed, or that what was printed
    /// stands for; `false` where there is none.
    pub fn in_range(&self, value: f64) -> bool {
        let is_ranged = self.printed_low.is_some() || self.printed_high.is_some();
        let low = self.printed_low.is_none_or(|low| value >= low);
        let high = self.printed_high.is_none_or(|high| value <= high);
        is_ranged && low && high
    }

    /// The error of a modelled value.
    pub fn error_of(&self, modelled: f64) -> Option<f64> {
        if self.in_range(modelled) {
            return Some(0.0);
        }
        let nearest = || {
            let below = self.printed_low.filter(|low| modelled < *low);
            below.or(self.printed_high)
        };
        let printed = self.printed.or_else(nearest)?;
        Some(match self.quantity {
            Quantity::CpuPercent => as_csh_prints(modelled) - printed,
            _ => modelled / printed - 1.0,
        })
    }

    /// Whether it counts under this id: each measurement once.
    pub fn counts(&self) -> bool {
        self.scored && self.same_as.is_none() && self.error.is_some()
    }
}

/// How the value of a free parameter was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Choice {
    /// By a fit to cells.
    Fitted,
    /// By hand, with cells in view.
    ByHand,
    /// As a plausible value, by no cell.
    Assumed,
}

impl Choice {
    /// The word of a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::ByHand => "by hand",
            Self::Assumed => "assumed",
        }
    }
}

/// A parameter whose source is no document, no source file and no arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeParameter {
    /// Its path for `--set`.
    pub path: String,
    /// The file that it stands in.
    pub file: String,
    /// Its value, as written.
    pub value: String,
    /// Where it comes from, in words.
    pub source: String,
    /// How its value was chosen.
    pub choice: Choice,
    /// The cells that it was calibrated on.
    pub cells: Vec<String>,
}

/// All of them.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Parameters {
    /// How many there are.
    pub calibrated: usize,
    /// How many of them a fit chose.
    pub fitted: usize,
    /// How many were chosen by hand, with cells in view.
    pub by_hand: usize,
    /// How many were chosen by no cell: plausible values.
    pub assumed: usize,
    /// Further ones, calibrated on cells of documents that were not asked for,
    /// and on none that was: not in the list.
    pub elsewhere: usize,
    /// Each.
    pub list: Vec<FreeParameter>,
}

/// A figure that belongs to a statement.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// What it is.
    pub what: String,
    /// Its value.
    pub value: f64,
    /// Its unit.
    pub unit: String,
}

impl Finding {
    /// A number with its name and unit.
    pub fn new(what: &str, value: f64, unit: &str) -> Self {
        Self {
            what: what.to_owned(),
            value,
            unit: unit.to_owned(),
        }
    }
}

/// Something that a document says in words, and what the models say to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Statement {
    /// The document.
    pub published: String,
    /// What it says.
    pub statement: String,
    /// The figures of the models.
    pub findings: Vec<Finding>,
    /// Whether the models agree; absent where it is no matter of yes and no.
    pub holds: Option<bool>,
    /// What follows.
    pub conclusion: String,
}

/// An accuracy card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Card {
    /// The documents asked for.
    pub documents: Vec<String>,
    /// The settings with which it was asked for, if any: `PATH=VALUE`.
    pub settings: Vec<String>,
    /// The seed of every random choice.
    pub seed: u64,
    /// Relative phases of two drives, and the share by which the second is
    /// slower.
    pub two_drives: TwoDrives,
    /// The free parameters.
    pub parameters: Parameters,
    /// The numbers.
    pub cells: Vec<Cell>,
    /// How near those are that parameters were calibrated on, those that the
    /// models predict, and all of them.
    pub summary: Vec<Summary>,
    /// How many of them are within what was asked.
    pub bars: Vec<Bar>,
    /// What was said in words.
    pub statements: Vec<Statement>,
}

/// How two drives are turned against each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoDrives {
    /// Evenly spaced relative phases, of which the mean is taken.
    pub phases: u32,
    /// Share by which the second drive turns slower.
    pub speed_difference_share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(quantity: Quantity, printed: Option<f64>, range: Option<(f64, f64)>) -> Cell {
        Cell {
            id: "document/T1/system/8K/read_8192/1".to_owned(),
            published: "document".to_owned(),
            table: "T1".to_owned(),
            target: None,
            filesystem: None,
            test: None,
            drives: 1,
            quantity,
            printed,
            printed_low: range.map(|(low, _)| low),
            printed_high: range.map(|(_, high)| high),
            modelled: None,
            error: None,
            scored: true,
            same_as: None,
            role: Role::Prediction,
            phases: 1,
            seeds: 1,
            spread: None,
            suspect: false,
            unexplained: false,
            note: None,
        }
    }

    fn near(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-12)
    }

    #[test]
    fn errors_are_shares_and_of_cpu_points() {
        let rate = cell(Quantity::KbPerS, Some(500.0), None);
        assert!(near(rate.error_of(550.0), 0.1));
        let share = cell(Quantity::CpuPercent, Some(70.0), None);
        assert!(near(share.error_of(66.0), -4.0));
        assert!(near(share.error_of(66.9), -4.0), "as csh prints it");
        assert_eq!(cell(Quantity::KbPerS, None, None).error_of(1.0), None);
    }

    #[test]
    fn within_a_printed_range_there_is_no_error() {
        let about = cell(Quantity::BlocksPerS, Some(40.0), Some((36.0, 44.0)));
        assert_eq!(about.error_of(43.9), Some(0.0));
        assert!(near(about.error_of(48.0), 0.2));
        let words = cell(Quantity::Ratio, None, Some((1.7, 2.0)));
        assert_eq!(words.error_of(1.9), Some(0.0));
        assert!(near(words.error_of(2.2), 0.1));
        assert!(near(words.error_of(0.85), -0.5));
    }
}

//! Accuracy card, which sets every published number beside the modelled one.
//!
//! The module holds data and the arithmetic of errors and accuracy goals; the caller runs the
//! models and fills it in.

mod bars;
mod summary;

pub use bars::{AccuracyBar, ErrorShare, measure_bars};
pub use summary::{AccuracySummary, summarize_cells};

use serde::Serialize;

/// Quantity that a published number measures, with its unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellQuantity {
    /// Rate in KB of 1024 bytes per second, summed over all drives.
    KbPerS,
    /// CPU time in percent of elapsed time, summed over all programs.
    CpuPercent,
    /// Elapsed time of a test program in seconds.
    Seconds,
    /// Elapsed time of a test program in minutes.
    Minutes,
    /// Rate in file system blocks per second.
    BlocksPerS,
    /// Ratio of two figures, without a unit.
    Ratio,
}

impl CellQuantity {
    /// Returns the name of the quantity in JSON and CSV.
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

    /// Returns the name of the quantity for a table.
    pub fn label(self) -> &'static str {
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

/// Use of a published number when the model's parameters were chosen: calibrated on it, or not.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CellRole {
    /// A free parameter of the modelled system was calibrated on the published number.
    Calibration,
    /// No parameter was calibrated on the published number, so that the model predicts it.
    Prediction,
}

impl CellRole {
    /// Returns the name of the role for a table.
    pub fn label(self) -> &'static str {
        match self {
            Self::Calibration => "calibration",
            Self::Prediction => "prediction",
        }
    }
}

/// Truncates a CPU share to whole percent, as `csh` prints it (4.2BSD sh.time.c: `%d` of hundredths
/// of seconds times 100 divided by the elapsed ones).
pub(crate) fn round_as_csh_prints(percent: f64) -> f64 {
    percent.floor()
}

/// Minimum and maximum of a modelled number over all relative phases of the drives, or over all
/// seeds.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct SeedRange {
    /// Minimum of the modelled number over all phases or seeds.
    #[serde(rename = "low")]
    pub min: f64,
    /// Maximum of the modelled number over all phases or seeds.
    #[serde(rename = "high")]
    pub max: f64,
}

/// One published number with the modelled one beside it, called a cell of the accuracy card.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracyCell {
    /// Permanent identifier of the published number. A CPU share has the id of its cell followed by
    /// `#cpu`.
    pub id: String,
    /// Name of the published document: `kridle-mckusick-1983`.
    pub published: String,
    /// Table of the document that prints the number.
    #[serde(rename = "table")]
    pub table_title: String,
    /// Catalogue target of the modelled system on which the measurement ran; absent where the
    /// catalogue has none.
    pub target: Option<String>,
    /// File system of the measurement, as printed: `8K/1K`.
    pub filesystem: Option<String>,
    /// Test program of the measurement, as the document prints its name.
    pub test: Option<String>,
    /// Drives that ran the test program concurrently.
    pub drives: u32,
    /// Quantity that the published number measures, such as KB/s or a CPU share.
    pub quantity: CellQuantity,
    /// Published value, as printed; absent where nothing was measured or the document prints only a
    /// range.
    #[serde(rename = "printed")]
    pub printed_value: Option<f64>,
    /// Lower end of the range that the document prints.
    #[serde(rename = "printed_low")]
    pub printed_min: Option<f64>,
    /// Upper end of the range that the document prints.
    #[serde(rename = "printed_high")]
    pub printed_max: Option<f64>,
    /// Modelled value: the mean over phases or seeds. Absent where there is no model.
    #[serde(rename = "modelled")]
    pub modelled_value: Option<f64>,
    /// Error of the modelled value: modelled divided by printed, less 1. For a CPU share it is
    /// modelled less printed, in points, both truncated to whole percent. 0 within a printed range.
    pub error: Option<f64>,
    /// Whether the published number counts in the accuracy figures.
    #[serde(rename = "scored")]
    pub is_scored: bool,
    /// Id of another published number that stands for the same measurement and counts in its place.
    #[serde(rename = "same_as")]
    pub same_as_cell: Option<String>,
    /// Whether a parameter of the model was calibrated on the published number.
    pub role: CellRole,
    /// Number of relative phases of the drives over which the modelled mean is taken.
    #[serde(rename = "phases")]
    pub phase_count: u32,
    /// Number of seeds over which the modelled mean is taken, where data arrive late at random.
    #[serde(rename = "seeds")]
    pub seed_count: u32,
    /// Minimum and maximum of the modelled value over phases or seeds; absent where there is only
    /// one.
    #[serde(rename = "spread")]
    pub seed_range: Option<SeedRange>,
    /// Whether the document's authors suspect a fault in their hardware.
    #[serde(rename = "suspect")]
    pub is_suspect: bool,
    /// Whether no model explains the published number.
    #[serde(rename = "unexplained")]
    pub is_unexplained: bool,
    /// Remark on the number, such as the explanations that were tried without success.
    pub note: Option<String>,
}

impl AccuracyCell {
    /// Tests whether a value is within the range that the document prints or that its printed
    /// number stands for; `false` where there is no range.
    pub fn is_in_printed_range(&self, value: f64) -> bool {
        let is_ranged = self.printed_min.is_some() || self.printed_max.is_some();
        let low = self.printed_min.is_none_or(|low| value >= low);
        let high = self.printed_max.is_none_or(|high| value <= high);
        is_ranged && low && high
    }

    /// Returns the error of a modelled value against the published one; `None` where nothing is
    /// printed to compare it with.
    pub fn relative_error(&self, modelled: f64) -> Option<f64> {
        if self.is_in_printed_range(modelled) {
            return Some(0.0);
        }
        let nearest = || {
            let below = self.printed_min.filter(|low| modelled < *low);
            below.or(self.printed_max)
        };
        let printed = self.printed_value.or_else(nearest)?;
        Some(match self.quantity {
            CellQuantity::CpuPercent => round_as_csh_prints(modelled) - printed,
            _ => modelled / printed - 1.0,
        })
    }

    /// Tests whether the published number counts under its own id, so that each measurement counts
    /// once.
    pub fn counts_in_score(&self) -> bool {
        self.is_scored && self.same_as_cell.is_none() && self.error.is_some()
    }
}

/// Method by which the value of a free parameter was chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum FreeParameterOrigin {
    /// The value of the parameter comes from a fit to published numbers.
    Fitted,
    /// The value of the parameter was chosen by hand, with published numbers in view.
    #[serde(rename = "by_hand")]
    SetByHand,
    /// The value of the parameter is a plausible assumption that rests on no published number.
    Assumed,
}

impl FreeParameterOrigin {
    /// Returns the name of the method for a table.
    pub fn word(self) -> &'static str {
        match self {
            Self::Fitted => "fitted",
            Self::SetByHand => "by hand",
            Self::Assumed => "assumed",
        }
    }
}

/// Model parameter that rests on no document, no source file and no arithmetic.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FreeParameter {
    /// Path of the free parameter for `--set`.
    pub path: String,
    /// Catalogue file that contains the free parameter.
    pub file: String,
    /// Value of the parameter, as written in the file.
    pub value: String,
    /// Origin of the parameter's value, as text.
    #[serde(rename = "source")]
    pub source_document: String,
    /// Method by which the parameter's value was chosen.
    #[serde(rename = "choice")]
    pub origin: FreeParameterOrigin,
    /// Ids of the published numbers that the parameter was calibrated on.
    pub cells: Vec<String>,
}

/// All free parameters of an accuracy card, with their counts.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct FreeParameters {
    /// Number of parameters that were calibrated on published numbers.
    #[serde(rename = "calibrated")]
    pub calibrated_count: usize,
    /// Number of calibrated parameters that a fit chose.
    #[serde(rename = "fitted")]
    pub fitted_count: usize,
    /// Number of parameters that were chosen by hand, with published numbers in view.
    #[serde(rename = "by_hand")]
    pub set_by_hand_count: usize,
    /// Number of parameters that rest on no published number: plausible values.
    #[serde(rename = "assumed")]
    pub assumed_count: usize,
    /// Number of parameters that were calibrated only on numbers of documents outside this card.
    /// The list leaves them out.
    #[serde(rename = "elsewhere")]
    pub other_documents_count: usize,
    /// Free parameters one by one, each with its value and origin.
    pub list: Vec<FreeParameter>,
}

/// Modelled figure that supports or refutes a statement of a document.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Name of the modelled figure that belongs to a document's claim.
    #[serde(rename = "what")]
    pub subject: String,
    /// Value of the modelled figure.
    pub value: f64,
    /// Unit of the modelled figure.
    pub unit: String,
}

impl Finding {
    /// Creates a figure from its name, value and unit.
    pub fn new(what: &str, value: f64, unit: &str) -> Self {
        Self {
            subject: what.to_owned(),
            value,
            unit: unit.to_owned(),
        }
    }
}

/// Claim that a document makes in prose, with what the models give for it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct PublishedStatement {
    /// Name of the document that makes the claim.
    #[serde(rename = "published")]
    pub document: String,
    /// Text of the claim that the document makes.
    pub statement: String,
    /// Figures that the models give for the claim.
    pub findings: Vec<Finding>,
    /// Whether the models agree with the claim; absent where the claim is no matter of yes or no.
    #[serde(rename = "holds")]
    pub is_confirmed: Option<bool>,
    /// Conclusion about the claim that follows from the modelled figures.
    pub conclusion: String,
}

/// Accuracy card: the published numbers of some documents, each with the modelled one.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct AccuracyCard {
    /// Documents whose published numbers the accuracy card covers.
    pub documents: Vec<String>,
    /// Parameter settings that the user requested for the card, if any: `PATH=VALUE`.
    pub settings: Vec<String>,
    /// Seed of every random choice in the models of the accuracy card.
    pub seed: u64,
    /// Relative phases of two drives, and the share by which the second drive turns slower.
    pub two_drives: TwoDriveSettings,
    /// Free parameters of the models, with their counts.
    pub parameters: FreeParameters,
    /// Published numbers of the card, each with the modelled one.
    pub cells: Vec<AccuracyCell>,
    /// Errors of the calibrated numbers, of the predicted numbers and of all numbers, summarized.
    pub summary: Vec<AccuracySummary>,
    /// Accuracy goals for groups of published numbers, and whether each group meets its goal.
    #[serde(rename = "bars")]
    pub accuracy_bars: Vec<AccuracyBar>,
    /// Claims that the documents make in prose.
    pub statements: Vec<PublishedStatement>,
}

/// Rotation of two drives relative to each other.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct TwoDriveSettings {
    /// Number of evenly spaced relative phases of two drives over which the mean is taken.
    #[serde(rename = "phases")]
    pub phase_count: u32,
    /// Share by which the second of two drives turns slower.
    pub speed_difference_share: f64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(
        quantity: CellQuantity,
        printed: Option<f64>,
        range: Option<(f64, f64)>,
    ) -> AccuracyCell {
        AccuracyCell {
            id: "document/T1/system/8K/read_8192/1".to_owned(),
            published: "document".to_owned(),
            table_title: "T1".to_owned(),
            target: None,
            filesystem: None,
            test: None,
            drives: 1,
            quantity,
            printed_value: printed,
            printed_min: range.map(|(low, _)| low),
            printed_max: range.map(|(_, high)| high),
            modelled_value: None,
            error: None,
            is_scored: true,
            same_as_cell: None,
            role: CellRole::Prediction,
            phase_count: 1,
            seed_count: 1,
            seed_range: None,
            is_suspect: false,
            is_unexplained: false,
            note: None,
        }
    }

    fn is_near(left: Option<f64>, right: f64) -> bool {
        left.is_some_and(|left| (left - right).abs() < 1e-12)
    }

    #[test]
    fn errors_are_shares_and_of_cpu_points() {
        let rate = cell(CellQuantity::KbPerS, Some(500.0), None);
        assert!(is_near(rate.relative_error(550.0), 0.1));
        let share = cell(CellQuantity::CpuPercent, Some(70.0), None);
        assert!(is_near(share.relative_error(66.0), -4.0));
        assert!(
            is_near(share.relative_error(66.9), -4.0),
            "as csh prints it"
        );
        assert_eq!(
            cell(CellQuantity::KbPerS, None, None).relative_error(1.0),
            None
        );
    }

    #[test]
    fn within_a_printed_range_there_is_no_error() {
        let about = cell(CellQuantity::BlocksPerS, Some(40.0), Some((36.0, 44.0)));
        assert_eq!(about.relative_error(43.9), Some(0.0));
        assert!(is_near(about.relative_error(48.0), 0.2));
        let words = cell(CellQuantity::Ratio, None, Some((1.7, 2.0)));
        assert_eq!(words.relative_error(1.9), Some(0.0));
        assert!(is_near(words.relative_error(2.2), 0.1));
        assert!(is_near(words.relative_error(0.85), -0.5));
    }
}

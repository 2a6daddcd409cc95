//! Figures of a modelled drive beside the expected ones.

use serde::Serialize;

/// Figures of a modelled drive beside those that its data sheet and theory give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedFigures {
    /// Name of the drive in the catalogue.
    pub drive: String,
    /// Seed of the random request positions.
    pub seed: u64,
    /// Figures of the drive, each with the expected value.
    pub values: Vec<ExpectedValue>,
}

/// One figure of a drive: modelled and expected.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedValue {
    /// Key of the figure in the catalogue file.
    #[serde(rename = "what")]
    pub figure: String,
    /// Description of the figure in words.
    #[serde(skip)]
    pub description: String,
    /// Unit of the modelled and the expected value.
    pub unit: String,
    /// Requests in flight while the figure is measured.
    #[serde(rename = "depth")]
    pub queue_depth: u32,
    /// Settings of the drive for the measurement: `KEY=VALUE`.
    pub settings: Vec<String>,
    /// Expected value, by data sheet and theory.
    #[serde(rename = "expected")]
    pub expected_value: f64,
    /// Value of the figure on the modelled drive.
    #[serde(rename = "found")]
    pub modelled_value: f64,
    /// Modelled value divided by the expected one, less 1.
    #[serde(rename = "off_share")]
    pub deviation_share: f64,
    /// Maximum deviation from the expected value, as a share.
    pub tolerance_share: f64,
    /// Whether the deviation is within the tolerance.
    #[serde(rename = "met")]
    pub is_within_tolerance: bool,
    /// Source of the expected value, such as a data sheet.
    pub source: String,
}

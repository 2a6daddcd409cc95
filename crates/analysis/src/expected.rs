//! What a drive of the catalogue does, beside what is expected of it.

use serde::Serialize;

/// A drive's figures beside those that its data sheet and theory give.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedFigures {
    /// The drive.
    pub drive: String,
    /// Of the random places.
    pub seed: u64,
    /// One after the other.
    pub values: Vec<ExpectedValue>,
}

/// A figure of a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ExpectedValue {
    /// As the catalogue's file calls it.
    pub what: String,
    /// In words.
    #[serde(skip)]
    pub words: String,
    /// Of both values.
    pub unit: String,
    /// Requests under way.
    pub depth: u32,
    /// What the drive was set to, to be measured: `KEY=VALUE`.
    pub settings: Vec<String>,
    /// By data sheet and theory.
    pub expected: f64,
    /// What the modelled drive does.
    pub found: f64,
    /// Found over expected, less 1.
    pub off_share: f64,
    /// How far off it may be.
    pub tolerance_share: f64,
    /// Whether it is no farther off.
    pub met: bool,
    /// Where the expected value is from.
    pub source: String,
}

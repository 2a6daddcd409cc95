//! How a program is repeated and how its repetitions become one figure.

use serde::{Deserialize, Serialize};

/// The statistic that stands for all kept repetitions.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Statistic {
    /// The median elapsed time.
    Median,
    /// The shortest elapsed time, as in Zachariassen 1987.
    Minimum,
}

/// How often a program runs and what is kept.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Protocol {
    /// Repetitions in all, the discarded ones included; at least `discarded + 1`.
    pub repetitions: u32,
    /// How many of the first are run but not counted.
    pub discarded: u32,
    /// What stands for the kept ones.
    pub statistic: Statistic,
    /// Stop before `repetitions` once the 95 % interval of the elapsed time
    /// is narrower than this share of it (0.02 is one percent to each side).
    pub stop_below_share: Option<f64>,
}

/// Whether a program's reads find their bytes in memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CacheMode {
    /// Synced and dropped from the page cache before each repetition.
    Cold,
    /// Read into the page cache, and proven to be there, before each repetition.
    Warm,
    /// O_DIRECT: the page cache is not used.
    Direct,
}

impl CacheMode {
    /// The word of the command line and of the tables.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cold => "cold",
            Self::Warm => "warm",
            Self::Direct => "direct",
        }
    }
}

//! What all pairs of drives share: data, in `catalogue/published/notes.toml`.

use diskperf_analysis::accuracy::TwoDrives;
use serde::Deserialize;

/// Text of `catalogue/published/notes.toml`.
pub const NOTES: &str = include_str!("../../../catalogue/published/notes.toml");

#[derive(Deserialize)]
struct File {
    two_drives: Pair,
}

/// What the spindles of two drives share.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct Pair {
    /// Relative phases over which figures are means.
    pub phases: u32,
    /// By how much their speeds differ, as a share.
    pub speed_difference_share: f64,
    /// Where that is from.
    pub speed_difference_share_source: String,
}

/// Returns what all pairs of drives share.
///
/// # Panics
///
/// Never: a test reads the file, which is part of the program.
pub fn pair() -> Pair {
    let file: File = toml::from_str(NOTES).expect("a test reads the file that is part of it");
    file.two_drives
}

/// Returns the same as the accuracy card has it.
pub fn two_drives() -> TwoDrives {
    let pair = pair();
    TwoDrives {
        phases: pair.phases,
        speed_difference_share: pair.speed_difference_share,
    }
}

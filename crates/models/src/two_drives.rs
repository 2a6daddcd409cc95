//! Parameters that all pairs of drives share, from `catalogue/published/notes.toml`.

use diskperf_analysis::accuracy::TwoDriveSettings;
use serde::Deserialize;

/// Text of the file `catalogue/published/notes.toml`.
pub const NOTES_TEXT: &str = include_str!("../../../catalogue/published/notes.toml");

#[derive(Deserialize)]
struct NotesFile {
    two_drives: DrivePair,
}

/// Parameters of the spindles in any pair of drives.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(deny_unknown_fields)]
pub struct DrivePair {
    /// Number of relative phases that figures are averaged over.
    #[serde(rename = "phases")]
    pub phase_count: u32,
    /// Difference of the spindle speeds, as a share.
    pub speed_difference_share: f64,
    /// Source of the difference of the spindle speeds.
    pub speed_difference_share_source: String,
}

/// Returns the parameters that all pairs of drives share.
///
/// # Panics
///
/// Never panics: a test reads the file, which is part of the program.
pub fn read_pair() -> DrivePair {
    let file: NotesFile =
        toml::from_str(NOTES_TEXT).expect("a test reads the file that is part of it");
    file.two_drives
}

/// Returns the parameters of all pairs of drives, in the form of the accuracy card.
pub fn two_drive_settings() -> TwoDriveSettings {
    let pair = read_pair();
    TwoDriveSettings {
        phase_count: pair.phase_count,
        speed_difference_share: pair.speed_difference_share,
    }
}

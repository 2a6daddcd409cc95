//! Durations of formatting and verifying a drive on a modelled controller.

use diskperf_timeline::Nanoseconds;
use serde::Serialize;

/// Durations of formatting and verifying one drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FormattingTime {
    /// Description of the drive and the system that it is part of.
    #[serde(rename = "what")]
    pub drive_name: String,
    /// Number of tracks that are formatted and verified.
    #[serde(rename = "tracks")]
    pub track_count: u64,
    /// Duration of one revolution of the drive.
    #[serde(rename = "revolution")]
    pub revolution_time: Nanoseconds,
    /// Duration of formatting all tracks of the drive.
    #[serde(rename = "format")]
    pub format_time: Nanoseconds,
    /// Duration of one verify pass over all tracks.
    #[serde(rename = "verify_pass")]
    pub verify_pass_time: Nanoseconds,
    /// Number of verify passes after the formatting.
    #[serde(rename = "passes")]
    pub verify_pass_count: u32,
}

impl FormattingTime {
    /// Returns the duration of all verify passes.
    pub fn verify_time(&self) -> Nanoseconds {
        Nanoseconds(self.verify_pass_time.0 * u64::from(self.verify_pass_count))
    }

    /// Returns the total duration of formatting and verifying.
    pub fn total_time(&self) -> Nanoseconds {
        Nanoseconds(self.format_time.0 + self.verify_time().0)
    }

    /// Returns the revolutions that a duration means for each track, after `passes` passes over all
    /// tracks.
    pub fn revolutions_per_track(&self, span: Nanoseconds, passes: u32) -> f64 {
        let each = span.0 as f64 / self.track_count as f64 / f64::from(passes.max(1));
        each / self.revolution_time.0 as f64
    }
}

//! Durations of formatting and verifying a drive on a modelled controller.

use diskperf_timeline::Nanoseconds;
use serde::Serialize;

/// Durations of formatting and verifying one drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Formatting {
    /// Description of the drive and the system that it is part of.
    pub what: String,
    /// Number of tracks that are formatted and verified.
    pub tracks: u64,
    /// Duration of one revolution of the drive.
    pub revolution: Nanoseconds,
    /// Duration of formatting all tracks of the drive.
    pub format: Nanoseconds,
    /// Duration of one verify pass over all tracks.
    pub verify_pass: Nanoseconds,
    /// Number of verify passes after the formatting.
    pub passes: u32,
}

impl Formatting {
    /// Returns the duration of all verify passes.
    pub fn verify(&self) -> Nanoseconds {
        Nanoseconds(self.verify_pass.0 * u64::from(self.passes))
    }

    /// Returns the total duration of formatting and verifying.
    pub fn total(&self) -> Nanoseconds {
        Nanoseconds(self.format.0 + self.verify().0)
    }

    /// Returns the revolutions that a duration means for each track, after `passes` passes over all
    /// tracks.
    pub fn revolutions(&self, span: Nanoseconds, passes: u32) -> f64 {
        let each = span.0 as f64 / self.tracks as f64 / f64::from(passes.max(1));
        each / self.revolution.0 as f64
    }
}

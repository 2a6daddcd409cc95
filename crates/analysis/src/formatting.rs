//! How long it takes to format and verify a drive, as a modelled controller
//! does it.

use diskperf_timeline::Nanoseconds;
use serde::Serialize;

/// The times of one drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Formatting {
    /// The drive and the system that it is part of, in words.
    pub what: String,
    /// Its tracks.
    pub tracks: u64,
    /// One revolution.
    pub revolution: Nanoseconds,
    /// Formatting all tracks.
    pub format: Nanoseconds,
    /// One verify pass over all of them.
    pub verify_pass: Nanoseconds,
    /// Verify passes.
    pub passes: u32,
}

impl Formatting {
    /// All verify passes.
    pub fn verify(&self) -> Nanoseconds {
        Nanoseconds(self.verify_pass.0 * u64::from(self.passes))
    }

    /// Everything.
    pub fn total(&self) -> Nanoseconds {
        Nanoseconds(self.format.0 + self.verify().0)
    }

    /// Revolutions that a span is for each track, done `passes` times.
    pub fn revolutions(&self, span: Nanoseconds, passes: u32) -> f64 {
        let each = span.0 as f64 / self.tracks as f64 / f64::from(passes.max(1));
        each / self.revolution.0 as f64
    }
}

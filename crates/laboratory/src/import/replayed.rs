//! Replay of a drive's trace on the modelled disk that its files describe.

use diskperf_calibration::{Calibration, Score, score_disk};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::trace::ValidationRequest;
use serde::Serialize;

/// Closed-loop replays of the second half of a trace: on the disk of the files, and on the disk
/// refined by the fit.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationReplays {
    /// Number of requests in the second half of the trace.
    #[serde(rename = "requests")]
    pub request_count: usize,
    /// Accuracy of the modelled disk with the values of the files.
    #[serde(rename = "filed")]
    pub as_filed: ReplayFigures,
    /// Accuracy of the modelled disk with the fitted layer, by which the fit was scored; `reproduce
    /// real-drives` prints it.
    #[serde(rename = "fitted")]
    pub as_fitted: ReplayFigures,
}

/// Difference between a replay and the measured service times.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayFigures {
    /// Share of requests within half a millisecond of the measured time, in percent.
    pub within_half_ms_percent: f64,
    /// Root mean square of modelled minus measured time, request by request, in ms.
    pub rms_per_request_ms: f64,
    /// Root mean square distance between the distributions of modelled and measured times, in ms.
    pub demerit_ms: f64,
    /// Mean of modelled minus measured time, in ms.
    pub bias_ms: f64,
}

impl ReplayFigures {
    pub(super) fn new(score: &Score) -> Self {
        Self {
            within_half_ms_percent: score.within_half_ms_percent,
            rms_per_request_ms: score.request_rms_ms,
            demerit_ms: score.demerit_ms,
            bias_ms: score.bias_ms,
        }
    }
}

impl CalibrationReplays {
    /// Replays a trace on the disk of the files and on the fitted disk.
    pub(super) fn new(
        (filed, fitted): (&DiskSpecification, &DiskSpecification),
        requests: &[ValidationRequest],
        found: &Calibration,
    ) -> Self {
        let figures = |disk: &DiskSpecification| {
            ReplayFigures::new(&score_disk(disk, requests, found.think_position))
        };
        Self {
            request_count: requests.len() - requests.len() / 2,
            as_filed: figures(filed),
            as_fitted: figures(fitted),
        }
    }
}

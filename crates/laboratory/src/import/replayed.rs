//! A drive's trace, replayed on the modelled disk that was made of its files.

use diskperf_calibration::{Calibration, Score, score};
use diskperf_device::disk::device::DiskSpecification;
use diskperf_diskspecs::trace::Request;
use serde::Serialize;

/// Figures of the second half of a trace, in a closed loop: the disk of the files, and that of
/// the fitted layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replays {
    /// Requests of the second half.
    pub requests: usize,
    /// The modelled disk with the values of the files.
    pub filed: ReplayFigures,
    /// The same with the layer: what the fit was scored with and `reproduce real-drives`
    /// prints.
    pub fitted: ReplayFigures,
}

/// How far a replay is from what was measured.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayFigures {
    /// The share of requests within half a millisecond.
    pub within_half_ms_percent: f64,
    /// Root mean square of modelled less measured, request by request.
    pub rms_per_request_ms: f64,
    /// Root mean square of the distance between the distributions.
    pub demerit_ms: f64,
    /// Mean of modelled less measured.
    pub bias_ms: f64,
}

impl ReplayFigures {
    pub(super) fn new(score: &Score) -> Self {
        Self {
            within_half_ms_percent: score.within_half_ms_percent,
            rms_per_request_ms: score.rms_per_request_ms,
            demerit_ms: score.demerit_ms,
            bias_ms: score.bias_ms,
        }
    }
}

impl Replays {
    /// Replays the trace on the disks of the files and of the layer.
    pub(super) fn new(
        (filed, fitted): (&DiskSpecification, &DiskSpecification),
        requests: &[Request],
        found: &Calibration,
    ) -> Self {
        let figures =
            |disk: &DiskSpecification| ReplayFigures::new(&score(disk, requests, found.think));
        Self {
            requests: requests.len() - requests.len() / 2,
            filed: figures(filed),
            fitted: figures(fitted),
        }
    }
}

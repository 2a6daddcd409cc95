//! Fit of a drive to a trace, and the test whether the trace belongs to the drive.

use super::replayed::{CalibrationReplays, ReplayFigures};
use crate::reproduce::real_drives::build_phase;
use diskperf_analysis::real_drives::{SpindlePhase, ThinkTimeReference};
use diskperf_calibration::Calibration;
use serde::Serialize;

/// Result of fitting a drive to the first part of a trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CalibrationFit {
    /// Number of requests in the whole trace.
    #[serde(rename = "requests")]
    pub request_count: usize,
    /// Number of requests at the start of the trace that the drive was fitted to.
    #[serde(rename = "fitted_requests")]
    pub fitted_request_count: usize,
    /// Phase of the spindle that the fitted requests show, as `reproduce real-drives` prints it.
    pub phase: SpindlePhase,
    /// Whether enough requests are on neighbouring cylinders for a trace of this drive to show the
    /// position of its pauses.
    pub shows_angles: bool,
    /// Whether the trace may belong to this drive, judged by the phase and by the error of the
    /// replay.
    #[serde(rename = "fits")]
    pub is_good: bool,
}

/// Minimum phase coherence `R` of a trace that belongs to the drive. Below it, requests do not lie
/// where the files place their sectors. Traces of the drives themselves have 0.99 and more.
const RESULTANT_LENGTH_MIN: f64 = 0.9;
/// Value of `R` that close pairs of requests may reach by chance. Above it, a trace may show no
/// phase for lack of requests. The four measured drives reach 0.56 or more on a fifth of their
/// traces.
const CHANCE_RESULTANT_LENGTH_MAX: f64 = 0.5;

impl CalibrationFit {
    /// Creates the fit of a drive to a trace. Returns a warning with the evidence if the trace does
    /// not belong to the drive.
    pub(super) fn new(found: &Calibration, replays: &CalibrationReplays) -> (Self, Option<String>) {
        let mut fit = Self {
            request_count: found.request_count,
            fitted_request_count: found.fitted_request_count,
            phase: build_phase(found),
            shows_angles: found
                .phase
                .is_some_and(|phase| phase.chance_agreement_close < CHANCE_RESULTANT_LENGTH_MAX),
            is_good: true,
        };
        let warning = fit.describe_warning(replays);
        fit.is_good = warning.is_none();
        (fit, warning)
    }

    fn describe_warning(&self, replays: &CalibrationReplays) -> Option<String> {
        let signs: Vec<String> = [
            self.describe_phase_problem(),
            self.describe_error_problem(&replays.as_fitted),
        ]
        .into_iter()
        .flatten()
        .collect();
        let warning = |signs: String| {
            format!(
                "warning: the trace does not fit this drive, so what was fitted is not its own: {signs}. Check that the trace and the files are of one drive"
            )
        };
        (!signs.is_empty()).then(|| warning(signs.join("; ")))
    }

    /// Describes evidence from the platter angle that the trace belongs to another drive.
    fn describe_phase_problem(&self) -> Option<String> {
        let SpindlePhase {
            resultant_length: r,
            think_time_reference: think,
            ..
        } = self.phase;
        match think {
            ThinkTimeReference::Undetermined if !self.shows_angles => None,
            ThinkTimeReference::Undetermined => Some(
                "its requests do not agree on the angle of platters of this speed and layout (no phase)"
                    .to_owned(),
            ),
            _ if r < RESULTANT_LENGTH_MIN => Some(format!(
                "its requests hardly agree on the angle of the platters (R {r:.3}; its own trace has {RESULTANT_LENGTH_MIN} or more)"
            )),
            _ => None,
        }
    }

    /// Describes evidence from the replay that the trace belongs to another drive: its error is at
    /// least that of two platters at random angles.
    fn describe_error_problem(&self, fitted: &ReplayFigures) -> Option<String> {
        let by_chance_ms = self.phase.period_us / 1e3 / 6f64.sqrt();
        let ReplayFigures {
            rms_per_request_ms: rms_ms,
            within_half_ms_percent: share,
            ..
        } = *fitted;
        (rms_ms >= by_chance_ms).then(|| {
            format!(
                "fitted, it is off by {rms_ms:.3} ms RMS and within 0.5 ms of {share:.1} % of the requests, where platters at random angles are off by {by_chance_ms:.3} ms"
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warning(think: ThinkTimeReference, r: f64, rms_per_request_ms: f64) -> Option<String> {
        warning_of((think, true), r, rms_per_request_ms)
    }

    fn warning_of(
        (think, shows_angles): (ThinkTimeReference, bool),
        r: f64,
        rms_per_request_ms: f64,
    ) -> Option<String> {
        let figures = ReplayFigures {
            within_half_ms_percent: 56.6,
            rms_per_request_ms,
            demerit_ms: 1.0,
            bias_ms: 0.0,
        };
        let fit = CalibrationFit {
            request_count: 10_000,
            fitted_request_count: 5000,
            phase: SpindlePhase {
                resultant_length: r,
                period_us: 6000.0,
                period_uncertainty_ppm: 0.0,
                think_time_reference: think,
                false_alarm_probability: 1.0,
                phase_steps: Vec::new(),
            },
            shows_angles,
            is_good: true,
        };
        fit.describe_warning(&CalibrationReplays {
            request_count: 5000,
            as_filed: figures.clone(),
            as_fitted: figures,
        })
    }

    #[test]
    fn the_trace_of_another_drive_is_told_by_phase_and_error() {
        assert_eq!(
            warning(ThinkTimeReference::BeforeSubmission, 0.995, 1.2),
            None
        );
        for (think, r, rms_ms, sign) in [
            (ThinkTimeReference::Undetermined, 0.3, 1.2, "no phase"),
            (ThinkTimeReference::AfterCompletion, 0.4, 1.2, "R 0.400"),
            (
                ThinkTimeReference::AfterCompletion,
                0.99,
                2.5,
                "2.500 ms RMS",
            ),
        ] {
            let warning = warning(think, r, rms_ms).expect("a warning");
            assert!(warning.contains(sign), "{warning}");
            assert!(warning.contains("does not fit this drive"), "{warning}");
        }
        // Too few requests say nothing against the drive; what they replay may.
        assert_eq!(
            warning_of((ThinkTimeReference::Undetermined, false), 0.3, 1.2),
            None
        );
        let off =
            warning_of((ThinkTimeReference::Undetermined, false), 0.3, 2.5).expect("a warning");
        assert!(!off.contains("no phase"), "{off}");
        // 6 ms by the root of 6.
        let both = warning(ThinkTimeReference::Undetermined, 0.3, 2.45).expect("a warning");
        assert!(
            both.contains("no phase") && both.contains("2.449 ms"),
            "{both}"
        );
    }
}

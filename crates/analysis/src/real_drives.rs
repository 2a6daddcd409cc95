//! Real drives, each with a model that was fitted to the first half of its trace and
//! replayed against the second.

use serde::Serialize;

/// Results for all real drives of a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RealDrives {
    /// Real drives of the folder, sorted by name.
    pub drives: Vec<RealDrive>,
}

impl RealDrives {
    /// Tests whether any drive of the folder was replayed.
    pub fn has_replayed_drives(&self) -> bool {
        let mut outcomes = self.drives.iter().map(|drive| &drive.outcome);
        outcomes.any(|outcome| matches!(outcome, DriveOutcome::Replayed(_)))
    }
}

/// One real drive, with the result of its replay or the reason for having none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RealDrive {
    /// Name of the drive, which is that of its files.
    pub name: String,
    /// File with the drive's parameters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// Result of the drive's replay, or the reason for its refusal.
    #[serde(flatten)]
    pub outcome: DriveOutcome,
}

/// Result of one drive: replayed or refused.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum DriveOutcome {
    /// The drive's trace was replayed.
    Replayed(Box<ReplayResult>),
    /// The drive's files cannot be used.
    Refused {
        /// Reason for the refusal, with the file, the line and the key.
        error: String,
    },
}

/// Results of a replayed drive. All figures except `requests` cover the second half of the trace.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ReplayResult {
    /// Number of requests in the whole trace.
    #[serde(rename = "requests")]
    pub request_count: usize,
    /// Number of requests in the second half of the trace.
    #[serde(rename = "scored_requests")]
    pub scored_request_count: usize,
    /// Score of the model with the fitted parameters.
    #[serde(flatten)]
    pub replay_score: ReplayScore,
    /// Phase of the spindle that the first half of the trace shows.
    #[serde(rename = "phase")]
    pub spindle_phase: SpindlePhase,
    /// Parameters that were fitted to the first half of the trace.
    #[serde(rename = "fitted")]
    pub fitted_parameters: Vec<FittedParameter>,
    /// Score of the model with the parameters from its files, where only the pauses and the
    /// revolution period are fitted.
    #[serde(rename = "unfitted")]
    pub unfitted_score: ReplayScore,
    /// Quantiles of the measured service times.
    #[serde(rename = "measured")]
    pub measured_quantiles: ResponseQuantiles,
    /// Number of reads that the drive's buffer served.
    pub buffer_reads: BufferReadCounts,
    /// Requests with an error above half a millisecond, counted by cause.
    #[serde(rename = "remaining")]
    pub remaining_errors: Vec<RemainingError>,
    /// Requests with an error above half a millisecond, one by one.
    #[serde(rename = "off")]
    pub worst_requests: Vec<MispredictedRequest>,
}

/// Score of a modelled drive: the errors of its service times in a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ReplayScore {
    /// Measured mean service time in ms.
    pub mean_ms: f64,
    /// Demerit figure: root mean square distance between the modelled and the measured
    /// distribution, in ms.
    pub demerit_ms: f64,
    /// Demerit figure in percent of the measured mean.
    pub demerit_percent: f64,
    /// Mean of modelled less measured service time, in ms.
    pub bias_ms: f64,
    /// Root mean square of modelled less measured service time, in ms.
    pub rms_per_request_ms: f64,
    /// Percentage of requests with an error of at most half a millisecond.
    pub within_half_ms_percent: f64,
    /// Quantiles of the modelled service times.
    #[serde(rename = "modelled")]
    pub modelled_quantiles: ResponseQuantiles,
}

/// Percentiles of the service times of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct ResponseQuantiles {
    /// Median service time in ms.
    pub p50_ms: f64,
    /// 90th percentile of the service time in ms.
    pub p90_ms: f64,
    /// 99th percentile of the service time in ms.
    pub p99_ms: f64,
}

/// Phase of the spindle, as far as a trace shows it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SpindlePhase {
    /// Agreement of the requests on the platter's angle, from 0 to 1: 1 if all agree.
    #[serde(rename = "r")]
    pub resultant_length: f64,
    /// Duration of a revolution in microseconds.
    pub period_us: f64,
    /// Deviation of the revolution from its nominal duration, in parts per million.
    #[serde(rename = "ppm")]
    pub period_uncertainty_ppm: f64,
    /// Position of the trace's pauses: before or after their requests.
    #[serde(rename = "think")]
    pub think_time_reference: ThinkTimeReference,
    /// Upper bound of the probability that requests without a phase agree as well in any of the
    /// periods, skews and positions of pauses that were tried. 1 where hardly two requests are near
    /// each other.
    #[serde(rename = "false_alarm")]
    pub false_alarm_probability: f64,
    /// Jumps of the spindle's phase in the part of the trace that was fitted.
    #[serde(rename = "steps")]
    pub phase_steps: Vec<PhaseStep>,
}

/// Jump of a trace's phase, where lines were dropped or the clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseStep {
    /// First request after the jump, counted from 1 in the whole trace.
    #[serde(rename = "request")]
    pub request_index: usize,
    /// Rotation of the platter that the trace's times lack, in revolutions from -0.5 to 0.5.
    #[serde(rename = "turned_rev")]
    pub phase_change_rev: f64,
}

/// Position of a trace's pauses relative to the requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum ThinkTimeReference {
    /// The trace's pauses come before their requests.
    #[serde(rename = "before")]
    BeforeSubmission,
    /// The trace's pauses come after their requests.
    #[serde(rename = "after")]
    AfterCompletion,
    /// The trace does not show the position; the replay assumes pauses after requests.
    #[serde(rename = "unknown")]
    Undetermined,
}

/// Fitted parameter with its interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedParameter {
    /// Name of the parameter, with its unit.
    #[serde(rename = "parameter")]
    pub name: String,
    /// Value of the parameter by the fit.
    pub value: f64,
    /// Lower end of the parameter's interval.
    #[serde(rename = "low")]
    pub interval_min: f64,
    /// Upper end of the parameter's interval.
    #[serde(rename = "high")]
    pub interval_max: f64,
}

/// Number of reads from the buffer in the second half of the trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BufferReadCounts {
    /// Number of buffer reads in the trace, by their service times.
    #[serde(rename = "measured")]
    pub measured_count: usize,
    /// Number of buffer reads in the model.
    #[serde(rename = "modelled")]
    pub modelled_count: usize,
}

/// Requests whose modelled service time is wrong for one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RemainingError {
    /// Description of the cause of the errors.
    pub cause: String,
    /// Whether the errors are multiples of a revolution.
    #[serde(rename = "revolution")]
    pub is_revolution: bool,
    /// Number of requests with errors of this cause.
    #[serde(rename = "requests")]
    pub request_count: usize,
    /// Number of requests for which the drive took longer than the model.
    #[serde(rename = "drive_slower")]
    pub drive_slower_count: usize,
    /// Share of the total squared error, in percent, that the cause explains.
    pub squared_error_percent: f64,
    /// Median absolute difference in ms between the arm's arrival in the model and the arrival that
    /// the measured revolution requires; `None` for causes that are no revolutions.
    #[serde(rename = "arrival_off_p50_ms")]
    pub arrival_error_p50_ms: Option<f64>,
    /// 90th percentile of the absolute difference in the arm's arrival, in ms; `None` for causes
    /// that are no revolutions.
    #[serde(rename = "arrival_off_p90_ms")]
    pub arrival_error_p90_ms: Option<f64>,
}

/// Request with an error above half a millisecond.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MispredictedRequest {
    /// Number of the request in the trace, counted from 1.
    #[serde(rename = "request")]
    pub request_index: usize,
    /// Operation of the wrongly modelled request: read or write.
    pub operation: DiskOperation,
    /// First block that the request accesses.
    pub first_block: u64,
    /// Number of blocks that the request accesses.
    #[serde(rename = "blocks")]
    pub block_count: u32,
    /// Service time of the request in the trace, in ms.
    pub measured_ms: f64,
    /// Service time of the request in the model, in ms.
    pub modelled_ms: f64,
    /// Description of the cause, as in [`RemainingError`].
    pub cause: String,
    /// Delay of the arm's arrival, relative to the model, that the measured revolution requires, in
    /// ms; negative for an earlier arrival. Only for errors of whole revolutions.
    #[serde(rename = "arrival_off_ms")]
    pub arrival_error_ms: Option<f64>,
}

/// Operation of a request: read or write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DiskOperation {
    /// Read of blocks from the drive.
    Read,
    /// Write of blocks to the drive.
    Write,
}

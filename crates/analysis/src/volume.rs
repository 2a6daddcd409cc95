//! Loads on cloud volumes: which volumes carry a load, when their credits end, and what is left.

use serde::Serialize;

/// Volumes under a load that repeats.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeReport {
    /// Load that the volumes are given.
    pub load: LoadFigures,
    /// Figures of each volume.
    pub volumes: Vec<VolumeFigures>,
}

/// Load of the volumes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LoadFigures {
    /// Job file or trace, as the user named it.
    pub name: String,
    /// Whether requests arrive at a rate of their own. If not, a fixed number is in flight.
    pub is_open: bool,
    /// Duration of one repetition in seconds.
    pub duration_s: f64,
    /// Duration of all repetitions in seconds.
    pub total_s: f64,
    /// Mean rate of arrivals in requests per second; `None` for a load that is not open.
    pub iops_mean: Option<f64>,
    /// Highest rate of arrivals in requests per second; `None` for a load that is not open.
    pub iops_max: Option<f64>,
    /// Requests in flight; `None` for an open load.
    pub depth: Option<u32>,
    /// Mean size of a request in bytes.
    pub bytes_mean: f64,
    /// Share of reads among the requests.
    pub read_share: f64,
    /// Smallest size of a volume that holds the data, in GiB.
    pub size_gib_min: u64,
    /// Properties of the load that the calculation leaves out.
    pub notes: Vec<String>,
}

/// Ability of a volume to carry a load.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum VolumeVerdict {
    /// No request of an open load waits for a limit for more than a second.
    Carries,
    /// Requests wait for longer, and each repetition catches up.
    FallsBehind,
    /// The backlog grows from one repetition to the next and is never empty.
    Fails,
    /// A closed loop is as fast at the end as at the start.
    Steady,
    /// A closed loop is slower at the end than at the start.
    Slows,
}

/// Figures of one volume under a load.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumeFigures {
    /// Type of the volume: the name of a drive of the catalogue.
    pub volume: String,
    /// Size of the volume in GiB.
    pub size_gib: u64,
    /// Settings other than the size, as the catalogue takes them.
    pub settings: Vec<String>,
    /// Whether the size and the settings are the smallest ones that carry the load.
    pub is_smallest: bool,
    /// Whether the volume carries the load.
    pub verdict: VolumeVerdict,
    /// Median of the response time in milliseconds.
    pub p50_ms: f64,
    /// 99th percentile of the response time in milliseconds.
    pub p99_ms: f64,
    /// Longest wait for a limit in seconds.
    pub wait_max_s: f64,
    /// Seconds until credits first end; `None` if they never do.
    pub credits_end_s: Option<f64>,
    /// Share of the time in which credits are used up and limit the rate.
    pub credits_ended_share: f64,
    /// Credits at the end as a share of their maximum, of the limit with the smallest share;
    /// `None` without credits.
    pub credits_left_share: Option<f64>,
    /// Requests that wait at the end.
    pub backlog_end: f64,
    /// Rate of completions after 30 s, in requests per second, or at the end of a shorter load.
    pub iops_start: f64,
    /// Rate of completions in the last phase, in requests per second.
    pub iops_end: f64,
    /// Limit that determines the rate for the longest time; `None` if no limit ever does.
    pub limit: Option<String>,
    /// Phases of constant rate, the first ones of many.
    pub phases: Vec<VolumePhase>,
    /// Number of phases that are not listed.
    pub phases_left_out: usize,
}

/// Time in which a volume serves a load at a constant rate.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct VolumePhase {
    /// Start of the phase in seconds.
    pub start_s: f64,
    /// End of the phase in seconds.
    pub end_s: f64,
    /// Rate of completions in requests per second.
    pub iops: f64,
    /// Requests that wait at the end of the phase.
    pub backlog_end: f64,
    /// Limit that determines the rate; `None` if the load does.
    pub limit: Option<String>,
    /// Whether the credits of the limit are used up.
    pub credits_ended: bool,
}

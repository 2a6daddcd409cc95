//! Real drives, each with a model that was fitted to the first half of its trace and
//! replayed against the second.

use serde::Serialize;

/// The drives of a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RealDrives {
    /// By name.
    pub drives: Vec<RealDrive>,
}

/// One drive: what became of its replay, or why there is none.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RealDrive {
    /// As its files are called.
    pub name: String,
    /// The file of parameters that was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parameters: Option<String>,
    /// What was found.
    #[serde(flatten)]
    pub outcome: Outcome,
}

/// What became of a drive.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Outcome {
    /// It was replayed.
    Replayed(Box<Replayed>),
    /// Its files cannot be used.
    Refused {
        /// Why, with the file, the line and the key.
        error: String,
    },
}

/// A drive that was replayed. All figures but `requests` are of the second half.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Replayed {
    /// In the whole trace.
    pub requests: usize,
    /// In the second half.
    pub scored_requests: usize,
    /// The measured mean of the second half.
    pub mean_ms: f64,
    /// With what was fitted.
    #[serde(flatten)]
    pub score: Score,
    /// What the first half shows of the spindle.
    pub phase: Phase,
    /// What was fitted to the first half.
    pub fitted: Vec<FittedNumber>,
    /// As the files are, with the pauses and the period alone.
    pub unfitted: Score,
    /// Measured service times.
    pub measured: Quantiles,
    /// Reads from the buffer.
    pub buffer_reads: BufferReads,
    /// Requests off by more than half a millisecond.
    pub remaining: Vec<Remaining>,
}

/// Figures of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The root mean square distance of the distributions.
    pub demerit_ms: f64,
    /// The same as a share of the measured mean.
    pub demerit_percent: f64,
    /// The mean of modelled less measured.
    pub bias_ms: f64,
    /// The root mean square of modelled less measured.
    pub rms_per_request_ms: f64,
    /// Requests off by no more than half a millisecond.
    pub within_half_ms_percent: f64,
    /// Modelled service times.
    pub modelled: Quantiles,
}

/// Quantiles of service times.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Quantiles {
    /// Half are shorter.
    pub p50_ms: f64,
    /// Nine of ten are shorter.
    pub p90_ms: f64,
    /// 99 of 100 are shorter.
    pub p99_ms: f64,
}

/// What a trace shows of the spindle.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// How much the requests agree on the platter's angle: 1 if all do.
    pub r: f64,
    /// A revolution.
    pub period_us: f64,
    /// How much longer than the nominal one, in parts per million.
    pub ppm: f64,
    /// Where the pauses are.
    pub think: Think,
}

/// Where a trace's pauses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Think {
    /// Before their requests.
    Before,
    /// After them.
    After,
    /// The trace does not show it: they are taken to be after.
    Unknown,
}

/// A number that was fitted.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FittedNumber {
    /// Its name, with its unit.
    pub parameter: String,
    /// Its value.
    pub value: f64,
    /// The lower end of its interval.
    pub low: f64,
    /// The upper end.
    pub high: f64,
}

/// Reads from the buffer, in the second half.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BufferReads {
    /// By their measured times.
    pub measured: usize,
    /// By the model.
    pub modelled: usize,
}

/// Requests that are off by one cause.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Remaining {
    /// In words.
    pub cause: String,
    /// How many.
    pub requests: usize,
    /// Their share of the squared error.
    pub squared_error_percent: f64,
}

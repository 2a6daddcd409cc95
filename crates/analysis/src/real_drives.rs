//! Real drives, each with a model that was fitted to the first half of its trace and
//! replayed against the second.

use serde::Serialize;

/// The drives of a folder.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct RealDrives {
    /// By name.
    pub drives: Vec<RealDrive>,
}

impl RealDrives {
    /// Whether any drive was replayed.
    pub fn has_replays(&self) -> bool {
        let mut outcomes = self.drives.iter().map(|drive| &drive.outcome);
        outcomes.any(|outcome| matches!(outcome, Outcome::Replayed(_)))
    }
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
    /// Requests off by more than half a millisecond, by cause.
    pub remaining: Vec<Remaining>,
    /// The same one by one.
    pub off: Vec<OffRequest>,
}

/// Figures of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Score {
    /// The measured mean.
    pub mean_ms: f64,
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
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Phase {
    /// How much the requests agree on the platter's angle: 1 if all do.
    pub r: f64,
    /// A revolution.
    pub period_us: f64,
    /// How much longer than the nominal one, in parts per million.
    pub ppm: f64,
    /// Where the pauses are.
    pub think: Think,
    /// Upper bound of the probability that requests without a phase agree as well in any of
    /// the periods, skews and places of pauses that were tried. 1 where hardly two requests
    /// are near each other.
    pub false_alarm: f64,
    /// Jumps of the phase among the requests that were fitted to.
    pub steps: Vec<PhaseStep>,
}

/// A jump of a trace's phase: lines were dropped there, or the clock was set.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PhaseStep {
    /// First request that shows it, counted from 1 over the whole trace.
    pub request: usize,
    /// Turn of the platter that the trace's times lack, in revolutions from -0.5 to 0.5.
    pub turned_rev: f64,
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
    /// Whether they are off by whole revolutions.
    pub revolution: bool,
    /// How many.
    pub requests: usize,
    /// How many of them the drive took longer for than the model.
    pub drive_slower: usize,
    /// Their share of the squared error.
    pub squared_error_percent: f64,
    /// Half of them needed the arm earlier or later by no more than this; nothing of causes
    /// that are no revolutions.
    pub arrival_off_p50_ms: Option<f64>,
    /// Nine of ten of them.
    pub arrival_off_p90_ms: Option<f64>,
}

/// A request that is off by more than half a millisecond.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OffRequest {
    /// Which of the trace, from 1.
    pub request: usize,
    /// What was asked.
    pub operation: Operation,
    /// Where it begins.
    pub first_block: u64,
    /// How many blocks.
    pub blocks: u32,
    /// Its service time.
    pub measured_ms: f64,
    /// The model's.
    pub modelled_ms: f64,
    /// In words, as in [`Remaining`].
    pub cause: String,
    /// By how much later than in the model the arm would have had to come for the measured
    /// revolution; negative: earlier. Of those that are off by whole revolutions.
    pub arrival_off_ms: Option<f64>,
}

/// What a request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Operation {
    /// Blocks from the drive.
    Read,
    /// Blocks to it.
    Write,
}

//! Run time, order, rate limits, think time, end conditions, verification and reporting of a job.

use std::sync::Arc;

use super::PerDirection;
use crate::verify::{BytePattern, Checksum};

/// Time limits and delays of a job, in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JobDurations {
    /// Maximum run time (`runtime`), in microseconds; 0 means no limit.
    pub runtime_us: u64,
    /// Flag `time_based`: the job repeats its workload until the run time has elapsed. False
    /// without a run time.
    pub is_time_based: bool,
    /// Warm-up before measurement starts (`ramp_time`), in microseconds.
    pub ramp_us: u64,
    /// Delay before the job starts (`startdelay`), in microseconds. Each clone draws its delay from
    /// this range.
    pub start_delay_us: (u64, u64),
}

/// Set of jobs that end when a job with `exitall` ends (`exit_what`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EndedJobs {
    /// Jobs of the same reporting group end.
    #[default]
    Group,
    /// All running jobs end, but jobs after the next stonewall still run.
    Stonewall,
    /// All jobs of the file end, including those not yet started.
    All,
}

/// Clones of a job and its order relative to other jobs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobOrder {
    /// Number of workers that run the same job (`numjobs`).
    pub clone_count: u32,
    /// Flag `thread`: workers are threads of one process.
    pub uses_threads: bool,
    /// Flag `stonewall`: the job waits for all previous jobs of the file and starts a new reporting
    /// group.
    pub waits_for_earlier_jobs: bool,
    /// Flag `new_group`: the job starts a new reporting group.
    pub starts_group: bool,
    /// Name of the job that must end before this one starts (`wait_for`).
    pub awaited_job: Option<String>,
    /// Flag `exitall`, given in this or another section: when this job ends, other jobs end too.
    pub ends_others: bool,
    /// Set of jobs that end with this one (`exit_what`).
    pub ended_jobs: EndedJobs,
    /// Flag `exitall_on_error`: other jobs end if this job fails.
    pub ends_others_on_error: bool,
    /// Command that fio runs before the job (`exec_prerun`).
    pub command_before: Option<String>,
    /// Command that fio runs after the job (`exec_postrun`).
    pub command_after: Option<String>,
    /// Weight of the job among the jobs with the same flow id (`flow`); 0 means no flow control.
    pub flow_weight: u32,
    /// Id of the flow group that shares I/O by weight (`flow_id`).
    pub flow_id: u32,
    /// Pause of a job that exceeds its share of the flow, in microseconds (`flow_sleep`).
    pub flow_sleep_us: u32,
}

impl Default for JobOrder {
    fn default() -> JobOrder {
        JobOrder {
            clone_count: 1,
            uses_threads: false,
            waits_for_earlier_jobs: false,
            starts_group: false,
            awaited_job: None,
            ends_others: false,
            ended_jobs: EndedJobs::default(),
            ends_others_on_error: false,
            command_before: None,
            command_after: None,
            flow_weight: 0,
            flow_id: 0,
            flow_sleep_us: 0,
        }
    }
}

/// Spacing of the submissions of a rate-limited job (`rate_process`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ArrivalProcess {
    /// Linear: equal intervals between the submissions of a rate-limited job.
    #[default]
    Linear,
    /// Poisson: random intervals of a Poisson process between the submissions of a rate-limited
    /// job.
    Poisson,
}

/// Rate limits of each clone of a job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RateLimit {
    /// Maximum throughput of each direction in bytes per second (`rate`); `None` means no limit.
    pub bytes_per_s: PerDirection<Option<u64>>,
    /// Maximum I/Os per second of each direction (`rate_iops`). Limits per direction determine the
    /// mix, so `rwmixread` has no effect.
    pub iops: PerDirection<Option<u32>>,
    /// Minimum throughput of each direction in bytes per second (`rate_min`). A slower job ends
    /// with an error.
    pub bytes_per_s_min: PerDirection<Option<u64>>,
    /// Minimum I/Os per second of each direction (`rate_iops_min`). A slower job ends with an
    /// error.
    pub iops_min: PerDirection<Option<u32>>,
    /// Spacing of submissions (`rate_process`).
    pub arrival_process: ArrivalProcess,
    /// Averaging period for the minimum rates, in milliseconds (`rate_cycle`).
    pub cycle_ms: u32,
    /// Flag `rate_ignore_thinktime`: the job does not catch up on I/O missed during think time.
    pub ignores_think_time: bool,
}

impl Default for RateLimit {
    fn default() -> RateLimit {
        RateLimit {
            bytes_per_s: PerDirection::default(),
            iops: PerDirection::default(),
            bytes_per_s_min: PerDirection::default(),
            iops_min: PerDirection::default(),
            arrival_process: ArrivalProcess::default(),
            cycle_ms: 1000,
            ignores_think_time: false,
        }
    }
}

impl RateLimit {
    /// Reports whether the job has a maximum rate in any direction.
    pub fn is_limited(&self) -> bool {
        self.bytes_per_s != PerDirection::default() || self.iops != PerDirection::default()
    }
}

/// Event that is counted toward the next pause (`thinktime_blocks_type`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkEvent {
    /// Completions of I/Os count toward the next think-time pause.
    #[default]
    Completion,
    /// Submissions of I/Os count toward the next think-time pause.
    Issue,
}

/// Think time: pauses of a job between its I/Os.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ThinkTime {
    /// Length of a pause in microseconds (`thinktime`); 0 means no pauses.
    pub pause_us: u32,
    /// Part of a pause in which the worker keeps the CPU busy, in microseconds (`thinktime_spin`).
    pub busy_us: u32,
    /// I/Os between two pauses (`thinktime_blocks`).
    pub ios_between: u32,
    /// Event that counts as an I/O, submission or completion (`thinktime_blocks_type`).
    pub counted_event: ThinkEvent,
    /// I/O time between two pauses, in microseconds (`thinktime_iotime`); 0 disables such pauses.
    pub interval_us: u64,
}

impl Default for ThinkTime {
    fn default() -> ThinkTime {
        ThinkTime {
            pause_us: 0,
            busy_us: 0,
            ios_between: 1,
            counted_event: ThinkEvent::default(),
            interval_us: 0,
        }
    }
}

/// Latency target with the search for a queue depth that meets it, and the latency limit of a job.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct LatencyTarget {
    /// Latency target in microseconds (`latency_target`); 0 means no target.
    pub target_us: u64,
    /// Window over which latency is compared with the target, in microseconds (`latency_window`).
    pub window_us: u64,
    /// Percentage of I/Os that must meet the latency target (`latency_percentile`).
    pub percentile: f64,
    /// Flag `latency_run`: the job keeps adjusting the queue depth after the search ends.
    pub keep_running: bool,
    /// Latency limit in microseconds (`max_latency`). A slower I/O ends the job; 0 means no limit.
    pub limit_us: u64,
}

impl Default for LatencyTarget {
    fn default() -> LatencyTarget {
        LatencyTarget {
            target_us: 0,
            window_us: 0,
            percentile: 100.0,
            keep_running: false,
            limit_us: 0,
        }
    }
}

/// Quantity that must reach a steady state (`ss`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SteadyMetric {
    /// Rate of I/Os per second must become steady.
    Iops,
    /// Throughput in bytes per second must become steady.
    Bandwidth,
    /// Mean completion latency must become steady. Only versions of fio after 3.33 have this
    /// criterion.
    Latency,
}

/// Tolerance of the steady-state test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyLimit {
    /// Tolerance in percent of the mean.
    Percent(f64),
    /// Absolute tolerance in the unit of the tested quantity: I/Os per second, bytes per second or
    /// nanoseconds.
    Absolute(f64),
}

/// Steady-state detection (`steadystate` and related options).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SteadyState {
    /// Whether the job ends when it reaches a steady state.
    pub is_enabled: bool,
    /// Quantity that must reach a steady state.
    pub metric: SteadyMetric,
    /// Flag for a test of the regression slope per sample; if unset, the test uses the largest
    /// deviation from the mean.
    pub uses_slope: bool,
    /// Largest slope or deviation that counts as steady.
    pub limit: SteadyLimit,
    /// Window of the steady-state test in microseconds (`ss_dur`).
    pub window_us: u64,
    /// Delay before the first steady-state sample, in microseconds (`ss_ramp`).
    pub ramp_us: u64,
    /// Interval between steady-state samples, in microseconds (`ss_interval`).
    pub interval_us: u64,
}

impl Default for SteadyState {
    fn default() -> SteadyState {
        SteadyState {
            is_enabled: false,
            metric: SteadyMetric::Iops,
            uses_slope: true,
            limit: SteadyLimit::Percent(0.01),
            window_us: 0,
            ramp_us: 0,
            interval_us: 1_000_000,
        }
    }
}

/// Content of the blocks that a job writes and later verifies (`verify`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// No verification: the job reads nothing back.
    #[default]
    None,
    /// Verification header with a checksum of the data that follows.
    Checksum(Checksum),
    /// Verification header alone, without a data checksum (`meta`).
    Header,
    /// Verification header followed by a byte pattern (`verify_pattern` without `verify`).
    HeaderAndPattern,
    /// Byte pattern without a verification header.
    Pattern,
    /// Data that the job reads back without comparing (`null`).
    Null,
}

impl Verification {
    /// Returns fio's name of the verification method. Newer fio versions alone have a name for a
    /// header followed by a pattern.
    pub const fn name(self) -> &'static str {
        match self {
            Verification::None => "0",
            Verification::Checksum(checksum) => checksum.name(),
            Verification::Header => "meta",
            Verification::HeaderAndPattern => "pattern_hdr",
            Verification::Pattern => "pattern",
            Verification::Null => "null",
        }
    }
}

/// Verification of written data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// Verification method of the job (`verify`).
    pub kind: Verification,
    /// Flag `do_verify`: the job reads written data back.
    pub reads_back: bool,
    /// Flag `verify_only`: the job writes nothing and only verifies.
    pub only_verifies: bool,
    /// Flag `verify_fatal`: the first mismatch ends the job.
    pub ends_on_mismatch: bool,
    /// Bytes covered by one verification header (`verify_interval`); 0 means one header per block.
    pub interval_bytes: u32,
    /// Offset of the header in its block, in bytes (`verify_offset`).
    pub offset_bytes: u32,
    /// Byte pattern of the data (`verify_pattern`); `None` without the option.
    pub pattern: Option<BytePattern>,
    /// Written blocks after which the job reads back (`verify_backlog`); 0 verifies at the end.
    pub backlog: u64,
    /// Blocks read back in one batch of the backlog (`verify_backlog_batch`).
    pub backlog_batch: Option<u32>,
    /// Trims mixed into the verified writes.
    pub verified_trims: VerifiedTrims,
    /// Flag `verify_dump`: a mismatching block and the expected data are written to files.
    pub dumps_mismatches: bool,
    /// Flag `verify_state_save`; `None` if the job does not set the option.
    pub saves_state: Option<bool>,
    /// Flag `verify_state_load`: the job verifies exactly the blocks that an earlier run wrote.
    pub loads_state: bool,
    /// Number of clones of the preceding jobs of the file, if this job verifies. It determines the
    /// seeds of this job.
    pub preceding_clones: u32,
}

impl Default for Verify {
    fn default() -> Verify {
        Verify {
            kind: Verification::None,
            reads_back: true,
            only_verifies: false,
            ends_on_mismatch: false,
            interval_bytes: 0,
            offset_bytes: 0,
            pattern: None,
            backlog: 0,
            backlog_batch: None,
            verified_trims: VerifiedTrims::default(),
            dumps_mismatches: false,
            saves_state: None,
            loads_state: false,
            preceding_clones: 0,
        }
    }
}

/// Trims of a share of the blocks that a job writes and verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedTrims {
    /// Share of written blocks that are trimmed, in percent (`trim_percentage`).
    pub percent: u8,
    /// Writes between two batches of trims (`trim_backlog`); 0 disables trims.
    pub backlog: u32,
    /// Blocks trimmed in one batch (`trim_backlog_batch`); 0 means `trim_backlog` blocks.
    pub batch: u32,
    /// Flag `trim_verify_zero`: the job reads trimmed blocks back and expects zeroes.
    pub must_be_zero: bool,
}

impl Default for VerifiedTrims {
    fn default() -> VerifiedTrims {
        VerifiedTrims {
            percent: 0,
            backlog: 0,
            batch: 0,
            must_be_zero: true,
        }
    }
}

impl Verify {
    /// Reports whether the job mixes trims into its writes. As in fio, only a job that verifies its
    /// writes does.
    pub fn has_trims(&self) -> bool {
        let verifies = self.kind != Verification::None && self.reads_back && !self.only_verifies;
        verifies && self.verified_trims.percent > 0 && self.verified_trims.backlog > 0
    }
}

/// Errors that do not end the job (`continue_on_error` and `ignore_error`).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredErrors {
    /// Whether the job continues after a read error.
    pub ignores_read_errors: bool,
    /// Whether the job continues after a write error.
    pub ignores_write_errors: bool,
    /// Whether the job continues after a verification error.
    pub ignores_verify_errors: bool,
    /// Error numbers that the job ignores (`ignore_error`).
    pub ignored_errnos: IgnoredErrnos,
}

/// Ignored error numbers by kind of error. An empty list means EIO and EILSEQ.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct IgnoredErrnos {
    /// Error numbers ignored for reads.
    pub read: Vec<i32>,
    /// Error numbers ignored for writes.
    pub write: Vec<i32>,
    /// Error numbers ignored for verification.
    pub verify: Vec<i32>,
}

/// Kind of an I/O error, as fio distinguishes them: trims and syncs count as writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// A read that failed.
    Read,
    /// Failed write, trim or sync.
    Write,
    /// Failed verification of data that was read back.
    Verify,
}

impl IgnoredErrors {
    /// Reports whether the job ignores any error.
    pub fn ignores_any(&self) -> bool {
        self.ignores_read_errors || self.ignores_write_errors || self.ignores_verify_errors
    }

    /// Reports whether the job continues after this error.
    pub fn ignores(&self, kind: ErrorKind, errno: i32) -> bool {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        let (is_asked, errnos) = match kind {
            ErrorKind::Read => (self.ignores_read_errors, &self.ignored_errnos.read),
            ErrorKind::Write => (self.ignores_write_errors, &self.ignored_errnos.write),
            ErrorKind::Verify => (self.ignores_verify_errors, &self.ignored_errnos.verify),
        };
        is_asked
            && match errnos.is_empty() {
                true => [EIO, EILSEQ].contains(&errno),
                false => errnos.contains(&errno),
            }
    }
}

/// Combination of reads, writes and trims in the report (`unified_rw_reporting`).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DirectionReporting {
    /// Separate results for reads, writes and trims.
    #[default]
    Separate,
    /// One combined result for reads, writes and trims.
    Mixed,
    /// Separate results for reads, writes and trims, and a combined one.
    SeparateAndMixed,
}

/// Contents of a job's report.
#[derive(Clone, Debug, PartialEq)]
pub struct ReportOptions {
    /// Flag `group_reporting`: the report shows each group as one job.
    pub is_grouped: bool,
    /// Combination of reads, writes and trims in the report (`unified_rw_reporting`).
    pub direction_reporting: DirectionReporting,
    /// Reported percentiles, in percent (`percentile_list`).
    pub percentiles: Arc<[f64]>,
    /// Flag `slat_percentiles`: the report has percentiles of the submission latency.
    pub reports_submission: bool,
    /// Flag `clat_percentiles`: the report has percentiles of the completion latency, from
    /// submission to completion.
    pub reports_completion: bool,
    /// Flag `lat_percentiles`: the report has percentiles of the total latency, submission plus
    /// completion.
    pub reports_total: bool,
    /// Flag `stats`: the report includes the job.
    pub is_reported: bool,
}

/// Default percentiles of `percentile_list`, in percent.
pub(crate) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for ReportOptions {
    fn default() -> ReportOptions {
        ReportOptions {
            is_grouped: false,
            direction_reporting: DirectionReporting::default(),
            percentiles: Arc::from(PERCENTILES),
            reports_submission: false,
            reports_completion: true,
            reports_total: false,
            is_reported: true,
        }
    }
}

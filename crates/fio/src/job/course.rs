//! When, how fast, beside whom, until what, and what is told of it.

use std::sync::Arc;

use super::PerDirection;
use crate::verify::{BytePattern, Checksum};

/// How long a job runs. All in microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Times {
    /// `runtime`: at most; 0 is no limit.
    pub runtime_us: u64,
    /// `time_based`: again and again until then; off where there is no runtime.
    pub time_based: bool,
    /// `ramp_time`: in front, not measured.
    pub ramp_us: u64,
    /// `startdelay`: before it starts, drawn from the range for each clone.
    pub start_delay_us: (u64, u64),
}

/// `exit_what`: what ends when a job with `exitall` does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExitScope {
    /// Its group.
    #[default]
    Group,
    /// All that runs; those behind the next stonewall go on.
    Stonewall,
    /// All.
    All,
}

/// Which jobs run before, beside and after.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Order {
    /// `numjobs`: workers that do the same.
    pub clones: u32,
    /// `thread`: they share a process.
    pub threads: bool,
    /// `stonewall`: waits for all above, and opens a group.
    pub stonewall: bool,
    /// `new_group`: opens a group.
    pub new_group: bool,
    /// `wait_for`: the name.
    pub wait_for: Option<String>,
    /// `exitall`, here or in another section: the others end when this one does.
    pub exit_all: bool,
    /// `exit_what`.
    pub exit_scope: ExitScope,
    /// `exitall_on_error`.
    pub exit_all_on_error: bool,
    /// `exec_prerun`: a command that fio runs before the job.
    pub run_before: Option<String>,
    /// `exec_postrun`: a command that fio runs after the job.
    pub run_after: Option<String>,
    /// `flow`: this job's share beside others of the same `flow_id`; 0 is none.
    pub flow: u32,
    /// `flow_id`.
    pub flow_id: u32,
    /// `flow_sleep`, in microseconds.
    pub flow_sleep_us: u32,
}

impl Default for Order {
    fn default() -> Order {
        Order {
            clones: 1,
            threads: false,
            stonewall: false,
            new_group: false,
            wait_for: None,
            exit_all: false,
            exit_scope: ExitScope::default(),
            exit_all_on_error: false,
            run_before: None,
            run_after: None,
            flow: 0,
            flow_id: 0,
            flow_sleep_us: 0,
        }
    }
}

/// `rate_process`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RateProcess {
    /// At equal distances.
    #[default]
    Linear,
    /// At random.
    Poisson,
}

/// How fast at most, of each clone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    /// `rate`, in bytes per second.
    pub bytes_per_s: PerDirection<Option<u64>>,
    /// `rate_iops`. Each direction has its own, so `rwmixread` does nothing beside it.
    pub iops: PerDirection<Option<u32>>,
    /// `rate_min`, in bytes per second: a slower job ends with an error.
    pub least_bytes_per_s: PerDirection<Option<u64>>,
    /// `rate_iops_min`.
    pub least_iops: PerDirection<Option<u32>>,
    /// `rate_process`.
    pub process: RateProcess,
    /// `rate_cycle`, in milliseconds: over which the least rates are means.
    pub cycle_ms: u32,
    /// `rate_ignore_thinktime`: think time is not caught up with.
    pub ignore_think: bool,
}

impl Default for Rate {
    fn default() -> Rate {
        Rate {
            bytes_per_s: PerDirection::default(),
            iops: PerDirection::default(),
            least_bytes_per_s: PerDirection::default(),
            least_iops: PerDirection::default(),
            process: RateProcess::default(),
            cycle_ms: 1000,
            ignore_think: false,
        }
    }
}

impl Rate {
    /// Whether there is any limit.
    pub fn is_limited(&self) -> bool {
        self.bytes_per_s != PerDirection::default() || self.iops != PerDirection::default()
    }
}

/// `thinktime_blocks_type`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ThinkOn {
    /// Completions are counted.
    #[default]
    Completion,
    /// Submissions are.
    Issue,
}

/// Pauses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Think {
    /// `thinktime`, in microseconds; 0 is none.
    pub time_us: u32,
    /// `thinktime_spin`: the part of it in which the processor is busy.
    pub spin_us: u32,
    /// `thinktime_blocks`: after each so many.
    pub after_ios: u32,
    /// `thinktime_blocks_type`.
    pub counts: ThinkOn,
    /// `thinktime_iotime`: after I/O for so long, in microseconds; 0 is never.
    pub after_us: u64,
}

impl Default for Think {
    fn default() -> Think {
        Think {
            time_us: 0,
            spin_us: 0,
            after_ios: 1,
            counts: ThinkOn::default(),
            after_us: 0,
        }
    }
}

/// The search for the depth that a latency allows, and the end at a slow I/O.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Latency {
    /// `latency_target`, in microseconds; 0 is none.
    pub target_us: u64,
    /// `latency_window`, in microseconds.
    pub window_us: u64,
    /// `latency_percentile`: the share that must be within the target.
    pub percentile: f64,
    /// `latency_run`: go on adjusting when the depth is found.
    pub keep_running: bool,
    /// `max_latency`, in microseconds; a slower I/O ends the job; 0 is never.
    pub most_us: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        Latency {
            target_us: 0,
            window_us: 0,
            percentile: 100.0,
            keep_running: false,
            most_us: 0,
        }
    }
}

/// What must be steady, by `ss`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// I/Os per second.
    Iops,
    /// Bytes per second.
    Bandwidth,
    /// The mean completion latency: of fio newer than 3.33.
    Latency,
}

/// How far from steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SteadyLimit {
    /// Of the mean.
    Percent(f64),
    /// In the quantity's own unit: I/Os/s, bytes/s, ns.
    Absolute(f64),
}

/// `steadystate` and what belongs to it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    /// Whether the job ends when it is steady.
    pub is_asked: bool,
    /// What.
    pub criterion: Criterion,
    /// The slope of the best line per sample, and not the largest distance from the mean.
    pub slope: bool,
    /// How much.
    pub limit: SteadyLimit,
    /// `ss_dur`: the window, in microseconds.
    pub window_us: u64,
    /// `ss_ramp`: before the first sample, in microseconds.
    pub ramp_us: u64,
    /// `ss_interval`: between samples, in microseconds.
    pub interval_us: u64,
}

impl Default for Steady {
    fn default() -> Steady {
        Steady {
            is_asked: false,
            criterion: Criterion::Iops,
            slope: true,
            limit: SteadyLimit::Percent(0.01),
            window_us: 0,
            ramp_us: 0,
            interval_us: 1_000_000,
        }
    }
}

/// `verify`: what a block carries.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Verification {
    /// Nothing is read back.
    #[default]
    None,
    /// A header with a checksum of the data behind it.
    Checksum(Checksum),
    /// A header alone (`meta`).
    Header,
    /// A header in front of a pattern (`verify_pattern` without `verify`).
    HeaderAndPattern,
    /// A pattern alone.
    Pattern,
    /// Read back, not compared.
    Null,
}

impl Verification {
    /// fio's name of it; that of a header in front of a pattern is of newer versions.
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

/// Whether data are read back and compared.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Verify {
    /// `verify`.
    pub kind: Verification,
    /// `do_verify`: read back at all.
    pub read_back: bool,
    /// `verify_only`: nothing is written.
    pub only: bool,
    /// `verify_fatal`: the first difference ends the job.
    pub fatal: bool,
    /// `verify_interval`: a header for each so many bytes; 0 is one for each block.
    pub interval_bytes: u32,
    /// `verify_offset`: where the header is.
    pub offset_bytes: u32,
    /// `verify_pattern`: what the data is.
    pub pattern: Option<BytePattern>,
    /// `verify_backlog`: blocks are read back after each so many; 0 is at the end.
    pub backlog: u64,
    /// `verify_backlog_batch`: so many at once.
    pub backlog_batch: Option<u32>,
    /// Trims among the writes.
    pub trims: VerifiedTrims,
    /// `verify_dump`: a block that differs is written to files, beside what was expected.
    pub dump: bool,
    /// `verify_state_save`; nothing where the job does not say.
    pub state_save: Option<bool>,
    /// `verify_state_load`: just what another run wrote is verified.
    pub state_load: bool,
    /// Clones of the jobs before this one in its file, where it verifies: its seeds follow
    /// from their number.
    pub clones_before: u32,
}

impl Default for Verify {
    fn default() -> Verify {
        Verify {
            kind: Verification::None,
            read_back: true,
            only: false,
            fatal: false,
            interval_bytes: 0,
            offset_bytes: 0,
            pattern: None,
            backlog: 0,
            backlog_batch: None,
            trims: VerifiedTrims::default(),
            dump: false,
            state_save: None,
            state_load: false,
            clones_before: 0,
        }
    }
}

/// Trims of a share of the blocks that a job writes and verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VerifiedTrims {
    /// `trim_percentage`: share of the written blocks.
    pub percent: u8,
    /// `trim_backlog`: blocks are trimmed after each so many writes; 0 is never.
    pub backlog: u32,
    /// `trim_backlog_batch`: so many at once; 0 is as many as `trim_backlog`.
    pub batch: u32,
    /// `trim_verify_zero`: what was trimmed is read back, and must be zeroes.
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
    /// Whether blocks are trimmed among the writes: as in fio, of a job alone that verifies
    /// what it writes.
    pub fn has_trims(&self) -> bool {
        let verifies = self.kind != Verification::None && self.read_back && !self.only;
        verifies && self.trims.percent > 0 && self.trims.backlog > 0
    }
}

/// `continue_on_error` and `ignore_error`: which errors do not end the job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorPolicy {
    /// Of reads.
    pub read: bool,
    /// Of writes.
    pub write: bool,
    /// Of verification.
    pub verify: bool,
    /// `ignore_error`.
    pub errnos: ErrorNumbers,
}

/// Error numbers that are passed over, by kind; EIO and EILSEQ where a list is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ErrorNumbers {
    /// Of reads.
    pub read: Vec<i32>,
    /// Of writes.
    pub write: Vec<i32>,
    /// Of verification.
    pub verify: Vec<i32>,
}

/// Kinds of errors that fio tells apart: trims and syncs count as writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ErrorKind {
    /// Of a read.
    Read,
    /// Of a write, a trim or a sync.
    Write,
    /// Of verification.
    Verify,
}

impl ErrorPolicy {
    /// Whether any error is passed over.
    pub fn passes_over_any(&self) -> bool {
        self.read || self.write || self.verify
    }

    /// Whether an error does not end the job.
    pub fn passes_over(&self, kind: ErrorKind, errno: i32) -> bool {
        const EIO: i32 = 5;
        const EILSEQ: i32 = 84;
        let (is_asked, errnos) = match kind {
            ErrorKind::Read => (self.read, &self.errnos.read),
            ErrorKind::Write => (self.write, &self.errnos.write),
            ErrorKind::Verify => (self.verify, &self.errnos.verify),
        };
        is_asked
            && match errnos.is_empty() {
                true => [EIO, EILSEQ].contains(&errno),
                false => errnos.contains(&errno),
            }
    }
}

/// `unified_rw_reporting`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unified {
    /// Reads, writes and trims apart.
    #[default]
    Apart,
    /// All as one.
    Mixed,
    /// Both.
    Both,
}

/// What is reported.
#[derive(Clone, Debug, PartialEq)]
pub struct Report {
    /// `group_reporting`: the group as one.
    pub by_group: bool,
    /// `unified_rw_reporting`.
    pub unified: Unified,
    /// `percentile_list`, in percent.
    pub percentiles: Arc<[f64]>,
    /// `slat_percentiles`: of the time to submit.
    pub of_submission: bool,
    /// `clat_percentiles`: of the time from then to completion.
    pub of_completion: bool,
    /// `lat_percentiles`: of both together.
    pub of_both: bool,
    /// `stats`: whether the job is reported at all.
    pub is_reported: bool,
}

/// What `percentile_list` is by default.
pub(crate) const PERCENTILES: [f64; 17] = [
    1.0, 5.0, 10.0, 20.0, 30.0, 40.0, 50.0, 60.0, 70.0, 80.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95,
    99.99,
];

impl Default for Report {
    fn default() -> Report {
        Report {
            by_group: false,
            unified: Unified::default(),
            percentiles: Arc::from(PERCENTILES),
            of_submission: false,
            of_completion: true,
            of_both: false,
            is_reported: true,
        }
    }
}

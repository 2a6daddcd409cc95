//! Account of a program's time: the ledger of a repetition, busy shares of the parts, missed
//! revolutions, and a verdict in sentences.
//!
//! All of it comes from the trace of one repetition: the events that the model's parts recorded,
//! and none of their parameters.

mod buffered;
pub mod chains;
pub mod difference;
mod intervals;
pub mod observed;
mod parts;
pub mod processor;
pub mod response;
pub mod side_by_side;
pub mod stored;
pub mod tail;
pub mod unlike;
mod utilisation;
pub mod verdict;
pub mod words;

pub use buffered::BufferHits;
use chains::OperationBreakdown;
use diskperf_timeline::block::BlockOperation;
use diskperf_timeline::ledger::LedgerEntry;
use diskperf_timeline::trace::{TracedProcess, TracedRequest};
use diskperf_timeline::{Deadline, Ledger, Nanoseconds, Stage, StageInterval, Trace};
pub use parts::DriveTimeParts;
use response::ResponseAccount;
use serde::Serialize;
use tail::LatencyTail;
use utilisation::list_drive_intervals;
pub use utilisation::{ControllerShare, DriveComponent, DriveComponentShare, Utilisation};

/// Explanation of a run, or of a system with a suite.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// Subject of the explanation: `ffs83 on vax780-sc780-eagle`, `run 3fa8 ...`.
    pub subject: String,
    /// Explanations, one for each program and file system.
    pub programs: Vec<ProgramExplanation>,
    /// Notes to the reader about the whole explanation.
    pub notes: Vec<String>,
}

/// Account of the time of one program.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramExplanation {
    /// Name of the program with the parameters that distinguish it from its siblings.
    pub program: String,
    /// Kind and block size of the file system.
    pub filesystem: String,
    /// Drives that ran the program concurrently.
    pub drive_count: u32,
    /// Ledger and further accounts of the program's time.
    pub time_account: TimeAccount,
    /// Processor time of the same repetition by the kernel's accounting of its threads, on real
    /// storage. The events of the account must agree with it.
    pub accounted_cpu: Option<Nanoseconds>,
    /// Share of the read bytes that were never written; only for a modelled flash drive.
    pub unwritten_share: Option<f64>,
    /// Verdict on the account, sentence by sentence.
    pub verdict_sentences: Vec<String>,
    /// Elapsed times of the program with one thing changed, the best first.
    pub counterfactuals: Vec<Counterfactual>,
    /// Causes of the slowest requests, for a flash drive.
    pub tails: Vec<LatencyTail>,
    /// Operations by kind with their stages, on real storage whose kernel's events were recorded.
    pub breakdowns: Vec<OperationBreakdown>,
}

/// Rerun of the program with one thing changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    /// Description of the change, written as for `--set` where it can be set.
    pub change: String,
    /// Elapsed time of the program with the change.
    pub elapsed_time: Nanoseconds,
    /// Whether two changes made together gain more than the sum of their separate gains.
    pub exceeds_sum_of_parts: bool,
}

impl Counterfactual {
    /// Returns the time that the change saves, as a share of the unchanged elapsed time.
    pub fn relative_gain(&self, as_is: Nanoseconds) -> f64 {
        match as_is.0 {
            0 => 0.0,
            as_is => 1.0 - self.elapsed_time.0 as f64 / as_is as f64,
        }
    }
}

/// Account of the time of one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct TimeAccount {
    /// Time from the first start of a program to the last end.
    pub elapsed: Nanoseconds,
    /// Ledger of the elapsed time. It follows the program that ended last, and before its start the
    /// one that ended last among the others. It sums to `elapsed`.
    pub ledger: Ledger,
    /// Ledgers of the single programs, where several ran concurrently.
    pub program_ledgers: Vec<ProgramLedger>,
    /// Revolutions missed by all requests, by deadline.
    pub missed_deadlines: Vec<MissedDeadline>,
    /// Busy shares of processor, bus, controllers and drives.
    pub utilisation: Utilisation,
    /// Accounts of the drives that received requests, drive by drive.
    pub drive_accounts: Vec<DriveAccount>,
    /// Accounts of the block devices of a real system; empty for a model, which has drives.
    pub device_accounts: Vec<DeviceAccount>,
    /// Response time of requests by stage, where several were in flight at a drive.
    pub response_account: Option<ResponseAccount>,
    /// Reads that disks served from their buffers; absent where no disk with a buffer was read.
    pub buffer_hits: Option<BufferHits>,
}

/// Ledger of one of several concurrent programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramLedger {
    /// Elapsed time of the program in this account.
    pub elapsed: Nanoseconds,
    /// Ledger of the program's elapsed time, by stage.
    pub ledger: Ledger,
}

/// Revolutions that requests missed for one deadline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct MissedDeadline {
    /// Deadline for which the revolutions were missed.
    pub deadline: Deadline,
    /// Number of revolutions missed for the deadline.
    #[serde(rename = "count")]
    pub missed_count: u64,
    /// Time that requests waited for the missed revolutions in nanoseconds, whether or not a
    /// program waited for them.
    #[serde(rename = "ns")]
    pub lost_ns: u64,
    /// Median time by which the deadline was missed, in nanoseconds; absent where the wait does not
    /// show it.
    pub late_median_ns: Option<u64>,
    /// Maximum time by which the deadline was missed, in nanoseconds; absent where the wait does
    /// not show it.
    pub late_max_ns: Option<u64>,
}

/// Account of a drive during the elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveAccount {
    /// Index of the drive, counted from 0.
    pub drive_index: u32,
    /// Number of requests that the drive completed.
    pub request_count: u64,
    /// Most frequent request size at the drive, in bytes.
    pub usual_request_bytes: u64,
    /// Number of requests of the most frequent size.
    pub usual_request_count: u64,
    /// Duration of one revolution of the drive in nanoseconds.
    pub revolution_ns: f64,
    /// Times of the drive's actuator and platters by activity, for requests or in the background.
    pub stage_entries: Vec<LedgerEntry>,
    /// Times of the actuator and the platters, for requests or in the background.
    pub time_parts: DriveTimeParts,
    /// Time in which the drive was idle.
    pub idle_time: Nanoseconds,
}

impl DriveAccount {
    /// Returns the time that the drive's requests spent in the selected stages.
    pub fn total_time_in_stages(&self, which: impl Fn(Stage) -> bool) -> Nanoseconds {
        let entries = self.stage_entries.iter().filter(|entry| which(entry.stage));
        entries.map(|entry| entry.duration).sum()
    }
}

/// Tests whether the processor works in a given stage.
pub fn is_processor_stage(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::User
            | Stage::SystemCall
            | Stage::Copy
            | Stage::Clear
            | Stage::Allocate
            | Stage::CacheLookup
            | Stage::Driver
            | Stage::Interrupt
            | Stage::MemoryContention
    )
}

/// Tests whether the drive works on the request, or rotates for it, in a given stage.
pub fn is_drive_stage(stage: Stage) -> bool {
    matches!(
        stage,
        Stage::Seek
            | Stage::Settle
            | Stage::WriteSettle
            | Stage::HeadSwitch
            | Stage::RotationalLatency
            | Stage::MissedRevolution(_)
            | Stage::MediaTransfer
            | Stage::Destage
            | Stage::Cleaning
            | Stage::FlashRead
            | Stage::ReadRetry
            | Stage::FlashProgram
            | Stage::FlashErase
            | Stage::DieWait(_)
            | Stage::MapMiss
            | Stage::BufferFull
            | Stage::Collection
            | Stage::ChannelTransfer
            | Stage::Decode
            | Stage::Journal
            | Stage::Flush
            | Stage::RateLimit(_)
            | Stage::Device
    )
}

/// Account of a block device of a real system during the elapsed time, for all processes.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceAccount {
    /// Kernel name of the device, such as `vda`.
    #[serde(rename = "device")]
    pub device_name: String,
    /// Mean number of requests in the device's queue over the elapsed time; absent where requests
    /// were not recorded.
    pub in_queue_mean: Option<f64>,
    /// Mean number of requests at the device over the elapsed time; absent where requests were not
    /// recorded.
    pub at_device_mean: Option<f64>,
    /// Maximum number of requests at the device; absent where requests were not recorded.
    #[serde(rename = "at_device_most")]
    pub at_device_max: Option<u32>,
    /// Completed requests of the device by operation.
    #[serde(rename = "operations")]
    pub operation_accounts: Vec<OperationAccount>,
}

/// Completed requests of one operation, such as read or write.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationAccount {
    /// Operation of the counted requests, such as read or write.
    pub operation: BlockOperation,
    /// Number of completed requests of the operation.
    #[serde(rename = "requests")]
    pub request_count: u64,
    /// Bytes that all requests of the operation moved.
    #[serde(rename = "bytes")]
    pub total_bytes: u64,
    /// Distribution of the request sizes in bytes.
    #[serde(rename = "bytes_each")]
    pub request_bytes: ValueQuantiles,
    /// Distribution of the time in nanoseconds from a request's arrival at the block layer (the
    /// first part of it) until the driver issued it to the device.
    pub queue_ns: ValueQuantiles,
    /// Distribution of the time in nanoseconds from the issue of a request to the device until its
    /// completion.
    pub device_ns: ValueQuantiles,
}

/// Median, 99th percentile and maximum of a set of values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct ValueQuantiles {
    /// Median of the set of values.
    pub median: u64,
    /// 99th percentile of the set of values.
    pub p99: u64,
    /// Maximum of the set of values.
    pub max: u64,
}

impl TimeAccount {
    /// Creates the account of a recorded trace; `None` where no program was timed.
    pub fn from_trace(trace: &Trace) -> Option<Self> {
        Self::from_open_loop_trace(trace, None)
    }

    /// Creates the account of requests that arrive in open loop and wait this many nanoseconds on
    /// average before they are issued. The trace does not contain that wait.
    pub fn from_open_loop_trace(trace: &Trace, before_issue_ns: Option<f64>) -> Option<Self> {
        let (from, until) = timed_window(trace)?;
        let ledger = build_ledger(&trace.processes, from, until);
        let elapsed = until.since(from);
        assert!(
            ledger.total_duration() == elapsed,
            "a ledger of {:?} is not one of {elapsed:?}",
            ledger.total_duration()
        );
        let programs = match trace.processes.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(build_program_ledger).collect(),
        };
        Some(Self {
            elapsed,
            ledger,
            program_ledgers: programs,
            missed_deadlines: find_missed_deadlines(trace, from, until),
            utilisation: Utilisation::from_trace(trace, from, until),
            drive_accounts: account_drives(trace, from, until),
            device_accounts: Vec::new(),
            response_account: ResponseAccount::from_trace(trace, (from, until), before_issue_ns),
            buffer_hits: BufferHits::from_trace(trace, (from, until)),
        })
    }
}

/// Returns the first start and the last end of the timed parts in a trace; `None` where no program
/// was timed.
pub fn timed_window(trace: &Trace) -> Option<(Nanoseconds, Nanoseconds)> {
    let from = trace
        .processes
        .iter()
        .map(|process| process.account_start)
        .min()?;
    let until = trace
        .processes
        .iter()
        .map(TracedProcess::account_end)
        .max()?;
    Some((from, until))
}

fn build_program_ledger(process: &TracedProcess) -> ProgramLedger {
    let mut table = [0; Stage::COUNT];
    for part in process.stage_intervals() {
        table[part.stage.index()] += part.duration().0;
    }
    ProgramLedger {
        elapsed: process.account_end().since(process.account_start),
        ledger: Ledger::from_table(&table),
    }
}

/// Follows the programs back in time, from the last end to the first start, and sums their stages.
fn build_ledger(processes: &[TracedProcess], from: Nanoseconds, until: Nanoseconds) -> Ledger {
    let mut table = [0; Stage::COUNT];
    let mut at = until;
    while at > from {
        let before = processes
            .iter()
            .filter(|process| process.account_start < at);
        let process = before
            .max_by_key(|process| {
                let end = process.account_end().min(at);
                (end, std::cmp::Reverse(process.account_start))
            })
            .expect("some program began before");
        let end = process.account_end().min(at);
        // Where no program runs, the next has not begun of its own will.
        table[Stage::Think.index()] += at.0 - end.0;
        for part in process.stage_intervals() {
            table[part.stage.index()] += part.end.min(end).0.saturating_sub(part.start.0);
        }
        at = process.account_start;
    }
    Ledger::from_table(&table)
}

/// Returns the parts of a request that lie within the window, cut to it.
fn clip_request_parts(
    request: &TracedRequest,
    from: Nanoseconds,
    until: Nanoseconds,
) -> impl Iterator<Item = StageInterval> + '_ {
    request
        .stage_intervals()
        .filter_map(move |StageInterval { stage, start, end }| {
            let (start, end) = (start.max(from), end.min(until));
            (start < end).then_some(StageInterval { stage, start, end })
        })
}

/// Distance in nanoseconds from a whole number of revolutions, below which a rotational wait does
/// not show how late its request was.
const WHOLE_REVOLUTION_TOLERANCE_NS: f64 = 2_000.0;

fn find_missed_deadlines(
    trace: &Trace,
    from: Nanoseconds,
    until: Nanoseconds,
) -> Vec<MissedDeadline> {
    let mut found: Vec<(Deadline, u64, u64, Vec<u64>)> = Vec::new();
    for request in &trace.requests {
        let revolution = trace.drives[request.drive_index as usize].revolution_ns;
        for part in request.stage_intervals() {
            let Stage::MissedRevolution(deadline) = part.stage else {
                continue;
            };
            if part.end <= from || part.end > until {
                continue;
            }
            let waited = part.duration().0;
            let place = found.iter().position(|one| one.0 == deadline);
            let place = place.unwrap_or_else(|| {
                found.push((deadline, 0, 0, Vec::new()));
                found.len() - 1
            });
            let one = &mut found[place];
            one.1 += 1;
            one.2 += waited;
            let late = revolution - waited as f64 % revolution;
            let tells = deadline != Deadline::DataLate
                && late > WHOLE_REVOLUTION_TOLERANCE_NS
                && late < revolution - WHOLE_REVOLUTION_TOLERANCE_NS;
            if tells {
                one.3.push(late as u64);
            }
        }
    }
    found.sort_by_key(|one| one.0);
    let told = |(deadline, count, ns, mut late): (Deadline, u64, u64, Vec<u64>)| {
        late.sort_unstable();
        MissedDeadline {
            deadline,
            missed_count: count,
            lost_ns: ns,
            late_median_ns: late.get(late.len() / 2).copied(),
            late_max_ns: late.last().copied(),
        }
    };
    found.into_iter().map(told).collect()
}

fn account_drives(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Vec<DriveAccount> {
    let all = (0..trace.drives.len() as u32).map(|drive| account_drive(trace, drive, from, until));
    all.filter(|one| one.request_count > 0).collect()
}

fn account_drive(trace: &Trace, drive: u32, from: Nanoseconds, until: Nanoseconds) -> DriveAccount {
    let of = trace.drives[drive as usize];
    let mut table = [0; Stage::COUNT];
    let mut sizes: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let mut requests = 0;
    for request in trace.requests.iter().filter(|one| one.drive_index == drive) {
        for part in clip_request_parts(request, from, until) {
            table[part.stage.index()] += part.duration().0;
        }
        if (from..=until).contains(&request.completed_at()) {
            requests += 1;
            let bytes = u64::from(request.sector_count) * u64::from(of.sector_bytes);
            *sizes.entry(bytes).or_default() += 1;
        }
    }
    let usual = sizes.iter().max_by_key(|(_, count)| **count);
    let busy = list_drive_intervals(trace, drive, from, until).total_ns();
    DriveAccount {
        drive_index: drive,
        request_count: requests,
        usual_request_bytes: usual.map_or(0, |(bytes, _)| *bytes),
        usual_request_count: usual.map_or(0, |(_, count)| *count),
        revolution_ns: of.revolution_ns,
        time_parts: DriveTimeParts::from_trace(trace, drive, (from, until), &table),
        stage_entries: Ledger::from_table(&table).entries().to_vec(),
        idle_time: Nanoseconds(until.since(from).0 - busy),
    }
}

#[cfg(test)]
mod tests;

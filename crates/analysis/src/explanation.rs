//! Where a program's time went: the ledger of a repetition, what was busy, the
//! revolutions that were missed, and what that means in words.
//!
//! All of it is read off the trace of one repetition: what the model's parts
//! recorded, and none of their parameters.

mod buffered;
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

pub use buffered::Buffered;
use diskperf_timeline::block::Operation;
use diskperf_timeline::ledger::Entry;
use diskperf_timeline::trace::{TracedProcess, TracedRequest};
use diskperf_timeline::{Deadline, Ledger, Nanoseconds, Stage, Trace};
pub use parts::DriveParts;
use response::Response;
use serde::Serialize;
use tail::Tail;
use utilisation::at_drive;
pub use utilisation::{ControllerUse, DriveComponent, DriveComponentUse, Utilisation};

/// What a run, or a system and a suite, come to.
#[derive(Clone, Debug, PartialEq)]
pub struct Explanation {
    /// `ffs83 on vax780-sc780-eagle`, `run 3fa8 ...`.
    pub what: String,
    /// One for each program and file system.
    pub programs: Vec<ProgramExplanation>,
    /// What a reader must know about all of it.
    pub notes: Vec<String>,
}

/// Where the time of one program went.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramExplanation {
    /// With the parameters that tell it from its siblings.
    pub program: String,
    /// Kind and block size.
    pub filesystem: String,
    /// Drives that ran it at once.
    pub drives: u32,
    /// The account.
    pub account: Account,
    /// On real storage: the processor time of the same repetition by the kernel's
    /// accounting of its threads, which the events of the account have to agree with.
    pub accounted: Option<Nanoseconds>,
    /// Of a modelled flash drive, the share of what was read that was never written.
    pub unwritten_share: Option<f64>,
    /// Its meaning, sentence by sentence.
    pub verdict: Vec<String>,
    /// What it would take with something changed, the best first.
    pub counterfactuals: Vec<Counterfactual>,
    /// Of a flash drive, what the slowest requests waited for.
    pub tails: Vec<Tail>,
}

/// The program again, with something changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counterfactual {
    /// What, in words and as `--set` has it where it can be set.
    pub change: String,
    /// How long it takes then.
    pub elapsed: Nanoseconds,
    /// Whether two changes together beat the sum of each by itself.
    pub beats_sum: bool,
}

impl Counterfactual {
    /// By how much faster it is, as a share of what it takes as it is.
    pub fn gain(&self, as_is: Nanoseconds) -> f64 {
        match as_is.0 {
            0 => 0.0,
            as_is => 1.0 - self.elapsed.0 as f64 / as_is as f64,
        }
    }
}

/// The account of one repetition.
#[derive(Clone, Debug, PartialEq)]
pub struct Account {
    /// From the first start of a program to the last end.
    pub elapsed: Nanoseconds,
    /// What it went to: of the program that ended last, and before it had
    /// begun, of the one that ended last of the others. It sums to `elapsed`.
    pub ledger: Ledger,
    /// Each program's own, where several ran at once.
    pub programs: Vec<ProgramLedger>,
    /// Revolutions that were missed, by deadline, in all requests.
    pub missed: Vec<Missed>,
    /// What was busy.
    pub utilisation: Utilisation,
    /// What each drive did, drive by drive, of those that were asked.
    pub drives: Vec<DriveAccount>,
    /// The devices of a real system; a model has drives.
    pub devices: Vec<DeviceAccount>,
    /// What a request's own time went to, where several were under way at a drive.
    pub response: Option<Response>,
    /// Reads that disks answered from their buffers, where disks with buffers were read.
    pub buffered: Option<Buffered>,
}

/// The ledger of one of several programs.
#[derive(Clone, Debug, PartialEq)]
pub struct ProgramLedger {
    /// How long it ran.
    pub elapsed: Nanoseconds,
    /// Where that went.
    pub ledger: Ledger,
}

/// Revolutions missed for one deadline.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Missed {
    /// What was missed.
    pub deadline: Deadline,
    /// How often.
    pub count: u64,
    /// What the requests waited for it, whether or not somebody waited for them.
    pub ns: u64,
    /// By how much the deadline was missed: the middle one; absent where the
    /// wait does not tell.
    pub late_median_ns: Option<u64>,
    /// The most.
    pub late_max_ns: Option<u64>,
}

/// What a drive did during the elapsed time.
#[derive(Clone, Debug, PartialEq)]
pub struct DriveAccount {
    /// Which.
    pub drive: u32,
    /// Requests that completed.
    pub requests: u64,
    /// The size that most of them had, in bytes.
    pub usual_bytes: u64,
    /// How many had it.
    pub usual_requests: u64,
    /// One revolution.
    pub revolution_ns: f64,
    /// What its requests spent on it, by stage.
    pub stages: Vec<Entry>,
    /// What its arm and its platters did, for requests or of their own accord.
    pub parts: DriveParts,
    /// When it did nothing.
    pub idle: Nanoseconds,
}

impl DriveAccount {
    /// What its requests spent in these stages.
    pub fn spent(&self, which: impl Fn(Stage) -> bool) -> Nanoseconds {
        let entries = self.stages.iter().filter(|entry| which(entry.stage));
        entries.map(|entry| entry.ns).sum()
    }
}

/// Whether the processor works in this stage.
pub fn is_of_processor(stage: Stage) -> bool {
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

/// Whether the drive is at work for the request, or turns for it, in this stage.
pub fn is_of_drive(stage: Stage) -> bool {
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
            | Stage::Device
    )
}

/// What a device of a real system did during the elapsed time, for whomever.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct DeviceAccount {
    /// The kernel's name of it, as `vda`.
    pub device: String,
    /// Requests that waited in its queue, in the mean over the elapsed time;
    /// absent where requests were not recorded, as are the next two.
    pub in_queue_mean: Option<f64>,
    /// Requests that it had, in the mean.
    pub at_device_mean: Option<f64>,
    /// The most that it had at a time.
    pub at_device_most: Option<u32>,
    /// Its requests, by what they asked.
    pub operations: Vec<OperationAccount>,
}

/// Requests of one kind that completed.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct OperationAccount {
    /// What they asked.
    pub operation: Operation,
    /// How many.
    pub requests: u64,
    /// What they moved together.
    pub bytes: u64,
    /// And each of them.
    pub bytes_each: Spread,
    /// From when the first of what it carries came to the block layer until the
    /// driver gave it to the device.
    pub queue_ns: Spread,
    /// From then until the device was done.
    pub device_ns: Spread,
}

/// How values are spread.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Spread {
    /// Half of them are no larger.
    pub median: u64,
    /// 99 in 100.
    pub p99: u64,
    /// None is.
    pub max: u64,
}

impl Account {
    /// The account of what a trace recorded; none where no program was timed.
    pub fn of(trace: &Trace) -> Option<Self> {
        Self::in_open_loop(trace, None)
    }

    /// The same of requests that arrive of themselves, and wait so many nanoseconds in the
    /// mean before they are issued: that is in no trace.
    pub fn in_open_loop(trace: &Trace, before_issue_ns: Option<f64>) -> Option<Self> {
        let (from, until) = window(trace)?;
        let ledger = ledger(&trace.processes, from, until);
        let elapsed = until.since(from);
        assert!(
            ledger.total() == elapsed,
            "a ledger of {:?} is not one of {elapsed:?}",
            ledger.total()
        );
        let programs = match trace.processes.as_slice() {
            [_] => Vec::new(),
            several => several.iter().map(program_ledger).collect(),
        };
        Some(Self {
            elapsed,
            ledger,
            programs,
            missed: missed(trace, from, until),
            utilisation: Utilisation::of(trace, from, until),
            drives: drives(trace, from, until),
            devices: Vec::new(),
            response: Response::of(trace, (from, until), before_issue_ns),
            buffered: Buffered::of(trace, (from, until)),
        })
    }
}

/// From the first start of a timed part to the last end.
pub fn window(trace: &Trace) -> Option<(Nanoseconds, Nanoseconds)> {
    let from = trace.processes.iter().map(|process| process.opened).min()?;
    let until = trace.processes.iter().map(TracedProcess::ended).max()?;
    Some((from, until))
}

fn program_ledger(process: &TracedProcess) -> ProgramLedger {
    let mut table = [0; Stage::COUNT];
    for (stage, from, until) in process.parts() {
        table[stage.index()] += until.0 - from.0;
    }
    ProgramLedger {
        elapsed: process.ended().since(process.opened),
        ledger: Ledger::from_table(&table),
    }
}

/// Follows the programs back in time, from the last end to the first start.
fn ledger(processes: &[TracedProcess], from: Nanoseconds, until: Nanoseconds) -> Ledger {
    let mut table = [0; Stage::COUNT];
    let mut at = until;
    while at > from {
        let before = processes.iter().filter(|process| process.opened < at);
        let process = before
            .max_by_key(|process| {
                let end = process.ended().min(at);
                (end, std::cmp::Reverse(process.opened))
            })
            .expect("some program began before");
        let end = process.ended().min(at);
        // Where no program runs, the next has not begun of its own will.
        table[Stage::Think.index()] += at.0 - end.0;
        for (stage, start, stop) in process.parts() {
            table[stage.index()] += stop.min(end).0.saturating_sub(start.0);
        }
        at = process.opened;
    }
    Ledger::from_table(&table)
}

/// The parts of a request that lie in the window, cut to it.
fn parts_within(
    request: &TracedRequest,
    from: Nanoseconds,
    until: Nanoseconds,
) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
    request.parts().filter_map(move |(stage, start, stop)| {
        let (start, stop) = (start.max(from), stop.min(until));
        (start < stop).then_some((stage, start, stop))
    })
}

/// A wait that is this close to whole revolutions does not tell when within
/// one the deadline was.
const WHOLE_NS: f64 = 2_000.0;

fn missed(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Vec<Missed> {
    let mut found: Vec<(Deadline, u64, u64, Vec<u64>)> = Vec::new();
    for request in &trace.requests {
        let revolution = trace.drives[request.drive as usize].revolution_ns;
        for (stage, start, stop) in request.parts() {
            let Stage::MissedRevolution(deadline) = stage else {
                continue;
            };
            if stop <= from || stop > until {
                continue;
            }
            let waited = stop.0 - start.0;
            let place = found.iter().position(|one| one.0 == deadline);
            let place = place.unwrap_or_else(|| {
                found.push((deadline, 0, 0, Vec::new()));
                found.len() - 1
            });
            let one = &mut found[place];
            one.1 += 1;
            one.2 += waited;
            let late = revolution - waited as f64 % revolution;
            let tells =
                deadline != Deadline::DataLate && late > WHOLE_NS && late < revolution - WHOLE_NS;
            if tells {
                one.3.push(late as u64);
            }
        }
    }
    found.sort_by_key(|one| one.0);
    let told = |(deadline, count, ns, mut late): (Deadline, u64, u64, Vec<u64>)| {
        late.sort_unstable();
        Missed {
            deadline,
            count,
            ns,
            late_median_ns: late.get(late.len() / 2).copied(),
            late_max_ns: late.last().copied(),
        }
    };
    found.into_iter().map(told).collect()
}

fn drives(trace: &Trace, from: Nanoseconds, until: Nanoseconds) -> Vec<DriveAccount> {
    let all = (0..trace.drives.len() as u32).map(|drive| drive_account(trace, drive, from, until));
    all.filter(|one| one.requests > 0).collect()
}

fn drive_account(trace: &Trace, drive: u32, from: Nanoseconds, until: Nanoseconds) -> DriveAccount {
    let of = trace.drives[drive as usize];
    let mut table = [0; Stage::COUNT];
    let mut sizes: std::collections::BTreeMap<u64, u64> = std::collections::BTreeMap::new();
    let mut requests = 0;
    for request in trace.requests.iter().filter(|one| one.drive == drive) {
        for (stage, start, stop) in parts_within(request, from, until) {
            table[stage.index()] += stop.0 - start.0;
        }
        if (from..=until).contains(&request.completed()) {
            requests += 1;
            let bytes = u64::from(request.sectors) * u64::from(of.sector_bytes);
            *sizes.entry(bytes).or_default() += 1;
        }
    }
    let usual = sizes.iter().max_by_key(|(_, count)| **count);
    let busy = at_drive(trace, drive, from, until).total();
    DriveAccount {
        drive,
        requests,
        usual_bytes: usual.map_or(0, |(bytes, _)| *bytes),
        usual_requests: usual.map_or(0, |(_, count)| *count),
        revolution_ns: of.revolution_ns,
        parts: DriveParts::of(trace, drive, (from, until), &table),
        stages: Ledger::from_table(&table).entries().to_vec(),
        idle: Nanoseconds(until.since(from).0 - busy),
    }
}

#[cfg(test)]
mod tests;

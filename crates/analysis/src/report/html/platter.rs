//! Platter picture: the activity of a drive and the processor in a few revolutions around an event
//! of interest.
//!
//! One line is one revolution. The angle runs to the right and time downwards, so that the same
//! horizontal position on two lines is the same angle of the platter. A request that comes too late
//! for a sector waits for it over a whole line.

mod drawing;
mod mark;

pub(super) use drawing::render_figure;

use diskperf_timeline::trace::{Trace, TracedArm, TracedDrive, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage, StageInterval};

const REVOLUTIONS_BEFORE_EVENT: f64 = 2.0;
const REVOLUTIONS_SHOWN: u32 = 9;

/// Content of the platter picture of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct PlatterPicture {
    /// Rotation of the drawn drive: its period and phase.
    drive: TracedDrive,
    /// Index of the drive, counted from 0.
    drive_index: u32,
    /// Slots of the track that the shown request accesses.
    slots_per_track: u32,
    /// Revolution of the first line, as [`TracedDrive::revolutions_at`] counts.
    first_revolution: f64,
    /// Requests of the drive that were in flight in the shown revolutions.
    requests: Vec<TracedRequest>,
    /// Background work of the drive's arm in the shown revolutions.
    arm_work: Vec<TracedArm>,
    processor_work: Vec<ProcessorActivity>,
    missed_revolution: Option<MissedRevolutionShown>,
}

/// Interval in which the processor worked or was hindered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct ProcessorActivity {
    stage: Stage,
    start: Nanoseconds,
    end: Nanoseconds,
}

#[derive(Clone, Copy, Debug, PartialEq)]
struct MissedRevolutionShown {
    stage: Stage,
    /// Time at which the sector passed the heads before the request was ready: the missed deadline.
    deadline: Nanoseconds,
    /// Time at which the request that missed its sector was ready.
    ready_at: Nanoseconds,
    /// Number of requests that lost a revolution to the same deadline.
    missed_request_count: usize,
    total_request_count: usize,
}

impl PlatterPicture {
    /// Selects the content of the platter picture from a trace; `None` without requests of a disk.
    pub(super) fn from_trace(trace: &Trace) -> Option<Self> {
        let opened = trace
            .processes
            .iter()
            .map(|process| process.account_start)
            .min()?;
        let ended = trace
            .processes
            .iter()
            .map(|process| process.account_end())
            .max()?;
        let timed = |one: &&TracedRequest| one.issued_at >= opened && one.issued_at < ended;
        let on_disks = trace
            .requests
            .iter()
            .filter(|one| one.disk_position().is_some());
        let requests: Vec<&TracedRequest> = on_disks.filter(timed).collect();
        let cause = costliest_missed_stage(trace, &requests);
        let losers: Vec<&TracedRequest> = requests
            .iter()
            .copied()
            .filter(|one| {
                cause.is_some_and(|cause| {
                    one.stage_intervals()
                        .any(|interval| interval.stage == cause)
                })
            })
            .collect();
        // The one in the middle is past whatever is special about the start.
        let shown = match losers.is_empty() {
            true => requests.get(requests.len() / 2)?,
            false => losers.get(losers.len() / 2)?,
        };
        let drive = *trace.drives.get(shown.drive_index as usize)?;
        let missed = cause.and_then(|cause| {
            let missed = shown
                .stage_intervals()
                .find(|interval| interval.stage == cause)?;
            let deadline = missed.end.since(Nanoseconds(drive.revolution_ns as u64));
            Some(MissedRevolutionShown {
                stage: missed.stage,
                deadline: deadline.min(missed.start),
                ready_at: missed.start,
                missed_request_count: losers.len(),
                total_request_count: requests.len(),
            })
        });
        // Of a request that waited long for its turn, the wait is not it.
        let about = missed.map_or(shown.issued_at, |missed| missed.deadline);
        let least = drive.revolutions_at(opened).floor();
        let first = (drive.revolutions_at(about).floor() - REVOLUTIONS_BEFORE_EVENT).max(least);
        let last = first + f64::from(REVOLUTIONS_SHOWN);
        let within = |from: Nanoseconds, until: Nanoseconds| {
            drive.revolutions_at(until) > first && drive.revolutions_at(from) < last
        };
        Some(Self {
            drive,
            drive_index: shown.drive_index,
            slots_per_track: shown.disk_position()?.slots,
            first_revolution: first,
            requests: trace
                .requests
                .iter()
                .filter(|one| {
                    one.drive_index == shown.drive_index
                        && within(one.issued_at, one.completed_at())
                })
                .cloned()
                .collect(),
            arm_work: trace
                .arm_traces
                .iter()
                .filter(|one| {
                    one.drive_index == shown.drive_index && within(one.work_start, one.work_end())
                })
                .cloned()
                .collect(),
            processor_work: list_processor_activities(trace, within),
            missed_revolution: missed,
        })
    }
}

fn is_missed_stage(stage: Stage) -> bool {
    matches!(stage, Stage::MissedRevolution(_))
}

/// Returns the deadline whose misses cost the programs the most time. Where no program waited, it
/// is the one that cost the drives the most.
fn costliest_missed_stage(trace: &Trace, requests: &[&TracedRequest]) -> Option<Stage> {
    let missed = || {
        Stage::ALL
            .into_iter()
            .filter(|stage| is_missed_stage(*stage))
    };
    let cost = |stage: Stage| {
        let of = |interval: StageInterval| match interval.stage == stage {
            true => interval.duration().0,
            false => 0,
        };
        let programs: u64 = trace
            .processes
            .iter()
            .flat_map(|one| one.stage_intervals())
            .map(of)
            .sum();
        let drives: u64 = requests
            .iter()
            .flat_map(|one| one.stage_intervals())
            .map(of)
            .sum();
        (programs, drives)
    };
    let costliest_missed_stage = missed().max_by_key(|stage| cost(*stage))?;
    // There must be a request to show.
    (cost(costliest_missed_stage).1 > 0).then_some(costliest_missed_stage)
}

fn list_processor_activities(
    trace: &Trace,
    within: impl Fn(Nanoseconds, Nanoseconds) -> bool,
) -> Vec<ProcessorActivity> {
    let of_programs = trace
        .processes
        .iter()
        .flat_map(|process| process.stage_intervals());
    let of_programs = of_programs.filter(|interval| {
        let family = super::family::StageFamily::from_stage(interval.stage);
        // What a program waits for is the drive's line.
        family == super::family::StageFamily::Processor && interval.stage != Stage::Completion
            || interval.stage == Stage::MemoryContention
    });
    let handlers = trace.handler_work.iter();
    let of_handlers = handlers.map(|one| one.stage_interval());
    let all = of_programs.chain(of_handlers);
    all.map(|interval| ProcessorActivity {
        stage: interval.stage,
        start: interval.start,
        end: interval.end,
    })
    .filter(|one| within(one.start, one.end))
    .collect()
}

#[cfg(test)]
mod tests;

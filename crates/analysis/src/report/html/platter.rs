//! The platter picture: what a drive, and the processor, did in a few
//! revolutions around the place where something is to be seen.
//!
//! One line is one revolution: the angle runs to the right and time downwards,
//! so that what stands at the same place of two lines is the same place of the
//! platter. Who comes too late for a sector waits for it over a whole line.

mod drawing;
mod mark;

pub(super) use drawing::figure;

use diskperf_timeline::trace::{Trace, TracedArm, TracedDrive, TracedRequest};
use diskperf_timeline::{Nanoseconds, Stage};

/// Revolutions shown before the one in which the request in question was
/// issued, and in all.
const BEFORE: f64 = 2.0;
const SHOWN: u32 = 9;

/// What is drawn of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Picture {
    /// How the drive turns.
    drive: TracedDrive,
    /// Its number, counted from 0.
    number: u32,
    /// The slots of the track in question.
    slots: u32,
    /// The revolution of the first line, as [`TracedDrive::revolutions`] counts.
    first: f64,
    /// The requests of this drive that were under way.
    requests: Vec<TracedRequest>,
    /// What its arm did for none of them.
    arms: Vec<TracedArm>,
    /// What the processor did.
    work: Vec<Work>,
    /// The missed revolution that it is all about, if any was missed.
    missed: Option<Missed>,
}

/// The processor at work on something, or hindered.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Work {
    stage: Stage,
    from: Nanoseconds,
    until: Nanoseconds,
}

/// A missed revolution.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Missed {
    stage: Stage,
    /// When the place passed the heads before anybody was ready for it.
    deadline: Nanoseconds,
    /// When somebody was.
    ready: Nanoseconds,
    /// How many requests lost a revolution for that reason, of how many.
    requests: usize,
    of: usize,
}

impl Picture {
    /// What is to be seen in a trace; nothing of one without requests of a disk.
    pub(super) fn of(trace: &Trace) -> Option<Self> {
        let opened = trace.processes.iter().map(|process| process.opened).min()?;
        let ended = trace
            .processes
            .iter()
            .map(|process| process.ended())
            .max()?;
        let timed = |one: &&TracedRequest| one.issued >= opened && one.issued < ended;
        let on_disks = trace.requests.iter().filter(|one| one.on_disk().is_some());
        let requests: Vec<&TracedRequest> = on_disks.filter(timed).collect();
        let cause = costliest(trace, &requests);
        let losers: Vec<&TracedRequest> = requests
            .iter()
            .copied()
            .filter(|one| cause.is_some_and(|cause| one.parts().any(|(stage, ..)| stage == cause)))
            .collect();
        // The one in the middle is past whatever is special about the start.
        let shown = match losers.is_empty() {
            true => requests.get(requests.len() / 2)?,
            false => losers.get(losers.len() / 2)?,
        };
        let drive = *trace.drives.get(shown.drive as usize)?;
        let missed = cause.and_then(|cause| {
            let (stage, ready, until) = shown.parts().find(|(stage, ..)| *stage == cause)?;
            let deadline = until.since(Nanoseconds(drive.revolution_ns as u64));
            Some(Missed {
                stage,
                deadline: deadline.min(ready),
                ready,
                requests: losers.len(),
                of: requests.len(),
            })
        });
        // Of a request that waited long for its turn, the wait is not it.
        let about = missed.map_or(shown.issued, |missed| missed.deadline);
        let least = drive.revolutions(opened).floor();
        let first = (drive.revolutions(about).floor() - BEFORE).max(least);
        let last = first + f64::from(SHOWN);
        let within = |from: Nanoseconds, until: Nanoseconds| {
            drive.revolutions(until) > first && drive.revolutions(from) < last
        };
        Some(Self {
            drive,
            number: shown.drive,
            slots: shown.on_disk()?.slots,
            first,
            requests: trace
                .requests
                .iter()
                .filter(|one| one.drive == shown.drive && within(one.issued, one.completed()))
                .cloned()
                .collect(),
            arms: trace
                .arms
                .iter()
                .filter(|one| one.drive == shown.drive && within(one.from, one.until()))
                .cloned()
                .collect(),
            work: work(trace, within),
            missed,
        })
    }
}

fn is_missed(stage: Stage) -> bool {
    matches!(stage, Stage::MissedRevolution(_))
}

/// The deadline whose missing cost the programs the most; where it cost them
/// nothing, for nobody waited, the one that cost the drives the most.
fn costliest(trace: &Trace, requests: &[&TracedRequest]) -> Option<Stage> {
    let missed = || Stage::ALL.into_iter().filter(|stage| is_missed(*stage));
    let cost = |stage: Stage| {
        let of = |(other, from, until): (Stage, Nanoseconds, Nanoseconds)| match other == stage {
            true => until.0 - from.0,
            false => 0,
        };
        let programs: u64 = trace
            .processes
            .iter()
            .flat_map(|one| one.parts())
            .map(of)
            .sum();
        let drives: u64 = requests.iter().flat_map(|one| one.parts()).map(of).sum();
        (programs, drives)
    };
    let costliest = missed().max_by_key(|stage| cost(*stage))?;
    // There must be a request to show.
    (cost(costliest).1 > 0).then_some(costliest)
}

/// What the processor did, for programs and for interrupts.
fn work(trace: &Trace, within: impl Fn(Nanoseconds, Nanoseconds) -> bool) -> Vec<Work> {
    let of_programs = trace.processes.iter().flat_map(|process| process.parts());
    let of_programs = of_programs.filter(|(stage, ..)| {
        let family = super::family::Family::of(*stage);
        // What a program waits for is the drive's line.
        family == super::family::Family::Processor && *stage != Stage::Completion
            || *stage == Stage::MemoryContention
    });
    let handlers = trace.handlers.iter();
    let of_handlers = handlers.map(|one| (one.stage, one.from, one.until));
    let all = of_programs.chain(of_handlers);
    all.map(|(stage, from, until)| Work { stage, from, until })
        .filter(|one| within(one.from, one.until))
        .collect()
}

#[cfg(test)]
mod tests;

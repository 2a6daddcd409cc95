//! Event trace of a modelled computer: requests, processor work and drive activity, as the
//! components recorded them. Timelines and explanations are made from it.

pub use diskperf_spans::{
    ArmWork, DiskPosition, FlashBusy, FlashLevels, Position, TracedArm, TracedDie, TracedFlash,
};

use crate::{Nanoseconds, Span, Stage};
use diskperf_spans::with_starts;
use serde::{Deserialize, Serialize};

/// Event trace of one repetition on a modelled computer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Drives of the modelled system, by number.
    pub drives: Vec<TracedDrive>,
    /// Whether the system consists of drives alone, without a processor, bus or controller that
    /// could be busy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_rig: bool,
    /// Every request that completed, in order of completion.
    pub requests: Vec<TracedRequest>,
    /// Timed parts of processes, in the order in which they ended.
    pub processes: Vec<TracedProcess>,
    /// Work of interrupt handlers, in order of their ends. A handler that another one interrupted
    /// lasts from its start to its end.
    pub handlers: Vec<TracedWork>,
    /// Busy part of each controller that [`TracedBusy::controllers`] measures; `None` for a
    /// controller without a measure.
    #[serde(default)]
    pub controllers: Vec<Option<Counted>>,
    /// Accumulated busy times of all components at the start and end of each program's timed part.
    #[serde(default)]
    pub busy: Vec<TracedBusy>,
    /// Times of the clock interrupts.
    #[serde(default)]
    pub ticks: Vec<Nanoseconds>,
    /// Activity of the flash drives.
    #[serde(default)]
    pub flash: Vec<TracedFlash>,
    /// Background work of disk actuators, in order of time for each drive.
    #[serde(default)]
    pub arms: Vec<TracedArm>,
}

impl Trace {
    /// Returns the memory that the trace occupies, in bytes.
    pub fn bytes(&self) -> u64 {
        let of_requests = self
            .requests
            .iter()
            .map(|request| size_of_val(&request.spans[..]) + size_of_val(&request.uses[..]));
        let of_processes = self
            .processes
            .iter()
            .map(|process| size_of_val(&process.spans[..]) + size_of_val(&process.work[..]));
        let all = size_of_val(&self.requests[..])
            + size_of_val(&self.handlers[..])
            + size_of_val(&self.busy[..])
            + size_of_val(&self.ticks[..]);
        let of_flash: usize = self.flash.iter().map(TracedFlash::bytes).sum();
        let of_arms: usize = self.arms.iter().map(TracedArm::bytes).sum();
        (all + of_flash + of_arms + of_requests.sum::<usize>() + of_processes.sum::<usize>()) as u64
    }
}

/// Part of a controller whose busy time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// Data channel of the controller, whose busy time is measured. One drive at a time holds it.
    Channel,
    /// Controller's own processor, whose busy time is measured.
    Processor,
}

/// Accumulated busy times of all components up to one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedBusy {
    /// Time up to which busy times are accumulated.
    pub at: Nanoseconds,
    /// Accumulated busy time of the processor.
    pub processor: Nanoseconds,
    /// Busy time of the processor in interrupt handlers.
    pub handlers: Nanoseconds,
    /// Accumulated busy time of the bus.
    pub bus: Nanoseconds,
    /// Busy time of each controller, by number; 0 for a controller without a measure.
    pub controllers: Vec<Nanoseconds>,
    /// Busy times of the parts of each flash drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flash: Vec<FlashBusy>,
}

/// Rotation and format of a traced drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedDrive {
    /// Duration of one revolution in nanoseconds.
    pub revolution_ns: f64,
    /// Rotation angle of the drive at time 0, as a share of a revolution.
    pub phase: f64,
    /// Sector size of the drive in bytes.
    pub sector_bytes: u32,
    /// Whether the drive is a disk with its own buffer and link, whose actuator also does
    /// background work.
    #[serde(default)]
    pub has_link: bool,
}

impl TracedDrive {
    /// Returns the number of revolutions since angle 0 last passed the heads before time 0. The
    /// fraction is the angle under the heads.
    pub fn revolutions(&self, at: Nanoseconds) -> f64 {
        at.0 as f64 / self.revolution_ns + self.phase
    }
}

/// Purpose of a request: read, read-ahead, write or write-behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Read that a process waits for.
    Read,
    /// Read-ahead of data that may be needed soon.
    ReadAhead,
    /// Write that a process waits for.
    Write,
    /// Write that no process waits for (write-behind).
    WriteBehind,
}

/// Completed request to one drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedRequest {
    /// Number of the drive that served the request.
    pub drive: u32,
    /// First sector of the request, counted from the start of the drive.
    pub sector: u64,
    /// Length of the request in sectors.
    pub sectors: u32,
    /// Purpose of the request.
    pub purpose: Purpose,
    /// Whether the request is a write with FUA, on the medium when it completes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Position of the request on the medium; `None` if the device does not report it.
    pub position: Option<Position>,
    /// Time at which the request was issued.
    pub issued: Nanoseconds,
    /// Stages of the request, without gaps from issue to completion.
    pub spans: Vec<Span>,
    /// Uses of the data that the request brought: one for each access by a process.
    pub uses: Vec<TracedUse>,
}

impl TracedRequest {
    /// Returns the position on the disk; `None` for other devices or if it is unknown.
    pub fn on_disk(&self) -> Option<DiskPosition> {
        match self.position {
            Some(Position::Disk(position)) => Some(position),
            Some(Position::Flash { .. }) | None => None,
        }
    }

    /// Returns the completion time of the request.
    pub fn completed(&self) -> Nanoseconds {
        self.spans.last().map_or(self.issued, |span| span.until)
    }

    /// Returns the request's spans as (stage, start, end).
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.issued, &self.spans)
    }
}

/// Use by a process of a block that a request brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedUse {
    /// Number of the process that used the block.
    pub process: u32,
    /// Time at which the process obtained the block.
    pub at: Nanoseconds,
}

/// Timed part of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedProcess {
    /// Number of the process whose timed part this is.
    pub number: u32,
    /// Start of the process's timed part.
    pub opened: Nanoseconds,
    /// Stages of the timed part, without gaps from its start to its end.
    pub spans: Vec<Span>,
    /// Processor work of the process by routine, in order of their ends, including work before the
    /// timed part.
    #[serde(default)]
    pub work: Vec<TracedWork>,
}

impl TracedProcess {
    /// Returns the end of the process's timed part.
    pub fn ended(&self) -> Nanoseconds {
        self.spans.last().map_or(self.opened, |span| span.until)
    }

    /// Returns the spans of the timed part as (stage, start, end).
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.opened, &self.spans)
    }
}

/// Processor work of one routine, in a process or an interrupt handler. The rest of its duration,
/// beyond `own` and `slowed`, went to interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedWork {
    /// Stage that the processor work belongs to.
    pub stage: Stage,
    /// Start of the processor work.
    pub from: Nanoseconds,
    /// End of the processor work.
    pub until: Nanoseconds,
    /// Processor time that the routine itself needed.
    #[serde(default)]
    pub own: Nanoseconds,
    /// Additional processor time because data transfers used the memory.
    #[serde(default)]
    pub slowed: Nanoseconds,
}

/// Collector of spans that are booked out of order. A waiting process books its wait when the wait
/// ends, after spans that follow it.
#[derive(Clone, Debug, Default)]
pub struct Tiling {
    spans: Vec<(Nanoseconds, Nanoseconds, Stage)>,
}

impl Tiling {
    /// Adds a span of length `ns` that ended at `until`.
    pub fn add(&mut self, stage: Stage, until: Nanoseconds, ns: u64) {
        if ns > 0 {
            self.spans.push((Nanoseconds(until.0 - ns), until, stage));
        }
    }

    /// Returns the memory that the spans occupy, in bytes.
    pub fn bytes(&self) -> usize {
        self.spans.capacity() * size_of::<(Nanoseconds, Nanoseconds, Stage)>()
    }

    /// Returns the spans in order of time, with neighbours of the same stage merged.
    ///
    /// # Panics
    ///
    /// If the spans from `opened` on have a gap or overlap.
    pub fn tiled(mut self, opened: Nanoseconds) -> Vec<Span> {
        self.spans.sort_by_key(|(from, _, _)| *from);
        let mut spans: Vec<Span> = Vec::with_capacity(self.spans.len());
        let mut at = opened;
        for (from, until, stage) in self.spans {
            assert!(
                from == at,
                "a span of {stage:?} starts at {from:?}, and the one before it ends at {at:?}"
            );
            at = until;
            match spans.last_mut() {
                Some(last) if last.stage == stage => last.until = until,
                _ => spans.push(Span { stage, until }),
            }
        }
        spans
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_may_be_booked_late() {
        let mut tiling = Tiling::default();
        tiling.add(Stage::User, Nanoseconds(15), 5);
        tiling.add(Stage::CpuWait, Nanoseconds(30), 5);
        tiling.add(Stage::Copy, Nanoseconds(30), 0);
        tiling.add(Stage::Seek, Nanoseconds(20), 5);
        tiling.add(Stage::Seek, Nanoseconds(25), 5);
        let span = |stage, until| Span {
            stage,
            until: Nanoseconds(until),
        };
        assert_eq!(
            tiling.tiled(Nanoseconds(10)),
            [
                span(Stage::User, 15),
                span(Stage::Seek, 25),
                span(Stage::CpuWait, 30)
            ]
        );
    }

    #[test]
    #[should_panic(expected = "ends at")]
    fn a_gap_is_no_tiling() {
        let mut tiling = Tiling::default();
        tiling.add(Stage::User, Nanoseconds(15), 5);
        tiling.add(Stage::Copy, Nanoseconds(20), 4);
        tiling.tiled(Nanoseconds(10));
    }

    #[test]
    fn what_is_not_in_an_old_document_is_empty() {
        let old = r#"{"drive":0,"channels":2,"dies":4,"unit_bytes":4096,"buffer_units":0}"#;
        let read: TracedFlash = serde_json::from_str(old).expect("an old document");
        assert!(read.kept.is_empty() && read.levels.is_empty() && read.left_out == 0);
        let trace = r#"{"drives":[],"requests":[],"processes":[],"handlers":[]}"#;
        let read: crate::Trace = serde_json::from_str(trace).expect("an older one");
        assert!(read.flash.is_empty());
    }
}

//! Event trace of a modelled computer: requests, processor work and drive activity, as the
//! components recorded them. Timelines and explanations are made from it.

pub use diskperf_spans::{
    ArmWork, DieBusyPeriod, DiskPosition, FlashBusy, FlashLevelSample, Position, TracedArm,
    TracedFlash,
};

use crate::{Nanoseconds, Span, Stage};
use diskperf_spans::{StageInterval, stage_intervals};
use serde::{Deserialize, Serialize};

/// Event trace of one repetition on a modelled computer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// Drives of the modelled system, by number.
    pub drives: Vec<TracedDrive>,
    /// Whether the system consists of drives alone, without a processor, bus or controller that
    /// could be busy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "is_of_rig")]
    pub is_on_rig: bool,
    /// Every request that completed, in order of completion.
    pub requests: Vec<TracedRequest>,
    /// Timed parts of processes, in the order in which they ended.
    pub processes: Vec<TracedProcess>,
    /// Work of interrupt handlers, in order of their ends. A handler that another one interrupted
    /// lasts from its start to its end.
    #[serde(rename = "handlers")]
    pub handler_work: Vec<TracedWork>,
    /// Busy part of each controller that [`TracedBusy::controllers_busy`] measures; `None` for a
    /// controller without a measure.
    #[serde(default)]
    #[serde(rename = "controllers")]
    pub controller_kinds: Vec<Option<CountedBusy>>,
    /// Accumulated busy times of all components at the start and end of each program's timed part.
    #[serde(default)]
    #[serde(rename = "busy")]
    pub busy_samples: Vec<TracedBusy>,
    /// Times of the clock interrupts.
    #[serde(default)]
    #[serde(rename = "ticks")]
    pub clock_ticks: Vec<Nanoseconds>,
    /// Activity of the flash drives.
    #[serde(default)]
    #[serde(rename = "flash")]
    pub flash_traces: Vec<TracedFlash>,
    /// Background work of disk actuators, in order of time for each drive.
    #[serde(default)]
    #[serde(rename = "arms")]
    pub arm_traces: Vec<TracedArm>,
}

impl Trace {
    /// Returns the memory that the trace occupies, in bytes.
    pub fn memory_bytes(&self) -> u64 {
        let of_requests = self
            .requests
            .iter()
            .map(|request| size_of_val(&request.spans[..]) + size_of_val(&request.buffer_uses[..]));
        let of_processes = self.processes.iter().map(|process| {
            size_of_val(&process.spans[..]) + size_of_val(&process.processor_work[..])
        });
        let all = size_of_val(&self.requests[..])
            + size_of_val(&self.handler_work[..])
            + size_of_val(&self.busy_samples[..])
            + size_of_val(&self.clock_ticks[..]);
        let of_flash: usize = self
            .flash_traces
            .iter()
            .map(TracedFlash::memory_bytes)
            .sum();
        let of_arms: usize = self.arm_traces.iter().map(TracedArm::memory_bytes).sum();
        (all + of_flash + of_arms + of_requests.sum::<usize>() + of_processes.sum::<usize>()) as u64
    }
}

/// Part of a controller whose busy time is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CountedBusy {
    /// Data channel of the controller, whose busy time is measured. One drive at a time holds it.
    Channel,
    /// Controller's own processor, whose busy time is measured.
    Processor,
}

/// Accumulated busy times of all components up to one time.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedBusy {
    /// Time up to which busy times are accumulated.
    #[serde(rename = "at")]
    pub sample_time: Nanoseconds,
    /// Accumulated busy time of the processor.
    #[serde(rename = "processor")]
    pub processor_busy: Nanoseconds,
    /// Busy time of the processor in interrupt handlers.
    #[serde(rename = "handlers")]
    pub handlers_busy: Nanoseconds,
    /// Accumulated busy time of the bus.
    #[serde(rename = "bus")]
    pub bus_busy: Nanoseconds,
    /// Busy time of each controller, by number; 0 for a controller without a measure.
    #[serde(rename = "controllers")]
    pub controllers_busy: Vec<Nanoseconds>,
    /// Busy times of the parts of each flash drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "flash")]
    pub flash_busy: Vec<FlashBusy>,
}

/// Rotation and format of a traced drive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedDrive {
    /// Duration of one revolution in nanoseconds.
    pub revolution_ns: f64,
    /// Rotation angle of the drive at time 0, as a share of a revolution.
    #[serde(rename = "phase")]
    pub rotational_phase: f64,
    /// Sector size of the drive in bytes.
    pub sector_bytes: u32,
    /// Whether the drive is a disk with its own buffer and link, whose actuator also does
    /// background work.
    #[serde(default)]
    #[serde(rename = "has_link")]
    pub has_bus_link: bool,
}

impl TracedDrive {
    /// Returns the number of revolutions since angle 0 last passed the heads before time 0. The
    /// fraction is the angle under the heads.
    pub fn revolutions_at(&self, at: Nanoseconds) -> f64 {
        at.0 as f64 / self.revolution_ns + self.rotational_phase
    }
}

/// Purpose of a request: read, read-ahead, write or write-behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RequestPurpose {
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
    #[serde(rename = "drive")]
    pub drive_index: u32,
    /// First sector of the request, counted from the start of the drive.
    pub sector: u64,
    /// Length of the request in sectors.
    #[serde(rename = "sectors")]
    pub sector_count: u32,
    /// Purpose of the request.
    pub purpose: RequestPurpose,
    /// Whether the request is a write with FUA, on the medium when it completes.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    #[serde(rename = "forced")]
    pub is_fua: bool,
    /// Position of the request on the medium; `None` if the device does not report it.
    #[serde(rename = "position")]
    pub media_position: Option<Position>,
    /// Time at which the request was issued.
    #[serde(rename = "issued")]
    pub issued_at: Nanoseconds,
    /// Stages of the request, without gaps from issue to completion.
    pub spans: Vec<Span>,
    /// Uses of the data that the request brought: one for each access by a process.
    #[serde(rename = "uses")]
    pub buffer_uses: Vec<TracedUse>,
}

impl TracedRequest {
    /// Returns the position on the disk; `None` for other devices or if it is unknown.
    pub fn disk_position(&self) -> Option<DiskPosition> {
        match self.media_position {
            Some(Position::Disk(position)) => Some(position),
            Some(Position::Flash { .. }) | None => None,
        }
    }

    /// Returns the completion time of the request.
    pub fn completed_at(&self) -> Nanoseconds {
        self.spans
            .last()
            .map_or(self.issued_at, |span| span.stage_end)
    }

    /// Returns the request's spans with their starts.
    pub fn stage_intervals(&self) -> impl Iterator<Item = StageInterval> + '_ {
        stage_intervals(self.issued_at, &self.spans)
    }
}

/// Use by a process of a block that a request brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedUse {
    /// Number of the process that used the block.
    #[serde(rename = "process")]
    pub process_number: u32,
    /// Time at which the process obtained the block.
    #[serde(rename = "at")]
    pub use_time: Nanoseconds,
}

/// Timed part of one process.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedProcess {
    /// Number of the process whose timed part this is.
    #[serde(rename = "number")]
    pub process_number: u32,
    /// Start of the process's timed part.
    #[serde(rename = "opened")]
    pub account_start: Nanoseconds,
    /// Stages of the timed part, without gaps from its start to its end.
    pub spans: Vec<Span>,
    /// Processor work of the process by routine, in order of their ends, including work before the
    /// timed part.
    #[serde(default)]
    #[serde(rename = "work")]
    pub processor_work: Vec<TracedWork>,
}

impl TracedProcess {
    /// Returns the end of the process's timed part.
    pub fn account_end(&self) -> Nanoseconds {
        self.spans
            .last()
            .map_or(self.account_start, |span| span.stage_end)
    }

    /// Returns the spans of the timed part with their starts.
    pub fn stage_intervals(&self) -> impl Iterator<Item = StageInterval> + '_ {
        stage_intervals(self.account_start, &self.spans)
    }
}

/// Processor work of one routine, in a process or an interrupt handler. The rest of its duration,
/// beyond `own` and `slowed`, went to interrupts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedWork {
    /// Stage that the processor work belongs to.
    pub stage: Stage,
    /// Start of the processor work.
    #[serde(rename = "from")]
    pub work_start: Nanoseconds,
    /// End of the processor work.
    #[serde(rename = "until")]
    pub work_end: Nanoseconds,
    /// Processor time that the routine itself needed.
    #[serde(default)]
    #[serde(rename = "own")]
    pub own_time: Nanoseconds,
    /// Additional processor time because data transfers used the memory.
    #[serde(default)]
    #[serde(rename = "slowed")]
    pub slowdown_time: Nanoseconds,
}

impl TracedWork {
    /// Returns the stage of the work with its start and end.
    pub fn stage_interval(&self) -> StageInterval {
        StageInterval {
            stage: self.stage,
            start: self.work_start,
            end: self.work_end,
        }
    }
}

/// Collector of spans that are booked out of order. A waiting process books its wait when the wait
/// ends, after spans that follow it.
#[derive(Clone, Debug, Default)]
pub struct StageTiling {
    spans: Vec<(Nanoseconds, Nanoseconds, Stage)>,
}

impl StageTiling {
    /// Adds a span of length `ns` that ended at `until`.
    pub fn add_tile(&mut self, stage: Stage, until: Nanoseconds, ns: u64) {
        if ns > 0 {
            self.spans.push((Nanoseconds(until.0 - ns), until, stage));
        }
    }

    /// Returns the memory that the spans occupy, in bytes.
    pub fn memory_bytes(&self) -> usize {
        self.spans.capacity() * size_of::<(Nanoseconds, Nanoseconds, Stage)>()
    }

    /// Returns the spans in order of time, with neighbours of the same stage merged.
    ///
    /// # Panics
    ///
    /// If the spans from `opened` on have a gap or overlap.
    pub fn into_spans(mut self, opened: Nanoseconds) -> Vec<Span> {
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
                Some(last) if last.stage == stage => last.stage_end = until,
                _ => spans.push(Span {
                    stage,
                    stage_end: until,
                }),
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
        let mut tiling = StageTiling::default();
        tiling.add_tile(Stage::User, Nanoseconds(15), 5);
        tiling.add_tile(Stage::CpuWait, Nanoseconds(30), 5);
        tiling.add_tile(Stage::Copy, Nanoseconds(30), 0);
        tiling.add_tile(Stage::Seek, Nanoseconds(20), 5);
        tiling.add_tile(Stage::Seek, Nanoseconds(25), 5);
        let span = |stage, until| Span {
            stage,
            stage_end: Nanoseconds(until),
        };
        assert_eq!(
            tiling.into_spans(Nanoseconds(10)),
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
        let mut tiling = StageTiling::default();
        tiling.add_tile(Stage::User, Nanoseconds(15), 5);
        tiling.add_tile(Stage::Copy, Nanoseconds(20), 4);
        tiling.into_spans(Nanoseconds(10));
    }

    #[test]
    fn what_is_not_in_an_old_document_is_empty() {
        let old = r#"{"drive":0,"channels":2,"dies":4,"unit_bytes":4096,"buffer_units":0}"#;
        let read: TracedFlash = serde_json::from_str(old).expect("an old document");
        assert!(
            read.recorded_periods.is_empty()
                && read.level_samples.is_empty()
                && read.omitted_period_count == 0
        );
        let trace = r#"{"drives":[],"requests":[],"processes":[],"handlers":[]}"#;
        let read: crate::Trace = serde_json::from_str(trace).expect("an older one");
        assert!(read.flash_traces.is_empty());
    }
}

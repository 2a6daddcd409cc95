//! All that happened on a modelled computer between two moments, as those who
//! did it recorded it: what pictures and explanations are made of.

pub use diskperf_spans::{
    ArmWork, DiskPosition, FlashBusy, FlashLevels, Position, TracedArm, TracedDie, TracedFlash,
};

use crate::{Nanoseconds, Span, Stage};
use diskperf_spans::with_starts;
use serde::{Deserialize, Serialize};

/// What was recorded of one repetition.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Trace {
    /// The drives, by number.
    pub drives: Vec<TracedDrive>,
    /// Whether the drives stand by themselves: there is no processor, no bus and no
    /// controller that could be busy.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub is_of_rig: bool,
    /// Every request that completed, in the order of completion.
    pub requests: Vec<TracedRequest>,
    /// Programs, in the order in which their timed parts ended.
    pub processes: Vec<TracedProcess>,
    /// What handlers of interrupts did, by their ends. One that another came
    /// in between lasts from its start to its end.
    pub handlers: Vec<TracedWork>,
    /// What of each controller is counted in [`TracedBusy::controllers`], if
    /// anything is.
    #[serde(default)]
    pub controllers: Vec<Option<Counted>>,
    /// How busy everything had been, at the start and at the end of each
    /// program's timed part.
    #[serde(default)]
    pub busy: Vec<TracedBusy>,
    /// When the clock interrupted.
    #[serde(default)]
    pub ticks: Vec<Nanoseconds>,
    /// What flash drives did.
    #[serde(default)]
    pub flash: Vec<TracedFlash>,
    /// What arms of disks did for no request, in order of time for each drive.
    #[serde(default)]
    pub arms: Vec<TracedArm>,
}

impl Trace {
    /// Memory that it takes.
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

/// What of a controller is busy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Counted {
    /// The way for data, held by one drive at a time.
    Channel,
    /// Its own processor.
    Processor,
}

/// For how long everything had been busy by some moment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedBusy {
    /// The moment.
    pub at: Nanoseconds,
    /// The processor.
    pub processor: Nanoseconds,
    /// Of that, in handlers of interrupts.
    pub handlers: Nanoseconds,
    /// The bus.
    pub bus: Nanoseconds,
    /// Each controller, by number; 0 where nothing is counted.
    pub controllers: Vec<Nanoseconds>,
    /// The parts of each flash drive.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flash: Vec<FlashBusy>,
}

/// How a drive turned.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedDrive {
    /// One revolution.
    pub revolution_ns: f64,
    /// The share of a revolution that it was turned by at time 0.
    pub phase: f64,
    /// Bytes of a sector.
    pub sector_bytes: u32,
    /// Whether it is a disk with a buffer and a link of its own, whose arm works for no
    /// request too.
    #[serde(default)]
    pub has_link: bool,
}

impl TracedDrive {
    /// The revolutions that it has made since angle 0 passed the heads last
    /// before time 0; the fraction is the angle under the heads.
    pub fn revolutions(&self, at: Nanoseconds) -> f64 {
        at.0 as f64 / self.revolution_ns + self.phase
    }
}

/// Who wants a request done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// Somebody waits for what is read.
    Read,
    /// It may be wanted soon.
    ReadAhead,
    /// Somebody waits until it is written.
    Write,
    /// Nobody waits for it.
    WriteBehind,
}

/// One request of one drive.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedRequest {
    /// The drive.
    pub drive: u32,
    /// Its first sector, from the start of the drive.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// What it is for.
    pub purpose: Purpose,
    /// Whether it is a write that is on the medium when it is done (FUA).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// Where that is; none where the device does not say.
    pub position: Option<Position>,
    /// When it was issued.
    pub issued: Nanoseconds,
    /// What its time went to, without gap from the issue to the completion.
    pub spans: Vec<Span>,
    /// Who used what it brought, and when; once for each time that somebody
    /// came for it.
    pub uses: Vec<TracedUse>,
}

impl TracedRequest {
    /// Where on a disk it is.
    pub fn on_disk(&self) -> Option<DiskPosition> {
        match self.position {
            Some(Position::Disk(position)) => Some(position),
            Some(Position::Flash { .. }) | None => None,
        }
    }

    /// When it completed.
    pub fn completed(&self) -> Nanoseconds {
        self.spans.last().map_or(self.issued, |span| span.until)
    }

    /// Its spans with their starts.
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.issued, &self.spans)
    }
}

/// A block that a request brought found its user.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedUse {
    /// The process, by its number.
    pub process: u32,
    /// When it had it.
    pub at: Nanoseconds,
}

/// A program's timed part.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TracedProcess {
    /// The process, by its number.
    pub number: u32,
    /// When the timed part began.
    pub opened: Nanoseconds,
    /// What its time went to, without gap until the timed part ended.
    pub spans: Vec<Span>,
    /// What it had the processor do, routine by routine, in the order in which
    /// that ended; also before the timed part.
    #[serde(default)]
    pub work: Vec<TracedWork>,
}

impl TracedProcess {
    /// When it ended.
    pub fn ended(&self) -> Nanoseconds {
        self.spans.last().map_or(self.opened, |span| span.until)
    }

    /// Its spans with their starts.
    pub fn parts(&self) -> impl Iterator<Item = (Stage, Nanoseconds, Nanoseconds)> + '_ {
        with_starts(self.opened, &self.spans)
    }
}

/// Work of one routine, in a program or in a handler of an interrupt. What of
/// it is neither its own nor slowing went to interrupts that came in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TracedWork {
    /// What was done.
    pub stage: Stage,
    /// When it began.
    pub from: Nanoseconds,
    /// When it ended.
    pub until: Nanoseconds,
    /// What the processor worked on it.
    #[serde(default)]
    pub own: Nanoseconds,
    /// What that took longer because data moved over the memory.
    #[serde(default)]
    pub slowed: Nanoseconds,
}

/// Spans that are booked in another order than they passed in: who waits books
/// the waiting when it is over, and what came after it before.
#[derive(Clone, Debug, Default)]
pub struct Tiling {
    parts: Vec<(Nanoseconds, Nanoseconds, Stage)>,
}

impl Tiling {
    /// A span that ended at `until`.
    pub fn add(&mut self, stage: Stage, until: Nanoseconds, ns: u64) {
        if ns > 0 {
            self.parts.push((Nanoseconds(until.0 - ns), until, stage));
        }
    }

    /// Memory that they take.
    pub fn bytes(&self) -> usize {
        self.parts.capacity() * size_of::<(Nanoseconds, Nanoseconds, Stage)>()
    }

    /// The spans in their order, those of the same stage joined.
    ///
    /// # Panics
    ///
    /// When they do not follow each other without gap from `opened` on.
    pub fn tiled(mut self, opened: Nanoseconds) -> Vec<Span> {
        self.parts.sort_by_key(|(from, _, _)| *from);
        let mut spans: Vec<Span> = Vec::with_capacity(self.parts.len());
        let mut at = opened;
        for (from, until, stage) in self.parts {
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

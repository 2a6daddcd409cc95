//! Replay of a block trace. Its requests are issued at the trace's times (open loop), at a fixed
//! queue depth (closed loop), or each as long after the completion that it followed as in the
//! trace.

mod pauses;
mod schedule;
mod source;

use crate::blocks::ensure_file;
use crate::parameter::ParameterField;
use crate::pattern::{Pattern, PhaseFuture, ProgramProperties, RunContext};
use crate::program::{Input, Program, ProgramError};
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::Worker;
use diskperf_blocktrace::{TraceRecord, TracedOperation};
use diskperf_system::{Buffer, EngineChoice, File, Open, RingOptions, System};
use diskperf_timeline::{CacheMode, Nanoseconds, ReplayPace, TraceFacts, WorkerMeasure};
use source::TraceSource;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Name of the replay programs, and of the file that stands for the trace's device.
pub(crate) const NAME: &str = "replay";

const SAMPLE_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

/// Requests of a trace in the order of issue, as they are read. A read error ends them.
pub type Requests = Box<dyn Iterator<Item = Result<TraceRecord, String>> + Send>;

/// Trace that can be read repeatedly, with the same requests each time.
pub trait Trace: fmt::Debug + Send + Sync {
    /// Begins to read the trace. The first request is then available without delay.
    fn requests(&self) -> Requests;
}

/// Trace to be replayed, and the way to replay it.
#[derive(Clone, Debug)]
pub struct Replay {
    /// Source of the requests. No request ends beyond `space_bytes`.
    pub trace: Arc<dyn Trace>,
    /// Totals of the trace's requests.
    pub held: TraceFacts,
    /// Rule by which requests are issued: by the trace's times, at a fixed queue depth, or after
    /// the completions that they followed.
    pub pace: ReplayPace,
    /// Time within the trace at which an open replay begins. `None` means the time of the first
    /// request.
    pub begins: Option<Nanoseconds>,
    /// Maximum queue depth of the replay.
    pub slots: u32,
    /// Size of the address space of the requests, in bytes.
    pub space_bytes: u64,
    /// Common divisor of the offsets and lengths of all requests, in bytes.
    pub unit_bytes: u64,
    /// State of the page cache that the replay requires.
    pub cache: CacheMode,
    /// Whether discards of the trace are issued.
    pub discards: bool,
    /// Whether writes that were durable in the trace (FUA) are made durable.
    pub durable: bool,
}

/// Replays are equal if everything but the source from which the trace is read is equal.
impl PartialEq for Replay {
    fn eq(&self, other: &Self) -> bool {
        let told = |of: &Self| (of.pace, of.begins, of.slots, of.space_bytes, of.unit_bytes);
        told(self) == told(other)
            && (self.cache, self.discards, self.durable)
                == (other.cache, other.discards, other.durable)
            && self.held.is_same_trace(&other.held)
    }
}

/// Requests of the next timed part, which is read ahead before it begins.
#[derive(Default)]
struct ReadAhead(Mutex<Option<Requests>>);

#[derive(Clone, Debug)]
struct ReplayPattern {
    replay: Replay,
    read_ahead: ReadAhead,
}

impl Program {
    /// Creates the program that replays a trace.
    pub fn of_replay(replay: Replay) -> Self {
        let ahead = ReadAhead::default();
        Self::from_pattern(
            (NAME, NAME),
            Box::new(ReplayPattern {
                replay,
                read_ahead: ahead,
            }),
        )
    }
}

impl Replay {
    fn issues_operation(&self, operation: TracedOperation) -> bool {
        match operation {
            TracedOperation::Read | TracedOperation::Write | TracedOperation::Flush => true,
            TracedOperation::Discard => self.discards,
            TracedOperation::WriteZeroes => false,
        }
    }

    fn writes_target(&self) -> bool {
        let held = &self.held;
        held.write.requests > 0 || (self.discards && held.discard.requests > 0)
    }

    /// Returns the duration of an open-loop replay if all requests are issued in time, or `None`
    /// for other replays.
    fn duration(&self) -> Option<Nanoseconds> {
        match self.pace {
            ReplayPace::Open { speed } => Some(schedule::scale_to_speed(
                Nanoseconds(self.held.lasts_ns),
                speed,
            )),
            ReplayPace::Closed { .. } | ReplayPace::Dependent => None,
        }
    }

    fn ring_options(&self, worker: &Worker) -> RingOptions {
        RingOptions {
            depth: self.slots,
            buffer_bytes: self.held.largest_bytes.max(512).next_multiple_of(512) as u32,
            seed: worker.seed,
            compressible_percent: 0,
            engine: EngineChoice::Best,
            poll: false,
            has_contents: false,
            interval: SAMPLE_INTERVAL,
        }
    }
}

impl Pattern for ReplayPattern {
    fn fields(&mut self) -> Vec<ParameterField<'_>> {
        Vec::new()
    }

    fn replay(&self) -> Option<&Replay> {
        Some(&self.replay)
    }

    fn properties(&self) -> ProgramProperties {
        let replay = &self.replay;
        ProgramProperties {
            accepts_any_size: true,
            keeps_requests_in_flight: true,
            writes_target: replay.writes_target(),
            cache_mode: Some(replay.cache),
            duration: replay.duration(),
            size_bytes_range: (replay.held.moved_bytes(), replay.held.moved_bytes()),
            ..ProgramProperties::for_reads(replay.held.largest_bytes.max(1))
        }
    }

    fn default_bytes(&self) -> Option<u64> {
        Some(self.replay.held.moved_bytes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.replay.unit_bytes
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.replay.space_bytes
    }

    fn written_bytes(&self) -> Option<u64> {
        Some(self.replay.held.write.bytes)
    }

    fn inputs(&self, worker: &Worker) -> Vec<Input> {
        vec![Input {
            path: worker.file_path(NAME),
            length_bytes: self.replay.space_bytes,
            read: self.replay.held.read.requests > 0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let path = worker.file_path(NAME);
            ensure_file(system, worker, &path, self.replay.space_bytes).await
        })
    }

    fn survey<'a>(&'a mut self, _system: &'a mut System, _worker: &'a Worker) -> PhaseFuture<'a> {
        self.read_ahead = ReadAhead(Mutex::new(Some(self.replay.trace.requests())));
        crate::pattern::empty_phase()
    }

    fn run<'a>(
        &'a self,
        (system, worker): RunContext<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let replay = &self.replay;
            let ahead = self.read_ahead.take();
            let requests = ahead.unwrap_or_else(|| replay.trace.requests());
            let how = match replay.writes_target() {
                true => Open::READ_WRITE,
                false => Open::READ,
            };
            let path = worker.file_path(NAME);
            let file = system.open(&path, how.direct(worker.direct)).await?;
            // The same by another name: each write by it is on the medium when it completes.
            let how = Open::WRITE.direct(worker.direct).dsync(true);
            let durable = match replay.durable {
                true => Some(system.open(&path, how).await?),
                false => None,
            };
            let files: Vec<File> = [Some(file), durable].into_iter().flatten().collect();
            let options = replay.ring_options(worker);
            system.open_ring(options, &files).await?;
            let files = files.into_iter().map(|file| (file, path.clone())).collect();
            let mut ring = IoRing::new(system, Slots::new(u64::from(replay.slots)), files);
            let made = requests_to_issue(replay.clone(), requests);
            let paced = (replay.pace, replay.begins, made);
            let mut source = TraceSource::new(&ring, (file, durable), paced);
            ring.run(&mut source).await
        })
    }
}

/// Returns the requests of a trace that the replay issues.
fn requests_to_issue(replay: Replay, requests: Requests) -> Requests {
    let is_made = move |record: &TraceRecord| {
        let is_empty = record.length_bytes == 0 && record.operation != TracedOperation::Flush;
        replay.issues_operation(record.operation) && !is_empty
    };
    Box::new(requests.filter(move |one| one.as_ref().map_or(true, &is_made)))
}

/// Returns the error for a trace that cannot be read any further.
fn trace_error(what: String) -> ProgramError {
    ProgramError::TraceFailed(what)
}

impl ReadAhead {
    fn take(&self) -> Option<Requests> {
        let mut held = self.0.lock().expect("nobody fails while he takes them");
        held.take()
    }
}

/// Copies get no requests, because the requests read ahead belong to one worker.
impl Clone for ReadAhead {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for ReadAhead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAhead")
    }
}

//! Replay of a block trace. Its requests are issued at the trace's times (open loop), at a fixed
//! queue depth (closed loop), or each as long after the completion that it followed as in the
//! trace.

mod pauses;
mod schedule;
mod source;

use crate::blocks::ensure_file;
use crate::parameter::ParameterField;
use crate::pattern::{AccessPattern, PhaseFuture, ProgramProperties, SystemAndWorker};
use crate::program::{InputFile, Program, ProgramError};
use crate::ring::IoRing;
use crate::ring::slots::Slots;
use crate::worker::Worker;
use diskperf_blocktrace::{TraceRecord, TracedOperation};
use diskperf_system::{Buffer, EngineChoice, File, OpenOptions, RingOptions, System};
use diskperf_timeline::{CacheMode, Nanoseconds, ReplayPace, TraceFacts, WorkerMeasure};
use source::TraceSource;
use std::fmt;
use std::sync::{Arc, Mutex};

/// Name of the replay programs, and of the file that stands for the trace's device.
pub(crate) const PROGRAM_NAME: &str = "replay";

const SAMPLE_INTERVAL: Nanoseconds = Nanoseconds::from_millis(1000);

/// Requests of a trace in the order of issue, as they are read. A read error ends them.
pub type RequestIterator = Box<dyn Iterator<Item = Result<TraceRecord, String>> + Send>;

/// Trace that can be read repeatedly, with the same requests each time.
pub trait ReplayTrace: fmt::Debug + Send + Sync {
    /// Begins to read the trace. The first request is then available without delay.
    fn read_requests(&self) -> RequestIterator;
}

/// Trace to be replayed, and the way to replay it.
#[derive(Clone, Debug)]
pub struct ReplayPlan {
    /// Source of the requests. No request ends beyond `space_bytes`.
    pub replay_trace: Arc<dyn ReplayTrace>,
    /// Totals of the trace's requests.
    pub trace_facts: TraceFacts,
    /// Rule by which requests are issued: by the trace's times, at a fixed queue depth, or after
    /// the completions that they followed.
    pub replay_pace: ReplayPace,
    /// Time within the trace at which an open replay begins. `None` means the time of the first
    /// request.
    pub trace_start: Option<Nanoseconds>,
    /// Maximum queue depth of the replay.
    pub slot_count: u32,
    /// Size of the address space of the requests, in bytes.
    pub address_space_bytes: u64,
    /// Common divisor of the offsets and lengths of all requests, in bytes.
    pub unit_bytes: u64,
    /// State of the page cache that the replay requires.
    pub cache_mode: CacheMode,
    /// Whether discards of the trace are issued.
    pub issues_discards: bool,
    /// Whether writes that were durable in the trace (FUA) are made durable.
    pub keeps_durable_writes: bool,
}

/// Replays are equal if everything but the source from which the trace is read is equal.
impl PartialEq for ReplayPlan {
    fn eq(&self, other: &Self) -> bool {
        let told = |of: &Self| {
            (
                of.replay_pace,
                of.trace_start,
                of.slot_count,
                of.address_space_bytes,
                of.unit_bytes,
            )
        };
        told(self) == told(other)
            && (
                self.cache_mode,
                self.issues_discards,
                self.keeps_durable_writes,
            ) == (
                other.cache_mode,
                other.issues_discards,
                other.keeps_durable_writes,
            )
            && self.trace_facts.is_same_trace(&other.trace_facts)
    }
}

/// Requests of the next timed part, which is read ahead before it begins.
#[derive(Default)]
struct OpenedRequests(Mutex<Option<RequestIterator>>);

#[derive(Clone, Debug)]
struct ReplayPattern {
    replay_plan: ReplayPlan,
    opened_requests: OpenedRequests,
}

impl Program {
    /// Creates the program that replays a trace.
    pub fn from_replay(replay: ReplayPlan) -> Self {
        let ahead = OpenedRequests::default();
        Self::from_pattern(
            (PROGRAM_NAME, PROGRAM_NAME),
            Box::new(ReplayPattern {
                replay_plan: replay,
                opened_requests: ahead,
            }),
        )
    }
}

impl ReplayPlan {
    fn issues_operation(&self, operation: TracedOperation) -> bool {
        match operation {
            TracedOperation::Read | TracedOperation::Write | TracedOperation::Flush => true,
            TracedOperation::Discard => self.issues_discards,
            TracedOperation::WriteZeroes => false,
        }
    }

    fn writes_target(&self) -> bool {
        let held = &self.trace_facts;
        held.write.request_count > 0 || (self.issues_discards && held.discard.request_count > 0)
    }

    /// Returns the duration of an open-loop replay if all requests are issued in time, or `None`
    /// for other replays.
    fn trace_duration(&self) -> Option<Nanoseconds> {
        match self.replay_pace {
            ReplayPace::OpenLoop { speed } => Some(schedule::scale_to_speed(
                Nanoseconds(self.trace_facts.duration_ns),
                speed,
            )),
            ReplayPace::ClosedLoop { .. } | ReplayPace::Dependent => None,
        }
    }

    fn ring_options(&self, worker: &Worker) -> RingOptions {
        RingOptions {
            queue_depth: self.slot_count,
            buffer_bytes: self
                .trace_facts
                .transfer_bytes_max
                .max(512)
                .next_multiple_of(512) as u32,
            seed: worker.random_seed,
            compressible_percent: 0,
            engine_choice: EngineChoice::BestAvailable,
            polls_completions: false,
            has_verifiable_contents: false,
            series_interval: SAMPLE_INTERVAL,
        }
    }
}

impl AccessPattern for ReplayPattern {
    fn parameter_fields(&mut self) -> Vec<ParameterField<'_>> {
        Vec::new()
    }

    fn trace_replay(&self) -> Option<&ReplayPlan> {
        Some(&self.replay_plan)
    }

    fn program_properties(&self) -> ProgramProperties {
        let replay = &self.replay_plan;
        ProgramProperties {
            accepts_any_size: true,
            keeps_requests_in_flight: true,
            writes_target: replay.writes_target(),
            cache_mode: Some(replay.cache_mode),
            duration_max: replay.trace_duration(),
            size_bytes_range: (
                replay.trace_facts.moved_bytes(),
                replay.trace_facts.moved_bytes(),
            ),
            ..ProgramProperties::new_for_reads(replay.trace_facts.transfer_bytes_max.max(1))
        }
    }

    fn default_bytes(&self) -> Option<u64> {
        Some(self.replay_plan.trace_facts.moved_bytes())
    }

    fn unit_bytes(&self, _size_bytes: u64) -> u64 {
        self.replay_plan.unit_bytes
    }

    fn file_bytes(&self, _size_bytes: u64) -> u64 {
        self.replay_plan.address_space_bytes
    }

    fn written_bytes(&self) -> Option<u64> {
        Some(self.replay_plan.trace_facts.write.bytes)
    }

    fn input_files(&self, worker: &Worker) -> Vec<InputFile> {
        vec![InputFile {
            path: worker.file_path(PROGRAM_NAME),
            length_bytes: self.replay_plan.address_space_bytes,
            is_read_through: self.replay_plan.trace_facts.read.request_count > 0,
        }]
    }

    fn payload_bytes(&self, _worker: &Worker, measure: &WorkerMeasure) -> u64 {
        measure.read_bytes + measure.written_bytes
    }

    fn prepare_target<'a>(&'a self, system: &'a mut System, worker: &'a Worker) -> PhaseFuture<'a> {
        Box::pin(async move {
            let path = worker.file_path(PROGRAM_NAME);
            ensure_file(system, worker, &path, self.replay_plan.address_space_bytes).await
        })
    }

    fn survey_target<'a>(
        &'a mut self,
        _system: &'a mut System,
        _worker: &'a Worker,
    ) -> PhaseFuture<'a> {
        self.opened_requests = OpenedRequests(Mutex::new(Some(
            self.replay_plan.replay_trace.read_requests(),
        )));
        crate::pattern::empty_phase()
    }

    fn run_timed_part<'a>(
        &'a self,
        (system, worker): SystemAndWorker<'a>,
        _buffer: &'a mut Buffer,
    ) -> PhaseFuture<'a> {
        Box::pin(async move {
            let replay = &self.replay_plan;
            let ahead = self.opened_requests.take_requests();
            let requests = ahead.unwrap_or_else(|| replay.replay_trace.read_requests());
            let how = match replay.writes_target() {
                true => OpenOptions::READ_WRITE,
                false => OpenOptions::READ,
            };
            let path = worker.file_path(PROGRAM_NAME);
            let file = system
                .open(&path, how.with_direct(worker.direct_io))
                .await?;
            // The same by another name: each write by it is on the medium when it completes.
            let how = OpenOptions::WRITE
                .with_direct(worker.direct_io)
                .with_dsync(true);
            let durable = match replay.keeps_durable_writes {
                true => Some(system.open(&path, how).await?),
                false => None,
            };
            let files: Vec<File> = [Some(file), durable].into_iter().flatten().collect();
            let options = replay.ring_options(worker);
            system.open_ring(options, &files).await?;
            let files = files.into_iter().map(|file| (file, path.clone())).collect();
            let mut ring = IoRing::new(system, Slots::new(u64::from(replay.slot_count)), files);
            let made = requests_to_issue(replay.clone(), requests);
            let mut source = TraceSource::new(
                &ring,
                (file, durable),
                replay.replay_pace,
                replay.trace_start,
                made,
            );
            ring.run_source(&mut source).await
        })
    }
}

fn requests_to_issue(replay: ReplayPlan, requests: RequestIterator) -> RequestIterator {
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

impl OpenedRequests {
    fn take_requests(&self) -> Option<RequestIterator> {
        let mut held = self.0.lock().expect("nobody fails while he takes them");
        held.take()
    }
}

/// Copies get no requests, because the requests read ahead belong to one worker.
impl Clone for OpenedRequests {
    fn clone(&self) -> Self {
        Self::default()
    }
}

impl fmt::Debug for OpenedRequests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("ReadAhead")
    }
}

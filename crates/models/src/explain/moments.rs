//! Replay of a program's requests at the same times as before. A change then affects only the
//! response times, not the time of requests. A program that waits for completions would instead
//! issue more requests in the same time.

use super::rerun::RerunOutcome;
use crate::model::computer::ModelComputer;
use crate::plan::ModelPlan;
use crate::plan::replay::SLOT_COUNT_MAX;
use diskperf_analysis::explanation::observed::count_in_flight_max;
use diskperf_analysis::explanation::timed_window;
use diskperf_battery::replay::{ReplayTrace as Asked, RequestIterator};
use diskperf_battery::{Medium, Program, ReplayPlan, SuiteJob};
use diskperf_blocktrace::{DeviceIndex, TraceRecord, TracedOperation};
use diskperf_timeline::trace::{RequestPurpose, TracedRequest};
use diskperf_timeline::{
    CacheMode, Nanoseconds, ReplayPace, Stage, Trace, TraceFacts, TraceOperation,
};
use std::sync::Arc;

/// Returns a job that replays the requests of an outcome in its place; `None` if they cannot be
/// replayed.
pub(super) fn replay_job(
    plan: &ModelPlan,
    computer: &ModelComputer,
    job: &SuiteJob,
    outcome: &RerunOutcome,
) -> Option<SuiteJob> {
    let label = &computer.specification.volumes[0].partition.disk_label;
    let flash = computer.specification.drives[0].flash_specification();
    let buffered = flash.is_some_and(|flash| flash.buffer.is_some());
    let drive = ReplayDrive {
        sector_bytes: u64::from(label.sector_bytes),
        space_bytes: computer.free_bytes(0),
        has_flash_buffer: buffered,
    };
    let by_itself = computer.medium() == Medium::Device && plan.drive_count == 1;
    let requests = outcome.trace.as_ref().filter(|_| by_itself);
    let program = requests.and_then(|trace| from_trace(trace, drive))?;
    Some(SuiteJob {
        size_bytes: program.default_size_bytes(),
        own_protocol: job.own_protocol,
        job_name: job.job_name.clone(),
        ..SuiteJob::from_program(program)
    })
}

/// Properties of the drive on which recorded requests are replayed.
#[derive(Clone, Copy)]
struct ReplayDrive {
    sector_bytes: u64,
    /// Bytes of the drive that requests may address.
    space_bytes: u64,
    /// Whether the drive is a flash drive with a write buffer.
    has_flash_buffer: bool,
}

/// Converts the requests of a trace to a program; `None` if one is neither a read nor a write, or
/// if some were issued before the timed part.
fn from_trace(trace: &Trace, drive: ReplayDrive) -> Option<Program> {
    let (from, until) = timed_window(trace)?;
    let requests = &trace.requests;
    // What came before the timed part, in a ramp, has changed the drive: it is to come again.
    if requests.iter().any(|one| one.issued_at < from) {
        return None;
    }
    let timed = requests.iter().filter(|one| one.issued_at <= until);
    let mut timed: Vec<&TracedRequest> = timed.collect();
    if count_in_flight_max(timed.iter().map(|one| (one.issued_at, one.completed_at())))
        > SLOT_COUNT_MAX
    {
        return None;
    }
    // A trace has them as they were completed, and several are often issued at once.
    timed.sort_by_key(|one| (one.issued_at, service_start(one)));
    let records: Vec<TraceRecord> = (timed.into_iter())
        .map(|one| build_record(one, from, drive))
        .collect::<Option<_>>()?;
    let timed_are_forced = records.iter().any(|one| one.fua);
    let slots = records.len().min(SLOT_COUNT_MAX as usize);
    let of = |operation| trace_operation(&records, operation);
    let held = TraceFacts {
        has_times: true,
        device_count: 1,
        read: of(TracedOperation::Read),
        write: of(TracedOperation::Write),
        duration_ns: records.last()?.issued_ns,
        transfer_bytes_max: records.iter().map(|one| one.length_bytes).max()?,
        unit_bytes: drive.sector_bytes,
        ..TraceFacts::default()
    };
    Some(Program::from_replay(ReplayPlan {
        trace_start: Some(Nanoseconds(0)),
        replay_trace: Arc::new(RecordedRequests(records.into())),
        trace_facts: held,
        replay_pace: ReplayPace::default(),
        slot_count: slots as u32,
        address_space_bytes: drive.space_bytes,
        unit_bytes: drive.sector_bytes,
        cache_mode: CacheMode::Direct,
        issues_discards: false,
        keeps_durable_writes: timed_are_forced,
    }))
}

fn service_start(request: &TracedRequest) -> Nanoseconds {
    let mut parts = request.stage_intervals();
    let queued = parts.find(|interval| interval.stage == Stage::ControllerQueue);
    queued.map_or(request.issued_at, |interval| interval.end)
}

fn build_record(of: &TracedRequest, from: Nanoseconds, drive: ReplayDrive) -> Option<TraceRecord> {
    let operation = match of.purpose {
        RequestPurpose::Read => TracedOperation::Read,
        RequestPurpose::Write => TracedOperation::Write,
        RequestPurpose::ReadAhead | RequestPurpose::WriteBehind => return None,
    };
    // A flush moves nothing, and a replay has none at a moment of its own. A write that flash
    // programmed before it was done, past its buffer, may have been a flush's as well as forced.
    let mut stages = of.spans.iter().map(|span| span.stage);
    let is_programmed = drive.has_flash_buffer && stages.any(|stage| stage == Stage::FlashProgram);
    (of.sector_count > 0 && !is_programmed).then_some(TraceRecord {
        issued_ns: of.issued_at.since(from).0,
        completed_ns: None,
        think_ns: None,
        operation,
        fua: of.is_fua,
        sync: false,
        device: DeviceIndex(0),
        offset_bytes: of.sector * drive.sector_bytes,
        length_bytes: u64::from(of.sector_count) * drive.sector_bytes,
        errno: 0,
    })
}

fn trace_operation(records: &[TraceRecord], operation: TracedOperation) -> TraceOperation {
    let of_it = records.iter().filter(|one| one.operation == operation);
    TraceOperation {
        request_count: of_it.clone().count() as u64,
        bytes: of_it.map(|one| one.length_bytes).sum(),
        ..TraceOperation::default()
    }
}

#[derive(Debug)]
struct RecordedRequests(Arc<[TraceRecord]>);

impl Asked for RecordedRequests {
    fn read_requests(&self) -> RequestIterator {
        let records = Arc::clone(&self.0);
        let numbers = 0..records.len();
        Box::new(numbers.map(move |number| Ok(records[number])))
    }
}

//! Account of a program on real storage from its recorded events.
//!
//! The worker's time is cut into instants. Each instant is booked once, by the first of these rules
//! that holds:
//!
//! 1. the worker is charged for a processor: `system_call` (later divided into `user` and
//!    `system_call` by the kernel's ticks);
//! 2. it could run, and something else has the processor: `cpu_wait`;
//! 3. it waits while a device has at least one request: `build_device_account`;
//! 4. it waits while requests are queued and no device has any: `driver_queue`;
//! 5. it waits for something other than a request: `unattributed`.
//!
//! A model gives the same account: the activity and the waits of the *program*. For one worker that
//! waits for each of its requests it is exact: it has the processor, or waits for the device.
//!
//! Where requests overlap (read-ahead, write-behind, several workers), the device works while the
//! worker does. The utilisation shows that; the ledger belongs to the worker and does not. With a
//! deep queue the worker waits for the device as long as the device is busy, while single requests
//! wait in the queue far longer; their own queue times show that. The requests are those of the
//! whole machine on these devices, since a program that shares a disk also waits for the requests
//! of others.

use super::{DeviceAccount, OperationAccount, TimeAccount, ValueQuantiles, timed_window};
use diskperf_timeline::block::{
    BlockOperation, BlockRequest, SchedulingState, ThreadSwitch, TimedPart,
};
use diskperf_timeline::trace::{
    RequestPurpose, TracedBusy, TracedDrive, TracedProcess, TracedRequest,
};
use diskperf_timeline::{BlockTrace, Nanoseconds, Repetition, Span, Stage, Trace};

const SECTOR_BYTES: u64 = 512;

/// Converts recorded events into a trace, as a model would have recorded it.
pub fn build_trace(block: &BlockTrace) -> Trace {
    let edges = QueueEdges::from_requests(&block.requests);
    build_trace_of_spans(block, |worker| {
        edges.list_worker_spans(worker, &block.thread_switches)
    })
}

/// Converts recorded requests into a trace, with the given spans of each worker's time.
pub(super) fn build_trace_of_spans(
    block: &BlockTrace,
    list_spans: impl Fn(&TimedPart) -> Vec<Span>,
) -> Trace {
    let mut workers: Vec<(u32, &TimedPart)> = (1..).zip(&block.timed_parts).collect();
    workers.sort_by_key(|(_, worker)| worker.ended_at);
    let process = |(number, worker): &(u32, &TimedPart)| TracedProcess {
        process_number: *number,
        account_start: worker.started_at,
        spans: list_spans(worker),
        // No kernel's routines are told apart here.
        processor_work: Vec::new(),
    };
    let mut trace = Trace {
        drives: vec![
            TracedDrive {
                revolution_ns: 0.0,
                rotational_phase: 0.0,
                sector_bytes: SECTOR_BYTES as u32,
                has_bus_link: false,
            };
            block.devices.len()
        ],
        requests: block.requests.iter().map(build_traced_request).collect(),
        processes: workers.iter().map(process).collect(),
        ..Trace::default()
    };
    if let Some((from, until)) = timed_window(&trace) {
        let parts = trace
            .processes
            .iter()
            .flat_map(TracedProcess::stage_intervals);
        let working = parts.filter(|part| matches!(part.stage, Stage::User | Stage::SystemCall));
        let processor = working.map(|interval| interval.duration()).sum();
        let busy = |at, processor| TracedBusy {
            sample_time: at,
            processor_busy: processor,
            handlers_busy: Nanoseconds::ZERO,
            bus_busy: Nanoseconds::ZERO,
            controllers_busy: Vec::new(),
            flash_busy: Vec::new(),
        };
        trace.busy_samples = vec![busy(from, Nanoseconds::ZERO), busy(until, processor)];
    }
    trace
}

fn build_traced_request(block_request: &BlockRequest) -> TracedRequest {
    let span = |stage, until| Span {
        stage,
        stage_end: until,
    };
    TracedRequest {
        drive_index: block_request.device_index,
        sector: block_request.sector,
        sector_count: (block_request.bytes / SECTOR_BYTES) as u32,
        is_fua: false,
        purpose: match block_request.operation {
            BlockOperation::Read => RequestPurpose::Read,
            BlockOperation::ReadAhead => RequestPurpose::ReadAhead,
            BlockOperation::Write
            | BlockOperation::Flush
            | BlockOperation::Discard
            | BlockOperation::Other => RequestPurpose::Write,
        },
        media_position: None,
        issued_at: block_request.queued_at,
        spans: vec![
            span(Stage::DriverQueue, block_request.issued_at),
            span(Stage::Device, block_request.completed_at),
        ],
        buffer_uses: Vec::new(),
    }
}

/// Times at which block requests enter the queue, enter a device and leave it.
struct QueueEdges(Vec<QueueEdge>);

struct QueueEdge {
    time: Nanoseconds,
    queued_change: i64,
    at_device_change: i64,
}

impl QueueEdges {
    fn from_requests(requests: &[BlockRequest]) -> Self {
        let edge = |at, queued, at_device| QueueEdge {
            time: at,
            queued_change: queued,
            at_device_change: at_device,
        };
        let mut edges = Vec::with_capacity(3 * requests.len());
        for one in requests {
            edges.push(edge(one.queued_at, 1, 0));
            edges.push(edge(one.issued_at, -1, 1));
            edges.push(edge(one.completed_at, 0, -1));
        }
        edges.sort_by_key(|edge| edge.time);
        Self(edges)
    }

    /// Returns the spans of a worker's time without gaps. They begin on a processor, since the
    /// worker has just read the clock.
    fn list_worker_spans(&self, worker: &TimedPart, switches: &[ThreadSwitch]) -> Vec<Span> {
        let mut spans: Vec<Span> = Vec::new();
        let mut book = |stage, until: Nanoseconds, at: &mut Nanoseconds| {
            let until = until.min(worker.ended_at);
            if until <= *at {
                return;
            }
            *at = until;
            match spans.last_mut() {
                Some(last) if last.stage == stage => last.stage_end = until,
                _ => spans.push(Span {
                    stage,
                    stage_end: until,
                }),
            }
        };
        let (mut queued, mut at_device) = (0, 0);
        let mut scheduled = SchedulingState::Running;
        let mut at = worker.started_at;
        let mut edges = self.0.iter().peekable();
        let switches = add_missing_switches(worker, switches);
        let mut switches = switches.iter().peekable();
        loop {
            let edge = edges.peek().map(|edge| edge.time);
            let switch = switches.peek().map(|switch| switch.switch_time);
            let Some(next) = edge.into_iter().chain(switch).min() else {
                break;
            };
            book(choose_stage(scheduled, queued, at_device), next, &mut at);
            while let Some(edge) = edges.next_if(|edge| edge.time == next) {
                queued += edge.queued_change;
                at_device += edge.at_device_change;
            }
            while let Some(switch) = switches.next_if(|switch| switch.switch_time == next) {
                scheduled = switch.new_state;
            }
        }
        book(
            choose_stage(scheduled, queued, at_device),
            worker.ended_at,
            &mut at,
        );
        spans
    }
}

/// Returns the context switches of a worker's thread, with those added that the kernel left out.
///
/// As a processor leaves its idle loop, the switch event of its new thread is sometimes missing,
/// for all tracers alike and without being counted as lost. A thread that leaves a processor must
/// have been on it: since its wake-up, except for the microseconds that an idle processor takes.
fn add_missing_switches(worker: &TimedPart, switches: &[ThreadSwitch]) -> Vec<ThreadSwitch> {
    let own = switches.iter().filter(|switch| {
        switch.thread_id == worker.thread_id && switch.switch_time > worker.started_at
    });
    let mut all: Vec<ThreadSwitch> = Vec::new();
    let mut scheduled = SchedulingState::Running;
    for switch in own {
        match (scheduled, switch.new_state) {
            (SchedulingState::Running | SchedulingState::Woken, SchedulingState::Woken) => continue,
            (SchedulingState::Woken, SchedulingState::Preempted | SchedulingState::Waiting) => {
                if let Some(woken) = all.last_mut() {
                    woken.new_state = SchedulingState::Running;
                }
            }
            _ => {}
        }
        scheduled = switch.new_state;
        all.push(*switch);
    }
    all
}

/// Returns the stage to which a worker's instant is booked, by the rules of the module.
fn choose_stage(scheduled: SchedulingState, queued: i64, at_device: i64) -> Stage {
    match scheduled {
        SchedulingState::Running => Stage::SystemCall,
        SchedulingState::Preempted | SchedulingState::Woken => Stage::CpuWait,
        SchedulingState::Waiting if at_device > 0 => Stage::Device,
        SchedulingState::Waiting if queued > 0 => Stage::DriverQueue,
        SchedulingState::Waiting => Stage::Unattributed,
    }
}

/// Disagreement between events and kernel accounting about a worker's processor time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct CpuShareDisagreement {
    /// Share (0 to 1) of the worker's elapsed time on a processor, by events.
    pub cpu_share_from_events: f64,
    /// Processor time divided by elapsed time (0 to 1), by kernel accounting.
    pub cpu_share_from_accounting: f64,
}

/// Maximum difference of the two processor shares that counts as agreement: events are in whole
/// microseconds, and only the events include interrupts.
const AGREEMENT_SHARE_MAX: f64 = 0.05;

/// Returns the worker whose events and accounting differ most; `None` if all agree. Possible
/// reasons are missing events that are not counted as lost, time that the hypervisor took, and
/// accounting by ticks.
pub fn find_cpu_share_disagreement(
    block: &BlockTrace,
    repetition: &Repetition,
) -> Option<CpuShareDisagreement> {
    let trace = build_trace(block);
    let of_worker = |process: &TracedProcess| {
        let worker = repetition
            .workers
            .get(process.process_number as usize - 1)?;
        let parts = process.stage_intervals();
        let running = parts.filter(|interval| interval.stage == Stage::SystemCall);
        let by_events: Nanoseconds = running.map(|interval| interval.duration()).sum();
        let elapsed = worker.elapsed_time.0.max(1) as f64;
        Some(CpuShareDisagreement {
            cpu_share_from_events: by_events.0 as f64 / elapsed,
            cpu_share_from_accounting: worker.cpu_time.0 as f64 / elapsed,
        })
    };
    let apart = |one: &CpuShareDisagreement| {
        (one.cpu_share_from_events - one.cpu_share_from_accounting).abs()
    };
    let all = trace.processes.iter().filter_map(of_worker);
    all.filter(|one| apart(one) > AGREEMENT_SHARE_MAX)
        .max_by(|one, other| apart(one).total_cmp(&apart(other)))
}

/// Creates the account of recorded events; `None` where events were lost or no worker ended.
pub fn build_account(block: &BlockTrace) -> Option<TimeAccount> {
    if block.lost_event_count > 0 {
        return None;
    }
    build_account_of_trace(block, &build_trace(block))
}

/// Creates the account of a trace that was made of these requests.
pub(super) fn build_account_of_trace(block: &BlockTrace, trace: &Trace) -> Option<TimeAccount> {
    let mut account = TimeAccount::from_trace(trace)?;
    account.utilisation.handler_share = None;
    account.utilisation.bus_share = None;
    let (from, until) = timed_window(trace)?;
    let devices = (0..).zip(&block.devices);
    account.device_accounts = devices
        .map(|(number, name)| build_device_account(block, (number, name), (from, until)))
        .collect();
    Some(account)
}

fn build_device_account(
    block: &BlockTrace,
    (number, name): (u32, &String),
    (from, until): (Nanoseconds, Nanoseconds),
) -> DeviceAccount {
    let own: Vec<&BlockRequest> = block
        .requests
        .iter()
        .filter(|one| {
            one.device_index == number && one.completed_at > from && one.queued_at < until
        })
        .collect();
    let elapsed = until.since(from).0.max(1) as f64;
    let within = |start: Nanoseconds, stop: Nanoseconds| stop.min(until).since(start.max(from));
    let mean = |of: &dyn Fn(&BlockRequest) -> Nanoseconds| {
        let total: u64 = own.iter().map(|one| of(one).0).sum();
        total as f64 / elapsed
    };
    let completed = |operation| {
        let all = own.iter().copied();
        let done = all.filter(move |one| one.operation == operation && one.completed_at <= until);
        OperationAccount::from_requests(operation, &done.collect::<Vec<_>>())
    };
    DeviceAccount {
        device_name: name.clone(),
        in_queue_mean: Some(mean(&|one| within(one.queued_at, one.issued_at))),
        at_device_mean: Some(mean(&|one| within(one.issued_at, one.completed_at))),
        at_device_max: Some(count_in_flight_max(
            own.iter().map(|one| (one.issued_at, one.completed_at)),
        )),
        operation_accounts: BlockOperation::ALL
            .into_iter()
            .filter_map(completed)
            .collect(),
    }
}

/// Returns the maximum number of requests in flight at a time, from their times of issue and
/// completion.
pub fn count_in_flight_max(requests: impl Iterator<Item = (Nanoseconds, Nanoseconds)>) -> u32 {
    // Where one goes as another comes, it goes first.
    let mut edges: Vec<(Nanoseconds, i32)> = requests
        .flat_map(|(issued, completed)| [(issued, 1), (completed, -1)])
        .collect();
    edges.sort_unstable();
    let (mut now, mut most) = (0, 0);
    for (_, more) in edges {
        now += more;
        most = most.max(now);
    }
    most as u32
}

impl OperationAccount {
    fn from_requests(operation: BlockOperation, all: &[&BlockRequest]) -> Option<Self> {
        let spread = |of: &dyn Fn(&BlockRequest) -> u64| {
            let mut values: Vec<u64> = all.iter().map(|one| of(one)).collect();
            values.sort_unstable();
            ValueQuantiles::from_values(&values)
        };
        Some(Self {
            operation,
            request_count: all.len() as u64,
            total_bytes: all.iter().map(|one| one.bytes).sum(),
            request_bytes: spread(&|one| one.bytes)?,
            queue_ns: spread(&|one| one.issued_at.since(one.queued_at).0)?,
            device_ns: spread(&|one| one.completed_at.since(one.issued_at).0)?,
        })
    }
}

impl ValueQuantiles {
    /// Returns the percentiles of values in ascending order; `None` for an empty slice.
    pub(super) fn from_values(values: &[u64]) -> Option<Self> {
        // The smallest that at least so many in a hundred do not exceed.
        let at = |percent: usize| values[(values.len() * percent).div_ceil(100).max(1) - 1];
        (!values.is_empty()).then(|| Self {
            median: at(50),
            p99: at(99),
            max: at(100),
        })
    }
}

#[cfg(test)]
mod tests;

//! Account of a program on real storage from chains of stages, which follow each operation through
//! all tasks and requests that it waited for.
//!
//! The ledger is that of the worker's whole time. The breakdowns are of its operations, kind by
//! kind, and each sums to its operations' time to the nanosecond.

use super::observed::{build_account_of_trace, build_trace_of_spans};
use super::{TimeAccount, ValueQuantiles};
use diskperf_chains::event::KernelRecording;
use diskperf_chains::identity::{CallKind, RequestOperation, ThreadId};
use diskperf_chains::{Chain, ChainLink, History, Period, Purpose, RequestTimes};
use diskperf_timeline::block::{BlockOperation, BlockRequest, TimedPart};
use diskperf_timeline::{BlockTrace, Nanoseconds, Span, Stage, Trace};
use std::collections::BTreeMap;

/// Account of the workers' time with the breakdowns of their operations.
#[derive(Clone, Debug, PartialEq)]
pub struct ChainAccount {
    /// Ledger and further accounts of the workers' time.
    pub account: TimeAccount,
    /// Requests and the workers' stages, for exports.
    pub trace: Trace,
    /// Breakdowns of the operations, the kind with the most time first.
    pub breakdowns: Vec<OperationBreakdown>,
    /// Number of events that were lost.
    pub lost_event_count: u64,
}

/// Operations of one kind, with their time by stage and purpose.
#[derive(Clone, Debug, PartialEq)]
pub struct OperationBreakdown {
    /// Kind of the operations: a system call such as `fsync`, or one of a ring, `ring fsync`.
    pub operation: &'static str,
    /// Operations of this kind within the timed parts.
    pub operation_count: u64,
    /// Number of operations whose chain lacks events.
    pub incomplete_count: u64,
    /// Time of all operations together.
    pub total: Nanoseconds,
    /// Distribution of the operations' durations, in nanoseconds.
    pub duration_ns: ValueQuantiles,
    /// Time by stage and purpose, in the order of a typical operation. It sums to `total`.
    pub parts: Vec<OperationPart>,
    /// Timeline of a typical operation: the one of median duration.
    pub typical: OperationTimeline,
    /// Timeline of the slowest operation.
    pub slowest: OperationTimeline,
}

/// Time of all operations of a kind in one stage for one purpose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationPart {
    /// Stage that spent the time.
    pub stage: Stage,
    /// Purpose of the time.
    pub purpose: Purpose,
    /// Device of the requests; `None` outside requests.
    pub device_name: Option<String>,
    /// Time of all operations together.
    pub total: Nanoseconds,
    /// Number of operations with this part.
    pub operation_count: u64,
}

/// Links of one operation, with the names of tasks and devices.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OperationTimeline {
    /// Duration of the operation.
    pub duration: Nanoseconds,
    /// Links without gaps from the start to the end.
    pub links: Vec<TimelineLink>,
}

/// One link of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineLink {
    /// Start of the link, from the start of the operation.
    pub offset: Nanoseconds,
    /// Length of the link.
    pub duration: Nanoseconds,
    /// Stage that spent the time.
    pub stage: Stage,
    /// Purpose of the time.
    pub purpose: Purpose,
    /// Name of the task whose state or request this is, with its number where it has ended.
    pub task_name: String,
    /// Function of the work item that the task ran; `None` outside work items.
    pub function_name: Option<String>,
    /// Device of the request; `None` outside requests.
    pub device_name: Option<String>,
}

/// Returns the name of the operations of one kind that a ring of io_uring completes.
const fn ring_operation_name(call: CallKind) -> &'static str {
    match call {
        CallKind::Read => "ring read",
        CallKind::Write => "ring write",
        CallKind::Fsync => "ring fsync",
        CallKind::Fdatasync => "ring fdatasync",
        CallKind::RingEnter | CallKind::Names | CallKind::Other => "ring other",
    }
}

impl ChainAccount {
    /// Creates the account of a recording; `None` where no worker was timed.
    pub fn from_recording(
        recording: &KernelRecording,
        timed_parts: Vec<TimedPart>,
        device_names: Vec<String>,
    ) -> Option<Self> {
        let history = History::from_recording(recording);
        let calls = list_calls(&history, &timed_parts);
        let block = BlockTrace {
            requests: list_requests(&history, recording, &device_names),
            devices: device_names,
            timed_parts,
            thread_switches: Vec::new(),
            lost_event_count: recording.lost_event_count,
        };
        let trace = build_trace_of_spans(&block, |worker| list_spans(&history, &calls, worker));
        let account = build_account_of_trace(&block, &trace)?;
        let mut kinds: BTreeMap<&'static str, Vec<Chain>> = BTreeMap::new();
        for call in &calls {
            let period = Period {
                start: call.start,
                end: call.end,
            };
            let chain = history.explain_period(call.thread, period);
            kinds.entry(call.call.name()).or_default().push(chain);
        }
        for request in history.ring_requests() {
            if let Some(chain) = history.explain_ring_request(request)
                && block
                    .timed_parts
                    .iter()
                    .any(|part| is_within(part, request.submitted_at))
            {
                kinds
                    .entry(ring_operation_name(request.call))
                    .or_default()
                    .push(chain);
            }
        }
        // The waits of these calls are those of the ring's operations.
        if kinds.keys().any(|kind| kind.starts_with("ring ")) {
            kinds.remove(CallKind::RingEnter.name());
        }
        let mut breakdowns: Vec<OperationBreakdown> = kinds
            .into_iter()
            .filter_map(|(operation, chains)| {
                OperationBreakdown::from_chains(operation, chains, recording)
            })
            .collect();
        breakdowns.sort_by_key(|one| std::cmp::Reverse(one.total));
        Some(Self {
            account,
            trace,
            breakdowns,
            lost_event_count: recording.lost_event_count,
        })
    }
}

/// System call of a worker, or of a thread that makes its calls, within a timed part.
struct WorkerCall {
    thread: ThreadId,
    call: CallKind,
    start: Nanoseconds,
    end: Nanoseconds,
}

fn is_within(part: &TimedPart, time: Nanoseconds) -> bool {
    part.started_at <= time && time <= part.ended_at
}

/// Returns the calls of the workers and their helper threads in order of their ends. Calls outside
/// of the timed parts, such as preparations, are left out.
fn list_calls(history: &History, timed_parts: &[TimedPart]) -> Vec<WorkerCall> {
    let operations = history.operations().iter();
    let timed = operations.filter(|operation| {
        timed_parts
            .iter()
            .any(|part| is_within(part, operation.start) && is_within(part, operation.end))
    });
    timed
        .map(|operation| WorkerCall {
            thread: operation.thread,
            call: operation.call,
            start: operation.start,
            end: operation.end,
        })
        .collect()
}

/// Returns the stages of a worker's whole time without gaps. What it does on a processor outside of
/// system calls is its own.
fn list_spans(history: &History, calls: &[WorkerCall], worker: &TimedPart) -> Vec<Span> {
    let thread = ThreadId(worker.thread_id);
    let period = Period {
        start: worker.started_at,
        end: worker.ended_at,
    };
    let chain = history.explain_period(thread, period);
    let mut calls = calls.iter().filter(|call| call.thread == thread).peekable();
    let mut spans: Vec<Span> = Vec::new();
    let mut book = |stage, stage_end| match spans.last_mut() {
        Some(last) if last.stage == stage => last.stage_end = stage_end,
        _ => spans.push(Span { stage, stage_end }),
    };
    for link in chain.links() {
        if link.stage != Stage::SystemCall || link.thread != thread {
            book(link.stage, link.end);
            continue;
        }
        let mut at = link.start;
        while at < link.end {
            while calls.next_if(|call| call.end <= at).is_some() {}
            let (stage, until) = match calls.peek() {
                Some(call) if call.start <= at => (Stage::SystemCall, call.end),
                Some(call) => (Stage::User, call.start),
                None => (Stage::User, link.end),
            };
            at = until.min(link.end);
            book(stage, at);
        }
    }
    spans
}

/// Returns the completed requests of the program's disks, in order of completion.
fn list_requests(
    history: &History,
    recording: &KernelRecording,
    device_names: &[String],
) -> Vec<BlockRequest> {
    let index_of = |request: &RequestTimes| {
        let name = &recording.devices.get(&request.extent.device)?.name;
        device_names.iter().position(|known| known == name)
    };
    let mut requests: Vec<BlockRequest> = history
        .list_request_times()
        .filter_map(|request| {
            Some(BlockRequest {
                device_index: index_of(&request)? as u32,
                operation: match request.flags.operation {
                    RequestOperation::Read if request.flags.is_read_ahead => {
                        BlockOperation::ReadAhead
                    }
                    RequestOperation::Read => BlockOperation::Read,
                    RequestOperation::Write => BlockOperation::Write,
                    RequestOperation::Flush => BlockOperation::Flush,
                    RequestOperation::Discard => BlockOperation::Discard,
                    RequestOperation::Other => BlockOperation::Other,
                },
                sector: request.extent.sector,
                bytes: request.extent.bytes.into(),
                queued_at: request.queued_at,
                issued_at: request.issued_at,
                completed_at: request.completed_at,
            })
        })
        .collect();
    requests.sort_by_key(|request| request.completed_at);
    requests
}

impl OperationBreakdown {
    fn from_chains(
        operation: &'static str,
        mut chains: Vec<Chain>,
        recording: &KernelRecording,
    ) -> Option<Self> {
        chains.sort_by_key(Chain::duration);
        let durations: Vec<u64> = chains.iter().map(|chain| chain.duration().0).collect();
        let typical = &chains[chains.len().checked_sub(1)? / 2];
        Some(Self {
            operation,
            operation_count: chains.len() as u64,
            incomplete_count: chains.iter().filter(|chain| chain.is_incomplete).count() as u64,
            total: Nanoseconds(durations.iter().sum()),
            duration_ns: ValueQuantiles::from_values(&durations)?,
            parts: list_parts(&chains, recording),
            typical: OperationTimeline::from_chain(typical, recording),
            slowest: OperationTimeline::from_chain(chains.last()?, recording),
        })
    }

    /// Returns the time of the parts that a test selects, as a share of all operations' time.
    pub fn share(&self, selects: impl Fn(&OperationPart) -> bool) -> f64 {
        let selected = self.parts.iter().filter(|part| selects(part));
        let time: Nanoseconds = selected.map(|part| part.total).sum();
        time.0 as f64 / self.total.0.max(1) as f64
    }

    /// Returns the mean duration of an operation.
    pub fn mean(&self) -> Nanoseconds {
        Nanoseconds(self.total.0 / self.operation_count.max(1))
    }
}

/// Sums the links of all chains by stage, purpose and device, the part with the most time first.
fn list_parts(chains: &[Chain], recording: &KernelRecording) -> Vec<OperationPart> {
    let mut sums: BTreeMap<_, (u64, u64)> = BTreeMap::new();
    for chain in chains {
        let mut own: BTreeMap<_, u64> = BTreeMap::new();
        for link in chain.links() {
            let key = (link.stage.index(), link.purpose, link.device);
            *own.entry(key).or_default() += link.duration().0;
        }
        for (key, ns) in own {
            let (total, count) = sums.entry(key).or_default();
            *total += ns;
            *count += 1;
        }
    }
    let mut parts: Vec<OperationPart> = sums
        .into_iter()
        .map(|((stage, purpose, device), (ns, count))| OperationPart {
            stage: Stage::ALL[stage],
            purpose,
            device_name: device.and_then(|device| {
                let description = recording.devices.get(&device)?;
                Some(description.name.clone())
            }),
            total: Nanoseconds(ns),
            operation_count: count,
        })
        .collect();
    parts.sort_by_key(|part| std::cmp::Reverse(part.total));
    parts
}

impl OperationTimeline {
    fn from_chain(chain: &Chain, recording: &KernelRecording) -> Self {
        let start = chain
            .links()
            .first()
            .map_or(Nanoseconds::ZERO, |one| one.start);
        let link = |link: &ChainLink| TimelineLink {
            offset: link.start.since(start),
            duration: link.duration(),
            stage: link.stage,
            purpose: link.purpose,
            task_name: match recording.task_names.get(&link.thread) {
                Some(name) => name.clone(),
                None => format!("task {}", link.thread),
            },
            function_name: link
                .function
                .and_then(|function| recording.functions.get(&function).cloned()),
            device_name: link.device.and_then(|device| {
                let description = recording.devices.get(&device)?;
                Some(description.name.clone())
            }),
        };
        Self {
            duration: chain.duration(),
            links: chain.links().iter().map(link).collect(),
        }
    }
}

//! History of a recording: what tasks, requests, work items and journals did, from its events in
//! one pass.

use crate::activities::{ActivityTracker, Commit, Period, QueuedWork, WorkItem};
use crate::chain::TimedOperation;
use crate::context::{CpuContexts, Origin};
use crate::event::{BlockExtent, EventKind, KernelEvent, KernelRecording};
use crate::identity::{
    CallKind, CpuNumber, FunctionAddress, KernelDevice, RequestFlags, RingRequestAddress, ThreadId,
    WorkAddress,
};
use crate::requests::{BioLife, CompletionOrigin, RequestIndex, RequestLife, RequestTracker};
use crate::threads::{ThreadSpan, ThreadTracker};
use diskperf_spans::Nanoseconds;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// Start of the names of the functions that serve loop devices.
pub(crate) const LOOP_FUNCTION_PREFIX: &str = "loop_";

/// Lives of all that the events of a recording speak of.
#[derive(Debug, Default)]
pub struct History {
    pub(crate) threads: BTreeMap<ThreadId, Vec<ThreadSpan>>,
    pub(crate) bios: Vec<BioLife>,
    pub(crate) requests: Vec<RequestLife>,
    /// Flushes of each disk, in order of issue.
    pub(crate) flushes: BTreeMap<KernelDevice, Vec<RequestIndex>>,
    pub(crate) work_items: Vec<WorkItem>,
    /// Work items of each worker, by their indices.
    pub(crate) work_by_thread: BTreeMap<ThreadId, Vec<usize>>,
    pub(crate) commits: Vec<Commit>,
    pub(crate) dirty_throttles: BTreeMap<ThreadId, Vec<Nanoseconds>>,
    pub(crate) reclaims: BTreeMap<ThreadId, Vec<Period>>,
    /// Waits of each task for a request of the block layer, in order of time.
    pub(crate) tag_waits: BTreeMap<ThreadId, Vec<Period>>,
    /// Operations that began and ended, in order of their ends.
    pub(crate) operations: Vec<TimedOperation>,
    /// Requests of io_uring, in order of submission.
    pub(crate) ring_requests: Vec<RingRequestLife>,
    /// Periods in which events were lost.
    pub(crate) losses: Vec<Period>,
    /// Disks of loop devices.
    pub(crate) loop_disks: BTreeSet<KernelDevice>,
    /// Work items that serve each loop device.
    pub(crate) loop_work: BTreeMap<KernelDevice, BTreeSet<WorkAddress>>,
    pub(crate) functions: BTreeMap<FunctionAddress, String>,
}

/// Life of a request of io_uring.
#[derive(Clone, Debug)]
pub struct RingRequestLife {
    /// Task that submitted the request.
    pub thread: ThreadId,
    /// Tag that the submitter chose.
    pub user_data: u64,
    /// Operation of the request.
    pub call: CallKind,
    /// Submission of the request.
    pub submitted_at: Nanoseconds,
    /// Completion that its submitter can see; `None` for a request in flight.
    pub completed_at: Option<Nanoseconds>,
    /// Hand-over to a worker thread; `None` for a request that its submitter issued.
    pub queued_async_at: Option<Nanoseconds>,
    /// Worker thread that ran the request, with the time at which it was first seen to.
    pub worker: Option<(ThreadId, Nanoseconds)>,
    /// Time at which the worker thread last woke the submitter, which then completes the request.
    pub returned_at: Option<Nanoseconds>,
    /// Bios of the request, by their indices.
    pub(crate) bios: Vec<usize>,
}

/// State of the pass over the events.
struct Pass {
    contexts: CpuContexts,
    threads: ThreadTracker,
    requests: RequestTracker,
    activities: ActivityTracker,
    losses: Vec<Period>,
    operations: Vec<TimedOperation>,
    /// Operation that each task is in.
    open_operations: HashMap<ThreadId, TimedOperation>,
    loop_disks: BTreeSet<KernelDevice>,
    loop_work: BTreeMap<KernelDevice, BTreeSet<WorkAddress>>,
    /// Functions of work items that serve loop devices.
    loop_functions: BTreeSet<FunctionAddress>,
    /// Loop disk of the request that each task issued last, until it queues the work of the disk.
    last_loop_issue: HashMap<ThreadId, KernelDevice>,
    /// Origin that raised the last soft interrupt of the block layer, by processor.
    raised_by: BTreeMap<CpuNumber, CompletionOrigin>,
    ring_requests: Vec<RingRequestLife>,
    live_ring_requests: HashMap<RingRequestAddress, usize>,
    /// Request of io_uring that each task issues.
    ring_issues: HashMap<ThreadId, usize>,
    /// Time since which each worker thread of io_uring has had no request, or may have a new one.
    ring_workers_free_at: HashMap<ThreadId, Nanoseconds>,
}

impl History {
    /// Builds the history of a recording, whose events are in order of time.
    pub fn from_recording(recording: &KernelRecording) -> Self {
        let devices = recording.devices.iter();
        let disks = devices
            .clone()
            .map(|(device, description)| (*device, description.disk))
            .collect();
        let loop_disks = devices
            .filter(|(_, description)| description.backing_file.is_some())
            .map(|(device, _)| *device)
            .collect();
        let start = recording
            .events
            .first()
            .map_or(Nanoseconds::ZERO, |event| event.time);
        let end = recording.events.last().map_or(start, |event| event.time);
        let mut pass = Pass {
            contexts: CpuContexts::default(),
            threads: ThreadTracker::from_start(start),
            requests: RequestTracker::from_disks(disks),
            activities: ActivityTracker::default(),
            losses: Vec::new(),
            operations: Vec::new(),
            open_operations: HashMap::new(),
            loop_disks,
            loop_work: BTreeMap::new(),
            loop_functions: recording
                .functions
                .iter()
                .filter(|(_, name)| name.starts_with(LOOP_FUNCTION_PREFIX))
                .map(|(function, _)| *function)
                .collect(),
            last_loop_issue: HashMap::new(),
            raised_by: BTreeMap::new(),
            ring_requests: Vec::new(),
            live_ring_requests: HashMap::new(),
            ring_issues: HashMap::new(),
            ring_workers_free_at: HashMap::new(),
        };
        for event in &recording.events {
            pass.process_event(event);
        }
        pass.into_history(end, recording.functions.clone())
    }
}

/// Times of a request that a device completed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RequestTimes {
    /// Extent of the request on its disk.
    pub extent: BlockExtent,
    /// Operation and flags of the request.
    pub flags: RequestFlags,
    /// Arrival of its first bio; of a flush, which has none, the first time it was seen.
    pub queued_at: Nanoseconds,
    /// Hand-over to the device.
    pub issued_at: Nanoseconds,
    /// Completion by the device.
    pub completed_at: Nanoseconds,
}

impl History {
    /// Returns the requests that were issued and completed in the recording.
    pub fn list_request_times(&self) -> impl Iterator<Item = RequestTimes> {
        self.requests.iter().filter_map(|request| {
            let issued_at = *request.issued_at.last()?;
            let first_bio = request.bios.first().map(|bio| self.bios[*bio].queued_at);
            let queued_at = first_bio.or(request.inserted_at).unwrap_or(issued_at);
            Some(RequestTimes {
                extent: request.extent,
                flags: request.flags,
                queued_at: queued_at.min(issued_at),
                issued_at,
                completed_at: request.last_completion()?.max(issued_at),
            })
        })
    }

    /// Returns the operations that began and ended in the recording, in order of their ends.
    pub fn operations(&self) -> &[TimedOperation] {
        &self.operations
    }

    /// Returns the requests of io_uring, in order of submission.
    pub fn ring_requests(&self) -> &[RingRequestLife] {
        &self.ring_requests
    }
}

impl Pass {
    fn process_event(&mut self, event: &KernelEvent) {
        let (time, cpu, thread) = (event.time, event.cpu, event.thread);
        if let EventKind::Loss { since, .. } = event.kind {
            self.losses.push(Period {
                start: since,
                end: time,
            });
            return;
        }
        if !matches!(event.kind, EventKind::Switch { .. }) {
            self.threads.record_presence(time, cpu, thread);
        }
        if let EventKind::Switch {
            previous,
            previous_state,
            next,
            ..
        } = event.kind
        {
            let left = (previous, previous_state);
            self.threads.record_switch((time, cpu), left, next);
        }
        let origin = self.find_origin(cpu, thread);
        self.process_block_event(event, origin);
        self.process_task_event(event, origin);
        self.process_ring_event(event);
        self.contexts.process_event(cpu, &event.kind);
    }

    fn find_origin(&self, cpu: CpuNumber, thread: ThreadId) -> Origin {
        self.contexts
            .find_origin(cpu)
            .unwrap_or_else(|| match thread {
                // The idle task does nothing of its own.
                ThreadId(0) => Origin::Interrupt,
                thread => Origin::Thread {
                    thread,
                    work: self.activities.current_work.get(&thread).copied(),
                },
            })
    }

    fn process_block_event(&mut self, event: &KernelEvent, origin: Origin) {
        let (time, cpu) = (event.time, event.cpu);
        match &event.kind {
            EventKind::BioQueue {
                bio,
                extent,
                flags,
                file,
            } => {
                let life = BioLife {
                    queued_at: time,
                    queued_by: origin,
                    extent: *extent,
                    flags: *flags,
                    file: *file,
                    allocated_at: None,
                    request: None,
                };
                self.requests.queue_bio(*bio, life);
                if let Origin::Thread { thread, .. } = origin
                    && let Some(ring) = self.ring_issues.get(&thread)
                {
                    let bio = self.requests.bios.len() - 1;
                    self.ring_requests[*ring].bios.push(bio);
                }
            }
            EventKind::BioRemap { bio, extent, .. } => self.requests.remap_bio(*bio, *extent),
            EventKind::BioSplit { bio, extent } => {
                if let Some(whole) = self.requests.split_bio(*bio, *extent) {
                    let front = self.requests.bios.len() - 1;
                    let mut live = self.live_ring_requests.values();
                    if let Some(ring) =
                        live.find(|ring| self.ring_requests[**ring].bios.contains(&whole))
                    {
                        self.ring_requests[*ring].bios.push(front);
                    }
                }
            }
            EventKind::BioRequestAllocated { bio, extent } => {
                self.requests
                    .allocate((time, origin), (*bio, *extent), false);
            }
            EventKind::BioMerge { bio, extent } => {
                self.requests
                    .allocate((time, origin), (*bio, *extent), true);
            }
            EventKind::RequestInsert(reported) => self.requests.insert(time, reported),
            EventKind::RequestIssue(reported) => {
                self.requests.issue(time, reported);
                if self.loop_disks.contains(&reported.extent.device) {
                    self.last_loop_issue
                        .insert(event.thread, reported.extent.device);
                }
            }
            EventKind::RequestComplete {
                reported,
                completed_bytes,
                ..
            } => {
                // Without a soft interrupt the task itself completes the request.
                let by = match origin {
                    Origin::Thread { .. } => Some(CompletionOrigin { time, origin }),
                    _ => self.raised_by.get(&cpu).copied(),
                };
                let request = self
                    .requests
                    .complete(time, (reported, *completed_bytes), by);
                self.contexts.open_completion(cpu, request);
            }
            EventKind::RequestDone { request } => {
                let request = self.requests.find_request(*request);
                self.contexts.close_completion(cpu, request);
            }
            _ => {}
        }
    }

    fn process_task_event(&mut self, event: &KernelEvent, origin: Origin) {
        let (time, cpu, thread) = (event.time, event.cpu, event.thread);
        match event.kind {
            EventKind::Waking { target } => {
                self.threads.record_waking(time, target, origin);
                if let Origin::Thread { thread, .. } = origin
                    && let Some(index) = self.ring_issues.get(&thread)
                    && self.ring_requests[*index].thread == target
                {
                    self.ring_requests[*index].returned_at = Some(time);
                    self.ring_workers_free_at.insert(thread, time);
                }
            }
            EventKind::SoftInterruptRaise {
                vector: crate::event::SoftInterrupt::Block,
            } => {
                self.raised_by
                    .insert(cpu, CompletionOrigin { time, origin });
            }
            EventKind::WorkQueue { work, function } => {
                let queued = QueuedWork { time, origin };
                self.activities.queue_work(work, queued);
                if self.loop_functions.contains(&function)
                    && let Some(disk) = self.last_loop_issue.remove(&thread)
                {
                    self.loop_work.entry(disk).or_default().insert(work);
                }
            }
            EventKind::WorkStart { work, function } => {
                self.activities.start_work(time, thread, (work, function));
            }
            EventKind::WorkEnd { .. } => self.activities.end_work(time, thread),
            EventKind::JournalCommit {
                transaction, step, ..
            } => {
                self.activities
                    .record_commit_step(time, thread, (transaction, step));
            }
            EventKind::DirtyThrottle { pause } if pause > Nanoseconds::ZERO => {
                self.activities.record_dirty_throttle(time, thread);
            }
            EventKind::ReclaimBegin => self.activities.begin_reclaim(time, thread),
            EventKind::ReclaimEnd => self.activities.end_reclaim(time, thread),
            EventKind::OperationStart { operation, call } => {
                let open = TimedOperation {
                    number: operation,
                    thread,
                    call,
                    start: time,
                    end: time,
                };
                self.open_operations.insert(thread, open);
            }
            EventKind::OperationEnd { .. } => {
                let open = self.open_operations.remove(&thread);
                let ended = open.map(|open| TimedOperation { end: time, ..open });
                self.operations.extend(ended);
            }
            _ => {}
        }
    }

    fn process_ring_event(&mut self, event: &KernelEvent) {
        let (time, thread) = (event.time, event.thread);
        match event.kind {
            EventKind::RingSubmit {
                request,
                user_data,
                call,
            } => {
                self.ring_requests.push(RingRequestLife {
                    thread,
                    user_data,
                    call,
                    submitted_at: time,
                    completed_at: None,
                    queued_async_at: None,
                    worker: None,
                    returned_at: None,
                    bios: Vec::new(),
                });
                let index = self.ring_requests.len() - 1;
                self.live_ring_requests.insert(request, index);
                self.ring_issues.insert(thread, index);
            }
            EventKind::RingQueueAsync { request } => {
                self.ring_issues.remove(&thread);
                if let Some(index) = self.live_ring_requests.get(&request) {
                    let queued = &mut self.ring_requests[*index];
                    queued.queued_async_at = Some(time);
                    // What was seen of a worker before was of a request whose end was lost.
                    (queued.worker, queued.returned_at) = (None, None);
                }
            }
            EventKind::RingWorkerRuns { request } => self.note_ring_worker(time, thread, request),
            EventKind::RingComplete { request, .. } => {
                if let Some(index) = self.live_ring_requests.remove(&request) {
                    self.ring_requests[index].completed_at = Some(time);
                    self.note_completing_worker(time, thread, index);
                    self.ring_issues.retain(|_, issued| *issued != index);
                }
            }
            // A submitter that sleeps, or has ended its operation, issues no more.
            EventKind::OperationEnd { .. } => {
                self.ring_issues.remove(&thread);
            }
            _ => {}
        }
    }

    /// Notes the worker thread that completes a request. One that never slept in it began when its
    /// request before had ended.
    fn note_completing_worker(&mut self, time: Nanoseconds, thread: ThreadId, index: usize) {
        let request = &mut self.ring_requests[index];
        let Some(queued) = request.queued_async_at.filter(|_| thread != request.thread) else {
            return;
        };
        if request.worker.is_none_or(|(known, _)| known != thread) {
            let free = self.ring_workers_free_at.get(&thread).copied();
            request.worker = Some((thread, free.unwrap_or(queued).max(queued)));
        }
        self.ring_workers_free_at.insert(thread, time);
    }

    /// Notes the worker thread of a request. An idle worker that gets the processor takes the
    /// request that waits longest; a later switch of it shows whether it did.
    fn note_ring_worker(
        &mut self,
        time: Nanoseconds,
        thread: ThreadId,
        request: Option<RingRequestAddress>,
    ) {
        let Some(request) = request else {
            self.ring_workers_free_at.insert(thread, time);
            let requests = &self.ring_requests;
            let waits = |index: &usize| {
                let one = &requests[*index];
                one.queued_async_at.is_some() && one.worker.is_none()
            };
            let waiting = self.live_ring_requests.values().copied().filter(waits);
            if let Some(oldest) = waiting.min_by_key(|index| requests[*index].queued_async_at) {
                self.ring_requests[oldest].worker = Some((thread, time));
                self.ring_issues.insert(thread, oldest);
            }
            return;
        };
        let Some(index) = self.live_ring_requests.get(&request).copied() else {
            return;
        };
        if self.ring_requests[index]
            .worker
            .is_none_or(|(known, _)| known != thread)
        {
            // The worker took it since it was queued, or since its time for a guessed one began.
            let guessed = self
                .ring_issues
                .insert(thread, index)
                .filter(|guess| *guess != index);
            let since = guessed.and_then(|guess| self.ring_requests[guess].worker.take());
            let queued = self.ring_requests[index].queued_async_at.unwrap_or(time);
            let free = self.ring_workers_free_at.get(&thread).copied();
            let started = since
                .map(|(_, since)| since)
                .or(free)
                .unwrap_or(time)
                .max(queued);
            self.ring_requests[index].worker = Some((thread, started));
        }
    }

    fn into_history(
        self,
        end: Nanoseconds,
        functions: BTreeMap<FunctionAddress, String>,
    ) -> History {
        let mut flushes: BTreeMap<KernelDevice, Vec<RequestIndex>> = BTreeMap::new();
        for (index, request) in self.requests.requests.iter().enumerate() {
            if request.is_flush() && !request.issued_at.is_empty() {
                let of_disk = flushes.entry(request.extent.device).or_default();
                of_disk.push(RequestIndex(index));
            }
        }
        let issued = |index: &RequestIndex| self.requests.requests[index.0].issued_at[0];
        flushes
            .values_mut()
            .for_each(|of_disk| of_disk.sort_by_key(issued));
        let mut tag_waits: BTreeMap<ThreadId, Vec<Period>> = BTreeMap::new();
        for bio in &self.requests.bios {
            if let (Origin::Thread { thread, .. }, Some(end)) = (bio.queued_by, bio.allocated_at) {
                let period = Period {
                    start: bio.queued_at,
                    end,
                };
                tag_waits.entry(thread).or_default().push(period);
            }
        }
        let mut work_by_thread: BTreeMap<ThreadId, Vec<usize>> = BTreeMap::new();
        for (index, item) in self.activities.work_items.iter().enumerate() {
            work_by_thread.entry(item.thread).or_default().push(index);
        }
        History {
            work_by_thread,
            threads: self.threads.into_spans(end),
            bios: self.requests.bios,
            requests: self.requests.requests,
            flushes,
            work_items: self.activities.work_items,
            commits: self.activities.commits,
            dirty_throttles: self.activities.dirty_throttles,
            reclaims: self.activities.reclaims,
            tag_waits,
            operations: self.operations,
            ring_requests: self.ring_requests,
            losses: self.losses,
            loop_disks: self.loop_disks,
            loop_work: self.loop_work,
            functions,
        }
    }
}

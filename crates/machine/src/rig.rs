//! Rig: drives without a computer, and programs that use them.
//!
//! No kernel, processor or bus lies between a program and a drive. A call takes no time of its own;
//! a program waits for drives, for a time, and for other programs. Requests that a drive's queue
//! does not accept wait here, in their order of arrival.

mod ring;
mod session;
mod transfer;

pub(crate) use session::RigSession;

use crate::books::{self, StageAccount};
use crate::hardware::drives::{Drive, Drives};
use crate::id::ComponentId;
use crate::records::RunRecords;
use crate::standstill::RunEndReason;
use crate::volumes::Volumes;
use diskperf_device::Device;
use diskperf_device::{Request, RequestId, Requests, moment};
use diskperf_sim::{Simulation, TaskId, Time};
use diskperf_timeline::trace::{Trace, TracedBusy};
use diskperf_timeline::{Nanoseconds, RequestTimeline as Spans, Stage};
use ring::RigRing;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use transfer::RigTransfer;

/// Timer event of a rig, at the time of a drive's next event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveEventTimer;

/// Rig: drives without a computer, in virtual time, with the programs that use them.
pub struct Rig {
    pub(crate) simulation: Simulation<DriveEventTimer>,
    pub(crate) drives: RefCell<DrivesWithRequests>,
    pub(crate) volumes: Volumes,
    pub(crate) records: RunRecords,
    workers: RefCell<Vec<Rc<RigWorker>>>,
    /// Expiry of the timer: the earliest next event of any drive. None if no drive has one.
    next_event_at: Cell<Option<Time>>,
    /// Reason why the rig is halted. None while it may run.
    pub(crate) halt_reason: RefCell<Option<RunEndReason>>,
}

/// Drives of a rig (drives without a computer) and their requests.
pub(crate) struct DrivesWithRequests {
    pub(crate) all_drives: Drives,
    in_flight_requests: Requests,
    drive_queues: Vec<DriveQueue>,
    request_owners: Vec<Option<TransferOwner>>,
}

struct DriveQueue {
    device: ComponentId<Device>,
    waiting_requests: VecDeque<RequestId>,
}

/// Program on a rig (drives without a computer).
pub(crate) struct RigWorker {
    worker_index: usize,
    task_id: TaskId,
    stage_account: StageAccount,
    /// Stages of the request of the current call, after its completion.
    completed_spans: RefCell<Option<Spans>>,
    is_woken: Cell<bool>,
}

#[derive(Clone)]
enum TransferOwner {
    SystemCall(Rc<RigWorker>),
    RingSlot(Rc<RigRing>, u32),
}

impl Rig {
    /// Returns a rig (drives without a computer) of idle devices, with the partitions that programs
    /// see.
    pub(crate) fn new(
        sim: Simulation<DriveEventTimer>,
        all: Drives,
        (volumes, records): (Volumes, RunRecords),
    ) -> Self {
        let numbers: Vec<usize> = (0..all.iter_drives().count()).collect();
        let queue = |(_, device)| DriveQueue {
            device,
            waiting_requests: VecDeque::new(),
        };
        let queues = all.devices_among(&numbers).into_iter().map(queue).collect();
        Self {
            simulation: sim,
            drives: RefCell::new(DrivesWithRequests {
                all_drives: all,
                in_flight_requests: Requests::default(),
                drive_queues: queues,
                request_owners: Vec::new(),
            }),
            volumes,
            records,
            workers: RefCell::default(),
            next_event_at: Cell::new(None),
            halt_reason: RefCell::default(),
        }
    }

    /// Halts the rig. [`crate::Machine::run_to_end`] then returns the given reason.
    pub(crate) fn halt_rig(&self, why: RunEndReason) {
        *self.halt_reason.borrow_mut() = Some(why);
        self.simulation.halt_run();
    }

    /// Returns the stage in which programs have spent the most time.
    pub(crate) fn longest_stage(&self) -> Option<Stage> {
        let workers = self.workers.borrow();
        books::longest_stage_of_accounts(workers.iter().map(|worker| &worker.stage_account))
    }

    /// Returns the memory of the blocks that were allocated for the drives, and that of the
    /// recordings, in bytes.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let workers = self.workers.borrow();
        let of_workers = workers
            .iter()
            .map(|worker| worker.stage_account.tiling_bytes());
        let recorded =
            self.records.memory_bytes(&self.drives.borrow().all_drives) + of_workers.sum::<usize>();
        (self.volumes.allocated_bytes(), recorded as u64)
    }

    /// Returns the trace recorded since the last call. None if no trace is recorded.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let drives = &mut self.drives.borrow_mut().all_drives;
        let taken = self.records.take_trace(drives, self.simulation.now())?;
        Some(Trace {
            is_on_rig: true,
            ..taken
        })
    }

    fn trace_busy_times(&self) {
        self.records.trace_busy_times(|| {
            let now = self.simulation.now();
            TracedBusy {
                sample_time: moment(now),
                processor_busy: Nanoseconds::ZERO,
                handlers_busy: Nanoseconds::ZERO,
                bus_busy: Nanoseconds::ZERO,
                controllers_busy: Vec::new(),
                flash_busy: self.drives.borrow().all_drives.flash_busy_times(now),
            }
        });
    }
}

impl Rig {
    /// Submits a request. The drive receives it as soon as its queue accepts it.
    fn issue_request(&self, mut request: Request, owner: TransferOwner) {
        let now = self.simulation.now();
        request.spans.begin_at(moment(now));
        let mut drives = self.drives.borrow_mut();
        let number = request.device;
        let id = drives.in_flight_requests.issue(request);
        let of = (&drives.in_flight_requests, &drives.all_drives);
        self.records.record_issue(id, of, true);
        if drives.request_owners.len() <= id.slot() {
            drives.request_owners.resize(id.slot() + 1, None);
        }
        drives.request_owners[id.slot()] = Some(owner);
        drives.drive_queues[number].waiting_requests.push_back(id);
        drives.submit_waiting(number, now);
        self.update_timer(&drives);
    }

    fn update_timer(&self, drives: &DrivesWithRequests) {
        let of = |queue: &DriveQueue| drives.all_drives[queue.device].next_event();
        let next = drives.drive_queues.iter().filter_map(of).min();
        let next = next.map(|next| next.max(self.simulation.now()));
        if self.next_event_at.replace(next) != next {
            match next {
                Some(next) => self.simulation.set_timer(next, DriveEventTimer),
                None => self.simulation.stop_timer(),
            }
        }
    }

    /// Advances all drives to the current time and delivers their completions.
    pub(crate) fn advance_drives(&self) {
        self.next_event_at.set(None);
        let now = self.simulation.now();
        let count = self.drives.borrow().drive_queues.len();
        for number in 0..count {
            self.advance_drive(number, now);
        }
        self.update_timer(&self.drives.borrow());
    }

    fn advance_drive(&self, number: usize, now: Time) {
        {
            let drives = &mut *self.drives.borrow_mut();
            let device = &mut drives.all_drives[drives.drive_queues[number].device];
            if device.next_event().is_none_or(|next| next > now) {
                return;
            }
            device.advance(now, &mut drives.in_flight_requests);
        }
        while let Some((owner, request)) = self.take_completion(number, now) {
            match owner {
                TransferOwner::SystemCall(worker) => {
                    *worker.completed_spans.borrow_mut() = Some(request.spans);
                    self.simulation.wake_task(worker.task_id);
                }
                TransferOwner::RingSlot(ring, slot) => {
                    self.continue_transfer(&ring, slot, &request.spans)
                }
            }
        }
        self.drives.borrow_mut().submit_waiting(number, now);
    }

    fn take_completion(&self, number: usize, now: Time) -> Option<(TransferOwner, Request)> {
        let drives = &mut *self.drives.borrow_mut();
        let device = drives.drive_queues[number].device;
        let id = drives.all_drives[device].take_completed_request()?;
        self.records.record_completion(id, now);
        let mut request = drives.in_flight_requests.take_request(id);
        request.book_stage(Stage::Completion, moment(now));
        let drive = Drive::Device(&drives.all_drives[device]);
        self.records.count_request(None, &request, (drive, true));
        let owner = drives.request_owners[id.slot()].take();
        Some((owner.expect("a request has an owner"), request))
    }

    /// Submits the current request of a worker's transfer, and waits for its completion.
    async fn perform_transfer(&self, worker: &Rc<RigWorker>, transfer: &RigTransfer) {
        let from = self.simulation.now();
        self.issue_part(
            worker,
            transfer,
            TransferOwner::SystemCall(Rc::clone(worker)),
        );
        let spans = loop {
            if let Some(spans) = worker.completed_spans.take() {
                break spans;
            }
            self.simulation.wait_in_place("a transfer").await;
        };
        worker
            .stage_account
            .book_request(&spans, from, self.simulation.now());
    }

    /// Puts a worker to sleep until [`Rig::wake_worker`], at most until a deadline. At the deadline,
    /// `give_up` returns whether the worker was not woken.
    async fn sleep_until_woken(
        &self,
        worker: &RigWorker,
        what: &'static str,
        (until, give_up): (Option<Time>, impl Fn() -> bool),
    ) {
        worker.is_woken.set(false);
        if let Some(until) = until {
            self.simulation.wake_current_task_at(until);
        }
        while !worker.is_woken.get() {
            if until.is_some_and(|until| until <= self.simulation.now()) && give_up() {
                return;
            }
            self.simulation.wait_in_place(what).await;
        }
    }

    fn wake_worker(&self, worker: &RigWorker) {
        worker.is_woken.set(true);
        self.simulation.wake_task(worker.task_id);
    }
}

impl DrivesWithRequests {
    fn submit_waiting(&mut self, number: usize, now: Time) {
        let DriveQueue {
            device,
            waiting_requests: waiting,
        } = &mut self.drive_queues[number];
        let device = &mut self.all_drives[*device];
        while device.can_accept_request()
            && let Some(id) = waiting.pop_front()
        {
            self.in_flight_requests[id].book_stage(Stage::ControllerQueue, moment(now));
            device.accept_request(now, &mut self.in_flight_requests, id);
        }
    }
}

impl RigWorker {
    fn book_since(&self, stage: Stage, from: Time, until: Time) {
        self.stage_account.book_stage(stage, until, until - from);
    }
}

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
use crate::id::Id;
use crate::records::Records;
use crate::standstill::Standstill;
use crate::volumes::Volumes;
use diskperf_device::Device;
use diskperf_device::{Request, RequestId, Requests, moment};
use diskperf_sim::{Sim, TaskId, Time};
use diskperf_timeline::trace::{Trace, TracedBusy};
use diskperf_timeline::{Nanoseconds, Request as Spans, Stage};
use ring::RigRing;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use transfer::Transfer;

/// Timer event of a rig, at the time of a drive's next event.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DriveDue;

/// Rig: drives without a computer, in virtual time, with the programs that use them.
pub struct Rig {
    pub(crate) sim: Sim<DriveDue>,
    pub(crate) drives: RefCell<RigDrives>,
    pub(crate) volumes: Volumes,
    pub(crate) records: Records,
    workers: RefCell<Vec<Rc<Worker>>>,
    /// Expiry of the timer: the earliest next event of any drive. None if no drive has one.
    next_event_at: Cell<Option<Time>>,
    /// Reason why the rig is halted. None while it may run.
    pub(crate) halted: RefCell<Option<Standstill>>,
}

/// Drives of a rig (drives without a computer) and their requests.
pub(crate) struct RigDrives {
    pub(crate) all: Drives,
    requests: Requests,
    queues: Vec<DriveQueue>,
    owners: Vec<Option<TransferOwner>>,
}

struct DriveQueue {
    device: Id<Device>,
    waiting_requests: VecDeque<RequestId>,
}

/// Program on a rig (drives without a computer).
pub(crate) struct Worker {
    number: usize,
    task: TaskId,
    stage_account: StageAccount,
    /// Stages of the request of the current call, after its completion.
    completed_spans: RefCell<Option<Spans>>,
    is_woken: Cell<bool>,
}

#[derive(Clone)]
enum TransferOwner {
    Call(Rc<Worker>),
    Slot(Rc<RigRing>, u32),
}

impl Rig {
    /// Returns a rig (drives without a computer) of idle devices, with the partitions that programs
    /// see.
    pub(crate) fn new(
        sim: Sim<DriveDue>,
        all: Drives,
        (volumes, records): (Volumes, Records),
    ) -> Self {
        let numbers: Vec<usize> = (0..all.iter().count()).collect();
        let queue = |(_, device)| DriveQueue {
            device,
            waiting_requests: VecDeque::new(),
        };
        let queues = all.devices_among(&numbers).into_iter().map(queue).collect();
        Self {
            sim,
            drives: RefCell::new(RigDrives {
                all,
                requests: Requests::default(),
                queues,
                owners: Vec::new(),
            }),
            volumes,
            records,
            workers: RefCell::default(),
            next_event_at: Cell::new(None),
            halted: RefCell::default(),
        }
    }

    /// Halts the rig. [`crate::Machine::run`] then returns the given reason.
    pub(crate) fn halt(&self, why: Standstill) {
        *self.halted.borrow_mut() = Some(why);
        self.sim.halt();
    }

    /// Returns the stage in which programs have spent the most time.
    pub(crate) fn longest_stage(&self) -> Option<Stage> {
        let workers = self.workers.borrow();
        books::find_longest_stage(workers.iter().map(|worker| &worker.stage_account))
    }

    /// Returns the memory of the blocks that were allocated for the drives, and that of the
    /// recordings, in bytes.
    pub(crate) fn memory_bytes(&self) -> (u64, u64) {
        let workers = self.workers.borrow();
        let of_workers = workers
            .iter()
            .map(|worker| worker.stage_account.tiling_bytes());
        let recorded =
            self.records.memory_bytes(&self.drives.borrow().all) + of_workers.sum::<usize>();
        (self.volumes.made_bytes(), recorded as u64)
    }

    /// Returns the trace recorded since the last call. None if no trace is recorded.
    pub(crate) fn take_trace(&self) -> Option<Trace> {
        let drives = &mut self.drives.borrow_mut().all;
        let taken = self.records.take_trace(drives, self.sim.now())?;
        Some(Trace {
            is_of_rig: true,
            ..taken
        })
    }

    fn trace_busy(&self) {
        self.records.trace_busy(|| {
            let now = self.sim.now();
            TracedBusy {
                at: moment(now),
                processor: Nanoseconds::ZERO,
                handlers: Nanoseconds::ZERO,
                bus: Nanoseconds::ZERO,
                controllers: Vec::new(),
                flash: self.drives.borrow().all.flash_busy(now),
            }
        });
    }
}

impl Rig {
    /// Submits a request. The drive receives it as soon as its queue accepts it.
    fn issue(&self, mut request: Request, owner: TransferOwner) {
        let now = self.sim.now();
        request.spans.issue(moment(now));
        let mut drives = self.drives.borrow_mut();
        let number = request.device;
        let id = drives.requests.issue(request);
        let of = (&drives.requests, &drives.all);
        self.records.record_issue(id, of, true);
        if drives.owners.len() <= id.slot() {
            drives.owners.resize(id.slot() + 1, None);
        }
        drives.owners[id.slot()] = Some(owner);
        drives.queues[number].waiting_requests.push_back(id);
        drives.submit_waiting(number, now);
        self.update_timer(&drives);
    }

    fn update_timer(&self, drives: &RigDrives) {
        let of = |queue: &DriveQueue| drives.all[queue.device].next_event();
        let next = drives.queues.iter().filter_map(of).min();
        let next = next.map(|next| next.max(self.sim.now()));
        if self.next_event_at.replace(next) != next {
            match next {
                Some(next) => self.sim.set_timer(next, DriveDue),
                None => self.sim.stop_timer(),
            }
        }
    }

    /// Advances all drives to the current time and delivers their completions.
    pub(crate) fn advance(&self) {
        self.next_event_at.set(None);
        let now = self.sim.now();
        let count = self.drives.borrow().queues.len();
        for number in 0..count {
            self.advance_drive(number, now);
        }
        self.update_timer(&self.drives.borrow());
    }

    fn advance_drive(&self, number: usize, now: Time) {
        {
            let drives = &mut *self.drives.borrow_mut();
            let device = &mut drives.all[drives.queues[number].device];
            if device.next_event().is_none_or(|next| next > now) {
                return;
            }
            device.advance(now, &mut drives.requests);
        }
        while let Some((owner, request)) = self.take_completion(number, now) {
            match owner {
                TransferOwner::Call(worker) => {
                    *worker.completed_spans.borrow_mut() = Some(request.spans);
                    self.sim.wake(worker.task);
                }
                TransferOwner::Slot(ring, slot) => {
                    self.continue_transfer(&ring, slot, &request.spans)
                }
            }
        }
        self.drives.borrow_mut().submit_waiting(number, now);
    }

    fn take_completion(&self, number: usize, now: Time) -> Option<(TransferOwner, Request)> {
        let drives = &mut *self.drives.borrow_mut();
        let device = drives.queues[number].device;
        let id = drives.all[device].take_completed_request()?;
        self.records.record_completion(id, now);
        let mut request = drives.requests.take_request(id);
        request.book_stage(Stage::Completion, moment(now));
        let drive = Drive::Device(&drives.all[device]);
        self.records.count_request(None, &request, (drive, true));
        let owner = drives.owners[id.slot()].take();
        Some((owner.expect("a request has an owner"), request))
    }

    /// Submits the current request of a worker's transfer, and waits for its completion.
    async fn request(&self, worker: &Rc<Worker>, transfer: &Transfer) {
        let from = self.sim.now();
        self.issue_part(worker, transfer, TransferOwner::Call(Rc::clone(worker)));
        let spans = loop {
            if let Some(spans) = worker.completed_spans.take() {
                break spans;
            }
            self.sim.wait_in_place("a transfer").await;
        };
        worker
            .stage_account
            .book_request(&spans, from, self.sim.now());
    }

    /// Puts a worker to sleep until [`Rig::wake`], at most until a deadline. At the deadline,
    /// `give_up` returns whether the worker was not woken.
    async fn sleep_until_woken(
        &self,
        worker: &Worker,
        what: &'static str,
        (until, give_up): (Option<Time>, impl Fn() -> bool),
    ) {
        worker.is_woken.set(false);
        if let Some(until) = until {
            self.sim.wake_at(until);
        }
        while !worker.is_woken.get() {
            if until.is_some_and(|until| until <= self.sim.now()) && give_up() {
                return;
            }
            self.sim.wait_in_place(what).await;
        }
    }

    fn wake(&self, worker: &Worker) {
        worker.is_woken.set(true);
        self.sim.wake(worker.task);
    }
}

impl RigDrives {
    fn submit_waiting(&mut self, number: usize, now: Time) {
        let DriveQueue {
            device,
            waiting_requests: waiting,
        } = &mut self.queues[number];
        let device = &mut self.all[*device];
        while device.can_accept_request()
            && let Some(id) = waiting.pop_front()
        {
            self.requests[id].book_stage(Stage::ControllerQueue, moment(now));
            device.accept_request(now, &mut self.requests, id);
        }
    }
}

impl Worker {
    fn book_since(&self, stage: Stage, from: Time, until: Time) {
        self.stage_account.book(stage, until, until - from);
    }
}

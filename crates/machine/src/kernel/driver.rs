//! Interface between a kernel and its disk drivers: the kernel passes requests down, and completed
//! requests return to the process or buffer that waits for them.

use super::Unix;
use super::buffers::BufferId;
use super::computer::Computer;
use super::process::{BIO_LEVEL, Context};
use super::raw::RawHeaderId;
use crate::controllers::Controller;
use crate::driver::{Driver, DriverHost};
use crate::hardware::{Hardware, Surroundings};
use crate::id::Id;
use crate::standstill::{HardError, Standstill};
use diskperf_device::{Request, RequestId, moment};
use diskperf_sim::{CpuId, Time};
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::ops::Deref;
use std::rc::Rc;

/// Kernel of a computer that runs disk drivers.
pub(crate) trait DriverKernel: Deref<Target = Computer> + 'static {
    /// Returns the processor time to enter and leave a disk interrupt handler.
    fn interrupt_cost(&self) -> Time;

    /// Returns the processor that serves the interrupts of a controller, given the controller's
    /// number.
    fn interrupt_cpu(&self, _number: usize) -> CpuId {
        CpuId::default()
    }

    /// Accepts a completed request from its driver.
    fn completed(&self, id: RequestId);
}

/// View of a kernel that a driver runs on, in the context of a process or an interrupt handler.
pub(crate) struct Host<'a, K> {
    pub(crate) kernel: &'a K,
    pub(crate) context: Context<'a>,
}

impl<K: DriverKernel> DriverHost for Host<'_, K> {
    fn hardware(&self) -> &RefCell<Hardware> {
        &self.kernel.hardware
    }

    fn surroundings(&self) -> Surroundings<'_> {
        self.kernel.surroundings()
    }

    #[inline]
    fn spend(&self, stage: Stage, cost: Time) -> impl Future<Output = ()> {
        self.kernel.spend(self.context, stage, cost)
    }

    fn completed(&self, id: RequestId) {
        self.kernel.completed(id);
    }

    fn give_up(&self, id: RequestId, tries: u32) {
        self.kernel.give_up(id, tries);
    }
}

/// Starts an interrupt handler for each controller of a driver. The handlers never end.
pub(crate) fn start<D: Driver>(driver: &Rc<D>, kernel: &Rc<impl DriverKernel>) {
    for controller in driver.controllers() {
        let handler = handle_interrupts(Rc::clone(driver), Rc::clone(kernel), controller);
        let controllers = &mut kernel.hardware.borrow_mut().controllers;
        let number = controllers.number(controller);
        let name = format!("interrupts of controller {number}");
        let task = kernel.sim.spawn(name, false, handler);
        controllers.get(controller).connect(task);
    }
}

async fn handle_interrupts<D: Driver, K: DriverKernel>(
    driver: Rc<D>,
    kernel: Rc<K>,
    controller: Id<D::Controller>,
) {
    let number = kernel.hardware.borrow().controllers.number(controller);
    let cpu = kernel.interrupt_cpu(number);
    let processor = &kernel.cpus.processors[cpu];
    let host = Host {
        kernel: &*kernel,
        context: Context::Handler(cpu),
    };
    loop {
        while !host.ask(controller, |controller, parts| controller.interrupts(parts)) {
            kernel.sim.wait("an interrupt of the controller").await;
        }
        processor.enter(&kernel.sim, BIO_LEVEL).await;
        host.spend(Stage::Interrupt, kernel.interrupt_cost()).await;
        driver.interrupt(&host, controller).await;
        processor.leave(&kernel.sim);
    }
}

/// Recipient of a request's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// Buffer of the cache whose transfer the request performs.
    Buffer(BufferId),
    /// Header of a raw transfer, which moves data past the cache.
    Raw(RawHeaderId),
}

impl Unix {
    /// Registers a new request with the owner that receives its completion. `awaited` tells whether
    /// a process waits for the request. The caller passes the request to its driver next.
    pub(super) fn issue_request(
        &self,
        request: Request,
        owner: RequestOwner,
        awaited: bool,
    ) -> RequestId {
        let id = self.hardware.borrow_mut().requests.issue(request);
        self.record_issue(id, awaited);
        let mut owners = self.owners.borrow_mut();
        if owners.len() <= id.slot() {
            owners.resize(id.slot() + 1, owner);
        }
        owners[id.slot()] = owner;
        id
    }

    /// Passes a request to the driver of its drive. Returns when the request is queued or
    /// submitted.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: RequestId) {
        let level = self.cpus.processors[context.cpu()].mask(&self.sim, BIO_LEVEL);
        let drive = self.hardware.borrow().requests[id].device;
        let driver = self.drivers.get(drive);
        let host = Host {
            kernel: self,
            context,
        };
        if let Some(cost) = driver.queueing(drive) {
            host.spend(Stage::Driver, cost).await;
        }
        host.mark(id, Stage::Driver);
        driver.take(&host, id).await;
        self.unmask(context, level).await;
    }
}

impl DriverKernel for Unix {
    fn interrupt_cost(&self) -> Time {
        self.costs.interrupt
    }

    fn completed(&self, id: RequestId) {
        let owner = self.owners.borrow()[id.slot()];
        let request = self.take_completed(id);
        match owner {
            RequestOwner::Buffer(buffer) => self.biodone(buffer, request),
            RequestOwner::Raw(header) => self.complete_raw(header, request),
        }
    }
}

impl Computer {
    /// Counts a completed request in the records, with the buffer that it belongs to, if any.
    /// `awaited` tells whether a process waited for it.
    pub(crate) fn count_request(&self, of: Option<BufferId>, request: &Request, awaited: bool) {
        let hardware = self.hardware.borrow();
        let drive = hardware.drives.get(request.device);
        let of = of.map(|BufferId(number)| number as usize);
        self.records.count_request(of, request, (drive, awaited));
    }

    /// Records that a request was issued. `awaited` tells whether a process waits for it.
    pub(crate) fn record_issue(&self, id: RequestId, awaited: bool) {
        let hardware = self.hardware.borrow();
        let of = (&hardware.requests, &hardware.drives);
        self.records.record_issue(id, of, awaited);
    }

    /// Removes a completed request from the hardware's table and returns it.
    pub(crate) fn take_completed(&self, id: RequestId) -> Request {
        self.records.record_completion(id, self.sim.now());
        let mut request = self.hardware.borrow_mut().requests.take_request(id);
        request.book_stage(Stage::Completion, moment(self.sim.now()));
        request
    }

    /// Halts the machine with a hard error, after a driver has failed a request `tries` times.
    /// Events after a hard error do not count as work of the programs.
    pub(crate) fn give_up(&self, id: RequestId, tries: u32) {
        let hardware = self.hardware.borrow();
        let request = &hardware.requests[id];
        self.halt(Standstill::HardError(HardError {
            at: self.sim.now(),
            drive: request.device,
            sector: request.sector,
            tries,
        }));
    }

    /// Returns the parts of the computer that hardware may access besides itself: the simulation
    /// and the processors.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processors: &self.cpus.processors,
        }
    }
}

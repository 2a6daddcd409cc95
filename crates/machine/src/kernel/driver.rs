//! Drivers under a kernel: requests go to them, and come back to who waits for them.

use super::Unix;
use super::buffers::BufferId;
use super::computer::Computer;
use super::process::{BIO, Context};
use super::raw::HeaderId;
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

/// A kernel over a computer, with drivers.
pub(crate) trait DriverKernel: Deref<Target = Computer> + 'static {
    /// Time that entry and exit of a disk's interrupt handler take.
    fn interrupt_cost(&self) -> Time;

    /// The processor that the interrupts of the controller of this number go to.
    fn interrupt_cpu(&self, _number: usize) -> CpuId {
        CpuId::default()
    }

    /// Takes a request back from its driver.
    fn completed(&self, id: RequestId);
}

/// A kernel while it runs a driver in a context.
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

/// Starts the handlers of a driver's interrupts, which run for ever.
pub(crate) fn start<D: Driver>(driver: &Rc<D>, kernel: &Rc<impl DriverKernel>) {
    for controller in driver.controllers() {
        let handler = interrupts(Rc::clone(driver), Rc::clone(kernel), controller);
        let controllers = &mut kernel.hardware.borrow_mut().controllers;
        let number = controllers.number(controller);
        let name = format!("interrupts of controller {number}");
        let task = kernel.sim.spawn(name, false, handler);
        controllers.get(controller).connect(task);
    }
}

/// Serves a controller's interrupts for ever.
async fn interrupts<D: Driver, K: DriverKernel>(
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
        processor.enter(&kernel.sim, BIO).await;
        host.spend(Stage::Interrupt, kernel.interrupt_cost()).await;
        driver.interrupt(&host, controller).await;
        processor.leave(&kernel.sim);
    }
}

/// Who is told of the completion of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Owner {
    /// Who waits for a buffer of the cache.
    Buffer(BufferId),
    /// Who moves data past the cache, through this header.
    Raw(HeaderId),
}

impl Unix {
    /// A request of somebody's, who gives it to its driver next, and waits for it or not.
    pub(super) fn issue(&self, request: Request, owner: Owner, awaited: bool) -> RequestId {
        let id = self.hardware.borrow_mut().requests.issue(request);
        self.record_issue(id, awaited);
        let mut owners = self.owners.borrow_mut();
        if owners.len() <= id.place() {
            owners.resize(id.place() + 1, owner);
        }
        owners[id.place()] = owner;
        id
    }

    /// Takes a request; returns when it is queued or on its way.
    pub(crate) async fn strategy(&self, context: Context<'_>, id: RequestId) {
        let level = self.cpus.processors[context.cpu()].mask(&self.sim, BIO);
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
        let owner = self.owners.borrow()[id.place()];
        let request = self.take_completed(id);
        match owner {
            Owner::Buffer(buffer) => self.biodone(buffer, request),
            Owner::Raw(header) => self.raw_done(header, request),
        }
    }
}

impl Computer {
    /// Counts a request that is over, of a buffer if it is one's, for which
    /// somebody waited or nobody.
    pub(crate) fn count_request(&self, of: Option<BufferId>, request: &Request, awaited: bool) {
        let hardware = self.hardware.borrow();
        let drive = hardware.drives.get(request.device);
        let of = of.map(|BufferId(number)| number as usize);
        self.records.count(of, request, (drive, awaited));
    }

    /// A request was issued, for which somebody waits or nobody.
    pub(crate) fn record_issue(&self, id: RequestId, awaited: bool) {
        let hardware = self.hardware.borrow();
        let of = (&hardware.requests, &hardware.drives);
        self.records.issued(id, of, awaited);
    }

    /// Takes a request that is over from the hardware.
    pub(crate) fn take_completed(&self, id: RequestId) -> Request {
        self.records.completed(id, self.sim.now());
        let mut request = self.hardware.borrow_mut().requests.take(id);
        request.mark(Stage::Completion, moment(self.sim.now()));
        request
    }

    /// A driver gives a request up. Nothing that happens after a hard error is the
    /// programs' work.
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

    /// What hardware may touch besides itself.
    pub(crate) fn surroundings(&self) -> Surroundings<'_> {
        Surroundings {
            sim: &self.sim,
            processors: &self.cpus.processors,
        }
    }
}

//! Interface between a kernel and its disk drivers: the kernel passes requests down, and completed
//! requests return to the process or buffer that waits for them.

use super::UnixKernel;
use super::buffers::BufferId;
use super::computer::Computer;
use super::process::{BIO_LEVEL, ExecutionContext};
use super::raw::RawHeaderId;
use crate::controllers::Controller;
use crate::driver::{Driver, DriverHost};
use crate::hardware::{Hardware, SimulationContext};
use crate::id::ComponentId;
use crate::standstill::{HardError, RunEndReason};
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

    fn request_completed(&self, id: RequestId);
}

/// View of a kernel that a driver runs on, in the context of a process or an interrupt handler.
pub(crate) struct KernelDriverHost<'a, K> {
    pub(crate) kernel: &'a K,
    pub(crate) context: ExecutionContext<'a>,
}

impl<K: DriverKernel> DriverHost for KernelDriverHost<'_, K> {
    fn hardware(&self) -> &RefCell<Hardware> {
        &self.kernel.hardware
    }

    fn surroundings(&self) -> SimulationContext<'_> {
        self.kernel.simulation_context()
    }

    #[inline]
    fn spend_processor_time(&self, stage: Stage, cost: Time) -> impl Future<Output = ()> {
        self.kernel.spend_processor_time(self.context, stage, cost)
    }

    fn complete_request(&self, id: RequestId) {
        self.kernel.request_completed(id);
    }

    fn fail_request(&self, id: RequestId, tries: u32) {
        self.kernel.halt_after_hard_error(id, tries);
    }
}

/// Starts an interrupt handler for each controller of a driver. The handlers never end.
pub(crate) fn start_driver<D: Driver>(driver: &Rc<D>, kernel: &Rc<impl DriverKernel>) {
    for controller in driver.controllers() {
        let handler = handle_interrupts(Rc::clone(driver), Rc::clone(kernel), controller);
        let controllers = &mut kernel.hardware.borrow_mut().controllers;
        let number = controllers.controller_index(controller);
        let name = format!("interrupts of controller {number}");
        let task = kernel.simulation.spawn(name, false, handler);
        controllers
            .controller_mut(controller)
            .connect_interrupt(task);
    }
}

async fn handle_interrupts<D: Driver, K: DriverKernel>(
    driver: Rc<D>,
    kernel: Rc<K>,
    controller: ComponentId<D::Controller>,
) {
    let number = kernel
        .hardware
        .borrow()
        .controllers
        .controller_index(controller);
    let cpu = kernel.interrupt_cpu(number);
    let processor = &kernel.cpus.processors[cpu];
    let host = KernelDriverHost {
        kernel: &*kernel,
        context: ExecutionContext::InHandler(cpu),
    };
    loop {
        while !host.with_controller_parts(controller, |controller, parts| {
            controller.has_pending_interrupt(parts)
        }) {
            kernel
                .simulation
                .wait_for_wake_up("an interrupt of the controller")
                .await;
        }
        processor.enter_handler(&kernel.simulation, BIO_LEVEL).await;
        host.spend_processor_time(Stage::Interrupt, kernel.interrupt_cost())
            .await;
        driver.handle_interrupt(&host, controller).await;
        processor.leave_handler(&kernel.simulation);
    }
}

/// Recipient of a request's completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RequestOwner {
    /// Buffer of the cache whose transfer the request performs.
    BufferedRequest(BufferId),
    /// Header of a raw transfer, which moves data past the cache.
    RawRequest(RawHeaderId),
}

impl UnixKernel {
    /// Registers a new request with the owner that receives its completion. `awaited` tells whether
    /// a process waits for the request. The caller passes the request to its driver next.
    pub(super) fn issue_request(
        &self,
        request: Request,
        owner: RequestOwner,
        awaited: bool,
    ) -> RequestId {
        let id = self.hardware.borrow_mut().submitted_requests.issue(request);
        self.record_issue(id, awaited);
        let mut owners = self.request_owners.borrow_mut();
        if owners.len() <= id.slot() {
            owners.resize(id.slot() + 1, owner);
        }
        owners[id.slot()] = owner;
        id
    }

    /// Passes a request to the driver of its drive. Returns when the request is queued or
    /// submitted.
    pub(crate) async fn queue_request(&self, context: ExecutionContext<'_>, id: RequestId) {
        let level =
            self.cpus.processors[context.cpu()].mask_interrupts(&self.simulation, BIO_LEVEL);
        let drive = self.hardware.borrow().submitted_requests[id].device;
        let driver = self.drivers.driver_of_drive(drive);
        let host = KernelDriverHost {
            kernel: self,
            context,
        };
        if let Some(cost) = driver.queueing_cost(drive) {
            host.spend_processor_time(Stage::Driver, cost).await;
        }
        host.mark_stage(id, Stage::Driver);
        driver.accept_request(&host, id).await;
        self.unmask_interrupts(context, level).await;
    }
}

impl DriverKernel for UnixKernel {
    fn interrupt_cost(&self) -> Time {
        self.costs.interrupt_time
    }

    fn request_completed(&self, id: RequestId) {
        let owner = self.request_owners.borrow()[id.slot()];
        let request = self.take_completed(id);
        match owner {
            RequestOwner::BufferedRequest(buffer) => self.biodone(buffer, request),
            RequestOwner::RawRequest(header) => self.complete_raw(header, request),
        }
    }
}

impl Computer {
    /// Counts a completed request in the records, with the buffer that it belongs to, if any.
    /// `awaited` tells whether a process waited for it.
    pub(crate) fn count_completed_request(
        &self,
        of: Option<BufferId>,
        request: &Request,
        awaited: bool,
    ) {
        let hardware = self.hardware.borrow();
        let drive = hardware.drives.drive_at(request.device);
        let of = of.map(|BufferId(number)| number as usize);
        self.records.count_request(of, request, (drive, awaited));
    }

    /// Records that a request was issued. `awaited` tells whether a process waits for it.
    pub(crate) fn record_issue(&self, id: RequestId, awaited: bool) {
        let hardware = self.hardware.borrow();
        let of = (&hardware.submitted_requests, &hardware.drives);
        self.records.record_issue(id, of, awaited);
    }

    /// Removes a completed request from the hardware's table and returns it.
    pub(crate) fn take_completed(&self, id: RequestId) -> Request {
        self.records.record_completion(id, self.simulation.now());
        let mut request = self
            .hardware
            .borrow_mut()
            .submitted_requests
            .take_request(id);
        request.book_stage(Stage::Completion, moment(self.simulation.now()));
        request
    }

    /// Halts the machine with a hard error, after a driver has failed a request `tries` times.
    /// Events after a hard error do not count as work of the programs.
    pub(crate) fn halt_after_hard_error(&self, id: RequestId, tries: u32) {
        let hardware = self.hardware.borrow();
        let request = &hardware.submitted_requests[id];
        self.halt_computer(RunEndReason::HardError(HardError {
            error_time: self.simulation.now(),
            drive: request.device,
            sector: request.sector,
            attempt_count: tries,
        }));
    }

    /// Returns the parts of the computer that hardware may access besides itself: the simulation
    /// and the processors.
    pub(crate) fn simulation_context(&self) -> SimulationContext<'_> {
        SimulationContext {
            sim: &self.simulation,
            processors: &self.cpus.processors,
        }
    }
}

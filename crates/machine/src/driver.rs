//! Device drivers, and their narrow interface to the kernel above them. A driver knows its
//! controllers and the order of its queue. Every kernel can use every driver.

pub(crate) mod disksort;
pub(crate) mod submission_guard;

pub use disksort::QueueOrder;

use crate::controllers::ControllerKind;
use crate::hardware::{Hardware, HardwareParts, SimulationContext};
use crate::id::ComponentId;
use diskperf_device::{RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Amount of data that one map register maps, in bytes.
const BYTES_PER_MAP_REGISTER: u64 = 512;

/// Interface of the kernel to a driver that runs for a process or in an interrupt handler.
pub(crate) trait DriverHost {
    /// Hardware of the computer, with the requests in flight.
    fn hardware(&self) -> &RefCell<Hardware>;

    /// Simulation and processors of the computer.
    fn surroundings(&self) -> SimulationContext<'_>;

    fn spend_processor_time(&self, stage: Stage, cost: Time) -> impl Future<Output = ()>;

    fn complete_request(&self, id: RequestId);

    /// Stops the machine because a request failed `tries` times.
    fn fail_request(&self, id: RequestId, tries: u32);

    /// Books the time since the last mark of a request to `stage`.
    fn mark_stage(&self, id: RequestId, stage: Stage) {
        let now = moment(self.surroundings().now());
        self.hardware().borrow_mut().submitted_requests[id].book_stage(stage, now);
    }

    /// Books the queueing time of a request, and spends the processor time of building its command.
    async fn start_queued_request(&self, id: RequestId, cost: Time) {
        self.mark_stage(id, Stage::DriverQueue);
        self.spend_processor_time(Stage::Driver, cost).await;
        self.mark_stage(id, Stage::Driver);
    }

    /// Spends the processor time of setting the map registers of a request's buffer; each register
    /// costs `register`.
    async fn spend_map_register_setup(&self, id: RequestId, register: Time) {
        let bytes = self.hardware().borrow().request_bytes(id);
        // One more than the pages: a buffer may start within one.
        let registers = bytes.div_ceil(BYTES_PER_MAP_REGISTER) + 1;
        self.spend_processor_time(Stage::Driver, Time(register.0 * registers))
            .await;
        self.mark_stage(id, Stage::Driver);
    }

    /// Passes a controller to a function that reads its state or commands it, and returns the
    /// function's result.
    fn with_controller_parts<C: ControllerKind, T>(
        &self,
        controller: ComponentId<C>,
        ask: impl FnOnce(&mut C, &mut HardwareParts<'_>) -> T,
    ) -> T {
        self.hardware()
            .borrow_mut()
            .with_controller_parts(controller, ask)
    }
}

/// Driver software that commands controllers of one kind.
pub(crate) trait Driver: 'static {
    /// Kind of controller that the driver commands.
    type Controller: ControllerKind;

    /// Controllers of the driver. Each has its own interrupt.
    fn controllers(&self) -> Vec<ComponentId<Self::Controller>>;

    /// Processor time of the routine that queues a request for a drive. None if the driver has no
    /// separate routine.
    fn queueing_cost(&self, drive: usize) -> Option<Time>;

    /// Minimum size of a read, in bytes; the kernel keeps the surplus. 0 means that reads have the
    /// requested size.
    fn read_bytes_min(&self) -> u32 {
        0
    }

    /// Inserts a request into the driver's queue of its drive.
    fn enqueue(&self, hardware: &Hardware, id: RequestId);

    /// Submits queued requests of a drive to its controller, as many as the controller accepts.
    async fn submit_queued(&self, host: &impl DriverHost, drive: usize);

    async fn handle_interrupt(
        &self,
        host: &impl DriverHost,
        controller: ComponentId<Self::Controller>,
    );

    /// Accepts a request from the kernel. Returns when the request is queued or in flight.
    async fn accept_request(&self, host: &impl DriverHost, id: RequestId) {
        let drive = {
            let hardware = host.hardware().borrow();
            self.enqueue(&hardware, id);
            hardware.submitted_requests[id].device
        };
        self.submit_queued(host, drive).await;
    }
}

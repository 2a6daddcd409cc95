//! Device drivers, and their narrow interface to the kernel above them. A driver knows its
//! controllers and the order of its queue. Every kernel can use every driver.

pub(crate) mod disksort;
pub(crate) mod submission_guard;

pub use disksort::QueueOrder;

use crate::controllers::ControllerKind;
use crate::hardware::{Hardware, Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Amount of data that one map register maps, in bytes.
const MAP_REGISTER_BYTES: u64 = 512;

/// Interface of the kernel to a driver that runs for a process or in an interrupt handler.
pub(crate) trait DriverHost {
    /// Hardware of the computer, with the requests in flight.
    fn hardware(&self) -> &RefCell<Hardware>;

    /// Simulation and processors of the computer.
    fn surroundings(&self) -> Surroundings<'_>;

    /// Spends processor time and books it to a stage.
    fn spend(&self, stage: Stage, cost: Time) -> impl Future<Output = ()>;

    /// Receives a completed request from the driver.
    fn completed(&self, id: RequestId);

    /// Stops the machine because a request failed `tries` times.
    fn give_up(&self, id: RequestId, tries: u32);

    /// Books the time since the last mark of a request to `stage`.
    fn mark(&self, id: RequestId, stage: Stage) {
        let now = moment(self.surroundings().now());
        self.hardware().borrow_mut().requests[id].book_stage(stage, now);
    }

    /// Books the queueing time of a request, and spends the processor time of building its command.
    async fn start_queued(&self, id: RequestId, cost: Time) {
        self.mark(id, Stage::DriverQueue);
        self.spend(Stage::Driver, cost).await;
        self.mark(id, Stage::Driver);
    }

    /// Spends the processor time of setting the map registers of a request's buffer; each register
    /// costs `register`.
    async fn set_map_registers(&self, id: RequestId, register: Time) {
        let bytes = self.hardware().borrow().bytes(id);
        // One more than the pages: a buffer may start within one.
        let registers = bytes.div_ceil(MAP_REGISTER_BYTES) + 1;
        self.spend(Stage::Driver, Time(register.0 * registers))
            .await;
        self.mark(id, Stage::Driver);
    }

    /// Passes a controller to a function that reads its state or commands it, and returns the
    /// function's result.
    fn ask<C: ControllerKind, T>(
        &self,
        controller: Id<C>,
        ask: impl FnOnce(&mut C, &mut Parts<'_>) -> T,
    ) -> T {
        self.hardware().borrow_mut().ask(controller, ask)
    }
}

/// Driver software that commands controllers of one kind.
pub(crate) trait Driver: 'static {
    /// Kind of controller that the driver commands.
    type Controller: ControllerKind;

    /// Controllers of the driver. Each has its own interrupt.
    fn controllers(&self) -> Vec<Id<Self::Controller>>;

    /// Processor time of the routine that queues a request for a drive. None if the driver has no
    /// separate routine.
    fn queueing(&self, drive: usize) -> Option<Time>;

    /// Minimum size of a read, in bytes; the kernel keeps the surplus. 0 means that reads have the
    /// requested size.
    fn read_ahead_bytes(&self) -> u32 {
        0
    }

    /// Inserts a request into the driver's queue of its drive.
    fn enqueue(&self, hardware: &Hardware, id: RequestId);

    /// Submits queued requests of a drive to its controller, as many as the controller accepts.
    async fn submit_queued(&self, host: &impl DriverHost, drive: usize);

    /// Handles an interrupt of a controller.
    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Self::Controller>);

    /// Accepts a request from the kernel. Returns when the request is queued or in flight.
    async fn take(&self, host: &impl DriverHost, id: RequestId) {
        let drive = {
            let hardware = host.hardware().borrow();
            self.enqueue(&hardware, id);
            hardware.requests[id].device
        };
        self.submit_queued(host, drive).await;
    }
}

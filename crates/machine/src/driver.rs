//! Drivers, and the narrow view that they have of the kernel above them. A driver knows its
//! controllers and the order of its queue. Every kernel can use every driver.

pub(crate) mod disksort;
pub(crate) mod giving;

pub use disksort::QueueOrder;

use crate::controllers::Kind;
use crate::hardware::{Hardware, Parts, Surroundings};
use crate::id::Id;
use diskperf_device::{RequestId, moment};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Data that one map register maps.
const MAPPED_BYTES: u64 = 512;

/// A kernel while it runs a driver, for a process or in the handler of an interrupt.
pub(crate) trait DriverHost {
    /// The hardware, with the requests in flight.
    fn hardware(&self) -> &RefCell<Hardware>;

    /// The simulation and its processors.
    fn surroundings(&self) -> Surroundings<'_>;

    /// Spends processor time in a stage.
    fn spend(&self, stage: Stage, cost: Time) -> impl Future<Output = ()>;

    /// Takes a request back that the controller has completed.
    fn completed(&self, id: RequestId);

    /// Stops the machine: the request failed `tries` times.
    fn give_up(&self, id: RequestId, tries: u32);

    /// Books the time of a request since its last mark to `stage`.
    fn mark(&self, id: RequestId, stage: Stage) {
        let now = moment(self.surroundings().now());
        self.hardware().borrow_mut().requests[id].mark(stage, now);
    }

    /// Books the queueing time of a request, and spends the time of making a command of it.
    async fn unqueue(&self, id: RequestId, cost: Time) {
        self.mark(id, Stage::DriverQueue);
        self.spend(Stage::Driver, cost).await;
        self.mark(id, Stage::Driver);
    }

    /// Sets the map registers of a request's buffer, each at this cost.
    async fn map(&self, id: RequestId, register: Time) {
        let bytes = self.hardware().borrow().bytes(id);
        // One more than the pages: a buffer may start within one.
        let registers = bytes.div_ceil(MAPPED_BYTES) + 1;
        self.spend(Stage::Driver, Time(register.0 * registers))
            .await;
        self.mark(id, Stage::Driver);
    }

    /// Reads or commands a controller.
    fn ask<C: Kind, T>(
        &self,
        controller: Id<C>,
        ask: impl FnOnce(&mut C, &mut Parts<'_>) -> T,
    ) -> T {
        self.hardware().borrow_mut().ask(controller, ask)
    }
}

/// The software that commands controllers of one kind.
pub(crate) trait Driver: 'static {
    /// The controllers that it commands.
    type Controller: Kind;

    /// Its controllers, each of which interrupts alone.
    fn controllers(&self) -> Vec<Id<Self::Controller>>;

    /// Time that queueing a request of a drive takes, where that is a routine of its own.
    fn queueing(&self, drive: usize) -> Option<Time>;

    /// Bytes that a read brings at least; its kernel keeps the surplus. 0: no more than
    /// requested.
    fn read_ahead_bytes(&self) -> u32 {
        0
    }

    /// Queues a request among those that wait for its drive.
    fn insert(&self, hardware: &Hardware, id: RequestId);

    /// Gives the controller of a drive as many requests as it takes.
    async fn give(&self, host: &impl DriverHost, drive: usize);

    /// Serves an interrupt of a controller.
    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Self::Controller>);

    /// Takes a request; returns when it is queued or in flight.
    async fn take(&self, host: &impl DriverHost, id: RequestId) {
        let drive = {
            let hardware = host.hardware().borrow();
            self.insert(&hardware, id);
            hardware.requests[id].device
        };
        self.give(host, drive).await;
    }
}

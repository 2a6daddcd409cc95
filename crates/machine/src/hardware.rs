//! Hardware of a computer: plain state machines that receive events.

pub(crate) mod bare;
#[cfg(test)]
pub(crate) mod bench;
pub mod bus;
pub mod cache;
pub mod drives;
pub(crate) mod marking;
pub mod mechanism;

use crate::controllers::{ControllerKind, Controllers, PartEvent};
use crate::event::Event;
use crate::id::Id;
use bus::Bus;
use diskperf_device::{RequestId, Requests};
use diskperf_sim::{Processors, Sim, Time};
use drives::Drives;

/// All hardware except the processors, with the requests in flight.
pub struct Hardware {
    /// Drives of the computer.
    pub drives: Drives,
    /// Adaptors and controllers of the computer.
    pub controllers: Controllers,
    /// Bus that transfers data to memory.
    pub bus: Bus,
    /// Requests that software has submitted and not yet reaped.
    pub requests: Requests,
}

/// Simulation and processors, as far as a hardware component may access them.
pub struct Surroundings<'a> {
    /// Simulation in which the hardware runs.
    pub sim: &'a Sim<Event>,
    /// Processors of the computer. Bus transfers slow them down, because both use the same memory.
    pub processors: &'a Processors,
}

impl Surroundings<'_> {
    /// Current virtual time of the simulation.
    pub fn now(&self) -> Time {
        self.sim.now()
    }
}

impl Hardware {
    /// Size of a request's data, in bytes.
    pub fn bytes(&self, id: RequestId) -> u64 {
        let request = &self.requests[id];
        let sector_bytes = self.drives.get(request.device).sector_bytes();
        u64::from(request.sectors) * u64::from(sector_bytes)
    }

    /// Passes an event to the controller that scheduled it.
    pub(crate) fn handle(&mut self, context: &Surroundings<'_>, event: PartEvent) {
        let (controllers, mut parts) = self.split();
        controllers.handle(context, &mut parts, event);
    }

    /// Returns a controller and the other components that it works with.
    #[inline]
    pub(crate) fn controller<C: ControllerKind>(&mut self, id: Id<C>) -> (&mut C, Parts<'_>) {
        let (controllers, parts) = self.split();
        (controllers.get(id), parts)
    }

    /// Passes a controller to a function that reads its state or commands it, and returns the
    /// function's result.
    pub(crate) fn ask<C: ControllerKind, T>(
        &mut self,
        id: Id<C>,
        ask: impl FnOnce(&mut C, &mut Parts<'_>) -> T,
    ) -> T {
        let (controller, mut parts) = self.controller(id);
        ask(controller, &mut parts)
    }

    #[inline]
    fn split(&mut self) -> (&mut Controllers, Parts<'_>) {
        let parts = Parts {
            drives: &mut self.drives,
            bus: &mut self.bus,
            requests: &mut self.requests,
        };
        (&mut self.controllers, parts)
    }
}

/// Components that a controller works with: drives, bus and requests.
pub struct Parts<'a> {
    /// Drives of the computer.
    pub drives: &'a mut Drives,
    /// Bus that transfers data to memory.
    pub bus: &'a mut Bus,
    /// Requests that software has submitted and not yet reaped.
    pub requests: &'a mut Requests,
}

#[cfg(test)]
mod tests;

//! Hardware of a computer: plain state machines that receive events.

pub(crate) mod bare;
#[cfg(test)]
pub(crate) mod bench;
pub mod bus;
pub mod cache;
pub mod drives;
pub(crate) mod marking;
pub mod mechanism;

use crate::controllers::{ControllerKind, ControllerPartEvent, Controllers};
use crate::event::MachineEvent;
use crate::id::ComponentId;
use bus::Bus;
use diskperf_device::{RequestId, Requests};
use diskperf_sim::{Processors, Simulation, Time};
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
    pub submitted_requests: Requests,
}

/// Simulation and processors, as far as a hardware component may access them.
pub struct SimulationContext<'a> {
    /// Simulation in which the hardware runs.
    pub sim: &'a Simulation<MachineEvent>,
    /// Processors of the computer. Bus transfers slow them down, because both use the same memory.
    pub processors: &'a Processors,
}

impl SimulationContext<'_> {
    /// Current virtual time of the simulation.
    pub fn now(&self) -> Time {
        self.sim.now()
    }
}

impl Hardware {
    /// Size of a request's data, in bytes.
    pub fn request_bytes(&self, id: RequestId) -> u64 {
        let request = &self.submitted_requests[id];
        let sector_bytes = self.drives.drive_at(request.device).sector_bytes();
        u64::from(request.sectors) * u64::from(sector_bytes)
    }

    pub(crate) fn handle_event(
        &mut self,
        context: &SimulationContext<'_>,
        event: ControllerPartEvent,
    ) {
        let (controllers, mut parts) = self.split_controllers();
        controllers.handle(context, &mut parts, event);
    }

    #[inline]
    pub(crate) fn controller_with_parts<C: ControllerKind>(
        &mut self,
        id: ComponentId<C>,
    ) -> (&mut C, HardwareParts<'_>) {
        let (controllers, parts) = self.split_controllers();
        (controllers.controller_mut(id), parts)
    }

    /// Passes a controller to a function that reads its state or commands it, and returns the
    /// function's result.
    pub(crate) fn with_controller_parts<C: ControllerKind, T>(
        &mut self,
        id: ComponentId<C>,
        ask: impl FnOnce(&mut C, &mut HardwareParts<'_>) -> T,
    ) -> T {
        let (controller, mut parts) = self.controller_with_parts(id);
        ask(controller, &mut parts)
    }

    #[inline]
    fn split_controllers(&mut self) -> (&mut Controllers, HardwareParts<'_>) {
        let parts = HardwareParts {
            drives: &mut self.drives,
            bus: &mut self.bus,
            submitted_requests: &mut self.submitted_requests,
        };
        (&mut self.controllers, parts)
    }
}

/// Components that a controller works with: drives, bus and requests.
pub struct HardwareParts<'a> {
    /// Drives of the computer.
    pub drives: &'a mut Drives,
    /// Bus that transfers data to memory.
    pub bus: &'a mut Bus,
    /// Requests that software has submitted and not yet reaped.
    pub submitted_requests: &'a mut Requests,
}

#[cfg(test)]
mod tests;

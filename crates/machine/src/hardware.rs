//! Hardware: plain state machines that are told when their events come up.

pub(crate) mod bare;
#[cfg(test)]
pub(crate) mod bench;
pub mod bus;
pub mod cache;
pub mod drives;
pub(crate) mod marking;
pub mod mechanism;

use crate::controllers::{Controllers, Kind, PartEvent};
use crate::event::Event;
use crate::id::Id;
use bus::Bus;
use diskperf_device::{RequestId, Requests};
use diskperf_sim::{Processors, Sim, Time};
use drives::Drives;

/// All that is not the processor, and the requests that are under way in it.
pub struct Hardware {
    /// Its drives.
    pub drives: Drives,
    /// The adaptors or controllers.
    pub controllers: Controllers,
    /// What moves data to memory.
    pub bus: Bus,
    /// What software has asked for and not taken the completion of.
    pub requests: Requests,
}

/// What hardware may touch besides itself.
pub struct Surroundings<'a> {
    /// The simulation.
    pub sim: &'a Sim<Event>,
    /// The processors, whose memory data goes through.
    pub processors: &'a Processors,
}

impl Surroundings<'_> {
    /// The present moment.
    pub fn now(&self) -> Time {
        self.sim.now()
    }
}

impl Hardware {
    /// The data of a request.
    pub fn bytes(&self, id: RequestId) -> u64 {
        let request = &self.requests[id];
        let sector_bytes = self.drives.get(request.device).sector_bytes();
        u64::from(request.sectors) * u64::from(sector_bytes)
    }

    /// An event of a controller has come up.
    pub(crate) fn handle(&mut self, around: &Surroundings<'_>, event: PartEvent) {
        let (controllers, mut parts) = self.split();
        controllers.handle(around, &mut parts, event);
    }

    /// A controller, and what it works with.
    #[inline]
    pub(crate) fn controller<C: Kind>(&mut self, id: Id<C>) -> (&mut C, Parts<'_>) {
        let (controllers, parts) = self.split();
        (controllers.get(id), parts)
    }

    /// Reads or commands a controller.
    pub(crate) fn ask<C: Kind, T>(
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

/// What a controller works with.
pub struct Parts<'a> {
    /// The drives of the computer.
    pub drives: &'a mut Drives,
    /// What moves data to memory.
    pub bus: &'a mut Bus,
    /// What software has asked for and not taken the completion of.
    pub requests: &'a mut Requests,
}

#[cfg(test)]
mod tests;

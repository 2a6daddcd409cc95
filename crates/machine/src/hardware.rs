//! Hardware: plain state machines that are told when their events come up.

mod bare;
pub mod bus;
pub mod controller;
pub mod drive;

use crate::event::Event;
use bus::Bus;
use controller::vme::AccessClass;
use controller::{Controller, ControllerEvent};
use diskperf_sim::{Processor, Sim, Time};
use diskperf_timeline::{Nanoseconds, Request};
use drive::Drive;

/// All that is not the processor, and the requests that are under way in it.
pub struct Hardware {
    /// The drives, by number.
    pub drives: Vec<Drive>,
    /// The adaptors or controllers, by number.
    pub controllers: Vec<Controller>,
    /// What moves data to memory.
    pub bus: Bus,
    /// Transfers, by [`TransferId`].
    pub transfers: Vec<Transfer>,
}

/// The number of a transfer's place in [`Hardware::transfers`]. Each buffer of
/// the kernel has one for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TransferId(pub u32);

/// What software asks hardware for: sectors of one drive.
#[derive(Clone, Debug, Default)]
pub struct Transfer {
    /// The number of the drive.
    pub drive: usize,
    /// The first sector, from the start of the drive.
    pub sector: u64,
    /// How many.
    pub sectors: u32,
    /// To the drive, or from it.
    pub write: bool,
    /// What for.
    pub class: AccessClass,
    /// Its time.
    pub request: Request,
}

/// What hardware may touch besides itself.
pub struct Surroundings<'a> {
    /// The simulation.
    pub sim: &'a Sim<Event>,
    /// The processor, whose memory data goes through.
    pub processor: &'a Processor,
}

impl Surroundings<'_> {
    /// The present moment.
    pub fn now(&self) -> Time {
        self.sim.now()
    }
}

/// A moment of the simulation as the timeline has it.
#[inline]
pub fn moment(time: Time) -> Nanoseconds {
    Nanoseconds(time.0)
}

impl Hardware {
    /// The transfer of this number.
    #[inline]
    pub fn transfer(&mut self, id: TransferId) -> &mut Transfer {
        &mut self.transfers[id.0 as usize]
    }

    /// An event of a controller has come up.
    pub fn handle(&mut self, around: &Surroundings<'_>, controller: usize, event: ControllerEvent) {
        let mut parts = Parts {
            drives: &mut self.drives,
            bus: &mut self.bus,
            transfers: &mut self.transfers,
        };
        self.controllers[controller].handle(around, &mut parts, event);
    }

    /// A controller, and what it works with.
    #[inline]
    pub fn controller(&mut self, number: usize) -> (&mut Controller, Parts<'_>) {
        let parts = Parts {
            drives: &mut self.drives,
            bus: &mut self.bus,
            transfers: &mut self.transfers,
        };
        (&mut self.controllers[number], parts)
    }
}

/// What a controller works with.
pub struct Parts<'a> {
    /// The drives, by number.
    pub drives: &'a mut Vec<Drive>,
    /// What moves data to memory.
    pub bus: &'a mut Bus,
    /// Transfers, by [`TransferId`].
    pub transfers: &'a mut Vec<Transfer>,
}

#[cfg(test)]
mod tests;

//! Parts that every kernel runs on: the processor with its processes, the hardware, and the
//! volumes.

use super::costs::{Costs, Work};
use super::process::Cpus;
use super::serial::Serial;
use crate::budget::REHEARSED_EVENTS;
use crate::event::Event;
use crate::hardware::Hardware;
use crate::records::Records;
use crate::standstill::Standstill;
use crate::volumes::Volumes;
use diskperf_sim::{Sim, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Modelled computer without the parts that belong to one kernel only.
pub struct Computer {
    pub(crate) sim: Rc<Sim<Event>>,
    pub(crate) cpus: Cpus,
    pub(crate) hardware: RefCell<Hardware>,
    pub(crate) costs: Costs,
    /// Speed of the processor, as a multiple of a VAX 11/780.
    pub(crate) speed: f64,
    pub(crate) volumes: Volumes,
    pub(crate) serial: Serial,
    pub(crate) records: Records,
    /// Reason why the machine has halted; `None` while it runs.
    pub(crate) halted: RefCell<Option<Standstill>>,
}

impl Computer {
    /// Returns the processor time that this machine needs for a piece of work of a user program.
    pub(crate) fn time_of(&self, work: Work) -> Time {
        Time((self.costs.programs.program_time(work).0 as f64 / self.speed + 0.5) as u64)
    }

    /// Returns the number of simulation events so far, as [`crate::Budget::events`] counts them.
    /// Events of the simulations in which a controller tries other policies are included, at a
    /// lower weight.
    pub(crate) fn events(&self) -> u64 {
        let rehearsed = self.hardware.borrow().controllers.rehearsed_events();
        self.sim.events() + rehearsed / REHEARSED_EVENTS
    }

    /// Stops the simulation for a reason that [`crate::Machine::run`] reports.
    pub(crate) fn halt(&self, why: Standstill) {
        *self.halted.borrow_mut() = Some(why);
        self.sim.halt();
    }
}

//! What every kernel runs on: the processor with its processes, the hardware, and the
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

/// A computer, without what is a kernel's own.
pub struct Computer {
    pub(crate) sim: Rc<Sim<Event>>,
    pub(crate) cpus: Cpus,
    pub(crate) hardware: RefCell<Hardware>,
    pub(crate) costs: Costs,
    /// Of the processor, in that of a VAX 11/780.
    pub(crate) speed: f64,
    pub(crate) volumes: Volumes,
    pub(crate) serial: Serial,
    pub(crate) records: Records,
    /// Why the machine has halted, if it has.
    pub(crate) halted: RefCell<Option<Standstill>>,
}

impl Computer {
    /// The time that this machine takes for work of a program.
    pub(crate) fn time_of(&self, work: Work) -> Time {
        Time((self.costs.programs.of(work).0 as f64 / self.speed + 0.5) as u64)
    }

    /// Events so far, those included of simulations in which a controller tries something out,
    /// as [`crate::Budget::events`] counts them.
    pub(crate) fn events(&self) -> u64 {
        let rehearsed = self.hardware.borrow().controllers.rehearsed_events();
        self.sim.events() + rehearsed / REHEARSED_EVENTS
    }

    /// Nothing more happens; [`crate::Machine::run`] says why.
    pub(crate) fn halt(&self, why: Standstill) {
        *self.halted.borrow_mut() = Some(why);
        self.sim.halt();
    }
}

//! What every kernel runs on: the processor with its processes, the hardware, and the
//! volumes.

use super::costs::{Costs, Work};
use super::medium::Medium;
use super::process::{Process, Scheduler};
use super::raw::Partition;
use super::serial::Serial;
use super::statistics::Statistics;
use super::tracing::Tracing;
use crate::event::Event;
use crate::hardware::Hardware;
use crate::standstill::Standstill;
use diskperf_sim::{Processor, Sim, Time};
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// A computer, without what is a kernel's own.
pub struct Computer {
    pub(crate) sim: Rc<Sim<Event>>,
    pub(crate) processor: Processor,
    pub(crate) hardware: RefCell<Hardware>,
    pub(crate) costs: Costs,
    /// Of the processor, in that of a VAX 11/780.
    pub(crate) speed: f64,
    /// Of each volume, mounted or not: a partition that is used, and what is on it.
    pub(crate) partitions: Vec<Partition>,
    pub(crate) media: RefCell<Vec<Medium>>,
    pub(crate) scheduler: RefCell<Scheduler>,
    pub(crate) processes: RefCell<Vec<Rc<Process>>>,
    pub(crate) ticks: Cell<u64>,
    pub(crate) serial: Serial,
    /// What the driver's routines took of the processor.
    pub(crate) driver_time: Cell<Time>,
    pub(crate) statistics: RefCell<Statistics>,
    /// What is recorded, if anything.
    pub(crate) tracing: Option<RefCell<Tracing>>,
    /// Why the machine has halted, if it has.
    pub(crate) halted: RefCell<Option<Standstill>>,
}

impl Computer {
    /// The time that this machine takes for work of a program.
    pub(crate) fn time_of(&self, work: Work) -> Time {
        Time((self.costs.programs.of(work).0 as f64 / self.speed + 0.5) as u64)
    }

    pub(crate) fn partition(&self, volume: u32) -> Partition {
        self.partitions[volume as usize]
    }

    /// Nothing more happens; [`crate::Machine::run`] says why.
    pub(crate) fn halt(&self, why: Standstill) {
        *self.halted.borrow_mut() = Some(why);
        self.sim.halt();
    }
}

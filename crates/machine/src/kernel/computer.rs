//! Parts that every kernel runs on: the processor with its processes, the hardware, and the
//! volumes.

use super::costs::{KernelCosts, ProgramWork};
use super::process::Cpus;
use super::serial::SerialOutput;
use crate::budget::EVENTS_PER_REHEARSED_EVENT;
use crate::event::MachineEvent;
use crate::hardware::Hardware;
use crate::records::RunRecords;
use crate::standstill::RunEndReason;
use crate::volumes::Volumes;
use diskperf_sim::{Simulation, Time};
use std::cell::RefCell;
use std::rc::Rc;

/// Modelled computer without the parts that belong to one kernel only.
pub struct Computer {
    pub(crate) simulation: Rc<Simulation<MachineEvent>>,
    pub(crate) cpus: Cpus,
    pub(crate) hardware: RefCell<Hardware>,
    pub(crate) costs: KernelCosts,
    /// Speed of the processor, as a multiple of a VAX 11/780.
    pub(crate) processor_speed: f64,
    pub(crate) volumes: Volumes,
    pub(crate) serial_lines: SerialOutput,
    pub(crate) records: RunRecords,
    /// Reason why the machine has halted; `None` while it runs.
    pub(crate) halt_reason: RefCell<Option<RunEndReason>>,
}

impl Computer {
    /// Returns the processor time that this machine needs for a piece of work of a user program.
    pub(crate) fn program_work_time(&self, work: ProgramWork) -> Time {
        Time(
            (self.costs.program_costs.program_work_time(work).0 as f64 / self.processor_speed + 0.5)
                as u64,
        )
    }

    /// Returns the number of simulation events so far, as [`crate::RunBudget::event_count_max`] counts them.
    /// Events of the simulations in which a controller tries other policies are included, at a
    /// lower weight.
    pub(crate) fn event_count(&self) -> u64 {
        let rehearsed = self.hardware.borrow().controllers.rehearsed_events();
        self.simulation.event_count() + rehearsed / EVENTS_PER_REHEARSED_EVENT
    }

    /// Stops the simulation for a reason that [`crate::Machine::run_to_end`] reports.
    pub(crate) fn halt_computer(&self, why: RunEndReason) {
        *self.halt_reason.borrow_mut() = Some(why);
        self.simulation.halt_run();
    }
}

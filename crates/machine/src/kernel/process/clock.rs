//! Clock interrupts of a kernel: the charging of ticks to processes, and the time slices.

use super::{CLOCK_LEVEL, Computer, Process, SOFT_CLOCK_LEVEL};
use crate::books::longest_stage_of_accounts;
use crate::event::MachineEvent;
use diskperf_sim::{CpuId, Processor, Time};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl Computer {
    /// Returns the stage in which processes have spent most time since their accounts were opened,
    /// without the stages in which one waits for the work of another.
    pub(crate) fn longest_stage(&self) -> Option<Stage> {
        self.cpus
            .with_processes(|all| longest_stage_of_accounts(all.iter().map(|process| &***process)))
    }

    /// Handles a clock tick. Charges the tick to the process on each processor, at any interrupt
    /// level, or to the process that `charged` names in its place. The flag of `charged` makes it
    /// system time. A tick on an idle processor is charged to no process. The first processor takes
    /// the clock interrupt.
    pub(crate) fn charge_tick(
        &self,
        charged: impl Fn(&Rc<Process>) -> Option<(Rc<Process>, bool)>,
    ) {
        self.trace_tick();
        let tick = Time(1_000_000_000 / self.costs.clock_hz);
        self.simulation
            .schedule_background(self.simulation.now() + tick, MachineEvent::ClockTick);
        for task in self
            .cpus
            .processors
            .iter()
            .filter_map(Processor::running_process)
        {
            let runs = |process: &&Rc<Process>| process.task_id() == task;
            let charged =
                |processes: &[Rc<Process>]| processes.iter().find(runs).and_then(&charged);
            if let Some((charged, for_it)) = self.cpus.with_processes(charged) {
                let for_it = for_it || charged.client.is_some();
                charged.client().count_tick(for_it);
            }
        }
        // Processes of equal rank take turns every tenth of a second.
        self.cpus.count_tick(self.costs.clock_hz / 10);
        // A tick that comes while one is still masked waits behind it: on
        // these machines a clock's interrupt takes far less than a tick.
        let interrupts = [
            (CLOCK_LEVEL, self.costs.clock_tick_time),
            (SOFT_CLOCK_LEVEL, self.costs.soft_clock_time),
        ];
        let count = 1 + usize::from(self.costs.soft_clock_time > Time::ZERO);
        self.cpus.processors[CpuId::default()]
            .run_interrupts(&self.simulation, &interrupts[..count]);
    }
}

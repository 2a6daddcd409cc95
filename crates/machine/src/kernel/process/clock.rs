//! Clock interrupts of a kernel: the charging of ticks to processes, and the time slices.

use super::{CLOCK_LEVEL, Computer, Process, SOFT_CLOCK_LEVEL};
use crate::books::find_longest_stage;
use crate::event::Event;
use diskperf_sim::{CpuId, Processor, Time};
use diskperf_timeline::Stage;
use std::rc::Rc;

impl Computer {
    /// Returns the stage in which processes have spent most time since their accounts were opened,
    /// without the stages in which one waits for the work of another.
    pub(crate) fn longest_stage(&self) -> Option<Stage> {
        self.cpus
            .with_processes(|all| find_longest_stage(all.iter().map(|process| &***process)))
    }

    /// Handles a clock tick. Charges the tick to the process on each processor, at any interrupt
    /// level, or to the process that `charged` names in its place. The flag of `charged` makes it
    /// system time. A tick on an idle processor is charged to no process. The first processor takes
    /// the clock interrupt.
    pub(crate) fn tick(&self, charged: impl Fn(&Rc<Process>) -> Option<(Rc<Process>, bool)>) {
        self.trace_tick();
        let tick = Time(1_000_000_000 / self.costs.clock_hz);
        self.sim
            .schedule_background(self.sim.now() + tick, Event::Tick);
        for task in self.cpus.processors.iter().filter_map(Processor::process) {
            let runs = |process: &&Rc<Process>| process.task() == task;
            let charged =
                |processes: &[Rc<Process>]| processes.iter().find(runs).and_then(&charged);
            if let Some((charged, for_it)) = self.cpus.with_processes(charged) {
                let for_it = for_it || charged.works_for.is_some();
                charged.client().tick(for_it);
            }
        }
        // Processes of equal rank take turns every tenth of a second.
        self.cpus.tick(self.costs.clock_hz / 10);
        // A tick that comes while one is still masked waits behind it: on
        // these machines a clock's interrupt takes far less than a tick.
        let interrupts = [
            (CLOCK_LEVEL, self.costs.clock),
            (SOFT_CLOCK_LEVEL, self.costs.soft_clock),
        ];
        let count = 1 + usize::from(self.costs.soft_clock > Time::ZERO);
        self.cpus.processors[CpuId::default()].interrupt(&self.sim, &interrupts[..count]);
    }
}

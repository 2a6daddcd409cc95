//! Scheduling of processes on the processors: the assignment of processors, and the queues of ready
//! processes.

use super::Process;
use crate::event::MachineEvent;
use diskperf_sim::{CpuId, Processors, Simulation, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Processors of the computer, with the processes that share them.
pub(crate) struct Cpus {
    simulation: Rc<Simulation<MachineEvent>>,
    pub(crate) processors: Processors,
    /// Processes that have begun and not ended.
    processes: RefCell<Vec<Rc<Process>>>,
    run_queues: RefCell<RunQueues>,
    tick_count: Cell<u64>,
    driver_cpu_time: Cell<Time>,
    migration_count: Cell<u64>,
}

#[derive(Default)]
struct RunQueues {
    /// Processes that were woken in the kernel. They run before the processes in `ready_processes`.
    woken_processes: VecDeque<Rc<Process>>,
    /// Processes that lost the processor on their way back to user mode, or have just begun.
    ready_processes: VecDeque<Rc<Process>>,
    /// Processors whose process must yield to a woken process or at the end of its time slice.
    cpus_to_reschedule: Vec<CpuId>,
}

impl RunQueues {
    fn request_reschedule(&mut self, cpu: CpuId) {
        if !self.cpus_to_reschedule.contains(&cpu) {
            self.cpus_to_reschedule.push(cpu);
        }
    }
}

impl Cpus {
    /// Creates `count` idle processors without processes.
    pub(crate) fn new(sim: Rc<Simulation<MachineEvent>>, count: u32) -> Self {
        Self {
            simulation: sim,
            processors: Processors::new(count),
            processes: RefCell::default(),
            run_queues: RefCell::default(),
            tick_count: Cell::new(0),
            driver_cpu_time: Cell::new(Time::ZERO),
            migration_count: Cell::new(0),
        }
    }

    /// Registers a new process and makes it ready to run.
    pub(super) fn add_process(&self, process: &Rc<Process>) {
        self.processes.borrow_mut().push(Rc::clone(process));
        self.make_ready(process, false);
    }

    /// Removes an ended process and releases its processor.
    pub(super) fn remove_process(&self, process: &Process) {
        let mut processes = self.processes.borrow_mut();
        processes.retain(|other| !std::ptr::eq(&raw const **other, process));
        drop(processes);
        self.release_cpu(process);
    }

    /// Calls a closure with all processes that have begun and not ended.
    pub(crate) fn with_processes<T>(&self, look: impl FnOnce(&[Rc<Process>]) -> T) -> T {
        look(&self.processes.borrow())
    }

    /// Reports whether a process has a processor and no interrupt handler runs there.
    #[inline]
    pub(super) fn is_running(&self, process: &Process) -> bool {
        self.processors[process.current_cpu()].is_process_running(process.task_id())
    }

    /// Releases the processor of a process and dispatches the next ready process there.
    pub(super) fn release_cpu(&self, process: &Process) {
        let cpu = process.current_cpu();
        self.processors[cpu].release_processor(&self.simulation);
        self.dispatch_next(cpu);
    }

    fn is_cpu_free(&self, cpu: CpuId) -> bool {
        self.processors[cpu].running_process().is_none()
    }

    /// Returns a processor without a process, preferably the processor that the given process had
    /// last.
    fn find_free_cpu(&self, process: &Process) -> Option<CpuId> {
        let last = process.current_cpu();
        let last = self.is_cpu_free(last).then_some(last);
        last.or_else(|| self.processors.cpu_ids().find(|cpu| self.is_cpu_free(*cpu)))
    }

    /// Makes a process ready to run. A process woken in the kernel goes before interrupted ones and
    /// requests a processor if none is free.
    pub(super) fn make_ready(&self, process: &Rc<Process>, woken: bool) {
        process.runnable_since.set(self.simulation.now());
        {
            let mut queues = self.run_queues.borrow_mut();
            if woken {
                let behind = |other: &Rc<Process>| other.dispatch_rank >= process.dispatch_rank;
                let place = queues.woken_processes.iter().rposition(behind);
                let place = place.map_or(0, |place| place + 1);
                queues.woken_processes.insert(place, Rc::clone(process));
            } else {
                queues.ready_processes.push_back(Rc::clone(process));
            }
        }
        match self.find_free_cpu(process) {
            Some(cpu) => self.dispatch_next(cpu),
            None if woken => self
                .run_queues
                .borrow_mut()
                .request_reschedule(process.current_cpu()),
            None => {}
        }
    }

    /// Reports whether a process on its way back to user mode must yield its processor to another.
    /// If so, puts the process back into the ready queue.
    pub(super) fn yields_processor(&self, process: &Rc<Process>) -> bool {
        let mut queues = self.run_queues.borrow_mut();
        let others = !(queues.woken_processes.is_empty() && queues.ready_processes.is_empty());
        let leaves = queues.cpus_to_reschedule.contains(&process.current_cpu()) && others;
        if leaves {
            process.runnable_since.set(self.simulation.now());
            queues.ready_processes.push_back(Rc::clone(process));
        }
        leaves
    }

    /// Counts a clock tick. Requests rescheduling of all processors after every `each` ticks, so
    /// that processes of equal rank take turns.
    pub(super) fn count_tick(&self, each: u64) {
        let ticks = self.tick_count.get() + 1;
        self.tick_count.set(ticks);
        if ticks.is_multiple_of(each) {
            let mut queues = self.run_queues.borrow_mut();
            for cpu in self.processors.cpu_ids() {
                queues.request_reschedule(cpu);
            }
        }
    }

    /// Adds to the processor time of driver routines.
    pub(super) fn add_driver_time(&self, time: Time) {
        self.driver_cpu_time.set(self.driver_cpu_time.get() + time);
    }

    /// Returns the processor time of all driver routines so far.
    pub(crate) fn driver_cpu_time(&self) -> Time {
        self.driver_cpu_time.get()
    }

    /// Returns the number of times that a process resumed on a different processor.
    #[cfg(test)]
    pub(super) fn migration_count(&self) -> u64 {
        self.migration_count.get()
    }

    /// Reports whether any process is ready to run without a processor.
    #[cfg(test)]
    pub(super) fn has_ready_process(&self) -> bool {
        let queues = self.run_queues.borrow();
        !(queues.woken_processes.is_empty() && queues.ready_processes.is_empty())
    }

    fn dispatch_next(&self, cpu: CpuId) {
        let next = {
            let mut queues = self.run_queues.borrow_mut();
            queues.cpus_to_reschedule.retain(|other| *other != cpu);
            let woken = queues.woken_processes.pop_front();
            woken.or_else(|| queues.ready_processes.pop_front())
        };
        if let Some(process) = next {
            if process
                .current_cpu
                .replace(Some(cpu))
                .is_some_and(|last| last != cpu)
            {
                self.migration_count.set(self.migration_count.get() + 1);
            }
            self.processors[cpu].give_processor_to(process.task_id());
            self.simulation.wake_task(process.task_id());
        }
    }
}

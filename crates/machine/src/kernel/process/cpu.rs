//! Scheduling of processes on the processors: the assignment of processors, and the queues of ready
//! processes.

use super::Process;
use crate::event::Event;
use diskperf_sim::{CpuId, Processors, Sim, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// Processors of the computer, with the processes that share them.
pub(crate) struct Cpus {
    sim: Rc<Sim<Event>>,
    pub(crate) processors: Processors,
    /// Processes that have begun and not ended.
    processes: RefCell<Vec<Rc<Process>>>,
    queues: RefCell<Queues>,
    ticks: Cell<u64>,
    driver_time: Cell<Time>,
    migrations: Cell<u64>,
}

#[derive(Default)]
struct Queues {
    /// Processes that were woken in the kernel. They run before the processes in `ready_processes`.
    woken_processes: VecDeque<Rc<Process>>,
    /// Processes that lost the processor on their way back to user mode, or have just begun.
    ready_processes: VecDeque<Rc<Process>>,
    /// Processors whose process must yield to a woken process or at the end of its time slice.
    must_reschedule: Vec<CpuId>,
}

impl Queues {
    fn request_reschedule(&mut self, cpu: CpuId) {
        if !self.must_reschedule.contains(&cpu) {
            self.must_reschedule.push(cpu);
        }
    }
}

impl Cpus {
    /// Creates `count` idle processors without processes.
    pub(crate) fn new(sim: Rc<Sim<Event>>, count: u32) -> Self {
        Self {
            sim,
            processors: Processors::new(count),
            processes: RefCell::default(),
            queues: RefCell::default(),
            ticks: Cell::new(0),
            driver_time: Cell::new(Time::ZERO),
            migrations: Cell::new(0),
        }
    }

    /// Registers a new process and makes it ready to run.
    pub(super) fn begin(&self, process: &Rc<Process>) {
        self.processes.borrow_mut().push(Rc::clone(process));
        self.make_ready(process, false);
    }

    /// Removes an ended process and releases its processor.
    pub(super) fn end(&self, process: &Process) {
        let mut processes = self.processes.borrow_mut();
        processes.retain(|other| !std::ptr::eq(&raw const **other, process));
        drop(processes);
        self.release(process);
    }

    /// Calls a closure with all processes that have begun and not ended.
    pub(crate) fn with_processes<T>(&self, look: impl FnOnce(&[Rc<Process>]) -> T) -> T {
        look(&self.processes.borrow())
    }

    /// Reports whether a process has a processor and no interrupt handler runs there.
    #[inline]
    pub(super) fn is_running(&self, process: &Process) -> bool {
        self.processors[process.cpu()].runs(process.task())
    }

    /// Releases the processor of a process and dispatches the next ready process there.
    pub(super) fn release(&self, process: &Process) {
        let cpu = process.cpu();
        self.processors[cpu].give_up(&self.sim);
        self.dispatch(cpu);
    }

    fn is_free(&self, cpu: CpuId) -> bool {
        self.processors[cpu].process().is_none()
    }

    /// Returns a processor without a process, preferably the processor that the given process had
    /// last.
    fn find_free_cpu(&self, process: &Process) -> Option<CpuId> {
        let last = process.cpu();
        let last = self.is_free(last).then_some(last);
        last.or_else(|| self.processors.ids().find(|cpu| self.is_free(*cpu)))
    }

    /// Makes a process ready to run. A process woken in the kernel goes before interrupted ones and
    /// requests a processor if none is free.
    pub(super) fn make_ready(&self, process: &Rc<Process>, woken: bool) {
        process.runnable_at.set(self.sim.now());
        {
            let mut queues = self.queues.borrow_mut();
            if woken {
                let behind = |other: &Rc<Process>| other.rank >= process.rank;
                let place = queues.woken_processes.iter().rposition(behind);
                let place = place.map_or(0, |place| place + 1);
                queues.woken_processes.insert(place, Rc::clone(process));
            } else {
                queues.ready_processes.push_back(Rc::clone(process));
            }
        }
        match self.find_free_cpu(process) {
            Some(cpu) => self.dispatch(cpu),
            None if woken => self.queues.borrow_mut().request_reschedule(process.cpu()),
            None => {}
        }
    }

    /// Reports whether a process on its way back to user mode must yield its processor to another.
    /// If so, puts the process back into the ready queue.
    pub(super) fn yields_processor(&self, process: &Rc<Process>) -> bool {
        let mut queues = self.queues.borrow_mut();
        let others = !(queues.woken_processes.is_empty() && queues.ready_processes.is_empty());
        let leaves = queues.must_reschedule.contains(&process.cpu()) && others;
        if leaves {
            process.runnable_at.set(self.sim.now());
            queues.ready_processes.push_back(Rc::clone(process));
        }
        leaves
    }

    /// Counts a clock tick. Requests rescheduling of all processors after every `each` ticks, so
    /// that processes of equal rank take turns.
    pub(super) fn tick(&self, each: u64) {
        let ticks = self.ticks.get() + 1;
        self.ticks.set(ticks);
        if ticks.is_multiple_of(each) {
            let mut queues = self.queues.borrow_mut();
            for cpu in self.processors.ids() {
                queues.request_reschedule(cpu);
            }
        }
    }

    /// Adds to the processor time of driver routines.
    pub(super) fn add_driver_time(&self, time: Time) {
        self.driver_time.set(self.driver_time.get() + time);
    }

    /// Returns the processor time of all driver routines so far.
    pub(crate) fn driver_time(&self) -> Time {
        self.driver_time.get()
    }

    /// Returns the number of times that a process resumed on a different processor.
    #[cfg(test)]
    pub(super) fn migrations(&self) -> u64 {
        self.migrations.get()
    }

    /// Reports whether any process is ready to run without a processor.
    #[cfg(test)]
    pub(super) fn has_ready(&self) -> bool {
        let queues = self.queues.borrow();
        !(queues.woken_processes.is_empty() && queues.ready_processes.is_empty())
    }

    fn dispatch(&self, cpu: CpuId) {
        let next = {
            let mut queues = self.queues.borrow_mut();
            queues.must_reschedule.retain(|other| *other != cpu);
            let woken = queues.woken_processes.pop_front();
            woken.or_else(|| queues.ready_processes.pop_front())
        };
        if let Some(process) = next {
            if process
                .cpu
                .replace(Some(cpu))
                .is_some_and(|last| last != cpu)
            {
                self.migrations.set(self.migrations.get() + 1);
            }
            self.processors[cpu].give(process.task());
            self.sim.wake(process.task());
        }
    }
}

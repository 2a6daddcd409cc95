//! The processors as a kernel has them: who has one, and who is ready for one.

use super::Process;
use crate::event::Event;
use diskperf_sim::{CpuId, Processors, Sim, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The processors, with the processes that share them.
pub(crate) struct Cpus {
    sim: Rc<Sim<Event>>,
    pub(crate) processors: Processors,
    /// That have begun and not ended.
    processes: RefCell<Vec<Rc<Process>>>,
    queues: RefCell<Queues>,
    ticks: Cell<u64>,
    /// Processor time of the drivers' routines.
    driver_time: Cell<Time>,
    /// How often a process went on on another processor than before.
    migrations: Cell<u64>,
}

/// Processes that are ready to run.
#[derive(Default)]
struct Queues {
    /// Woken in the kernel; they go before the others.
    woken: VecDeque<Rc<Process>>,
    /// Interrupted on their way back to user mode.
    ready: VecDeque<Rc<Process>>,
    /// Processors that somebody better, or somebody else, should have.
    reschedule: Vec<CpuId>,
}

impl Queues {
    fn reschedule(&mut self, cpu: CpuId) {
        if !self.reschedule.contains(&cpu) {
            self.reschedule.push(cpu);
        }
    }
}

impl Cpus {
    /// So many idle processors.
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

    /// A process begins, and is ready.
    pub(super) fn begin(&self, process: &Rc<Process>) {
        self.processes.borrow_mut().push(Rc::clone(process));
        self.make_ready(process, false);
    }

    /// A process that has a processor ends.
    pub(super) fn end(&self, process: &Process) {
        let mut processes = self.processes.borrow_mut();
        processes.retain(|other| !std::ptr::eq(&raw const **other, process));
        drop(processes);
        self.release(process);
    }

    /// Looks at the processes that have begun and not ended.
    pub(crate) fn processes<T>(&self, look: impl FnOnce(&[Rc<Process>]) -> T) -> T {
        look(&self.processes.borrow())
    }

    /// Whether a process has a processor, and no handler is in its way.
    #[inline]
    pub(super) fn runs(&self, process: &Process) -> bool {
        self.processors[process.cpu()].runs(process.task())
    }

    /// A process gives its processor up.
    pub(super) fn release(&self, process: &Process) {
        let cpu = process.cpu();
        self.processors[cpu].give_up(&self.sim);
        self.dispatch(cpu);
    }

    /// Whether no process has the processor.
    fn is_free(&self, cpu: CpuId) -> bool {
        self.processors[cpu].process().is_none()
    }

    /// A processor that no process has: that which this one had last, if it is free.
    fn free_for(&self, process: &Process) -> Option<CpuId> {
        let last = process.cpu();
        let last = self.is_free(last).then_some(last);
        last.or_else(|| self.processors.ids().find(|cpu| self.is_free(*cpu)))
    }

    /// A process is ready to run; whether it was woken in the kernel.
    pub(super) fn make_ready(&self, process: &Rc<Process>, woken: bool) {
        process.runnable_at.set(self.sim.now());
        {
            let mut queues = self.queues.borrow_mut();
            if woken {
                let behind = |other: &Rc<Process>| other.rank >= process.rank;
                let place = queues.woken.iter().rposition(behind);
                let place = place.map_or(0, |place| place + 1);
                queues.woken.insert(place, Rc::clone(process));
            } else {
                queues.ready.push_back(Rc::clone(process));
            }
        }
        match self.free_for(process) {
            Some(cpu) => self.dispatch(cpu),
            None if woken => self.queues.borrow_mut().reschedule(process.cpu()),
            None => {}
        }
    }

    /// Whether a process leaves its processor to another, on its way back to user
    /// mode; it is ready again then.
    pub(super) fn takes_turns(&self, process: &Rc<Process>) -> bool {
        let mut queues = self.queues.borrow_mut();
        let others = !(queues.woken.is_empty() && queues.ready.is_empty());
        let leaves = queues.reschedule.contains(&process.cpu()) && others;
        if leaves {
            process.runnable_at.set(self.sim.now());
            queues.ready.push_back(Rc::clone(process));
        }
        leaves
    }

    /// The clock ticks; every so many ticks the next process of equal rank has its turn.
    pub(super) fn tick(&self, each: u64) {
        let ticks = self.ticks.get() + 1;
        self.ticks.set(ticks);
        if ticks.is_multiple_of(each) {
            let mut queues = self.queues.borrow_mut();
            for cpu in self.processors.ids() {
                queues.reschedule(cpu);
            }
        }
    }

    /// Counts processor time of a driver's routine.
    pub(super) fn count_driver(&self, time: Time) {
        self.driver_time.set(self.driver_time.get() + time);
    }

    /// Processor time of the drivers' routines.
    pub(crate) fn driver_time(&self) -> Time {
        self.driver_time.get()
    }

    /// How often a process went on on another processor than before.
    #[cfg(test)]
    pub(super) fn migrations(&self) -> u64 {
        self.migrations.get()
    }

    /// Whether processes are ready to run and have no processor.
    #[cfg(test)]
    pub(super) fn has_ready(&self) -> bool {
        let queues = self.queues.borrow();
        !(queues.woken.is_empty() && queues.ready.is_empty())
    }

    /// Gives a processor to whoever is first.
    fn dispatch(&self, cpu: CpuId) {
        let next = {
            let mut queues = self.queues.borrow_mut();
            queues.reschedule.retain(|other| *other != cpu);
            let woken = queues.woken.pop_front();
            woken.or_else(|| queues.ready.pop_front())
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

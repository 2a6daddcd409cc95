//! The processor as a kernel has it: who has it, and who is ready for it.

use super::Process;
use crate::event::Event;
use diskperf_sim::{Processor, Sim, Time};
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The processor, with the processes that share it.
pub(crate) struct Cpu {
    sim: Rc<Sim<Event>>,
    pub(crate) processor: Processor,
    /// That have begun and not ended.
    processes: RefCell<Vec<Rc<Process>>>,
    queues: RefCell<Queues>,
    ticks: Cell<u64>,
    /// What the drivers' routines took of it.
    driver_time: Cell<Time>,
}

/// Processes that are ready to run.
#[derive(Default)]
struct Queues {
    /// Woken in the kernel; they go before the others.
    woken: VecDeque<Rc<Process>>,
    /// Interrupted on their way back to user mode.
    ready: VecDeque<Rc<Process>>,
    /// Somebody better, or somebody else, should run.
    reschedule: bool,
}

impl Cpu {
    /// An idle processor.
    pub(crate) fn new(sim: Rc<Sim<Event>>) -> Self {
        Self {
            sim,
            processor: Processor::default(),
            processes: RefCell::default(),
            queues: RefCell::default(),
            ticks: Cell::new(0),
            driver_time: Cell::new(Time::ZERO),
        }
    }

    /// A process begins, and is ready.
    pub(super) fn begin(&self, process: &Rc<Process>) {
        self.processes.borrow_mut().push(Rc::clone(process));
        self.make_ready(process, false);
    }

    /// The process that has it ends.
    pub(super) fn end(&self, process: &Process) {
        let mut processes = self.processes.borrow_mut();
        processes.retain(|other| !std::ptr::eq(&raw const **other, process));
        drop(processes);
        self.release();
    }

    /// Looks at the processes that have begun and not ended.
    pub(crate) fn processes<T>(&self, look: impl FnOnce(&[Rc<Process>]) -> T) -> T {
        look(&self.processes.borrow())
    }

    /// Whether a process has it.
    #[inline]
    pub(super) fn runs(&self, process: &Process) -> bool {
        self.processor.runs(process.task())
    }

    /// Whoever has it gives it up.
    pub(super) fn release(&self) {
        self.processor.give_up(&self.sim);
        self.dispatch();
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
                queues.reschedule = true;
            } else {
                queues.ready.push_back(Rc::clone(process));
            }
        }
        if self.processor.process().is_none() {
            self.dispatch();
        }
    }

    /// Whether the process that has it leaves it to another, on its way back to user
    /// mode; it is ready again then.
    pub(super) fn takes_turns(&self, process: &Rc<Process>) -> bool {
        let mut queues = self.queues.borrow_mut();
        let others = !(queues.woken.is_empty() && queues.ready.is_empty());
        let leaves = queues.reschedule && others;
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
            self.queues.borrow_mut().reschedule = true;
        }
    }

    /// A driver's routine took so much of it.
    pub(super) fn count_driver(&self, time: Time) {
        self.driver_time.set(self.driver_time.get() + time);
    }

    /// What the drivers' routines took of it.
    pub(crate) fn driver_time(&self) -> Time {
        self.driver_time.get()
    }

    /// Gives it to whoever is first.
    fn dispatch(&self) {
        let next = {
            let mut queues = self.queues.borrow_mut();
            queues.reschedule = false;
            let woken = queues.woken.pop_front();
            woken.or_else(|| queues.ready.pop_front())
        };
        if let Some(process) = next {
            self.processor.give(process.task());
            self.sim.wake(process.task());
        }
    }
}

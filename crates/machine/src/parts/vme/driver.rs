//! The drivers of Sun's and of others' VMEbus controllers (xy, ip, rf): as many
//! commands at a time as the board is given, and the rest in a queue of the
//! driver's own, by drive; or, as the Multibus II board's, no queue at all.

use super::hardware::Vme;
use crate::hardware::{RequestId, moment};
use crate::kernel::Kernel;
use crate::kernel::driver::QueueOrder;
use crate::kernel::driver::disksort::{self, Queue, Queued};
use crate::kernel::process::{BIO, Context};
use crate::parts::{Driver, Id};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::rc::Rc;

/// From where the scan over a drive's cylinders goes up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanFrom {
    /// From the request that the controller has, which stays at the head of the queue
    /// until it has ended, as in 4.2BSD's drivers: whoever goes on where the heads are
    /// is served before all others.
    Active,
    /// From the first that waits: a request is taken off the queue when it is given to
    /// the controller. Of two that take turns, neither is overtaken.
    Waiting,
}

/// The driver's constants and costs.
#[derive(Clone, Debug)]
pub struct VmeDriverConfig {
    /// See [`QueueOrder`].
    pub order: QueueOrder,
    /// See [`ScanFrom`].
    pub scan_from: ScanFrom,
    /// Commands that the controller has at a time; none: all that there are.
    pub commands: Option<u32>,
    /// Queueing a request.
    pub strategy: Time,
    /// Making a command of one and giving it to the controller.
    pub start: Time,
    /// Seeing to a command that has ended.
    pub complete: Time,
}

/// The driver.
pub(crate) struct VmeDriver {
    config: VmeDriverConfig,
    /// Its controller.
    controller: Id<Vme>,
    /// Of each drive: first what was given to the controller last, if the scan goes up
    /// from there, then what waits.
    queues: RefCell<Vec<Queue>>,
    /// Whether the first of a drive's queue was given to the controller already.
    given: RefCell<Vec<bool>>,
    /// The drive that is looked at first next time.
    turn: Cell<usize>,
    /// Whether somebody is giving commands already.
    starting: Cell<bool>,
}

impl VmeDriver {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: VmeDriverConfig, controller: Id<Vme>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![Queue::new(); drives]),
            given: RefCell::new(vec![false; drives]),
            turn: Cell::new(0),
            starting: Cell::new(false),
        }
    }

    /// The next request, drives in turn.
    fn next(&self) -> Option<RequestId> {
        let mut queues = self.queues.borrow_mut();
        let mut given = self.given.borrow_mut();
        let drives = queues.len();
        for step in 0..drives {
            let drive = (self.turn.get() + step) % drives;
            let queue = &mut queues[drive];
            if given[drive] && queue.len() > 1 {
                queue.remove(0);
                given[drive] = false;
            }
            if !given[drive] && !queue.is_empty() {
                self.turn.set((drive + 1) % drives);
                return Some(match self.config.scan_from {
                    ScanFrom::Waiting => queue.remove(0).request,
                    ScanFrom::Active => {
                        given[drive] = true;
                        queue[0].request
                    }
                });
            }
        }
        None
    }

    /// A transfer of the drive has ended: if it was the last given, the scan
    /// starts afresh.
    fn forget(&self, drive: usize, id: RequestId) {
        let queue = &mut self.queues.borrow_mut()[drive];
        let given = &mut self.given.borrow_mut()[drive];
        if *given && queue.first().is_some_and(|first| first.request == id) {
            queue.remove(0);
            *given = false;
        }
    }
}

impl Driver for VmeDriver {
    async fn strategy(&self, kernel: &Kernel, context: Context<'_>, id: RequestId) {
        let level = kernel.processor.mask(&kernel.sim, BIO);
        kernel
            .spend(context, Stage::Driver, self.config.strategy)
            .await;
        {
            let mut hardware = kernel.hardware.borrow_mut();
            let request = &mut hardware.requests[id];
            request.mark(Stage::Driver, moment(kernel.sim.now()));
            let drive = request.device;
            let queue = &mut self.queues.borrow_mut()[drive];
            disksort::insert(self.config.order, queue, Queued::of(&hardware, id));
        }
        self.give_commands(kernel, context).await;
        kernel.unmask(context, level).await;
    }

    fn start(self: Rc<Self>, kernel: &Rc<Kernel>) {
        let handler = Rc::clone(&self).interrupts(Rc::clone(kernel));
        kernel.serve(self.controller, handler);
    }
}

impl VmeDriver {
    /// Gives the controller as many commands as it is to have.
    async fn give_commands(&self, kernel: &Kernel, context: Context<'_>) {
        assert!(
            !self.starting.replace(true),
            "the level masks the interrupt"
        );
        loop {
            let outstanding = kernel.ask(self.controller, |controller, _| controller.outstanding());
            let takes = self.config.commands.is_none_or(|most| outstanding < most);
            let Some(id) = takes.then(|| self.next()).flatten() else {
                break;
            };
            kernel.mark(id, Stage::DriverQueue);
            kernel
                .spend(context, Stage::Driver, self.config.start)
                .await;
            kernel.mark(id, Stage::Driver);
            let around = kernel.surroundings();
            kernel.ask(self.controller, |controller, parts| {
                controller.command(&around, parts, id);
            });
        }
        self.starting.set(false);
    }

    /// Serves the controller's interrupts for ever.
    async fn interrupts(self: Rc<Self>, kernel: Rc<Kernel>) {
        let kernel = &*kernel;
        loop {
            while !kernel.ask(self.controller, |controller, _| controller.interrupts()) {
                kernel.sim.wait("an interrupt of the controller").await;
            }
            kernel.processor.enter(&kernel.sim, BIO).await;
            kernel
                .spend(Context::Handler, Stage::Interrupt, kernel.costs.interrupt)
                .await;
            while let Some(done) =
                kernel.ask(self.controller, |controller, _| controller.take_done())
            {
                kernel
                    .spend(Context::Handler, Stage::Driver, self.config.complete)
                    .await;
                let drive = kernel.hardware.borrow().requests[done].device;
                self.forget(drive, done);
                kernel.completed(done);
            }
            self.give_commands(kernel, Context::Handler).await;
            kernel.processor.leave(&kernel.sim);
        }
    }
}

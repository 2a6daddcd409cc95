//! The driver of the UDA50 (uda.c of July 1983): no order of its own, as many
//! commands as the controller grants.

use super::hardware::Uda50;
use crate::hardware::{RequestId, moment};
use crate::kernel::Kernel;
use crate::kernel::driver::QueueOrder;
use crate::kernel::process::{BIO, Context};
use crate::parts::{Driver, Id};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The driver's costs.
#[derive(Clone, Debug)]
pub struct UdaConfig {
    /// See [`QueueOrder`]; of its rules only that of reads before writes means
    /// anything to this driver.
    pub order: QueueOrder,
    /// Queueing a request, making a command of it and giving that to the
    /// controller.
    pub start: Time,
    /// Seeing to a response.
    pub complete: Time,
}

/// The driver.
pub(crate) struct Uda {
    config: UdaConfig,
    /// Its controller.
    controller: Id<Uda50>,
    /// Of each drive, what the controller has not been given.
    queues: RefCell<Vec<VecDeque<RequestId>>>,
    /// The drive that is looked at first next time.
    turn: Cell<usize>,
    /// Whether somebody is giving commands already.
    starting: Cell<bool>,
}

impl Uda {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: UdaConfig, controller: Id<Uda50>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![VecDeque::new(); drives]),
            turn: Cell::new(0),
            starting: Cell::new(false),
        }
    }

    /// The next request, drives in turn.
    fn next(&self) -> Option<RequestId> {
        let mut queues = self.queues.borrow_mut();
        let drives = queues.len();
        for step in 0..drives {
            let drive = (self.turn.get() + step) % drives;
            if let Some(id) = queues[drive].pop_front() {
                self.turn.set((drive + 1) % drives);
                return Some(id);
            }
        }
        None
    }
}

impl Driver for Uda {
    async fn strategy(&self, kernel: &Kernel, context: Context<'_>, id: RequestId) {
        let level = kernel.processor.mask(&kernel.sim, BIO);
        {
            let mut hardware = kernel.hardware.borrow_mut();
            let transfer = &mut hardware.requests[id];
            transfer.mark(Stage::Driver, moment(kernel.sim.now()));
            let (drive, write) = (transfer.device, transfer.is_write());
            let queue = &mut self.queues.borrow_mut()[drive];
            let first_write = || {
                let is_write = |queued: &RequestId| hardware.requests[*queued].is_write();
                queue.iter().position(is_write)
            };
            let place = match self.config.order {
                QueueOrder::ReadsFirst if !write => first_write(),
                // Scanning is left to the controller.
                QueueOrder::ReadsFirst | QueueOrder::Scan | QueueOrder::Arrival => None,
            };
            let place = place.unwrap_or(queue.len());
            queue.insert(place, id);
        }
        self.give_commands(kernel, context).await;
        kernel.unmask(context, level).await;
    }

    fn start(self: Rc<Self>, kernel: &Rc<Kernel>) {
        let handler = Rc::clone(&self).interrupts(Rc::clone(kernel));
        kernel.serve(self.controller, handler);
    }
}

impl Uda {
    /// Gives the controller as many commands as it takes.
    async fn give_commands(&self, kernel: &Kernel, context: Context<'_>) {
        assert!(
            !self.starting.replace(true),
            "the level masks the interrupt"
        );
        loop {
            let takes = kernel.ask(self.controller, |uda50, _| uda50.takes_commands());
            let Some(id) = takes.then(|| self.next()).flatten() else {
                break;
            };
            kernel.mark(id, Stage::DriverQueue);
            kernel
                .spend(context, Stage::Driver, self.config.start)
                .await;
            kernel.mark(id, Stage::Driver);
            let around = kernel.surroundings();
            kernel.ask(self.controller, |uda50, parts| {
                uda50.command(&around, parts, id)
            });
        }
        self.starting.set(false);
    }

    /// Serves the controller's interrupts for ever.
    async fn interrupts(self: Rc<Self>, kernel: Rc<Kernel>) {
        let kernel = &*kernel;
        loop {
            while !kernel.ask(self.controller, |uda50, _| uda50.interrupts()) {
                kernel.sim.wait("an interrupt of the controller").await;
            }
            kernel.processor.enter(&kernel.sim, BIO).await;
            kernel
                .spend(Context::Handler, Stage::Interrupt, kernel.costs.interrupt)
                .await;
            while let Some(id) = kernel.ask(self.controller, |uda50, _| uda50.take_done()) {
                kernel
                    .spend(Context::Handler, Stage::Driver, self.config.complete)
                    .await;
                kernel.completed(id);
            }
            self.give_commands(kernel, Context::Handler).await;
            kernel.processor.leave(&kernel.sim);
        }
    }
}

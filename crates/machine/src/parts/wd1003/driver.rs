//! The driver of a PC-AT's disks: one command at a time, and the processor
//! moves every word of every sector itself, in the handler.

use super::hardware::{Asks, Wd1003};
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

/// The driver's costs.
#[derive(Clone, Debug)]
pub struct HdConfig {
    /// See [`QueueOrder`].
    pub order: QueueOrder,
    /// Queueing a request.
    pub strategy: Time,
    /// Loading the controller's registers.
    pub start: Time,
    /// Moving one sector through the controller's data register.
    pub move_sector: Time,
    /// Seeing to a transfer that has ended.
    pub complete: Time,
}

/// The driver.
pub(crate) struct Hd {
    config: HdConfig,
    /// Its controller.
    controller: Id<Wd1003>,
    /// Of each drive; the first of the drive being served is under way.
    queues: RefCell<Vec<Queue>>,
    /// The drive that is looked at first next time.
    turn: Cell<usize>,
}

impl Hd {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: HdConfig, controller: Id<Wd1003>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![Queue::new(); drives]),
            turn: Cell::new(0),
        }
    }

    /// The first request of the next drive that has any, drives in turn.
    fn next(&self) -> Option<RequestId> {
        let queues = self.queues.borrow();
        let drives = queues.len();
        let place = (0..drives)
            .map(|step| (self.turn.get() + step) % drives)
            .find(|drive| !queues[*drive].is_empty())?;
        self.turn.set((place + 1) % drives);
        queues[place].first().map(|queued| queued.request)
    }
}

impl Driver for Hd {
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
        self.give_command(kernel, context).await;
        kernel.unmask(context, level).await;
    }

    fn start(self: Rc<Self>, kernel: &Rc<Kernel>) {
        let handler = Rc::clone(&self).interrupts(Rc::clone(kernel));
        kernel.serve(self.controller, handler);
    }
}

impl Hd {
    /// Gives the controller, if it is free, its next command.
    async fn give_command(&self, kernel: &Kernel, context: Context<'_>) {
        if !kernel.ask(self.controller, |controller, _| controller.is_idle()) {
            return;
        }
        let Some(id) = self.next() else { return };
        kernel.mark(id, Stage::DriverQueue);
        kernel
            .spend(context, Stage::Driver, self.config.start)
            .await;
        kernel.mark(id, Stage::Driver);
        let around = kernel.surroundings();
        kernel.ask(self.controller, |controller, parts| {
            controller.command(&around, parts, id)
        });
        // The first sector to write is brought without an interrupt.
        let asks = kernel.ask(self.controller, |controller, parts| controller.asks(parts));
        if let Some(Asks::Bring { .. }) = asks {
            kernel
                .spend(context, Stage::Driver, self.config.move_sector)
                .await;
            kernel.ask(self.controller, |controller, parts| {
                controller.brought(&around, parts)
            });
        }
    }

    /// Serves the controller's interrupts for ever.
    async fn interrupts(self: Rc<Self>, kernel: Rc<Kernel>) {
        let kernel = &*kernel;
        let around = kernel.surroundings();
        loop {
            let asks = loop {
                match kernel.ask(self.controller, |controller, parts| controller.asks(parts)) {
                    Some(asks) => break asks,
                    None => kernel.sim.wait("an interrupt of the controller").await,
                }
            };
            kernel.processor.enter(&kernel.sim, BIO).await;
            kernel
                .spend(Context::Handler, Stage::Interrupt, kernel.costs.interrupt)
                .await;
            match asks {
                Asks::Fetch { transfer, last } => {
                    self.move_sector(kernel).await;
                    kernel.ask(self.controller, |controller, parts| {
                        controller.fetched(&around, parts)
                    });
                    if last {
                        self.done(kernel, transfer).await;
                    }
                }
                Asks::Bring { .. } => {
                    self.move_sector(kernel).await;
                    kernel.ask(self.controller, |controller, parts| {
                        controller.brought(&around, parts)
                    });
                }
                Asks::Nothing { transfer } => {
                    kernel.ask(self.controller, |controller, _| controller.acknowledge());
                    self.done(kernel, transfer).await;
                }
            }
            kernel.processor.leave(&kernel.sim);
        }
    }

    async fn move_sector(&self, kernel: &Kernel) {
        kernel
            .spend(Context::Handler, Stage::Driver, self.config.move_sector)
            .await;
    }

    /// A transfer has ended: the next one is started before anybody is told.
    async fn done(&self, kernel: &Kernel, id: RequestId) {
        kernel
            .spend(Context::Handler, Stage::Driver, self.config.complete)
            .await;
        let drive = kernel.hardware.borrow().requests[id].device;
        let first = self.queues.borrow_mut()[drive].remove(0);
        assert!(
            first.request == id,
            "the first of the queue was transferred"
        );
        kernel.completed(id);
        self.give_command(kernel, Context::Handler).await;
    }
}

//! The driver of the UDA50 (uda.c of July 1983): no order of its own, as many
//! commands as the controller grants.

use super::QueueOrder;
use crate::hardware::{RequestId, moment};
use crate::kernel::Kernel;
use crate::kernel::process::{BIO, Context};
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
    pub(crate) config: UdaConfig,
    /// The number of its controller.
    controller: usize,
    /// Of each drive, what the controller has not been given.
    queues: RefCell<Vec<VecDeque<RequestId>>>,
    /// The drive that is looked at first next time.
    turn: Cell<usize>,
    /// Whether somebody is giving commands already.
    starting: Cell<bool>,
}

impl Uda {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: UdaConfig, controller: usize, drives: usize) -> Self {
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

impl Kernel {
    pub(super) async fn uda_strategy(&self, uda: &Uda, context: Context<'_>, id: RequestId) {
        let level = self.processor.mask(&self.sim, BIO);
        {
            let mut hardware = self.hardware.borrow_mut();
            let transfer = &mut hardware.requests[id];
            transfer.mark(Stage::Driver, moment(self.sim.now()));
            let (drive, write) = (transfer.device, transfer.is_write());
            let queue = &mut uda.queues.borrow_mut()[drive];
            let first_write = || {
                let is_write = |queued: &RequestId| hardware.requests[*queued].is_write();
                queue.iter().position(is_write)
            };
            let place = match uda.config.order {
                QueueOrder::ReadsFirst if !write => first_write(),
                // Scanning is left to the controller.
                QueueOrder::ReadsFirst | QueueOrder::Scan | QueueOrder::Arrival => None,
            };
            let place = place.unwrap_or(queue.len());
            queue.insert(place, id);
        }
        self.uda_start(uda, context).await;
        self.unmask(context, level).await;
    }

    /// Gives the controller as many commands as it takes.
    async fn uda_start(&self, uda: &Uda, context: Context<'_>) {
        assert!(!uda.starting.replace(true), "the level masks the interrupt");
        loop {
            let takes = self.hardware.borrow_mut().controllers[uda.controller]
                .uda50()
                .takes_commands();
            let Some(id) = takes.then(|| uda.next()).flatten() else {
                break;
            };
            self.mark(id, Stage::DriverQueue);
            self.spend(context, Stage::Driver, uda.config.start).await;
            self.mark(id, Stage::Driver);
            let mut hardware = self.hardware.borrow_mut();
            let (controller, mut parts) = hardware.controller(uda.controller);
            let around = self.surroundings();
            controller.uda50().command(&around, &mut parts, id);
        }
        uda.starting.set(false);
    }

    /// Serves the controller's interrupts for ever.
    pub(crate) async fn uda_interrupts(self: Rc<Self>, number: usize) {
        let super::Driver::Uda(uda) = &self.drivers[number] else {
            panic!("the uda driver serves the UDA50")
        };
        loop {
            while !self.uda_interrupts_now(uda) {
                self.sim.wait("an interrupt of the controller").await;
            }
            self.processor.enter(&self.sim, BIO).await;
            self.spend(Context::Handler, Stage::Interrupt, self.costs.interrupt)
                .await;
            while let Some(id) = self.uda_take_done(uda) {
                self.spend(Context::Handler, Stage::Driver, uda.config.complete)
                    .await;
                self.completed(id);
            }
            self.uda_start(uda, Context::Handler).await;
            self.processor.leave(&self.sim);
        }
    }

    fn uda_interrupts_now(&self, uda: &Uda) -> bool {
        self.hardware.borrow_mut().controllers[uda.controller]
            .uda50()
            .interrupts()
    }

    fn uda_take_done(&self, uda: &Uda) -> Option<RequestId> {
        self.hardware.borrow_mut().controllers[uda.controller]
            .uda50()
            .take_done()
    }
}

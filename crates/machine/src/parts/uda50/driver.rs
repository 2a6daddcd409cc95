//! The driver of the UDA50 (uda.c of July 1983): no order of its own, as many
//! commands as the controller grants.

use super::hardware::Uda50;
use crate::hardware::Hardware;
use crate::id::Id;
use crate::kernel::Unix;
use crate::kernel::driver::giving::{Giving, Turns};
use crate::kernel::driver::{Driver, QueueOrder};
use crate::kernel::process::Context;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

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
    turns: Turns,
    giving: Giving,
}

impl Uda {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: UdaConfig, controller: Id<Uda50>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![VecDeque::new(); drives]),
            turns: Turns::default(),
            giving: Giving::default(),
        }
    }

    /// Gives the controller as many commands as it takes, drives in turn.
    async fn give_commands(&self, kernel: &Unix, context: Context<'_>) {
        let next = || {
            let takes = kernel.ask(self.controller, |uda50, _| uda50.takes_commands());
            let queues = &mut *self.queues.borrow_mut();
            let drives = if takes { queues.len() } else { 0 };
            self.turns.find(drives, |drive| queues[drive].pop_front())
        };
        let around = kernel.surroundings();
        let give = |id| {
            kernel.ask(self.controller, |uda50, parts| {
                uda50.command(&around, parts, id);
            });
        };
        let place = (kernel, context);
        self.giving.all(place, self.config.start, next, give).await;
    }
}

impl Driver for Uda {
    type Controller = Uda50;

    fn controllers(&self) -> Vec<Id<Uda50>> {
        vec![self.controller]
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn insert(&self, hardware: &Hardware, id: RequestId) {
        let request = &hardware.requests[id];
        let queue = &mut self.queues.borrow_mut()[request.device];
        let is_write = |queued: &RequestId| hardware.requests[*queued].is_write();
        let place = match self.config.order {
            QueueOrder::ReadsFirst if !request.is_write() => queue.iter().position(is_write),
            // Scanning is left to the controller.
            QueueOrder::ReadsFirst | QueueOrder::Scan | QueueOrder::Arrival => None,
        };
        queue.insert(place.unwrap_or(queue.len()), id);
    }

    async fn give(&self, kernel: &Unix, context: Context<'_>, _drive: usize) {
        self.give_commands(kernel, context).await;
    }

    async fn interrupt(&self, kernel: &Unix, controller: Id<Uda50>) {
        while let Some(id) = kernel.ask(controller, |uda50, _| uda50.take_done()) {
            kernel
                .spend(Context::Handler, Stage::Driver, self.config.complete)
                .await;
            kernel.completed(id);
        }
        self.give_commands(kernel, Context::Handler).await;
    }
}

//! Driver of the UDA50 (uda.c of July 1983). It has no request order of its own, and submits as
//! many commands as the controller grants.

use super::hardware::Uda50;
use crate::driver::giving::{Giving, Turns};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Processor costs and request order of the uda driver.
#[derive(Clone, Debug)]
pub struct UdaConfig {
    /// Request order; see [`QueueOrder`]. Only the order of reads before writes has an effect on
    /// this driver.
    pub order: QueueOrder,
    /// Processor time to queue a request, build its command and submit it to the controller.
    pub start: Time,
    /// Processor time to handle a response.
    pub complete: Time,
}

/// Driver of a UDA50, with the requests that wait for it.
pub(crate) struct Uda {
    config: UdaConfig,
    controller: Id<Uda50>,
    queues: RefCell<Vec<VecDeque<RequestId>>>,
    turns: Turns,
    giving: Giving,
}

impl Uda {
    /// Returns the driver of a UDA50, on a computer with the given number of drives.
    pub(crate) fn new(config: UdaConfig, controller: Id<Uda50>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![VecDeque::new(); drives]),
            turns: Turns::default(),
            giving: Giving::default(),
        }
    }

    async fn give_commands(&self, host: &impl DriverHost) {
        let next = || {
            let takes = host.ask(self.controller, |uda50, _| uda50.takes_commands());
            let queues = &mut *self.queues.borrow_mut();
            let drives = if takes { queues.len() } else { 0 };
            self.turns.find(drives, |drive| queues[drive].pop_front())
        };
        let around = host.surroundings();
        let give = |id| {
            host.ask(self.controller, |uda50, parts| {
                uda50.command(&around, parts, id);
            });
        };
        self.giving.all(host, self.config.start, next, give).await;
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

    async fn give(&self, host: &impl DriverHost, _drive: usize) {
        self.give_commands(host).await;
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Uda50>) {
        while let Some(id) = host.ask(controller, |uda50, _| uda50.take_done()) {
            host.spend(Stage::Driver, self.config.complete).await;
            host.completed(id);
        }
        self.give_commands(host).await;
    }
}

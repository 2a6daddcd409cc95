//! Drivers of VMEbus controllers by Sun and others (xy, ip, rf). The board receives a limited
//! number of commands at a time, and the other requests wait in the driver's queue of each drive.
//! The driver of the Multibus II board has no queue.

use super::hardware::Vme;
use crate::driver::disksort::{self, Queue};
use crate::driver::giving::{Giving, Turns};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Start of the upward scan over a drive's cylinders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanFrom {
    /// Scan from the request in the controller. It stays at the head of the queue until it has
    /// ended, as in 4.2BSD's drivers. A program that continues at the current head position is
    /// served before all others.
    Active,
    /// Scan from the first waiting request. A request leaves the queue when the controller receives
    /// it. If two programs alternate, neither overtakes the other.
    Waiting,
}

/// Constants and costs of a VMEbus controller's driver.
#[derive(Clone, Debug)]
pub struct VmeDriverConfig {
    /// Request order; see [`QueueOrder`].
    pub order: QueueOrder,
    /// Start of the upward scan of a request queue; see [`ScanFrom`].
    pub scan_from: ScanFrom,
    /// Maximum number of commands in the controller. None means no limit.
    pub commands: Option<u32>,
    /// Processor time to queue a request.
    pub strategy: Time,
    /// Processor time to build a command and submit it to the controller.
    pub start: Time,
    /// Processor time to handle the end of a command.
    pub complete: Time,
}

/// Driver of a VMEbus controller, with the request queue of each drive.
pub(crate) struct VmeDriver {
    config: VmeDriverConfig,
    controller: Id<Vme>,
    /// Request queue of each drive. If the scan starts at the active request, the last submitted
    /// request is the first one.
    queues: RefCell<Vec<Queue>>,
    /// Whether the first request of each drive's queue has been submitted to the controller.
    given: RefCell<Vec<bool>>,
    turns: Turns,
    giving: Giving,
}

impl VmeDriver {
    /// Returns the driver of a VMEbus controller, on a computer with the given number of drives.
    pub(crate) fn new(config: VmeDriverConfig, controller: Id<Vme>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![Queue::new(); drives]),
            given: RefCell::new(vec![false; drives]),
            turns: Turns::default(),
            giving: Giving::default(),
        }
    }

    fn next(&self) -> Option<RequestId> {
        let mut queues = self.queues.borrow_mut();
        let mut given = self.given.borrow_mut();
        self.turns.find(queues.len(), |drive| {
            let queue = &mut queues[drive];
            if given[drive] && queue.len() > 1 {
                queue.remove(0);
                given[drive] = false;
            }
            if given[drive] || queue.is_empty() {
                return None;
            }
            Some(match self.config.scan_from {
                ScanFrom::Waiting => queue.remove(0).request,
                ScanFrom::Active => {
                    given[drive] = true;
                    queue[0].request
                }
            })
        })
    }

    /// Removes a completed request from the head of its drive's queue, if it is there. The scan
    /// then starts afresh.
    fn forget(&self, drive: usize, id: RequestId) {
        let queue = &mut self.queues.borrow_mut()[drive];
        let given = &mut self.given.borrow_mut()[drive];
        if *given && queue.first().is_some_and(|first| first.request == id) {
            queue.remove(0);
            *given = false;
        }
    }

    async fn give_commands(&self, host: &impl DriverHost) {
        let next = || {
            let outstanding = host.ask(self.controller, |vme, _| vme.outstanding());
            let takes = self.config.commands.is_none_or(|most| outstanding < most);
            takes.then(|| self.next()).flatten()
        };
        let around = host.surroundings();
        let give = |id| {
            host.ask(self.controller, |vme, parts| {
                vme.command(&around, parts, id)
            })
        };
        self.giving.all(host, self.config.start, next, give).await;
    }
}

impl Driver for VmeDriver {
    type Controller = Vme;

    fn controllers(&self) -> Vec<Id<Vme>> {
        vec![self.controller]
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        Some(self.config.strategy)
    }

    fn insert(&self, hardware: &Hardware, id: RequestId) {
        let queue = &mut self.queues.borrow_mut()[hardware.requests[id].device];
        disksort::queue(self.config.order, queue, (hardware, id));
    }

    async fn give(&self, host: &impl DriverHost, _drive: usize) {
        self.give_commands(host).await;
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Vme>) {
        while let Some(done) = host.ask(controller, |vme, _| vme.take_done()) {
            host.spend(Stage::Driver, self.config.complete).await;
            let drive = host.hardware().borrow().requests[done].device;
            self.forget(drive, done);
            host.completed(done);
        }
        self.give_commands(host).await;
    }
}

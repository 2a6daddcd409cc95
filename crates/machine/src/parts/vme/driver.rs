//! The drivers of Sun's and of others' VMEbus controllers (xy, ip, rf): as many
//! commands at a time as the board is given, and the rest in a queue of the
//! driver's own, by drive; or, as the Multibus II board's, no queue at all.

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
    turns: Turns,
    giving: Giving,
}

impl VmeDriver {
    /// The driver of this controller, on a computer of so many drives.
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

    /// The next request, drives in turn.
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

    /// Gives the controller as many commands as it is to have.
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

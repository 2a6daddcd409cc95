//! The drivers of Sun's and of others' VMEbus controllers (xy, ip, rf): as many
//! commands at a time as the board is given, and the rest in a queue of the
//! driver's own, by drive; or, as the Multibus II board's, no queue at all.

use super::QueueOrder;
use super::disksort::{self, Queue, Queued};
use crate::hardware::controller::vme::Vme;
use crate::hardware::{Parts, RequestId, moment};
use crate::kernel::Kernel;
use crate::kernel::process::{BIO, Context};
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
    pub(crate) config: VmeDriverConfig,
    /// The number of its controller.
    pub(crate) controller: usize,
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
    pub(crate) fn new(config: VmeDriverConfig, controller: usize, drives: usize) -> Self {
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

impl Kernel {
    pub(super) async fn vme_strategy(
        &self,
        driver: &VmeDriver,
        context: Context<'_>,
        id: RequestId,
    ) {
        let level = self.processor.mask(&self.sim, BIO);
        self.spend(context, Stage::Driver, driver.config.strategy)
            .await;
        {
            let mut hardware = self.hardware.borrow_mut();
            let request = &mut hardware.requests[id];
            request.mark(Stage::Driver, moment(self.sim.now()));
            let drive = request.device;
            let queue = &mut driver.queues.borrow_mut()[drive];
            disksort::insert(driver.config.order, queue, Queued::of(&hardware, id));
        }
        self.vme_start(driver, context).await;
        self.unmask(context, level).await;
    }

    /// Gives the controller as many commands as it is to have.
    async fn vme_start(&self, driver: &VmeDriver, context: Context<'_>) {
        assert!(
            !driver.starting.replace(true),
            "the level masks the interrupt"
        );
        loop {
            let outstanding = self.vme(driver, |controller, _| controller.outstanding());
            let takes = driver.config.commands.is_none_or(|most| outstanding < most);
            let Some(id) = takes.then(|| driver.next()).flatten() else {
                break;
            };
            self.mark(id, Stage::DriverQueue);
            self.spend(context, Stage::Driver, driver.config.start)
                .await;
            self.mark(id, Stage::Driver);
            let around = self.surroundings();
            self.vme(driver, |controller, parts| {
                controller.command(&around, parts, id);
            });
        }
        driver.starting.set(false);
    }

    /// Serves the controller's interrupts for ever.
    pub(crate) async fn vme_interrupts(self: Rc<Self>, number: usize) {
        let super::Driver::Vme(driver) = &self.drivers[number] else {
            panic!("the vme driver serves controllers for the VMEbus")
        };
        loop {
            while !self.vme(driver, |controller, _| controller.interrupts()) {
                self.sim.wait("an interrupt of the controller").await;
            }
            self.processor.enter(&self.sim, BIO).await;
            self.spend(Context::Handler, Stage::Interrupt, self.costs.interrupt)
                .await;
            while let Some(done) = self.vme(driver, |controller, _| controller.take_done()) {
                self.spend(Context::Handler, Stage::Driver, driver.config.complete)
                    .await;
                let drive = self.hardware.borrow().requests[done].device;
                driver.forget(drive, done);
                self.completed(done);
            }
            self.vme_start(driver, Context::Handler).await;
            self.processor.leave(&self.sim);
        }
    }

    fn vme<T>(&self, driver: &VmeDriver, ask: impl FnOnce(&mut Vme, &mut Parts<'_>) -> T) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(driver.controller);
        ask(controller.vme(), &mut parts)
    }
}

//! The driver of a PC-AT's disks: one command at a time, and the processor
//! moves every word of every sector itself, in the handler.

use super::QueueOrder;
use super::disksort::{self, Queue, Queued};
use crate::hardware::controller::wd1003::{Asks, Wd1003};
use crate::hardware::{Parts, RequestId, moment};
use crate::kernel::Kernel;
use crate::kernel::process::{BIO, Context};
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
    pub(crate) config: HdConfig,
    /// The number of its controller.
    controller: usize,
    /// Of each drive; the first of the drive being served is under way.
    queues: RefCell<Vec<Queue>>,
    /// The drive that is looked at first next time.
    turn: Cell<usize>,
}

impl Hd {
    /// The driver of this controller, on a computer of so many drives.
    pub(crate) fn new(config: HdConfig, controller: usize, drives: usize) -> Self {
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

impl Kernel {
    pub(super) async fn hd_strategy(&self, hd: &Hd, context: Context<'_>, id: RequestId) {
        let level = self.processor.mask(&self.sim, BIO);
        self.spend(context, Stage::Driver, hd.config.strategy).await;
        {
            let mut hardware = self.hardware.borrow_mut();
            let request = &mut hardware.requests[id];
            request.mark(Stage::Driver, moment(self.sim.now()));
            let drive = request.device;
            let queue = &mut hd.queues.borrow_mut()[drive];
            disksort::insert(hd.config.order, queue, Queued::of(&hardware, id));
        }
        self.hd_start(hd, context).await;
        self.unmask(context, level).await;
    }

    /// Gives the controller, if it is free, its next command.
    async fn hd_start(&self, hd: &Hd, context: Context<'_>) {
        if !self.wd1003(hd, |controller, _| controller.is_idle()) {
            return;
        }
        let Some(id) = hd.next() else { return };
        self.mark(id, Stage::DriverQueue);
        self.spend(context, Stage::Driver, hd.config.start).await;
        self.mark(id, Stage::Driver);
        let around = self.surroundings();
        self.wd1003(hd, |controller, parts| {
            controller.command(&around, parts, id)
        });
        // The first sector to write is brought without an interrupt.
        let asks = self.wd1003(hd, |controller, parts| controller.asks(parts));
        if let Some(Asks::Bring { .. }) = asks {
            self.spend(context, Stage::Driver, hd.config.move_sector)
                .await;
            self.wd1003(hd, |controller, parts| controller.brought(&around, parts));
        }
    }

    /// Serves the controller's interrupts for ever.
    pub(crate) async fn hd_interrupts(self: Rc<Self>, number: usize) {
        let super::Driver::Hd(hd) = &self.drivers[number] else {
            panic!("the hd driver serves the WD1003")
        };
        let around = self.surroundings();
        loop {
            let asks = loop {
                match self.wd1003(hd, |controller, parts| controller.asks(parts)) {
                    Some(asks) => break asks,
                    None => self.sim.wait("an interrupt of the controller").await,
                }
            };
            self.processor.enter(&self.sim, BIO).await;
            self.spend(Context::Handler, Stage::Interrupt, self.costs.interrupt)
                .await;
            match asks {
                Asks::Fetch { transfer, last } => {
                    self.hd_move_sector(hd).await;
                    self.wd1003(hd, |controller, parts| controller.fetched(&around, parts));
                    if last {
                        self.hd_done(hd, transfer).await;
                    }
                }
                Asks::Bring { .. } => {
                    self.hd_move_sector(hd).await;
                    self.wd1003(hd, |controller, parts| controller.brought(&around, parts));
                }
                Asks::Nothing { transfer } => {
                    self.wd1003(hd, |controller, _| controller.acknowledge());
                    self.hd_done(hd, transfer).await;
                }
            }
            self.processor.leave(&self.sim);
        }
    }

    async fn hd_move_sector(&self, hd: &Hd) {
        self.spend(Context::Handler, Stage::Driver, hd.config.move_sector)
            .await;
    }

    /// A transfer has ended: the next one is started before anybody is told.
    async fn hd_done(&self, hd: &Hd, id: RequestId) {
        self.spend(Context::Handler, Stage::Driver, hd.config.complete)
            .await;
        let drive = self.hardware.borrow().requests[id].device;
        let first = hd.queues.borrow_mut()[drive].remove(0);
        assert!(
            first.request == id,
            "the first of the queue was transferred"
        );
        self.completed(id);
        self.hd_start(hd, Context::Handler).await;
    }

    fn wd1003<T>(&self, hd: &Hd, ask: impl FnOnce(&mut Wd1003, &mut Parts<'_>) -> T) -> T {
        let mut hardware = self.hardware.borrow_mut();
        let (controller, mut parts) = hardware.controller(hd.controller);
        ask(controller.wd1003(), &mut parts)
    }
}

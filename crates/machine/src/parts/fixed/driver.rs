//! A driver with no order of its own: the device is given as much as it takes, and the
//! rest waits as it came.

use super::hardware::Fixed;
use crate::hardware::RequestId;
use crate::kernel::Kernel;
use crate::kernel::process::{BIO, Context};
use crate::parts::{Driver, Id};
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;

/// The driver's costs.
#[derive(Clone, Debug)]
pub struct FixedDriverConfig {
    /// Queueing a request, and giving it to the device.
    pub start: Time,
    /// Seeing to a request that is done.
    pub complete: Time,
}

/// The driver.
pub(crate) struct FixedDriver {
    config: FixedDriverConfig,
    units: Vec<Unit>,
}

/// A device, as its driver sees it.
struct Unit {
    number: usize,
    device: Id<Fixed>,
    /// What it has not been given.
    waiting: RefCell<VecDeque<RequestId>>,
    /// Whether somebody is giving it requests already.
    starting: Cell<bool>,
}

impl Driver for FixedDriver {
    async fn strategy(&self, kernel: &Kernel, context: Context<'_>, id: RequestId) {
        let level = kernel.processor.mask(&kernel.sim, BIO);
        kernel.mark(id, Stage::Driver);
        let number = kernel.hardware.borrow().requests[id].device;
        let unit = self.units.iter().find(|unit| unit.number == number);
        let unit = unit.expect("the device is one of this driver's");
        unit.waiting.borrow_mut().push_back(id);
        self.give(kernel, context, unit).await;
        kernel.unmask(context, level).await;
    }

    fn start(self: Rc<Self>, kernel: &Rc<Kernel>) {
        for (place, unit) in self.units.iter().enumerate() {
            let handler = Rc::clone(&self).interrupts(Rc::clone(kernel), place);
            kernel.serve(unit.device, handler);
        }
    }
}

impl FixedDriver {
    /// The driver of these devices, each with its number on the computer.
    pub(super) fn new(
        config: FixedDriverConfig,
        devices: impl Iterator<Item = (usize, Id<Fixed>)>,
    ) -> Self {
        let unit = |(number, device)| Unit {
            number,
            device,
            waiting: RefCell::default(),
            starting: Cell::new(false),
        };
        Self {
            config,
            units: devices.map(unit).collect(),
        }
    }

    /// Gives a device as many requests as it takes.
    async fn give(&self, kernel: &Kernel, context: Context<'_>, unit: &Unit) {
        assert!(
            !unit.starting.replace(true),
            "the level masks the interrupt"
        );
        loop {
            let takes = kernel.ask(unit.device, |fixed, _| fixed.takes_requests());
            let next = || unit.waiting.borrow_mut().pop_front();
            let Some(id) = takes.then(next).flatten() else {
                break;
            };
            kernel.mark(id, Stage::DriverQueue);
            kernel
                .spend(context, Stage::Driver, self.config.start)
                .await;
            kernel.mark(id, Stage::Driver);
            let around = kernel.surroundings();
            kernel.ask(unit.device, |fixed, parts| {
                fixed.take(&around, parts, id);
            });
        }
        unit.starting.set(false);
    }

    /// Serves a device's interrupts for ever.
    async fn interrupts(self: Rc<Self>, kernel: Rc<Kernel>, place: usize) {
        let (kernel, unit) = (&*kernel, &self.units[place]);
        loop {
            while !kernel.ask(unit.device, |fixed, _| fixed.interrupts()) {
                kernel.sim.wait("an interrupt of the device").await;
            }
            kernel.processor.enter(&kernel.sim, BIO).await;
            kernel
                .spend(Context::Handler, Stage::Interrupt, kernel.costs.interrupt)
                .await;
            while let Some(id) = kernel.ask(unit.device, |fixed, _| fixed.take_done()) {
                kernel
                    .spend(Context::Handler, Stage::Driver, self.config.complete)
                    .await;
                kernel.completed(id);
            }
            self.give(kernel, Context::Handler, unit).await;
            kernel.processor.leave(&kernel.sim);
        }
    }
}

//! A driver with no order of its own: the device is given as much as it takes, and the
//! rest waits as it came.

use super::hardware::Direct;
use crate::driver::giving::Giving;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// The driver's costs.
#[derive(Clone, Debug)]
pub struct DirectDriverConfig {
    /// Queueing a request, and giving it to the device.
    pub start: Time,
    /// Seeing to a request that is done.
    pub complete: Time,
}

/// The driver.
pub(crate) struct DirectDriver {
    config: DirectDriverConfig,
    units: Vec<Unit>,
}

/// A device, as its driver sees it.
struct Unit {
    number: usize,
    connection: Id<Direct>,
    /// What it has not been given.
    waiting: RefCell<VecDeque<RequestId>>,
    giving: Giving,
}

impl Driver for DirectDriver {
    type Controller = Direct;

    fn controllers(&self) -> Vec<Id<Direct>> {
        self.units.iter().map(|unit| unit.connection).collect()
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn insert(&self, hardware: &Hardware, id: RequestId) {
        let unit = self.unit(|unit| unit.number == hardware.requests[id].device);
        unit.waiting.borrow_mut().push_back(id);
    }

    async fn give(&self, host: &impl DriverHost, drive: usize) {
        let unit = self.unit(|unit| unit.number == drive);
        self.give_to(host, unit).await;
    }

    async fn interrupt(&self, host: &impl DriverHost, connection: Id<Direct>) {
        while let Some(id) = host.ask(connection, |direct, parts| direct.take_done(parts)) {
            host.spend(Stage::Driver, self.config.complete).await;
            host.completed(id);
        }
        let unit = self.unit(|unit| unit.connection == connection);
        self.give_to(host, unit).await;
    }
}

impl DirectDriver {
    /// The driver of these devices, each with its number on the computer.
    pub(super) fn new(
        config: DirectDriverConfig,
        devices: impl Iterator<Item = (usize, Id<Direct>)>,
    ) -> Self {
        let unit = |(number, connection)| Unit {
            number,
            connection,
            waiting: RefCell::default(),
            giving: Giving::default(),
        };
        Self {
            config,
            units: devices.map(unit).collect(),
        }
    }

    fn unit(&self, is_it: impl Fn(&Unit) -> bool) -> &Unit {
        let unit = self.units.iter().find(|unit| is_it(unit));
        unit.expect("the device is one of this driver's")
    }

    /// Gives a device as many requests as it takes.
    async fn give_to(&self, host: &impl DriverHost, unit: &Unit) {
        let next = || {
            let takes = host.ask(unit.connection, |direct, parts| {
                direct.takes_requests(parts)
            });
            let next = || unit.waiting.borrow_mut().pop_front();
            takes.then(next).flatten()
        };
        let around = host.surroundings();
        let give = |id| {
            host.ask(unit.connection, |direct, parts| {
                direct.take(&around, parts, id)
            })
        };
        unit.giving.all(host, self.config.start, next, give).await;
    }
}

//! Driver without a request order of its own. The device receives as many requests as it accepts,
//! and the others wait in their order of arrival.

use super::hardware::Direct;
use crate::driver::submission_guard::SubmissionGuard;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::Id;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;
use std::collections::VecDeque;

/// Processor costs of the direct driver.
#[derive(Clone, Debug)]
pub struct DirectDriverConfig {
    /// Processor time to queue a request and submit it to the device.
    pub start_cost: Time,
    /// Processor time to handle a completion.
    pub complete_cost: Time,
}

/// Driver of directly attached devices.
pub(crate) struct DirectDriver {
    config: DirectDriverConfig,
    units: Vec<DirectDeviceQueue>,
}

/// State of a device in its driver, with the requests that wait for it.
struct DirectDeviceQueue {
    drive_number: usize,
    connection: Id<Direct>,
    waiting: RefCell<VecDeque<RequestId>>,
    submission_guard: SubmissionGuard,
}

impl Driver for DirectDriver {
    type Controller = Direct;

    fn controllers(&self) -> Vec<Id<Direct>> {
        self.units.iter().map(|unit| unit.connection).collect()
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let unit = self.unit(|unit| unit.drive_number == hardware.requests[id].device);
        unit.waiting.borrow_mut().push_back(id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, drive: usize) {
        let unit = self.unit(|unit| unit.drive_number == drive);
        self.submit_to(host, unit).await;
    }

    async fn interrupt(&self, host: &impl DriverHost, connection: Id<Direct>) {
        while let Some(id) = host.ask(connection, |direct, parts| direct.take_done(parts)) {
            host.spend(Stage::Driver, self.config.complete_cost).await;
            host.completed(id);
        }
        let unit = self.unit(|unit| unit.connection == connection);
        self.submit_to(host, unit).await;
    }
}

impl DirectDriver {
    /// Returns the driver of the given devices, each with its drive number.
    pub(super) fn new(
        config: DirectDriverConfig,
        devices: impl Iterator<Item = (usize, Id<Direct>)>,
    ) -> Self {
        let unit = |(drive_number, connection)| DirectDeviceQueue {
            drive_number,
            connection,
            waiting: RefCell::default(),
            submission_guard: SubmissionGuard::default(),
        };
        Self {
            config,
            units: devices.map(unit).collect(),
        }
    }

    fn unit(&self, predicate: impl Fn(&DirectDeviceQueue) -> bool) -> &DirectDeviceQueue {
        let unit = self.units.iter().find(|unit| predicate(unit));
        unit.expect("the device is one of this driver's")
    }

    async fn submit_to(&self, host: &impl DriverHost, unit: &DirectDeviceQueue) {
        let next = || {
            let takes = host.ask(unit.connection, |direct, parts| {
                direct.takes_requests(parts)
            });
            let next = || unit.waiting.borrow_mut().pop_front();
            takes.then(next).flatten()
        };
        let context = host.surroundings();
        let submit = |id| {
            host.ask(unit.connection, |direct, parts| {
                direct.submit(&context, parts, id)
            })
        };
        unit.submission_guard
            .submit_all(host, self.config.start_cost, next, submit)
            .await;
    }
}

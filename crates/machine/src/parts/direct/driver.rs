//! Driver without a request order of its own. The device receives as many requests as it accepts,
//! and the others wait in their order of arrival.

use super::hardware::Direct;
use crate::driver::submission_guard::SubmissionGuard;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::ComponentId;
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
    device_queues: Vec<DirectDeviceQueue>,
}

struct DirectDeviceQueue {
    drive_number: usize,
    connection: ComponentId<Direct>,
    waiting_requests: RefCell<VecDeque<RequestId>>,
    submission_guard: SubmissionGuard,
}

impl Driver for DirectDriver {
    type Controller = Direct;

    fn controllers(&self) -> Vec<ComponentId<Direct>> {
        self.device_queues
            .iter()
            .map(|unit| unit.connection)
            .collect()
    }

    fn queueing_cost(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let unit = self
            .find_device_queue(|unit| unit.drive_number == hardware.submitted_requests[id].device);
        unit.waiting_requests.borrow_mut().push_back(id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, drive: usize) {
        let unit = self.find_device_queue(|unit| unit.drive_number == drive);
        self.submit_to_device(host, unit).await;
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, connection: ComponentId<Direct>) {
        while let Some(id) =
            host.with_controller_parts(connection, |direct, parts| direct.take_completion(parts))
        {
            host.spend_processor_time(Stage::Driver, self.config.complete_cost)
                .await;
            host.complete_request(id);
        }
        let unit = self.find_device_queue(|unit| unit.connection == connection);
        self.submit_to_device(host, unit).await;
    }
}

impl DirectDriver {
    /// Returns the driver of the given devices, each with its drive number.
    pub(super) fn new(
        config: DirectDriverConfig,
        devices: impl Iterator<Item = (usize, ComponentId<Direct>)>,
    ) -> Self {
        let unit = |(drive_number, connection)| DirectDeviceQueue {
            drive_number,
            connection,
            waiting_requests: RefCell::default(),
            submission_guard: SubmissionGuard::default(),
        };
        Self {
            config,
            device_queues: devices.map(unit).collect(),
        }
    }

    fn find_device_queue(
        &self,
        predicate: impl Fn(&DirectDeviceQueue) -> bool,
    ) -> &DirectDeviceQueue {
        let unit = self.device_queues.iter().find(|unit| predicate(unit));
        unit.expect("the device is one of this driver's")
    }

    async fn submit_to_device(&self, host: &impl DriverHost, unit: &DirectDeviceQueue) {
        let next = || {
            let takes = host.with_controller_parts(unit.connection, |direct, parts| {
                direct.accepts_requests(parts)
            });
            let next = || unit.waiting_requests.borrow_mut().pop_front();
            takes.then(next).flatten()
        };
        let context = host.surroundings();
        let submit = |id| {
            host.with_controller_parts(unit.connection, |direct, parts| {
                direct.submit_request(&context, parts, id)
            })
        };
        unit.submission_guard
            .submit_all(host, self.config.start_cost, next, submit)
            .await;
    }
}

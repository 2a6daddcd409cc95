//! Driver of the UDA50 (uda.c of July 1983). It has no request order of its own, and submits as
//! many commands as the controller grants.

use super::hardware::Uda50;
use crate::driver::submission_guard::{RoundRobin, SubmissionGuard};
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
pub struct UdaDriverConfig {
    /// Request order; see [`QueueOrder`]. Only the order of reads before writes has an effect on
    /// this driver.
    pub order: QueueOrder,
    /// Processor time to queue a request, build its command and submit it to the controller.
    pub start_cost: Time,
    /// Processor time to handle a response.
    pub complete_cost: Time,
}

/// Driver of a UDA50, with the requests that wait for it.
pub(crate) struct UdaDriver {
    config: UdaDriverConfig,
    controller: Id<Uda50>,
    queues: RefCell<Vec<VecDeque<RequestId>>>,
    round_robin: RoundRobin,
    submission_guard: SubmissionGuard,
}

impl UdaDriver {
    /// Returns the driver of a UDA50, on a computer with the given number of drives.
    pub(crate) fn new(config: UdaDriverConfig, controller: Id<Uda50>, drives: usize) -> Self {
        Self {
            config,
            controller,
            queues: RefCell::new(vec![VecDeque::new(); drives]),
            round_robin: RoundRobin::default(),
            submission_guard: SubmissionGuard::default(),
        }
    }

    async fn submit_commands(&self, host: &impl DriverHost) {
        let next = || {
            let takes = host.ask(self.controller, |uda50, _| uda50.takes_commands());
            let queues = &mut *self.queues.borrow_mut();
            let drives = if takes { queues.len() } else { 0 };
            self.round_robin
                .find_next(drives, |drive| queues[drive].pop_front())
        };
        let context = host.surroundings();
        let submit = |id| {
            host.ask(self.controller, |uda50, parts| {
                uda50.command(&context, parts, id);
            });
        };
        self.submission_guard
            .submit_all(host, self.config.start_cost, next, submit)
            .await;
    }
}

impl Driver for UdaDriver {
    type Controller = Uda50;

    fn controllers(&self) -> Vec<Id<Uda50>> {
        vec![self.controller]
    }

    fn queueing(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
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

    async fn submit_queued(&self, host: &impl DriverHost, _drive: usize) {
        self.submit_commands(host).await;
    }

    async fn interrupt(&self, host: &impl DriverHost, controller: Id<Uda50>) {
        while let Some(id) = host.ask(controller, |uda50, _| uda50.take_done()) {
            host.spend(Stage::Driver, self.config.complete_cost).await;
            host.completed(id);
        }
        self.submit_commands(host).await;
    }
}

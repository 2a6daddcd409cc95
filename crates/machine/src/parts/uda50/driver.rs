//! Driver of the UDA50 (uda.c of July 1983). It has no request order of its own, and submits as
//! many commands as the controller grants.

use super::hardware::Uda50;
use crate::driver::submission_guard::{RoundRobin, SubmissionGuard};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::ComponentId;
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
    pub queue_order: QueueOrder,
    /// Processor time to queue a request, build its command and submit it to the controller.
    pub start_cost: Time,
    /// Processor time to handle a response.
    pub complete_cost: Time,
}

/// Driver of a UDA50, with the requests that wait for it.
pub(crate) struct UdaDriver {
    config: UdaDriverConfig,
    controller: ComponentId<Uda50>,
    drive_queues: RefCell<Vec<VecDeque<RequestId>>>,
    round_robin: RoundRobin,
    submission_guard: SubmissionGuard,
}

impl UdaDriver {
    /// Returns the driver of a UDA50, on a computer with the given number of drives.
    pub(crate) fn new(
        config: UdaDriverConfig,
        controller: ComponentId<Uda50>,
        drives: usize,
    ) -> Self {
        Self {
            config,
            controller,
            drive_queues: RefCell::new(vec![VecDeque::new(); drives]),
            round_robin: RoundRobin::default(),
            submission_guard: SubmissionGuard::default(),
        }
    }

    async fn submit_commands(&self, host: &impl DriverHost) {
        let next = || {
            let takes =
                host.with_controller_parts(self.controller, |uda50, _| uda50.accepts_commands());
            let queues = &mut *self.drive_queues.borrow_mut();
            let drives = if takes { queues.len() } else { 0 };
            self.round_robin
                .find_next_drive(drives, |drive| queues[drive].pop_front())
        };
        let context = host.surroundings();
        let submit = |id| {
            host.with_controller_parts(self.controller, |uda50, parts| {
                uda50.accept_command(&context, parts, id);
            });
        };
        self.submission_guard
            .submit_all(host, self.config.start_cost, next, submit)
            .await;
    }
}

impl Driver for UdaDriver {
    type Controller = Uda50;

    fn controllers(&self) -> Vec<ComponentId<Uda50>> {
        vec![self.controller]
    }

    fn queueing_cost(&self, _drive: usize) -> Option<Time> {
        None
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let request = &hardware.submitted_requests[id];
        let queue = &mut self.drive_queues.borrow_mut()[request.device];
        let is_write = |queued: &RequestId| hardware.submitted_requests[*queued].is_write();
        let place = match self.config.queue_order {
            QueueOrder::ReadsFirst if !request.is_write() => queue.iter().position(is_write),
            // Scanning is left to the controller.
            QueueOrder::ReadsFirst | QueueOrder::CylinderScan | QueueOrder::ArrivalOrder => None,
        };
        queue.insert(place.unwrap_or(queue.len()), id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, _drive: usize) {
        self.submit_commands(host).await;
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Uda50>) {
        while let Some(id) =
            host.with_controller_parts(controller, |uda50, _| uda50.take_completion())
        {
            host.spend_processor_time(Stage::Driver, self.config.complete_cost)
                .await;
            host.complete_request(id);
        }
        self.submit_commands(host).await;
    }
}

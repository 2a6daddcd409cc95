//! Drivers of VMEbus controllers by Sun and others (xy, ip, rf). The board receives a limited
//! number of commands at a time, and the other requests wait in the driver's queue of each drive.
//! The driver of the Multibus II board has no queue.

use super::hardware::Vme;
use crate::driver::disksort::{self, RequestQueue};
use crate::driver::submission_guard::{RoundRobin, SubmissionGuard};
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::ComponentId;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Start of the upward scan over a drive's cylinders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScanOrigin {
    /// Scan from the request in the controller. It stays at the head of the queue until it has
    /// ended, as in 4.2BSD's drivers. A program that continues at the current head position is
    /// served before all others.
    ActiveRequest,
    /// Scan from the first waiting request. A request leaves the queue when the controller receives
    /// it. If two programs alternate, neither overtakes the other.
    FirstWaiting,
}

/// Constants and costs of a VMEbus controller's driver.
#[derive(Clone, Debug)]
pub struct VmeDriverConfig {
    /// Request order; see [`QueueOrder`].
    pub queue_order: QueueOrder,
    /// Start of the upward scan of a request queue; see [`ScanOrigin`].
    pub scan_origin: ScanOrigin,
    /// Maximum number of commands in the controller. None means no limit.
    pub outstanding_commands_max: Option<u32>,
    /// Processor time to queue a request.
    pub strategy_cost: Time,
    /// Processor time to build a command and submit it to the controller.
    pub start_cost: Time,
    /// Processor time to handle the end of a command.
    pub complete_cost: Time,
}

/// Driver of a VMEbus controller, with the request queue of each drive.
pub(crate) struct VmeDriver {
    config: VmeDriverConfig,
    controller: ComponentId<Vme>,
    /// Request queue of each drive. If the scan starts at the active request, the last submitted
    /// request is the first one.
    drive_queues: RefCell<Vec<RequestQueue>>,
    /// Whether the first request of each drive's queue has been submitted to the controller.
    is_queue_head_in_flight: RefCell<Vec<bool>>,
    round_robin: RoundRobin,
    submission_guard: SubmissionGuard,
}

impl VmeDriver {
    /// Returns the driver of a VMEbus controller, on a computer with the given number of drives.
    pub(crate) fn new(
        config: VmeDriverConfig,
        controller: ComponentId<Vme>,
        drives: usize,
    ) -> Self {
        Self {
            config,
            controller,
            drive_queues: RefCell::new(vec![RequestQueue::new(); drives]),
            is_queue_head_in_flight: RefCell::new(vec![false; drives]),
            round_robin: RoundRobin::default(),
            submission_guard: SubmissionGuard::default(),
        }
    }

    fn take_next_request(&self) -> Option<RequestId> {
        let mut queues = self.drive_queues.borrow_mut();
        let mut is_head_in_flight = self.is_queue_head_in_flight.borrow_mut();
        self.round_robin.find_next_drive(queues.len(), |drive| {
            let queue = &mut queues[drive];
            if is_head_in_flight[drive] && queue.len() > 1 {
                queue.remove(0);
                is_head_in_flight[drive] = false;
            }
            if is_head_in_flight[drive] || queue.is_empty() {
                return None;
            }
            Some(match self.config.scan_origin {
                ScanOrigin::FirstWaiting => queue.remove(0).request,
                ScanOrigin::ActiveRequest => {
                    is_head_in_flight[drive] = true;
                    queue[0].request
                }
            })
        })
    }

    /// Removes a completed request from the head of its drive's queue, if it is there. The scan
    /// then starts afresh.
    fn remove_completed(&self, drive: usize, id: RequestId) {
        let queue = &mut self.drive_queues.borrow_mut()[drive];
        let is_head_in_flight = &mut self.is_queue_head_in_flight.borrow_mut()[drive];
        if *is_head_in_flight && queue.first().is_some_and(|first| first.request == id) {
            queue.remove(0);
            *is_head_in_flight = false;
        }
    }

    async fn submit_commands(&self, host: &impl DriverHost) {
        let next = || {
            let outstanding =
                host.with_controller_parts(self.controller, |vme, _| vme.outstanding_count());
            let takes = self
                .config
                .outstanding_commands_max
                .is_none_or(|most| outstanding < most);
            takes.then(|| self.take_next_request()).flatten()
        };
        let context = host.surroundings();
        let submit = |id| {
            host.with_controller_parts(self.controller, |vme, parts| {
                vme.accept_command(&context, parts, id)
            })
        };
        self.submission_guard
            .submit_all(host, self.config.start_cost, next, submit)
            .await;
    }
}

impl Driver for VmeDriver {
    type Controller = Vme;

    fn controllers(&self) -> Vec<ComponentId<Vme>> {
        vec![self.controller]
    }

    fn queueing_cost(&self, _drive: usize) -> Option<Time> {
        Some(self.config.strategy_cost)
    }

    fn enqueue(&self, hardware: &Hardware, id: RequestId) {
        let queue = &mut self.drive_queues.borrow_mut()[hardware.submitted_requests[id].device];
        disksort::enqueue_request(self.config.queue_order, queue, hardware, id);
    }

    async fn submit_queued(&self, host: &impl DriverHost, _drive: usize) {
        self.submit_commands(host).await;
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Vme>) {
        while let Some(done) =
            host.with_controller_parts(controller, |vme, _| vme.take_completion())
        {
            host.spend_processor_time(Stage::Driver, self.config.complete_cost)
                .await;
            let drive = host.hardware().borrow().submitted_requests[done].device;
            self.remove_completed(drive, done);
            host.complete_request(done);
        }
        self.submit_commands(host).await;
    }
}

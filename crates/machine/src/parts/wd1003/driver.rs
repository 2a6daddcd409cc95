//! Driver of a PC-AT's disks. It submits one command at a time, and the processor moves every word
//! of every sector in the interrupt handler.

use super::hardware::{ProcessorAction, Wd1003};
use crate::driver::disksort::{self, RequestQueue};
use crate::driver::submission_guard::RoundRobin;
use crate::driver::{Driver, DriverHost, QueueOrder};
use crate::hardware::Hardware;
use crate::id::ComponentId;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use diskperf_timeline::Stage;
use std::cell::RefCell;

/// Processor costs and request order of the hd driver.
#[derive(Clone, Debug)]
pub struct HdDriverConfig {
    /// Request order; see [`QueueOrder`].
    pub queue_order: QueueOrder,
    /// Processor time to queue a request.
    pub strategy_cost: Time,
    /// Processor time to load the controller's registers.
    pub start_cost: Time,
    /// Processor time to move one sector through the controller's data register.
    pub move_sector_cost: Time,
    /// Processor time to handle the end of a transfer.
    pub complete_cost: Time,
}

/// Driver of a PC-AT's disk controller, with the request queue of each drive.
pub(crate) struct HdDriver {
    config: HdDriverConfig,
    controller: ComponentId<Wd1003>,
    /// Request queue of each drive. The first request of the drive in service is in flight.
    drive_queues: RefCell<Vec<RequestQueue>>,
    round_robin: RoundRobin,
}

impl HdDriver {
    /// Returns the driver of a PC-AT disk controller, on a computer with the given number of
    /// drives.
    pub(crate) fn new(
        config: HdDriverConfig,
        controller: ComponentId<Wd1003>,
        drives: usize,
    ) -> Self {
        Self {
            config,
            controller,
            drive_queues: RefCell::new(vec![RequestQueue::new(); drives]),
            round_robin: RoundRobin::default(),
        }
    }

    /// Submits the next command if the controller is free: the first request of the next drive, in
    /// turn over the drives.
    async fn submit_command(&self, host: &impl DriverHost) {
        if !host.with_controller_parts(self.controller, |wd1003, _| wd1003.is_idle()) {
            return;
        }
        let next = {
            let queues = self.drive_queues.borrow();
            let first = |drive: usize| queues[drive].first().map(|queued| queued.request);
            self.round_robin.find_next_drive(queues.len(), first)
        };
        let Some(id) = next else { return };
        host.start_queued_request(id, self.config.start_cost).await;
        let context = host.surroundings();
        host.with_controller_parts(self.controller, |wd1003, parts| {
            wd1003.start_command(&context, parts, id)
        });
        // The first sector to write is brought without an interrupt.
        let asks = host.with_controller_parts(self.controller, |wd1003, parts| {
            wd1003.requested_action(parts)
        });
        if let Some(ProcessorAction::SupplySector { .. }) = asks {
            self.supply_sector(host).await;
        }
    }

    async fn supply_sector(&self, host: &impl DriverHost) {
        host.spend_processor_time(Stage::Driver, self.config.move_sector_cost)
            .await;
        let context = host.surroundings();
        host.with_controller_parts(self.controller, |wd1003, parts| {
            wd1003.note_supplied_sector(&context, parts)
        });
    }

    async fn complete_request(&self, host: &impl DriverHost, id: RequestId) {
        host.spend_processor_time(Stage::Driver, self.config.complete_cost)
            .await;
        let drive = host.hardware().borrow().submitted_requests[id].device;
        let first = self.drive_queues.borrow_mut()[drive].remove(0);
        assert!(
            first.request == id,
            "the first of the queue was transferred"
        );
        host.complete_request(id);
        self.submit_command(host).await;
    }
}

impl Driver for HdDriver {
    type Controller = Wd1003;

    fn controllers(&self) -> Vec<ComponentId<Wd1003>> {
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
        self.submit_command(host).await;
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Wd1003>) {
        match host.with_controller_parts(controller, |wd1003, parts| wd1003.requested_action(parts))
        {
            Some(ProcessorAction::FetchSector { transfer, last }) => {
                host.spend_processor_time(Stage::Driver, self.config.move_sector_cost)
                    .await;
                let context = host.surroundings();
                host.with_controller_parts(controller, |wd1003, parts| {
                    wd1003.note_fetched_sector(&context, parts)
                });
                if last {
                    self.complete_request(host, transfer).await;
                }
            }
            Some(ProcessorAction::SupplySector { .. }) => self.supply_sector(host).await,
            Some(ProcessorAction::AcknowledgeWrite { transfer }) => {
                host.with_controller_parts(controller, |wd1003, _| wd1003.acknowledge_interrupt());
                self.complete_request(host, transfer).await;
            }
            None => {}
        }
    }
}

//! Driver of an ACSI disk. It submits one command at a time to the controller.

use super::hardware::Acsi;
use crate::driver::{Driver, DriverHost};
use crate::hardware::Hardware;
use crate::id::ComponentId;
use diskperf_device::RequestId;
use diskperf_sim::Time;
use std::cell::Cell;

/// Costs and read-ahead of Minix's disk task.
#[derive(Clone, Debug)]
pub struct DiskTaskConfig {
    /// Processor time of a physical request: setup of the DMA chip, transfer of the command byte by
    /// byte, and fetch of the status at the end.
    pub request_cost: Time,
    /// Minimum size of a read, in bytes. The surplus is kept for later requests. 0 means no
    /// read-ahead.
    pub read_ahead_bytes: u32,
}

/// Driver of an ACSI disk, with its one request in flight.
pub(crate) struct DiskTaskDriver {
    config: DiskTaskConfig,
    controller: ComponentId<Acsi>,
    in_flight: Cell<Option<RequestId>>,
}

impl DiskTaskDriver {
    pub(crate) fn new(config: DiskTaskConfig, controller: ComponentId<Acsi>) -> Self {
        Self {
            config,
            controller,
            in_flight: Cell::new(None),
        }
    }
}

impl Driver for DiskTaskDriver {
    type Controller = Acsi;

    fn controllers(&self) -> Vec<ComponentId<Acsi>> {
        vec![self.controller]
    }

    fn queueing_cost(&self, _drive: usize) -> Option<Time> {
        Some(self.config.request_cost)
    }

    fn read_bytes_min(&self) -> u32 {
        self.config.read_ahead_bytes
    }

    fn enqueue(&self, _hardware: &Hardware, id: RequestId) {
        let before = self.in_flight.replace(Some(id));
        assert!(before.is_none(), "one request at a time");
    }

    async fn submit_queued(&self, host: &impl DriverHost, _drive: usize) {
        let id = self.in_flight.get().expect("a request was queued");
        let context = host.surroundings();
        host.with_controller_parts(self.controller, |acsi, parts| {
            acsi.start_command(&context, parts, id);
        });
    }

    async fn handle_interrupt(&self, host: &impl DriverHost, controller: ComponentId<Acsi>) {
        host.with_controller_parts(controller, |acsi, _| acsi.acknowledge_interrupt());
        host.complete_request(self.in_flight.take().expect("a command was given"));
    }
}
